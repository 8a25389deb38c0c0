// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/lock_set.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ONE ((uint64_t)1 << 32)

int lock_set_add(struct lock_set *set, const struct lock_row *row)
{
	struct lock_row *grown;

	if (row->nested > row->taken || row->moved > row->taken || row->irq > row->taken ||
	    row->tried > row->taken)
		return KVMSIM_EINVAL;
	if (row->work) {
		set->work = row->work;
		set->vcpus = row->vcpus;
		return 0;
	}
	grown = realloc(set->rows, (set->n_rows + 1) * sizeof(*grown));
	if (!grown)
		return KVMSIM_ENOMEM;
	set->rows = grown;
	grown[set->n_rows++] = *row;
	return 0;
}

void lock_set_free(struct lock_set *set)
{
	free(set->rows);
	free(set->classes);
	free(set->outer);
	free(set->inner);
	*set = (struct lock_set){0};
}

/* ---- classes ---- */

/* How many of a row's acquisitions are of locks that all share. */
static uint64_t shared_of(const struct lock_set *set, const struct lock_row *row)
{
	unsigned __int128 n;

	if (row->vcpus < 2 || row->moved * 100 < row->taken * SHARED_PERCENT)
		return 0;
	if (row->objects == 1)
		return row->taken;
	n = (unsigned __int128)row->moved * set->vcpus / (set->vcpus - 1);
	return n < row->taken ? (uint64_t)n : row->taken;
}

static uint32_t class_of(struct lock_set *set, const struct lock_row *row, bool shared)
{
	for (size_t i = 0; i < set->n_classes; i++) {
		const struct lock_set_class *c = &set->classes[i];

		if (c->caller && c->symbol && !strcmp(c->caller, row->caller) &&
		    !strcmp(c->symbol, row->symbol) && !!c->locks == shared)
			return (uint32_t)i;
	}
	/* Room for two of each row was made. */
	set->classes[set->n_classes] =
		(struct lock_set_class){.symbol = row->symbol, .caller = row->caller};
	return (uint32_t)set->n_classes++;
}

static void classify(struct lock_set *set, struct lock_row *row)
{
	uint64_t shared = shared_of(set, row);

	row->own = row->shared = LOCK_SET_NONE;
	row->share = row->taken ? (uint64_t)((unsigned __int128)shared * ONE / row->taken) : 0;
	row->nested_share =
		row->nested >= row->taken
			? UINT64_MAX
			: (uint64_t)(((unsigned __int128)row->nested << 64) / row->taken);
	if (shared < row->taken) {
		row->own = class_of(set, row, false);
		set->classes[row->own].taken += row->taken - shared;
	}
	if (shared) {
		/* As few as a row of locks that are rare allows. */
		uint64_t n = row->objects == 1 ? 1 : (shared * 1000 + set->taken - 1) / set->taken;

		row->shared = class_of(set, row, true);
		set->classes[row->shared].taken += shared;
		set->classes[row->shared].locks += (uint32_t)(n < row->objects ? n : row->objects);
	}
}

/* ---- draws: the alias method (A. Walker, 1977), made by M. Vose's way (1991) ---- */

static uint64_t weight(const struct lock_row *row, bool nested)
{
	return nested ? row->nested : row->taken - row->nested;
}

static struct lock_alias *alias_make(const struct lock_set *set, bool nested)
{
	size_t n = set->n_rows, small = 0, large = n;
	struct lock_alias *a = calloc(n, sizeof(*a));
	unsigned __int128 *w = calloc(n, sizeof(*w)), sum = 0;
	uint32_t *stack =
		calloc(n, sizeof(*stack)); /* small ones from the left, large from right */

	for (size_t i = 0; a && w && stack && i < n; i++) {
		w[i] = (unsigned __int128)weight(&set->rows[i], nested) * n;
		sum += weight(&set->rows[i], nested);
	}
	if (!a || !w || !stack)
		goto out;
	for (size_t i = 0; i < n; i++) {
		a[i] = (struct lock_alias){UINT64_MAX, (uint32_t)i};
		if (w[i] < sum)
			stack[small++] = (uint32_t)i;
		else
			stack[--large] = (uint32_t)i;
	}
	while (small && large < n) {
		uint32_t s = stack[--small], l = stack[large++];

		a[s] = (struct lock_alias){(uint64_t)((w[s] << 32) / sum << 32), l};
		w[l] -= sum - w[s];
		if (w[l] < sum)
			stack[small++] = l;
		else
			stack[--large] = l;
	}
out:
	if (!w || !stack) {
		free(a);
		a = NULL;
	}
	free(w);
	free(stack);
	return a;
}

static const struct lock_row *alias_draw(const struct lock_set *set, const struct lock_alias *a,
					 struct rng *r)
{
	unsigned __int128 u = (unsigned __int128)rng_u64(r) * set->n_rows;
	size_t i = (size_t)(u >> 64);

	return &set->rows[(uint64_t)u < a[i].below ? i : a[i].other];
}

int lock_set_finish(struct lock_set *set)
{
	bool some = true;

	if (!set->n_rows || !set->work || set->vcpus < 2)
		return KVMSIM_EINVAL;
	for (size_t i = 0; i < set->n_rows; i++) {
		set->taken += set->rows[i].taken;
		set->nested += set->rows[i].nested;
		some &= set->rows[i].taken > 0;
	}
	if (!some || set->taken == set->nested)
		return KVMSIM_EINVAL;
	set->inner_per_outer =
		(uint64_t)((unsigned __int128)set->nested * ONE / (set->taken - set->nested));
	set->classes = calloc(2 * set->n_rows, sizeof(*set->classes));
	set->outer = alias_make(set, false);
	set->inner = set->nested ? alias_make(set, true) : NULL;
	if (!set->classes || !set->outer || (set->nested && !set->inner))
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < set->n_rows; i++)
		classify(set, &set->rows[i]);
	return 0;
}

/* One of @n of @of, by the low bits of a random number. */
static bool chance(uint32_t bits, uint64_t n, uint64_t of)
{
	return (unsigned __int128)bits * of < (unsigned __int128)n << 32;
}

static struct lock_draw draw(const struct lock_row *row, uint64_t hold, uint64_t gap, struct rng *r)
{
	uint64_t u = rng_u64(r), v = row->irq || row->tried ? rng_u64(r) : 0;

	return (struct lock_draw){
		.class = row->own != LOCK_SET_NONE && (u & UINT32_MAX) >= row->share ? row->own
										     : row->shared,
		.gap = gap,
		.hold = hold,
		.irq = row->irq && chance((uint32_t)v, row->irq, row->taken),
		.tried = row->tried && chance((uint32_t)(v >> 32), row->tried, row->taken),
	};
}

/* Outer holds are the longer ones of the row's. */
struct lock_draw lock_set_outer(const struct lock_set *set, struct rng *r)
{
	const struct lock_row *row = alias_draw(set, set->outer, r);
	uint64_t u = rng_u64(r), rest = UINT64_MAX - row->nested_share;
	uint64_t hold = quantiles_value(
		&row->hold, row->nested_share + (uint64_t)((unsigned __int128)u * rest >> 64));

	return draw(row, hold, quantiles_value(&row->gap, rng_u64(r)), r);
}

struct lock_draw lock_set_inner(const struct lock_set *set, struct rng *r)
{
	const struct lock_row *row = alias_draw(set, set->inner, r);
	uint64_t u = rng_u64(r);
	uint64_t hold = quantiles_value(&row->hold,
					(uint64_t)((unsigned __int128)u * row->nested_share >> 64));

	return draw(row, hold, quantiles_value(&row->inner_gap, rng_u64(r)), r);
}
