// SPDX-License-Identifier: GPL-3.0-or-later
/* QEMU's dirty limit: a vCPU whose ring is full sleeps, the longer the further it is above its
 * limit. A thread looks at the rates once a second. */
#include "model/counts.h"
#include "model/guest/ring.h"
#include "model/guest/vcpu.h"
#include "workloads/precopy_scene.h"

#define CALC_TIME_US   1000000	   /* DIRTYLIMIT_CALC_TIME_MS */
#define TOLERANCE      (25u << 20) /* bytes per second: DIRTYLIMIT_TOLERANCE_RANGE */
#define LINEAR_PERCENT 50	   /* DIRTYLIMIT_LINEAR_ADJUSTMENT_PCT */
#define MOST_PERCENT   99	   /* DIRTYLIMIT_THROTTLE_PCT_MAX */

static int on_ring_full(struct kvm_vcpu *vcpu, void *ctx)
{
	struct precopy *m = ctx;
	struct precopy_vcpu *v = &m->vcpus[vcpu_id(vcpu)];
	cycles_t slept = v->throttled;
	long r = kvm_reap_dirty_ring(v->task, vcpu);

	if (r < 0)
		return (int)r;
	r = sync(v->task);
	r = r ? r : precopy_sleep(v, v->sleep);
	v->slept_in_run += v->throttled - slept;
	return (int)r;
}

/* How long the ring takes to fill, at the highest rate seen. */
static cycles_t full_time(struct precopy *m, const struct precopy_vcpu *v, uint64_t rate)
{
	if (m->highest_rate < rate)
		m->highest_rate = rate;
	return (cycles_t)((unsigned __int128)kvm_dirty_ring_size(v->vcpu) * 4096 * m->hz /
			  m->highest_rate);
}

/* @rate in bytes per second, more than 0. */
static void adjust(struct precopy *m, struct precopy_vcpu *v, uint64_t rate)
{
	uint64_t limit = m->o->dirty_limit;
	uint64_t most = rate > limit ? rate : limit, least = rate > limit ? limit : rate;
	cycles_t full = full_time(m, v, rate), step = full / 10;

	if (most - least <= TOLERANCE)
		return;
	if ((most - least) * 100 / most > LINEAR_PERCENT) {
		uint64_t percent = (most - least) * 100 / most;

		percent = percent > MOST_PERCENT ? MOST_PERCENT : percent;
		step = full * percent / (100 - percent);
	}
	if (rate > limit)
		v->sleep += step;
	else
		v->sleep -= step < v->sleep ? step : v->sleep;
	if (v->sleep > full * MOST_PERCENT)
		v->sleep = full * MOST_PERCENT;
	if (v->sleep > m->round.sleep)
		m->round.sleep = v->sleep;
}

static int limiter(struct task *t, void *arg)
{
	struct precopy *m = arg;
	const cycles_t period = precopy_time(m, CALC_TIME_US);
	long r = 0;

	while (r >= 0 && !m->quit) {
		cycles_t from = task_now(t), until = from + period;

		for (uint32_t i = 0; i < m->o->n_vcpus; i++)
			m->vcpus[i].ring_pages = kvm_dirty_ring_pages(m->vcpus[i].vcpu);
		while (r >= 0 && !m->quit && task_now(t) < until)
			r = task_block_until(t, WAIT_idle, until);
		if (r < 0 || m->quit)
			break;
		r = kvm_reap_dirty_rings(t, m->kvm);
		for (uint32_t i = 0; r >= 0 && i < m->o->n_vcpus; i++) {
			struct precopy_vcpu *v = &m->vcpus[i];
			uint32_t pages = kvm_dirty_ring_pages(v->vcpu) - v->ring_pages;
			unsigned __int128 bytes = (unsigned __int128)pages * 4096 * m->hz;

			if (pages)
				adjust(m, v, (uint64_t)(bytes / (task_now(t) - from)));
			else
				v->sleep = 0;
		}
	}
	return r < 0 ? (int)r : 0;
}

int precopy_limit_start(struct precopy *m)
{
	const struct task_opts o = {.name = "dirtylimit",
				    .fn = limiter,
				    .arg = m,
				    .start = task_now(m->thread),
				    .ticks = true};

	if (m->limiter)
		return 0;
	kvm_on_ring_full(m->kvm, on_ring_full, m);
	return task_create(m->sim, &o, &m->limiter);
}
