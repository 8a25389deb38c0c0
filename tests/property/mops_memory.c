// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "tests/property/mops_oracle.h"

/* Guest memory as a history of stores, and walks over the guest's tables in it. */

/* ---- memory ---- */

bool oracle_is_table(uint64_t gpa)
{
	return gpa >> 12 >= MOPS_TABLES_GFN && gpa >> 12 < MOPS_TABLES_GFN + MOPS_TABLES;
}

static size_t place_of(const struct oracle *o, uint64_t gpa)
{
	size_t i = (gpa * 0x9e3779b97f4a7c15ull >> 40) & (o->room - 1);

	while (o->word[i].gpa && o->word[i].gpa != gpa)
		i = (i + 1) & (o->room - 1);
	return i;
}

static void grow(struct oracle *o)
{
	struct oracle_word *old = o->word;
	size_t n = o->room;

	o->room = n ? 2 * n : 1024;
	o->word = calloc(o->room, sizeof(*o->word));
	if (!o->word)
		abort();
	for (size_t i = 0; i < n; i++)
		if (old[i].gpa)
			o->word[place_of(o, old[i].gpa)] = old[i];
	free(old);
}

void oracle_add_store(struct oracle_word *w, struct oracle_store s)
{
	if (w->n == w->room) {
		w->room = w->room ? 2 * w->room : 4;
		w->store = realloc(w->store, w->room * sizeof(*w->store));
		if (!w->store)
			abort();
	}
	w->store[w->n++] = s;
}

/* The word, with what it holds at first. */
struct oracle_word *oracle_word_at(struct oracle *o, uint64_t gpa)
{
	struct oracle_word *w;

	gpa = oracle_home(gpa) & ~7ull;
	if (2 * (o->n_words + 1) > o->room)
		grow(o);
	w = &o->word[place_of(o, gpa)];
	if (w->gpa)
		return w;
	o->n_words++;
	w->gpa = gpa;
	oracle_add_store(
		w, (struct oracle_store){.mask = 0xff,
					 .value = oracle_is_table(gpa) && o->m->mode != GUEST_FLAT32
							  ? mops_first_word(o->m, gpa)
							  : 0});
	return w;
}

/* What began last among the stores of byte @b that were over before @begin: older ones are gone. */
uint64_t oracle_replaced_until(const struct oracle_word *w, unsigned b, uint64_t begin)
{
	uint64_t last = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct oracle_store *s = &w->store[i];

		if (!s->maybe && (s->mask >> b & 1) && s->end < begin && s->begin > last)
			last = s->begin;
	}
	return last;
}

/* Before when nobody looks any more: at tables, whoever has not flushed since. */
static uint64_t nobody_looks_before(const struct oracle *o, bool table)
{
	uint64_t least = o->now;

	for (unsigned v = 0; v < o->m->n_vcpus; v++) {
		const struct oracle_vcpu *c = &o->vcpu[v];

		if (c->op.busy && c->op.begin < least)
			least = c->op.begin;
		if (table && !c->ended && c->flushed < least)
			least = c->flushed;
	}
	return least;
}

static void forget_old(struct oracle *o, struct oracle_word *w)
{
	uint64_t before = nobody_looks_before(o, oracle_is_table(w->gpa)), until = ORACLE_NEVER;
	size_t n = 0;

	for (unsigned b = 0; b < 8; b++) {
		uint64_t t = oracle_replaced_until(w, b, before);

		until = t < until ? t : until;
	}
	for (size_t i = 0; i < w->n; i++)
		if (w->store[i].end >= until)
			w->store[n++] = w->store[i];
	w->n = n;
}

void oracle_store(struct oracle *o, uint64_t gpa, struct oracle_store s)
{
	struct oracle_word *w = oracle_word_at(o, gpa);

	oracle_add_store(w, s);
	if (w->n > 24)
		forget_old(o, w);
}

/* ---- the guest's tables ---- */

struct walk {
	struct oracle *o;
	uint64_t gva, from;
	bool write, fetch;
	unsigned mode;
	struct oracle_targets *t;
};
#define MAY_EXECUTE MOPS_NX /* of what is granted, the other way round than in an entry */
#define ALL	    (MOPS_W | MOPS_U | MAY_EXECUTE)

/* By what all entries on the way grant. */
static bool permitted(const struct walk *w, uint64_t grants)
{
	bool user = w->mode & MOPS_USER;

	if (user ? !(grants & MOPS_U) : (grants & MOPS_U) && (w->mode & MOPS_SMAP) && !w->fetch)
		return false;
	if (w->fetch &&
	    (!(grants & MAY_EXECUTE) || (!user && (grants & MOPS_U) && (w->mode & MOPS_SMEP))))
		return false;
	return !w->write || (grants & MOPS_W) || (!user && !(w->mode & MOPS_WP));
}

static void add_target(struct oracle_targets *t, uint64_t gpa)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->gpa[i] == gpa)
			return;
	if (t->n == ORACLE_MOST)
		t->more = true;
	else
		t->gpa[t->n++] = gpa;
}

static void walk_table(const struct walk *w, uint64_t table, int level, uint64_t grants);

static void walk_entry(const struct walk *w, uint64_t pte, int level, uint64_t grants)
{
	uint64_t offset = (1ull << (12 + mops_bits(w->o->m) * (level - 1))) - 1;

	if (level < 3 || w->o->m->mode != GUEST_PAE) /* PDPTEs of PAE grant all */
		grants &= pte ^ MOPS_NX;
	if ((pte & MOPS_P) && (pte & MOPS_NX) && !(w->mode & MOPS_NXE)) {
		w->t->fault = true; /* reserved */
		/* What was shadowed with EFER.NXE set remains, since that is in no page's role. */
		if (w->o->m->paging != PAGING_SHADOW)
			return;
	}
	if ((pte & MOPS_P) && level > 1 && !(pte & MOPS_PS))
		walk_table(w, pte, level - 1, grants);
	else if (!(pte & MOPS_P) || !permitted(w, grants))
		w->t->fault = true;
	else
		add_target(w->t, (pte & 0xffffffffff000ull & ~offset) | (w->gva & offset));
}

/* By every value that the entry may have or have had since w->from. */
static void walk_table(const struct walk *w, uint64_t table, int level, uint64_t grants)
{
	unsigned bits = mops_bits(w->o->m), bytes = mops_entry_bytes(w->o->m);
	uint64_t index = w->gva >> (12 + bits * (level - 1)) & ((1u << bits) - 1);
	uint64_t at = (table & 0xffffffffff000ull) + index * bytes, gpa = at & ~7ull;
	unsigned shift = (unsigned)(at & 7) * 8;
	uint64_t mask = bytes == 8 ? UINT64_MAX : UINT32_MAX;
	struct oracle_word *word = oracle_word_at(w->o, gpa);
	uint64_t until = oracle_replaced_until(word, 0, w->from);
	size_t n = word->n;

	for (size_t i = 0; i < n; i++) {
		word = oracle_word_at(w->o, gpa); /* the table may grow meanwhile */
		if (word->store[i].end >= until)
			walk_entry(w, word->store[i].value >> shift & mask, level, grants);
	}
	for (unsigned v = 0; v < w->o->m->n_vcpus; v++) {
		const struct oracle_pending *p = &w->o->vcpu[v].op;

		if (p->busy && p->stores && (p->gva & ~7ull) == gpa)
			walk_entry(w, p->value >> shift & mask, level, grants);
	}
}

void oracle_find_targets(struct oracle *o, unsigned v, uint64_t gva, bool write, uint64_t from,
			 struct oracle_targets *t)
{
	const struct oracle_vcpu *c = &o->vcpu[v];
	const struct walk w = {o, gva, from, write, c->op.fetch, c->mode, t};

	memset(t, 0, sizeof(*t));
	if (o->m->mode == GUEST_FLAT32)
		add_target(t, gva);
	else
		walk_table(&w, mops_cr3(o->m, c->root), mops_levels(o->m), ALL);
}

/* When this vCPU last flushed the page. */
static uint64_t *flush_of(struct oracle *o, unsigned v, uint64_t gva)
{
	unsigned bits = mops_bits(o->m);
	uint64_t block = gva >> (12 + bits), i = 0;

	if (block >= MOPS_WINDOW(0) && block < MOPS_WINDOW(MOPS_MAX_WINDOWS))
		i = 1 + block - MOPS_WINDOW(0);
	else if (block != MOPS_TABLES_GFN >> bits)
		i = MOPS_MAX_WINDOWS + 1;
	return &o->vcpu[v].page_flushed[i][gva >> 12 & ((1u << bits) - 1)];
}

static uint64_t cached_since(struct oracle *o, unsigned v, uint64_t gva)
{
	uint64_t all = o->vcpu[v].flushed, page = *flush_of(o, v, gva);

	return page > all ? page : all;
}

/* Where the access that is under way may go, or may have gone. */
void oracle_targets_of(struct oracle *o, unsigned v, uint64_t gva, struct oracle_targets *t)
{
	const struct oracle_pending *p = &o->vcpu[v].op;
	uint64_t since = cached_since(o, v, gva);

	oracle_find_targets(o, v, gva, p->stores, since < p->begin ? since : p->begin, t);
}

void oracle_flushed(struct oracle *o, unsigned v, uint64_t begin)
{
	o->vcpu[v].flushed = begin;
}

void oracle_page_flushed(struct oracle *o, unsigned v, uint64_t gva, uint64_t begin)
{
	*flush_of(o, v, gva) = begin;
}
