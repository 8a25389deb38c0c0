// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "model/counts.h"
#include "model/guest/vcpu.h"
#include "model/guest/vm.h"
#include "model/host/cache.h"
#include "model/params.h"
#include "model/sim/ledger.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"

/*
 * Memory runs out at each allocation of a whole run in turn: it ends with KVMSIM_ENOMEM and frees
 * what it had, which the sanitizer's leak check says. Linked with --wrap for each of these.
 */
#define TEST  0x10000000ull
#define PML4  0x10000ull
#define PAGES 520ull
#define TABLE 0x27ull
#define LEAF  0x67ull

static uint64_t allocations, fail_at; /* 0: none fails */
static bool fail_after;		      /* and none after it succeeds */

static bool fails(void)
{
	allocations++;
	return fail_at && (allocations == fail_at || (fail_after && allocations > fail_at));
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
char *__real_strdup(const char *s);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
char *__wrap_strdup(const char *s);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	return fails() ? NULL : __real_aligned_alloc(align, n);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : __real_strdup(s);
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (!fails())
		return __real_mmap(addr, len, prot, flags, fd, off);
	errno = ENOMEM;
	return MAP_FAILED;
}

struct run {
	enum kvm_paging paging;
	enum guest_paging_mode mode;
	const char *preset, *dirty_policy, *personality;
	bool check;
	/* the rest is the run's own */
	struct sim *sim;
	struct kvm *kvm;
	struct kvm_vcpu *vcpu[2];
	long dirty;
};

static void page_tables(struct kvm *kvm)
{
	kvm_write_guest_u64(kvm, PML4, 0x11000 | TABLE);
	kvm_write_guest_u64(kvm, 0x11000, 0x12000 | TABLE);
	kvm_write_guest_u64(kvm, 0x12000, 0x20000 | TABLE);
	for (uint64_t i = 0; i < 512; i++)
		kvm_write_guest_u64(kvm, 0x20000 + i * 8, i << 12 | LEAF);
	for (uint64_t i = 0; i < PAGES; i++) {
		uint64_t table = 0x21000 + i / 512 * 0x1000;

		kvm_write_guest_u64(kvm, 0x12000 + (128 + i / 512) * 8, table | TABLE);
		/* many entries map the first page: chains of descriptors */
		kvm_write_guest_u64(kvm, table + i % 512 * 8,
				    (TEST + (i < 40 ? 0 : i << 12)) | LEAF);
	}
}

static int store(struct kvm_vcpu *v, uint64_t gva)
{
	int r;

	do {
		r = vcpu_fetch(v, 0x1000);
		r = r ? r : vcpu_write(v, gva, 4, 1);
	} while (r == VCPU_RESTART);
	return r;
}

static int set_slot(struct run *x, struct task *t, uint32_t slot, uint32_t flags, uint64_t gpa,
		    uint64_t pages)
{
	const struct kvm_memory_region r = {
		.slot = slot, .flags = flags, .base_gfn = gpa >> 12, .npages = pages};

	return kvm_set_user_memory_region(t, x->kvm, &r);
}

static int other_vcpu(struct task *t, void *arg)
{
	struct run *x = arg;
	int r = 0;

	vcpu_bind(x->vcpu[1], t);
	for (uint64_t i = 0; i < 80 && !r; i++)
		r = store(x->vcpu[1], TEST + (i * 8 << 12) % (PAGES << 12));
	return r < 0 ? r : vcpu_interrupt(x->vcpu[1]);
}

static int whole_run(struct task *t, void *arg)
{
	struct task_opts to = {.name = "vcpu1", .fn = other_vcpu, .arg = arg};
	uint64_t bitmap[(PAGES + 63) / 64];
	struct run *x = arg;
	struct task *other;
	int r = set_slot(x, t, 0, 0, 0, 512);

	if (x->mode == GUEST_LONG64)
		page_tables(x->kvm);
	r = r ? r : set_slot(x, t, 1, 0, TEST, PAGES);
	for (int i = 0; i < 2 && !r; i++) {
		r = kvm_create_vcpu(x->kvm, &x->vcpu[i]);
		if (!r)
			vcpu_set_cr3(x->vcpu[i], PML4);
	}
	if (r)
		return r;
	vcpu_bind(x->vcpu[0], t);
	for (uint64_t i = 0; i < PAGES && !r; i += 20)
		r = store(x->vcpu[0], TEST + (i << 12));
	r = r < 0 ? r : set_slot(x, t, 1, KVM_MEM_LOG_DIRTY_PAGES, TEST, PAGES);
	to.start = task_now(t);
	r = r ? r : task_create(x->sim, &to, &other);
	for (uint64_t i = 0; i < PAGES && !r; i++)
		r = store(x->vcpu[0], TEST + (i << 12));
	if (r < 0)
		return r;
	x->dirty = kvm_collect_dirty_log(t, x->kvm, 1, bitmap);
	if (x->dirty < 0)
		return (int)x->dirty;
	r = set_slot(x, t, 1, 0, TEST, PAGES);
	r = r ? r : set_slot(x, t, 1, 0, TEST, 0); /* deletes it */
	r = r ? r : set_slot(x, t, 1, KVM_MEM_LOG_DIRTY_PAGES, TEST, PAGES);
	r = r ? r : store(x->vcpu[0], TEST + (500 << 12));
	return r < 0 ? r : vcpu_interrupt(x->vcpu[0]);
}

static int simulate(struct run *x, const struct profile *profile, struct cache *cache)
{
	const struct sim_opts so = {.vocabulary = &model_vocabulary, .profile = profile};
	struct task_opts to = {.name = "vmm", .fn = whole_run, .arg = x};
	struct task *t;
	int r = sim_create(&so, &x->sim);
	struct kvm_vm_opts vo = {.sim = x->sim,
				 .paging = x->paging,
				 .mode = x->mode,
				 .preset = x->preset,
				 .dirty = x->dirty_policy,
				 .personality = x->personality,
				 .cache = cache,
				 .background_sps = 3,
				 .check = x->check};

	r = r ? r : kvm_create_vm(&vo, &x->kvm);
	r = r ? r : task_create(x->sim, &to, &t);
	r = r ? r : sim_run(x->sim, CYCLES_MAX);
	return r ? r : sim_check_ledger(x->sim);
}

static int attempt(const struct run *how)
{
	static char text[8192];
	struct profile *profile = NULL;
	struct cache *cache = NULL;
	struct run x = *how;
	int n = snprintf(text, sizeof(text),
			 "[machine]\nunit = cycles\n[param]\nipi_latency = 50\nl2_bytes = 4096\n"
			 "llc_bytes = 16384\ndtlb_entries = 64\n[price]\n");
	int r;

	for (int i = 0; i < N_COUNTS; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s = 1\n",
			      model_vocabulary.counts[i]);
	allocations = 0;
	r = profile_parse(text, (size_t)n, "oom", &model_vocabulary, model_params, NULL, &profile);
	r = r ? r : cache_create(profile, NULL, &cache);
	r = r ? r : simulate(&x, profile, cache);
	if (!r) {
		CU_ASSERT_TRUE(x.dirty > 400);
		CU_ASSERT_EQUAL(kvm_check(x.kvm), 0);
	}
	sim_destroy(x.sim);
	kvm_destroy_vm(x.kvm);
	cache_destroy(cache);
	profile_free(profile);
	return r;
}

static void at_each(const struct run *how)
{
	uint64_t total;

	fail_at = 0;
	CU_ASSERT_EQUAL_FATAL(attempt(how), 0);
	total = allocations;
	CU_ASSERT_TRUE(total > 50);
	for (int after = 0; after < 2; after++) {
		fail_after = after;
		for (uint64_t n = 1; n <= total; n++) {
			int r;

			fail_at = n;
			r = attempt(how);
			if (r != KVMSIM_ENOMEM)
				printf("allocation %llu of %llu failed, the run ended with %d\n",
				       (unsigned long long)n, (unsigned long long)total, r);
			CU_ASSERT_EQUAL(r, KVMSIM_ENOMEM);
		}
	}
	fail_at = 0;
	CU_ASSERT_EQUAL(attempt(how), 0); /* and nothing has stayed broken */
}

static void shadow(void)
{
	at_each(&(struct run){.mode = GUEST_LONG64, .check = true});
}

static void flat(void)
{
	at_each(&(struct run){.mode = GUEST_FLAT32, .preset = "2.6.36"});
}

static void nested(void)
{
	at_each(&(struct run){.paging = PAGING_TDP, .mode = GUEST_LONG64});
}

static void nested_trees(void)
{
	at_each(&(struct run){.paging = PAGING_TDP, .mode = GUEST_LONG64, .preset = "6.1-tdp"});
	at_each(&(struct run){.paging = PAGING_TDP,
			      .mode = GUEST_LONG64,
			      .preset = "6.1-tdp",
			      .dirty_policy = "pml",
			      .personality = "intel"});
}

static void rings(void)
{
	at_each(&(struct run){
		.mode = GUEST_LONG64, .dirty_policy = "ring,size=256", .check = true});
}

static CU_TestInfo tests[] = {
	{"rings", rings},
	{"shadow", shadow},
	{"flat", flat},
	{"nested", nested},
	{"nested_trees", nested_trees},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("oom", tests)
