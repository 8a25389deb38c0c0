// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "tests/unit/text_gives.h"

/* What pasting, mail, terminals and logs do to a trace's text, and that nothing at all can break
 * the reader. */

#define KEPT ((struct counted){.damaged = 1})

static void test_transport(void)
{
	gives("> " ENTRY_LINE, ENTRY, NONE);
	gives("> >> >   " ENTRY_LINE, ENTRY, NONE);
	gives("[ 8123.440112] " ENTRY_LINE, ENTRY, NONE);
	gives("> [ 8123.440112] " ENTRY_LINE, ENTRY, NONE);
	gives("Nov 30 10:00:00 host kernel: [ 8123.440112] " ENTRY_LINE, ENTRY, NONE);
	gives("^C" ENTRY_LINE, ENTRY, NONE);
	gives("^C\n" ENTRY_LINE "^D\n", ENTRY, UNKNOWN(2));
	gives("\xc2\xa0\xc2\xa0vmm-8\xc2\xa0[002] d..1. 1.000001: kvm_entry:\xef\xbf\xbdvcpu 3,\xa0"
	      "rip 0x7f00\r\n",
	      ENTRY, NONE);
	gives("\xc3\xaf\xc2\xbf\xc2\xbd vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3,"
	      "\xc3\x82\xc2\xa0rip 0x7f00\n",
	      ENTRY, NONE);
	gives("\tvmm-8\t[002]\td..1.\t1.000001:\tkvm_entry:\tvcpu 3,\trip 0x7f00\n", ENTRY, NONE);
	gives("vmm-8 [002] d..1. 1.000001: kvm_msr: msr_write 174 =3D 0x8\n",
	      A "kvm_msr|-|val=8 write=1 nr=174\n", NONE);
	/* coded, which is told by what cannot be anything else */
	gives("=C2=A0vmm-8=C2=A0[002] d..1. 1.000001: kvm_entry: vcpu 3, rip 0x7f00\n", ENTRY,
	      NONE);
	gives("vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3, rip 0x7f00=20\n", ENTRY, NONE);
	/* a soft break in front of what looks like a quote mark */
	gives("vmm-8 [002] d..1. 1.000001: sched_switch: a:12 [120] R ==> b:9 [12=\n0]\n"
	      "vmm-8 [002] d..1. 1.000001: sched_switch: a:12 [120] R ==> b:9 [120]\n",
	      A "sched_switch|-|prev_pid=c prev_state=52 next_pid=9\n" A
		"sched_switch|-|prev_pid=c prev_state=52 next_pid=9\n",
	      REJOINED(1));
	gives("vmm-8 [002] d..1. 1.000001: sched_switch: a:12 [120] R ==3D=\n> b:9 [120]\n",
	      A "sched_switch|-|prev_pid=c prev_state=52 next_pid=9\n", REJOINED(1));
	/* one inside of a character: =C2=A0 and the twice coded U+FFFD, which are blanks */
	gives("vmm-8=C2=A0[002] d..1. 1.000001: kvm_entry:=C2=\n=A0vcpu 3, rip 0x7f00\n", ENTRY,
	      REJOINED(1));
	gives("=C3=AF=C2=BF=C2=BDvmm-8 [002] d..1. 1.000001: kvm_entry:=C3=AF=\n"
	      "=C2=BF=C2=BDvcpu=C3=AF=C2=BF=C2=\n=BD3, rip 0x7f00\n",
	      ENTRY, REJOINED(1));
	gives("> =C2=A0vmm-8 [002] d..1. 1.000001: kvm_entry:=C2=\n> =A0vcpu 3, rip 0x7f00\n",
	      ENTRY, REJOINED(1));
	/* one that got blanks behind it on its way */
	gives("vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3, rip 0x7=  \nf00\n", ENTRY,
	      REJOINED(1));
	gives("vmm-8 [002] d..1. 1.000001: kvm_msr: msr_write 174 =3D = \n0x8\n",
	      A "kvm_msr|-|val=8 write=1 nr=174\n", REJOINED(1));
	/* a = of the record's own at the end of a line that mail wrapped */
	gives("vmm-8 [002] d..1. 1.000001: kvm_msr: msr_write 174 = \n0x8\n",
	      A "kvm_msr|-|val=8 write=1 nr=174\n", REJOINED(1));
	/* what looks like an escape in a text that has none */
	gives("vmm-8 [002] d..1. 1.000001: sched_waking: comm=a pid=2950 prio=118 "
	      "target_cpu=001\n",
	      A "sched_waking|-|pid=b86 target_cpu=1\n", NONE);
}

/* Out of a page's source: entities are undone where the first < or > is one. */
static void test_html(void)
{
#define IDLE_LINE "-8 [002] d..1. 1.000001: kvm_entry: vcpu 3, rip 0x7f00"
#define IDLE_WANT "|8|-|2|1000001000.6|5|kvm_entry|-|vcpu=3 rip=7f00\n"
	gives("&gt; &gt; " ENTRY_LINE "&gt; &gt; &lt;idle&gt;" IDLE_LINE "\n",
	      ENTRY "<idle>" IDLE_WANT, NONE);
	gives("&lt;...&gt;" IDLE_LINE "\n&lt;snip&gt;\nR&amp;D" IDLE_LINE "\n",
	      "<...>" IDLE_WANT "elision\nR&D" IDLE_WANT, NONE);
	gives("> Bob&#39;s remark: a &quot;loop&quot; -&gt;\n> &lt;idle&gt;" IDLE_LINE "\n",
	      "<idle>" IDLE_WANT, UNKNOWN(1));
	/* once only */
	gives("&lt;idle&gt;" IDLE_LINE "\na&amp;lt;" IDLE_LINE "\n",
	      "<idle>" IDLE_WANT "a&lt;" IDLE_WANT, NONE);
	/* a text that has its < as they are has entities for what they are */
	gives("<idle>" IDLE_LINE "\na&lt;" IDLE_LINE "\n", "<idle>" IDLE_WANT "a&lt;" IDLE_WANT,
	      NONE);
	gives("R&amp;D" IDLE_LINE "\n", "R&amp;D" IDLE_WANT, NONE);
}

static void test_damage(void)
{
	/* something foreign between the columns or fields, a bracket that is missing */
	gives("vmm-8 [002] K d..1. 1.000001: kvm_entry: vcpu 3, rip 0x7f00\n",
	      A "kvm_entry|-|vcpu=3 rip=7f00 damaged\n", KEPT);
	gives("vmm-8 [002] d..1. K 1.000001: kvm_entry: vcpu 3, rip 0x7f00\n",
	      A "kvm_entry|-|vcpu=3 rip=7f00 damaged\n", KEPT);
	gives("vmm-8 [002] d..1. 1.000001: K kvm_entry: vcpu 3, rip 0x7f00\n",
	      A "kvm_entry|-|vcpu=3 rip=7f00 damaged\n", KEPT);
	gives("vmm-8 [002] d..1. 1.000001: kvm_entry: K vcpu 3, rip 0x7f00\n",
	      A "kvm_entry|-|vcpu=3 rip=7f00 damaged\n", KEPT);
	gives("vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3, K rip 0x7f00\n",
	      A "kvm_entry|-|vcpu=3 rip=7f00 damaged\n", KEPT);
	gives("vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3, rip a 0x7f00\n",
	      A "kvm_entry|-|vcpu=3 rip=7f00 damaged\n", KEPT);
	gives("vmm-8 [002 d..1. 1.000001: kvm_entry: vcpu 3, rip 0x7f00\n",
	      A "kvm_entry|-|vcpu=3 rip=7f00 damaged\n", KEPT);
	gives("vmm-8 002] d..1. 1.000001: kvm_entry: vcpu 3, rip 0x7f00\n",
	      A "kvm_entry|-|vcpu=3 rip=7f00 damaged\n", KEPT);
	gives("vmm-8 [002] d..1. 1.000001: kvm_userspace_exit: reason KVM_EXIT_MMIO (6\n",
	      A "kvm_userspace_exit|KVM_EXIT_MMIO|reason=6 damaged\n", KEPT);
	gives("vmm-8 [002] d..1. 1.000001: kvm_inj_exception: #PF (0x2\n",
	      A "kvm_inj_exception|-|error_code=2 damaged\n", KEPT);
	gives("vmm-8 [002] d..1. 1.000001: kvm_inj_virq: IRQ 0xf3 [reinjected\n",
	      A "kvm_inj_virq|-|nr=f3 damaged\n", KEPT);
	gives("vmm-8 [002] d..1. 1.000001: kvm_pv_tlb_flush: [FAILED TO PARSE] vcpu_id=3 "
	      "need_mask=ARRAY[0b, 00] note=a=0x2a\n",
	      A "kvm_pv_tlb_flush|-|vcpu=3 damaged\n", KEPT);
	gives("vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3, rip 0x7f00 K\n",
	      A "kvm_entry|-|vcpu=3 rip=7f00 damaged\n", KEPT);
	gives("vmm-8 [002] d..1. 1.000001 kvm_entry: vcpu 3, rip 0x7f00\n",
	      A "kvm_entry|-|vcpu=3 rip=7f00 damaged\n", KEPT);
	gives("vmm-8 [002] d..1. 1.000001: kvm_userspace_exit: reason KVM_EXIT_MMIO 6)\n",
	      A "kvm_userspace_exit|KVM_EXIT_MMIO|reason=6 damaged\n", KEPT);
	/* in front of a comm that is known */
	gives(ENTRY_LINE "K vmm-8 [002] d..1. 1.000001: kvm_fpu: load\n",
	      ENTRY A "kvm_fpu|-| damaged\n", KEPT);
	gives("K vmm-8 [002] d..1. 1.000001: kvm_fpu: load\n",
	      "K vmm|8|-|2|1000001000.6|5|kvm_fpu|-|\n", NONE);
	/* cut, or foreign inside of a number */
	gives("vmm-8 [0y2] d..1. 1.000001: kvm_fpu: load\n", "", DROPPED);
	gives("vmm-8 [002] d..1. 1.00000x: kvm_fpu: load\n", "", DROPPED);
	gives("vmm-8 [002] d..1. 1.000001: kvm_entry: vcpuu 3\n", "", DROPPED);
	gives("vmm-8 [002] d..1. 1.000001: kvm_page_fault: address e9000\n", "", DROPPED);
	gives("vmm-8 [002] d..1. 1.000001: kvm_page_fault: address e9x00 error_code 6\n", "",
	      DROPPED);
	gives("vmm-8 [002] d..1. 1.000001: kvm_page_fault: address e9000 error_code\n", "",
	      DROPPED);
	gives("vmm-8 [002] d..1. 1.000001: kvm_page_fa\n", "", DROPPED);
	gives("vmm-8 [002] d..1. 1.0000\n", "", DROPPED);
	gives("CPU:3 [LOST 5 EVENTS\n", "loss 3 5 0\n", KEPT);
	/* a note behind the last field */
	gives("vmm-8 [002] d..1. 1.000001: kvm_page_fault: address e9000 error_code 6   <== [a]\n",
	      FAULT, ((struct counted){.notes = 1}));
	gives("vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3, rip 0x7f00   <== the first\n", ENTRY,
	      ((struct counted){.notes = 1}));
}

/* The file's last line, without a newline. */
static void test_last_line(void)
{
	gives(ENTRY_LINE "vmm-8 [002] d..1. 1.000001: kvm_fpu: load", ENTRY FPU, NONE);
	gives(ENTRY_LINE "vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3", ENTRY, DROPPED);
	gives(ENTRY_LINE "vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3, rip 0xffffffffa1", ENTRY,
	      DROPPED);
	gives(FPU_LINE "vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3",
	      FPU A "kvm_entry|-|vcpu=3\n", NONE);
	gives(ENTRY_LINE "vmm-8 [002] d..1. 1.000001: kvm_page_fault: vcpu 3 rip 0x7f00 address "
			 "0x0000",
	      ENTRY, DROPPED);
	gives(ENTRY_LINE "vmm-8 [002] d..1. 1.000001: kvm_exit: vcpu 3 reason HLT rip 0x7f00 info1 "
			 "0x0000000000000000 info2 0x0000000000000000 intr_info 0x00000000 "
			 "error_code 0x000",
	      ENTRY, DROPPED);
	gives(ENTRY_LINE "vm", ENTRY, DROPPED);
	gives(ENTRY_LINE "  vmm-8 ", ENTRY, DROPPED);
	gives(ENTRY_LINE "vmm-8 [0", ENTRY, DROPPED);
	gives(ENTRY_LINE "other-1234", ENTRY, DROPPED);
	gives(ENTRY_LINE "That was it.", ENTRY, UNKNOWN(1));
	gives("vmm-8 [002] d..1. 1.000001: kvm_entry: vcpu 3, rip\n0x7f00", ENTRY, REJOINED(1));
}

static void refused(const char *text, size_t len, enum host_refusal why)
{
	text_see(&seen, text, len);
	CU_ASSERT_EQUAL(seen.ret, KVMSIM_EPARSE);
	CU_ASSERT_EQUAL(seen.result.refusal, why);
	CU_ASSERT_EQUAL(seen.events, 0);
	CU_ASSERT_NOT_EQUAL(seen.error[0], 0);
}

static void test_refusals(void)
{
	static const char random[] = "\x8f\0\xfe\x25\x04\x87\x6f\x66\n\x06\x66\2\x5e\0\0\x1e";
	size_t big = 3 << 20;
	char *zeros = calloc(1, big);

	refused("", 0, HOST_EMPTY);
	refused(" \r\n\t\n\n", 6, HOST_EMPTY);
	refused(random, sizeof(random) - 1, HOST_BINARY);
	if (zeros)
		refused(zeros, big, HOST_BINARY);
	CU_ASSERT(seen.result.counts.bytes < big || seen.result.counts.lines == 1);
	free(zeros);
	refused("812 2 4471830912000 type: 345\n812 2 4471830912009 type: 344\n", 60,
		HOST_NO_KVM_CONTENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(seen.error, "raw"));
	refused("0000032c 00000002 00000411d6b4f0c0 type: 345\n", 45, HOST_NO_KVM_CONTENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(seen.error, "raw"));
	refused("bolt M6     120    0.08\nnut M6      118    0.05\n", 48, HOST_NO_KVM_CONTENT);
	/* other subsystems' records alone are a trace */
	text_see(&seen, "a-1 [002] 3.000001: softirq_raise: vec=3 [action=NET_RX]\n", 57);
	CU_ASSERT_EQUAL(seen.ret, 0);
	CU_ASSERT_EQUAL(seen.events, 1);
}

/* A line that is longer than any buffer, between two records. */
static void test_long_line(void)
{
	size_t n = 1 << 20, head = strlen(ENTRY_LINE), tail = strlen(FPU_LINE);
	char *text = malloc(head + n + tail);

	if (!text) {
		test_skip("out of memory");
		return;
	}
	memcpy(text, ENTRY_LINE, head);
	memset(text + head, 'x', n - 1);
	text[head + n - 1] = '\n';
	memcpy(text + head + n, FPU_LINE, tail);
	text_see(&seen, text, head + n + tail);
	CU_ASSERT_STRING_EQUAL(seen.out, ENTRY FPU);
	CU_ASSERT_EQUAL(seen.result.counts.lines, 3);
	CU_ASSERT_EQUAL(seen.result.counts.unknown_lines, 1);
	CU_ASSERT_EQUAL(seen.result.counts.bytes, head + n + tail);
	free(text);
}

/* Packed by @how into @out: bytes, or 0. */
static size_t packed(bool zstd, const char *text, uint8_t *out, size_t room)
{
	z_stream z = {0};
	size_t n;

	if (zstd) {
		n = ZSTD_compress(out, room, text, strlen(text), 3);
		return ZSTD_isError(n) ? 0 : n;
	}
	if (deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return 0;
	z.next_in = (uint8_t *)text;
	z.avail_in = strlen(text);
	z.next_out = out;
	z.avail_out = room;
	n = deflate(&z, Z_FINISH) == Z_STREAM_END ? z.total_out : 0;
	deflateEnd(&z);
	return n;
}

static void test_packed(void)
{
	uint8_t out[8192];

	for (int zstd = 0; zstd < 2; zstd++) {
		size_t n = packed(zstd, ENTRY_LINE FAULT_LINE, out, sizeof(out)), m;

		CU_ASSERT_FATAL(n > 0);
		text_see(&seen, (char *)out, n);
		CU_ASSERT_EQUAL(seen.ret, 0);
		CU_ASSERT_STRING_EQUAL(seen.out, ENTRY FAULT);
		/* two behind each other are one text */
		m = packed(zstd, FPU_LINE, out + n, sizeof(out) - n);
		text_see(&seen, (char *)out, n + m);
		CU_ASSERT_EQUAL(seen.ret, 0);
		CU_ASSERT_STRING_EQUAL(seen.out, ENTRY FAULT FPU);
		/* cut: what can be read, and an error that says so */
		text_see(&seen, (char *)out, n - 1);
		CU_ASSERT_EQUAL(seen.ret, KVMSIM_EPARSE);
		CU_ASSERT_EQUAL(seen.result.refusal, HOST_FINE);
		CU_ASSERT_PTR_NOT_NULL(strstr(seen.error, "cut short"));
		if (zstd) /* its frames have no checksum here */
			continue;
		out[n / 2] ^= 0x55;
		text_see(&seen, (char *)out, n + m);
		CU_ASSERT_EQUAL(seen.ret, KVMSIM_EPARSE);
	}
}

/* Dialects, tables and damage, to be cut and changed everywhere. */
static const char *const victims[] = {
	"# tracer: nop\n# entries-in-buffer/entries-written: 5/9   #P:4\n" ENTRY_LINE FAULT_LINE
	"CPU:3 [LOST 4 EVENTS]\n"
	"   vmm-812   (    800) [002] d..1. 4471.830912345: sched_switch: prev_comm=a prev_pid=0 "
	"prev_prio=120 prev_state=R ==> next_comm=vm=west next_pid=2950 next_prio=118\n"
	"vmm-8 [000] d..1. 1.000002: <stack trace>\n => kvm_load_guest_fpu\n...\n",
	"> > vmm-8 [002] d..1. 1.000001: kvm_exit: vcpu 0 reason npf\n> > rip 0xe91c4 info1 "
	"0x0000000100000006 info2 0x00000000000e9000 intr_info\n> > 0x00000000 error_code "
	"0x00000000\n> > vmm-8 [002] d..1. 1.000001: kvm_page_fault: address e90=\n> > 00\n"
	"> > error_code 6\n> > vmm-8 [002] d..1. 1.000001: kvm_msr: msr_write 174 =3D =\n> > 0x8\n",
	"[ 8123.441007] CPU:2 [LOST 90417 EVENTS]\n[ 8123.441007]  qvm-812       2d..1. "
	"8122907114us : kvm_exit: TRAP: HSR_EC: 0x0024 (DABT_LOW), PC: 0xffff800010aa11dc\n"
	"\xc2\xa0"
	"cell vcpu 3  611024 [021] 88120.417733: kvm:kvm_entry:  vcpu 5\n"
	"Processed 48213 events and lost 3 chunks!\n",
	"vmm-8 [2] 1.000001: kvm_mmu_get_page: sp gen 1 gfn e00 l1 8-byte q0 direct wux nxe ad "
	"root 0 sync new\nvmm-8 [2] 1.000001: kvm_mmu_get_page: new sp gfn 2c0000 3 q0 direct wux "
	"pae !nxe !wp root 0 sync\nvmm-8 [2] 1.000001: kvm_mmu_get_page: [FAILED TO PARSE] gfn=16 "
	"role=14084 created=1\nvmm-8 [2] 1.000001: fast_page_fault: vcpu 1 gva 10 error_code P|W "
	"sptep 0000000a old 0x1 new 2 spurious 0 fixed 1\n",
	"Analyze events for all VMs, all VCPUs:\n\n             VM-EXIT    Samples  Samples%     "
	"Time%    Min Time    Max Time         Avg time\n\n                 HLT       4127    "
	"48.05% "
	"   93.11%      1.03us  40418.77us    918.24us ( +-   4.12% )\n\nTotal Samples:8589, Total "
	"events handled time:4070101.29us.\n",
};

static void consistent(const char *text, size_t len)
{
	const struct host_counts *c = &seen.result.counts;
	uint64_t lines = 0;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n' || i + 1 == len;
	CU_ASSERT_EQUAL_FATAL(c->lines, lines);
	CU_ASSERT_EQUAL_FATAL(c->bytes, len);
	CU_ASSERT_FATAL(c->records == seen.events);
	CU_ASSERT_FATAL(c->dropped_lines <= c->damaged_lines);
	CU_ASSERT_FATAL(c->records + c->rows + c->unknown_lines + c->elisions + c->stack_traces +
				c->stack_lines + c->loss_markers + c->dropped_lines <=
			lines);
	CU_ASSERT_FATAL(c->rejoined_records + c->trailing_notes <= 2 * (c->records + c->rows));
	CU_ASSERT_FATAL((seen.ret == KVMSIM_EPARSE) == (seen.result.refusal != HOST_FINE));
}

static void test_every_prefix(void)
{
	for (size_t i = 0; i < sizeof(victims) / sizeof(*victims); i++)
		for (size_t n = 0; n <= strlen(victims[i]); n++) {
			text_see(&seen, victims[i], n);
			consistent(victims[i], n);
		}
}

static void test_every_byte(void)
{
	static const char with[] = {0, '\n', ' ', '=', '>', '[', '9', 'x', (char)0xa0};

	for (size_t i = 0; i < sizeof(victims) / sizeof(*victims); i++) {
		size_t len = strlen(victims[i]);
		char *text = strdup(victims[i]);

		for (size_t n = 0; text && n < len; n++)
			for (size_t b = 0; b < sizeof(with); b++) {
				text[n] = with[b];
				text_see(&seen, text, len);
				consistent(text, len);
				text[n] = victims[i][n];
			}
		free(text);
	}
}

static CU_TestInfo tests[] = {
	{"mail, terminals and logs", test_transport},
	{"entities", test_html},
	{"foreign and cut", test_damage},
	{"the last line", test_last_line},
	{"what is refused", test_refusals},
	{"a line longer than any buffer", test_long_line},
	{"packed", test_packed},
	{"every prefix", test_every_prefix},
	{"every byte changed", test_every_byte},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("host_damage", tests)
