// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "tests/property/mops_oracle.h"

/* Where memory was when, and what the dirty log owes of it. */

#define MOVED ((MOPS_MOVED_GFN - MOPS_DATA2_GFN) << 12)

uint64_t oracle_home(uint64_t gpa)
{
	return (gpa >> 12) - MOPS_MOVED_GFN < MOPS_DATA2_PAGES ? gpa - MOVED : gpa;
}

/* By where it is at home; @place: which of its places @gpa is in. */
static struct oracle_slot *slot_of(struct oracle *o, uint64_t gpa, unsigned *place)
{
	uint64_t home = oracle_home(gpa);

	*place = home != gpa;
	for (unsigned s = 0; s < MOPS_SLOTS; s++)
		if ((home >> 12) - o->slot[s].base < o->slot[s].npages)
			return &o->slot[s];
	return NULL;
}

/* Whether it may have been so at some time since @begin. */
static bool was(const struct oracle_span *s, uint64_t begin)
{
	return s->from != ORACLE_NEVER && s->to >= begin;
}

bool oracle_may_be_memory(struct oracle *o, uint64_t gpa, bool store, uint64_t begin)
{
	unsigned place;
	const struct oracle_slot *s = slot_of(o, gpa, &place);

	return s && was(&s->there[place], begin) && !(store && !was(&s->ram, begin));
}

bool oracle_may_be_device(struct oracle *o, uint64_t gpa, bool store, uint64_t begin)
{
	unsigned place;
	const struct oracle_slot *s = slot_of(o, gpa, &place);

	return !s || was(&s->absent[place], begin) || (store && was(&s->rom, begin));
}

bool oracle_may_be_protected(struct oracle *o, uint64_t gpa, uint64_t begin)
{
	unsigned place;
	const struct oracle_slot *s = slot_of(o, gpa, &place);

	return s && was(&s->protected, begin);
}

void oracle_begins(struct oracle *o, struct oracle_span *s)
{
	*s = (struct oracle_span){oracle_tick(o), ORACLE_NEVER};
}

void oracle_ends(struct oracle *o, struct oracle_span *s)
{
	s->to = oracle_tick(o);
}

/* ---- the dirty log ---- */

void oracle_note_dirty(struct oracle *o, uint64_t gpa, uint64_t begin)
{
	unsigned place;
	struct oracle_slot *s = slot_of(o, gpa, &place);

	if (s && s->logged != ORACLE_NEVER && begin > s->logged)
		s->stored[(oracle_home(gpa) >> 12) - s->base] = begin;
}

void oracle_log(struct oracle *o, unsigned slot, bool on)
{
	struct oracle_slot *s = &o->slot[slot];

	s->logged = on ? oracle_tick(o) : ORACLE_NEVER;
	memset(s->stored, 0, s->npages * 8);
	memset(s->reported, 0, s->npages * 8);
}

void oracle_reported(struct oracle *o, unsigned slot, const uint64_t *bitmap)
{
	struct oracle_slot *s = &o->slot[slot];

	oracle_tick(o);
	for (uint64_t i = 0; i < s->npages; i++)
		if (bitmap[i / 64] >> (i % 64) & 1)
			s->reported[i] = o->now;
}

uint64_t oracle_lost(const struct oracle *o, unsigned slot, uint64_t *first)
{
	const struct oracle_slot *s = &o->slot[slot];
	uint64_t n = 0;

	for (uint64_t i = 0; s->logged != ORACLE_NEVER && i < s->npages; i++)
		if (s->stored[i] > s->reported[i] && !n++)
			*first = s->base + i;
	return n;
}

/* ---- all of them ---- */

bool oracle_init_slots(struct oracle *o)
{
	static const uint64_t where[MOPS_SLOTS][2] = {{MOPS_TABLES_GFN, MOPS_TABLES},
						      {MOPS_DATA_GFN, MOPS_DATA_PAGES},
						      {MOPS_DATA2_GFN, MOPS_DATA2_PAGES}};
	const struct oracle_span always = {0, ORACLE_NEVER}, never = {ORACLE_NEVER, 0};
	bool ok = true;

	for (unsigned i = 0; i < MOPS_SLOTS; i++) {
		struct oracle_slot *s = &o->slot[i];

		s->base = where[i][0];
		s->npages = where[i][1];
		s->there[0] = s->absent[1] = s->ram = always;
		s->there[1] = s->absent[0] = s->rom = s->protected = never;
		s->logged = ORACLE_NEVER;
		s->is_there = true;
		s->stored = calloc(s->npages, 8);
		s->reported = calloc(s->npages, 8);
		ok &= s->stored && s->reported;
	}
	return ok;
}

void oracle_free_slots(struct oracle *o)
{
	for (unsigned s = 0; s < MOPS_SLOTS; s++) {
		free(o->slot[s].stored);
		free(o->slot[s].reported);
	}
}
