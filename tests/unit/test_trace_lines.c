// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/trace_lines.h"
#include "analysis/trace_text.h"
#include "tests/unit/harness.h"
#include "tests/unit/trace_util.h"

/* Lines that Debian's 6.1.0-57 printed, and what is compared of each. */
static const struct {
	const char *line, *text;
} lines[] = {
	{"kvm_entry: vcpu 1, rip 0x1040", "kvm_entry vcpu=1 rip=1040"},
	/* from Linux 6.14 on */
	{"kvm_entry: vcpu 1, rip 0x1040 intr_info 0x00000000 error_code 0x00000000",
	 "kvm_entry vcpu=1 rip=1040"},
	{"kvm_exit: vcpu 0 reason PF excp rip 0x1040 info1 0x0000000000000010 info2 "
	 "0x0000000000001040 intr_info 0x00000000 error_code 0x00000000",
	 "kvm_exit vcpu=0 reason=PF excp rip=1040"},
	{"kvm_page_fault: vcpu 0 rip 0x1040 address 0x0000000000010000 error_code 0x200000006",
	 "kvm_page_fault vcpu=0 rip=1040 addr=10000 error=200000006"},
	{"kvm_pio: pio_write at 0x10 size 1 count 1 val 0x0 ", "kvm_pio code=10"},
	{"kvm_userspace_exit: reason KVM_EXIT_IO (2)", "kvm_userspace_exit code=2"},
	{"kvm_fpu: unload", "kvm_fpu loaded=unload"},
	{"kvm_update_master_clock: masterclock 1 hostclock tsc offsetmatched 1",
	 "kvm_update_master_clock"},
	{"kvm_emulate_insn: 0:1135:8b 0f (prot64)", "kvm_emulate_insn rip=1135"},
	{"kvm_mmio: mmio unsatisfied-read len 4 gpa 0xe0000000 val 0x0",
	 "kvm_mmio kind=unsatisfied-read len=4 addr=e0000000"},
	{"vcpu_match_mmio: gva 0xe0001000 gpa 0xe0001000 Read GPA",
	 "vcpu_match_mmio addr=e0001000 write=Read by_gpa=GPA"},
	{"kvm_msr: msr_write c0000080 = 0xd00", "kvm_msr code=d00"},
	{"kvm_mmu_pagetable_walk: addr 10008000 pferr 2 W",
	 "kvm_mmu_pagetable_walk addr=10008000 error=2"},
	{"kvm_mmu_pagetable_walk: addr 100000 pferr 0 ",
	 "kvm_mmu_pagetable_walk addr=100000 error=0"},
	{"kvm_mmu_paging_element: pte 11027 level 4", "kvm_mmu_paging_element gpte=11027 level=4"},
	{"kvm_mmu_set_dirty_bit: gpa 21004", "kvm_mmu_set_dirty_bit addr=21004"},
	{"kvm_mmu_get_page: sp gen 0 gfn 0 l1 8-byte q0 direct wux nxe ad root 0 sync new",
	 "kvm_mmu_get_page gen=0 gfn=0 level=1 gpte_bytes=8 quadrant=0 direct=direct access=wux "
	 "invalid=0 nx=1 ad=1 roots=0 unsync=sync created=new"},
	{"kvm_mmu_prepare_zap_page: sp gen 1 gfn 10 l4 8-byte q0 wux invalid nxe ad root 1 sync",
	 "kvm_mmu_prepare_zap_page gen=1 gfn=10 level=4 gpte_bytes=8 quadrant=0 direct=0 "
	 "access=wux invalid=invalid nx=1 ad=1 roots=1 unsync=sync"},
	{"kvm_mmu_sync_page: sp gen 0 gfn 21 l1 8-byte q0 wux nxe ad root 0 unsync",
	 "kvm_mmu_sync_page gen=0 gfn=21 level=1 gpte_bytes=8 quadrant=0 direct=0 access=wux "
	 "invalid=0 nx=1 ad=1 roots=0 unsync=unsync"},
	{"kvm_mmu_spte_requested: gfn 10000 pfn 1fb2 level 1",
	 "kvm_mmu_spte_requested gfn=10000 level=1"},
	{"kvm_mmu_set_spte: gfn 1 spte 29d8e67 (rwxu) level 1 at 6858008",
	 "kvm_mmu_set_spte gfn=1 spte=e67 level=1 index=1"},
	{"kvm_mmu_set_spte: gfn 10000 spte 8000000001e28e67 (rw-u) level 1 at 67fb000",
	 "kvm_mmu_set_spte gfn=10000 spte=8000000000000e67 level=1 index=0"},
	{"fast_page_fault: vcpu 0 gva 10000000 error_code P|W|U sptep 0000000017c1c82d old "
	 "0x3fda2e65 new 3fda2e67 spurious 0 fixed 1",
	 "fast_page_fault vcpu=0 addr=10000000 error=7 old_spte=e65 spte=e67 spurious=0 fixed=1"},
	{"kvm_mmu_zap_all_fast: kvm-mmu-valid-gen 0 used_pages 1d",
	 "kvm_mmu_zap_all_fast gen=0 used_pages=1d"},
	{"mark_mmio_spte: sptep:00000000957262c4 gfn e0000 access 7 gen 1e",
	 "mark_mmio_spte gfn=e0000 access=7 mmio_gen=1e"},
	{"handle_mmio_page_fault: addr:0 gfn e0000 access 6",
	 "handle_mmio_page_fault addr=0 gfn=e0000 access=6"},
	{"check_mmio_spte: spte 80000e0000027 kvm_gen 4 spte-gen 4 valid 1",
	 "check_mmio_spte mmio_spte=80000e0000027 valid=1"},
	{"kvm_mmu_split_huge_page: gfn 10200 spte 6c00ee7 level 2 errno 0",
	 "kvm_mmu_split_huge_page gfn=10200 spte=ee7 level=2 code=0"},
	{"kvm_unmap_hva_range: mmu notifier unmap range: 0x000000004c6000 -- 0x000000004c7000",
	 "kvm_unmap_hva_range"},
	{"kvm_tdp_mmu_spte_changed: as id 0 gfn e0000 level 1 old_spte 31e6e67 new_spte "
	 "80000e0000027",
	 "kvm_tdp_mmu_spte_changed gfn=e0000 level=1 old_spte=e67 spte=80000e0000027"},
	{"kvm_dirty_ring_push: ring 0: dirty 0x2 reset 0x0 slot 1 offset 0x7 (used 2)",
	 "kvm_dirty_ring_push vcpu=0 dirty=2 reset=0 slot=1 offset=7"},
	{"kvm_dirty_ring_reset: ring 0: dirty 0x3e9 reset 0x3e9 (used 0)",
	 "kvm_dirty_ring_reset vcpu=0 dirty=3e9 reset=3e9"},
	{"kvm_dirty_ring_exit: vcpu 0", "kvm_dirty_ring_exit vcpu=0"},
};
#define N_LINES (sizeof(lines) / sizeof(*lines))

static bool parse(const char *line, struct trace_line *out, char expected[TRACE_LINE_PIECE])
{
	size_t len = strcspn(line, ":");
	const char *at;

	memset(out, 0, sizeof(*out));
	out->id = trace_line_find(line, len);
	CU_ASSERT_NOT_EQUAL_FATAL(out->id, N_KVM_TRACE);
	return trace_line_parse(out->id, line + len + 2, out, &at, expected);
}

static void what_a_kernel_prints(void)
{
	char text[TRACE_LINE_TEXT], expected[TRACE_LINE_PIECE];
	struct trace_line line;

	for (size_t i = 0; i < N_LINES; i++) {
		CU_ASSERT(parse(lines[i].line, &line, expected));
		CU_ASSERT_STRING_EQUAL(trace_line_text(&line, text), lines[i].text);
	}
	CU_ASSERT_EQUAL(trace_line_find("kvm_eoi", 7), N_KVM_TRACE);
	CU_ASSERT_FALSE(parse("kvm_entry: vcpu x, rip 0x1040", &line, expected));
	CU_ASSERT_STRING_EQUAL(expected, "the field vcpu");
	CU_ASSERT_FALSE(parse("kvm_fpu: loaded", &line, expected));
	CU_ASSERT_STRING_EQUAL(expected, "the end of the line");
}

/* Each line without one of its characters, or with another: refused or read, and never more than
 * the line is. The sanitizers of the debug build look on. */
static void damaged_lines(void)
{
	unsigned read = 0, refused = 0;

	for (size_t i = 0; i < N_LINES; i++) {
		size_t name = strcspn(lines[i].line, ":") + 2, len = strlen(lines[i].line);

		for (size_t k = name; k < len; k++) {
			char *copy = malloc(len + 1), text[TRACE_LINE_TEXT];
			char expected[TRACE_LINE_PIECE];
			struct trace_line line;
			bool ok;

			memcpy(copy, lines[i].line, len + 1);
			switch (k % 3) {
			case 0:
				copy[k] = '\0';
				break;
			case 1:
				copy[k] = '~';
				break;
			default:
				memmove(copy + k, copy + k + 1, len - k);
			}
			ok = parse(copy, &line, expected);
			read += ok;
			refused += !ok;
			CU_ASSERT(strlen(trace_line_text(&line, text)) < TRACE_LINE_TEXT);
			free(copy);
		}
	}
	CU_ASSERT(read > 100); /* what is not compared may be anything */
	CU_ASSERT(refused > 800);
}

/* Every event has a line in which it differs from another in each of its fields. */
static void fields_that_differ(void)
{
	for (int id = 0; id < N_KVM_TRACE; id++) {
		uint64_t has = trace_line_fields((enum kvm_trace_id)id);
		struct trace_line a = {.id = (enum kvm_trace_id)id}, b = a;
		enum trace_line_field field;

		CU_ASSERT(trace_line_equal(&a, &b, &field));
		for (int f = 0; f < N_LINE_FIELDS; f++) {
			if (!(has & 1ull << f))
				continue;
			b.field[f] = 1;
			CU_ASSERT_FALSE(trace_line_equal(&a, &b, &field));
			CU_ASSERT_EQUAL(field, (enum trace_line_field)f);
			b.field[f] = 0;
		}
		b.id = (enum kvm_trace_id)((id + 1) % N_KVM_TRACE);
		CU_ASSERT_FALSE(trace_line_equal(&a, &b, &field));
		CU_ASSERT_EQUAL(field, N_LINE_FIELDS);
	}
}

/* ---- whole files ---- */

static char path[] = "/tmp/kvmsim-trace-XXXXXX";

static void write_file(const char *bytes, size_t len)
{
	FILE *f = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, len, f), len);
	fclose(f);
}

static const char two_phases[] =
	"CASE name=A mmu=npt0-pae slot_pages=64 guest_pte=4k\n"
	"             vmm-92      [000] .....     1.929000: kvm_fpu: load\n"
	"             vmm-92      [000] .....     1.929693: tracing_mark_write: PHASE setup nr=-1 "
	"round=-1 pattern=-\n"
	"             vmm-92      [000] d..1.     1.930111: kvm_entry: vcpu 0, rip 0x1040\n"
	"             vmm-92      [000] .....     1.930183: kvm_exit: vcpu 0 reason interrupt rip "
	"0x1040 info1 0x0\n"
	"             vmm-92      [000] d..1.     1.930190: kvm_entry: vcpu 0, rip 0x1040\n"
	"             vmm-92      [000] .....     1.930191: kvm_eoi: apicid 0 vector 1\n"
	"             vmm-92      [000] .....     1.930192: tracing_mark_write: ENDPHASE\n"
	"             vmm-92      [000] .....     1.931693: tracing_mark_write: PHASE write nr=3 "
	"round=2 pattern=even\n"
	"             vmm-92      [000] .....     1.931800: tracing_mark_write: ENDPHASE\n";

static void a_file(void)
{
	struct trace_recording *r;
	const struct trace_phase *p;

	write_file(two_phases, strlen(two_phases));
	CU_ASSERT_EQUAL_FATAL(trace_recording_load(path, NULL, &r), 0);
	CU_ASSERT_STRING_EQUAL(r->test_case, "A");
	CU_ASSERT_EQUAL(r->mmu, MMU_SHADOW_LONG64);
	CU_ASSERT_EQUAL(r->guest, MATRIX_GUEST_PAE);
	CU_ASSERT_EQUAL(r->slot_pages, 64);
	CU_ASSERT_EQUAL(r->pte, MATRIX_PTE_4K);
	CU_ASSERT_EQUAL_FATAL(r->phases.n, 2);
	p = r->phases.phase;
	CU_ASSERT_STRING_EQUAL(p[0].name, "setup");
	CU_ASSERT_EQUAL(p[0].begins, 3);
	CU_ASSERT_EQUAL(p[0].ends, 8);
	CU_ASSERT_EQUAL_FATAL(p[0].n_lines, 2);
	CU_ASSERT_EQUAL(p[0].lines[0].number, 4);
	CU_ASSERT_EQUAL(p[0].lines[1].id, N_KVM_TRACE);
	CU_ASSERT_STRING_EQUAL(p[0].lines[1].unknown, "kvm_eoi");
	CU_ASSERT_EQUAL(p[1].pattern, MATRIX_EVEN);
	CU_ASSERT_EQUAL(p[1].nr_dirty, 3);
	CU_ASSERT_EQUAL(p[1].round, 2);
	CU_ASSERT_EQUAL(p[1].n_lines, 0);
	CU_ASSERT_EQUAL(p[0].threads, 1);
	CU_ASSERT_EQUAL(r->phases.left_out[LEFT_OUT_TIMER], 2);
	CU_ASSERT_EQUAL(r->phases.left_out[LEFT_OUT_OUTSIDE], 1);
	trace_recording_free(r);
}

/* Of two threads the one that was made first comes first, whatever ran first. */
static void two_threads(void)
{
	static const char text[] =
		"CASE name=H mmu=npt1-tdp0 slot_pages=64 guest_pte=4k\n"
		" a-b-95 [000] ..... 1.000001: tracing_mark_write: PHASE x nr=-1 round=-1\n"
		" a-b-97 [000] ..... 1.000002: kvm_fpu: load\n"
		" a-b-96 [000] ..... 1.000003: kvm_fpu: unload\n"
		" a-b-97 [000] ..... 1.000004: kvm_entry: vcpu 1, rip 0x1040\n"
		" a-b-96 [000] ..... 1.000005: kvm_entry: vcpu 0, rip 0x1040\n"
		" a-b-95 [000] ..... 1.000006: tracing_mark_write: ENDPHASE\n";
	static const unsigned long order[] = {4, 6, 3, 5};
	struct trace_recording *r;

	write_file(text, strlen(text));
	CU_ASSERT_EQUAL_FATAL(trace_recording_load(path, NULL, &r), 0);
	CU_ASSERT_EQUAL(r->phases.phase[0].threads, 2);
	CU_ASSERT_EQUAL_FATAL(r->phases.phase[0].n_lines, 4);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(r->phases.phase[0].lines[i].number, order[i]);
	trace_recording_free(r);
}

static void damaged_files(void)
{
	enum { ROUNDS = 1000 };
	unsigned read = 0, refused = 0;
	uint64_t rnd = 17;

	for (int i = 0; i < ROUNDS; i++) {
		char copy[sizeof(two_phases)];
		size_t len = strlen(two_phases), at = test_random(&rnd) % len;
		struct trace_recording *r;

		memcpy(copy, two_phases, sizeof(copy));
		switch (test_random(&rnd) % 4) {
		case 0:
			len = at;
			break;
		case 1:
			copy[at] = (char)test_random(&rnd);
			break;
		case 2:
			copy[at] = '\n';
			break;
		default:
			memmove(copy + at, copy + at + 1, --len - at);
		}
		write_file(copy, len);
		if (trace_recording_load(path, NULL, &r)) {
			CU_ASSERT_PTR_NULL(r);
			refused++;
		} else {
			trace_recording_free(r);
			read++;
		}
	}
	CU_ASSERT(read > ROUNDS / 10);
	CU_ASSERT(refused > ROUNDS / 4);
}

static CU_TestInfo tests[] = {{"what a kernel prints", what_a_kernel_prints},
			      {"damaged lines", damaged_lines},
			      {"fields that differ", fields_that_differ},
			      {"a file", a_file},
			      {"two threads", two_threads},
			      {"damaged files", damaged_files},
			      CU_TEST_INFO_NULL};

int main(void)
{
	int fd = mkstemp(path), rc;

	if (fd < 0)
		return 1;
	close(fd);
	rc = test_main("trace_lines", tests);
	unlink(path);
	return rc;
}
