/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_HOST_CACHE_H
#define KVMSIM_HOST_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/host/cache_level.h"
#include "model/sim/error.h"
#include "model/sim/sim.h"

/*
 * The host's caches, over the synthetic addresses of the structures that the model keeps: for each
 * pCPU a private cache (L2) and a data TLB, and one last level that all share.
 *
 * Every level is set associative with least-recently-used replacement, of the sizes that the
 * profile's params give (from data sheets). A level of size 0 does not exist: a Core 2 Duo has only
 * the shared one. A touch that misses is charged:
 *
 *	l2_miss    the line was not in the private cache: latency of the last level
 *	llc_miss   nor in the last level: the memory's latency above that one's
 *	dtlb_miss  the page was not in the data TLB
 *
 * and a hit costs nothing here: it is part of the instructions' price. The first level is left out
 * for the same reason. Lines are placed as by a physical address whose frame number is random
 * (hashed), since the kernel's allocations are scattered and synthetic addresses are not.
 *
 * A hardware prefetcher follows prefetch_streams frames of 4 KiB: a touch of the line after the one
 * touched last in such a frame brings the line in, but was fetched ahead and costs nothing. (Intel
 * 64 and IA-32 Optimization Reference Manual, 2.3.4 "Data prefetch" of the Core microarchitecture:
 * the DPL follows one stream per 4 KiB page, ascending.)
 *
 * What the guest itself and the unmodelled kernel touch is one number per profile, the param
 * guest_pollution: lines that stream through the caches at each VM entry.
 */
struct cache;
struct profile;

/* From the params line_bytes, l2_bytes, l2_ways, llc_bytes, llc_ways, dtlb_entries, dtlb_ways,
 * dtlb_page_bytes, dtlb_flush_on_entry, prefetch_streams, guest_pollution. *out is NULL, with 0
 * returned, where the profile has no level at all: no cache model. Errors: KVMSIM_EINVAL with a
 * message (a level that is no whole number of sets), KVMSIM_ENOMEM. */
int cache_create(const struct profile *profile, const struct kvmsim_errsink *errors,
		 struct cache **out);
/* NULL is fine. */
void cache_destroy(struct cache *c);

/* The task runs on pCPU @cpu from now on; a task that was never placed has a pCPU of its own.
 * KVMSIM_ENOMEM; KVMSIM_EINVAL when the task has touched already. */
int cache_place(struct cache *c, const struct task *t, uint32_t cpu);

/* [running] The task reads or writes @bytes at @addr: syncs, then looks up every line and page that
 * they lie in and charges the misses. A write takes the line away from other pCPUs' private caches.
 * @c NULL: nothing happens. 0, KVMSIM_ECANCELED or KVMSIM_ENOMEM. Allocates only at the first touch
 * of a task. */
int cache_touch(struct task *t, struct cache *c, uint64_t addr, uint32_t bytes, bool write);

/* [running] Brings lines and pages in without waiting for them: a prefetch instruction whose
 * latency other work covers. Otherwise as cache_touch() that reads. */
int cache_prefetch(struct task *t, struct cache *c, uint64_t addr, uint32_t bytes);

/* [running, synced] The guest runs on the task's pCPU: guest_pollution lines pass through its
 * caches, and its data TLB is emptied where dtlb_flush_on_entry is 1. @c may be NULL. */
int cache_vm_entry(struct task *t, struct cache *c);

/* [running, synced] @lines lines never seen before and never again stream through the task's
 * private cache and the last level. @c may be NULL. */
int cache_pollute(struct task *t, struct cache *c, uint64_t lines);

#endif
