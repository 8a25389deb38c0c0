// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/ring.h"

#include <stdlib.h>
#include <string.h>

#include "model/guest/run.h"
#include "model/mmu/check.h"
#include "model/policy/dirty_ring.h"
#include "model/sim/profile.h"

/*
 * The VMM of a VM whose vCPUs log into dirty rings, after QEMU's: whoever empties the rings, a
 * vCPU's thread that found its own full, the reaper, or who wants the log, takes one lock, notes
 * the entries of all rings in a bitmap per slot, and has KVM reset them.
 */

struct ring_user {
	struct mutex lock;
	kvm_ring_full_fn full; /* NULL: reap */
	void *full_ctx;
	struct user_bitmap {
		uint64_t *word; /* NULL: no page of the slot was reported yet */
		uint64_t npages;
	} slot[KVM_MAX_MEMSLOTS];
};

static const struct lock_class reap_lock_class = {
	.name = "reap_lock", .rank = 5, .kind = LOCK_MUTEX};

int ring_user_init(struct kvm *kvm)
{
	kvm->ring_user = calloc(1, sizeof(*kvm->ring_user));
	if (!kvm->ring_user)
		return KVMSIM_ENOMEM;
	mutex_init(&kvm->ring_user->lock, &reap_lock_class);
	lock_watch(&kvm->ring_user->lock.q, kvm->watch ? kvm->watch->locks : NULL);
	return 0;
}

void ring_user_free(struct kvm *kvm)
{
	for (uint32_t i = 0; kvm->ring_user && i < KVM_MAX_MEMSLOTS; i++)
		free(kvm->ring_user->slot[i].word);
	free(kvm->ring_user);
}

/* Slots may have come and gone since the page was pushed. */
static void note_page(struct kvm *kvm, const struct kvm_dirty_gfn *e)
{
	const struct kvm_memory_slot *slot = id_to_memslot(kvm, e->slot);
	struct user_bitmap *b;

	if (!slot || e->offset >= slot->npages)
		return;
	b = &kvm->ring_user->slot[e->slot];
	if (!b->word || b->npages != slot->npages) {
		free(b->word);
		b->word = calloc(memslot_bitmap_words(slot), sizeof(*b->word));
		b->npages = slot->npages;
	}
	if (b->word)
		b->word[e->offset / 64] |= 1ull << (e->offset % 64);
	else
		kvm->dead = true;
}

/* The entry after the last one is looked at, too. */
static long collect_ring(struct task *t, struct kvm_vcpu *v)
{
	struct kvm_dirty_ring *r = v->dirty_ring;
	struct kvm *kvm = v->kvm;
	long n = 0;

	for (;;) {
		struct kvm_dirty_gfn *e;

		charge(t, COUNT_ring_collect, 1);
		kvm_touch(t, kvm, dirty_ring_entry_addr(r, r->fetch_index), KVM_DIRTY_GFN_BYTES,
			  true);
		touch_shared(t);
		task_assert_first(t, "a dirty ring");
		e = dirty_ring_entry(r, r->fetch_index);
		if (!(e->flags & KVM_DIRTY_GFN_F_DIRTY))
			return n;
		e->flags = KVM_DIRTY_GFN_F_RESET;
		r->fetch_index++;
		n++;
		store_log_ring_collected(kvm, e->slot, e->offset);
		note_page(kvm, e);
	}
}

long kvm_collect_dirty_ring(struct task *t, struct kvm_vcpu *v)
{
	uint16_t was;
	long n;

	if (!v->dirty_ring)
		return KVMSIM_EINVAL;
	was = activity_enter(t, ACT_userspace);
	n = leave_run(t, v->kvm);
	n = n ? n : collect_ring(t, v);
	activity_leave(t, was);
	if (task_canceled(t))
		return KVMSIM_ECANCELED;
	return v->kvm->dead ? KVMSIM_ENOMEM : n;
}

long kvm_reset_dirty_rings(struct task *t, struct kvm *kvm)
{
	uint64_t call = 0;
	struct ioctl_scope scope;
	long n;

	if (!kvm->dirty->reset_rings)
		return KVMSIM_EINVAL;
	scope = ioctl_enter(t, kvm, KVM_OP_reset);
	n = ioctl_begin(t, kvm);
	n = n ? n : slots_lock(t, kvm, "kvm_vm_ioctl_reset_dirty_pages");
	if (!n) {
		charge(t, COUNT_reset_dirty_rings, 1);
		touch_shared(t);
		call = ++kvm->ring_resets;
		n = kvm->dirty->reset_rings(t, kvm);
		slots_unlock(t, kvm);
	}
	if (n > 0) {
		kvm_flush_remote_tlbs(t, kvm);
		touch_shared(t); /* stores of others up to now are known */
		store_log_ring_flushed(kvm, call, task_now(t));
	}
	ioctl_leave(t, kvm, &scope);
	return task_canceled(t) ? KVMSIM_ECANCELED : n;
}

/* Of one vCPU, or of all: NULL. The lock is held. */
static long reap(struct task *t, struct kvm *kvm, struct kvm_vcpu *only)
{
	long n = 0, r;

	for (uint32_t i = 0; i < kvm->n_vcpus; i++) {
		if (only && kvm->vcpus[i] != only)
			continue;
		r = kvm_collect_dirty_ring(t, kvm->vcpus[i]);
		if (r < 0)
			return r;
		n += r;
	}
	r = n ? kvm_reset_dirty_rings(t, kvm) : 0;
	return r < 0 ? r : n;
}

static int reap_lock(struct task *t, struct kvm *kvm)
{
	int r = leave_run(t, kvm);

	lock_called_by(t, kvm, "kvm_dirty_ring_reap");
	return r ? r : mutex_lock(t, &kvm->ring_user->lock);
}

static long lock_and_reap(struct task *t, struct kvm *kvm, struct kvm_vcpu *only)
{
	uint16_t was = activity_enter(t, ACT_userspace);
	long r = reap_lock(t, kvm);

	if (!r) {
		r = reap(t, kvm, only);
		mutex_unlock(t, &kvm->ring_user->lock);
	}
	activity_leave(t, was);
	return r;
}

long kvm_reap_dirty_rings(struct task *t, struct kvm *kvm)
{
	return kvm->dirty->reset_rings ? lock_and_reap(t, kvm, NULL) : KVMSIM_EINVAL;
}

long kvm_reap_dirty_ring(struct task *t, struct kvm_vcpu *v)
{
	return v->dirty_ring ? lock_and_reap(t, v->kvm, v) : KVMSIM_EINVAL;
}

uint32_t kvm_dirty_ring_size(const struct kvm_vcpu *v)
{
	return v->dirty_ring ? v->dirty_ring->size : 0;
}

uint32_t kvm_dirty_ring_pages(const struct kvm_vcpu *v)
{
	return v->dirty_ring ? v->dirty_ring->fetch_index : 0;
}

/* What was reported of the slot since the last time, and forgets it. */
static long take_bitmap(struct task *t, struct kvm *kvm, uint32_t id, uint64_t *bitmap)
{
	const struct kvm_memory_slot *slot;
	struct user_bitmap *b;
	uint64_t words;
	long n = 0;

	touch_shared(t);
	task_assert_first(t, "the VMM's bitmaps");
	slot = id_to_memslot(kvm, id);
	if (!slot || !memslot_logged(slot))
		return KVMSIM_ENOENT;
	words = memslot_bitmap_words(slot);
	memset(bitmap, 0, words * sizeof(*bitmap));
	b = &kvm->ring_user->slot[id];
	if (!b->word || b->npages != slot->npages)
		return 0;
	memcpy(bitmap, b->word, words * sizeof(*bitmap));
	memset(b->word, 0, words * sizeof(*bitmap));
	for (uint64_t i = 0; i < words; i++)
		n += __builtin_popcountll(bitmap[i]);
	return n;
}

long ring_collect_log(struct task *t, struct kvm *kvm, uint32_t slot, uint64_t *bitmap)
{
	uint16_t was = activity_enter(t, ACT_userspace);
	long r = reap_lock(t, kvm);

	if (!r) {
		r = reap(t, kvm, NULL);
		r = r < 0 ? r : take_bitmap(t, kvm, slot, bitmap);
		mutex_unlock(t, &kvm->ring_user->lock);
	}
	activity_leave(t, was);
	return r;
}

void kvm_on_ring_full(struct kvm *kvm, kvm_ring_full_fn fn, void *ctx)
{
	kvm->ring_user->full = fn;
	kvm->ring_user->full_ctx = ctx;
}

int ring_full(struct kvm_vcpu *v)
{
	const struct ring_user *u = v->kvm->ring_user;
	uint16_t was;
	long r;

	was = activity_enter(v->task, ACT_userspace);
	r = u->full ? u->full(v, u->full_ctx) : kvm_reap_dirty_rings(v->task, v->kvm);
	activity_leave(v->task, was);
	return r < 0 ? (int)r : 0;
}

static bool all_ended(const struct kvm *kvm)
{
	for (uint32_t i = 0; i < kvm->n_vcpus; i++)
		if (!kvm->vcpus[i]->task || !task_ended(kvm->vcpus[i]->task))
			return false;
	return true;
}

static int reaper(struct task *t, void *arg)
{
	struct kvm *kvm = arg;
	uint64_t us = kvm->dirty->reaper_us(kvm), hz = profile_hz(sim_profile(kvm->sim));
	cycles_t interval = us / 1000000 * hz + us % 1000000 * hz / 1000000;
	long r;

	do {
		r = task_block_until(t, WAIT_idle, task_now(t) + (interval ? interval : 1));
		r = r < 0 ? r : kvm_reap_dirty_rings(t, kvm);
	} while (r >= 0 && !all_ended(kvm));
	return r < 0 ? (int)r : 0;
}

int kvm_start_ring_reaper(struct kvm *kvm, cycles_t start)
{
	const struct task_opts o = {
		.name = "reaper", .fn = reaper, .arg = kvm, .start = start, .ticks = true};
	struct task *t;

	if (!kvm->dirty->reset_rings || !kvm->dirty->reaper_us(kvm))
		return 0;
	if (!profile_hz(sim_profile(kvm->sim)))
		return kvmsim_err(sim_errors(kvm->sim), KVMSIM_EINVAL,
				  "policy %s: the reaper sleeps for a time, and the profile does "
				  "not say how fast its clock runs; reaper=0 does without",
				  kvm->dirty->desc.name);
	return task_create(kvm->sim, &o, &t);
}
