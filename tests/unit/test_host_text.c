// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/text_seen.h"

/* Clean records in every tool's columns, and every layout of an event's fields. What is expected
 * was worked out by hand from the formats that the kernel and libtraceevent print with. */

static struct text_seen seen;

static void same(const char *text, const char *want)
{
	text_see(&seen, text, strlen(text));
	if (strcmp(seen.out, want))
		printf("%s\n gave %s\n want %s\n", text, seen.out, want);
	CU_ASSERT_STRING_EQUAL(seen.out, want);
	CU_ASSERT_EQUAL(seen.ret, 0);
	CU_ASSERT_EQUAL(seen.result.counts.unknown_lines, 0);
	CU_ASSERT_EQUAL(seen.result.counts.damaged_lines, 0);
	CU_ASSERT_EQUAL(seen.result.counts.trailing_notes, 0);
}

#define ENTRY "kvm_entry|-|vcpu=3\n"

static void test_columns(void)
{
	static const struct {
		const char *line, *want;
	} of[] = {
		/* ftrace's trace: no flags, 4, 5; a comm with blanks, a dash and digits */
		{"          vmm-812   [002]  4471.830912: kvm_entry: vcpu 3\n",
		 "vmm|812|-|2|4471830912000.6|0|" ENTRY},
		{"          vmm-812   [002] d..1  4471.830912: kvm_entry: vcpu 3\n",
		 "vmm|812|-|2|4471830912000.6|4|" ENTRY},
		{"       CPU 0/KVM-812   [002] d..1. 4471.830912: kvm_entry: vcpu 3\n",
		 "CPU 0/KVM|812|-|2|4471830912000.6|5|" ENTRY},
		{"            io-31-812   [128] dNh2. 4471.830912: kvm_entry: vcpu 3\n",
		 "io-31|812|-|128|4471830912000.6|5|" ENTRY},
		{"vmm-812 [002] d..1. 4471.830912: kvm_entry: vcpu 3\r\n",
		 "vmm|812|-|2|4471830912000.6|5|" ENTRY},
		/* a tgid, known and not */
		{"   vmm-812   (    800) [002] d..1. 4471.830912: kvm_entry: vcpu 3\n",
		 "vmm|812|800|2|4471830912000.6|5|" ENTRY},
		{"   <...>-812   (-------) [002] d..1. 4471.830912: kvm_entry: vcpu 3\n",
		 "<...>|812|-|2|4471830912000.6|5|" ENTRY},
		/* ns; another clock's count */
		{"   vmm-812   [002] d..1. 4471.830912345: kvm_entry: vcpu 3\n",
		 "vmm|812|-|2|4471830912345.9|5|" ENTRY},
		{"   vmm-812   [002] d..1. 913380912345: kvm_entry: vcpu 3\n",
		 "vmm|812|-|2|913380912345.0|5|" ENTRY},
		/* the kernel log's dump, and trace-cmd report -l */
		{"[ 8123.441007]  vmm-812       2d..1. 8122907114us : kvm_entry: vcpu 3\n",
		 "vmm|812|-|2|8122907114000.6|5|" ENTRY},
		{"[ 8123.441007][  T812]  vmm-812       2d..1 8122907114us+: kvm_entry: vcpu 3\n",
		 "vmm|812|-|2|8122907114000.6|4|" ENTRY},
		{"     vmm-812     2d..1.     8.639478: kvm_entry:             vcpu 3\n",
		 "vmm|812|-|2|8639478000.6|5|" ENTRY},
		/* perf script -F with few columns */
		{"             kvm:kvm_entry: vcpu 3\n", "-|-|-|-|-|0|" ENTRY},
		{"  4471.830912:    kvm:kvm_entry: vcpu 3\n", "-|-|-|-|4471830912000.6|0|" ENTRY},
		{"  812  4471.830912:    kvm:kvm_entry: vcpu 3\n",
		 "-|812|-|-|4471830912000.6|0|" ENTRY},
		{" 800/812   [002]  4471.830912:    kvm:kvm_entry: vcpu 3\n",
		 "-|812|800|2|4471830912000.6|0|" ENTRY},
		{"[002]  4471.830912:    kvm:kvm_entry: vcpu 3\n",
		 "-|-|-|2|4471830912000.6|0|" ENTRY},
		/* a comm in Latin-1, and in UTF-8 with a byte that Latin-1 has as a blank */
		{"caf\xe9-812 [002] d..1. 4471.830912: kvm_entry: vcpu 3\n",
		 "caf\xe9|812|-|2|4471830912000.6|5|" ENTRY},
		{"voil\xc3\xa0-812 [002] d..1. 4471.830912: kvm_entry: vcpu 3\n",
		 "voil\xc3\xa0|812|-|2|4471830912000.6|5|" ENTRY},
		/* trace-cmd report of several files or buffers */
		{"faults:              vmm-812   [001]    44.832077: kvm_entry:    vcpu 3\n",
		 "vmm|812|-|1|44832077000.6|0|" ENTRY},
		{"   vmm-812   [001]    44.832077: (+2641)  kvm_entry:    vcpu 3\n",
		 "vmm|812|-|1|44832077000.6|0|" ENTRY},
		/* perf script: tid, pid/tid, without CPU, without both; its period */
		{"     cell vcpu 3  812 [021] 88120.417733: kvm:kvm_entry:  vcpu 3\n",
		 "cell vcpu 3|812|-|21|88120417733000.6|0|" ENTRY},
		{"     cell vcpu 3   800/812 [021] 88120.417733: kvm:kvm_entry:  vcpu 3\n",
		 "cell vcpu 3|812|800|21|88120417733000.6|0|" ENTRY},
		{"       net/rx 12   812 88120.417733:     kvm:kvm_entry: vcpu 3\n",
		 "net/rx 12|812|-|-|88120417733000.6|0|" ENTRY},
		{"probe 88120.417733:     kvm:kvm_entry: vcpu 3\n",
		 "probe|-|-|-|88120417733000.6|0|" ENTRY},
		{"probe [021] 88120.417733:   kvm:kvm_entry: vcpu 3\n",
		 "probe|-|-|21|88120417733000.6|0|" ENTRY},
		{"probe  812 [021] 88120.417733:          1 kvm:kvm_entry: vcpu 3\n",
		 "probe|812|-|21|88120417733000.6|0|" ENTRY},
		/* columns cut out */
		{"CPU 0/KVM-812 kvm_entry: vcpu 3\n", "CPU 0/KVM|812|-|-|-|0|" ENTRY},
		{"vmm-812 [003] kvm_entry: vcpu 3\n", "vmm|812|-|3|-|0|" ENTRY},
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		same(of[i].line, of[i].want);
}

/* The third flag, of four or five, apart from the CPU or glued to it. */
static void test_contexts(void)
{
	static const struct {
		const char *flags;
		enum host_context want;
	} of[] = {{"d...", HOST_CONTEXT_TASK},	  {"dNs1.", HOST_CONTEXT_SOFTIRQ},
		  {"d.h1", HOST_CONTEXT_HARDIRQ}, {"D.H2.", HOST_CONTEXT_HARDIRQ},
		  {"d.Z2.", HOST_CONTEXT_NMI},	  {"d.z1", HOST_CONTEXT_NMI},
		  {"", HOST_CONTEXT_UNKNOWN}};
	static const char perf[] = "  vmm-8 [002] d.h1. 1.000001: kvm_entry: vcpu 3\n"
				   "  vmm  8 [002] 1.000002: kvm:kvm_entry: vcpu 3\n";
	static const char *const columns[] = {"  vmm-8 [002] %s 1.000001: kvm_entry: vcpu 3\n",
					      "  vmm-8    2%s 1.000001: kvm_entry: vcpu 3\n"};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		for (size_t k = 0; k < 2; k++) {
			char line[128];

			if (k && !*of[i].flags) /* then that is no CPU */
				continue;
			snprintf(line, sizeof(line), columns[k], of[i].flags);
			text_see(&seen, line, strlen(line));
			CU_ASSERT_EQUAL(seen.last_context, of[i].want);
		}
	}
	/* perf has none, and what the record before had does not stay */
	text_see(&seen, perf, sizeof(perf) - 1);
	CU_ASSERT_EQUAL(seen.last_context, HOST_CONTEXT_UNKNOWN);
}

/* The fields of one record with the columns of ftrace. */
static void fields(const char *text, const char *want)
{
	char line[512], out[1024];
	const char *colon = strchr(text, ':');

	snprintf(line, sizeof(line), "  vmm-8 [000] d..1. 1.000001: %s\n", text);
	snprintf(out, sizeof(out), "vmm|8|-|0|1000001000.6|5|%.*s|%s\n", (int)(colon - text), text,
		 want);
	same(line, out);
}

static void test_exits(void)
{
	fields("kvm_entry: vcpu 3", "-|vcpu=3");
	fields("kvm_entry: vcpu 3, rip 0x7f00", "-|vcpu=3 rip=7f00");
	fields("kvm_entry: vcpu 3 rip 0x7f00", "-|vcpu=3 rip=7f00");
	fields("kvm_entry: vcpu 3, rip 0x7f00[immediate exit]", "-|vcpu=3 rip=7f00");
	fields("kvm_entry: vcpu 3, rip 0x7f00 intr_info 0x800000f3 error_code 0x00000000",
	       "-|vcpu=3 rip=7f00 intr_info=800000f3 error_code=0");
	fields("kvm_entry: PC: 0xffff800010aa11dc", "-|rip=ffff800010aa11dc");
	/* to 2.6.38; to 5.9, by libtraceevent, too; from 5.10; libtraceevent of that; from 6.13 */
	fields("kvm_exit: reason cr_access rip 0xc0213a40", "cr_access|rip=c0213a40");
	fields("kvm_exit: reason EPT_VIOLATION rip 0x3060 info 783 800000f3",
	       "EPT_VIOLATION|rip=3060 info1=783 info2=800000f3");
	fields("kvm_exit: reason MSR_WRITE rip 0x3060 info 0 0 intr 800000f3",
	       "MSR_WRITE|rip=3060 info1=0 info2=0 intr_info=800000f3");
	fields("kvm_exit: vcpu 4 reason EPT_VIOLATION rip 0x3060 info1 0x0000000000000781 info2 "
	       "0x0000000000000002 intr_info 0x800000f3 error_code 0x00000004",
	       "EPT_VIOLATION|vcpu=4 rip=3060 info1=781 info2=2 intr_info=800000f3 error_code=4");
	fields("kvm_exit: vcpu 4 reason EPT_VIOLATION rip 0x3060 info 781 0",
	       "EPT_VIOLATION|vcpu=4 rip=3060 info1=781 info2=0");
	fields("kvm_exit: vcpu 4 reason HLT rip 0x3060 info1 0x0000000000000000 info2 "
	       "0x0000000000000000 intr_info 0x00000000 error_code 0x00000000 requests "
	       "0x0000000000000040",
	       "HLT|vcpu=4 rip=3060 info1=0 info2=0 intr_info=0 error_code=0 requests=40");
	fields("kvm_exit: reason 0x400 rip 0x10 info 100000004 7d81000",
	       "0x400|rip=10 reason=400 info1=100000004 info2=7d81000");
	fields("kvm_exit: reason UNKNOWN (77) rip 0x10 info 0 0",
	       "UNKNOWN|rip=10 reason=4d info1=0 info2=0");
	fields("kvm_exit: reason PF excp rip 0x10 info 2 1000",
	       "PF excp|rip=10 info1=2 info2=1000");
	fields("kvm_exit: vcpu 0 reason EPT_VIOLATION 0x4000000 rip 0x10 info1 0x0000000000000781 "
	       "info2 0x0000000000000000 intr_info 0x00000000 error_code 0x00000000",
	       "EPT_VIOLATION|vcpu=0 rip=10 info1=781 info2=0 intr_info=0 error_code=0");
	fields("kvm_exit: reason INVALID_STATE FAILED_VMENTRY rip 0x10 info 0 0",
	       "INVALID_STATE|rip=10 info1=0 info2=0");
	fields("kvm_exit: TRAP: HSR_EC: 0x0024 (DABT_LOW), PC: 0xffff800010aa11dc",
	       "DABT_LOW|rip=ffff800010aa11dc");
	fields("kvm_exit: IRQ: HSR_EC: 0x0000 (UNKNOWN), PC: 0xffff800010aa11dc",
	       "IRQ|rip=ffff800010aa11dc");
	fields("kvm_nested_vmexit: rip 7f31 reason IO_INSTRUCTION info1 cf80003 info2 0 int_info 0 "
	       "int_info_err 5",
	       "IO_INSTRUCTION|rip=7f31 info1=cf80003 info2=0 intr_info=0 error_code=5");
	fields("kvm_nested_vmexit: rip: 0x0000000000007f31 reason: HLT ext_inf1: "
	       "0x0000000000000001 "
	       "ext_inf2: 0x0000000000000002 ext_int: 0x00000003 ext_int_err: 0x00000004",
	       "HLT|rip=7f31 info1=1 info2=2 intr_info=3 error_code=4");
	fields("kvm_nested_vmexit: vcpu 1 reason CPUID rip 0x7f31 info1 0x0000000000000001 info2 "
	       "0x0000000000000002 intr_info 0x00000003 error_code 0x00000004",
	       "CPUID|vcpu=1 rip=7f31 info1=1 info2=2 intr_info=3 error_code=4");
	fields("kvm_nested_vmexit_inject: reason: HLT ext_inf1: 0x0000000000000001 ext_inf2: "
	       "0x0000000000000002 ext_int: 0x00000003 ext_int_err: 0x00000004",
	       "HLT|info1=1 info2=2 intr_info=3 error_code=4");
	fields("kvm_userspace_exit: reason KVM_EXIT_MMIO (6)", "KVM_EXIT_MMIO|reason=6");
	fields("kvm_userspace_exit: reason 0x1f (31)", "0x1f|reason=1f");
	fields("kvm_userspace_exit: reason restart (4)", "restart|reason=4");
}

static void test_faults(void)
{
	fields("kvm_page_fault: address e9000 error_code 6", "-|error_code=6 address=e9000");
	fields("kvm_page_fault: vcpu 3 rip 0x10 address 0x000000004a1b7fc8 error_code 0x783",
	       "-|vcpu=3 rip=10 error_code=783 address=4a1b7fc8");
	fields("fast_page_fault: vcpu 1 gva 3c0d7a10 error_code W sptep 000000009b3ea41d old "
	       "0x860000217f60b73 new 860000217f60b77 spurious 1 fixed 0",
	       "-|vcpu=1 error_code=2 gva=3c0d7a10 sptep=9b3ea41d old=860000217f60b73 "
	       "new=860000217f60b77 fixed=0 spurious=1");
	fields("fast_page_fault: vcpu 1 gva 10 error_code P|W|U|RSVD|F sptep 000000009b3ea41d old "
	       "0x1 new 2 spurious 0 fixed 1",
	       "-|vcpu=1 error_code=1f gva=10 sptep=9b3ea41d old=1 new=2 fixed=1 spurious=0");
	fields("fast_page_fault: vcpu 1 gva 10 error_code  sptep 000000009b3ea41d old 0x1 new 2 "
	       "spurious 0 fixed 1",
	       "-|vcpu=1 error_code=0 gva=10 sptep=9b3ea41d old=1 new=2 fixed=1 spurious=0");
	fields("kvm_mmio: mmio unsatisfied-read len 4 gpa 0xe0002010 val 0x0",
	       "-|gpa=e0002010 type=0 len=4 val=0");
	fields("kvm_mmio: mmio read len 4 gpa 0xe0002010 val 0x7",
	       "-|gpa=e0002010 type=1 len=4 val=7");
	fields("kvm_mmio: mmio write len 8 gpa 0xfee00380 val 0x1b58",
	       "-|gpa=fee00380 type=2 len=8 val=1b58");
	fields("vcpu_match_mmio: gva 0xffffa10000031010 gpa 0xe0002010 Write GPA",
	       "-|gpa=e0002010 gva=ffffa10000031010 write=1");
	fields("kvm_fast_mmio: fast mmio at gpa 0xfebf0000", "-|gpa=febf0000");
	fields("kvm_pio: pio_write at 0x1f7 size 1 count 1", "-|type=1 len=1 port=1f7 count=1");
	fields("kvm_pio: pio_read at 0xcf8 size 4 count 2 val 0x80001210 (...)",
	       "-|type=0 len=4 val=80001210 port=cf8 count=2");
	fields("kvm_msr: msr_write 174 = 0x8", "-|val=8 write=1 nr=174");
	fields("kvm_msr: msr_read c0000080 = 0x0 (#GP)", "-|val=0 write=0 nr=c0000080");
	fields("kvm_hypercall: nr 0x5 a0 0x1 a1 0x2 a2 0x3 a3 0x4", "-|nr=5");
	fields("kvm_emulate_insn: 0:ffffffff8146c0a2:8b 40 10 (prot64)", "-|rip=ffffffff8146c0a2");
	fields("kvm_emulate_insn: 0:e91c4: (prot32) failed", "-|rip=e91c4");
	fields("kvm_emulate_insn: 0:e91c4: 8b 40 FAIL", "-|rip=e91c4");
	fields("kvm_inj_virq: irq 49", "-|nr=31");
	fields("kvm_inj_virq: IRQ 0xf3 [reinjected]", "-|nr=f3");
	fields("kvm_inj_exception: #PF (0x2)", "-|error_code=2");
	fields("kvm_inj_exception: #UD", "-|");
}

static void test_tables(void)
{
	static const char plugin[] = "vmm-8 [000] 1.000001: kvm_mmu_get_page: existing sp gfn "
				     "5d81c 1/4 q1 direct --x !pge !nxe root 3 sync\n";

	fields("kvm_mmu_pagetable_walk: addr 2b7d10 pferr 14 U|F",
	       "-|error_code=14 address=2b7d10");
	fields("kvm_mmu_pagetable_walk: addr 2b7d10 pferr 0 ", "-|error_code=0 address=2b7d10");
	fields("kvm_mmu_paging_element: pte 7d5067 level 4", "-|level=4 spte=7d5067");
	fields("kvm_mmu_walker_error: pferr d P|U|RSVD", "-|error_code=d flags=d");
	fields("kvm_mmu_set_dirty_bit: gpa 7d5000", "-|gpa=7d5000");
	fields("kvm_mmu_get_page: sp gen 12 gfn e00 l1 8-byte q2 direct wux nxe ad root 0 sync new",
	       "-|gfn=e00 level=1 gen=c access=7 direct=1 quadrant=2 gpte_bytes=8 root_count=0 "
	       "unsync=0 created=1");
	fields("kvm_mmu_get_page: sp gen 0 gfn e00 l2 4-byte q1 w-x invalid !nxe !ad root 1 unsync "
	       "existing",
	       "-|gfn=e00 level=2 gen=0 access=3 direct=0 quadrant=1 gpte_bytes=4 root_count=1 "
	       "unsync=1 created=0");
	fields("kvm_mmu_get_page: sp gen 1f gfn e00 l4 pae q0 wux nxe root 0 sync new",
	       "-|gfn=e00 level=4 gen=1f access=7 direct=0 quadrant=0 root_count=0 unsync=0 "
	       "created=1");
	/* 5.1 to 5.3 have no generation */
	fields("kvm_mmu_get_page: sp gfn 1a2 l1 8-byte q0 direct wux nxe ad root 0 sync new",
	       "-|gfn=1a2 level=1 access=7 direct=1 quadrant=0 gpte_bytes=8 root_count=0 unsync=0 "
	       "created=1");
	fields("kvm_mmu_unsync_page: sp gfn 1a2 l2 4-byte q3 wux !nxe !ad root 1 unsync",
	       "-|gfn=1a2 level=2 access=7 direct=0 quadrant=3 gpte_bytes=4 root_count=1 unsync=1");
	text_see(&seen, plugin, strlen(plugin));
	CU_ASSERT_PTR_NOT_NULL(strstr(seen.out, "gfn=5d81c level=1 "));
	CU_ASSERT_PTR_NOT_NULL(strstr(seen.out, "root_count=3 unsync=0 created=0 stale\n"));
	fields("kvm_mmu_set_spte: gfn c00 spte 20f4c00ef3 (rwxu) level 2 at 20bb7c030",
	       "-|gfn=c00 level=2 spte=20f4c00ef3 sptep=20bb7c030");
	fields("kvm_mmu_spte_requested: gfn c2f pfn 20f4c2f level 2",
	       "-|gfn=c2f pfn=20f4c2f level=2");
	fields("kvm_mmu_split_huge_page: gfn 200 spte 10 level 2 errno -17",
	       "-|gfn=200 level=2 spte=10 ret=ffffffffffffffef");
	fields("kvm_tdp_mmu_spte_changed: as id 1 gfn c00 level 2 old_spte 20e1b3c907 new_spte 5a0",
	       "-|gfn=c00 level=2 old=20e1b3c907 new=5a0 as_id=1");
	fields("mark_mmio_spte: sptep:00000000a1b2c3d4 gfn c1008 access 6 gen 2a",
	       "-|gfn=c1008 sptep=a1b2c3d4 gen=2a access=6");
	fields("handle_mmio_page_fault: addr:c1008020 gfn c1008 access 3",
	       "-|address=c1008020 gfn=c1008 access=3");
	fields("check_mmio_spte: spte 80000e0000037 kvm_gen 6 spte-gen 6 valid 1",
	       "-|spte=80000e0000037 gen=6");
	fields("kvm_mmu_zap_all_fast: kvm-mmu-valid-gen 10 used_pages 1f", "-|gen=a count=1f");
	fields("kvm_unmap_hva_range: mmu notifier unmap range: 0x7f0000000000 -- 0x7f0000001000",
	       "-|address=7f0000000000");
	fields("kvm_dirty_ring_push: ring 0: dirty 0x8bf reset 0x500 slot 1 offset 0x2b8 ret -1 "
	       "(used 959)",
	       "-|ring=0 dirty=8bf reset=500 slot=1 offset=2b8 ret=ffffffffffffffff used=3bf");
	fields("kvm_dirty_ring_push: ring 1: dirty 0x20 reset 0x0 slot 0 offset 0x6d3 (used 32)",
	       "-|ring=1 dirty=20 reset=0 slot=0 offset=6d3 used=20");
	fields("kvm_dirty_ring_reset: ring 2: dirty 0x8c0 reset 0x8c0 (used 0)",
	       "-|ring=2 dirty=8c0 reset=8c0 used=0");
	fields("kvm_dirty_ring_exit: vcpu 2", "-|vcpu=2");
	fields("kvm_ioapic_set_irq: pin 4 dst 1 vec 39 (Fixed|physical|edge) (coalesced)", "-|");
	fields("kvm_ioapic_set_irq: pin 4 dst 1 vec=39 (Fixed|physical|edge)", "-|");
	fields("kvm_ple_window: vcpu 3: ple_window 11000 (grow 5500)",
	       "-|vcpu=3 old=157c new=2af8 grow=1");
	fields("kvm_ple_window_update: vcpu 3 old 11000 new 5500 (shrinked)",
	       "-|vcpu=3 old=2af8 new=157c grow=0");
	fields("kvm_halt_poll_ns: vcpu 1: halt_poll_ns 20000 (shrink 40000)",
	       "-|vcpu=1 old=9c40 new=4e20 grow=0");
	fields("kvm_vcpu_wakeup: wait time 100000 ns, polling valid", "-|ns=186a0 waited=1");
	fields("kvm_vcpu_wakeup: poll time 16 ns", "-|ns=10 waited=0");
	fields("kvm_pml_full: vcpu 3: PML full", "-|vcpu=3");
}

static void test_others(void)
{
	fields("contention_begin: 00000000deadbeef (flags=SPIN|WRITE)",
	       "-|flags=5 lock_addr=deadbeef");
	fields("contention_end: 0xffff8881deadbeef (ret=-4)",
	       "-|ret=fffffffffffffffc lock_addr=ffff8881deadbeef");
	fields("sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R+ ==> "
	       "next_comm=vm=west next_pid=2950 next_prio=118",
	       "-|prev_pid=0 prev_state=52 next_pid=b86");
	fields("sched_switch: swapper/1:0 [120] D ==> CPU 0/KVM:2950 [118]",
	       "-|prev_pid=0 prev_state=44 next_pid=b86");
	fields("sched_wakeup: comm=a b pid=2950 prio=118 success=1 target_cpu=012",
	       "-|pid=b86 target_cpu=c");
	fields("sched_waking: comm=vmm pid=2950 prio=118 target_cpu=001", "-|pid=b86 target_cpu=1");
	fields("sched_wakeup: vmm:2950 [118] success=1 CPU:001", "-|pid=b86 target_cpu=1");
	/* of the kvm system without fields here, of no mainline kernel, of another subsystem */
	fields("kvm_track_tsc: vcpu_id 2 masterclock 0 offsetmatched 0 nr_online 1 hostclock 0x0",
	       "-|vcpu=2");
	fields("kvm_write_tsc_offset: vcpu=2 prev=0 next=18446744002021974798", "-|vcpu=2");
	fields("kvm_vmx_watch: 1, a0:0x4c01d7e2", "-|");
	fields("rcu_utilization: Start context switch", "-|");
	/* raw: bare hex where the usual text has it; numbers of reasons get their names */
	fields("kvm_exit: exit_reason=1024 guest_rip=0x1001 isa=2 info1=0x0000000100000004 "
	       "info2=0x0000000010004000 intr_info=0x00000000 error_code=0x00000000 vcpu_id=1",
	       "NPF|vcpu=1 rip=1001 reason=400 isa=2 info1=100000004 info2=10004000 intr_info=0 "
	       "error_code=0");
	fields("kvm_tdp_mmu_spte_changed: gfn=10 old_spte=0 new_spte=1028af827 level=2 as_id=0",
	       "-|gfn=10 level=2 old=0 new=1028af827 as_id=0");
	fields("kvm_userspace_exit: reason=5 errno=0", "KVM_EXIT_HLT|reason=5 ret=0");
}

static void test_headers(void)
{
	static const char signature[] = "# tracer: nop\n--\n> -- \n-- \r\n--\r\n";

	same("version = 6\nCPU 2 is empty\ncpus=10\n# tracer: nop\n"
	     "# entries-in-buffer/entries-written: 5/18839   #P:4\n"
	     "Dumping ftrace buffer:\n---------------------------------\n",
	     "empty 2\ncpus 10\nloss -1 18834 0 header\n");
	CU_ASSERT_EQUAL(seen.result.counts.loss_markers, 0);
	same("# nop latency trace v1.1.5 on 6.1.0\n# latency: 0 us, #127660/1191365, CPU#0 | "
	     "(M:desktop VP:0, KP:0, SP:0 HP:0 #P:2)\n#    | task: -0 (uid:0 nice:0)\n",
	     "loss -1 1063705 0 header\n");
	same("CPU:3 [LOST EVENTS]\nCPU:0 [LOST 77 EVENTS]\nCPU:12 [51207 EVENTS DROPPED]\n"
	     "CPU:1 [EVENTS DROPPED]\nWarning:\nProcessed 48213 events and lost 3 chunks!\n\n"
	     "Check IO/CPU overload!\n",
	     "loss 3 -1 0\nloss 0 77 0\nloss 12 51207 0\nloss 1 -1 0\nloss -1 -1 3\n");
	CU_ASSERT_EQUAL(seen.result.counts.loss_markers, 5);
	same("# tracer: nop\n...\n[...]\n<snip>\n--\n", "elision\nelision\nelision\nelision\n");
	CU_ASSERT_EQUAL(seen.result.counts.elisions, 4);
	/* a mail's signature is none */
	text_see(&seen, signature, sizeof(signature) - 1);
	CU_ASSERT_STRING_EQUAL(seen.out, "elision\nelision\n");
	CU_ASSERT_EQUAL(seen.result.counts.elisions, 2);
	CU_ASSERT_EQUAL(seen.result.counts.unknown_lines, 2);
	same("vmm-8 [000] d..1. 1.000001: kvm_fpu: load\nvmm-8 [000] d..1. 1.000002: <stack "
	     "trace>\n"
	     " => kvm_load_guest_fpu\n => vcpu_enter_guest\n"
	     "vmm-8 [000] 1.000003: kernel_stack: <stack trace >\n"
	     "=> kvm_put_guest_fpu (ffffffffc0a1)\n",
	     "vmm|8|-|0|1000001000.6|5|kvm_fpu|-|\n");
	CU_ASSERT_EQUAL(seen.result.counts.stack_traces, 2);
	CU_ASSERT_EQUAL(seen.result.counts.stack_lines, 3);
}

static CU_TestInfo tests[] = {
	{"the columns of every tool", test_columns},
	{"interrupts by the latency flags", test_contexts},
	{"exits and entries of all kernels", test_exits},
	{"faults, MMIO, port I/O", test_faults},
	{"page tables, rings, windows", test_tables},
	{"locks, the scheduler, raw records, what is not known", test_others},
	{"headers, losses, elisions, stacks", test_headers},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("host_text", tests)
