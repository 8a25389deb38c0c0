// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/mmu/mmu.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

/*
 * Anonymous host memory and MMU notifiers. What 6.1 does is held against the kernel row by row
 * (cases J); here are what the recordings cannot see: other kernels, several tasks at once, errors.
 * Numbers: one fault maps a 4K page, a copy on write takes two; a large page is 512 small ones.
 */
#define EQ    CU_ASSERT_EQUAL
#define PAGES 1024ull
#define GFN   (SCENE_TEST >> 12)

static uint64_t bitmap[PAGES / 64];

#define STAT(s, n)  ((int64_t)scene_stat(s, STAT_##n))
#define EVENT(s, n) scene_event(s, TRACE_##n)

static int read_page(struct scene *s, uint64_t page)
{
	return scene_read(s, SCENE_TEST + (page << 12));
}

static int write_page(struct scene *s, uint64_t page)
{
	return scene_write(s, SCENE_TEST + (page << 12), 4, page);
}

static long dirty(struct scene *s, struct task *t)
{
	return kvm_get_dirty_log(t, s->kvm, 1, bitmap);
}

static const struct machine {
	enum kvm_paging paging;
	enum scene_pte pte;
	const char *preset;
} machines[] = {{PAGING_SHADOW, SCENE_4K, NULL},
		{PAGING_SHADOW, SCENE_2M, NULL},
		{PAGING_SHADOW, SCENE_FLAT, NULL},
		{PAGING_TDP, SCENE_2M, NULL},
		{PAGING_TDP, SCENE_2M, "6.1-tdp"}};
#define N_MACHINES (sizeof(machines) / sizeof(machines[0]))

static struct scene_opts opts_on(size_t machine, bool absent, unsigned host_level, bool logged)
{
	return (struct scene_opts){.paging = machines[machine].paging,
				   .pte = machines[machine].pte,
				   .preset = machines[machine].preset,
				   .slot_pages = PAGES,
				   .slot_flags = logged ? KVM_MEM_LOG_DIRTY_PAGES : 0,
				   .check = true,
				   .host_anonymous = true,
				   .host_absent = absent,
				   .host_level = host_level};
}

static void everywhere(bool absent, unsigned host_level, bool logged,
		       int (*body)(struct scene *s, struct task *t))
{
	for (size_t i = 0; i < N_MACHINES; i++) {
		struct scene_opts o = opts_on(i, absent, host_level, logged);

		EQ(scene(&o, body), 0);
	}
}

/* ---- 4K ---- */

/* A page that is read first is the zero page: not dirty, until it is stored to. */
static int zero_page(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	EQ(dirty(s, t), 0);
	scene_mark(s);
	for (uint64_t p = 0; p < 10; p++)
		EQ(read_page(s, p * 20), 0);
	EQ(STAT(s, pf_taken), 10);
	EQ(STAT(s, pages_4k), 10);
	EQ(dirty(s, t), 0);
	scene_mark(s);
	for (uint64_t p = 0; p < 10; p++)
		EQ(write_page(s, p * 20), 0);
	EQ(STAT(s, pf_taken), 20);
	EQ(STAT(s, pf_fixed), 10);
	EQ(EVENT(s, kvm_unmap_hva_range), 10);
	EQ(EVENT(s, kvm_set_spte_hva), 10);
	EQ(STAT(s, remote_tlb_flush_requests), 10);
	EQ(dirty(s, t), 10);
	scene_mark(s);
	/* stored to first: one fault */
	EQ(write_page(s, 500), 0);
	EQ(STAT(s, pf_taken), 1);
	EQ(EVENT(s, kvm_unmap_hva_range), 0);
	EQ(dirty(s, t), 1);
	return kvm_check(s->kvm);
}

static void test_zero_page(void)
{
	everywhere(true, 1, true, zero_page);
}

/* What is given back reads as zero. */
static int given_back(struct scene *s, struct task *t)
{
	uint64_t gpa = SCENE_TEST + (7 << 12);

	kvm_write_guest_u64(s->kvm, gpa, 1);
	EQ(scene_setup(s), 0);
	EQ(scene_write(s, gpa, 8, 0x1234), 0);
	EQ(kvm_read_guest_u64(s->kvm, gpa), 0x1234);
	scene_mark(s);
	EQ(host_madvise_dontneed(t, s->kvm, 1, 7, 1), 0);
	EQ(EVENT(s, kvm_unmap_hva_range), 1);
	CU_ASSERT_TRUE(STAT(s, pages_4k) == -1);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	EQ(kvm_read_guest_u64(s->kvm, gpa), 0);
	EQ(scene_read(s, gpa), 0);
	return kvm_check(s->kvm);
}

static void test_given_back(void)
{
	everywhere(false, 1, false, given_back);
}

static int errors(struct scene *s, struct task *t)
{
	EQ(host_madvise_dontneed(t, s->kvm, 1, 0, 0), KVMSIM_EINVAL);
	EQ(host_madvise_dontneed(t, s->kvm, 1, 0, PAGES + 1), KVMSIM_EINVAL);
	EQ(host_madvise_dontneed(t, s->kvm, 1, PAGES, 1), KVMSIM_EINVAL);
	EQ(host_mprotect(t, s->kvm, 1, 5, UINT64_MAX, false), KVMSIM_EINVAL);
	EQ(host_madvise_dontneed(t, s->kvm, 9, 0, 1), KVMSIM_ENOENT);
	EQ(host_mprotect(t, s->kvm, 0, 0, 1, false), KVMSIM_EUNSUPPORTED); /* not anonymous */
	EQ(host_mprotect(t, s->kvm, 1, 5, 1, false), 0);
	EQ(read_page(s, 5), 0);
	EQ(write_page(s, 6), 0);
	EQ(kvm_check(s->kvm), 0);
	EQ(write_page(s, 5), KVMSIM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "EFAULT"));
	const struct kvm_memory_region large = {.slot = 3,
						.base_gfn = 1 << 20,
						.npages = 1 << 18,
						.host_level = 3,
						.host_anonymous = true};

	EQ(kvm_set_user_memory_region(t, s->kvm, &large), KVMSIM_EINVAL);
	return 0;
}

static void test_errors(void)
{
	everywhere(false, 1, false, errors);
}

/* To 3.7 a read's fault asked the host for a writable page, too. */
static int old_reads(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	EQ(dirty(s, t), 0);
	EQ(read_page(s, 3), 0);
	EQ(dirty(s, t), 1);
	return kvm_check(s->kvm);
}

static void test_old_reads(void)
{
	struct scene_opts o = opts_on(0, true, 1, true);

	o.preset = "2.6.36";
	EQ(scene(&o, old_reads), 0);
}

/* A guest's tables that the host has stored to are no zero pages: stores to them are emulated, and
 * nothing is copied. */
static int tables(struct scene *s, struct task *t)
{
	(void)t;
	kvm_write_guest_u64(s->kvm, SCENE_PML4 + 8 * 8, (SCENE_TEST + (9 << 12)) | 0x27);
	kvm_write_guest_u64(s->kvm, SCENE_TEST + (9 << 12), (SCENE_TEST + (10 << 12)) | 0x27);
	kvm_write_guest_u64(s->kvm, SCENE_TEST + (10 << 12), 0xe7); /* 2M at 0 */
	EQ(scene_setup(s), 0);
	EQ(scene_read(s, 8ull << 39), 0);
	EQ(read_page(s, 10), 0);
	scene_mark(s);
	for (uint64_t i = 1; i < 3; i++)
		EQ(scene_write(s, SCENE_TEST + (10 << 12) + i * 8, 8, 0), 0);
	CU_ASSERT_TRUE(STAT(s, mmu_pte_write) > 0);
	EQ(EVENT(s, kvm_unmap_hva_range), 0); /* the host has stored to it */
	return kvm_check(s->kvm);
}

static void test_table(void)
{
	struct scene_opts o = opts_on(0, true, 1, false);

	EQ(scene(&o, tables), 0);
}

/* ---- large pages ---- */

static bool maps_large(size_t machine)
{
	return machines[machine].pte != SCENE_4K;
}

static size_t machine_now;

/* The huge zero page is split by a store (to 6.12), and then only that page is the guest's own. */
static int huge_zero(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	scene_mark(s);
	EQ(read_page(s, 100), 0);
	EQ(read_page(s, 200), 0);
	EQ(STAT(s, pages_2m), maps_large(machine_now) ? 1 : 0);
	scene_mark(s);
	EQ(write_page(s, 100), 0);
	EQ(EVENT(s, kvm_unmap_hva_range), 2);
	EQ(EVENT(s, kvm_set_spte_hva), 1);
	EQ(STAT(s, pages_2m), maps_large(machine_now) ? -1 : 0);
	scene_mark(s);
	/* a store to nothing gets all of a large page */
	EQ(write_page(s, 700), 0);
	EQ(EVENT(s, kvm_unmap_hva_range), 0);
	EQ(write_page(s, 800), 0);
	EQ(EVENT(s, kvm_unmap_hva_range), 0);
	EQ(STAT(s, pages_2m), maps_large(machine_now) ? 1 : 0);
	return kvm_check(s->kvm);
}

static void test_huge_zero(void)
{
	for (machine_now = 0; machine_now < N_MACHINES; machine_now++) {
		struct scene_opts o = opts_on(machine_now, true, 2, false);

		EQ(scene(&o, huge_zero), 0);
	}
}

/* From 6.13 on it is copied whole, and a page of it that is read later is writable: dirty. */
static int huge_zero_copied(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	EQ(dirty(s, t), 0);
	EQ(read_page(s, 100), 0);
	EQ(read_page(s, 200), 0);
	EQ(dirty(s, t), 0);
	scene_mark(s);
	EQ(write_page(s, 100), 0);
	EQ(EVENT(s, kvm_unmap_hva_range), 1);
	EQ(EVENT(s, kvm_set_spte_hva), 0);
	EQ(STAT(s, pages_4k), -1); /* both went, one came back */
	EQ(dirty(s, t), 1);
	EQ(read_page(s, 200), 0);
	EQ(dirty(s, t), 1);
	return kvm_check(s->kvm);
}

static void test_huge_zero_copied(void)
{
	static const char *const presets[] = {"6.13-shadow", "6.13-tdp"};

	for (size_t i = 0; i < 2; i++) {
		struct scene_opts o = opts_on(i ? 4 : 1, true, 2, true);

		o.preset = presets[i];
		EQ(scene(&o, huge_zero_copied), 0);
	}
}

/* ---- several tasks ---- */

#define WRITERS 3

struct writer {
	struct scene *s;
	unsigned id;
	bool ended;
	struct task *vmm;
};

/* All of them read and then store to the same pages, which the VMM gives back meanwhile. */
static int write_on(struct task *t, void *arg)
{
	struct writer *w = arg;
	struct kvm_vcpu *v = w->s->vcpu[w->id];
	uint64_t value;
	int r = 0;

	vcpu_bind(v, t);
	for (uint64_t i = 0; i < 10000 && r >= 0; i++) {
		uint64_t gva = SCENE_TEST + ((i * (1 + w->id) % 150) << 12);

		do {
			r = i % 2 ? vcpu_write(v, gva, 4, i) : vcpu_read(v, gva, 4, &value);
		} while (r == VCPU_RESTART);
		r = r ? r : vcpu_gap(v, 30);
	}
	r = r < 0 ? r : vcpu_interrupt(v);
	r = r ? r : sync(t);
	w->ended = true;
	if (!r)
		task_wake(w->vmm, task_now(t));
	return r;
}

/* The set of memslots is not changed between a notifier's begin and its end. */
static int beside(struct scene *s, struct task *t)
{
	static struct writer w[WRITERS + 1]; /* also for tasks that go on after an error */
	uint64_t given = 0;
	int r = 0;

	EQ(scene_setup(s), 0);
	EQ(vcpu_interrupt(s->vcpu[0]), 0);
	EQ(sync(t), 0);
	for (unsigned i = 1; i <= WRITERS; i++) {
		const struct task_opts o = {.name = "writer",
					    .fn = write_on,
					    .arg = &w[i],
					    .start = task_now(t),
					    .stack_bytes = 256 << 10};
		struct task *task;

		w[i] = (struct writer){.s = s, .id = i, .vmm = t};
		EQ(task_create(s->sim, &o, &task), 0);
	}
	for (uint64_t i = 0; !r && !(w[1].ended && w[2].ended && w[3].ended); i++, given++) {
		r = host_madvise_dontneed(t, s->kvm, 1, i * 13 % 100, 1 + i % 50);
		r = r ? r : scene_log(s, t, i % 2);
		if (!r && i % 2 && dirty(s, t) < 0)
			r = KVMSIM_ECHECK;
	}
	EQ(r, 0);
	CU_ASSERT_TRUE(given > 20);
	return kvm_check(s->kvm);
}

static void test_beside(void)
{
	uint64_t waited = 0, retried = 0;

	for (size_t i = 0; i < N_MACHINES; i++)
		for (unsigned level = 1; level <= 2; level++) {
			struct scene_opts o = opts_on(i, true, level, false);
			struct scene s;

			o.n_vcpus = WRITERS + 1;
			EQ(scene_open(&s, &o), 0);
			EQ(scene_run(&s, beside), 0);
			CU_ASSERT_STRING_EQUAL(scene_message, "");
			EQ(kvm_lost_stores(s.kvm), 0);
			waited += ledger_sum_wait(sim_ledger(s.sim), LEDGER_ALL_TASKS,
						  LEDGER_ALL_ACTIVITIES, WAIT_notifier)
					  .cycles;
			retried += kvm_stat(s.kvm, STAT_pf_taken) - kvm_stat(s.kvm, STAT_pf_fixed);
			scene_close(&s);
		}
	CU_ASSERT_TRUE(waited > 0);
	CU_ASSERT_TRUE(retried > 0);
}

static CU_TestInfo tests[] = {
	{"a page that is read first is the zero page", test_zero_page},
	{"what is given back reads as zero", test_given_back},
	{"errors", test_errors},
	{"reads that ask for a writable page", test_old_reads},
	{"a guest's table in anonymous memory", test_table},
	{"the huge zero page", test_huge_zero},
	{"the huge zero page, copied whole", test_huge_zero_copied},
	{"memory given back beside running vCPUs", test_beside},
	CU_TEST_INFO_NULL,
};

TEST_MAIN("host", tests)
