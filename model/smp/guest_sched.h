/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SMP_GUEST_SCHED_H
#define KVMSIM_SMP_GUEST_SCHED_H

#include "model/smp/smp_priv.h"

/* Between guest_sched.c, who runs next on a vCPU, and thread.c, what threads do. All [synced]. */

/* The current thread is charged for its time up to now. */
void guest_update_curr(struct smp_vcpu *v, cycles_t now);
/* @g, on no queue, goes to @v's; @woken: it has slept. */
void guest_enqueue(struct smp_vcpu *v, struct guest_thread *g, bool woken, cycles_t now);
void guest_dequeue(struct guest_thread *g);
/* Where a woken thread goes, before it is enqueued. */
struct smp_vcpu *guest_select(struct guest_thread *g);
/* Whether @g, queued at @v, should run in the place of who does. */
bool guest_preempts(struct smp_vcpu *v, const struct guest_thread *g);
/* The vCPU has, or has not, something to do from now on. */
void guest_set_idle(struct smp_vcpu *v, bool idle);
void guest_set_state(struct guest_thread *g, enum guest_state state, cycles_t now);

/* [running, synced] The thread, whose state was set, leaves @v for the first in its queue or the
 * idle one: no time passes. guest_off() then returns when it has a vCPU again. */
void guest_switch(struct smp_vcpu *v, cycles_t now);
int guest_off(struct guest_thread *g);

/* [running] thread.c. Sleeps until *@done, or the time @until came: g->timed_out then. Who sets
 * *@done calls guest_wake_for() afterwards. */
int guest_sleep_for(struct guest_thread *g, const bool *done, cycles_t until);
int guest_wake_for(struct smp_vcpu *v, struct guest_thread *g, const bool *done);
/* [running] The timer's interrupt: the thread's time came. */
int guest_time_out(struct smp_vcpu *v, struct guest_thread *g);

#endif
