// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/sim/evq.h"

#include <stdbool.h>

#include "model/sim/error.h"
#include "model/sim/rng.h"
#include "tests/unit/harness.h"

#define MAX_SLOTS 100u

/* What the queue should hold, searched from end to end. */
static struct evq_key expected[MAX_SLOTS];

static struct evq_key least(uint32_t slots, uint32_t except)
{
	struct evq_key best = {EVQ_NEVER, UINT64_MAX};

	for (uint32_t i = 0; i < slots; i++) {
		struct evq_key k = expected[i];

		if (i != except &&
		    (k.time < best.time || (k.time == best.time && k.order < best.order)))
			best = k;
	}
	return best;
}

static bool same(struct evq_key a, struct evq_key b)
{
	return a.time == b.time && (a.time == EVQ_NEVER || a.order == b.order);
}

/* Programs of sets and cancels with few different times, so that ties abound, in a queue that
 * grows. */
static void agrees_with_a_search(void)
{
	for (uint32_t program = 0; program < 200; program++) {
		struct evq q = {0};
		struct rng r;
		uint32_t slots = 1, wrong = 0;

		rng_init(&r, program, 0, "evq");
		CU_ASSERT_EQUAL_FATAL(evq_reserve(&q, slots), 0);
		expected[0] = (struct evq_key){EVQ_NEVER, UINT64_MAX};
		for (uint32_t step = 0; step < 500; step++) {
			uint32_t slot;

			if (slots < MAX_SLOTS && !rng_below(&r, 8)) {
				expected[slots++] = (struct evq_key){EVQ_NEVER, UINT64_MAX};
				CU_ASSERT_EQUAL_FATAL(evq_reserve(&q, slots), 0);
			}
			slot = (uint32_t)rng_below(&r, slots);
			if (rng_below(&r, 4)) {
				uint64_t priority = rng_below(&r, 3);

				expected[slot] =
					(struct evq_key){rng_below(&r, 10), priority << 32 | slot};
				evq_set(&q, slot, expected[slot]);
			} else {
				expected[slot] = (struct evq_key){EVQ_NEVER, UINT64_MAX};
				evq_cancel(&q, slot);
			}
			wrong += !same(evq_first(&q), least(slots, UINT32_MAX));
			slot = (uint32_t)rng_below(&r, slots);
			wrong += !same(evq_first_other(&q, slot), least(slots, slot));
			wrong += !same(evq_key(&q, slot), expected[slot]);
		}
		CU_ASSERT_EQUAL(wrong, 0);
		evq_free(&q);
	}
}

/* Drained, it gives every event once, in order. */
static void drains_in_order(void)
{
	struct evq q = {0};
	struct evq_key last = {0, 0};
	struct rng r;
	uint32_t n = 0;

	rng_init(&r, 7, 0, "drain");
	CU_ASSERT_EQUAL_FATAL(evq_reserve(&q, 5000), 0);
	for (uint32_t i = 0; i < 5000; i++)
		evq_set(&q, i, (struct evq_key){rng_below(&r, 300), rng_below(&r, 2) << 32 | i});
	for (struct evq_key k; (k = evq_first(&q)).time != EVQ_NEVER; last = k, n++) {
		if (n)
			CU_ASSERT_TRUE(evq_before(last, k));
		evq_cancel(&q, evq_slot(k));
	}
	CU_ASSERT_EQUAL(n, 5000);
	evq_free(&q);
}

static void refuses_what_cannot_fit(void)
{
	struct evq q = {0};

	CU_ASSERT_EQUAL(evq_reserve(&q, UINT32_MAX), KVMSIM_ENOMEM);
	CU_ASSERT_EQUAL(q.size, 0);
	CU_ASSERT_EQUAL_FATAL(evq_reserve(&q, 3), 0);
	evq_set(&q, 2, (struct evq_key){5, 2});
	CU_ASSERT_EQUAL(evq_reserve(&q, UINT32_MAX), KVMSIM_ENOMEM);
	CU_ASSERT_EQUAL(evq_first(&q).time, 5);
	evq_free(&q);
}

static CU_TestInfo tests[] = {{"agrees_with_a_search", agrees_with_a_search},
			      {"drains_in_order", drains_in_order},
			      {"refuses_what_cannot_fit", refuses_what_cannot_fit},
			      CU_TEST_INFO_NULL};
TEST_MAIN("evq", tests)
