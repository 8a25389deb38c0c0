// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/dirty_ring.h"

#include <stdlib.h>

#include "model/mmu/check.h"
#include "model/mmu/mmu.h"
#include "model/policy/dirty.h"

/*
 * KVM_CAP_DIRTY_LOG_RING_ACQ_REL (5.11): no bitmap. Each vCPU pushes the pages that it dirties into
 * a ring of its own. With so few entries left as one exit may still need, it does not enter the
 * guest but leaves KVM_RUN: whatever store it was about to repeat faults once more after the reset,
 * and its page is reported twice.
 *
 * The ring's size is set before the first vCPU is made, and excludes the bitmap for the VM's life:
 * here the policy of a VM is chosen when it is made.
 */

/* size: QEMU takes what the user says, its documentation's example is 4096. reaper: QEMU's thread
 * sleeps a second between two passes (accel/kvm/kvm-all.c: kvm_dirty_ring_reaper_thread). */
static const struct policy_param params[] = {
	{"size", 4096, KVM_DIRTY_RING_MIN_ENTRIES, KVM_DIRTY_RING_MAX_ENTRIES, 0,
	 "entries of each vCPU's ring, a power of two"},
	{"reaper", 1000000, 0, UINT32_MAX, 1,
	 "microseconds between two passes of the VMM's reaper thread; 0: there is none"},
	{"pml", 0, 0, 1, 1, "1: a reset takes D, and the CPU's log is used, as policy pml does"},
	{0},
};

static bool cpu_log(const struct kvm *kvm)
{
	return kvm->dirty_params.value[2];
}

static uint64_t reaper_us(const struct kvm *kvm)
{
	return kvm->dirty_params.value[1];
}

static int vcpu_create(struct kvm_vcpu *v)
{
	uint32_t size = (uint32_t)v->kvm->dirty_params.value[0];
	/* An exit pushes all that the CPU has logged. */
	uint32_t reserved = KVM_DIRTY_RING_RSVD_ENTRIES + v->kvm->cpu_dirty_log_size;
	struct kvm_dirty_ring *r;

	if (size < reserved)
		return kvmsim_err(sim_errors(v->kvm->sim), KVMSIM_EUNSUPPORTED,
				  "dirty policy ring: of %u entries %u would be reserved", size,
				  reserved);
	r = calloc(1, sizeof(*r) + size * sizeof(r->gfn[0]));
	if (!r)
		return KVMSIM_ENOMEM;
	r->size = size;
	r->soft_limit = size - reserved;
	r->addr = kaddr_pages(&v->kvm->kaddr, (uint64_t)size * KVM_DIRTY_GFN_BYTES);
	v->dirty_ring = r;
	return 0;
}

static void vcpu_free(struct kvm_vcpu *v)
{
	free(v->dirty_ring);
}

static bool vcpu_full(struct kvm_vcpu *v)
{
	touch_shared(v->task);
	task_assert_first(v->task, "a dirty ring");
	if (dirty_ring_used(v->dirty_ring) < v->dirty_ring->soft_limit)
		return false;
	charge(v->task, COUNT_ring_full, 1);
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_dirty_ring_exit);
	return true;
}

/* Where the kernel warns and goes on with a page less, the run ends. */
static void refuse(struct task *t, struct kvm *kvm, const char *why, gfn_t gfn)
{
	sim_fail(kvm->sim, KVMSIM_ECHECK);
	kvmsim_err(sim_errors(kvm->sim), KVMSIM_ECHECK,
		   "policy ring: task %s at %llu dirties gfn %#llx %s: the kernel would lose it",
		   task_name(t), (unsigned long long)task_now(t), (unsigned long long)gfn, why);
}

static void push(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t gfn)
{
	struct kvm_vcpu *v = task_private(t);
	struct kvm_dirty_ring *r;

	if (!v || v->kvm != kvm) {
		refuse(t, kvm, "while it runs no vCPU", gfn);
		return;
	}
	r = v->dirty_ring;
	charge(t, COUNT_ring_push, 1);
	kvm_touch(t, kvm, dirty_ring_entry_addr(r, r->dirty_index), KVM_DIRTY_GFN_BYTES, true);
	touch_shared(t);
	task_assert_first(t, "a dirty ring");
	if (dirty_ring_used(r) >= r->size) {
		refuse(t, kvm, "while its ring is full to the last entry", gfn);
		return;
	}
	*dirty_ring_entry(r, r->dirty_index++) = (struct kvm_dirty_gfn){
		.flags = KVM_DIRTY_GFN_F_DIRTY, .slot = slot->id, .offset = gfn - slot->base_gfn};
	kvm_trace_event(t, kvm, v, .id = TRACE_kvm_dirty_ring_push, .gfn = gfn, .slot = slot->id,
			.offset = gfn - slot->base_gfn, .ring_dirty = r->dirty_index,
			.ring_reset = r->reset_index);
}

/* Neighbouring pages of a slot that were pushed one after the other are write-protected together:
 * those of 64 pages from @offset on whose bit is in @mask. */
struct batch {
	uint32_t slot;
	uint64_t offset, mask;
};

static bool batch_add(struct batch *b, const struct kvm_dirty_gfn *e)
{
	int64_t ahead = (int64_t)(e->offset - b->offset);

	if (!b->mask || e->slot != b->slot || ahead >= 64 || ahead <= -64)
		return false;
	if (ahead >= 0) {
		b->mask |= 1ull << ahead;
		return true;
	}
	if (b->mask >> (64 + ahead)) /* its last page would be out of reach */
		return false;
	b->mask = b->mask << -ahead | 1;
	b->offset = e->offset;
	return true;
}

/* A slot may have gone, or shrunk, since the page was pushed. Before its first entry the kernel
 * resets the empty batch of slot 0 as well. */
static int batch_reset(struct task *t, struct kvm *kvm, const struct batch *b)
{
	uint64_t last = b->mask ? 63 - (uint64_t)__builtin_clzll(b->mask) : 0;
	struct kvm_memory_slot *slot = id_to_memslot(kvm, b->slot);
	int r;

	if (!slot || b->offset + last >= slot->npages)
		return 0;
	charge(t, COUNT_ring_batch, 1);
	r = mmu_lock(t, kvm, "kvm_reset_dirty_gfn");
	if (r)
		return r;
	dirty_rearm_word(t, kvm, slot, b->offset, b->mask);
	mmu_unlock(t, kvm);
	return 0;
}

static long reset_ring(struct task *t, struct kvm_vcpu *v)
{
	struct kvm_dirty_ring *r = v->dirty_ring;
	struct kvm *kvm = v->kvm;
	struct batch b = {0};
	long n = 0;
	int err;

	for (;;) {
		struct kvm_dirty_gfn *entry = dirty_ring_entry(r, r->reset_index), e;

		kvm_touch(t, kvm, dirty_ring_entry_addr(r, r->reset_index), KVM_DIRTY_GFN_BYTES,
			  false);
		touch_shared(t);
		task_assert_first(t, "a dirty ring");
		if (!(entry->flags & KVM_DIRTY_GFN_F_RESET))
			break;
		charge(t, COUNT_ring_reset, 1);
		touch_shared(t);
		task_assert_first(t, "a dirty ring");
		e = *entry;
		entry->flags = 0;
		r->reset_index++;
		n++;
		store_log_ring_reset(kvm, e.slot, e.offset);
		if (batch_add(&b, &e))
			continue;
		err = batch_reset(t, kvm, &b);
		if (err)
			return err;
		b = (struct batch){.slot = e.slot, .offset = e.offset, .mask = 1};
	}
	err = batch_reset(t, kvm, &b);
	if (err)
		return err;
	kvm_trace_event(t, kvm, v, .id = TRACE_kvm_dirty_ring_reset, .ring_dirty = r->dirty_index,
			.ring_reset = r->reset_index);
	return n;
}

static long reset_rings(struct task *t, struct kvm *kvm)
{
	long cleared = 0;

	for (uint32_t i = 0; i < kvm->n_vcpus; i++) {
		long n = reset_ring(t, kvm->vcpus[i]);

		if (n < 0)
			return n;
		cleared += n;
	}
	return cleared;
}

/* 6.1: case D of the reference matrix, and rings of other sizes, on QEMU's TCG. */
static const struct policy_proof proofs[] = {
	{"6.1-shadow", "tcg", {EVIDENCE_ORACLE, EVIDENCE_ORACLE, EVIDENCE_ORACLE}, NULL},
	{"6.1-tdp", "tcg", {[MMU_TDP] = EVIDENCE_ORACLE}, NULL},
	{0},
};

const struct dirty_policy dirty_ring = {
	.desc = {.name = "ring",
		 .family = FAMILY_DIRTY,
		 .summary =
			 "a ring of dirty pages per vCPU, which leaves the guest when full (5.11)",
		 .params = params,
		 .proofs = proofs},
	.cpu_log = cpu_log,
	.reaper_us = reaper_us,
	.vcpu_create = vcpu_create,
	.vcpu_free = vcpu_free,
	.vcpu_full = vcpu_full,
	.mark = push,
	.reset_rings = reset_rings,
};
