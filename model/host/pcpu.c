// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/host/pcpu.h"

#include <stdlib.h>

struct pcpus {
	uint32_t n;
	struct task *on[];
};

int pcpus_create(uint32_t n, struct pcpus **out)
{
	struct pcpus *p;

	*out = NULL;
	if (!n)
		return KVMSIM_EINVAL;
	p = calloc(1, sizeof(*p) + n * sizeof(p->on[0]));
	if (!p)
		return KVMSIM_ENOMEM;
	p->n = n;
	*out = p;
	return 0;
}

void pcpus_destroy(struct pcpus *p)
{
	free(p);
}

uint32_t pcpus_count(const struct pcpus *p)
{
	return p->n;
}

uint32_t pcpu_of(const struct pcpus *p, const struct task *t)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->on[i] == t)
			return i;
	return PCPU_NONE;
}

int pcpu_attach(struct pcpus *p, struct task *t)
{
	const struct kvmsim_errsink *errors = sim_errors(task_sim(t));

	if (pcpu_of(p, t) != PCPU_NONE)
		return kvmsim_err(errors, KVMSIM_EINVAL, "task %s is on a CPU already",
				  task_name(t));
	for (uint32_t i = 0; i < p->n; i++) {
		if (!p->on[i]) {
			p->on[i] = t;
			return (int)i;
		}
	}
	return kvmsim_err(errors, KVMSIM_EINVAL, "no CPU of %u is free for task %s", p->n,
			  task_name(t));
}

void pcpu_detach(struct pcpus *p, const struct task *t)
{
	uint32_t cpu = pcpu_of(p, t);

	if (cpu != PCPU_NONE)
		p->on[cpu] = NULL;
}

struct task *pcpu_task(const struct pcpus *p, uint32_t cpu)
{
	return cpu < p->n ? p->on[cpu] : NULL;
}
