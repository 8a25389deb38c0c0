/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_CONTENTION_H
#define KVMSIM_ANALYSIS_CONTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "model/host/lock.h"

/*
 * Waits for the host's locks by who waited, as `perf lock contention` has them: per lock and the
 * function that takes it how often it had to wait, how long altogether, at most and on average.
 *
 * The functions are those of the kernel's source. The compiler puts some of them into their
 * callers: where perf names kvm_vm_ioctl, here is what was put into it.
 */
struct contention_row {
	const char *lock, *caller;
	enum lock_kind kind;
	bool shared; /* for reading */
	uint64_t contended;
	cycles_t wait, longest;
};

struct contention {
	struct lock_watch watch; /* for kvm_watch */
	struct contention_row *rows;
	size_t n;
	bool failed; /* no memory: rows lack some */
};

/* @c stays where it is as long as something is watched. */
void contention_init(struct contention *c);
void contention_free(struct contention *c);
/* Forgets what was. */
void contention_start(struct contention *c);
/* By total wait, the longest first; where that is equal, by the names. */
void contention_sort(struct contention *c);

/* "spinlock", "rwlock:R", "rwlock:W", "mutex", "rwsem:R", "rwsem:W". */
const char *contention_type(const struct contention_row *row);
/* The table that perf prints, with times where @hz is not 0, else in @unit. 0 or KVMSIM_ENOMEM. */
int contention_print(const struct contention *c, uint64_t hz, const char *unit, FILE *to);
/* An array of objects, waits in the profile's unit. NULL: no memory. */
json_t *contention_json(const struct contention *c);

#endif
