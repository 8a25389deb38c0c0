// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/host/ipi.h"

#include "model/counts.h"
#include "model/host/watch.h"
#include "model/sim/profile.h"

/* One call that waits for acknowledgement; on the sender's stack. */
struct ipi_call {
	struct task *sender;
	size_t pending;
	cycles_t last; /* the latest acknowledgement so far */
	struct host_wait cause;
};

static cycles_t latency(const struct task *t)
{
	return profile_param(sim_profile(task_sim(t)), "ipi_latency");
}

void ipi_init(struct sim *sim)
{
	sim_set_lookahead(sim, profile_param(sim_profile(sim), "ipi_latency"));
}

/* A thread that ends has left guest mode, whether or not the layer above says so. */
static void end_of_task(struct task *t)
{
	(void)ipi_receive(t);
}

static void post(struct task *t, struct task *target, cycles_t arrival, struct ipi_call *call)
{
	task_at_end(target, end_of_task);
	task_post(t, target, arrival, IPI_MESSAGE, 0, call);
}

int ipi_call_many(struct task *t, ipi_request_fn request, void *ctx, size_t n, bool wait)
{
	struct ipi_call call = {.sender = t};
	int interrupted = 0, r = sync(t);
	cycles_t arrival = task_now(t) + latency(t);

	if (r)
		return r;
	task_assert_first(t, "other tasks' requests");
	for (size_t i = 0; i < n; i++) {
		struct task *target = NULL;

		if (!request(ctx, i, &target) || target == t || task_ended(target))
			continue;
		call.pending++;
		interrupted++;
		post(t, target, arrival, wait ? &call : NULL);
	}
	charge(t, COUNT_ipi, (uint64_t)interrupted);
	cycles_t from = task_now(t);

	while (wait && !r && (call.pending || task_now(t) < call.last))
		r = task_block(t, WAIT_ipi);
	if (task_now(t) > from) {
		call.cause.wait = WAIT_ipi;
		call.cause.cycles = task_now(t) - from;
		host_waited(t, &call.cause);
	}
	return r ? r : interrupted;
}

void ipi_send(struct task *t, struct task *target)
{
	post(t, target, task_now(t) + latency(t), NULL);
	charge(t, COUNT_ipi, 1);
}

static void interrupted_by(struct task *t, struct task *sender, cycles_t arrival)
{
	struct host_watch *w = host_watch(t);

	if (!w)
		return;
	host_blame(&w->interrupt, sender);
	w->interrupt.wait = WAIT_ipi;
	w->interrupt.cycles = task_now(t) > arrival ? task_now(t) - arrival : 0;
}

unsigned ipi_receive(struct task *t)
{
	struct task_message m;
	unsigned arrived = 0;

	task_assert_first(t, "its own messages");
	while (task_take_message(t, IPI_MESSAGE, &m)) {
		struct ipi_call *call = m.ptr;
		cycles_t when = m.arrival > task_now(t) ? m.arrival : task_now(t);

		arrived += m.arrival <= task_now(t);
		interrupted_by(t, m.from, m.arrival);
		if (!call)
			continue;
		if (when >= call->last) {
			call->last = when;
			host_blame(&call->cause, t);
		}
		if (!--call->pending)
			task_wake(call->sender, call->last);
	}
	return arrived;
}
