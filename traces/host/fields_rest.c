// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/grammar.h"

/*
 * The scheduler's and the locks' events, and those of the kvm system of which nothing but the vCPU
 * is taken: their texts are here for wraps and cuts to be told. Of include/trace/events/sched.h and
 * lock.h, arch/x86/kvm/trace.h, include/trace/events/kvm.h and libtraceevent's plugin_sched_switch.
 */
#define SCHED(name)                                                                                \
	{                                                                                          \
		name,                                                                              \
		{                                                                                  \
			LAYOUT(L("comm="), UPTO("pid="), D(pid), L("prio="), D_, OPT(2),           \
			       L("success="), D_, L("target_cpu="), D(target_cpu)),                \
				LAYOUT({STEP_COMM_PID, HOST_F_pid, 0, NULL}, L("["), D_, L("]"),   \
				       OPT(2), L("success="), D_, L("CPU:"), D(target_cpu))        \
		}                                                                                  \
	}

const struct grammar host_grammars_rest[] = {
	{"contention_begin",
	 {LAYOUT(X(lock_addr), L("(flags="), {STEP_LOCKFLAGS, HOST_F_flags, 0, NULL}, L(")"))}},
	{"contention_end", {LAYOUT(X(lock_addr), L("(ret="), D(ret), L(")"))}},
	{"sched_switch",
	 {LAYOUT(L("prev_comm="), UPTO("prev_pid="), D(prev_pid), L("prev_prio="), D_,
		 L("prev_state="), FIRST(prev_state), L("==> "), L("next_comm="), UPTO("next_pid="),
		 D(next_pid), L("next_prio="), D_),
	  LAYOUT({STEP_COMM_PID, HOST_F_prev_pid, 0, NULL}, L("["), D_, L("]"), FIRST(prev_state),
		 L("==> "), {STEP_COMM_PID, HOST_F_next_pid, 0, NULL}, L("["), D_, L("]"))}},
	SCHED("sched_wakeup"),
	SCHED("sched_waking"),
	SCHED("sched_wakeup_new"),
	{"kvm_ack_irq", {LAYOUT(L("irqchip "), WORD, L("pin "), D_)}},
	{"kvm_apic_accept_irq",
	 {LAYOUT(L("apicid "), X_, L("vec "), D_, L("("), WORD, L(")"), OPT(1), L("(coalesced)"))}},
	{"kvm_apicv_accept_irq", {LAYOUT(L("apicid "), X_, L("vec "), D_, L("("), WORD, L(")"))}},
	{"kvm_apic_ipi", {LAYOUT(L("dst "), X_, L("vec "), D_, L("("), WORD, L(")"))}},
	{"kvm_apicv_inhibit_changed",
	 {LAYOUT(ONE_("set,cleared"), L("reason="), D_, L(", "), L("inhibits="), X_)}},
	{"kvm_avic_ga_log", {LAYOUT(L("vmid="), D_, L(", "), L("vcpuid="), D_)}},
	{"kvm_avic_doorbell", {LAYOUT(L("vcpuid="), D_, L(", "), L("apicid="), D_)}},
	{"kvm_eoi", {LAYOUT(L("apicid "), X_, L("vector "), D_)}},
	{"kvm_pv_eoi", {LAYOUT(L("apicid "), X_, L("vector "), D_)}},
	{"kvm_hv_hypercall_done", {LAYOUT(L("result "), X_)}},
	{"kvm_hv_timer_state", {LAYOUT(L("vcpu_id "), X(vcpu), L("hv_timer "), X_)}},
	{"kvm_hv_stimer_cleanup", {LAYOUT(L("vcpu_id "), D(vcpu), L("timer "), D_)}},
	{"kvm_hv_stimer_callback", {LAYOUT(L("vcpu_id "), D(vcpu), L("timer "), D_)}},
	{"kvm_hv_stimer_expiration",
	 {LAYOUT(L("vcpu_id "), D(vcpu), L("timer "), D_, L("direct "), D_, L("send result "),
		 D_)}},
	{"kvm_hv_stimer_start_one_shot",
	 {LAYOUT(L("vcpu_id "), D(vcpu), L("timer "), D_, L("time_now "), D_, L("count "), D_)}},
	{"kvm_hv_stimer_start_periodic",
	 {LAYOUT(L("vcpu_id "), D(vcpu), L("timer "), D_, L("time_now "), D_, L("exp_time "), D_)}},
	{"kvm_hv_stimer_set_config",
	 {LAYOUT(L("vcpu_id "), D(vcpu), L("timer "), D_, L("config "), X_, L("host "), D_)}},
	{"kvm_hv_stimer_set_count",
	 {LAYOUT(L("vcpu_id "), D(vcpu), L("timer "), D_, L("count "), D_, L("host "), D_)}},
	{"kvm_hv_synic_set_irq",
	 {LAYOUT(L("vcpu_id "), D(vcpu), L("sint "), D_, L("vector "), D_, L("ret "), D_)}},
	{"kvm_hv_synic_send_eoi", {LAYOUT(L("vcpu_id "), D(vcpu), L("vector "), D_)}},
	{"kvm_hv_synic_set_msr",
	 {LAYOUT(L("vcpu_id "), D(vcpu), L("msr "), X_, L("data "), X_, L("host "), D_)}},
	{"kvm_hv_notify_acked_sint", {LAYOUT(L("vcpu_id "), D(vcpu), L("sint "), D_)}},
	{"kvm_ioapic_set_irq",
	 {LAYOUT(L("pin "), D_, L("dst "), X_, L("vec "), D_, L("("), WORD, L(")"), OPT(1),
		 L("(coalesced)")),
	  LAYOUT(L("pin "), D_, L("dst "), X_, L("vec="), REST)}},
	{"kvm_msi_set_irq",
	 {LAYOUT(L("dst "), X_, L("vec "), D_, L("("), WORD, L(")")),
	  LAYOUT(L("dst "), X_, L("vec "), X_, L("("), WORD, L(")"))}},
	{"kvm_pic_set_irq",
	 {LAYOUT(L("chip "), D_, L("pin "), D_, L("("), WORD, L(")"), OPT(1), L("(coalesced)"))}},
	{"kvm_set_irq", {LAYOUT(L("gsi "), D_, L("level "), D_, L("source "), D_)}},
	{"kvm_nested_intr_vmexit", {LAYOUT(L("rip: "), XW_(16))}},
	{"kvm_skinit", {LAYOUT(L("rip: "), XW_(16), L("slb: "), XW_(8))}},
	{"kvm_smm_transition",
	 {LAYOUT(L("vcpu "), D(vcpu), L(": "), ONE_("entering,leaving"), L("SMM, "), L("smbase "),
		 X_)}},
	{"kvm_track_tsc",
	 {LAYOUT(L("vcpu_id "), D(vcpu), L("masterclock "), D_, L("offsetmatched "), D_,
		 L("nr_online "), D_, L("hostclock "), WORD)}},
	{"kvm_update_master_clock",
	 {LAYOUT(L("masterclock "), D_, L("hostclock "), WORD, L("offsetmatched "), D_)}},
	{"kvm_wait_lapic_expire",
	 {LAYOUT(L("vcpu "), D(vcpu), L(": "), L("delta "), D_, L("("), WORD, L(")"))}},
	{"kvm_write_tsc_offset", {LAYOUT(L("vcpu="), D(vcpu), L("prev="), D_, L("next="), D_)}},
	{"kvm_async_pf_ready", {LAYOUT(L("token "), X_, L("gva "), X_)}},
	{"kvm_async_pf_not_present", {LAYOUT(L("token "), X_, L("gva "), X_)}},
	{"kvm_async_pf_completed", {LAYOUT(L("gva "), X_, L("address "), X_)}},
	{"kvm_try_async_get_page", {LAYOUT(L("gva = "), X_, L(", "), L("gfn = "), X_)}},
	{"kvm_age_page",
	 {LAYOUT(L("hva "), X_, L("gfn "), X_, L("level "), D_, ONE_("YOUNG,OLD")),
	  LAYOUT(L("hva "), X_, L("gfn "), X_, ONE_("YOUNG,OLD"))}},
};
const size_t host_n_grammars_rest = sizeof(host_grammars_rest) / sizeof(*host_grammars_rest);
