// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * hackbench: groups of senders and receivers; each sender writes to each receiver of its group in
 * turn, through a pipe of the receiver's. And pipe: pairs of threads that hand a byte to and fro
 * through two pipes, as UnixBench's context switching does.
 *
 * A pipe has 16 buffers and a mutex without optimistic spinning, since nobody holds it for long on
 * the scale of a switch; who finds it full or empty notes that under the mutex, gives it back and
 * sleeps, and is woken by who changes that (a wake-up that comes before the sleep ends it at once).
 */
#include <string.h>

#include "workloads/smp_workload.h"

#define BUFFERS	   16
#define COPY_INSNS 300	/* of a message of 100 bytes, with the mutex held */
#define CALL_INSNS 1200 /* of a read() or write(), outside */
#define SLEEPERS   64	/* senders of a group, at most */

struct pipe {
	struct guest_mutex *mutex;
	unsigned full;
	struct guest_thread *reader; /* that sleeps; NULL: does not */
	struct guest_thread *writer[SLEEPERS];
	unsigned n_writers;
};

static int wake(struct guest_thread *by, struct guest_thread *g)
{
	return g ? guest_wake(guest_vcpu(by), g) : 0;
}

static void drop_writer(struct pipe *p, unsigned i)
{
	p->n_writers--;
	memmove(&p->writer[i], &p->writer[i + 1],
		(p->n_writers - i) * sizeof(struct guest_thread *));
}

/* Adds a message, or takes one out. */
static int transfer(struct guest_thread *g, struct pipe *p, bool write)
{
	int err = guest_work(g, CALL_INSNS);

	err = err ? err : guest_mutex_lock(g, p->mutex);
	while (!err && (write ? p->full == BUFFERS : !p->full)) {
		if (write)
			p->writer[p->n_writers++] = g;
		else
			p->reader = g;
		err = guest_mutex_unlock(g, p->mutex);
		err = err ? err : guest_sleep(g);
		err = err ? err : guest_mutex_lock(g, p->mutex);
		/* It may not have been for us: whoever is still noted would be noted twice. */
		for (unsigned i = p->n_writers; !err && i-- > 0;)
			if (p->writer[i] == g)
				drop_writer(p, i);
	}
	err = err ? err : guest_work(g, COPY_INSNS);
	if (err)
		return err;

	struct guest_thread *other = NULL;

	if (write) {
		p->full++;
		other = p->reader;
		p->reader = NULL;
	} else {
		p->full--;
		if (p->n_writers) {
			other = p->writer[0];
			drop_writer(p, 0);
		}
	}
	err = guest_mutex_unlock(g, p->mutex);
	return err ? err : wake(g, other);
}

/* ---- hackbench ---- */

enum { GROUPS, MEMBERS, WORK };

struct member {
	struct smp_load *load;
	struct pipe *pipe; /* the receiver's own, or the first of the group's */
	uint64_t members, work;
	struct rng rng;
};

static int sender(struct guest_thread *g, void *arg)
{
	struct member *m = arg;
	int err = 0;

	for (uint64_t i = 0; !err; i = (i + 1) % m->members)
		err = transfer(g, &m->pipe[i], true);
	return err;
}

static int receiver(struct guest_thread *g, void *arg)
{
	struct member *m = arg;
	int err = 0;

	while (!err) {
		err = transfer(g, m->pipe, false);
		err = err || !m->work ? err : guest_work(g, m->work);
		err = err ? err : smp_load_done(m->load, g);
	}
	return err;
}

static int make_group(struct smp_load *l, uint64_t n)
{
	struct pipe *p = smp_load_alloc(l, n, sizeof(*p));
	struct member *m = smp_load_alloc(l, 2 * n, sizeof(*m));
	int err = p && m ? 0 : KVMSIM_ENOMEM;

	for (uint64_t i = 0; !err && i < 2 * n; i++) {
		m[i] = (struct member){l, &p[i < n ? i : 0], n, l->param[WORK], {{0}}};
		if (i < n)
			err = smp_load_mutex(l, "pipe", false, &p[i].mutex);
		err = err ? err
			  : smp_load_thread(l, i < n ? receiver : sender, &m[i], UINT32_MAX,
					    &m[i].rng);
	}
	return err;
}

static int hackbench_start(struct smp_load *l)
{
	uint32_t vcpus = smp_load_vcpus(l);
	uint64_t groups = l->param[GROUPS] ? l->param[GROUPS] : (vcpus + 3) / 4;
	int err = 0;

	for (uint64_t i = 0; !err && i < groups; i++)
		err = make_group(l, l->param[MEMBERS]);
	return err;
}

const struct smp_workload smp_workload_hackbench = {
	.name = "hackbench",
	.summary = "groups of senders and receivers that wake each other through pipes",
	.operation = "messages",
	.params =
		(const struct workload_param[]){
			{"groups", 0, 0, 512, "0: one for every four vCPUs"},
			{"members", 8, 1, SLEEPERS, "senders of a group, and receivers"},
			{"work", 0, 0, 1u << 30, "instructions of a receiver's for a message"},
			{0}},
	.start = hackbench_start,
};

/* ---- pipe ---- */

struct end {
	struct smp_load *load;
	struct pipe *in, *out;
	bool first;
	struct rng rng;
};

static int end(struct guest_thread *g, void *arg)
{
	struct end *e = arg;
	int err = e->first ? transfer(g, e->out, true) : 0;

	while (!err) {
		err = transfer(g, e->in, false);
		err = err ? err : transfer(g, e->out, true);
		if (!err && e->first)
			err = smp_load_done(e->load, g);
	}
	return err;
}

static int pipe_start(struct smp_load *l)
{
	uint64_t n = l->param[0] ? l->param[0] : smp_load_vcpus(l);
	struct pipe *p = smp_load_alloc(l, 2 * n, sizeof(*p));
	struct end *e = smp_load_alloc(l, 2 * n, sizeof(*e));
	int err = p && e ? 0 : KVMSIM_ENOMEM;

	for (uint64_t i = 0; !err && i < 2 * n; i++)
		err = smp_load_mutex(l, "pipe", false, &p[i].mutex);
	for (uint64_t i = 0; !err && i < 2 * n; i++) {
		e[i] = (struct end){l, &p[i], &p[i ^ 1], !(i & 1), {{0}}};
		err = smp_load_thread(l, end, &e[i], UINT32_MAX, &e[i].rng);
	}
	return err;
}

const struct smp_workload smp_workload_pipe = {
	.name = "pipe",
	.summary = "pairs of threads that hand a byte to and fro through pipes",
	.operation = "round trips",
	.params =
		(const struct workload_param[]){{"pairs", 0, 0, 8192, "0: one for each vCPU"}, {0}},
	.start = pipe_start,
};
