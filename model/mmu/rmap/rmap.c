// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"

#include <stdlib.h>
#include <string.h>

/* More sptes than this on one frame, and the whole chain is dropped (the kernel's threshold). */
#define RMAP_RECYCLE_THRESHOLD 1000

static struct pte_list_desc *desc_of(uintptr_t val)
{
	return (struct pte_list_desc *)(val & ~(uintptr_t)1);
}

static void desc_free(struct kvm *kvm, struct pte_list_desc *d)
{
	d->more = kvm->free_descs;
	kvm->free_descs = d;
}

static struct pte_list_desc *desc_alloc(struct task *t, struct kvm *kvm)
{
	struct pte_list_desc *d;

	mmu_stock_take_desc(t, kvm);
	if (!kvm->free_descs) {
		struct desc_chunk *c = malloc(sizeof(*c));

		if (!c) {
			kvm->dead = true;
			return NULL;
		}
		c->next = kvm->desc_chunks;
		kvm->desc_chunks = c;
		touch_shared(t); /* memslots take addresses too, under another lock */
		task_assert_first(t, "synthetic addresses");
		for (unsigned i = DESCS_PER_CHUNK; i-- > 0;) {
			c->desc[i].addr = kaddr_object(&kvm->kaddr, KADDR_PTE_LIST_BYTES);
			desc_free(kvm, &c->desc[i]);
		}
	}
	d = kvm->free_descs;
	kvm->free_descs = d->more;
	d->more = NULL;
	d->count = 0;
	return d;
}

static void desc_touch(struct task *t, struct kvm *kvm, const struct pte_list_desc *d, bool write)
{
	charge(t, COUNT_rmap_desc, 1);
	kvm_touch(t, kvm, d->addr, KADDR_PTE_LIST_BYTES, write);
}

long pte_list_add(struct task *t, struct kvm *kvm, struct kvm_rmap_head *head, uint64_t head_addr,
		  uint64_t *sptep)
{
	struct pte_list_desc *d;
	long n = 0;

	mmu_lock_assert_held(t, kvm, "a reverse map");
	kvm_touch(t, kvm, head_addr, sizeof(head->val), true);
	if (!head->val) {
		head->val = (uintptr_t)sptep;
		return 0;
	}
	if (!(head->val & 1)) {
		d = desc_alloc(t, kvm);
		if (!d)
			return KVMSIM_ENOMEM;
		desc_touch(t, kvm, d, true);
		d->sptes[0] = (uint64_t *)head->val;
		d->sptes[1] = sptep;
		d->count = 2;
		head->val = (uintptr_t)d | 1;
		return 1;
	}
	for (d = desc_of(head->val); d->count == PTE_LIST_EXT; d = d->more) {
		desc_touch(t, kvm, d, false);
		n += PTE_LIST_EXT;
		if (!d->more) {
			d->more = desc_alloc(t, kvm);
			if (!d->more)
				return KVMSIM_ENOMEM;
		}
	}
	desc_touch(t, kvm, d, true);
	n += d->count;
	d->sptes[d->count++] = sptep;
	return n;
}

static void desc_remove_at(struct kvm *kvm, struct kvm_rmap_head *head, struct pte_list_desc *prev,
			   struct pte_list_desc *d, unsigned i)
{
	d->sptes[i] = d->sptes[--d->count];
	if (d->count)
		return;
	if (prev)
		prev->more = d->more;
	else
		head->val = d->more ? (uintptr_t)d->more | 1 : 0;
	desc_free(kvm, d);
}

void pte_list_remove(struct task *t, struct kvm *kvm, struct kvm_rmap_head *head,
		     uint64_t head_addr, uint64_t *sptep)
{
	struct pte_list_desc *prev = NULL;

	mmu_lock_assert_held(t, kvm, "a reverse map");
	kvm_touch(t, kvm, head_addr, sizeof(head->val), true);
	if (!(head->val & 1)) {
		head->val = 0;
		return;
	}
	for (struct pte_list_desc *d = desc_of(head->val); d; prev = d, d = d->more) {
		desc_touch(t, kvm, d, true);
		for (unsigned i = 0; i < d->count; i++)
			if (d->sptes[i] == sptep) {
				desc_remove_at(kvm, head, prev, d, i);
				return;
			}
	}
}

uint64_t *rmap_first(struct task *t, struct kvm *kvm, const struct kvm_rmap_head *head,
		     struct rmap_iter *it)
{
	it->pos = 0;
	it->desc = NULL;
	if (!(head->val & 1))
		return (uint64_t *)head->val;
	it->desc = desc_of(head->val);
	desc_touch(t, kvm, it->desc, false);
	return it->desc->sptes[0];
}

uint64_t *rmap_next(struct task *t, struct kvm *kvm, struct rmap_iter *it)
{
	if (!it->desc)
		return NULL;
	if (++it->pos == it->desc->count) {
		it->desc = it->desc->more;
		it->pos = 0;
		if (!it->desc)
			return NULL;
		desc_touch(t, kvm, it->desc, false);
	}
	return it->desc->sptes[it->pos];
}

struct kvm_rmap_head *gfn_to_rmap(const struct kvm_memory_slot *slot, gfn_t gfn, int level,
				  uint64_t *addr)
{
	uint64_t i = memslot_index(slot, gfn, level);

	*addr = slot->rmap_addr[level - 1] + i * sizeof(struct kvm_rmap_head);
	return &slot->rmap[level - 1][i];
}

/* Clears a present leaf without looking at its chain. */
static void clear_leaf(struct task *t, struct kvm *kvm, uint64_t *sptep)
{
	const struct kvm_mmu_page *sp = sptep_to_sp(sptep);
	uint64_t old;

	charge(t, COUNT_zap_spte, 1);
	charge(t, COUNT_rmap_remove, 1);
	old = spte_read(t, kvm, sptep);
	spte_write(t, kvm, sptep, 0);
	kvm->stat[page_stat(sp->role.level)]--;
	if (old & PT_ACCESSED)
		host_gfn_used(t, kvm, sp_gfn(sp, spte_index(sptep)));
}

void drop_spte(struct task *t, struct kvm *kvm, uint64_t *sptep)
{
	struct kvm_mmu_page *sp = sptep_to_sp(sptep);
	gfn_t gfn = sp_gfn(sp, spte_index(sptep));
	struct kvm_memory_slot *slot = memslot_now(t, kvm, gfn);
	uint64_t addr;
	struct kvm_rmap_head *head;

	if (!spte_present(*sptep))
		return;
	clear_leaf(t, kvm, sptep);
	kvm_touch(t, kvm, sp->header_addr, KADDR_SP_HOT_BYTES, false);
	head = gfn_to_rmap(slot, gfn, sp->role.level, &addr);
	pte_list_remove(t, kvm, head, addr, sptep);
}

void zap_one_rmap_spte(struct task *t, struct kvm *kvm, struct kvm_rmap_head *head,
		       uint64_t head_addr, uint64_t *sptep)
{
	clear_leaf(t, kvm, sptep);
	pte_list_remove(t, kvm, head, head_addr, sptep);
}

bool zap_all_rmap_sptes(struct task *t, struct kvm *kvm, struct kvm_rmap_head *head,
			uint64_t head_addr)
{
	struct pte_list_desc *next;

	mmu_lock_assert_held(t, kvm, "a reverse map");
	if (!head->val)
		return false;
	if (!(head->val & 1)) {
		clear_leaf(t, kvm, (uint64_t *)head->val);
	} else {
		for (struct pte_list_desc *d = desc_of(head->val); d; d = next) {
			desc_touch(t, kvm, d, false);
			for (unsigned i = 0; i < d->count; i++)
				clear_leaf(t, kvm, d->sptes[i]);
			next = d->more;
			desc_free(kvm, d);
		}
	}
	kvm_touch(t, kvm, head_addr, sizeof(head->val), true);
	head->val = 0;
	return true;
}

bool zap_rmap(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn, int level)
{
	uint64_t addr;
	struct kvm_rmap_head *head = gfn_to_rmap(slot, gfn, level, &addr);

	charge(t, COUNT_rmap_head, 1);
	kvm_touch(t, kvm, addr, sizeof(head->val), false);
	return zap_all_rmap_sptes(t, kvm, head, addr);
}

void rmap_add(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t *sptep,
	      gfn_t gfn, unsigned access)
{
	struct kvm_mmu_page *sp = sptep_to_sp(sptep);
	unsigned index = spte_index(sptep);
	uint64_t addr;
	struct kvm_rmap_head *head = gfn_to_rmap(slot, gfn, sp->role.level, &addr);
	long n;

	if (!sp->role.direct) {
		sp->translation[index] = gfn << PAGE_SHIFT | access;
		kvm_touch(t, kvm, sp->translation_addr + index * 8, 8, true);
	}
	sp->slot_bitmap |= 1ull << slot->id;
	kvm->stat[page_stat(sp->role.level)]++;
	n = pte_list_add(t, kvm, head, addr, sptep);
	if (n > 0 && (uint64_t)n > kvm->stat[STAT_max_mmu_rmap_size])
		kvm->stat[STAT_max_mmu_rmap_size] = n;
	if (n > RMAP_RECYCLE_THRESHOLD) {
		zap_all_rmap_sptes(t, kvm, head, addr);
		kvm_flush_remote_tlbs(t, kvm);
	}
}
