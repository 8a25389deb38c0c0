// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <string.h>

#include "tests/unit/text_gives.h"

/* Lines that mail and terminals wrapped, and what perf prints between its records. */

static void test_wraps(void)
{
	gives("vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3, rip\n0x7f00\n", ENTRY, REJOINED(1));
	gives("[ 8.123441]  vmm-8       2d..1.\n1000001us : kvm_entry: vcpu 3, rip\n0x7f00\n",
	      ENTRY, REJOINED(1));
	gives("> vmm-8 [002] d..1.\n> 1.000001: kvm_entry: vcpu\n> 3, rip\n> 0x7f00\n", ENTRY,
	      REJOINED(1));
	gives("vmm-8\n[002] d..1. 1.000001: kvm_entry: vcpu 3,\nrip 0x7f00\n", ENTRY, REJOINED(1));
	gives("vmm-8 [002] d..1. 1.000001:\nkvm_page_fault: address e9000\nerror_code 6\n" FPU_LINE,
	      FAULT FPU, REJOINED(1));
	/* a soft break splits words */
	gives("vmm-8 [002] d..1. 1.000001: kvm_page_fault: address e90=\n00\nerror_code 6\n", FAULT,
	      REJOINED(1));
	gives("vmm-8 [002] d..1. 1.000001: kvm_msr: msr_write 174 =\n0x8\n",
	      A "kvm_msr|-|val=8 write=1 nr=174\n", REJOINED(1));
	gives("vmm-8 [002] d..1. 1.000001: kvm_msr: msr_write 174 =3D =\n0x8\n",
	      A "kvm_msr|-|val=8 write=1 nr=174\n", REJOINED(1));
	/* whole without its end, but that follows */
	gives("vmm-8 [002] d..1. 1.000001: kvm_inj_virq: IRQ 0xf3\n[reinjected]\n" FPU_LINE,
	      A "kvm_inj_virq|-|nr=f3\n" FPU, REJOINED(1));
	gives("vmm-8 [002] d..1. 1.000001: kvm_exit: reason HLT rip 0x7f00\ninfo 0 2\n",
	      A "kvm_exit|HLT|rip=7f00 info1=0 info2=2\n", REJOINED(1));
	gives("vmm-8 [002] d..1. 1.000001: kvm_exit: reason HLT rip 0x7f00\nin short: it halts\n",
	      A "kvm_exit|HLT|rip=7f00\n", UNKNOWN(1));
	/* a blank line ends what is open, and so does a record */
	gives("vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3, rip\n\n0x7f00\n", "",
	      ((struct counted){.unknown = 1, .damaged = 1, .dropped = 1}));
	gives("vmm-8 [002] d..1. 1.000001: kvm_page_fault: address\n" ENTRY_LINE, ENTRY, DROPPED);
	/* prose behind a record is no end of it */
	gives(FPU_LINE "and so on\n  indented, too\n", FPU, UNKNOWN(2));
	gives(FAULT_LINE "18 of them\n", FAULT, UNKNOWN(1));
	/* an event of unknown fields goes on only where a line of that width was broken */
	gives("vmm-8 [002] d..1. 1.000001: rcu_utilization: Start\ncontext switch\n",
	      A "rcu_utilization|-|\n", UNKNOWN(1));
	gives("vmm-8 [002] d..1. 1.000001: kvm_page_fault: address\ne9000 error_code 6\n"
	      "vmm-8 [002] d..1. 1.000001: rcu_utilization: Start\ncontext switch\nfoo\n",
	      FAULT A "rcu_utilization|-|\n", ((struct counted){.unknown = 1, .rejoined = 2}));
}

/* Breaks lines at blanks so that none is longer than @width, where one can be; quotes them. */
static size_t wrap(const char *text, size_t width, const char *quote, char *out)
{
	size_t len = 0, line = 0;

	for (const char *p = text; *p;) {
		const char *word = p + strspn(p, " "), *end = word + strcspn(word, " \n");

		if (line && line + (size_t)(end - p) > width) {
			out[len++] = '\n';
			line = 0;
			p = word;
		}
		if (!line)
			len = stpcpy(out + len, quote) - out;
		memcpy(out + len, p, end - p);
		len += end - p;
		line += end - p;
		p = end;
		if (*p == '\n') {
			out[len++] = *p++;
			line = 0;
		}
	}
	out[len] = 0;
	return len;
}

/* A hard wrap of any width, quoted or not, changes nothing of the records. */
static void test_every_width(void)
{
	static const char text[] = ENTRY_LINE
		"       CPU 2/KVM-812   [061] d..2. 90233.118404: kvm_exit: vcpu 0 reason npf rip "
		"0xe91c4 info1 0x0000000100000006 info2 0x00000000000e9000 intr_info 0x00000000 "
		"error_code 0x00000000\n"
		"vmm-812   [061] d..2. 90233.118405: kvm_exit: reason HLT rip 0xe91c4 info 0 0\n"
		"vmm-812   [061] d..2. 90233.118406: kvm_inj_virq: IRQ 0xf3 [reinjected]\n"
		"vmm-812   (    800) [061] d..2. 90233.118407: fast_page_fault: vcpu 1 gva "
		"3c0d7a10 "
		"error_code P|W sptep 000000009b3ea41d old 0x860000217f60b73 new 860000217f60b73 "
		"spurious 1 fixed 0\n"
		"vmm-812   [061] 90233.118408: kvm_mmu_get_page: existing sp gfn 5d81c 1/4 q1 "
		"direct --x !pge !nxe root 3 sync\n"
		"vmm-812   [061] 90233.118409: kvm_mmu_get_page: sp gen 1 gfn e00 l1 8-byte q0 "
		"direct wux nxe ad root 0 sync new\n"
		"vmm-812   [061] 90233.118410: sched_switch: prev_comm=a prev_pid=0 prev_prio=120 "
		"prev_state=R ==> next_comm=vm=west next_pid=2950 next_prio=118\n"
		"vmm-812   [061] 90233.118411: sched_switch: trace-cmd:129 [120] R ==> "
		"rcu_preempt:15 [120]\n"
		"vmm-812   [061] 90233.118412: sched_stat_runtime: comm=a pid=1 runtime=2907118 "
		"[ns] vruntime=71200418855 [ns]\n"
		"vmm-812   [061] 90233.118413: kvm_dirty_ring_push: ring 0: dirty 0x8bf reset "
		"0x500 "
		"slot 1 offset 0x2b8 ret 0 (used 959)\n"
		"vmm  812 [061] 90233.118414: kvm:kvm_emulate_insn: 0:ffffffff8146c0a2:8b 40 10 "
		"(prot64)\n"
		"vmm-812  2d..1. 8122907114us : kvm_pio: pio_read at 0xcf8 size 4 count 2 val "
		"0x80001210 (...)\n" FPU_LINE;
	static const char *const quotes[] = {"", "> ", "> > "};
	static char want[sizeof(seen.out)], out[2 * sizeof(text) + 1024];

	text_see(&seen, text, sizeof(text) - 1);
	CU_ASSERT_EQUAL(seen.events, 14);
	memcpy(want, seen.out, sizeof(want));
	for (size_t width = 40; width < 200; width++)
		for (size_t q = 0; q < sizeof(quotes) / sizeof(*quotes); q++) {
			text_see(&seen, out, wrap(text, width, quotes[q], out));
			CU_ASSERT_STRING_EQUAL(seen.out, want);
			CU_ASSERT_EQUAL(seen.result.counts.damaged_lines, 0);
			CU_ASSERT_EQUAL(seen.result.counts.unknown_lines, 0);
			if (strcmp(seen.out, want)) {
				printf("%s\n%s\n%s\n", out, seen.out, want);
				return;
			}
		}
}

/* What perf prints between records: what it lost, and call chains, which belong to the record
 * above; the texts of util/event.c and util/session.c. */
static void test_perf(void)
{
	static const char chain[] =
		ENTRY_LINE "\tffffffffc0a1b2c3 vmx_vcpu_run+0x123 ([kvm_intel])\n"
			   "\t    7f3a5a2b ioctl+0x1b (/usr/lib/libc.so.6)\n"
			   "\t    7f3a5a2d std::pair<int, long>::pair() (/usr/bin/vmm)\n"
			   "\t       fdd6b __GI___ioctl+0x3b (/usr/lib/libc.so.6)\n"
			   "\t           0 [unknown] ([unknown])\n\n" FPU_LINE;

	gives(ENTRY_LINE "  vmm  8 [002]     1.000003: PERF_RECORD_LOST lost 17\n" FPU_LINE,
	      ENTRY "loss 2 17 0\n" FPU, NONE);
	gives(ENTRY_LINE "  vmm  8 1.000003: PERF_RECORD_LOST_SAMPLES\n", ENTRY "loss -1 -1 0\n",
	      NONE);
	gives(ENTRY_LINE "0x1a28 [0x30]: PERF_RECORD_LOST: id:12: lost:5\n", ENTRY "loss -1 5 0\n",
	      NONE);
	gives(ENTRY_LINE "Warning:\nProcessed 1000 samples and lost 12.50%!\n\n",
	      ENTRY "loss -1 -1 0\n", NONE);
	CU_ASSERT_EQUAL(seen.result.counts.loss_markers, 1);
	gives(ENTRY_LINE "PERF_RECORD_LOST is what perf says then\n", ENTRY "loss -1 -1 0\n", NONE);
	gives(ENTRY_LINE "and PERF_RECORD_LOST is what perf says\n", ENTRY, UNKNOWN(1));
	gives(chain, ENTRY FPU, NONE);
	CU_ASSERT_EQUAL(seen.result.counts.stack_traces, 1);
	CU_ASSERT_EQUAL(seen.result.counts.stack_lines, 5);
	gives(ENTRY_LINE "a fault (see above)\nadd kvm_exit (twice)\n", ENTRY, UNKNOWN(2));
	gives(ENTRY_LINE "c0a1b2c3 info2 0x0 intr_info 0x0 reason KVM_EXIT_MMIO (6)\n", ENTRY,
	      UNKNOWN(1));
	gives("\tffffffffc0a1b2c3 vmx_vcpu_run+0x123 ([kvm_intel])\n" ENTRY_LINE, ENTRY,
	      UNKNOWN(1));
}

/* Breaks lines behind @width bytes, as terminals do. */
static size_t terminal(const char *text, size_t width, char *out)
{
	size_t len = 0, line = 0;

	for (; *text; text++) {
		if (*text != '\n' && line == width) {
			out[len++] = '\n';
			line = 0;
		}
		out[len++] = *text;
		line = *text == '\n' ? 0 : line + 1;
	}
	out[len] = 0;
	return len;
}

/* A terminal breaks words and numbers, too: what is read then is right, or damaged. */
static void test_terminal(void)
{
	static const char text[] = ENTRY_LINE FAULT_LINE
		"vmm-8 [002] d..1. 1.000002: kvm_exit: reason EXCEPTION_NMI rip 0xffffffff8146c0a2 "
		"info 7ff8 80000b0e\n"
		"vmm-8 [002] d..1. 1.000003: kvm_mmio: mmio write len 4 gpa 0xfee00380 val "
		"0x1b5ac\n"
		"vmm-8 [002] d..1. 1.000004: kvm_mmu_get_page: sp gen 1 gfn e00 l1 8-byte q0 "
		"direct "
		"wux nxe ad root 0 sync new\n"
		"vmm-8 [002] d..1. 1.000005: kvm_mmu_set_spte: gfn c00 spte 20f4c00ef3 (rwxu) "
		"level 2 "
		"at 20bb7c030\n"
		"vmm-8 [002] d..1. 1.000006: fast_page_fault: vcpu 1 gva 3c0d7a10 error_code P|W "
		"sptep 000000009b3ea41d old 0x860000217f60b73 new 860000217f60b73 spurious 1 fixed "
		"0\n";
	char want[sizeof(seen.out) + 1] = "\n", out[2 * sizeof(text)];
	unsigned all = 0, dropped = 0;

	text_see(&seen, text, sizeof(text) - 1);
	CU_ASSERT_EQUAL(seen.events, 7);
	strcpy(want + 1, seen.out);
	for (size_t width = 44; width < 150; width++) {
		text_see(&seen, out, terminal(text, width, out));
		all += 7;
		dropped += 7 - seen.events;
		for (char *line = seen.out, *end; *line; line = end) {
			char one[512];

			end = strchr(line, '\n') + 1;
			snprintf(one, sizeof(one), "\n%.*s", (int)(end - line), line);
			CU_ASSERT_PTR_NOT_NULL(strstr(want, one));
			if (!strstr(want, one))
				printf("width %d:%s%s\n", (int)width, one, out);
		}
		CU_ASSERT(seen.events == 7 || seen.result.counts.damaged_lines);
	}
	CU_ASSERT(dropped * 50 < all);
}

/* A number is broken in a record with a note behind. */
static void test_note(void)
{
	gives("> vmm-8 [002] d..1. 1.000001: kvm_page_fault: address e90\n"
	      "00 error_code 6   <==== [a]\n> " FPU_LINE,
	      FAULT FPU, ((struct counted){.rejoined = 1, .notes = 1}));
	/* prose is no number's rest */
	gives("> vmm-8 [002] d..1. 1.000001: kvm_page_fault: address e90\n"
	      "00 is what I see [a]\n> " FPU_LINE,
	      FPU, ((struct counted){.unknown = 1, .damaged = 1, .dropped = 1}));
}

static CU_TestInfo tests[] = {
	{"wraps", test_wraps},
	{"wraps of every width", test_every_width},
	{"a terminal's wraps, of every width", test_terminal},
	{"a terminal's wrap in front of a note", test_note},
	{"perf's losses and call chains", test_perf},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("host_wraps", tests)
