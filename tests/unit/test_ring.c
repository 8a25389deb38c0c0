// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The dirty policy `ring`. Numbers of exits, faults and entries are the kernel's
 * (analysis/evidence/kernel/ring-6.1.0-57.csv) or follow from what its API says of them: a ring is
 * full 64 entries before its end, and the store that found it so faults once more. Bitmaps are
 * those that the policy `mask` gives for the same stores.
 */
#include "model/guest/ring.h"

#include <stdlib.h>
#include <string.h>

#include "model/counts.h"
#include "model/guest/vcpu_tlb.h"
#include "model/mmu/mmu.h"
#include "model/policy/dirty_ring.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define EQ    CU_ASSERT_EQUAL
#define PAGES 1000
#define WORDS ((PAGES + 63) / 64)

static const struct scene_opts mmus[] = {
	{.pte = SCENE_2M},
	{.pte = SCENE_4K},
	{.pte = SCENE_FLAT},
	{.paging = PAGING_TDP, .pte = SCENE_2M},
	{.paging = PAGING_TDP, .pte = SCENE_4K, .preset = "6.1-tdp"},
};

static void on_each_mmu(const char *dirty, int (*body)(struct scene *s, struct task *t))
{
	for (size_t i = 0; i < sizeof(mmus) / sizeof(*mmus); i++) {
		struct scene_opts o = mmus[i];

		o.slot_pages = PAGES;
		o.dirty = dirty;
		o.check = true;
		EQ(scene(&o, body), 0);
	}
}

static uint64_t total(const struct scene *s, uint16_t count)
{
	return ledger_sum_count(sim_ledger(s->sim), LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, count)
		.n;
}

static int store(struct scene *s, uint64_t page)
{
	return scene_write(s, SCENE_TEST + (page << 12), 4, page);
}

/* Every page is mapped, logging begins, nothing is in the ring. */
static int begin(struct scene *s, struct task *t)
{
	int r = scene_setup(s);

	r = r ? r : scene_loop(s, true, 0, PAGES);
	return r ? r : scene_log(s, t, true);
}

/* ---- the soft limit ---- */

static unsigned full;

static int on_full(struct kvm_vcpu *v, void *ctx)
{
	struct task *t = vcpu_task(v);

	EQ(ctx, &full);
	EQ(vcpu_exit_reason(v), KVM_EXIT_DIRTY_RING_FULL);
	EQ(kvm_collect_dirty_ring(t, v), 192); /* 256 less the 64 that are reserved */
	EQ(kvm_reset_dirty_rings(t, vcpu_kvm(v)), 192);
	full++;
	return 0;
}

/* The 192nd page fills the ring: its fault pushes an entry, the vCPU leaves before the store is
 * done, and the reset takes W away again: one fault and one entry more. */
static int soft_full(struct scene *s, struct task *t)
{
	uint64_t faults;

	EQ(begin(s, t), 0);
	full = 0;
	kvm_on_ring_full(s->kvm, on_full, &full);
	faults = kvm_stat(s->kvm, STAT_pf_taken);
	for (uint64_t i = 0; i < 191; i++)
		EQ(store(s, i), 0);
	EQ(full, 0);
	EQ(store(s, 191), 0);
	EQ(full, 1);
	EQ(kvm_stat(s->kvm, STAT_pf_taken) - faults, 193);
	for (uint64_t i = 192; i < 400; i++)
		EQ(store(s, i), 0);
	EQ(full, 2); /* 192 + 192 of 402 */
	EQ(total(s, COUNT_ring_full), 2);
	EQ(kvm_stat(s->kvm, STAT_pf_taken) - faults, 402);
	EQ(kvm_collect_dirty_ring(t, s->vcpu[0]), 402 - 2 * 192);
	EQ(kvm_reset_dirty_rings(t, s->kvm), 402 - 2 * 192);
	EQ(s->events[TRACE_kvm_dirty_ring_push], 402);
	EQ(total(s, COUNT_ring_push), 402);
	EQ(s->events[TRACE_kvm_dirty_ring_exit], 2);
	EQ(s->events[TRACE_kvm_dirty_ring_reset], 3);
	EQ(kvm_false_dirties(s->kvm), 2); /* reported before they were stored to */
	EQ(kvm_lost_stores(s->kvm), 0);
	return kvm_check(s->kvm);
}

static void a_full_ring_stops_the_vcpu(void)
{
	on_each_mmu("ring,size=256", soft_full);
}

/* ---- the reset ---- */

/* Stores to @pages in their order, then collect and reset; returns how often mmu_lock was taken for
 * a batch, without the empty one that comes first. */
static uint64_t batches(struct scene *s, struct task *t, const uint64_t *pages, long n)
{
	uint64_t before = total(s, COUNT_ring_batch), protected = total(s, COUNT_write_protect);
	uint64_t flushes = kvm_stat(s->kvm, STAT_remote_tlb_flush_requests);

	for (long i = 0; i < n; i++)
		EQ(store(s, pages[i]), 0);
	EQ(kvm_collect_dirty_ring(t, s->vcpu[0]), n);
	EQ(kvm_reset_dirty_rings(t, s->kvm), n);
	EQ(total(s, COUNT_write_protect) - protected, (uint64_t)n);
	EQ(kvm_stat(s->kvm, STAT_remote_tlb_flush_requests) - flushes, 1);
	return total(s, COUNT_ring_batch) - before - 1;
}

/* Pages within 64 of the first are one batch, whichever way the guest goes, if none of them falls
 * out of the 64 by that. */
static int coalesced(struct scene *s, struct task *t)
{
	static const uint64_t far[] = {100, 163, 99, 164, 700};
	uint64_t pages[64], flushes;

	EQ(begin(s, t), 0);
	for (uint64_t i = 0; i < 64; i++)
		pages[i] = 10 + i;
	EQ(batches(s, t, pages, 64), 1);
	for (uint64_t i = 0; i < 64; i++)
		pages[i] = 73 - i;
	EQ(batches(s, t, pages, 64), 1);
	for (uint64_t i = 0; i < 64; i++)
		pages[i] = i * 8;
	EQ(batches(s, t, pages, 64), 8);
	for (uint64_t i = 0; i < 15; i++)
		pages[i] = i * 64;
	EQ(batches(s, t, pages, 15), 15);
	EQ(batches(s, t, far, 2), 1);
	EQ(batches(s, t, far, 3), 2); /* 163 would be the 65th from 99 */
	EQ(batches(s, t, far, 5), 4); /* 99 and 164 are 65 apart */
	flushes = kvm_stat(s->kvm, STAT_remote_tlb_flush_requests);
	EQ(kvm_reset_dirty_rings(t, s->kvm), 0); /* nothing was collected */
	EQ(kvm_stat(s->kvm, STAT_remote_tlb_flush_requests), flushes);
	return kvm_check(s->kvm);
}

static void neighbours_are_reset_together(void)
{
	on_each_mmu("ring,size=256", coalesced);
}

/* Entries of what is not there any more: the slot is gone, or came back smaller. */
static int stale(struct scene *s, struct task *t)
{
	struct kvm_memory_region r = {.slot = 1, .base_gfn = SCENE_TEST >> 12};
	uint64_t bitmap[WORDS];

	EQ(begin(s, t), 0);
	for (uint64_t i = 0; i < 20; i++)
		EQ(store(s, i * 50), 0);
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	EQ(kvm_collect_dirty_log(t, s->kvm, 1, bitmap), KVMSIM_ENOENT);
	EQ(total(s, COUNT_ring_reset), 20);
	r.npages = PAGES;
	r.flags = KVM_MEM_LOG_DIRTY_PAGES;
	r.host_populated = true;
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	for (uint64_t i = 0; i < 20; i++)
		EQ(store(s, i * 50), 0);
	r.npages = 0;
	r.flags = 0;
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	r.npages = 100;
	r.flags = KVM_MEM_LOG_DIRTY_PAGES;
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	EQ(kvm_collect_dirty_log(t, s->kvm, 1, bitmap), 2); /* pages 0 and 50 */
	EQ(bitmap[0], 1 | 1ull << 50);
	return kvm_check(s->kvm);
}

static void entries_of_a_slot_that_went(void)
{
	on_each_mmu("ring,size=256", stale);
}

/* What was reported of a slot and not asked for goes with it: a slot of the same number and another
 * size starts with nothing. */
static int other_size(struct scene *s, struct task *t)
{
	static const uint64_t sizes[] = {100, PAGES, 64};
	struct kvm_memory_region r = {.slot = 1,
				      .base_gfn = SCENE_TEST >> 12,
				      .flags = KVM_MEM_LOG_DIRTY_PAGES,
				      .host_populated = true};
	uint64_t bitmap[WORDS];

	EQ(begin(s, t), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t last = s->kvm->slots[1]->npages - 1;

		EQ(store(s, 3), 0);
		EQ(store(s, last), 0);
		EQ(kvm_reap_dirty_rings(t, s->kvm), 2);
		r.npages = 0;
		EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
		r.npages = sizes[i];
		EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
		EQ(i % 2 ? kvm_collect_dirty_log(t, s->kvm, 1, bitmap) : 0, 0);
	}
	EQ(store(s, 5), 0);
	EQ(kvm_collect_dirty_log(t, s->kvm, 1, bitmap), 1);
	EQ(bitmap[0], 1ull << 5);
	return kvm_check(s->kvm);
}

static void a_slot_of_another_size(void)
{
	on_each_mmu("ring,size=256", other_size);
}

/* Who empties one vCPU's ring leaves the others'; without an entry nothing is reset. */
static int one_ring(struct scene *s, struct task *t)
{
	struct kvm_dirty_ring *other = s->vcpu[1]->dirty_ring;

	EQ(begin(s, t), 0);
	EQ(store(s, 3), 0);
	*dirty_ring_entry(other, other->dirty_index++) =
		(struct kvm_dirty_gfn){.flags = KVM_DIRTY_GFN_F_DIRTY, .slot = 1, .offset = 4};
	EQ(kvm_reap_dirty_ring(t, s->vcpu[0]), 1);
	EQ(total(s, COUNT_reset_dirty_rings), 1);
	EQ(kvm_reap_dirty_ring(t, s->vcpu[0]), 0);
	EQ(total(s, COUNT_reset_dirty_rings), 1);
	EQ(kvm_reap_dirty_ring(t, s->vcpu[1]), 1);
	EQ(kvm_reap_dirty_rings(t, s->kvm), 0);
	EQ(total(s, COUNT_reset_dirty_rings), 2);
	return 0;
}

static void a_ring_by_itself(void)
{
	const struct scene_opts o = {
		.pte = SCENE_4K, .slot_pages = PAGES, .n_vcpus = 2, .dirty = "ring,size=256"};

	EQ(scene(&o, one_ring), 0);
}

/* ---- what a VMM gets ---- */

static uint64_t logs[8][WORDS];

/* Reads and stores of any pages, collected now and then; the log ends and begins in between. */
static int rounds(struct scene *s, struct task *t)
{
	uint64_t x = 88172645463325252ull; /* G. Marsaglia, Xorshift RNGs, 2003 */

	EQ(scene_setup(s), 0);
	EQ(scene_log(s, t, true), 0);
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 600; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			if (x >> 60 == 0) {
				EQ(scene_read(s, SCENE_TEST + (x % PAGES << 12)), 0);
			} else {
				EQ(store(s, x % (round % 2 ? PAGES : 90)), 0);
			}
		}
		EQ(scene_out(s), 0);
		if (kvm_collect_dirty_log(t, s->kvm, 1, logs[round]) <= 0)
			return KVMSIM_EINVAL;
		if (round == 3) {
			EQ(scene_log(s, t, false), 0);
			EQ(scene_log(s, t, true), 0);
		}
	}
	return kvm_check(s->kvm);
}

static void a_vmm_gets_what_mask_gives(void)
{
	static const char *const policies[] = {"ring,size=256", "ring,size=1024", "ring"};
	uint64_t expected[8][WORDS];

	for (size_t i = 0; i < sizeof(mmus) / sizeof(*mmus); i++) {
		struct scene_opts o = mmus[i];

		o.slot_pages = PAGES;
		o.check = true;
		o.dirty = "mask";
		EQ(scene(&o, rounds), 0);
		memcpy(expected, logs, sizeof(logs));
		for (size_t p = 0; p < sizeof(policies) / sizeof(*policies); p++) {
			o.dirty = policies[p];
			memset(logs, 0, sizeof(logs));
			EQ(scene(&o, rounds), 0);
			EQ(memcmp(expected, logs, sizeof(logs)), 0);
		}
	}
}

/* ---- refusals ---- */

static int errors_of_ring(struct scene *s, struct task *t)
{
	uint64_t bitmap[WORDS] = {1};

	EQ(begin(s, t), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), KVMSIM_EUNSUPPORTED);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 0, 64, bitmap), KVMSIM_EUNSUPPORTED);
	EQ(kvm_collect_dirty_log(t, s->kvm, 7, bitmap), KVMSIM_ENOENT);
	EQ(scene_log(s, t, false), 0);
	EQ(kvm_collect_dirty_log(t, s->kvm, 1, bitmap), KVMSIM_ENOENT);
	EQ(kvm_start_ring_reaper(s->kvm, task_now(t)), KVMSIM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "reaper=0 does without"));
	return 0;
}

static int errors_of_mask(struct scene *s, struct task *t)
{
	EQ(kvm_collect_dirty_ring(t, s->vcpu[0]), KVMSIM_EINVAL);
	EQ(kvm_reset_dirty_rings(t, s->kvm), KVMSIM_EINVAL);
	EQ(kvm_reap_dirty_rings(t, s->kvm), KVMSIM_EINVAL);
	EQ(kvm_start_ring_reaper(s->kvm, task_now(t)), 0); /* there is none to start */
	return 0;
}

static void refusals(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = PAGES, .dirty = "ring"};

	EQ(scene(&o, errors_of_ring), 0);
	o.dirty = "mask";
	EQ(scene(&o, errors_of_mask), 0);
}

/* KVM's own thread dirties a page while no vCPU runs on it: the kernel warns and forgets it. */
static int store_by_nobody(struct scene *s, struct task *t)
{
	EQ(begin(s, t), 0);
	kvm_mark_page_dirty(t, s->kvm, SCENE_TEST >> 12);
	return task_sync(t);
}

/* More in one exit than was kept free for it: the kernel warns, and overwrites the oldest. */
static int too_many(struct scene *s, struct task *t)
{
	EQ(begin(s, t), 0);
	EQ(store(s, 0), 0);
	for (uint64_t i = 1; i < 256; i++)
		kvm_mark_page_dirty(t, s->kvm, (SCENE_TEST >> 12) + i);
	EQ(dirty_ring_used(s->vcpu[0]->dirty_ring), 256);
	EQ(strlen(scene_message), 0);
	kvm_mark_page_dirty(t, s->kvm, SCENE_TEST >> 12);
	return task_sync(t);
}

static void nothing_is_lost_silently(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = PAGES, .dirty = "ring,size=256"};

	EQ(scene(&o, store_by_nobody), KVMSIM_ECHECK);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "while it runs no vCPU"));
	EQ(scene(&o, too_many), KVMSIM_ECHECK);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "full to the last entry"));
}

/* ---- the checker catches what a wrong ring would lose ---- */

enum damage { ENTRY_DROPPED, ENTRY_NOT_READ, FLUSH_FORGOTTEN, NONE };
static enum damage damage;

static int damaged(struct scene *s, struct task *t)
{
	struct kvm_dirty_ring *r = s->vcpu[0]->dirty_ring;
	uint64_t gva = SCENE_TEST + (5 << 12);

	EQ(begin(s, t), 0);
	for (uint64_t i = 0; i < 8; i++)
		EQ(store(s, i), 0);
	if (damage == ENTRY_DROPPED)
		dirty_ring_entry(r, --r->dirty_index)->flags = 0;
	if (damage == ENTRY_NOT_READ)
		dirty_ring_entry(r, r->fetch_index++)->flags = KVM_DIRTY_GFN_F_RESET;
	EQ(kvm_reap_dirty_rings(t, s->kvm) >= 7, 1);
	if (damage == FLUSH_FORGOTTEN) {
		EQ(scene_read(s, gva), 0);
		tlb_fill(&s->vcpu[0]->tlb, gva, gva >> 12, TLB_READ | TLB_WRITE | TLB_WPERM);
		EQ(vcpu_write(s->vcpu[0], gva, 4, 1), 0);
		tlb_flush(&s->vcpu[0]->tlb);
	}
	return kvm_check(s->kvm);
}

static void the_checker_catches_losses(void)
{
	const struct scene_opts o = {.pte = SCENE_4K,
				     .slot_pages = PAGES,
				     .dirty = "ring,size=256",
				     .personality = "amd",
				     .check = true};

	for (damage = ENTRY_DROPPED; damage < NONE; damage++) {
		EQ(scene(&o, damaged), KVMSIM_ECHECK);
		CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "1 store was never reported"));
	}
	EQ(scene(&o, damaged), 0);
}

static CU_TestInfo tests[] = {
	{"a_full_ring_stops_the_vcpu", a_full_ring_stops_the_vcpu},
	{"neighbours_are_reset_together", neighbours_are_reset_together},
	{"entries_of_a_slot_that_went", entries_of_a_slot_that_went},
	{"a_slot_of_another_size", a_slot_of_another_size},
	{"a_ring_by_itself", a_ring_by_itself},
	{"a_vmm_gets_what_mask_gives", a_vmm_gets_what_mask_gives},
	{"refusals", refusals},
	{"nothing_is_lost_silently", nothing_is_lost_silently},
	{"the_checker_catches_losses", the_checker_catches_losses},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("ring", tests)
