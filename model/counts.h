/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_COUNTS_H
#define KVMSIM_COUNTS_H

#include "model/sim/sim.h"

/*
 * The model's vocabulary: what it counts, what it is busy with, what it waits for. A profile
 * prices the counts by these names. Sorted by the room that charges them.
 *
 *	X(name, "what one of it is")
 */
#define KVMSIM_COUNTS(X)                                                                           \
	/* guest */                                                                                \
	X(insn, "guest instruction retired")                                                       \
	X(tlb_walk, "hardware walk after a guest TLB miss")                                        \
	/* entry, exit, userspace */                                                               \
	X(vm_entry, "VM entry")                                                                    \
	X(vm_exit, "VM exit up to its handler")                                                    \
	X(pio_exit, "port access handed to userspace")                                             \
	X(kvm_run, "KVM_RUN entered and left")                                                     \
	X(ioctl, "entry to and return from another ioctl")                                         \
	X(send_page, "page read and sent by a migration")                                          \
	X(emulate, "instruction emulated")                                                         \
	X(emulate_resume, "instruction's emulation gone on with, a device's answer being there")   \
	X(emulator_slot, "memslot searched for by the emulator")                                   \
	X(mmio_exit, "access of a device handed to userspace")                                     \
	X(vcpu_request, "request of a vCPU served at entry")                                       \
	/* faults */                                                                               \
	X(pml_log, "entry of its own dirty log written by the CPU")                                \
	X(pml_full_exit, "exit because the CPU's dirty log is full, its handler")                  \
	X(pml_full_entry, "entry that the log has at such an exit")                                \
	X(pml_flush_entry, "entry of the CPU's dirty log moved to the VM's at an exit")            \
	X(page_fault, "page fault taken by the MMU, fixed part")                                   \
	X(fast_page_fault, "attempt to fix a fault without mmu_lock")                              \
	X(guest_walk_level, "guest page-table entry read by the software walker")                  \
	X(gpte_update, "A or D bit set in a guest page-table entry")                               \
	X(gpte_check, "guest entry read again under mmu_lock")                                     \
	X(shadow_level, "level of the shadow tables stepped through")                              \
	X(mmio_cache_check, "device that a vCPU remembers compared with an access")                \
	X(mmio_spte_check, "MMIO spte found by a walk and looked at")                              \
	X(make_mmio_spte, "MMIO spte made")                                                        \
	X(memslot_lookup, "memslot searched for a frame")                                          \
	X(gfn_to_pfn, "host frame looked up for a fault")                                          \
	X(host_slow_gup, "host page looked up by the slow way, since it is not mapped writable")   \
	X(host_activate, "host page found used, to be moved to the active list")                   \
	X(host_move, "host page moved to the active list, fifteen at a time")                      \
	X(host_fault, "host page populated")                                                       \
	X(host_page, "page allocated and cleared for such a fault, or copied")                     \
	X(host_clear, "4 KiB of a larger host page cleared, after the first")                      \
	X(mmu_notifier, "MMU notifier called by the host's mm, fixed part")                        \
	X(host_call, "madvise() or mprotect(), fixed part")                                        \
	X(host_unmap, "host page unmapped and given back")                                         \
	X(host_protect, "host page's protection changed")                                          \
	X(host_vma, "mapping of the VMM's split in two, merged or moved its border")               \
	X(host_walk, "host page tables walked for the size of a mapping")                          \
	X(get_page, "kvm_mmu_get_page call")                                                       \
	X(sp_hash, "shadow page met in a hash chain")                                              \
	X(sp_alloc, "shadow page taken into use")                                                  \
	X(stock_page, "page allocated and cleared ahead of the faults that will use it")           \
	X(stock_object, "header or descriptor allocated ahead of the faults that will use it")     \
	X(link_page, "shadow page linked below another")                                           \
	X(set_spte, "spte of the faulting address made and installed")                             \
	X(rmap_add, "new spte entered in its rmap and accounted, but those of a split")            \
	X(prefetch_gup, "host page tables walked for a prefetch")                                  \
	X(prefetch_pfn, "host frame found by such a walk")                                         \
	X(prefetch_spte, "spte prefetched beside the faulting one")                                \
	X(mark_dirty, "dirty bit set in a memslot's bitmap")                                       \
	X(zap_sp, "shadow page zapped, 512 sptes looked at")                                       \
	X(zap_spte, "spte cleared and unlinked")                                                   \
	X(rmap_remove, "spte taken out of its rmap")                                               \
	X(root_switch, "root looked for among the previous ones")                                  \
	X(sync_page, "shadow page synced with its guest table, 512 sptes looked at")               \
	X(sync_spte, "spte held against its guest entry at that")                                  \
	X(invlpg_root, "root walked for INVLPG")                                                   \
	X(tlb_flush, "TLB flush at entry")                                                         \
	X(remote_tlb_flush, "remote TLB flush request")                                            \
	/* memslots */                                                                             \
	X(memslot_update, "set of memslots replaced")                                              \
	X(bitmap_alloc, "page of a dirty bitmap, or another array of a memslot, allocated")        \
	X(bitmap_set, "word of a new dirty bitmap filled with ones")                               \
	/* dirty log */                                                                            \
	X(get_dirty_log, "GET_DIRTY_LOG call, fixed part")                                         \
	X(clear_dirty_log, "CLEAR_DIRTY_LOG call, fixed part")                                     \
	X(bitmap_word, "dirty bitmap word scanned")                                                \
	X(bitmap_clear, "word of the result zeroed")                                               \
	X(bitmap_copy, "word copied to or from userspace")                                         \
	X(dirty_word, "non-zero bitmap word taken")                                                \
	X(clear_word, "bits of a bitmap word cleared that userspace named")                        \
	X(ring_push, "entry pushed into a vCPU's dirty ring")                                      \
	X(ring_full, "entry to the guest refused, since the dirty ring is full")                   \
	X(ring_collect, "entry of a dirty ring read by userspace")                                 \
	X(reset_dirty_rings, "RESET_DIRTY_RINGS call, fixed part")                                 \
	X(ring_reset, "entry of a dirty ring reset")                                               \
	X(ring_batch, "neighbouring pages of a ring handed to the MMU under one mmu_lock")         \
	X(rearm_word, "word of dirty bits handed to the MMU")                                      \
	X(dirty_page, "dirty bit handled")                                                         \
	X(rmap_head, "rmap head of one frame looked up")                                           \
	X(slot_rmap_head, "rmap head visited in a pass over a slot")                               \
	X(slot_rmap_used, "one of them that has sptes, handed on")                                 \
	X(rmap_spte, "spte visited through an rmap")                                               \
	X(rmap_desc, "pte_list descriptor visited")                                                \
	X(host_level, "size of the host's mapping looked up for an spte that could be larger")     \
	X(write_protect, "writable spte made read-only")                                           \
	X(clear_dirty, "spte's D cleared, so that the CPU logs the next store")                    \
	X(split_huge, "large spte split ahead of a store, but for its table's entries")            \
	X(walk_sp, "active shadow page visited by a walk")                                         \
	X(walk_spte, "spte tested by a walk")                                                      \
	X(walk_gfn, "writable spte of a guest table, its frame compared with the slot by a walk")  \
	X(walk_gfn_direct, "the same for one of a direct shadow page, its frame computed")         \
	X(tdp_walk, "walk over frames begun at a root of the nested tables")                       \
	X(tdp_spte, "entry of the nested tables read by such a walk")                              \
	X(tdp_leaf, "leaf that a walk over the frames of a word meets")                            \
	X(tdp_resched, "look whether the walk should let go of mmu_lock")                          \
	X(tdp_dirty, "page of a word of dirty bits found by such a walk")                          \
	X(tdp_change, "entry of the nested tables changed, told and accounted")                    \
	X(split_spte, "spte made of a larger one that is split")                                   \
	/* host */                                                                                 \
	X(lock, "uncontended lock acquired and released")                                          \
	X(lock_line, "contended lock's cache line fetched from another core")                      \
	X(guarded_line, "line that a guest's lock guards fetched from another core")               \
	X(tlbi, "TLB invalidation broadcast by the CPU, its turn waited for")                      \
	X(timer_state, "state of a timer's interrupt set under its lock, without an irqchip")      \
	X(pv_unlock,                                                                               \
	  "paravirtual lock released: by an atomic operation, and a look for who halts")           \
	X(ipi, "IPI sent")                                                                         \
	X(wake_up, "thread of the host's woken up")                                                \
	X(context_switch, "thread of the host's switched to on a CPU")                             \
	X(sched_tick, "tick of the host's timer on a CPU that has to share")                       \
	X(migrate, "thread moved to another CPU's run queue")                                      \
	X(yield_to, "directed yield tried")                                                        \
	X(on_spin_vcpu, "vCPU looked at as a candidate for a directed yield")                      \
	X(hypercall, "hypercall handled, beside exit and entry")                                   \
	X(inject, "interrupt injected at an entry")                                                \
	/* a guest's kernel */                                                                     \
	X(pause, "iteration of a loop with PAUSE")                                                 \
	X(guest_irq, "interrupt taken by the guest, fixed part")                                   \
	X(guest_tick, "tick of the guest's timer")                                                 \
	X(guest_switch, "guest thread switched to")                                                \
	X(guest_wake_up, "guest thread woken up")                                                  \
	X(l2_miss, "private cache line fetched from the last level")                               \
	X(llc_miss, "cache line fetched from memory")                                              \
	X(dtlb_miss, "host data TLB miss")

enum model_count {
#define X(name, help) COUNT_##name,
	KVMSIM_COUNTS(X)
#undef X
		N_COUNTS
};

#define KVMSIM_ACTIVITIES(X)                                                                       \
	X(guest, "guest code")                                                                     \
	X(exit, "exit handling outside the MMU")                                                   \
	X(page_fault, "page fault handling")                                                       \
	X(tlb_flush, "flushing TLBs")                                                              \
	X(memslot, "SET_USER_MEMORY_REGION")                                                       \
	X(get_dirty_log, "GET_DIRTY_LOG")                                                          \
	X(clear_dirty_log, "CLEAR_DIRTY_LOG")                                                      \
	X(reset_dirty_rings, "RESET_DIRTY_RINGS")                                                  \
	X(guest_lock, "guest code that takes, waits for or releases a lock")                       \
	X(guest_irq, "guest code in an interrupt")                                                 \
	X(guest_sched, "guest's scheduler")                                                        \
	X(halt, "a vCPU's halt, up to its wake-up")                                                \
	X(pause_exit, "pause-loop exit's handler")                                                 \
	X(sched, "host's scheduler")                                                               \
	X(userspace, "the VMM's own code")

enum model_activity {
#define X(name, help) ACT_##name,
	KVMSIM_ACTIVITIES(X)
#undef X
		N_ACTIVITIES
};

#define KVMSIM_WAITS(X)                                                                            \
	X(cpu, "runnable, no CPU")                                                                 \
	X(lock, "a contended lock")                                                                \
	X(ipi, "acknowledgement of an IPI")                                                        \
	X(srcu, "faults that may have seen the memslots as they were")                             \
	X(notifier, "the end of an MMU notifier's invalidation")                                   \
	X(spin, "a busy loop of the guest's, on a CPU")                                            \
	X(ack, "busy wait for vCPUs that were interrupted")                                        \
	X(vcpu, "guest thread runnable, no vCPU")                                                  \
	X(guest_sleep, "guest thread asleep")                                                      \
	X(halted, "vCPU halted")                                                                   \
	X(halt_poll, "halted vCPU polling on its CPU")                                             \
	X(idle, "nothing to do")

enum model_wait {
#define X(name, help) WAIT_##name,
	KVMSIM_WAITS(X)
#undef X
		N_WAITS
};

extern const struct sim_vocabulary model_vocabulary;
/* The words after each name, for `kvmsim list` and reports. */
const char *model_count_help(uint16_t count);
const char *model_activity_help(uint16_t activity);
const char *model_wait_help(uint16_t wait);

#endif
