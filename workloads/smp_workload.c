// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/smp_workload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct smp_workload *const workloads[] = {
	&smp_workload_dbench,	  &smp_workload_kernbench,   &smp_workload_ebizzy,
	&smp_workload_hackbench,  &smp_workload_pipe,	     &smp_workload_exec,
	&smp_workload_spin_micro, &smp_workload_mutex_micro, &smp_workload_busy,
	&smp_workload_idle,
};

size_t smp_workload_count(void)
{
	return sizeof(workloads) / sizeof(*workloads);
}

const struct smp_workload *smp_workload_at(size_t i)
{
	return i < smp_workload_count() ? workloads[i] : NULL;
}

/* ---- "NAME,key=value,..." ---- */

static int find(const char *text, size_t len, const struct kvmsim_errsink *errors,
		const struct smp_workload **w)
{
	char names[256] = "";

	for (size_t i = 0; i < smp_workload_count(); i++) {
		size_t used = strlen(names);

		*w = workloads[i];
		if (strlen((*w)->name) == len && !memcmp((*w)->name, text, len))
			return 0;
		snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", (*w)->name);
	}
	return kvmsim_err(errors, KVMSIM_ENOENT, "no workload '%.*s'; there are %s", (int)len, text,
			  names);
}

/* One "key=value" of @len bytes. */
static int set_param(const struct smp_workload *w, const char *text, size_t len,
		     const struct kvmsim_errsink *errors, uint64_t *param)
{
	const char *equals = memchr(text, '=', len);
	size_t key = equals ? (size_t)(equals - text) : len;

	for (size_t i = 0; w->params && w->params[i].name; i++) {
		const struct workload_param *p = &w->params[i];
		char *end = NULL;

		if (!equals || strlen(p->name) != key || memcmp(p->name, text, key) != 0)
			continue;
		errno = 0;
		param[i] = strtoull(equals + 1, &end, 10);
		if (end != text + len || equals[1] < '0' || equals[1] > '9' || errno ||
		    param[i] < p->min || param[i] > p->max)
			return kvmsim_err(errors, KVMSIM_EPARSE,
					  "workload %s: %.*s: expected a whole number from %" PRIu64
					  " to %" PRIu64,
					  w->name, (int)len, text, p->min, p->max);
		return 0;
	}
	return kvmsim_err(errors, KVMSIM_EPARSE,
			  "workload %s has no parameter '%.*s' (kvmsim list)", w->name, (int)len,
			  text);
}

int smp_workload_parse(const char *text, const struct kvmsim_errsink *errors,
		       const struct smp_workload **w, uint64_t param[SMP_MAX_PARAMS])
{
	size_t len = strcspn(text, ",");
	int err = find(text, len, errors, w);

	if (err)
		return err;
	for (size_t i = 0; (*w)->params && (*w)->params[i].name; i++)
		param[i] = (*w)->params[i].def;
	for (text += len; !err && *text == ','; text += len) {
		text++;
		len = strcspn(text, ",");
		err = set_param(*w, text, len, errors, param);
	}
	return err;
}

/* ---- what a load owns ---- */

/* Room for one more pointer. */
static bool room(void *array, size_t n, size_t *have)
{
	size_t more = *have ? 2 * *have : 64;
	void *grown;

	if (n < *have)
		return true;
	grown = realloc(*(void **)array, more * sizeof(void *));
	if (!grown)
		return false;
	*(void **)array = grown;
	*have = more;
	return true;
}

void *smp_load_alloc(struct smp_load *l, size_t n, size_t bytes)
{
	void *p;

	if (!room(&l->owned, l->n_owned, &l->owned_room))
		return NULL;
	p = calloc(n, bytes);
	if (p)
		l->owned[l->n_owned++] = p;
	return p;
}

int smp_load_lock(struct smp_load *l, struct smp_lock *lock, const struct smp_lock_class *class)
{
	int err;

	if (!room(&l->lock, l->n_locks, &l->locks_room))
		return KVMSIM_ENOMEM;
	err = smp_lock_init(l->vm, lock, class);
	if (!err)
		l->lock[l->n_locks++] = lock;
	return err;
}

int smp_load_mutex(struct smp_load *l, const char *name, bool spin, struct guest_mutex **out)
{
	struct smp_load_mutex *grown = realloc(l->mutex, (l->n_mutexes + 1) * sizeof(*grown));
	int err;

	if (!grown)
		return KVMSIM_ENOMEM;
	l->mutex = grown;
	err = guest_mutex_create(l->vm, name, spin, out);
	if (!err)
		grown[l->n_mutexes++] = (struct smp_load_mutex){name, *out};
	return err;
}

int smp_load_thread(struct smp_load *l, guest_fn fn, void *arg, uint32_t vcpu, struct rng *rng)
{
	const struct sim *sim = smp_sim(l->vm);
	struct guest_thread *g;
	char name[64];

	snprintf(name, sizeof(name), "vm%" PRIu32 " %s %" PRIu32, l->index, l->workload->name,
		 l->threads++);
	rng_init(rng, sim_seed(sim), sim_replicate(sim), name);
	return guest_thread_create(l->vm, name, fn, arg, vcpu, &g);
}

uint32_t smp_load_vcpus(const struct smp_load *l)
{
	return smp_vm_opts(l->vm)->vcpus;
}

int smp_load_start(struct smp_load *l)
{
	return l->workload->start(l);
}

void smp_load_free(struct smp_load *l)
{
	for (size_t i = 0; i < l->n_locks; i++)
		smp_lock_free(l->lock[i]);
	for (size_t i = 0; i < l->n_mutexes; i++)
		guest_mutex_destroy(l->mutex[i].m);
	for (size_t i = 0; i < l->n_owned; i++)
		free(l->owned[i]);
	free(l->lock);
	free(l->mutex);
	free(l->owned);
}

/* ---- what threads do ---- */

/* Counted in the order of time, so that a run that ends now has those that were done by now. */
int smp_load_done(struct smp_load *l, struct guest_thread *g)
{
	int err = sync(smp_task(guest_vcpu(g)));

	l->operations += !err;
	return err;
}

int smp_load_hold(struct guest_thread *g, struct smp_lock *lock, uint64_t insns, bool irq)
{
	struct smp_vcpu *v = guest_vcpu(g);
	bool flags = false;
	int err = irq ? smp_spin_lock_irqsave(v, lock, &flags) : smp_spin_lock(v, lock);

	err = err ? err : smp_work(v, insns);
	if (err)
		return err;
	return irq ? smp_spin_unlock_irqrestore(v, lock, flags) : smp_spin_unlock(v, lock);
}
