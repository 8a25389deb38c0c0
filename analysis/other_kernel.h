/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_OTHER_KERNEL_H
#define KVMSIM_ANALYSIS_OTHER_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "model/sim/error.h"

/*
 * A kernel that is not the one that the matrix was recorded on: which preset is the nearest, and
 * which tracepoints and statistics it has.
 */

/* The preset nearest to @release ("6.12.95-rc1": its first two numbers count), the older of two, of
 * those that are kernels as they were released: NAME-tdp for the TDP MMU, otherwise NAME-shadow or
 * a version alone. NULL: @release begins with no version. */
const char *other_kernel_preset(const char *release, bool tdp_mmu);

/* A file with a line for each quantity that the kernel has: "ev:NAME"; "ev:NAME[]" where its fields
 * are there, too; "stat:NAME". */
struct kernel_names;
/* Errors: KVMSIM_EPARSE with the line, KVMSIM_EIO, KVMSIM_ENOMEM. */
int kernel_names_read(const char *path, const struct kvmsim_errsink *errors,
		      struct kernel_names **out);
void kernel_names_free(struct kernel_names *n);
/* Whether "ev:NAME", "ev:NAME[kind]" or "stat:NAME" can be in this kernel's rows. What is neither
 * an event nor a statistic can, and anything when @n is NULL. */
bool kernel_names_have(const struct kernel_names *n, const char *quantity);

#endif
