// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * dbench: clients that do what a file server does, on a tmpfs: their spin locks are those of a
 * recorded guest, each acquisition by itself (lock_set.h says whose locks they are and what the
 * recording cannot tell), the rest is instructions that touch nothing shared. Clients never sleep.
 */
#include "workloads/smp_workload.h"

#define PENDING 8

struct client {
	struct smp_load *load;
	struct rng rng;
	uint64_t operation, done; /* instructions of one, and of the one that it is at */
	uint64_t owed;		  /* nested acquisitions that are due, of 2^32 */
	unsigned n_pending;
	struct lock_draw pending[PENDING]; /* that wait for a hold which has the time */
	struct smp_lock *own;		   /* [2 * class] */
	struct smp_lock **shared;	   /* [class], the first of those of the class */
};

static int take(struct guest_thread *g, struct smp_lock *l, const struct lock_draw *d, bool *flags)
{
	struct smp_vcpu *v = guest_vcpu(g);
	int err;

	if (d->irq)
		*flags = smp_irq_save(v);
	if (d->tried) {
		err = smp_spin_trylock(v, l);
		if (err)
			return err < 0 ? err : 0;
	}
	return smp_spin_lock(v, l);
}

static int give(struct guest_thread *g, struct smp_lock *l, const struct lock_draw *d, bool flags)
{
	struct smp_vcpu *v = guest_vcpu(g);
	int err = smp_spin_unlock(v, l);

	return err || !d->irq ? err : smp_irq_restore(v, flags);
}

/* NULL: all locks of the class are held by this client. */
static struct smp_lock *lock_of(struct client *c, const struct lock_draw *d,
				const struct smp_lock *held)
{
	uint32_t n = c->load->locks->classes[d->class].locks, i;
	struct smp_lock *of = c->shared[d->class];

	if (!n)
		return &c->own[2 * d->class + (held == &c->own[2 * d->class])];
	i = n > 1 ? (uint32_t)rng_below(&c->rng, n) : 0;
	if (&of[i] != held)
		return &of[i];
	return n > 1 ? &of[(i + 1) % n] : NULL;
}

/* The hold of @d, and inside it those that are pending and fit. */
static int hold(struct guest_thread *g, struct client *c, const struct lock_draw *d,
		const struct smp_lock *held)
{
	uint64_t at = 0;
	unsigned left = 0;
	int err = 0;

	for (unsigned i = 0; i < c->n_pending; i++) {
		const struct lock_draw in = c->pending[i];
		uint64_t from = in.gap > at ? in.gap : at;
		struct smp_lock *l;
		bool flags = false;

		if (err || from + in.hold > d->hold || !(l = lock_of(c, &in, held))) {
			c->pending[left++] = in;
			continue;
		}
		err = smp_work(guest_vcpu(g), from - at);
		err = err ? err : take(g, l, &in, &flags);
		err = err ? err : smp_work(guest_vcpu(g), in.hold);
		err = err ? err : give(g, l, &in, flags);
		at = from + in.hold;
	}
	c->n_pending = left;
	return err ? err : smp_work(guest_vcpu(g), d->hold - at);
}

/* Nested ones come as often as in the recording; what fits nowhere is given up when too many wait.
 */
static void owe(struct client *c)
{
	const struct lock_set *set = c->load->locks;

	c->owed += set->inner_per_outer;
	for (; c->owed >> 32; c->owed -= (uint64_t)1 << 32) {
		if (c->n_pending == PENDING) {
			for (unsigned i = 1; i < PENDING; i++)
				c->pending[i - 1] = c->pending[i];
			c->n_pending--;
		}
		c->pending[c->n_pending++] = lock_set_inner(set, &c->rng);
	}
}

static int client(struct guest_thread *g, void *arg)
{
	struct client *c = arg;
	int err = 0;

	while (!err) {
		const struct lock_draw d = lock_set_outer(c->load->locks, &c->rng);
		struct smp_lock *l = lock_of(c, &d, NULL);
		bool flags = false;

		owe(c);
		err = guest_work(g, d.gap);
		err = err ? err : take(g, l, &d, &flags);
		err = err ? err : hold(g, c, &d, l);
		err = err ? err : give(g, l, &d, flags);
		c->done += d.gap + d.hold;
		for (; !err && c->done >= c->operation; c->done -= c->operation)
			err = smp_load_done(c->load, g);
	}
	return err;
}

/* ---- locks ---- */

static struct smp_lock_class *name_classes(struct smp_load *l)
{
	const struct lock_set *set = l->locks;
	struct smp_lock_class *class = smp_load_alloc(l, set->n_classes, sizeof(*class));

	for (size_t i = 0; class && i < set->n_classes; i++) {
		const struct lock_set_class *c = &set->classes[i];

		class[i].caller = c->caller;
		if (*c->symbol)
			class[i].name = c->symbol;
		else
			class[i].name = c->locks ? "shared" : "own";
	}
	return class;
}

static int make_shared(struct smp_load *l, const struct smp_lock_class *class,
		       struct smp_lock **shared)
{
	const struct lock_set *set = l->locks;
	int err = 0;

	for (size_t i = 0; i < set->n_classes; i++) {
		uint32_t n = set->classes[i].locks;

		if (!n)
			continue;
		shared[i] = smp_load_alloc(l, n, sizeof(**shared));
		if (!shared[i])
			return KVMSIM_ENOMEM;
		for (uint32_t k = 0; !err && k < n; k++)
			err = smp_load_lock(l, &shared[i][k], &class[i]);
	}
	return err;
}

static int make_own(struct smp_load *l, const struct smp_lock_class *class, struct client *c)
{
	const struct lock_set *set = l->locks;
	int err = 0;

	c->own = smp_load_alloc(l, set->n_classes, 2 * sizeof(*c->own));
	if (!c->own)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; !err && i < 2 * set->n_classes; i++)
		if (!set->classes[i / 2].locks)
			err = smp_load_lock(l, &c->own[i], &class[i / 2]);
	return err;
}

enum { CLIENTS, OPERATION };

static int start(struct smp_load *l)
{
	uint32_t vcpus = smp_load_vcpus(l);
	uint32_t n = l->param[CLIENTS] ? (uint32_t)l->param[CLIENTS] : vcpus;
	struct client *c = smp_load_alloc(l, n, sizeof(*c));
	struct smp_lock **shared = smp_load_alloc(l, l->locks->n_classes, sizeof(*shared));
	struct smp_lock_class *class = name_classes(l);
	int err = c && shared && class ? 0 : KVMSIM_ENOMEM;

	err = err ? err : make_shared(l, class, shared);
	for (uint32_t i = 0; !err && i < n; i++) {
		c[i].load = l;
		c[i].operation = l->param[OPERATION] * 1000;
		c[i].shared = shared;
		err = make_own(l, class, &c[i]);
		err = err ? err : smp_load_thread(l, client, &c[i], UINT32_MAX, &c[i].rng);
	}
	return err;
}

const struct smp_workload smp_workload_dbench = {
	.name = "dbench",
	.summary = "a file server's clients, with the spin locks of a recorded guest",
	.operation = "pieces of clients' work",
	.params = (const struct workload_param[]){{"clients", 0, 0, 8192,
						   "threads; 0: one for each vCPU"},
						  {"operation", 1000, 1, 1000000,
						   "thousands of instructions that count as one"},
						  {0}},
	.needs_locks = true,
	.start = start,
};
