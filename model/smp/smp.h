/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SMP_SMP_H
#define KVMSIM_SMP_SMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/host/sched.h"
#include "model/policy/policy.h"
#include "model/sim/rng.h"

/*
 * Virtual machines as their scheduling and locking sees them: vCPUs that are threads of the host
 * (model/host/sched.h), exits, halts, kicks, interrupts between vCPUs, steal time, pause-loop
 * exits. They have no memory: whoever asks what a page costs takes model/guest.
 *
 * Guest code runs as guest threads (thread.h), each of them a task, which call the functions here
 * with the vCPU that they are on, as kernel code does with preemption off. Functions marked
 * [running] return 0 or KVMSIM_ECANCELED unless they say more.
 *
 * Time in the guest passes in smp_work() and spin_wait() (spin.h). In both the vCPU may meanwhile
 * exit (an interrupt of the host's, a pause loop), lose its CPU, get it again, take interrupts.
 */
struct smp_vm;
struct smp_vcpu;
struct guest_thread;

/* What differs from kernel to kernel; presets name them (model/policy/preset.h). */
struct smp_opts {
	const char *name;
	uint32_t vcpus;			/* 1 to 512 */
	uint64_t shares;		/* of its group; 0: 1024 */
	const uint32_t *pin;		/* [vcpus] the host's CPU of each; NULL: any */
	const struct lock_policy *lock; /* NULL: it takes no spinlocks */
	struct policy_params lock_params;
	const struct ple_policy *ple; /* NULL: no pause-loop exits */
	struct policy_params ple_params;
	uint64_t halt_poll_ns; /* at most; 0: no polling. Grows and shrinks as the kernel's does */
	uint32_t guest_hz;     /* the guest's tick; 0: none. Idle vCPUs have none */
	bool apicv;	       /* IPIs to a running vCPU take no exit, of neither side */
	bool pv_ipi;	       /* those to many vCPUs are one hypercall (4.19 on) */
	bool kick_yields;      /* KVM_HC_KICK_CPU yields to its target (5.4 on) */
	bool steal_time;       /* the guest knows which vCPUs are preempted (4.11 on):
				* smp_vcpu_is_preempted() is false otherwise */
};

/* Errors: KVMSIM_EINVAL with a message, KVMSIM_ENOMEM. The VM starts with its guest threads. */
int smp_vm_create(struct sim *sim, struct sched *host, const struct smp_opts *opts,
		  struct smp_vm **out);
/* After the sim. NULL is fine. */
void smp_vm_destroy(struct smp_vm *vm);
/* Makes the vCPUs' threads; guest threads may be made before and after. Before sim_run(). */
int smp_vm_start(struct smp_vm *vm);
struct sim *smp_sim(const struct smp_vm *vm);
const struct smp_opts *smp_vm_opts(const struct smp_vm *vm);
struct smp_vcpu *smp_vcpu(const struct smp_vm *vm, uint32_t i);
struct smp_vm *smp_vm_of(const struct smp_vcpu *v);
uint32_t smp_vcpu_id(const struct smp_vcpu *v);
struct sched_thread *smp_thread(const struct smp_vcpu *v);
/* The running task: who runs on the vCPU now. */
struct task *smp_task(const struct smp_vcpu *v);
/* Of the policies: a place per VM and per vCPU. */
void **smp_vm_lock_private(struct smp_vm *vm);
void **smp_vcpu_lock_private(struct smp_vcpu *v);
void **smp_vcpu_ple_private(struct smp_vcpu *v);

/* ---- [running] what guest code does ---- */

/* @n instructions (COUNT_insn) that touch nothing shared. */
int smp_work(struct smp_vcpu *v, uint64_t n);
/* local_irq_save() and restore: while off, interrupts stay pending. Nest by @was. */
bool smp_irq_save(struct smp_vcpu *v);
int smp_irq_restore(struct smp_vcpu *v, bool was);
bool smp_irqs_on(const struct smp_vcpu *v);
/* HLT: exits, polls, sleeps until an interrupt or a kick; with irqs off until a kick. One that came
 * since the last halt ended ends it at once. */
int smp_halt(struct smp_vcpu *v);
/* STI; HLT: with irqs on from there, but nothing is taken before the HLT has exited. */
int smp_safe_halt(struct smp_vcpu *v);
/* KVM_HC_KICK_CPU: the target's pv_unhalted is set, it is woken if it halts. */
int smp_kick_cpu(struct smp_vcpu *v, struct smp_vcpu *target);
/* A hypercall that yields to @target: what patch 18 of the ticketlock series did in the host when a
 * vCPU halts, and s390's diag 9c. 0 or 1 as sched_yield_to(). */
int smp_yield_to(struct smp_vcpu *v, struct smp_vcpu *target);
/* Interrupts of other vCPUs: reschedule, without waiting; a function call on all @n of @targets
 * (itself left out), each of which runs @insns instructions in its handler; with @wait spins until
 * all are done. */
int smp_send_reschedule(struct smp_vcpu *v, struct smp_vcpu *target);
int smp_call_function_many(struct smp_vcpu *v, struct smp_vcpu *const *targets, size_t n,
			   uint64_t insns, bool wait);
/* vcpu_is_preempted(): as the steal time's page says, which the host wrote when it went. */
bool smp_vcpu_is_preempted(const struct smp_vcpu *v);

/* ---- for spin.c and the ple policies ---- */

/* [running] The vCPU has to look: gives way, takes interrupts, re-enters. Called after sched_work()
 * or sched_spin() ended early. */
int smp_service(struct smp_vcpu *v);
/* [running] Exit for a pause loop: charges it, kvm_vcpu_on_spin(), enters. on_spin.c. */
int smp_pause_exit(struct smp_vcpu *v);
/* [running, synced] kvm_vcpu_on_spin(): yields to one of the other vCPUs, if the policy of
 * pause-loop exits finds one. 1: it did, and has a CPU again, or, with @sleeps, is to sleep at
 * once; 0; KVMSIM_ECANCELED. */
int smp_on_spin(struct smp_vcpu *v, bool sleeps);
/* Of a vCPU, while it is in smp_on_spin(): kvm_vcpu.spin_loop. */
struct smp_spin_loop {
	bool in_spin_loop, dy_eligible;
};
struct smp_spin_loop *smp_spin_loop(struct smp_vcpu *v);
/* [synced] @target has not yet answered a call of @v's that @v waits for. */
bool smp_owes_answer(const struct smp_vcpu *v, const struct smp_vcpu *target);
/* [running] An exit up to its handler, which it counts; and the entry after it: gives way where it
 * has to, injects, and has the guest take its interrupts. */
void smp_vmexit(struct smp_vcpu *v);
int smp_vmenter(struct smp_vcpu *v);
/* [synced] vcpu->preempted: it lost its CPU while it was runnable; kvm_vcpu_is_blocking(); has an
 * interrupt or a kick pending. As the host sees them. */
bool smp_vcpu_was_preempted(const struct smp_vcpu *v);
bool smp_vcpu_blocking(const struct smp_vcpu *v);
bool smp_vcpu_has_events(const struct smp_vcpu *v);

/* What kvm_stat and the guest's /proc/stat would say. */
struct smp_vcpu_stats {
	uint64_t exits, halt_exits, pause_exits, hypercalls, irq_exits, preemptions;
	uint64_t halt_poll_success, halt_poll_fail, halt_wakeups; /* asleep and woken */
	uint64_t yield_attempted, yield_successful;		  /* directed_yield_* */
	uint64_t kicks, irqs, ticks;
	/* As of its last entry what it ran late; asleep, and polling, in halts; in spin_wait(). */
	cycles_t steal, halted, polled, spun;
};
/* [running, synced] Of spin.c: counts time spent busy waiting; of on_spin.c: pause-loop exits and
 * what came of their yields. */
struct smp_vcpu_stats *smp_vcpu_count(struct smp_vcpu *v);
/* [synced] */
struct smp_vcpu_stats smp_vcpu_stats(const struct smp_vcpu *v);

#endif
