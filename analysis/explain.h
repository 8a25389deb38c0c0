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
 * (EXITINFO1); what KVM does with it by its source (Linux 6.1, arch/x86/kvm), and by the same
 * (mmu/spte.h) what it keeps in the bits of an spte that the processor leaves it.
 *
 * An explanation is a JSON object:
 *	what	"error_code", "exit", "spte" or the event's name
 *	value	as given
 *	as	what the number was taken for
 *	fields	[{bits, name, value, meaning}], of bits only those that are set or whose being clear
 *		says something
 *	impossible	[why], where no processor makes such a thing; may be missing, as those below
 *	odd	[why], where Linux 6.1 makes no such entry: another kernel's
 *	says	a sentence or two
 *	kvm	what KVM does with it
 *	kvmsim	which policies or presets do the same, or "not modelled"
 *	error_code, exit, spte, old, new	explanations of parts of it
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
	bool has_info1, has_info2, has_intr_info, has_error_code;
	uint64_t info1, info2, intr_info, error_code; /* the last: of intr_info's exception */
	uint32_t reason; /* of VMX, whose upper bits are flags; 0: not known by number */
};
json_t *explain_exit(const char *name, enum exit_isa isa, const struct explain_infos *infos,
		     bool *found);

/* A shadow or nested page-table entry as Linux 6.1 makes it; @form tells EPT's layout (EXPLAIN_EPT)
 * from that of all others (EXPLAIN_PF, EXPLAIN_NPF); @level 0: not known. */
json_t *explain_spte(uint64_t spte, enum explain_form form, unsigned level);

/* One field of an explanation; @value as text. */
void explain_text_field(json_t *fields, const char *bits, const char *name, const char *value,
			const char *meaning);
void explain_field(json_t *fields, const char *bits, const char *name, uint64_t value,
		   const char *meaning);
json_t *explain_new(const char *what, const char *value);

/* What an event of that name is; NULL: no kernel has it, or no memory. */
json_t *explain_event_name(const char *name);
/* Hands @each every event of the trace or text at @path ("-": stdin), explained; it drops the
 * reference, and ends the reading by a negative value. Of a page fault the form of its code is
 * known where the same thread's exit came just before. Errors: those of host_read() and @each;
 * KVMSIM_EPARSE where there is no event. */
int explain_events(const char *path, const struct kvmsim_errsink *errors,
		   int (*each)(void *ctx, json_t *o), void *ctx);

#endif
