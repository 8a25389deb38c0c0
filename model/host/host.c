// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/host/host.h"

#include <stdlib.h>

#include "model/sim/profile.h"

struct host_task *host_task(struct task *t)
{
	struct host_task *h = task_host(t);

	if (!h) {
		h = calloc(1, sizeof(*h));
		task_set_host(t, h);
		if (!h)
			return NULL;
		h->line_transfer = profile_param(sim_profile(task_sim(t)), "line_transfer");
		h->queue_transfers = profile_param(sim_profile(task_sim(t)), "queue_transfers");
		h->own_core.id = task_id(t);
		h->core = &h->own_core;
	}
	return h;
}
