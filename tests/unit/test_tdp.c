// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/mmu/mmu.h"
#include "model/policy/preset.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

/*
 * Exact counts of Linux 6.1's TDP MMU (tracepoints and KVM_GET_STATS_FD, recorded under QEMU with
 * npt=1, tdp_mmu=1); entries visited are counted by hand from the tables' shape.
 */
static const struct scene_opts tdp = {.paging = PAGING_TDP,
				      .pte = SCENE_2M,
				      .slot_pages = 4096,
				      .preset = "6.1-tdp",
				      .check = true};

#define STAT(s, n)  scene_stat(s, STAT_##n)
#define EVENT(s, n) scene_event(s, TRACE_##n)
#define COUNT(s, n) scene_count(s, COUNT_##n)
#define EQ	    CU_ASSERT_EQUAL

static int setup(struct scene *s, struct task *t)
{
	(void)t;
	scene_mark(s);
	EQ(scene_setup(s), 0);
	EQ(STAT(s, pf_taken), 20); /* code, three guest tables, 16 lists: no prefetch */
	EQ(STAT(s, pf_fixed), 20);
	EQ(STAT(s, pages_4k), 20);
	EQ(STAT(s, mmu_cache_miss), 0);
	EQ(EVENT(s, kvm_mmu_get_page), 4);
	EQ(EVENT(s, kvm_mmu_set_spte), 20);
	EQ(EVENT(s, kvm_tdp_mmu_spte_changed), 23);
	EQ(EVENT(s, fast_page_fault), 0);
	EQ(kvm_active_shadow_pages(s->kvm), 4);
	return kvm_check(s->kvm);
}

static void first_faults(void)
{
	EQ(scene(&tdp, setup), 0);
}

/* Case B: each step and its counts. */
static int dirty_log(struct scene *s, struct task *t)
{
	static uint64_t bitmap[64];

	EQ(scene_setup(s), 0);
	scene_mark(s);
	EQ(scene_loop(s, true, 0, 4096), 0);
	EQ(STAT(s, pf_taken), 4096);
	EQ(EVENT(s, kvm_mmu_get_page), 8);
	EQ(EVENT(s, kvm_tdp_mmu_spte_changed), 4096 + 8);
	scene_mark(s);
	EQ(scene_log(s, t, true), 0);
	EQ(EVENT(s, kvm_tdp_mmu_spte_changed), 4096);
	EQ(s->last[TRACE_kvm_tdp_mmu_spte_changed].was, SPTE_WRITABLE);
	EQ(s->last[TRACE_kvm_tdp_mmu_spte_changed].now, SPTE_READ_ONLY);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	/* To split: root and level 3 on the way down, level 2 from the slot's first entry to the
	 * one after. To protect: the same, each of the 8 entries of level 2 again on the way up,
	 * and all of 8 tables. */
	EQ(COUNT(s, tdp_spte), 2 + 8 + 1 + 2 + 8 + 8 + 1 + 4096);
	EQ(COUNT(s, tdp_resched), 2 + 8 + 2 + 8 + 4096);
	scene_mark(s);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 0);
	EQ(COUNT(s, tdp_spte), 0);
	scene_mark(s);
	EQ(scene_loop(s, true, 0, 4096), 0);
	EQ(STAT(s, pf_taken), 4096);
	EQ(STAT(s, pf_fast), 4096);
	EQ(STAT(s, pf_fixed), 4096);
	EQ(STAT(s, tlb_flush), 1);
	EQ(EVENT(s, kvm_tdp_mmu_spte_changed), 0);
	scene_mark(s);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 4096);
	EQ(EVENT(s, kvm_tdp_mmu_spte_changed), 4096);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	return kvm_check(s->kvm);
}

static int log_off(struct scene *s, struct task *t)
{
	EQ(dirty_log(s, t), 0);
	scene_mark(s);
	EQ(scene_log(s, t, false), 0);
	EQ(EVENT(s, kvm_tdp_mmu_spte_changed), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 0);
	/* root, level 3, then level 2 from the slot's first entry to the one after */
	EQ(COUNT(s, tdp_spte), 2 + 8 + 1);
	EQ(COUNT(s, host_level), 8);
	scene_mark(s);
	EQ(scene_loop(s, true, 0, 4096), 0);
	EQ(STAT(s, pf_taken), 4096);
	EQ(STAT(s, pf_fast), 4096);
	return kvm_check(s->kvm);
}

static void logging(void)
{
	struct scene_opts o = tdp;

	EQ(scene(&o, log_off), 0);
	o.dirty = "rmap-slot";
	EQ(scene(&o, dirty_log), 0);
}

/* A word of dirty bits: the walk ends at the first leaf after the last bit. */
static int masked(struct scene *s, struct task *t)
{
	static uint64_t bitmap[64];

	EQ(scene_setup(s), 0);
	EQ(scene_loop(s, true, 0, 4096), 0);
	EQ(scene_log(s, t, true), 0);
	EQ(scene_loop(s, true, 66, 70), 0);
	scene_mark(s);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 4);
	EQ(bitmap[1], 0x3c);
	EQ(COUNT(s, rearm_word), 1);
	EQ(COUNT(s, tdp_walk), 1);
	EQ(COUNT(s, tdp_dirty), 4);
	EQ(COUNT(s, tdp_change), 4);
	EQ(COUNT(s, tdp_resched), 0);
	EQ(COUNT(s, write_protect), 4);
	EQ(COUNT(s, tdp_spte), 3 + 4 + 1);
	EQ(EVENT(s, kvm_tdp_mmu_spte_changed), 4);
	return kvm_check(s->kvm);
}

static void a_word(void)
{
	EQ(scene(&tdp, masked), 0);
}

static int extra_slot(struct scene *s, struct task *t, uint64_t npages)
{
	const struct kvm_memory_region r = {
		.slot = 2, .base_gfn = 0xe0000, .npages = npages, .host_populated = true};

	return kvm_set_user_memory_region(t, s->kvm, &r);
}

/*
 * Case E, two pages in the fourth GiB, slot3_del: tables of levels 3, 2, 2, 1 and 1 below the root,
 * whose entries are all told, present or not. There the two were a device's, which are not present;
 * here they are a slot's, so that 23 pages go instead of 21.
 */
static int zap_all(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	EQ(extra_slot(s, t, 2), 0);
	EQ(scene_read(s, 0xe0000000), 0);
	EQ(scene_read(s, 0xe0001000), 0);
	EQ(scene_out(s), 0);
	EQ(kvm_active_shadow_pages(s->kvm), 1 + 5);
	scene_mark(s);
	EQ(extra_slot(s, t, 0), 0);
	EQ(EVENT(s, kvm_mmu_zap_all_fast), 1);
	EQ(EVENT(s, kvm_tdp_mmu_spte_changed), 2563);
	EQ(EVENT(s, kvm_mmu_prepare_zap_page), 5);
	EQ(STAT(s, remote_tlb_flush_requests), 0);
	EQ(STAT(s, mmu_shadow_zapped), 0);
	EQ(kvm_stat(s->kvm, STAT_pages_4k), 0);
	EQ(kvm_active_shadow_pages(s->kvm), 1); /* the root, until its vCPU lets go of it */
	EQ(kvm_check(s->kvm), 0);
	scene_mark(s);
	EQ(scene_read(s, SCENE_LIST), 0);
	EQ(EVENT(s, kvm_mmu_get_page), 4);
	EQ(EVENT(s, kvm_mmu_zap_all_fast), 0);
	EQ(kvm_active_shadow_pages(s->kvm), 4);
	return kvm_check(s->kvm);
}

static void a_slot_goes(void)
{
	EQ(scene(&tdp, zap_all), 0);
}

/* Who walks keeps the tables that are taken out from being used again. */
static int grace_period(struct scene *s, struct task *t)
{
	struct rcu_reader early, late;

	EQ(scene_setup(s), 0);
	EQ(extra_slot(s, t, 2), 0);
	rcu_read_lock(t, s->kvm, &early);
	EQ(extra_slot(s, t, 0), 0);
	CU_ASSERT_PTR_NULL(s->kvm->free_pages);
	CU_ASSERT_PTR_NOT_NULL(s->kvm->rcu.deferred);
	EQ(kvm_check(s->kvm), KVMSIM_ECHECK);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "waits to be freed"));
	rcu_read_lock(t, s->kvm, &late); /* it cannot see them any more */
	rcu_read_unlock(t, s->kvm, &early);
	CU_ASSERT_PTR_NOT_NULL(s->kvm->free_pages);
	CU_ASSERT_PTR_NULL(s->kvm->rcu.deferred);
	rcu_read_unlock(t, s->kvm, &late);
	EQ(scene_read(s, SCENE_LIST), 0);
	return kvm_check(s->kvm);
}

static void grace_periods(void)
{
	EQ(scene(&tdp, grace_period), 0);
}

/* ---- several vCPUs ---- */

#define VCPUS 4
#define PAGES 256

static bool same_pages;
static unsigned running, passes = 1;

static int vcpu_thread(struct task *t, void *arg)
{
	struct kvm_vcpu *v = arg;
	uint64_t first = same_pages ? 0 : (vcpu_id(v) - 1) * PAGES;
	int r = 0;

	vcpu_bind(v, t);
	for (uint64_t n = 0; n < passes * PAGES && !r; n++) {
		uint64_t i = first + n % PAGES;

		do {
			r = vcpu_fetch(v, SCENE_CODE);
			r = r ? r : vcpu_write(v, SCENE_TEST + (i << 12), 4, i);
		} while (r == VCPU_RESTART);
	}
	running--;
	return r ? r : vcpu_interrupt(v);
}

/* Starts the vCPUs beside the VMM's own and waits for their end; @meanwhile again and again. */
static int together(struct scene *s, struct task *t,
		    int (*meanwhile)(struct scene *s, struct task *t))
{
	int r = sync(t); /* the list of tasks is others', too */

	running = VCPUS;
	for (unsigned i = 1; i <= VCPUS && !r; i++) {
		const struct task_opts o = {
			.name = "vcpu", .fn = vcpu_thread, .arg = s->vcpu[i], .start = task_now(t)};
		struct task *vcpu;

		r = task_create(s->sim, &o, &vcpu);
	}
	while (!r && running) {
		r = task_block_until(t, WAIT_idle, task_now(t) + 50);
		if (!r && meanwhile)
			r = meanwhile(s, t);
	}
	return r;
}

static int parallel(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	kvm_mmu_lock_stats_reset(s->kvm);
	scene_mark(s);
	EQ(together(s, t, NULL), 0);
	EQ(STAT(s, pages_4k), same_pages ? PAGES : VCPUS * PAGES);
	/* Of those who make the same table at once one links it. Whose compare-and-exchange of a
	 * leaf fails takes the fault again; who comes after it drops its D bit, which is a change.
	 */
	EQ(EVENT(s, kvm_tdp_mmu_spte_changed),
	   STAT(s, pf_fixed) + (same_pages ? 1 : VCPUS * PAGES / 512));
	EQ(EVENT(s, kvm_mmu_get_page) > (same_pages ? 1 : VCPUS * PAGES / 512), true);
	EQ(kvm_active_shadow_pages(s->kvm), 4 + (same_pages ? 1 : VCPUS * PAGES / 512));
	if (same_pages) {
		EQ(STAT(s, pf_taken) > STAT(s, pf_fixed) + STAT(s, pf_spurious), true);
	} else {
		EQ(STAT(s, pf_fixed), VCPUS * PAGES);
	}
	/* mmu_lock for write: only to load each root */
	EQ(kvm_mmu_lock_stats(s->kvm).acquired, VCPUS);
	return kvm_check(s->kvm);
}

static void parallel_faults(void)
{
	struct scene_opts o = tdp;

	o.n_vcpus = 1 + VCPUS;
	same_pages = false;
	EQ(scene(&o, parallel), 0);
	same_pages = true;
	EQ(scene(&o, parallel), 0);
}

static unsigned deletions, harvests;

static int delete_and_harvest(struct scene *s, struct task *t)
{
	static uint64_t bitmap[64];
	long n = kvm_get_dirty_log(t, s->kvm, 1, bitmap);
	int r;

	if (n < 0)
		return (int)n;
	harvests += n > 0;
	r = extra_slot(s, t, 1);
	r = r ? r : extra_slot(s, t, 0);
	deletions += !r;
	return r;
}

/* Everything is zapped again and again while vCPUs fault and collections go on. */
static int upheaval(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	EQ(scene_log(s, t, true), 0);
	deletions = harvests = 0;
	EQ(together(s, t, delete_and_harvest), 0);
	EQ(deletions > 10, true);
	EQ(harvests > 10, true);
	return kvm_check(s->kvm);
}

static void zapped_while_faulting(void)
{
	struct scene_opts o = tdp;

	o.n_vcpus = 1 + VCPUS;
	passes = 20;
	for (int i = 0; i < 4; i++) {
		same_pages = i % 2;
		o.reference = i / 2;
		EQ(scene(&o, upheaval), 0);
	}
	passes = 1;
}

/* ---- every dirty policy on every MMU ---- */

static int collect(struct scene *s, struct task *t)
{
	static uint64_t bitmap[64];
	long n = kvm_collect_dirty_log(t, s->kvm, 1, bitmap);

	return n < 0 ? (int)n : 0;
}

/* Rounds of stores with collections between and during them. */
static int rounds(struct scene *s, struct task *t)
{
	int r = scene_setup(s);

	for (int i = 0; i < 6 && !r; i++) {
		same_pages = i % 2;
		if (i % 3 == 0)
			r = scene_log(s, t, i % 2 == 0);
		r = r ? r : scene_log(s, t, true);
		r = r ? r : together(s, t, i < 4 ? collect : NULL);
		r = r ? r : collect(s, t);
	}
	return r ? r : kvm_check(s->kvm);
}

static void crossed(void)
{
	static const struct {
		enum mmu_kind kind;
		enum kvm_paging paging;
		enum scene_pte pte;
		const char *preset;
	} mmus[] = {
		{MMU_SHADOW_LONG64, PAGING_SHADOW, SCENE_4K, "6.1-shadow"},
		{MMU_SHADOW_FLAT32, PAGING_SHADOW, SCENE_FLAT, "6.1-shadow"},
		{MMU_TDP_RMAP, PAGING_TDP, SCENE_4K, "6.1-shadow"},
		{MMU_TDP, PAGING_TDP, SCENE_4K, "6.1-tdp"},
		{MMU_TDP, PAGING_TDP, SCENE_FLAT, "6.1-tdp"},
	};
	static const char *const cpus[] = {"tcg", "intel"};
	unsigned refused = 0, caught = 0;

	for (size_t m = 0; m < sizeof(mmus) / sizeof(*mmus); m++)
		for (size_t i = 0; i < 2 * policy_count(); i++) {
			const struct policy_desc *d = policy_at(i / 2);
			const struct scene_opts o = {.paging = mmus[m].paging,
						     .pte = mmus[m].pte,
						     .preset = mmus[m].preset,
						     .slot_pages = VCPUS * PAGES,
						     .n_vcpus = 1 + VCPUS,
						     .dirty = d->name,
						     .personality = cpus[i % 2],
						     .check = true};
			int r, expected = d->broken ? KVMSIM_ECHECK : 0;

			if (d->family != FAMILY_DIRTY)
				continue;
			/* evidence is of tcg; what has no shadow pages has none on any CPU */
			if (policy_proof(d, mmus[m].preset, "tcg")->on[mmus[m].kind] ==
				    EVIDENCE_REFUSED &&
			    (i % 2 == 0 || strcmp(d->name, "pml")))
				expected = KVMSIM_EUNSUPPORTED;
			r = scene(&o, rounds);
			refused += r == KVMSIM_EUNSUPPORTED;
			caught += r == KVMSIM_ECHECK;
			EQ(r, expected);
			if (r == KVMSIM_EUNSUPPORTED)
				CU_ASSERT_PTR_NOT_NULL(strstr(
					scene_message, strcmp(d->name, "pml")
							       ? "back end tdp has none"
							       : "no page-modification log"));
		}
	/* walk and hybrid on the TDP MMU, pml on tcg */
	EQ(refused, 2 * 2 * 2 + 5);
	EQ(caught, 2 * 5); /* lossy on each */
}

/* npt=0 takes no notice of the TDP MMU. */
static int by_shadow_pages(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	CU_ASSERT_STRING_EQUAL(s->kvm->backend->name, "rmap");
	EQ(s->events[TRACE_kvm_tdp_mmu_spte_changed], 0);
	EQ(kvm_stat(s->kvm, STAT_pages_4k), 24);
	return kvm_check(s->kvm);
}

static void preset_without_npt(void)
{
	struct scene_opts o = tdp;

	o.paging = PAGING_SHADOW;
	EQ(scene(&o, by_shadow_pages), 0);
	EQ(preset_find("6.1-tdp")->tdp_mmu, true);
}

static CU_TestInfo tests[] = {
	{"first_faults", first_faults},
	{"logging", logging},
	{"a_word", a_word},
	{"a_slot_goes", a_slot_goes},
	{"grace_periods", grace_periods},
	{"parallel_faults", parallel_faults},
	{"zapped_while_faulting", zapped_while_faulting},
	{"crossed", crossed},
	{"preset_without_npt", preset_without_npt},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("tdp", tests)
