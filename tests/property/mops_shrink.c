// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/property/mops.h"

/*
 * Shrinking: leave out halves, quarters and so on of the ops as long as what is left fails (delta
 * debugging, A. Zeller and R. Hildebrandt, 2002), then whole vCPUs, then what is left is made
 * simpler. A candidate runs in a child: some failures are crashes.
 */
#define SECONDS 20 /* of a run of a few thousand ops */

void mops_run_apart(const struct mops *m, struct mops_result *r)
{
	struct mops_result *shared =
		mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t child;

	if (shared == MAP_FAILED)
		abort();
	fflush(NULL);
	child = fork();
	if (!child) {
		alarm(SECONDS);
		mops_run(m, shared);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		abort();
	*r = *shared;
	munmap(shared, sizeof(*r));
	if (WIFSIGNALED(status)) {
		r->err = KVMSIM_ECHILD;
		snprintf(r->why, sizeof(r->why), "ended by signal %d", WTERMSIG(status));
	} else if (WEXITSTATUS(status)) {
		r->err = KVMSIM_ECHILD;
		snprintf(r->why, sizeof(r->why), "ended with status %d", WEXITSTATUS(status));
	}
}

struct shrinker {
	struct mops *m;
	struct mops_result *r;
	unsigned runs, most;
};

/* Whether both say the same but for numbers. */
static bool same_failure(const struct mops_result *x, const struct mops_result *y)
{
	static const char numbers[] = "0123456789abcdefx";
	const char *a = x->why, *b = y->why;

	do {
		a += strspn(a, numbers);
		b += strspn(b, numbers);
	} while (*a == *b && *a && *a != ';' && ++a && ++b);
	return x->err == y->err && *a == *b;
}

/* Whether @c fails the same way; if so it is what goes on. Takes @c's ops. */
static bool keep_if_fails(struct shrinker *s, struct mops *c)
{
	struct mop *old = s->m->op;
	struct mops_result r;

	if (s->runs == s->most) {
		free(c->op);
		return false;
	}
	s->runs++;
	mops_run_apart(c, &r);
	if (!same_failure(&r, s->r)) {
		free(c->op);
		return false;
	}
	*s->m = *c;
	s->m->op = c->op; /* a copy of a copy, which clang's analyser loses sight of */
	*s->r = r;
	free(old);
	return true;
}

static struct mops copy_of(const struct mops *m)
{
	struct mops c = *m;

	c.op = calloc(m->n + 1, sizeof(*m->op));
	if (!c.op)
		abort();
	if (m->n)
		memcpy(c.op, m->op, m->n * sizeof(*m->op));
	return c;
}

static bool without_ops(struct shrinker *s, size_t first, size_t n)
{
	struct mops c = copy_of(s->m);

	if (n > c.n - first)
		n = c.n - first;
	memmove(c.op + first, c.op + first + n, (c.n - first - n) * sizeof(*c.op));
	c.n -= n;
	return keep_if_fails(s, &c);
}

static bool drop_ops(struct shrinker *s)
{
	bool any = false;

	for (size_t chunk = (s->m->n + 1) / 2; chunk; chunk = chunk > 1 ? (chunk + 1) / 2 : 0)
		for (size_t at = 0; at < s->m->n;) {
			if (without_ops(s, at, chunk))
				any = true;
			else
				at += chunk;
		}
	return any;
}

static void drop_vcpu(struct shrinker *s, unsigned who)
{
	struct mops c = copy_of(s->m);

	c.n = 0;
	for (size_t i = 0; i < s->m->n; i++)
		if (s->m->op[i].who != who)
			c.op[c.n++] = s->m->op[i];
	keep_if_fails(s, &c);
}

static bool fewer_vcpus(struct shrinker *s)
{
	struct mops c = copy_of(s->m);

	for (size_t i = 0; i < c.n; i++)
		if (c.op[i].who == c.n_vcpus - 1) {
			free(c.op);
			return false;
		}
	c.n_vcpus--;
	return keep_if_fails(s, &c);
}

/* One thing less to wonder about. */
static void simplify_machine(struct shrinker *s)
{
	for (unsigned what = 0; what < 7; what++) {
		struct mops c = copy_of(s->m);

		if (what == 0)
			c.memory = MOPS_PRESENT;
		if (what == 1)
			c.host_level = 1;
		if (what == 2)
			c.cache = false;
		if (what == 3)
			c.eager = false;
		if (what == 4)
			strcpy(c.cpu, "amd");
		if (what == 5)
			strcpy(c.preset, "6.1-shadow");
		if (what == 6)
			strcpy(c.dirty, "mask");
		keep_if_fails(s, &c);
	}
}

static void simplify_ops(struct shrinker *s)
{
	for (size_t i = 0; i < s->m->n; i++) {
		struct mops c = copy_of(s->m);

		c.op[i].gap = 0;
		if (s->m->op[i].gap)
			keep_if_fails(s, &c);
		else
			free(c.op);
	}
}

unsigned mops_shrink(struct mops *m, struct mops_result *r)
{
	struct shrinker s = {m, r, 0, 8000};

	for (unsigned v = 0; v < m->n_vcpus && m->n_vcpus > 1; v++)
		drop_vcpu(&s, v);
	while (drop_ops(&s) && s.runs < s.most)
		;
	simplify_machine(&s);
	while (m->n_vcpus > 1 && fewer_vcpus(&s))
		;
	simplify_ops(&s);
	drop_ops(&s);
	return s.runs;
}
