/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_TEXT_GIVES_H
#define KVMSIM_TESTS_TEXT_GIVES_H

#include <stdio.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/text_seen.h"

/* What a text gives, of records and counts: shared by the tests of what is done to texts. */
static struct text_seen seen;

/* The counts that a text should give, besides @want of its events. */
struct counted {
	uint64_t unknown, damaged, dropped, rejoined, notes;
};

static void gives(const char *text, const char *want, struct counted n)
{
	const struct host_counts *c = &seen.result.counts;

	text_see(&seen, text, strlen(text));
	if (strcmp(seen.out, want) || c->unknown_lines != n.unknown ||
	    c->damaged_lines != n.damaged || c->dropped_lines != n.dropped ||
	    c->rejoined_records != n.rejoined || c->trailing_notes != n.notes)
		printf("%s\n gave %s\n want %s\n unknown %d damaged %d dropped %d rejoined %d "
		       "notes "
		       "%d\n",
		       text, seen.out, want, (int)c->unknown_lines, (int)c->damaged_lines,
		       (int)c->dropped_lines, (int)c->rejoined_records, (int)c->trailing_notes);
	CU_ASSERT_STRING_EQUAL(seen.out, want);
	CU_ASSERT_EQUAL(c->unknown_lines, n.unknown);
	CU_ASSERT_EQUAL(c->damaged_lines, n.damaged);
	CU_ASSERT_EQUAL(c->dropped_lines, n.dropped);
	CU_ASSERT_EQUAL(c->rejoined_records, n.rejoined);
	CU_ASSERT_EQUAL(c->trailing_notes, n.notes);
}

#define A	    "vmm|8|-|2|1000001000.6|5|"
#define ENTRY	    A "kvm_entry|-|vcpu=3 rip=7f00\n"
#define ENTRY_LINE  "vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3, rip 0x7f00\n"
#define FAULT	    A "kvm_page_fault|-|error_code=6 address=e9000\n"
#define FAULT_LINE  "vmm-8 [002] d..1. 1.000001: kvm_page_fault: address e9000 error_code 6\n"
#define FPU	    A "kvm_fpu|-|\n"
#define FPU_LINE    "vmm-8 [002] d..1. 1.000001: kvm_fpu: load\n"
#define NONE	    ((struct counted){0})
#define UNKNOWN(n)  ((struct counted){.unknown = n})
#define REJOINED(n) ((struct counted){.rejoined = n})
#define DROPPED	    ((struct counted){.damaged = 1, .dropped = 1})

#endif
