// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/smp/smp_priv.h"

/*
 * kernel/locking/qrwlock.c: readers count themselves in, a writer needs the word empty. Who cannot
 * have it at once queues at the spinlock; its holder is the head, which alone spins on the word.
 * Readers in interrupts, which the kernel lets pass a writer that waits, are not modelled: who
 * takes the lock in an interrupt has others take it with irqs off.
 */

int smp_rwlock_init(struct smp_vm *vm, struct smp_rwlock *l, const struct smp_lock_class *class)
{
	*l = (struct smp_rwlock){.readers = 0};
	smp_line_init(&l->line);
	return smp_lock_init(vm, &l->wait, class);
}

void smp_rwlock_free(struct smp_rwlock *l)
{
	smp_lock_free(&l->wait);
}

static void count(struct smp_lock_stats *s, cycles_t waited, bool contended)
{
	s->acquired++;
	if (!contended)
		return;
	s->contended++;
	s->wait += waited;
	if (waited > s->longest_wait)
		s->longest_wait = waited;
}

static void count_hold(struct smp_lock_stats *s, cycles_t hold)
{
	s->hold += hold;
	if (hold > s->longest_hold)
		s->longest_hold = hold;
}

static int misused(const struct smp_vcpu *v, const struct smp_rwlock *l, const char *what)
{
	sim_fail(v->vm->sim, KVMSIM_ECHECK);
	return kvmsim_err(sim_errors(v->vm->sim), KVMSIM_ECHECK, "rwlock %s: vCPU %u %s",
			  l->wait.class->name, v->id, what);
}

/* [running, synced] What the head waits for has come. */
static void tell_head(struct smp_vcpu *v, struct smp_rwlock *l)
{
	if (l->head && !l->writer && (!l->writer_waits || !l->readers))
		spin_release(v, l->head);
}

/* [running, synced] As the head: until there is no writer, nor, with @alone, a reader. */
static int wait_as_head(struct smp_vcpu *v, struct smp_rwlock *l, bool alone)
{
	int r = 0;

	while (!r && (l->writer || (alone && l->readers))) {
		struct spinner s = {.v = v, .line = &l->line};

		l->head = &s;
		r = spin_wait(v, &s, 0);
		l->head = NULL;
		r = r < 0 ? r : 0;
	}
	return r;
}

static int read_slow(struct smp_vcpu *v, struct smp_rwlock *l)
{
	int r = smp_line_rmw(v, &l->line);

	if (r)
		return r;
	l->readers--;
	tell_head(v, l);
	r = smp_spin_lock(v, &l->wait);
	if (!r)
		r = smp_line_rmw(v, &l->line);
	if (r)
		return r;
	l->readers++;
	r = wait_as_head(v, l, false);
	if (!r && l->readers == 1)
		l->since = task_now(smp_task(v));
	return r ? r : smp_spin_unlock(v, &l->wait);
}

int smp_read_lock(struct smp_vcpu *v, struct smp_rwlock *l)
{
	struct task *t = smp_task(v);
	cycles_t from = task_now(t);
	bool contended;
	int r;

	guest_preempt_disable(v);
	r = smp_line_rmw(v, &l->line);
	if (r)
		return r;
	contended = l->writer || l->writer_waits;
	if (!l->readers++ && !contended)
		l->since = task_now(t);
	if (contended)
		r = read_slow(v, l);
	if (!r)
		count(&l->stats[1], task_now(t) - from, contended);
	return r;
}

int smp_read_unlock(struct smp_vcpu *v, struct smp_rwlock *l)
{
	int r = smp_line_rmw(v, &l->line);

	if (r)
		return r;
	if (!l->readers || l->writer)
		return misused(v, l, "releases as a reader what it does not hold");
	if (!--l->readers)
		count_hold(&l->stats[1], task_now(smp_task(v)) - l->since);
	tell_head(v, l);
	return guest_preempt_enable(v);
}

/* [running, synced] */
static void give_to_writer(struct smp_vcpu *v, struct smp_rwlock *l)
{
	l->writer = v;
	l->since = task_now(smp_task(v));
}

static int write_slow(struct smp_vcpu *v, struct smp_rwlock *l)
{
	int r = smp_spin_lock(v, &l->wait);

	if (!r)
		r = smp_line_rmw(v, &l->line);
	if (r)
		return r;
	while (l->writer || l->readers) {
		l->writer_waits = true;
		r = wait_as_head(v, l, true);
		if (!r)
			r = smp_line_rmw(v, &l->line);
		if (r)
			return r;
	}
	l->writer_waits = false;
	give_to_writer(v, l);
	return smp_spin_unlock(v, &l->wait);
}

int smp_write_lock(struct smp_vcpu *v, struct smp_rwlock *l)
{
	struct task *t = smp_task(v);
	cycles_t from = task_now(t);
	bool contended;
	int r;

	guest_preempt_disable(v);
	r = smp_line_rmw(v, &l->line);
	if (r)
		return r;
	contended = l->writer || l->readers || l->writer_waits;
	if (contended)
		r = write_slow(v, l);
	else
		give_to_writer(v, l);
	if (!r)
		count(&l->stats[0], l->since - from, contended);
	return r;
}

int smp_write_unlock(struct smp_vcpu *v, struct smp_rwlock *l)
{
	int r = smp_line_store(v, &l->line);

	if (r)
		return r;
	if (l->writer != v)
		return misused(v, l, "releases as the writer what it does not hold");
	count_hold(&l->stats[0], task_now(smp_task(v)) - l->since);
	l->writer = NULL;
	tell_head(v, l);
	return guest_preempt_enable(v);
}
