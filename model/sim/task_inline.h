/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SIM_TASK_INLINE_H
#define KVMSIM_SIM_TASK_INLINE_H

/*
 * The part of a task that every charge and every sync touches, and the functions that are worth
 * inlining. Included by sim.h, which documents them; not for use by name.
 */
struct ledger_entry {
	uint64_t n;
	cycles_t cycles;
};

struct task_hot {
	cycles_t now;
	/* While it runs: the time at which sync() has to look again, because another task may come
	 * first, the run ends or somebody stopped it. 0: not known, look. */
	cycles_t bound;
	cycles_t message;	  /* arrival of its first message; CYCLES_MAX: none */
	const uint64_t *price;	  /* [count], cycles << 16 */
	uint64_t remainder;	  /* of fixed point, below 1 << 16 */
	struct ledger_entry *row; /* of the current activity: counts, then waits */
#ifdef KVMSIM_DEBUG
	cycles_t first_at; /* its clock when it last was the first in the order */
#endif
};

int task_sync_slow(struct task *t);
void task_not_first(struct task *t, const char *what);
void task_clock_overflow(struct task *t);

static inline struct task_hot *task_hot(struct task *t)
{
	return (struct task_hot *)t;
}

static inline cycles_t task_now(const struct task *t)
{
	return ((const struct task_hot *)t)->now;
}

static inline void charge_cycles(struct task *t, uint16_t count, uint64_t n, cycles_t cycles)
{
	struct task_hot *h = task_hot(t);

	if (__builtin_expect(cycles >= CYCLES_MAX - h->now, 0)) {
		task_clock_overflow(t);
		return;
	}
	h->now += cycles;
	h->row[count].n += n;
	h->row[count].cycles += cycles;
}

static inline void charge(struct task *t, uint16_t count, uint64_t n)
{
	struct task_hot *h = task_hot(t);
	unsigned __int128 cost = (unsigned __int128)n * h->price[count] + h->remainder;

	h->remainder = (uint64_t)cost & 0xffff;
	charge_cycles(t, count, n, cost >> 80 ? CYCLES_MAX : (cycles_t)(cost >> 16));
}

static inline int task_sync(struct task *t)
{
	struct task_hot *h = task_hot(t);
	int r = __builtin_expect(h->now < h->bound, 1) ? 0 : task_sync_slow(t);

#ifdef KVMSIM_DEBUG
	h->first_at = h->now;
#endif
	return r;
}

static inline void task_assert_first(struct task *t, const char *what)
{
	const struct task_hot *h = task_hot(t);

#ifdef KVMSIM_DEBUG
	if (h->first_at != h->now)
#else
	if (__builtin_expect(h->now >= h->bound, 0))
#endif
		task_not_first(t, what);
}

static inline bool task_message_due(const struct task *t)
{
	const struct task_hot *h = (const struct task_hot *)t;

	return h->message <= h->now;
}

#endif
