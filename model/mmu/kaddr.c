// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/kaddr.h"

#include <string.h>

#include "model/mmu/spte.h"

void kaddr_init(struct kaddr *k)
{
	memset(k, 0, sizeof(*k));
	k->next_pfn = 1;
}

uint64_t kaddr_pages(struct kaddr *k, uint64_t bytes)
{
	uint64_t addr = KADDR_BASE + (k->next_pfn << PAGE_SHIFT);

	k->next_pfn += (bytes + PAGE_SIZE - 1) >> PAGE_SHIFT;
	return addr;
}

uint64_t kaddr_object(struct kaddr *k, uint32_t size)
{
	struct kaddr_slab *s = k->slab;

	size = size ? size : 1;
	while (s < &k->slab[KADDR_SIZES - 1] && s->size && s->size != size)
		s++;
	if (s->size != size) {
		s->size = size;
		s->left = 0;
	}
	if (!s->left) {
		s->left = PAGE_SIZE / size;
		s->next = kaddr_pages(k, PAGE_SIZE);
	}
	s->left--;
	s->next += size;
	return s->next - size;
}
