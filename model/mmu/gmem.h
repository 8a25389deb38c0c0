/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_GMEM_H
#define KVMSIM_MMU_GMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/mmu/spte.h"

/*
 * What the guest's memory holds, for the pages whose contents the model keeps: page tables, lists,
 * code. Other pages read as zero.
 */
struct gmem {
	struct gmem_entry {
		gfn_t gfn;
		uint64_t *page; /* NULL: free */
	} * table;
	size_t capacity, used; /* capacity is a power of two or 0 */
};

void gmem_free(struct gmem *g);
/* The page's 512 words, or NULL where nothing is kept. */
uint64_t *gmem_page(const struct gmem *g, gfn_t gfn);
/* The same, made (of zeros) if it does not exist. NULL: out of memory. */
uint64_t *gmem_page_create(struct gmem *g, gfn_t gfn);
/* @len is 1 to 8 bytes that lie within one page. */
uint64_t gmem_read(const struct gmem *g, gpa_t gpa, unsigned len);
/* Stores into a page that exists, or any if @create. False: out of memory. */
bool gmem_write(struct gmem *g, gpa_t gpa, unsigned len, uint64_t value, bool create);

/* What the @npages frames from @from on hold is what those from @to on hold, from now on, and the
 * former hold nothing but what both ranges have. False: out of memory, and nothing has moved. */
bool gmem_move(struct gmem *g, gfn_t from, gfn_t to, uint64_t npages);

/* The frames from @gfn on read as zero again; pages that exist stay. */
void gmem_clear(struct gmem *g, gfn_t gfn, uint64_t npages);

#endif
