// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/gmem.h"

#include <stdlib.h>
#include <string.h>

/* Multiplicative hashing; the golden ratio of 64 bits. */
static size_t gmem_slot(const struct gmem *g, gfn_t gfn)
{
	return (gfn * 0x9e3779b97f4a7c15ull >> 32) & (g->capacity - 1);
}

static struct gmem_entry *gmem_find(const struct gmem *g, gfn_t gfn)
{
	size_t i = gmem_slot(g, gfn);

	while (g->table[i].page && g->table[i].gfn != gfn)
		i = (i + 1) & (g->capacity - 1);
	return &g->table[i];
}

static bool gmem_grow(struct gmem *g)
{
	struct gmem bigger = {.capacity = g->capacity ? 2 * g->capacity : 64, .used = g->used};

	bigger.table = calloc(bigger.capacity, sizeof(*bigger.table));
	if (!bigger.table)
		return false;
	for (size_t i = 0; i < g->capacity; i++)
		if (g->table[i].page)
			*gmem_find(&bigger, g->table[i].gfn) = g->table[i];
	free(g->table);
	*g = bigger;
	return true;
}

void gmem_free(struct gmem *g)
{
	for (size_t i = 0; i < g->capacity; i++)
		free(g->table[i].page);
	free(g->table);
	memset(g, 0, sizeof(*g));
}

uint64_t *gmem_page(const struct gmem *g, gfn_t gfn)
{
	return g->capacity ? gmem_find(g, gfn)->page : NULL;
}

uint64_t *gmem_page_create(struct gmem *g, gfn_t gfn)
{
	struct gmem_entry *e;

	if (2 * (g->used + 1) > g->capacity && !gmem_grow(g))
		return NULL;
	e = gmem_find(g, gfn);
	if (!e->page) {
		e->page = calloc(PTES_PER_PAGE, sizeof(*e->page));
		if (!e->page)
			return NULL;
		e->gfn = gfn;
		g->used++;
	}
	return e->page;
}

uint64_t gmem_read(const struct gmem *g, gpa_t gpa, unsigned len)
{
	const uint64_t *page = gmem_page(g, gpa >> PAGE_SHIFT);
	uint64_t value = 0;

	if (page)
		memcpy(&value, (const char *)page + (gpa & (PAGE_SIZE - 1)), len);
	return value;
}

bool gmem_write(struct gmem *g, gpa_t gpa, unsigned len, uint64_t value, bool create)
{
	gfn_t gfn = gpa >> PAGE_SHIFT;
	uint64_t *page = create ? gmem_page_create(g, gfn) : gmem_page(g, gfn);

	if (page)
		memcpy((char *)page + (gpa & (PAGE_SIZE - 1)), &value, len);
	return page || !create;
}

void gmem_clear(struct gmem *g, gfn_t gfn, uint64_t npages)
{
	for (size_t i = 0; i < g->capacity; i++)
		if (g->table[i].page && g->table[i].gfn - gfn < npages)
			memset(g->table[i].page, 0, PAGE_SIZE);
}

bool gmem_move(struct gmem *g, gfn_t from, gfn_t to, uint64_t npages)
{
	struct gmem moved = {.capacity = g->capacity};

	if (!g->capacity)
		return true;
	moved.table = calloc(moved.capacity, sizeof(*moved.table));
	if (!moved.table)
		return false;
	for (size_t i = 0; i < g->capacity; i++) {
		struct gmem_entry e = g->table[i];

		if (!e.page)
			continue;
		if (e.gfn - from < npages) {
			e.gfn += to - from;
		} else if (e.gfn - to < npages) { /* of a slot that is gone */
			free(e.page);
			continue;
		}
		*gmem_find(&moved, e.gfn) = e;
		moved.used++;
	}
	free(g->table);
	*g = moved;
	return true;
}
