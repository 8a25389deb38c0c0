/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_CHECK_H
#define KVMSIM_MMU_CHECK_H

#include "model/mmu/mmu.h"

/*
 * The checkers. No store may complete after a harvest's flush without a later report of its page:
 * when each page was stored to last is kept, apart from everything the model itself uses.
 */
struct store_log {
	/* Stores after this time must be reported by the next harvest, or their bits be set. */
	cycles_t since, flushed; /* flushed: by the harvest that is going on */
	struct {
		uint64_t time : 63; /* 1 + the time of the last store; 0: never */
		/* A harvest went by it. That is no loss yet: a fault may have made the page
		 * writable and be about to set its bit. At the next harvest it is one. */
		uint64_t missed : 1;
		/* Where vCPUs log into rings: the reset that freed an entry of the page last (0:
		 * none that flushes now), entries that userspace has read and that were not reset,
		 * and whether there is any that was not reset. */
		uint64_t reset_by : 40;
		uint64_t collected : 23;
		uint64_t pending : 1;
	} page[];
};

/* False: out of memory. */
bool store_log_alloc(struct kvm_memory_slot *slot);
/* Logging ends; what a harvest has missed by now is lost. */
void store_log_disarm(struct kvm *kvm, struct kvm_memory_slot *slot);
/* Logging begins: only stores after @now count. */
void store_log_arm(struct kvm_memory_slot *slot, cycles_t now);
/* The page was stored to, by an instruction or by a walk that sets A or D. Nothing happens unless
 * the checkers are on. */
void store_log_add(struct kvm *kvm, gfn_t gfn, cycles_t now);
/* The flush of a harvest has reached every vCPU. */
void store_log_flushed(struct kvm_memory_slot *slot, cycles_t now);
/* A harvest has reported @bitmap; adds to the VM's tallies. */
void store_log_harvest(struct kvm *kvm, struct kvm_memory_slot *slot, const uint64_t *bitmap);
/* The same where GET and CLEAR are two calls. A GET reported the bitmap and took nothing from it.
 */
void store_log_get(struct kvm *kvm, struct kvm_memory_slot *slot);
/* A CLEAR has taken from the bitmap what slot->dirty_snapshot says, of @npages pages from
 * @first_page. Of those that userspace named in @bitmap, whose bit 0 is that page's, it reads the
 * content only now: stores up to the flush need no report of their own. */
void store_log_clear(struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t first_page,
		     uint64_t npages, const uint64_t *bitmap);
/* The same where vCPUs log into rings. Userspace has read an entry of page @offset of slot @id. */
void store_log_ring_collected(struct kvm *kvm, uint32_t id, uint64_t offset);
/* The reset of number kvm->ring_resets has freed one. */
void store_log_ring_reset(struct kvm *kvm, uint32_t id, uint64_t offset);
/* The flush of reset number @call has reached every vCPU. */
void store_log_ring_flushed(struct kvm *kvm, uint64_t call, cycles_t now);
void store_log_ring_disarm(struct kvm *kvm, struct kvm_memory_slot *slot);
/* Pages stored to, without an entry that was not reset; @missed: only those that a reset has missed
 * before. */
uint64_t store_log_ring_lost(const struct kvm *kvm, const struct kvm_memory_slot *slot,
			     bool missed);
/* Pages stored to since the last harvest whose bits are not set, and which no CPU's log has. */
uint64_t store_log_lost(const struct kvm *kvm, const struct kvm_memory_slot *slot);

/* The shadow structures against one another, the guest's tables and the slots. 0, or KVMSIM_ECHECK
 * with a message. */
int mmu_check(const struct kvm *kvm);
/* What both back ends ask of leaf @i of @sp: a slot has its frame, and it maps the host page behind
 * that as the host has it. 0, or KVMSIM_ECHECK with a message. */
int check_leaf_host(const struct kvm *kvm, const struct kvm_mmu_page *sp, unsigned i);
/* The same of an MMIO spte: no slot has its frame, and it is where that frame's is. */
int check_mmio_spte_place(const struct kvm *kvm, const struct kvm_mmu_page *sp, unsigned i);
/* What the vCPU has cached against the sptes; only between accesses. */
int tlb_check(const struct kvm_vcpu *v);

#endif
