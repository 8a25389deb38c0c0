// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analysis/pool.h"
#include "analysis/run.h"
#include "tests/unit/harness.h"

struct piece {
	uint64_t square;
	char pad[9000]; /* more than a pipe takes at once, with a few of them */
};

struct scene {
	size_t fails, dies, stops, seen;
	uint64_t sum;
	char message[256];
	unsigned messages;
};

static int work(void *ctx, size_t i, const struct kvmsim_errsink *errors, void *out)
{
	const struct scene *s = ctx;
	struct piece *p = out;

	if (p->square || p->pad[4711])
		return KVMSIM_ECHECK; /* was to be zeroed */
	if (i == s->dies)
		_exit(3);
	p->square = i * i;
	memset(p->pad, 1, sizeof(p->pad));
	if (i < s->fails)
		return 0;
	kvmsim_err(errors, KVMSIM_EINVAL, "piece %zu", i);
	return kvmsim_err(errors, KVMSIM_EINVAL, "and more");
}

static int done(void *ctx, size_t i, const void *result)
{
	struct scene *s = ctx;
	const struct piece *p = result;

	CU_ASSERT_EQUAL(i, s->seen);
	CU_ASSERT_EQUAL(p->square, i * i);
	CU_ASSERT_EQUAL(p->pad[8999], 1);
	s->seen++;
	return i == s->stops ? KVMSIM_EIO : 0;
}

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	struct scene *s = ctx;

	(void)err;
	s->messages++;
	snprintf(s->message, sizeof(s->message), "%s", msg);
}

static int go(struct scene *s, size_t n, unsigned workers)
{
	const struct kvmsim_errsink sink = {keep, s};
	const struct pool pool = {.n = n,
				  .bytes = sizeof(struct piece),
				  .workers = workers,
				  .work = work,
				  .done = done,
				  .ctx = s};

	return pool_run(&pool, &sink);
}

static const struct scene nothing_wrong = {.fails = SIZE_MAX, .dies = SIZE_MAX, .stops = SIZE_MAX};

static void in_order(void)
{
	for (unsigned workers = 0; workers < 6; workers++)
		for (size_t n = 0; n < 8; n++) {
			struct scene s = nothing_wrong;

			CU_ASSERT_EQUAL(go(&s, n, workers), 0);
			CU_ASSERT_EQUAL(s.seen, n);
		}
}

static void first_error(void)
{
	for (unsigned workers = 0; workers < 4; workers++) {
		struct scene s = nothing_wrong;

		s.fails = 3;
		CU_ASSERT_EQUAL(go(&s, 20, workers), KVMSIM_EINVAL);
		CU_ASSERT_EQUAL(s.seen, 3);
		CU_ASSERT_EQUAL(s.messages, 1);
		CU_ASSERT_STRING_EQUAL(s.message, "piece 3");
		s = nothing_wrong;
		s.stops = 5;
		CU_ASSERT_EQUAL(go(&s, 20, workers), KVMSIM_EIO);
		CU_ASSERT_EQUAL(s.seen, 6);
	}
}

static void worker_dies(void)
{
	struct scene s = nothing_wrong;

	s.dies = 4;
	CU_ASSERT_EQUAL(go(&s, 20, 3), KVMSIM_ECHILD);
	CU_ASSERT_EQUAL(s.seen, 4);
	CU_ASSERT_EQUAL(s.messages, 1);
}

static void interrupted(void)
{
	struct scene s = nothing_wrong;

	run_interrupted = 1;
	CU_ASSERT_EQUAL(go(&s, 20, 0), KVMSIM_EINTR);
	CU_ASSERT_EQUAL(s.seen, 1);
	CU_ASSERT_EQUAL(s.messages, 0);
	run_interrupted = 0;
}

static CU_TestInfo tests[] = {{"in_order", in_order},
			      {"first_error", first_error},
			      {"worker_dies", worker_dies},
			      {"interrupted", interrupted},
			      CU_TEST_INFO_NULL};

TEST_MAIN("pool", tests)
