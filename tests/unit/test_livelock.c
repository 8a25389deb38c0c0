// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Livelocks are seen as such: a vCPU that takes one fault for ever. Among them a hang that kernels
 * from 5.16 to 6.2 had, whose faults passed the sequence of invalidations as an int (fixed in 6.3;
 * "KVM: x86/mmu: Fix an sign-extension bug with mmu_seq that hangs vCPUs" in stable kernels).
 */
#include <stdio.h>
#include <string.h>

#include "model/guest/ring.h"
#include "model/host/cache.h"
#include "model/mmu/mmu.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define TWO_31	(1ull << 31)
#define PAGES	8
#define TEST(i) (SCENE_TEST + ((uint64_t)(i) << PAGE_SHIFT))

static unsigned done; /* stores that were */

/* The first store to an anonymous page that was read takes the zero page's place: an invalidation
 * each. */
static int copy_pages(struct scene *s, struct task *t)
{
	int r = 0;

	(void)t;
	done = 0;
	for (unsigned i = 0; i < PAGES && !r; i++)
		r = scene_read(s, TEST(i));
	for (unsigned i = 0; i < PAGES && !r; i++) {
		r = scene_write(s, TEST(i), 8, 1);
		done += !r;
	}
	return r;
}

static int copy_from(const char *preset, enum kvm_paging paging, uint64_t invalidations)
{
	const struct scene_opts o = {.paging = paging,
				     .pte = SCENE_FLAT,
				     .slot_pages = 64,
				     .preset = preset,
				     .host_absent = true,
				     .host_anonymous = true,
				     .invalidations = invalidations,
				     .check = true};

	scene_message[0] = 0;
	return scene(&o, copy_pages);
}

static const struct {
	const char *preset;
	enum kvm_paging paging;
	bool hangs;
} kernels[] = {
	{"5.16-tdp", PAGING_TDP, true},	    {"5.18-tdp", PAGING_TDP, true},
	{"6.2-tdp", PAGING_TDP, true},	    {"5.18-eager", PAGING_SHADOW, true},
	{"5.18-eager", PAGING_TDP, true},   {"6.1-tdp", PAGING_TDP, false},
	{"6.13-tdp", PAGING_TDP, false},    {"6.1-shadow", PAGING_SHADOW, false},
	{"6.13-shadow", PAGING_TDP, false}, {"3.6", PAGING_SHADOW, false},
	{"2.6.36", PAGING_SHADOW, false},
};

static void sequence_past_31_bits(void)
{
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		const char *preset = kernels[i].preset;
		enum kvm_paging paging = kernels[i].paging;
		int hang = kernels[i].hangs ? KVMSIM_ELIVELOCK : 0;

		/* far from it, and up to it: a fault between two copies still has 2^31 - 1 */
		CU_ASSERT_EQUAL(copy_from(preset, paging, 0), 0);
		CU_ASSERT_EQUAL(copy_from(preset, paging, TWO_31 - 1 - PAGES), 0);
		CU_ASSERT_EQUAL(done, PAGES);
		/* the copy that makes it 2^31 is the last; its own fault is stale from then on */
		CU_ASSERT_EQUAL(copy_from(preset, paging, TWO_31 - 4), hang);
		CU_ASSERT_EQUAL(done, hang ? 3 : PAGES);
		if (hang) {
			CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "livelock: task "));
			CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "gfn 0x10003,"));
			CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "sign-extended"));
		}
		/* and no better with the sign bit gone: the upper half is missing */
		CU_ASSERT_EQUAL(copy_from(preset, paging, 2 * TWO_31), hang);
	}
}

/* The host begins to unmap a page and never ends. */
static int unmap_for_ever(struct scene *s, struct task *t)
{
	struct kvm_memory_slot *slot = s->kvm->slots[1];
	gfn_t gfn = SCENE_TEST >> PAGE_SHIFT;
	int r;

	mmu_notifier_invalidate_start(t, s->kvm, slot, gfn, gfn + 1);
	if (scene_read(s, TEST(1)))
		return KVMSIM_EINVAL;
	scene_mark(s);
	r = scene_read(s, TEST(0));
	/* the first, and 1,000 restarts, as docs/ARCHITECTURE.md has it */
	CU_ASSERT_EQUAL(scene_stat(s, STAT_pf_taken), 1001);
	return r;
}

static void invalidation_without_end(void)
{
	const struct scene_opts o = {.pte = SCENE_FLAT, .slot_pages = 64};

	CU_ASSERT_EQUAL(scene(&o, unmap_for_ever), KVMSIM_ELIVELOCK);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "gfn 0x10000,"));
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "nothing else goes on"));
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "an invalidation of its page is under way"));
}

/* It takes long, and ends: no livelock, however often the fault was taken until then. */
static int unmap_slowly(struct task *t, void *arg)
{
	struct scene *s = arg;
	struct kvm_memory_slot *slot = s->kvm->slots[1];
	gfn_t gfn = SCENE_TEST >> PAGE_SHIFT;
	int r;

	mmu_notifier_invalidate_start(t, s->kvm, slot, gfn, gfn + 1);
	r = task_block_until(t, WAIT_idle, task_now(t) + 500000);
	mmu_notifier_invalidate_end(t, s->kvm, slot, gfn, gfn + 1);
	return r;
}

static int read_meanwhile(struct scene *s, struct task *t)
{
	const struct task_opts o = {
		.name = "host", .fn = unmap_slowly, .arg = s, .start = task_now(t)};
	struct task *host;
	int r = task_create(s->sim, &o, &host);

	if (!r)
		r = task_block_until(t, WAIT_idle, task_now(t) + 1000);
	r = r < 0 ? r : scene_read(s, TEST(0));
	CU_ASSERT_TRUE(scene_stat(s, STAT_pf_taken) > 2000);
	return r;
}

static void long_invalidation(void)
{
	const struct scene_opts o = {.pte = SCENE_FLAT, .slot_pages = 64};

	CU_ASSERT_EQUAL(scene(&o, read_meanwhile), 0);
}

/* A VMM that never empties the rings. */
static int make_no_room(struct kvm_vcpu *v, void *ctx)
{
	(void)v;
	(void)ctx;
	return 0;
}

static int fill_ring(struct scene *s, struct task *t)
{
	int r = scene_log(s, t, true);

	kvm_on_ring_full(s->kvm, make_no_room, NULL);
	for (unsigned i = 0; i < 512 && !r; i++)
		r = scene_write(s, TEST(i), 8, 1);
	return r;
}

static void ring_stays_full(void)
{
	const struct scene_opts o = {
		.pte = SCENE_FLAT, .slot_pages = 512, .dirty = "ring,size=256,reaper=0"};

	CU_ASSERT_EQUAL(scene(&o, fill_ring), KVMSIM_ELIVELOCK);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "dirty ring is full"));
}

/* A guest's table in a read-only slot. Nested walks write to tables, so the emulator has to do what
 * they are for, as long as the table's page is not mapped. Once it is, since it was read, kernels
 * from 4.11 on take the walk's fault for one on a table that they shadow, and run the instruction
 * again; 6.12's tell it apart. Under shadow paging it is KVM who walks, and leaves such tables as
 * they are. */
#define ROM   0x20000000ull
#define TABLE (ROM + 0x1000)

static int table_in_rom(struct scene *s, struct task *t)
{
	struct kvm_memory_region rom = {.slot = 2,
					.flags = KVM_MEM_READONLY,
					.base_gfn = ROM >> PAGE_SHIFT,
					.npages = 16,
					.host_populated = true};
	const uint64_t leaf = 0x67;
	int r = kvm_set_user_memory_region(t, s->kvm, &rom);

	kvm_write_guest_u64(s->kvm, TABLE, SCENE_TEST | leaf);
	kvm_write_guest_u64(s->kvm, 0x20000 + 0x100 * 8, TABLE | leaf); /* to read it by */
	kvm_write_guest_u64(s->kvm, 0x12000 + 200 * 8, TABLE | leaf);	/* to walk it by */
	done = 0;
	for (unsigned i = 0; i < 2 && !r; i++) {
		r = scene_read(s, 200ull << 21);
		done += !r;
		r = r ? r : scene_read(s, 0x100 << PAGE_SHIFT);
	}
	return r;
}

static void read_only_table(void)
{
	static const struct {
		const char *preset;
		enum kvm_paging paging;
		bool hangs;
	} runs[] = {
		{"6.1-tdp", PAGING_TDP, true},	      {"6.1-shadow", PAGING_TDP, true},
		{"6.1-shadow", PAGING_SHADOW, false}, {"5.18-tdp", PAGING_TDP, true},
		{"6.13-tdp", PAGING_TDP, false},      {"6.13-shadow", PAGING_TDP, false},
		{"3.6", PAGING_TDP, false},	      {"2.6.36", PAGING_TDP, false},
	};
	static const char *const cpus[] = {"tcg", "amd", "intel"};

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		for (size_t c = 0; c < sizeof(cpus) / sizeof(cpus[0]); c++) {
			const struct scene_opts o = {.paging = runs[i].paging,
						     .pte = SCENE_4K,
						     .slot_pages = 64,
						     .preset = runs[i].preset,
						     .personality = cpus[c],
						     .check = true};

			CU_ASSERT_EQUAL(scene(&o, table_in_rom),
					runs[i].hangs ? KVMSIM_ELIVELOCK : 0);
			CU_ASSERT_EQUAL(done, runs[i].hangs ? 1 : 2);
			if (!runs[i].hangs)
				continue;
			CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "gfn 0x20001,"));
			CU_ASSERT_PTR_NOT_NULL(
				strstr(scene_message, "a table that stays read-only"));
		}
}

/*
 * Two vCPUs of a guest whose tables are shadowed, and both do what the kernel does. vCPU 0 loads
 * CR3: it protects the one table that is out of step, flushes, brings the table's 512 sptes in
 * line, lets go of mmu_lock since vCPU 1 waits for it, and looks again whether anything is out of
 * step. vCPU 1 stores to the table: its fault puts it out of step and maps it writable, but when
 * the instruction runs again, vCPU 0 has protected the table anew. For what vCPU 1 does from the
 * lock to the store (it enters, fetches, loads the operand, all without a TLB) takes longer than
 * what vCPU 0 does from the lock to the flush, and 512 sptes take longer than the way from the
 * flush to the lock. So nobody gets done, until something else holds one of them up, as a host's
 * interrupts do; and it takes a lock that is let go of for others, which a spinlock was not.
 */
#define PT_STORE (0x21000ull + 511 * 8) /* of the test pages */
#define MOST	 5000
#define HOLD_UP	 100 /* after so many restarts */

static struct pair {
	struct scene *scene;
	unsigned hold_up_at;	   /* this restart; 0: never */
	unsigned restarts, stores; /* since the first of them */
	bool loads, loaded;	   /* CR3 */
} pair;

/* Copies what is in a test page, which is the entry as it was, as MOVS does. */
static int copy_to_table(struct kvm_vcpu *v)
{
	uint64_t value;
	int r = vcpu_fetch(v, SCENE_CODE);

	r = r ? r : vcpu_read(v, TEST(0), 8, &value);
	return r ? r : vcpu_write(v, PT_STORE, 8, (SCENE_TEST + (511 << PAGE_SHIFT)) | 0x67);
}

/* An interrupt, and other work of the host's, longer than a round of vCPU 0's. */
static int hold_up(struct task *t)
{
	int r = vcpu_interrupt(pair.scene->vcpu[1]);

	return r ? r : task_block_until(t, WAIT_idle, task_now(t) + 20000);
}

static int vcpu_1(struct task *t, void *arg)
{
	struct kvm_vcpu *v = pair.scene->vcpu[1];
	int r = 0;

	(void)arg;
	vcpu_bind(v, t);
	while (r >= 0 && !(pair.loaded && r != VCPU_RESTART)) {
		r = copy_to_table(v);
		if (r == VCPU_RESTART && pair.loads && ++pair.restarts == pair.hold_up_at &&
		    hold_up(t) < 0)
			return KVMSIM_ECANCELED;
		pair.stores = pair.restarts ? pair.stores + !r : 0;
		if (!r)
			r = vcpu_gap(v, 8);
		if (sync(t))
			return KVMSIM_ECANCELED;
	}
	return r;
}

static int load_cr3(struct scene *s, struct task *t)
{
	const struct task_opts o = {.name = "other", .fn = vcpu_1, .start = task_now(t) + 20000};
	struct task *other;
	int r = 0;

	pair.scene = s;
	for (unsigned i = 0; i < 512 && !r; i++)
		r = scene_read(s, TEST(i));
	r = r ? r : task_create(s->sim, &o, &other);
	/* so that nobody waits for its TLB's flush meanwhile */
	r = r ? r : vcpu_interrupt(s->vcpu[0]);
	r = r ? r : task_block_until(t, WAIT_idle, task_now(t) + 30000);
	CU_ASSERT_EQUAL(kvm_stat(s->kvm, STAT_mmu_unsync), 1);
	scene_mark(s);
	pair.loads = true;
	r = r < 0 ? r : vcpu_mov_cr3(s->vcpu[0], SCENE_PML4);
	pair.loaded = true;
	return r;
}

static int run_pair(const char *preset, unsigned hold_up_at, struct scene *s)
{
	const struct scene_opts o = {.pte = SCENE_4K,
				     .slot_pages = 512,
				     .n_vcpus = 2,
				     .preset = preset,
				     .restarts = MOST,
				     .check = true};

	CU_ASSERT_EQUAL_FATAL(scene_open(s, &o), 0);
	pair = (struct pair){.hold_up_at = hold_up_at};
	return scene_run(s, load_cr3);
}

static void check_rounds(const struct scene *s, unsigned n)
{
	CU_ASSERT_EQUAL(scene_stat(s, STAT_pf_taken), n);
	CU_ASSERT_EQUAL(scene_event(s, TRACE_kvm_mmu_unsync_page), n);
	CU_ASSERT_EQUAL(scene_event(s, TRACE_kvm_mmu_sync_page), n);
}

static void sync_without_end(void)
{
	static const char *const presets[] = {"6.1-shadow", "5.18-eager", "6.12-shadow",
					      "6.13-shadow"};
	struct scene s;

	for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
		/* the first fault is no restart for what faulted before */
		CU_ASSERT_EQUAL(run_pair(presets[i], 0, &s), KVMSIM_ELIVELOCK);
		CU_ASSERT_PTR_NOT_NULL(
			strstr(scene_message, "vCPU 1's store to gva 0x21ff8, gfn 0x21,"));
		CU_ASSERT_PTR_NOT_NULL(strstr(scene_message,
					      "has come to nothing 5000 times: each time it is "
					      "mapped, and gone when it runs"));
		CU_ASSERT_TRUE(pair.loads && !pair.loaded && !pair.stores);
		check_rounds(&s, MOST + 1);
		scene_close(&s);
		/* a round more, and vCPU 0 is done; a fault more, and vCPU 1 is */
		CU_ASSERT_EQUAL(run_pair(presets[i], HOLD_UP, &s), 0);
		CU_ASSERT_EQUAL(pair.restarts, HOLD_UP + 1);
		CU_ASSERT_TRUE(pair.loaded && pair.stores == 1);
		check_rounds(&s, HOLD_UP + 1);
		scene_close(&s);
	}
	CU_ASSERT_EQUAL(run_pair("3.6", 0, &s), 0);
	CU_ASSERT_TRUE(pair.loaded);
	CU_ASSERT_EQUAL(scene_event(&s, TRACE_kvm_mmu_sync_page), 1);
	scene_close(&s);
}

static CU_TestInfo tests[] = {{"sync_without_end", sync_without_end},
			      {"read_only_table", read_only_table},
			      {"sequence_past_31_bits", sequence_past_31_bits},
			      {"invalidation_without_end", invalidation_without_end},
			      {"long_invalidation", long_invalidation},
			      {"ring_stays_full", ring_stays_full},
			      CU_TEST_INFO_NULL};
TEST_MAIN("livelock", tests)
