// SPDX-License-Identifier: GPL-3.0-or-later
/* The vCPU threads of a migration: the guest's stream in slices, between which they look for what
 * the VMM wants of them. */
#include "model/counts.h"
#include "model/guest/vcpu.h"
#include "model/sim/ledger.h"
#include "workloads/precopy_scene.h"

#define TIMESLICE_US 10000 /* CPU_THROTTLE_TIMESLICE_NS */

/* ---- orders ---- */

int precopy_sleep(struct precopy_vcpu *v, cycles_t cycles)
{
	cycles_t from = task_now(v->task), until = from + cycles;
	int r = 0;

	while (r >= 0 && !v->m->stop && !v->m->quit && task_now(v->task) < until)
		r = task_block_until(v->task, WAIT_idle, until);
	v->throttled += task_now(v->task) - from;
	return r < 0 ? r : 0;
}

/* A share of the time is slept through: pct / (100 - pct) of each 10 ms that it ran. */
static int throttle(struct precopy_vcpu *v)
{
	struct precopy *m = v->m;
	cycles_t slice = precopy_time(m, TIMESLICE_US);
	int r;

	if (!m->throttle || task_now(v->task) - v->ran_since < slice)
		return 0;
	r = vcpu_interrupt(v->vcpu);
	r = r ? r : precopy_sleep(v, slice * m->throttle / (100 - m->throttle));
	v->ran_since = task_now(v->task);
	return r;
}

static int stop(struct precopy_vcpu *v)
{
	struct precopy *m = v->m;
	cycles_t from;
	int r = vcpu_interrupt(v->vcpu);

	from = task_now(v->task);
	r = r ? r : sync(v->task);
	v->stopped = true;
	if (!r)
		task_wake(m->thread, task_now(v->task));
	while (!r && m->stop && !m->quit)
		r = task_block(v->task, WAIT_idle);
	v->stopped_for += task_now(v->task) - from;
	v->stopped = false;
	return r;
}

static int take_orders(struct precopy_vcpu *v)
{
	int r = sync(v->task);

	r = r ? r : precopy_interrupted(v->m);
	r = r ? r : throttle(v);
	if (!r && v->m->stop)
		r = stop(v);
	return r;
}

void precopy_wake_vcpus(struct precopy *m)
{
	for (uint32_t i = 0; i < m->o->n_vcpus; i++)
		task_wake(m->vcpus[i].task, task_now(m->thread));
}

int precopy_wait_stopped(struct precopy *m)
{
	int r = sync(m->thread);

	for (uint32_t i = 0; !r && i < m->o->n_vcpus; i++)
		while (!r && !m->vcpus[i].stopped)
			r = task_block(m->thread, WAIT_idle);
	return r;
}

/* ---- the stream ---- */

/* More ops of the source, from its start again at its end. */
static int refill(struct precopy_vcpu *v)
{
	const struct op_source *from = &v->m->o->sources[v->id];
	int r = 0;

	v->at = 0;
	v->n_in = from->next(from->ctx, &v->in);
	if (v->n_in < 0)
		return (int)v->n_in;
	if (v->n_in)
		return 0;
	v->computing = !v->insns || !from->rewind;
	v->insns = 0;
	if (!v->computing)
		r = from->rewind(from->ctx);
	return r;
}

/* Up to a slice's instructions. Returns the number of ops. */
static long slice(struct precopy_vcpu *v)
{
	uint64_t left = v->m->slice;
	long n = 0;
	int r;

	while (n < PRECOPY_OPS && left) {
		struct guest_op *op = &v->ops[n];

		if (v->computing) {
			*op = (struct guest_op){.kind = OP_NONE, .gap = (uint32_t)left};
			return n + 1;
		}
		if (v->at == v->n_in) {
			r = refill(v);
			if (r)
				return r;
			continue;
		}
		*op = v->in[v->at];
		op->gap -= (uint32_t)v->gap_done;
		if (op->gap > left) {
			*op = (struct guest_op){.kind = OP_NONE, .gap = (uint32_t)left};
			v->gap_done += left;
		} else {
			v->gap_done = 0;
			v->at++;
		}
		left -= op->gap;
		v->insns += op->gap;
		n++;
	}
	return n;
}

static long next_slice(void *ctx, const struct guest_op **ops)
{
	struct precopy_vcpu *v = ctx;
	int r = take_orders(v);

	if (r || v->m->quit)
		return r;
	*ops = v->ops;
	return slice(v);
}

int precopy_vcpu_thread(struct task *t, void *arg)
{
	struct precopy_vcpu *v = arg;
	struct op_source source = {.next = next_slice, .ctx = v};
	const struct interp_opts opts = {0};
	int r;

	vcpu_bind(v->vcpu, t);
	v->ran_since = task_now(t);
	r = interp_run(v->vcpu, &source, &opts, &v->stats);
	return r ? r : vcpu_interrupt(v->vcpu);
}

/* ---- its time ---- */

struct precopy_guest precopy_guest_time(const struct precopy_vcpu *v)
{
	static const uint16_t waits[] = {WAIT_lock, WAIT_ipi, WAIT_srcu};
	const struct ledger *l = sim_ledger(v->m->sim);
	uint32_t id = task_id(v->task);
	struct precopy_guest g = {
		.elapsed = task_now(v->task) - task_start(v->task),
		.insns = ledger_sum_count(l, id, LEDGER_ALL_ACTIVITIES, COUNT_insn).cycles,
		.throttled = v->throttled,
		.stopped = v->stopped_for};

	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		g.waited += ledger_sum_wait(l, id, LEDGER_ALL_ACTIVITIES, waits[i]).cycles;
	return g;
}
