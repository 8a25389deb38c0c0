/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_LOCK_SET_H
#define KVMSIM_WORKLOADS_LOCK_SET_H

#include <stddef.h>
#include <stdint.h>

#include "model/sim/error.h"
#include "model/sim/rng.h"
#include "workloads/quantiles.h"

/*
 * The spin locks of a recorded guest, as `kvmsim record qemu --scenario dbench` writes them, made
 * into what one of its clients takes: how often which, for how long, how long after the one before.
 *
 * Each row is one lock, or the locks of one function that are rare one by one. Each acquisition of
 * a row is a draw of its own: the row by how often it was taken, the gap before it and its hold by
 * their quantiles, whether interrupts are off and whether it is tried first by the share of those.
 *
 * Whose locks those are: a lock that the next vCPU seldom took over (less than SHARED_PERCENT of
 * the times) is a client's own; one that all took in turn is the VM's, one for all clients. Of a
 * row of many locks a share is the VM's: as many times as another vCPU had the lock before, and
 * those times that the same vCPU takes it twice in a row by chance, 1 of n. They are as few locks
 * as the recording allows, whose rows say that each of them is less than a thousandth of all.
 *
 * Locks taken while another is held: inside which one was not recorded. A nested acquisition goes
 * into the first hold that has the time for it (its gap inside and its own hold), as many as there
 * were. Of a row whose locks were taken both ways, the nested holds are the shorter ones: what lies
 * inside is not longer than what is around it.
 *
 * What a recording of few vCPUs cannot say of many, and is assumed: that each client of 32 takes
 * the locks that all share as often as one of 4 did, and that no further ones are shared. What its
 * emulator distorts: vCPUs ran by turns on one thread, so that a lock moved less often between them
 * than it does between real ones; a lock that all 4 took counts as shared if it moved at all often.
 */
#define SHARED_PERCENT 1

struct lock_row {
	char caller[48], symbol[48]; /* symbol: empty for memory that was allocated */
	uint64_t objects, vcpus, taken, moved, nested, irq, tried;
	uint64_t work; /* of the whole recording: 0 but in the row of all */
	struct quantiles hold, gap, inner_gap;
	/* Filled in by lock_set_finish(): */
	uint32_t own, shared;  /* classes; LOCK_SET_NONE: it has none of these */
	uint64_t share;	       /* of its acquisitions that are of the VM's locks, of 2^32 */
	uint64_t nested_share; /* that are nested, of 2^64 */
};
#define LOCK_SET_NONE UINT32_MAX

/* Locks of one function and symbol, of the VM or of each client. */
struct lock_set_class {
	const char *symbol, *caller;
	uint64_t taken;
	uint32_t locks; /* of the VM; 0: each client has two, the second for when it holds one */
};

struct lock_alias {
	uint64_t below; /* of 2^64: this one, else the other */
	uint32_t other;
};

struct lock_set {
	struct lock_row *rows;
	size_t n_rows;
	struct lock_set_class *classes; /* own and shared ones of a row apart */
	size_t n_classes;
	uint64_t vcpus, work, taken, nested; /* of the recording; work in instructions */
	struct lock_alias *outer, *inner;    /* [n_rows], by how often */
	uint64_t inner_per_outer;	     /* of 2^32 */
};

/* @set begins as {0}. Copies @row, but for the row of all (no caller), of which it keeps vcpus and
 * work. KVMSIM_ENOMEM; KVMSIM_EINVAL: more nested than taken, or the like; no message. */
int lock_set_add(struct lock_set *set, const struct lock_row *row);
/* When all rows are there. KVMSIM_EINVAL (no row, no row of all; no message), KVMSIM_ENOMEM. */
int lock_set_finish(struct lock_set *set);
void lock_set_free(struct lock_set *set);

struct lock_draw {
	uint32_t class;
	uint64_t gap, hold; /* instructions; gap: since it held none, or since the one around */
	bool irq, tried;
};
/* One that is not nested, and one that is. */
struct lock_draw lock_set_outer(const struct lock_set *set, struct rng *r);
struct lock_draw lock_set_inner(const struct lock_set *set, struct rng *r);

#endif
