// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/host/cache_level.h"

#include <stdlib.h>
#include <string.h>

int cache_level_init(struct cache_level *l, uint64_t entries, uint32_t ways)
{
	if (!ways || ways > UINT16_MAX || !entries || entries % ways || entries / ways > UINT32_MAX)
		return KVMSIM_EINVAL;
	*l = (struct cache_level){.sets = entries / ways, .ways = ways, .round = 1};
	l->tag = malloc(entries * sizeof(*l->tag));
	l->set = calloc(l->sets, sizeof(*l->set));
	if (l->tag && l->set)
		return 0;
	cache_level_free(l);
	return KVMSIM_ENOMEM;
}

void cache_level_free(struct cache_level *l)
{
	free(l->tag);
	free(l->set);
	free(l->group);
	free(l->frame_tag);
	free(l->seen);
	*l = (struct cache_level){0};
}

/* The least recent gives way to @tag, which is not in the set. */
static inline void push(struct cache_set *s, uint64_t *way, uint32_t ways, uint64_t tag)
{
	s->first = (s->first ? s->first : ways) - 1;
	s->used += s->used < ways;
	way[s->first] = tag;
}

/* Its lines of the frames that have come since the set was used last. */
static void take_frames(struct cache_level *l, struct cache_set *s, uint32_t index)
{
	const uint32_t group = index >> l->group_shift, frames = l->group[group].frames;
	const uint64_t *first_line = l->frame_tag + (size_t)group * l->ways;
	uint64_t *way = l->tag + (size_t)index * l->ways;
	uint32_t n = frames - s->taken, i;

	n = n < l->ways ? n : l->ways;
	for (i = (frames - n) % l->ways; n; n--) {
		push(s, way, l->ways, first_line[i] + index - (group << l->group_shift));
		i = i + 1 < l->ways ? i + 1 : 0;
	}
	s->taken = frames;
}

/* Most numbers of sets are powers of two, and a division takes longer than the rest. */
static inline uint32_t set_index(const struct cache_level *l, uint64_t set)
{
	return l->sets & (l->sets - 1) ? set % l->sets : set & (l->sets - 1);
}

/* The set as it is now: emptied if the level was cleared since it was used last. */
static inline struct cache_set *set_at(struct cache_level *l, uint32_t index)
{
	struct cache_set *s = &l->set[index];

	if (s->round != l->round)
		*s = (struct cache_set){.round = l->round};
	if (l->group) {
		const struct cache_group *g = &l->group[index >> l->group_shift];

		if (g->round == l->round && g->frames != s->taken)
			take_frames(l, s, index);
	}
	return s;
}

/* How far behind the most recent @tag is; -1: it is not in the set. */
static inline int find(const struct cache_level *l, const struct cache_set *s, const uint64_t *way,
		       uint64_t tag)
{
	uint32_t to_end = l->ways - s->first, n = s->used < to_end ? s->used : to_end;

	for (uint32_t i = 0; i < n; i++)
		if (way[s->first + i] == tag)
			return i;
	for (uint32_t i = 0; i < s->used - n; i++)
		if (way[i] == tag)
			return to_end + i;
	return -1;
}

static inline uint32_t way_at(const struct cache_level *l, const struct cache_set *s, uint32_t i)
{
	return s->first + i < l->ways ? s->first + i : s->first + i - l->ways;
}

bool cache_level_access(struct cache_level *l, uint64_t set, uint64_t tag)
{
	uint32_t index = set_index(l, set);
	struct cache_set *s = set_at(l, index);
	uint64_t *way = l->tag + (size_t)index * l->ways;
	int at = find(l, s, way, tag);

	if (at < 0) {
		push(s, way, l->ways, tag);
		return false;
	}
	for (; at; at--)
		way[way_at(l, s, at)] = way[way_at(l, s, at - 1)];
	way[s->first] = tag;
	return true;
}

void cache_level_invalidate(struct cache_level *l, uint64_t set, uint64_t tag)
{
	uint32_t index = set_index(l, set);
	struct cache_set *s = set_at(l, index);
	uint64_t *way = l->tag + (size_t)index * l->ways;
	int at = find(l, s, way, tag);

	if (at < 0)
		return;
	for (; at + 1 < s->used; at++)
		way[way_at(l, s, at)] = way[way_at(l, s, at + 1)];
	s->used--;
}

void cache_level_clear(struct cache_level *l)
{
	if (++l->round) /* sets are emptied when they are used next */
		return;
	memset(l->set, 0, l->sets * sizeof(*l->set));
	if (l->group) {
		memset(l->group, 0, (l->sets >> l->group_shift) * sizeof(*l->group));
		memset(l->seen, 0, ((size_t)l->seen_mask + 1) * sizeof(*l->seen));
	}
	l->round = 1;
}

int cache_level_use_frames(struct cache_level *l, uint32_t lines_shift)
{
	size_t entries = (size_t)l->sets * l->ways;

	if (l->sets & ((1u << lines_shift) - 1))
		return 0;
	while (l->seen_mask < entries - 1 && l->seen_mask < UINT32_MAX)
		l->seen_mask = 2 * l->seen_mask + 1;
	l->group_shift = lines_shift;
	l->group = calloc(l->sets >> lines_shift, sizeof(*l->group));
	l->frame_tag = malloc((entries >> lines_shift) * sizeof(*l->frame_tag));
	l->seen = calloc((size_t)l->seen_mask + 1, sizeof(*l->seen));
	return l->group && l->frame_tag && l->seen ? 0 : KVMSIM_ENOMEM;
}

/* Two places for each (B. H. Bloom, CACM 13/7, 1970): few frames share both. */
bool cache_level_frame_is_new(struct cache_level *l, uint64_t hash)
{
	if (!l->group)
		return false;
	uint32_t *a = &l->seen[hash >> 32 & l->seen_mask], *b = &l->seen[hash & l->seen_mask];
	bool is_new = *a != l->round || *b != l->round;

	*a = *b = l->round;
	return is_new;
}

void cache_level_enter_frame(struct cache_level *l, uint64_t set, uint64_t tag)
{
	uint32_t group = set_index(l, set) >> l->group_shift;
	struct cache_group *g = &l->group[group];

	if (g->round != l->round)
		*g = (struct cache_group){.round = l->round};
	l->frame_tag[(size_t)group * l->ways + g->frames++ % l->ways] = tag;
}
