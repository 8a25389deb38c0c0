/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_EXPLAIN_H
#define KVMSIM_ANALYSIS_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "model/sim/error.h"
#include "traces/host/exit_reasons.h"

/*
 * Numbers of KVM's events in plain words, with the manuals' names: Intel's, volume 3, chapters 4
 * (page-fault error codes) and 28 (exit qualifications); AMD's, volume 2, chapters 8 and 15
 * (EXITINFO1); what KVM does with it by its source (Linux 6.1, arch/x86/kvm).
 *
 * An explanation is a JSON object:
 *	what	"error_code", "exit" or the event's name
 *	value	as given
 *	as	what the number was taken for
 *	fields	[{bits, name, value, meaning}], of bits only those that are set or whose being clear
 *		says something
 *	says	a sentence or two
 *	kvm	what KVM does with it; may be missing
 * NULL: no memory.
 */

enum explain_form {
	EXPLAIN_GUESS, /* by its bits: the forms overlap, so this is said */
	EXPLAIN_PF,    /* the processor's page-fault error code */
	EXPLAIN_EPT,   /* the exit qualification of an EPT violation */
	EXPLAIN_NPF,   /* EXITINFO1 of a nested page fault */
};

/* What kvm_page_fault prints as error_code: on VMX the exit qualification, on SVM EXITINFO1, under
 * shadow paging the processor's error code. */
json_t *explain_error_code(uint64_t code, enum explain_form form);

/* An exit by @name (in upper case, without EXIT_) of @isa, or of whichever has it where that is
 * EXIT_ISA_UNKNOWN; with its infos where they are known. *@found false: neither has such an exit.
 */
struct explain_infos {
	bool has_info1, has_info2, has_intr_info;
	uint64_t info1, info2, intr_info;
};
json_t *explain_exit(const char *name, enum exit_isa isa, const struct explain_infos *infos,
		     bool *found);

/* One field of an explanation. */
void explain_field(json_t *fields, const char *bits, const char *name, uint64_t value,
		   const char *meaning);
json_t *explain_new(const char *what, const char *value);

/* Every event of the trace or text at @path ("-": stdin), one object each, in a list. Errors: those
 * of host_read(); KVMSIM_EPARSE where it has no event. */
int explain_events(const char *path, const struct kvmsim_errsink *errors, json_t *list);

#endif
