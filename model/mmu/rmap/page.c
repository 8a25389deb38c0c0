// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"

#include <stdlib.h>
#include <string.h>

#include "model/policy/preset.h"

/* Guest memory lies above the frames that the model's own structures have. */
#define FIRST_GUEST_PFN (1ull << 28)

/* hash_64() of the kernel: the golden ratio's upper bits, as collisions are counted. */
static unsigned sp_hash(const struct kvm *kvm, gfn_t gfn)
{
	return gfn * 0x61c8864680b583ebull >> (64 - kvm->preset->hash_shift);
}

gfn_t sp_gfn(const struct kvm_mmu_page *sp, unsigned index)
{
	if (!sp->role.direct)
		return sp->translation[index] >> PAGE_SHIFT;
	return sp->gfn + ((gfn_t)index << (9 * (sp->role.level - 1)));
}

struct kvm_mmu_page *spte_to_child(const struct kvm *kvm, uint64_t spte)
{
	return kvm->page_of_pfn[spte_pfn(spte)];
}

bool sp_obsolete(const struct kvm *kvm, const struct kvm_mmu_page *sp)
{
	return sp->role.invalid || (!sp->tdp_mmu_page && sp->valid_gen != kvm->valid_gen);
}

static struct kvm_mmu_page *sp_new(struct task *t, struct kvm *kvm)
{
	struct kvm_mmu_page *sp, **map;
	uint64_t n;

	touch_shared(t); /* memslots take addresses too, under another lock */
	task_assert_first(t, "synthetic addresses");
	sp = aligned_alloc(PAGE_SIZE, (sizeof(*sp) + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1));
	if (!sp)
		return NULL;
	memset(sp, 0, sizeof(*sp));
	sp->spt_addr = kaddr_pages(&kvm->kaddr, PAGE_SIZE);
	sp->translation_addr = kaddr_pages(&kvm->kaddr, PAGE_SIZE);
	sp->header_addr = kaddr_object(&kvm->kaddr, KADDR_SP_HEADER_BYTES);
	sp->pfn = (sp->spt_addr - KADDR_BASE) >> PAGE_SHIFT;
	if (sp->pfn >= kvm->n_page_of_pfn) {
		n = 2 * sp->pfn;
		map = realloc(kvm->page_of_pfn, n * sizeof(*map));
		if (!map) {
			free(sp);
			return NULL;
		}
		memset(map + kvm->n_page_of_pfn, 0, (n - kvm->n_page_of_pfn) * sizeof(*map));
		kvm->page_of_pfn = map;
		kvm->n_page_of_pfn = n;
	}
	kvm->page_of_pfn[sp->pfn] = sp;
	return sp;
}

/* A guest page table is going to be shadowed: writes to it must be seen. */
static void account_shadowed(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp)
{
	struct kvm_memory_slot *slot = memslot_now(t, kvm, sp->gfn);

	kvm->indirect_pages++;
	if (!slot)
		return;
	for (int l = PG_LEVEL_2M; l <= MAX_HUGE_LEVEL; l++)
		slot->disallow_lpage[l - 1][memslot_index(slot, sp->gfn, l)]++;
	if (sp->role.level > PG_LEVEL_4K)
		slot->write_track[sp->gfn - slot->base_gfn]++;
	if (write_protect_gfn_levels(t, kvm, slot, sp->gfn, PG_LEVEL_4K))
		kvm_flush_remote_tlbs(t, kvm);
}

/* One that is paid for. */
static struct kvm_mmu_page *take_page_table(struct task *t, struct kvm *kvm)
{
	struct kvm_mmu_page *sp;

	touch_shared(t);
	task_assert_first(t, "the free page tables");
	sp = kvm->free_pages;
	if (sp)
		kvm->free_pages = sp->hash_next;
	else
		sp = sp_new(t, kvm);
	if (!sp) {
		kvm->dead = true;
		return NULL;
	}
	kvm_touch(t, kvm, sp->header_addr, KADDR_SP_HEADER_BYTES, true);
	kvm_touch(t, kvm, sp->spt_addr, PAGE_SIZE, true);
	memset(sp->spt, 0, sizeof(sp->spt));
	sp->root_count = 0;
	sp->write_flooding = 0;
	sp->slot_bitmap = 0;
	sp->parent_ptes.val = 0;
	sp->unsync = false;
	sp->unsync_children = 0;
	memset(sp->unsync_child_bitmap, 0, sizeof(sp->unsync_child_bitmap));
	sp->tdp_mmu_page = sp->zap_scheduled = sp->mmio_cached = false;
	return sp;
}

struct kvm_mmu_page *alloc_page_table(struct task *t, struct kvm *kvm)
{
	charge(t, COUNT_sp_alloc, 1);
	return take_page_table(t, kvm);
}

/* A new one of that gfn and role, made of @sp. */
static struct kvm_mmu_page *add_shadow_page(struct task *t, struct kvm *kvm,
					    struct kvm_mmu_page *sp, gfn_t gfn,
					    union kvm_mmu_page_role role)
{
	struct kvm_mmu_page **bucket;

	if (!sp)
		return NULL;
	mmu_lock_assert_held(t, kvm, "the list of shadow pages");
	bucket = &kvm->hash[sp_hash(kvm, gfn)];
	sp->role = role;
	sp->gfn = gfn;
	sp->valid_gen = kvm->valid_gen;
	list_add(&sp->link, &kvm->active_pages);
	kvm->n_used_pages++;
	sp->hash_next = *bucket;
	sp->hash_pprev = bucket;
	if (sp->hash_next)
		sp->hash_next->hash_pprev = &sp->hash_next;
	*bucket = sp;
	if (!role.direct)
		account_shadowed(t, kvm, sp);
	return sp;
}

/* A page that was found is brought in step, but not its table protected: that waits until the guest
 * flushes. False: it had to be prepared for zapping. */
static bool sync_found(struct kvm_vcpu *v, struct kvm_mmu_page *sp, struct list *invalid)
{
	unsigned nr;
	int r;

	if (sp->unsync) {
		r = sync_page(v, sp);
		if (r < 0) {
			prepare_zap_page(v->task, v->kvm, sp, invalid, &nr);
			return false;
		}
		if (r)
			kvm_flush_remote_tlbs(v->task, v->kvm);
	}
	sp->write_flooding = 0;
	return true;
}

/* @v may be NULL where the role is direct. */
static struct kvm_mmu_page *find_shadow_page(struct task *t, struct kvm *kvm, struct kvm_vcpu *v,
					     gfn_t gfn, union kvm_mmu_page_role role)
{
	struct kvm_mmu_page *sp;
	struct list invalid;
	uint64_t collisions = 0;
	unsigned nr;

	list_init(&invalid);
	for (sp = kvm->hash[sp_hash(kvm, gfn)]; sp; sp = sp->hash_next) {
		charge(t, COUNT_sp_hash, 1);
		kvm_touch(t, kvm, sp->header_addr, KADDR_SP_HOT_BYTES, false);
		if (sp_obsolete(kvm, sp))
			continue;
		if (sp->gfn != gfn) {
			collisions++;
			continue;
		}
		if (sp->role.word == role.word)
			break;
		/* A table of 4K entries that is now used as a larger one's will be protected. */
		if (role.level > PG_LEVEL_4K && sp->unsync)
			prepare_zap_page(t, kvm, sp, &invalid, &nr);
	}
	if (sp && !role.direct && !sync_found(v, sp, &invalid))
		sp = NULL;
	if (!sp)
		kvm->stat[STAT_mmu_cache_miss]++;
	commit_zap_page(t, kvm, &invalid);
	if (collisions > kvm->stat[STAT_max_mmu_page_hash_collisions])
		kvm->stat[STAT_max_mmu_page_hash_collisions] = collisions;
	return sp;
}

struct kvm_mmu_page *get_shadow_page(struct kvm_vcpu *v, gfn_t gfn, union kvm_mmu_page_role role)
{
	struct kvm *kvm = v->kvm;
	struct kvm_mmu_page *sp;
	bool created = false;

	charge(v->task, COUNT_get_page, 1);
	sp = find_shadow_page(v->task, kvm, v, gfn, role);
	if (!sp) {
		created = true;
		mmu_stock_take_sp(v, !role.direct);
		sp = add_shadow_page(v->task, kvm, alloc_page_table(v->task, kvm), gfn, role);
		if (!sp)
			return NULL;
	}
	kvm_trace_page(v->task, kvm, v, TRACE_kvm_mmu_get_page, sp, created);
	return sp;
}

static union kvm_mmu_page_role child_role(const uint64_t *sptep, bool direct, unsigned access)
{
	union kvm_mmu_page_role role = sptep_to_sp(sptep)->role;

	role.level--;
	role.access = access;
	role.direct = direct;
	role.invalid = 0;
	/* Two tables of 512 entries shadow one of 1,024. */
	if (role.has_4_byte_gpte)
		role.quadrant = spte_index(sptep) & 1;
	return role;
}

struct kvm_mmu_page *get_child_sp(struct kvm_vcpu *v, const uint64_t *sptep, gfn_t gfn, bool direct,
				  unsigned access)
{
	union kvm_mmu_page_role role = child_role(sptep, direct, access);
	uint64_t spte = spte_read(v->task, v->kvm, sptep);
	struct kvm_mmu_page *child;

	if (spte_present(spte) && !(spte & PT_PAGE_SIZE)) {
		child = spte_to_child(v->kvm, spte);
		if (child->gfn == gfn && child->role.word == role.word)
			return SP_EXISTS;
	}
	return get_shadow_page(v, gfn, role);
}

struct kvm_mmu_page *get_split_sp(struct task *t, struct kvm *kvm, const uint64_t *sptep)
{
	const struct kvm_mmu_page *huge_sp = sptep_to_sp(sptep);
	unsigned index = spte_index(sptep);
	unsigned access =
		huge_sp->role.direct ? huge_sp->role.access : huge_sp->translation[index] & ACC_ALL;
	union kvm_mmu_page_role role = child_role(sptep, true, access);
	gfn_t gfn = sp_gfn(huge_sp, index);
	struct kvm_mmu_page *sp;
	bool created = false;

	charge(t, COUNT_get_page, 1);
	sp = find_shadow_page(t, kvm, NULL, gfn, role);
	if (!sp) {
		created = true;
		kvm->split_stock--;
		sp = add_shadow_page(t, kvm, take_page_table(t, kvm), gfn, role);
		if (!sp)
			return NULL;
	}
	kvm_trace_page(t, kvm, NULL, TRACE_kvm_mmu_get_page, sp, created);
	return sp;
}

void drop_parent_pte(struct task *t, struct kvm *kvm, struct kvm_mmu_page *child, uint64_t *sptep)
{
	charge(t, COUNT_zap_spte, 1);
	pte_list_remove(t, kvm, &child->parent_ptes, child->header_addr, sptep);
	spte_write(t, kvm, sptep, 0);
}

void page_zap_pte(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp, uint64_t *sptep)
{
	uint64_t spte = *sptep;

	if (is_mmio_spte(kvm, spte))
		spte_write(t, kvm, sptep, 0);
	if (!spte_present(spte))
		return;
	if (spte_last(spte, sp->role.level))
		drop_spte(t, kvm, sptep);
	else
		drop_parent_pte(t, kvm, spte_to_child(kvm, spte), sptep);
}

void replace_by_table(struct task *t, struct kvm *kvm, uint64_t *sptep, struct kvm_mmu_page *sp,
		      bool flush)
{
	if (spte_present(*sptep)) {
		page_zap_pte(t, kvm, sptep_to_sp(sptep), sptep);
		if (flush)
			kvm_flush_remote_tlbs(t, kvm);
	}
	charge(t, COUNT_link_page, 1);
	spte_write(t, kvm, sptep, nonleaf_spte(kvm, sp));
	if (pte_list_add(t, kvm, &sp->parent_ptes, sp->header_addr, sptep) < 0)
		spte_write(t, kvm, sptep, 0);
	else if (sp->unsync || sp->unsync_children)
		mark_unsync(t, kvm, sptep);
}

void link_shadow_page(struct kvm_vcpu *v, uint64_t *sptep, struct kvm_mmu_page *sp)
{
	replace_by_table(v->task, v->kvm, sptep, sp, true);
}

struct kvm_mmu_page *shadow_pages_of(const struct kvm *kvm, gfn_t gfn)
{
	return kvm->hash[sp_hash(kvm, gfn)];
}

static struct kvm_mmu_page *skip_to_indirect(struct task *t, struct kvm *kvm,
					     struct kvm_mmu_page *sp, gfn_t gfn)
{
	for (; sp; sp = sp->hash_next) {
		if (t) {
			charge(t, COUNT_sp_hash, 1);
			kvm_touch(t, kvm, sp->header_addr, KADDR_SP_HOT_BYTES, false);
		}
		if (sp->gfn == gfn && !sp->role.direct && !sp_obsolete(kvm, sp))
			break;
	}
	return sp;
}

struct kvm_mmu_page *first_indirect_sp(struct task *t, struct kvm *kvm, gfn_t gfn)
{
	return skip_to_indirect(t, kvm, shadow_pages_of(kvm, gfn), gfn);
}

struct kvm_mmu_page *next_indirect_sp(struct task *t, struct kvm *kvm,
				      const struct kvm_mmu_page *sp)
{
	return skip_to_indirect(t, kvm, sp->hash_next, sp->gfn);
}

void clear_write_flooding(uint64_t *sptep)
{
	sptep_to_sp(sptep)->write_flooding = 0;
}

int kvm_mmu_init_vm(struct kvm *kvm, uint64_t background_sps)
{
	list_init(&kvm->active_pages);
	list_init(&kvm->tdp_roots);
	list_init(&kvm->frozen_waiters);
	srcu_init(&kvm->srcu);
	rcu_init(&kvm->rcu);
	kaddr_init(&kvm->kaddr);
	kvm->next_pfn = FIRST_GUEST_PFN;
	if (!background_sps)
		return 0;
	kvm->background_header_addr = malloc(background_sps * sizeof(uint64_t));
	kvm->background_spt_addr = malloc(background_sps * sizeof(uint64_t));
	if (!kvm->background_header_addr || !kvm->background_spt_addr)
		return KVMSIM_ENOMEM;
	kvm->n_background = background_sps;
	for (uint64_t i = 0; i < background_sps; i++) {
		kvm->background_header_addr[i] = kaddr_object(&kvm->kaddr, KADDR_SP_HEADER_BYTES);
		kvm->background_spt_addr[i] = kaddr_pages(&kvm->kaddr, PAGE_SIZE);
	}
	return 0;
}

void kvm_mmu_uninit_vm(struct kvm *kvm)
{
	for (uint64_t i = 0; i < kvm->n_page_of_pfn; i++)
		free(kvm->page_of_pfn[i]);
	free(kvm->page_of_pfn);
	free(kvm->background_header_addr);
	free(kvm->background_spt_addr);
	while (kvm->desc_chunks) {
		struct desc_chunk *c = kvm->desc_chunks;

		kvm->desc_chunks = c->next;
		free(c);
	}
}
