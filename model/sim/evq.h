/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SIM_EVQ_H
#define KVMSIM_SIM_EVQ_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The event queue: one slot per task, at most one pending event in each.
 *
 * It is a tournament: a complete binary tree whose leaves are the slots and whose inner nodes hold
 * the key of the earliest leaf below. Setting or cancelling a slot replays its path to the root,
 * O(log n) compares without a branch that depends on the data; the first event is at the root.
 * Nothing is allocated but by evq_reserve().
 *
 * Events are ordered by (time, order). The caller puts the task's priority above its id into
 * `order`; the id is the slot. With one event per task that makes the order total, whatever the
 * order in which the events were set.
 */
struct evq_key {
	uint64_t time;
	uint64_t order; /* the low 32 bits are the slot */
};

#define EVQ_NEVER UINT64_MAX /* the time of an empty slot */

struct evq {
	struct evq_key *node; /* [2 * size]: node 1 is the root, nodes size.. are the leaves */
	uint32_t size;	      /* a power of two, 0 before the first evq_reserve() */
};

/* Makes slots 0 to @slots - 1 usable; new ones are empty. KVMSIM_ENOMEM leaves @q as it was. */
int evq_reserve(struct evq *q, uint32_t slots);
void evq_free(struct evq *q);

static inline bool evq_before(struct evq_key a, struct evq_key b)
{
	unsigned __int128 x = (unsigned __int128)a.time << 64 | a.order;
	unsigned __int128 y = (unsigned __int128)b.time << 64 | b.order;

	return x < y;
}

/* Puts the slot's event at @key, in place of the one that it had. */
static inline void evq_set(struct evq *q, uint32_t slot, struct evq_key key)
{
	struct evq_key *node = q->node;
	uint32_t i = q->size + slot;

	node[i] = key;
	while (i > 1) {
		struct evq_key rival = node[i ^ 1];
		uint64_t m = -(uint64_t)evq_before(rival, key);

		/* Masks, not a branch: whether the rival is earlier is a coin toss. */
		key.time ^= (key.time ^ rival.time) & m;
		key.order ^= (key.order ^ rival.order) & m;
		/* Keeps GCC from pairing the two in a vector register, at three times the cost. */
		__asm__("" : "+r"(key.time), "+r"(key.order));
		i >>= 1;
		node[i].time = key.time;
		node[i].order = key.order;
	}
}

static inline void evq_cancel(struct evq *q, uint32_t slot)
{
	evq_set(q, slot, (struct evq_key){EVQ_NEVER, UINT64_MAX});
}

/* The first event; its time is EVQ_NEVER when there is none. */
static inline struct evq_key evq_first(const struct evq *q)
{
	return q->node[1];
}

/* The slot of an event that evq_first() or evq_first_other() gave. */
static inline uint32_t evq_slot(struct evq_key key)
{
	return (uint32_t)key.order;
}

/* The key of a slot; time EVQ_NEVER when it is empty. */
static inline struct evq_key evq_key(const struct evq *q, uint32_t slot)
{
	return q->node[q->size + slot];
}

/* The first event of all slots but @slot: what the running task may not overtake. */
static inline struct evq_key evq_first_other(const struct evq *q, uint32_t slot)
{
	struct evq_key best = {EVQ_NEVER, UINT64_MAX};

	for (uint32_t i = q->size + slot; i > 1; i >>= 1) {
		struct evq_key other = q->node[i ^ 1];
		uint64_t m = -(uint64_t)evq_before(other, best);

		best.time ^= (best.time ^ other.time) & m;
		best.order ^= (best.order ^ other.order) & m;
		__asm__("" : "+r"(best.time), "+r"(best.order));
	}
	return best;
}

#endif
