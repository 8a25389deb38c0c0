// SPDX-License-Identifier: GPL-3.0-or-later
/* No allocation per event, fault or harvest: linked so that the program's allocations come through
 * here. The number of faults is by hand: logging takes W from every page at each harvest. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define PAGES  1000
#define ROUNDS 100

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);

static uint64_t allocations;

void *__wrap_malloc(size_t bytes)
{
	allocations++;
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	allocations++;
	return __real_calloc(n, bytes);
}

void *__wrap_realloc(void *p, size_t bytes)
{
	allocations++;
	return __real_realloc(p, bytes);
}

static uint64_t bitmap[(PAGES + 63) / 64];

static int stores(struct scene *s)
{
	int r = 0;

	for (uint64_t i = 0; i < PAGES && !r; i++)
		r = scene_write(s, SCENE_TEST + (i << 12), 8, i);
	return r;
}

static int fault_again(struct scene *s, struct task *t)
{
	uint64_t before = 0, faults = 0;
	int r = scene_setup(s);

	/* The first round makes the tables. */
	for (int i = 0; i <= ROUNDS && !r; i++) {
		if (i == 1) {
			before = allocations;
			faults = kvm_stat(s->kvm, STAT_pf_taken);
		}
		r = stores(s);
		if (!r)
			CU_ASSERT_EQUAL(kvm_get_dirty_log(t, s->kvm, 1, bitmap), PAGES);
	}
	CU_ASSERT_EQUAL(kvm_stat(s->kvm, STAT_pf_taken) - faults, PAGES * ROUNDS);
	CU_ASSERT_EQUAL(allocations, before);
	return r;
}

/* With every policy; @preset: 6.1-tdp, which has no shadow pages to walk, or NULL. */
static void run(enum kvm_paging paging, enum scene_pte pte, const char *preset)
{
	static const char *const dirty[] = {"mask", "walk", "hybrid", "rmap-slot"};

	for (size_t i = 0; i < sizeof(dirty) / sizeof(dirty[0]); i++) {
		struct scene_opts o = {.paging = paging,
				       .pte = pte,
				       .slot_pages = PAGES,
				       .slot_flags = KVM_MEM_LOG_DIRTY_PAGES,
				       .preset = preset,
				       .personality = "amd",
				       .dirty = dirty[i]};

		if (preset && (!strcmp(dirty[i], "walk") || !strcmp(dirty[i], "hybrid")))
			continue;
		CU_ASSERT_EQUAL(scene(&o, fault_again), 0);
	}
	CU_ASSERT_TRUE(allocations > 0);
}

static void shadowing_a_guest_without_paging(void)
{
	run(PAGING_SHADOW, SCENE_FLAT, NULL);
}

static void shadowing_4k_ptes(void)
{
	run(PAGING_SHADOW, SCENE_4K, NULL);
}

static void nested(void)
{
	run(PAGING_TDP, SCENE_4K, NULL);
	run(PAGING_TDP, SCENE_4K, "6.1-tdp");
}

static CU_TestInfo tests[] = {
	{"shadowing_a_guest_without_paging", shadowing_a_guest_without_paging},
	{"shadowing_4k_ptes", shadowing_4k_ptes},
	{"nested", nested},
	CU_TEST_INFO_NULL};
TEST_MAIN("test_alloc", tests)
