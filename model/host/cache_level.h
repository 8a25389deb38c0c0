/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_HOST_CACHE_LEVEL_H
#define KVMSIM_HOST_CACHE_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

#include "model/sim/error.h"

/*
 * One level of a cache: sets of tags, the least recently used of a set giving way. For cache.h,
 * for tests and for whoever wants only that.
 *
 * A walk reads tables: whole frames of memory that nothing has touched since the guest's pollution
 * emptied the cache. A frame's lines go to as many sets, side by side: a group. So if a frame was
 * not looked up since the level was cleared, none of its lines is there, and it is enough to note
 * it once for its group: each set takes its line when it is next looked at, in the order in which
 * the frames came.
 */
struct cache_level {
	uint64_t *tag; /* sets * ways: the ways of a set are a ring, from .first on most recently
			* used first */
	struct cache_set {
		uint32_t round; /* the set is empty unless this is the level's */
		uint32_t taken; /* of its group's frames */
		uint16_t first, used;
	} * set;
	uint32_t sets, ways, round;
	struct cache_group {
		uint32_t round, frames;
	} * group;	     /* NULL: no frames */
	uint64_t *frame_tag; /* groups * ways: of the first lines of a group's last frames */
	uint32_t group_shift;
	uint32_t *seen; /* rounds in which frames of these hashes were looked up last */
	uint32_t seen_mask;
};

/* KVMSIM_EINVAL unless @entries is a multiple of @ways and both are positive; KVMSIM_ENOMEM. */
int cache_level_init(struct cache_level *l, uint64_t entries, uint32_t ways);
/* For frames of 1 << @lines_shift lines, if that many sets are a group. KVMSIM_ENOMEM. */
int cache_level_use_frames(struct cache_level *l, uint32_t lines_shift);
void cache_level_free(struct cache_level *l);
/* Looks @tag (not 0) up in set @set % sets and makes it the most recent there: true on a hit. */
bool cache_level_access(struct cache_level *l, uint64_t set, uint64_t tag);
/* Whether the frame of @hash was not looked up since the level was cleared, which is known by this
 * call alone: it comes before any access to a line of the frame. False where it is not sure. */
bool cache_level_frame_is_new(struct cache_level *l, uint64_t hash);
/* Does what accesses to all lines of a frame that is new do: @tag, @tag + 1... in @set, @set + 1...
 * None hits. */
void cache_level_enter_frame(struct cache_level *l, uint64_t set, uint64_t tag);
/* Forgets @tag, if it is there. */
void cache_level_invalidate(struct cache_level *l, uint64_t set, uint64_t tag);
void cache_level_clear(struct cache_level *l);

#endif
