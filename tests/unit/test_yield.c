// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Who changes what faults may see waits for the faults that have seen it as it was, and whoever
 * holds mmu_lock for long lets others have it, with what it changed flushed before. A second task
 * looks at each cycle, and comes when the first is in the middle of its work.
 */
#include "model/counts.h"
#include "model/mmu/mmu.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define EQ   CU_ASSERT_EQUAL
#define SLOT 2
#define AT   0x40000000ull /* 1 GiB */
#define MIB2 512ull	   /* pages */
#define N    4ull	   /* large pages of the slot */

static uint64_t total(const struct scene *s, uint16_t count)
{
	return ledger_sum_count(sim_ledger(s->sim), LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, count)
		.n;
}

static uint64_t flushes(const struct scene *s)
{
	return kvm_stat(s->kvm, STAT_remote_tlb_flush_requests);
}

/* ---- SRCU ---- */

#define LONG 5000 /* cycles that a reader takes */

struct reader {
	struct scene *s;
	cycles_t ended, takes;
	bool after_update; /* begins when the update waits */
	uint64_t mark;	   /* a bit for word 0 of the bitmap that it found; 0: none */
	uint64_t protected_before, protected_after;
	bool began, logged, found_other;
};

static int reader(struct task *t, void *arg)
{
	struct reader *r = arg;
	struct kvm *kvm = r->s->kvm;
	struct kvm_memory_slot *slot = id_to_memslot(kvm, 1);
	struct rcu_reader srcu;
	uint64_t *bitmap;
	int err = sync(t);

	for (int i = 0; i < LONG && !err && r->after_update && !kvm->srcu.waiter; i++) {
		charge(t, COUNT_insn, 1);
		err = sync(t);
	}
	if (err)
		return err;
	r->began = true;
	srcu_read_lock(t, &kvm->srcu, &srcu);
	bitmap = slot->dirty_bitmap;
	r->protected_before = total(r->s, COUNT_write_protect);
	charge(t, COUNT_insn, r->takes);
	err = sync(t);
	if (r->mark)
		bitmap[0] |= r->mark;
	r->protected_after = total(r->s, COUNT_write_protect);
	r->logged = memslot_logged(slot);
	r->found_other = slot->dirty_bitmap != bitmap;
	srcu_read_unlock(t, &kvm->srcu, &srcu);
	r->ended = task_now(t);
	return err;
}

static int start(struct scene *s, struct task *t, struct reader *r)
{
	const struct task_opts o = {.name = "reader", .fn = reader, .arg = r, .start = task_now(t)};
	struct task *task;

	r->s = s;
	EQ(task_create(s->sim, &o, &task), 0);
	return task_block_until(t, WAIT_idle, task_now(t) + 10);
}

static cycles_t waited(const struct scene *s, const struct task *t)
{
	return ledger_sum_wait(sim_ledger(s->sim), task_id(t), LEDGER_ALL_ACTIVITIES, WAIT_srcu)
		.cycles;
}

/* Logging is turned on: the slot says so, and nothing loses W until the reader is gone. Who comes
 * after the slot has changed is not waited for. */
static int flags_change(struct scene *s, struct task *t)
{
	struct reader early = {.takes = LONG}, late = {.takes = 10 * LONG, .after_update = true};
	cycles_t begin;

	EQ(scene_setup(s), 0);
	EQ(scene_loop(s, true, 0, 64), 0);
	EQ(sync(t), 0);
	EQ(start(s, t, &late), 0);
	begin = task_now(t);
	EQ(start(s, t, &early), 0);
	EQ(scene_log(s, t, true), 0);
	EQ(early.logged, true);
	EQ(early.protected_after, early.protected_before);
	EQ(total(s, COUNT_write_protect), early.protected_before + 64);
	EQ(early.ended, begin + LONG);
	CU_ASSERT_TRUE(waited(s, t) > LONG - 200);
	CU_ASSERT_TRUE(waited(s, t) < LONG);
	CU_ASSERT_TRUE(late.began);
	EQ(late.ended, 0);
	return task_block_until(t, WAIT_idle, task_now(t) + 20 * LONG);
}

/* Before 3.3 a call puts another bitmap in the place of the slot's: who has found the old one still
 * marks a page in it, and that page is in this call's report. */
static int bitmaps_swap(struct scene *s, struct task *t)
{
	struct reader r = {.takes = LONG, .mark = 1ull << 9};
	uint64_t bitmap[1];

	EQ(scene_setup(s), 0);
	EQ(scene_write(s, SCENE_TEST + (5 << 12), 4, 1), 0);
	EQ(sync(t), 0);
	EQ(start(s, t, &r), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 2);
	EQ(bitmap[0], 1ull << 5 | 1ull << 9);
	EQ(r.found_other, true);
	EQ(r.protected_after, r.protected_before);
	return 0;
}

static void faults_waited_for(void)
{
	struct scene_opts o = {.slot_pages = 64, .pte = SCENE_4K, .check = true};

	EQ(scene(&o, flags_change), 0);
	o.paging = PAGING_TDP;
	o.preset = "6.1-tdp";
	EQ(scene(&o, flags_change), 0);
	o.paging = PAGING_SHADOW;
	o.preset = "2.6.36";
	o.slot_flags = KVM_MEM_LOG_DIRTY_PAGES;
	EQ(scene(&o, bitmaps_swap), 0);
}

/* ---- mmu_lock ---- */

struct other {
	struct scene *s;
	uint64_t (*done)(const struct scene *s); /* how far the first task has come */
	uint64_t at;				 /* it comes when so much is done */
	uint64_t begin, flushed;		 /* of both, before */
	uint64_t came, had;			 /* done when it came, when it had the lock */
	uint64_t had_flushes;
};

/* Comes for mmu_lock as soon as enough has been done. */
static int other(struct task *t, void *arg)
{
	struct other *o = arg;
	int r = sync(t);

	while (!r && o->done(o->s) < o->begin + o->at) {
		charge(t, COUNT_insn, 1);
		r = sync(t);
	}
	o->came = o->done(o->s) - o->begin;
	r = r ? r : mmu_lock(t, o->s->kvm, "test");
	if (r)
		return r;
	o->had = o->done(o->s) - o->begin;
	o->had_flushes = flushes(o->s) - o->flushed;
	mmu_unlock(t, o->s->kvm);
	return 0;
}

static int comes(struct scene *s, struct task *t, struct other *o, uint64_t at,
		 uint64_t (*done)(const struct scene *s))
{
	const struct task_opts to = {.name = "other", .fn = other, .arg = o, .start = task_now(t)};
	struct task *task;

	*o = (struct other){
		.s = s, .at = at, .done = done, .begin = done(s), .flushed = flushes(s)};
	EQ(task_create(s->sim, &to, &task), 0);
	return sync(t);
}

static int slot(struct scene *s, struct task *t, bool log)
{
	const struct kvm_memory_region r = {.slot = SLOT,
					    .flags = log ? KVM_MEM_LOG_DIRTY_PAGES : 0,
					    .base_gfn = AT >> 12,
					    .npages = N * MIB2,
					    .host_populated = true,
					    .host_level = PG_LEVEL_2M};

	return kvm_set_user_memory_region(t, s->kvm, &r);
}

static int populate(struct scene *s, struct task *t)
{
	EQ(slot(s, t, false), 0);
	for (uint64_t i = 0; i < N; i++)
		EQ(scene_write(s, AT + (i * MIB2 << 12), 4, 1), 0);
	return sync(t);
}

static uint64_t splits(const struct scene *s)
{
	return total(s, COUNT_split_huge);
}

static uint64_t split_events[2]; /* successful, not */

static void on_split(void *ctx, const struct kvm_trace_event *e)
{
	(void)ctx;
	if (e->id == TRACE_kvm_mmu_split_huge_page)
		split_events[e->code != 0]++;
}

/* Two of the guest's mappings of one large page are two sptes of one rmap. Between them the split
 * lets go, and says so by an event, as when its stock is empty. */
static int between_aliases(struct scene *s, struct task *t)
{
	const uint64_t pd = 0x12000, alias = 3ull << 30;
	struct other o;

	EQ(slot(s, t, false), 0);
	kvm_write_guest_u64(s->kvm, pd + 3 * 0x1000, AT | 0xe7);
	EQ(scene_write(s, AT + (5 << 12), 4, 1), 0);
	EQ(scene_write(s, alias + (6 << 12), 4, 1), 0);
	EQ(kvm_stat(s->kvm, STAT_pages_2m), 2);
	s->observer = (struct kvm_observer){on_split, NULL};
	EQ(comes(s, t, &o, 1, splits), 0);
	EQ(slot(s, t, true), 0);
	EQ(o.came, 1);
	EQ(o.had, 1);
	EQ(splits(s), 2);
	EQ(split_events[0], 2);
	EQ(split_events[1], 1 + 1);
	return kvm_check(s->kvm);
}

static void splits_let_go(void)
{
	const struct scene_opts o = {
		.pte = SCENE_2M, .slot_pages = 64, .preset = "5.18-eager", .check = true};

	EQ(scene(&o, between_aliases), 0);
}

static uint64_t large(const struct scene *s)
{
	return kvm_stat(s->kvm, STAT_pages_2m);
}

/* 6.13 puts large sptes back, and flushes at the end of it; whoever is let in between finds those
 * that are back flushed. */
static int recovers(struct scene *s, struct task *t)
{
	struct other o;

	EQ(populate(s, t), 0);
	EQ(slot(s, t, true), 0);
	EQ(large(s), 0);
	EQ(comes(s, t, &o, 1, large), 0);
	EQ(slot(s, t, false), 0);
	EQ(large(s), N);
	EQ(o.came, 1);
	EQ(o.had, 1);
	EQ(o.had_flushes, 1);
	EQ(flushes(s) - o.flushed, 2);
	return kvm_check(s->kvm);
}

static uint64_t zapped(const struct scene *s)
{
	return total(s, COUNT_zap_spte);
}

/* So does the pass over rmaps when logging ends. */
static int zaps(struct scene *s, struct task *t)
{
	struct other o;

	EQ(slot(s, t, true), 0);
	for (uint64_t i = 0; i < N; i++)
		EQ(scene_write(s, AT + (i * MIB2 << 12), 4, 1), 0);
	EQ(sync(t), 0);
	EQ(comes(s, t, &o, 1, zapped), 0);
	EQ(slot(s, t, false), 0);
	EQ(o.had, 1);
	EQ(o.had_flushes, 1);
	EQ(flushes(s) - o.flushed, 2);
	return kvm_check(s->kvm);
}

/* Whoever comes after the last change: the flush before it is let in is the last one. */
static int zaps_all(struct scene *s, struct task *t)
{
	struct other o;

	EQ(slot(s, t, true), 0);
	EQ(scene_write(s, AT, 4, 1), 0);
	EQ(sync(t), 0);
	EQ(comes(s, t, &o, 1, zapped), 0);
	EQ(slot(s, t, false), 0);
	EQ(o.had_flushes, 1);
	EQ(flushes(s) - o.flushed, 1);
	return kvm_check(s->kvm);
}

/* 6.1's TDP MMU takes tables out, each with its flush, and lets others in between. */
static int zaps_tables(struct scene *s, struct task *t)
{
	struct other o;

	EQ(populate(s, t), 0);
	EQ(slot(s, t, true), 0);
	EQ(comes(s, t, &o, 1, zapped), 0);
	EQ(slot(s, t, false), 0);
	CU_ASSERT_TRUE(o.had <= MIB2 + 1);
	EQ(o.had_flushes, 1);
	EQ(flushes(s) - o.flushed, N);
	return kvm_check(s->kvm);
}

static uint64_t protected(const struct scene *s)
{
	return total(s, COUNT_write_protect);
}

/* The one that takes W does not: its flush comes after all of it, mmu_lock let go. */
static int protects(struct scene *s, struct task *t)
{
	struct other o;

	EQ(populate(s, t), 0);
	EQ(comes(s, t, &o, 1, protected), 0);
	EQ(slot(s, t, true), 0);
	EQ(protected(s) - o.begin, N);
	EQ(o.had, 1);
	EQ(o.had_flushes, 0);
	EQ(flushes(s) - o.flushed, 1);
	return kvm_check(s->kvm);
}

static void flushed_before(void)
{
	struct scene_opts o = {.paging = PAGING_TDP,
			       .pte = SCENE_FLAT,
			       .slot_pages = 64,
			       .preset = "6.13-tdp",
			       .check = true};

	EQ(scene(&o, recovers), 0);
	o.preset = "6.1-shadow";
	EQ(scene(&o, zaps), 0);
	EQ(scene(&o, zaps_all), 0);
	EQ(scene(&o, protects), 0);
	o.preset = "6.1-tdp";
	EQ(scene(&o, zaps_tables), 0);
	o.preset = "6.2-tdp";
	o.eager_page_split = EAGER_PAGE_SPLIT_OFF;
	EQ(scene(&o, protects), 0);
}

/* Holds of mmu_lock for read when logging begins: one to split, one to protect; and in 6.13 one
 * more for each table, which is made with the lock let go. */
static uint64_t expected_holds;

static int tables_made(struct scene *s, struct task *t)
{
	EQ(populate(s, t), 0);
	kvm_mmu_lock_stats_reset(s->kvm);
	EQ(slot(s, t, true), 0);
	EQ(kvm_stat(s->kvm, STAT_pages_4k) >= N * MIB2, true);
	EQ(kvm_mmu_lock_read_stats(s->kvm).acquired, expected_holds);
	return kvm_check(s->kvm);
}

static void tables_unlocked(void)
{
	struct scene_opts o = {.paging = PAGING_TDP,
			       .pte = SCENE_FLAT,
			       .slot_pages = 64,
			       .preset = "6.2-tdp",
			       .check = true};

	expected_holds = 2;
	EQ(scene(&o, tables_made), 0);
	o.preset = "6.13-tdp";
	expected_holds = 2 + N;
	EQ(scene(&o, tables_made), 0);
}

static CU_TestInfo tests[] = {
	{"faults_waited_for", faults_waited_for},
	{"splits_let_go", splits_let_go},
	{"flushed_before", flushed_before},
	{"tables_unlocked", tables_unlocked},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("yield", tests)
