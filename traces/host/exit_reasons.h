/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_EXIT_REASONS_H
#define KVMSIM_TRACES_HOST_EXIT_REASONS_H

#include <stdbool.h>
#include <stdint.h>

#include "traces/host/event.h"

enum exit_isa { EXIT_ISA_UNKNOWN, EXIT_ISA_VMX, EXIT_ISA_SVM };

/* The name of an exit reason, in upper case ("EPT_VIOLATION", "NPF"). Of VMX the low 16 bits count.
 * len 0: no kernel has a name for it. */
struct host_text exit_reason_name(enum exit_isa isa, uint32_t reason);
/* The number that @isa has for @name, as exit_reason_name() spells it; false: none. */
bool exit_reason_number(enum exit_isa isa, const char *name, uint32_t *reason);
/* The same of an exit to userspace: "KVM_EXIT_MMIO". */
struct host_text userspace_exit_name(uint32_t reason);

#endif
