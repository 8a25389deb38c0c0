// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/parallel.h"

#include <stdbool.h>
#include <string.h>

void parallel_list(unsigned vcpu, unsigned number, uint64_t slot_pages, uint64_t n, uint32_t *turns)
{
	uint64_t x = 12345 + n + (uint64_t)number * PARALLEL_VCPUS + vcpu;

	for (uint64_t i = 0; i < n; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		turns[i] = PARALLEL_TURN((x >> 33) % slot_pages, x >> 32 & 1);
	}
}

static bool reported(const struct parallel_collection *c, uint64_t page)
{
	return c->bitmap[page / 64] >> (page % 64) & 1;
}

static uint64_t pages_of(const struct parallel_collection *c, uint64_t slot_pages)
{
	uint64_t n = 0;

	for (uint64_t w = 0; w < (slot_pages + 63) / 64; w++)
		n += (uint64_t)__builtin_popcountll(c->bitmap[w]);
	return n;
}

/* Stores of @vcpu that no collection reported in time. */
static uint64_t missed_by(const struct parallel_run *r, unsigned vcpu)
{
	uint64_t missed = 0;

	for (uint64_t i = 0; i < r->n; i++) {
		bool done = false;

		if (!PARALLEL_WRITE(r->turns[vcpu][i]))
			continue;
		for (uint64_t k = 0; k < r->n_collections && !done; k++) {
			const struct parallel_collection *c = &r->c[k];

			/* what had not begun when it returned it cannot have reported */
			if (i < c->begun[vcpu] && reported(c, PARALLEL_PAGE(r->turns[vcpu][i])))
				done = true;
			else if (i < c->completed[vcpu])
				break;
		}
		missed += !done;
	}
	return missed;
}

/* Pages of collection @k that no access could be the cause of. */
static uint64_t early_in(const struct parallel_run *r, uint64_t k, uint8_t *marks)
{
	uint64_t early = 0;

	memset(marks, 0, r->slot_pages);
	for (unsigned v = 0; v < PARALLEL_VCPUS; v++)
		for (uint64_t i = k ? r->c[k - 1].completed[v] : 0; i < r->c[k].begun[v]; i++)
			marks[PARALLEL_PAGE(r->turns[v][i])] = 1;
	for (uint64_t page = 0; page < r->slot_pages; page++)
		early += reported(&r->c[k], page) && !marks[page];
	return early;
}

struct parallel_verdict parallel_judge(const struct parallel_run *r, uint8_t *marks)
{
	struct parallel_verdict v = {0};

	for (unsigned vcpu = 0; vcpu < PARALLEL_VCPUS; vcpu++)
		v.missed += missed_by(r, vcpu);
	for (uint64_t k = 0; k < r->n_collections; k++) {
		v.early += early_in(r, k, marks);
		v.during += k + 1 < r->n_collections ? pages_of(&r->c[k], r->slot_pages) : 0;
	}
	return v;
}
