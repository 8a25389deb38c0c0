/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SMP_THREAD_H
#define KVMSIM_SMP_THREAD_H

#include "model/smp/spin.h"

/*
 * The guest's scheduler: threads on vCPUs, a run queue per vCPU, the same fairness in small (equal
 * weights, a slice from the guest's tick, wake-ups to an idle vCPU or the last one, pulling by who
 * becomes idle), an idle loop that halts; and the locks that put threads to sleep.
 *
 * A guest thread is a task. While it is on a vCPU that has a CPU it runs; the time in which it is
 * runnable and has no vCPU is WAIT_vcpu, in which its vCPU has no CPU WAIT_cpu.
 */
typedef int (*guest_fn)(struct guest_thread *g, void *arg);

/* @vcpu: where it stays; UINT32_MAX: anywhere. Starts with the VM. KVMSIM_ENOMEM. */
int guest_thread_create(struct smp_vm *vm, const char *name, guest_fn fn, void *arg, uint32_t vcpu,
			struct guest_thread **out);
struct smp_vm *guest_vm(const struct guest_thread *g);
/* [running] The vCPU that it is on: until it next works, sleeps or yields with preemption on. */
struct smp_vcpu *guest_vcpu(const struct guest_thread *g);
/* Its own streams of random numbers are the caller's (sim/rng.h). */

/* [running] 0 or KVMSIM_ECANCELED. Work as smp_work(), preempted by the guest's scheduler too. */
int guest_work(struct guest_thread *g, uint64_t n);
int guest_yield(struct guest_thread *g);
/* Until guest_wake(); a wake-up since the last sleep ends it at once. */
int guest_sleep(struct guest_thread *g);
/* 1 woken, 0 the time came. */
int guest_sleep_until(struct guest_thread *g, cycles_t until);
/* By guest thread or interrupt handler on vCPU @v: wakes @g, by a reschedule IPI where it must. */
int guest_wake(struct smp_vcpu *v, struct guest_thread *g);
/* Spinlocks take these themselves. Nest. */
void guest_preempt_disable(struct smp_vcpu *v);
int guest_preempt_enable(struct smp_vcpu *v);

/* mutex: fast path, optimistic spinning while the owner runs (vcpu_is_preempted() ends it where the
 * guest knows), an MCS queue of spinners, sleepers in order, hand-off. */
struct guest_mutex;
int guest_mutex_create(struct smp_vm *vm, const char *name, bool spin, struct guest_mutex **out);
void guest_mutex_destroy(struct guest_mutex *m);
int guest_mutex_lock(struct guest_thread *g, struct guest_mutex *m);
int guest_mutex_unlock(struct guest_thread *g, struct guest_mutex *m);
struct smp_lock_stats guest_mutex_stats(const struct guest_mutex *m);

/* A wait queue: pipes, barriers, work. */
struct guest_waitq;
int guest_waitq_create(struct smp_vm *vm, const char *name, struct guest_waitq **out);
void guest_waitq_destroy(struct guest_waitq *w);
int guest_wait(struct guest_thread *g, struct guest_waitq *w);		      /* until woken */
int guest_wake_up(struct guest_thread *g, struct guest_waitq *w, unsigned n); /* the first n */

struct guest_thread_stats {
	cycles_t run, runnable, asleep;
	uint64_t switches, migrations;
};
struct guest_thread_stats guest_thread_stats(const struct guest_thread *g);

#endif
