// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/grammar.h"

/*
 * Exits, entries, faults and what else the kvm system prints. The texts are those of the kernel's
 * arch/x86/kvm/trace.h, arch/arm64/kvm/trace_arm.h and include/trace/events/kvm.h from 2.6.32 to
 * 6.1x, and of libtraceevent's plugin_kvm.
 */
#define INFOS                                                                                      \
	L("info1 "), XW(info1, 16), L("info2 "), XW(info2, 16), L("intr_info "), XW(intr_info, 8), \
		L("error_code "), XW(error_code, 8), OPT(2), L("requests "), XW(requests, 16)
#define PLAIN_INFO OPT(6), L("info "), X(info1), X(info2), OPT(2), L("intr "), X(intr_info)
#define NESTED_OLD                                                                                 \
	L("ext_inf1: "), XW(info1, 16), L("ext_inf2: "), XW(info2, 16), L("ext_int: "),            \
		XW(intr_info, 8), L("ext_int_err: "), XW(error_code, 8)
#define NESTED_PLUGIN                                                                              \
	L("info1 "), X(info1), L("info2 "), X(info2), L("int_info "), X(intr_info),                \
		L("int_info_err "), X(error_code)
#define NESTED_ENTRY                                                                               \
	L("rip: "), XW(rip, 16), ONE_("vmcs:,vmcb:"), XW_(16), ONE_("nested_rip:,nrip:"), XW_(16), \
		L("int_ctl: "), XW_(8), L("event_inj: "), XW_(8)

const struct grammar host_grammars_exits[] = {
	{"kvm_entry",
	 {LAYOUT(L("vcpu "), D(vcpu), COMMA, OPT(2), L("rip "), X(rip), OPT(4), L("intr_info "),
		 XW(intr_info, 8), L("error_code "), XW(error_code, 8), OPT(1),
		 L("[immediate exit]")),
	  LAYOUT(L("PC: "), X(rip))}},
	{"kvm_exit",
	 {LAYOUT(L("vcpu "), D(vcpu), L("reason "), REASON, L("rip "), X(rip), INFOS),
	  LAYOUT(L("reason "), REASON, L("rip "), X(rip), PLAIN_INFO),
	  LAYOUT(L("vcpu "), D(vcpu), L("reason "), REASON, L("rip "), X(rip), L("info "), X(info1),
		 X(info2), OPT(2), L("intr "), X(intr_info)),
	  LAYOUT(L("TRAP: "), ONE_("HSR_EC:,ESR_EC:"), X_, L("("), REASON, L(")"), COMMA, L("PC: "),
		 X(rip)),
	  LAYOUT(REASON, ONE_("HSR_EC:,ESR_EC:"), X_, L("("), WORD, L(")"), COMMA, L("PC: "),
		 X(rip))}},
	{"kvm_nested_vmexit",
	 {LAYOUT(L("vcpu "), D(vcpu), L("reason "), REASON, L("rip "), X(rip), INFOS),
	  LAYOUT(L("rip "), X(rip), L("reason "), REASON, NESTED_PLUGIN),
	  LAYOUT(L("rip: "), XW(rip, 16), L("reason: "), REASON, NESTED_OLD),
	  LAYOUT(L("rip "), X(rip), L("reason "), REASON, L("ext_inf1: "), XW(info1, 16),
		 L("ext_inf2: "), XW(info2, 16), L("ext_int: "), XW(intr_info, 8),
		 L("ext_int_err: "), XW(error_code, 8))}},
	{"kvm_nested_vmexit_inject",
	 {LAYOUT(L("reason: "), REASON, NESTED_OLD), LAYOUT(L("reason "), REASON, NESTED_PLUGIN)}},
	{"kvm_userspace_exit",
	 {LAYOUT(L("reason "), {STEP_ERRNO_WORD, STEP_NO_FIELD, 0, NULL}, L("("), D(reason),
		 L(")"))}},
	{"kvm_page_fault",
	 {LAYOUT(L("vcpu "), D(vcpu), L("rip "), X(rip), L("address "), XW(address, 16),
		 L("error_code "), X(error_code)),
	  LAYOUT(L("address "), X(address), L("error_code "), X(error_code))}},
	{"kvm_mmio",
	 {LAYOUT(L("mmio "), ONE(type, 3, "unsatisfied-read,read,write"), L("len "), D(len),
		 L("gpa "), X(gpa), L("val "), X(val))}},
	{"vcpu_match_mmio",
	 {LAYOUT(L("gva "), X(gva), L("gpa "), X(gpa), ONE(write, 2, "Read,Write"),
		 ONE_("GPA,GVA"))}},
	{"kvm_fast_mmio", {LAYOUT(L("fast mmio at gpa "), X(gpa))}},
	{"kvm_pio",
	 {LAYOUT(L("pio_"), ONE(type, 2, "read,write"), L("at "), X(port), L("size "), D(len),
		 L("count "), D(count), OPT(4), L("val "), X(val), OPT(1), L("(...)"))}},
	{"kvm_msr",
	 {LAYOUT(L("msr_"), ONE(write, 2, "read,write"), X(nr), L("= "), X(val), OPT(1),
		 L("(#GP)"))}},
	{"kvm_hypercall",
	 {LAYOUT(L("nr "), X(nr), L("a0 "), X_, L("a1 "), X_, L("a2 "), X_, L("a3 "), X_)}},
	{"kvm_emulate_insn",
	 {LAYOUT(X_, L(":"), X(rip), L(":"), {STEP_BYTES, STEP_NO_FIELD, 0, NULL}, L("("), WORD,
		 L(")"), OPT(1), L("failed")),
	  LAYOUT(X_, L(":"), X(rip), L(":"), {STEP_BYTES1, STEP_NO_FIELD, 0, NULL}, OPT(1),
		 L("FAIL"))}},
	{"kvm_fpu", {LAYOUT(ONE_("load,unload"))}},
	{"kvm_cr", {LAYOUT(L("cr_"), ONE_("read,write"), X_, L("= "), X_)}},
	{"kvm_apic", {LAYOUT(L("apic_"), ONE_("read,write"), WORD, L("= "), X_)}},
	{"kvm_cpuid",
	 {LAYOUT(L("func "), X_, OPT(2), L("idx "), X_, L("rax "), X_, L("rbx "), X_, L("rcx "), X_,
		 L("rdx "), X_, COMMA, OPT(4), L("cpuid entry "), ONE_("found,not found"), OPT(1),
		 L(", used max basic"))}},
	{"kvm_inj_virq",
	 {LAYOUT(ONE_("IRQ,Soft/INTn"), X(nr), OPT(1), L("[reinjected]")),
	  LAYOUT(L("irq "), D(nr))}},
	{"kvm_inj_exception",
	 {LAYOUT(L("#"), WORD, OPT(3), L("("), X(error_code), L(")"), OPT(1), L("[reinjected]")),
	  LAYOUT(X(nr), OPT(3), L("("), X(error_code), L(")"), OPT(1), L("[reinjected]"))}},
	{"kvm_nested_vmrun", {LAYOUT(NESTED_ENTRY, L("npt: "), WORD)}},
	{"kvm_nested_vmenter",
	 {LAYOUT(NESTED_ENTRY, ONE_("nested_ept=y,nested_ept=n,nested_npt=y,nested_npt=n"),
		 ONE_("guest_cr3:,nested_eptp:,nested_cr3:"), XW_(16))}},
	{"kvm_invlpga",
	 {LAYOUT(L("rip: "), XW(rip, 16), L("asid: "), D_, L("address: "), XW(address, 16))}},
	{"kvm_ple_window",
	 {LAYOUT(L("vcpu "), D(vcpu), L(": "), L("ple_window "), D(new), L("("),
		 ONE(grow, 2, "shrink,grow,shrinked,growed,shrunk"), D(old), L(")"))}},
	{"kvm_ple_window_update",
	 {LAYOUT(L("vcpu "), D(vcpu), L("old "), D(old), L("new "), D(new), L("("),
		 ONE(grow, 2, "shrinked,growed,shrink,grow,shrunk"), L(")"))}},
	{"kvm_halt_poll_ns",
	 {LAYOUT(L("vcpu "), D(vcpu), L(": "), L("halt_poll_ns "), D(new), L("("),
		 ONE(grow, 2, "shrink,grow"), D(old), L(")"))}},
	{"kvm_vcpu_wakeup",
	 {LAYOUT(ONE(waited, 2, "poll,wait"), L("time "), D(ns), L("ns"), OPT(2), L(", polling "),
		 WORD)}},
	{"kvm_pml_full", {LAYOUT(L("vcpu "), D(vcpu), L(": "), L("PML full"))}},
	{"kvm_pv_tlb_flush", {LAYOUT(L("vcpu "), D(vcpu), L("need_flush_tlb "), WORD)}},
	{"kvm_dirty_ring_push",
	 {LAYOUT(L("ring "), D(ring), L(": "), L("dirty "), X(dirty), L("reset "), X(reset),
		 L("slot "), D(slot), L("offset "), X(offset), OPT(2), L("ret "), D(ret),
		 L("(used "), D(used), L(")"))}},
	{"kvm_dirty_ring_reset",
	 {LAYOUT(L("ring "), D(ring), L(": "), L("dirty "), X(dirty), L("reset "), X(reset),
		 L("(used "), D(used), L(")"))}},
	{"kvm_dirty_ring_exit", {LAYOUT(L("vcpu "), D(vcpu))}},
};
const size_t host_n_grammars_exits = sizeof(host_grammars_exits) / sizeof(*host_grammars_exits);
