/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_PARALLEL_H
#define KVMSIM_WORKLOADS_PARALLEL_H

#include <stdint.h>

/*
 * Guests that access pages while the dirty log is collected: what they access, and what a
 * collection must and may report then. The model's cases P and the kernel's recorder have these two
 * things in common, and nothing else of them; plain C.
 *
 * A vCPU takes turns: a 4-byte store to, or load from, one page each, of a list. Before each it
 * stores how many turns are left, this one included, so that whoever looks knows: of n turns, with
 * p left, the first n - p are completed, and of the first n - p + 1 each has begun or will at once.
 */
#define PARALLEL_VCPUS 2

/* Turn @i of a list: the page and whether it is a store. */
#define PARALLEL_TURN(page, write) ((uint32_t)(page) << 1 | (write))
#define PARALLEL_PAGE(turn)	   ((turn) >> 1)
#define PARALLEL_WRITE(turn)	   ((turn)&1)

/* Fills @turns with the @n turns of list @number (from 0) for vCPU @vcpu in a slot of @slot_pages.
 * From x = 12345 + n + number * PARALLEL_VCPUS + vcpu each turn steps x = x * 6364136223846793005
 * + 1442695040888963407 mod 2^64; the page is (x >> 33) mod @slot_pages; bit 32 says store. */
void parallel_list(unsigned vcpu, unsigned number, uint64_t slot_pages, uint64_t n,
		   uint32_t *turns);

/* One collection of the log: turns of each vCPU that were completed when it began; that had begun
 * when the call returned after which it can report no more; what it reported. */
struct parallel_collection {
	uint64_t completed[PARALLEL_VCPUS], begun[PARALLEL_VCPUS];
	const uint64_t *bitmap; /* (slot_pages + 63) / 64 words */
};

struct parallel_run {
	uint64_t slot_pages, n; /* turns of each vCPU */
	const uint32_t *turns[PARALLEL_VCPUS];
	const struct parallel_collection *c; /* in order; the last one began when all had ended */
	uint64_t n_collections;
};

struct parallel_verdict {
	uint64_t missed; /* stores completed before a collection began, reported neither by it nor
			  * by an earlier one that had not returned when the store began */
	uint64_t early;	 /* pages reported of which no access begun by then could be the cause: all
			  * were completed before the collection before began */
	uint64_t during; /* pages reported by all collections but the last */
};

/* @marks is room for slot_pages bytes. */
struct parallel_verdict parallel_judge(const struct parallel_run *r, uint8_t *marks);

#endif
