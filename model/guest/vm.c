// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/vm.h"

#include <stdlib.h>
#include <string.h>

#include "model/guest/personality.h"
#include "model/guest/run.h"
#include "model/guest/vcpu.h"
#include "model/host/ipi.h"
#include "model/mmu/check.h"
#include "model/policy/preset.h"

static struct cpu_regs regs_of_mode(enum guest_paging_mode mode)
{
	struct cpu_regs r = {.cr0 = CR0_PE};

	if (mode != GUEST_FLAT32)
		r.cr0 |= CR0_PG | CR0_WP;
	if (mode == GUEST_LONG64 || mode == GUEST_PAE)
		r.cr4 = CR4_PAE;
	if (mode == GUEST_LONG64)
		r.efer = EFER_LME | EFER_LMA;
	if (mode == GUEST_32BIT)
		r.cr4 = CR4_PSE;
	return r;
}

uint64_t kvm_guest_frames(const char *personality)
{
	const struct cpu_personality *cpu = personality_find(personality);

	return cpu ? 1ull << (cpu->phys_bits - PAGE_SHIFT) : 0;
}

int kvm_create_vm(const struct kvm_vm_opts *o, struct kvm **out)
{
	struct kvm *kvm = calloc(1, sizeof(*kvm));
	int r;

	*out = NULL;
	if (!kvm)
		return KVMSIM_ENOMEM;
	kvm->sim = o->sim;
	kvm->cache = o->cache;
	kvm->observer = o->observer;
	kvm->watch = o->watch;
	kvm->tdp_enabled = o->paging == PAGING_TDP;
	kvm->reset_regs = regs_of_mode(o->mode);
	kvm->check = o->check;
	kvm->notifiers.seq = o->invalidations;
	kvm->most_restarts = o->restarts ? o->restarts : LIVELOCK_RESTARTS;
	if (kvm->check)
		sim_set_check(o->sim);
	kvm->keep_stores = o->keep_stores;
	r = kvm_choose_algorithms(kvm, o);
	/* A broadcast invalidation is there at once: nobody runs ahead of it. */
	if (!r && !kvm->preset->arm64)
		ipi_init(o->sim);
	if (!r) {
		kvm_locks_init(kvm);
		kvm_locks_watch(kvm, o->watch ? o->watch->locks : NULL);
		r = kvm_mmu_init_vm(kvm, o->background_sps);
	}
	if (!r && kvm->dirty->reset_rings)
		r = ring_user_init(kvm);
	if (r) {
		kvm_destroy_vm(kvm);
		return r;
	}
	*out = kvm;
	return 0;
}

static void vcpu_free(struct kvm_vcpu *v)
{
	if (v->kvm->dirty->vcpu_free)
		v->kvm->dirty->vcpu_free(v);
	cpu_log_free(v);
	free(v);
}

void kvm_destroy_vm(struct kvm *kvm)
{
	if (!kvm)
		return;
	for (uint32_t i = 0; i < kvm->n_vcpus; i++)
		vcpu_free(kvm->vcpus[i]);
	ring_user_free(kvm);
	kvm_mmu_uninit_vm(kvm);
	memslots_free(kvm);
	gmem_free(&kvm->gmem);
	free(kvm);
}

int kvm_create_vcpu(struct kvm *kvm, struct kvm_vcpu **out)
{
	struct kvm_vcpu *v;
	int r;

	if (kvm->n_vcpus == KVM_MAX_VCPUS)
		return KVMSIM_EINVAL;
	v = calloc(1, sizeof(*v));
	if (!v)
		return KVMSIM_ENOMEM;
	v->kvm = kvm;
	v->id = kvm->n_vcpus;
	/* Its TSC is synchronised with the others': the first entry updates the master clock. */
	v->requests = REQ_MASTERCLOCK_UPDATE;
	if (kvm->preset->sregs_flush)
		v->requests |= REQ_TLB_FLUSH_GUEST;
	tlb_init(&v->tlb, kvm->cpu->tlb_entries);
	v->regs = kvm->reset_regs;
	kvm_init_mmu(v);
	r = cpu_log_init(v) ? 0 : KVMSIM_ENOMEM;
	if (!r && kvm->dirty->vcpu_create)
		r = kvm->dirty->vcpu_create(v);
	if (r) {
		vcpu_free(v);
		return r;
	}
	kvm->vcpus[kvm->n_vcpus++] = v;
	*out = v;
	return 0;
}

int leave_run(struct task *t, struct kvm *kvm)
{
	int r = 0;

	for (uint32_t i = 0; i < kvm->n_vcpus && !r; i++)
		if (kvm->vcpus[i]->task == t)
			r = vcpu_interrupt(kvm->vcpus[i]);
	return r;
}

int ioctl_begin(struct task *t, struct kvm *kvm)
{
	int r = leave_run(t, kvm);

	charge(t, COUNT_ioctl, 1);
	return r;
}

/* What changes, for a watch. */
static enum kvm_operation memslot_operation(struct task *t, const struct kvm *kvm,
					    const struct kvm_memory_region *m)
{
	const struct kvm_memory_slot *slot;

	if (!kvm->watch)
		return KVM_OP_memslot;
	touch_shared(t);
	slot = id_to_memslot(kvm, m->slot);
	if (!slot || !m->npages || memslot_logged(slot) == !!(m->flags & KVM_MEM_LOG_DIRTY_PAGES))
		return KVM_OP_memslot;
	return memslot_logged(slot) ? KVM_OP_disable : KVM_OP_enable;
}

int kvm_set_user_memory_region(struct task *t, struct kvm *kvm, const struct kvm_memory_region *m)
{
	struct ioctl_scope scope;
	int r;

	if (m->host_level > 1 && !kvm->preset->huge_pages)
		return kvmsim_err(sim_errors(kvm->sim), KVMSIM_EUNSUPPORTED,
				  "kernel preset %s: host pages larger than 4 KiB are not modelled",
				  kvm->preset->name);
	if (m->host_anonymous && m->host_level > PG_LEVEL_2M)
		return kvmsim_err(sim_errors(kvm->sim), KVMSIM_EINVAL,
				  "slot %u: anonymous memory has no pages larger than 2 MiB",
				  m->slot);
	scope = ioctl_enter(t, kvm, memslot_operation(t, kvm, m));
	r = ioctl_begin(t, kvm);

	r = r ? r : slots_lock(t, kvm, "kvm_set_memory_region");
	if (!r) {
		const struct memslot_host host = {m->host_level, m->host_populated,
						  m->host_anonymous};

		r = memslot_set(t, kvm, m->slot, m->flags, m->base_gfn, m->npages, &host);
		slots_unlock(t, kvm);
	}
	ioctl_leave(t, kvm, &scope);
	if (!r && task_canceled(t))
		r = KVMSIM_ECANCELED;
	return r ? r : kvm->dead ? KVMSIM_ENOMEM : 0;
}

int kvm_set_nr_mmu_pages(struct task *t, struct kvm *kvm, uint64_t n)
{
	uint16_t was;
	int r;

	if (n < MIN_ALLOC_MMU_PAGES)
		return KVMSIM_EINVAL;
	was = activity_enter(t, ACT_memslot);
	r = ioctl_begin(t, kvm);
	r = r ? r : slots_lock(t, kvm, "kvm_vm_ioctl_set_nr_mmu_pages");
	if (!r) {
		kvm->mmu_pages_requested = true;
		kvm_mmu_change_mmu_pages(t, kvm, n);
		slots_unlock(t, kvm);
	}
	activity_leave(t, was);
	return !r && task_canceled(t) ? KVMSIM_ECANCELED : r;
}

/* How GET and CLEAR begin: slots_lock is taken and what a slot is can be looked at. Otherwise the
 * ioctl is over, with an error. */
static int log_ioctl_begin(struct task *t, struct kvm *kvm, struct ioctl_scope *scope,
			   enum kvm_operation op, uint16_t count)
{
	int r;

	*scope = ioctl_enter(t, kvm, op);
	r = ioctl_begin(t, kvm);
	r = r ? r
	      : slots_lock(t, kvm,
			   op == KVM_OP_get ? "kvm_vm_ioctl_get_dirty_log"
					    : "kvm_vm_ioctl_clear_dirty_log");
	if (r) {
		ioctl_leave(t, kvm, scope);
		return r;
	}
	charge(t, count, 1);
	touch_shared(t);
	return 0;
}

/* And how they end: the ioctl's result, @r when nothing else went wrong. */
static long log_ioctl_end(struct task *t, struct kvm *kvm, struct ioctl_scope *scope, long r)
{
	slots_unlock(t, kvm);
	ioctl_leave(t, kvm, scope);
	if (task_canceled(t))
		return KVMSIM_ECANCELED;
	return kvm->dead ? KVMSIM_ENOMEM : r;
}

long kvm_get_dirty_log(struct task *t, struct kvm *kvm, uint32_t slot_id, uint64_t *bitmap)
{
	struct kvm_memory_slot *slot;
	struct ioctl_scope scope;
	long r = log_ioctl_begin(t, kvm, &scope, KVM_OP_get, COUNT_get_dirty_log);

	if (r)
		return r;
	slot = id_to_memslot(kvm, slot_id);
	if (!kvm->dirty->harvest) {
		r = KVMSIM_EUNSUPPORTED;
	} else if (slot && memslot_logged(slot)) {
		kvm_sync_dirty_log(t, kvm);
		r = kvm->dirty->harvest(t, kvm, slot, bitmap);
		if (r >= 0 && kvm->dirty->clear)
			store_log_get(kvm, slot);
		else if (r >= 0)
			store_log_harvest(kvm, slot, bitmap);
	} else {
		r = KVMSIM_ENOENT;
	}
	return log_ioctl_end(t, kvm, &scope, r);
}

/* As KVM_CLEAR_DIRTY_LOG checks them. */
static int check_range(const struct kvm_memory_slot *slot, uint64_t first_page, uint64_t npages)
{
	if (first_page % 64 || first_page > slot->npages || npages > slot->npages - first_page ||
	    (npages % 64 && npages < slot->npages - first_page))
		return KVMSIM_EINVAL;
	return 0;
}

int kvm_clear_dirty_log(struct task *t, struct kvm *kvm, uint32_t slot_id, uint64_t first_page,
			uint64_t npages, const uint64_t *bitmap)
{
	struct kvm_memory_slot *slot;
	struct ioctl_scope scope;
	int r = log_ioctl_begin(t, kvm, &scope, KVM_OP_clear, COUNT_clear_dirty_log);

	if (r)
		return r;
	slot = id_to_memslot(kvm, slot_id);
	if (!kvm->dirty->clear)
		r = KVMSIM_EUNSUPPORTED;
	else if (!slot || !memslot_logged(slot))
		r = KVMSIM_ENOENT;
	else
		r = check_range(slot, first_page, npages);
	if (!r) {
		kvm_sync_dirty_log(t, kvm);
		r = kvm->dirty->clear(t, kvm, slot, first_page, npages, bitmap);
		touch_shared(t); /* stores of others up to now are known */
		if (!r)
			store_log_clear(kvm, slot, first_page, npages, bitmap);
	}
	return (int)log_ioctl_end(t, kvm, &scope, r);
}

static bool any_set(const uint64_t *bitmap, uint64_t words)
{
	for (uint64_t i = 0; i < words; i++)
		if (bitmap[i])
			return true;
	return false;
}

long kvm_collect_dirty_log(struct task *t, struct kvm *kvm, uint32_t slot_id, uint64_t *bitmap)
{
	uint64_t npages, chunk;
	long n;

	if (kvm->dirty->reset_rings)
		return ring_collect_log(t, kvm, slot_id, bitmap);
	n = kvm_get_dirty_log(t, kvm, slot_id, bitmap);
	if (n <= 0 || !kvm->dirty->clear)
		return n;
	npages = id_to_memslot(kvm, slot_id)->npages;
	chunk = kvm->dirty->clear_chunk(kvm);
	for (uint64_t first = 0; first < npages; first += chunk) {
		uint64_t len = npages - first < chunk ? npages - first : chunk;
		int r = 0;

		if (any_set(bitmap + first / 64, (len + 63) / 64))
			r = kvm_clear_dirty_log(t, kvm, slot_id, first, len, bitmap + first / 64);
		if (r)
			return r;
	}
	return n;
}

uint64_t kvm_stat(const struct kvm *kvm, enum kvm_stat_id id)
{
	uint64_t n = kvm->stat[id];

	for (uint32_t i = 0; i < kvm->n_vcpus; i++)
		n += kvm->vcpus[i]->stat[id];
	return n;
}

uint64_t kvm_active_shadow_pages(const struct kvm *kvm)
{
	return kvm->n_used_pages + kvm->n_tdp_pages + kvm->n_background;
}

struct lock_stats kvm_mmu_lock_stats(const struct kvm *kvm)
{
	return mmu_lock_stats(kvm);
}

struct lock_stats kvm_mmu_lock_read_stats(const struct kvm *kvm)
{
	return mmu_lock_read_stats(kvm);
}

void kvm_mmu_lock_stats_reset(struct kvm *kvm)
{
	mmu_lock_stats_reset(kvm);
}

uint64_t kvm_false_dirties(const struct kvm *kvm)
{
	return kvm->false_dirties;
}

uint64_t kvm_lost_stores(const struct kvm *kvm)
{
	uint64_t n = kvm->lost_stores;

	for (uint32_t i = 0; i < KVM_MAX_MEMSLOTS; i++)
		if (kvm->slots[i])
			n += store_log_lost(kvm, kvm->slots[i]);
	return n;
}

int kvm_check(const struct kvm *kvm)
{
	int r = mmu_check(kvm);

	for (uint32_t i = 0; i < kvm->n_vcpus && !r; i++)
		r = tlb_check(kvm->vcpus[i]);
	uint64_t lost = r ? 0 : kvm_lost_stores(kvm);

	if (lost)
		r = kvmsim_err(sim_errors(kvm->sim), KVMSIM_ECHECK,
			       "policy %s%s: %llu store%s never reported by the dirty log",
			       kvm->dirty->desc.name,
			       kvm->dirty->desc.broken ? " (broken on purpose)" : "",
			       (unsigned long long)lost, lost == 1 ? " was" : "s were");
	return r;
}
