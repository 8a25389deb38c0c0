/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_HOST_PCPU_H
#define KVMSIM_HOST_PCPU_H

#include <stdint.h>

#include "model/sim/sim.h"

/*
 * The host's CPUs. There are as many as asked for, and each runs at most one task, from
 * pcpu_attach() to pcpu_detach(), so that no task ever waits for a CPU. A scheduler that shares
 * them goes behind these functions.
 */
#define PCPU_NONE UINT32_MAX

struct pcpus;

/* KVMSIM_EINVAL: @n is 0; KVMSIM_ENOMEM. */
int pcpus_create(uint32_t n, struct pcpus **out);
/* NULL is fine. */
void pcpus_destroy(struct pcpus *p);
uint32_t pcpus_count(const struct pcpus *p);

/* Puts the task on the first free CPU and returns its number; KVMSIM_EINVAL, with a message, when
 * none is free or the task is on one already. */
int pcpu_attach(struct pcpus *p, struct task *t);
void pcpu_detach(struct pcpus *p, const struct task *t);
/* The CPU that the task is on, or PCPU_NONE. */
uint32_t pcpu_of(const struct pcpus *p, const struct task *t);
/* The task on that CPU, or NULL. */
struct task *pcpu_task(const struct pcpus *p, uint32_t cpu);

#endif
