// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/counts.h"
#include "model/host/sched_priv.h"

/* Where a thread goes that wakes up or starts: select_task_rq_fair(). */

static bool idle(const struct sched *s, uint32_t cpu)
{
	return s->idle[cpu / 64] >> cpu % 64 & 1;
}

/* The first idle CPU from @from to @end - 1, or @end. */
static uint32_t idle_from(const struct sched *s, uint32_t from, uint32_t end)
{
	while (from < end) {
		uint64_t word = s->idle[from / 64] >> from % 64;

		if (word) {
			from += (uint32_t)__builtin_ctzll(word);
			return from < end ? from : end;
		}
		from = (from / 64 + 1) * 64;
	}
	return end;
}

static uint64_t cpu_load(const struct sched *s, uint32_t cpu)
{
	return s->rq[cpu].cfs.load;
}

uint32_t select_new(struct sched *s, const struct sched_thread *th)
{
	uint32_t per = s->opts.cpus_per_llc, group = 0, best;
	uint64_t most_idle = 0, least_load = UINT64_MAX;

	if (th->opts.pin >= 0)
		return (uint32_t)th->opts.pin;
	for (uint32_t g = 0; g < s->n_llc; g++) {
		uint64_t load = 0, n_idle = 0;

		for (uint32_t i = g * per; i < (g + 1) * per; i++) {
			load += cpu_load(s, i);
			n_idle += idle(s, i);
		}
		if (n_idle > most_idle || (n_idle == most_idle && load < least_load)) {
			most_idle = n_idle;
			least_load = load;
			group = g;
		}
	}
	best = group * per;
	for (uint32_t i = best; i < (group + 1) * per; i++)
		if (idle(s, i) > idle(s, best) ||
		    (idle(s, i) == idle(s, best) && cpu_load(s, i) < cpu_load(s, best)))
			best = i;
	return best;
}

/* record_wakee() and wake_wide(): a waker of many is not drawn to by all of them. */
static bool wake_wide(struct sched_thread *waker, const struct sched_thread *th, cycles_t now)
{
	uint64_t master = waker->wakee_flips, slave = th->wakee_flips;
	uint32_t factor = th->s->opts.cpus_per_llc;

	if (now > waker->flips_decayed + sched_cycles(th->s, 1000000000u)) {
		waker->wakee_flips /= 2;
		waker->flips_decayed = now;
	}
	if (waker->last_wakee != th) {
		waker->last_wakee = th;
		waker->wakee_flips++;
	}
	if (master < slave) {
		uint64_t swap = master;

		master = slave;
		slave = swap;
	}
	return slave >= factor && master >= slave * factor;
}

/* wake_affine(): the waker's CPU or the one that it ran on before, which it is when that is idle.
 */
static uint32_t affine(const struct sched *s, const struct sched_thread *th, uint32_t here)
{
	uint32_t prev = th->cpu;
	uint64_t load = thread_load(th), from = cpu_load(s, prev);

	from = from > load ? from - load : 0;
	return (cpu_load(s, here) + load) * 100 < from * (100 + 17 / 2) ? here : prev;
}

/* select_idle_sibling(): an idle one that shares the target's cache. The CPU before, if it is idle,
 * is the target. */
static uint32_t idle_sibling(const struct sched *s, uint32_t target)
{
	uint32_t per = s->opts.cpus_per_llc, first = llc_of(s, target) * per, cpu;

	if (!s->n_idle || idle(s, target))
		return target;
	cpu = idle_from(s, target + 1, first + per);
	if (cpu < first + per)
		return cpu;
	cpu = idle_from(s, first, target);
	return cpu;
}

static uint32_t select_cpu(struct sched *s, struct sched_thread *waker,
			   const struct sched_thread *th, cycles_t now)
{
	uint32_t target = th->cpu;

	if (th->opts.pin >= 0)
		return (uint32_t)th->opts.pin;
	if (waker && waker->state == SCHED_RUNNING && !wake_wide(waker, th, now) &&
	    waker->cpu != th->cpu)
		target = affine(s, th, waker->cpu);
	return idle_sibling(s, target);
}

void wake_thread(struct task *by, struct sched_thread *waker, struct sched_thread *th,
		 cycles_t when)
{
	struct sched *s = th->s;
	cycles_t now = task_now(by);
	uint32_t cpu = select_cpu(s, waker, th, now);
	struct rq *rq = &s->rq[cpu];

	th->stats.wakeups++;
	if (cpu != th->cpu)
		th->stats.migrations++;
	enqueue_thread(rq, th, ENQUEUE_WAKEUP, now);
	if (rq_idle(rq)) {
		start_idle(rq, by, when);
		return;
	}
	if (wakeup_preempts(rq, th, now)) {
		rq->curr->stats.wakeup_preempted++;
		resched_curr(rq, by);
	}
	update_tick(rq, by);
}

bool sched_wake(struct task *by, struct sched_thread *waker, struct sched_thread *th)
{
	charge_sched(by, COUNT_wake_up);
	if (sync(by))
		return false;
	if (th->state != SCHED_SLEEPING) {
		th->woken = true;
		return false;
	}
	wake_thread(by, waker, th, task_now(by) + th->s->ipi);
	/* Ends its sleep, in the ledger too. */
	task_wake(th->task, task_now(by));
	return true;
}
