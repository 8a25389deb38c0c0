// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/host/host.h"

#include <stdlib.h>

struct host_task *host_task(struct task *t)
{
	struct host_task *h = task_host(t);

	if (!h) {
		h = calloc(1, sizeof(*h));
		task_set_host(t, h);
	}
	return h;
}
