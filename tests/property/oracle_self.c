// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Does the oracle of random machines (mops_oracle.h) see what is wrong? Here there is no model: a
 * history by hand, with an end for each op that a machine may have, and one that none can have.
 */
#include <string.h>

#include "tests/property/mops_oracle.h"
#include "tests/unit/harness.h"

#define PAGE(i) ((MOPS_DATA_GFN + (i)) << 12)
#define DEVICE	(MOPS_DEVICE_GFN << 12)
#define LEAF	(MOPS_P | MOPS_W | MOPS_U | MOPS_A | MOPS_D)

static struct mops machine;
static struct oracle oracle;

static void begin(enum guest_paging_mode mode)
{
	machine = (struct mops){.seed = 1, .mode = mode, .n_vcpus = 1, .n_windows = 1, .n_pts = 1};
	CU_ASSERT_TRUE_FATAL(oracle_init(&oracle, &machine));
}

static void op(enum mops_kind kind, uint64_t gva, uint64_t value)
{
	const struct mop m = {.kind = kind, .len = 8, .a = gva, .b = value};

	oracle_begin(&oracle, 0, &m);
}

static const char *read_is(uint64_t gva, uint64_t value)
{
	op(MOP_read, gva, 0);
	return oracle_read_done(&oracle, 0, true, value);
}

static const char *written(uint64_t gva, uint64_t value)
{
	op(MOP_write, gva, value);
	return oracle_write_done(&oracle, 0);
}

static bool says(const char *why, const char *words)
{
	return why && strstr(why, words);
}

/* Memory has what was stored last, in every byte; nothing older, nothing else, nothing newer. */
static void loads(void)
{
	begin(GUEST_FLAT32);
	CU_ASSERT_PTR_NULL(read_is(PAGE(1), 0));
	CU_ASSERT_PTR_NULL(written(PAGE(1), 0x1111111111111111));
	CU_ASSERT_PTR_NULL(read_is(PAGE(1), 0x1111111111111111));
	CU_ASSERT_TRUE(says(read_is(PAGE(1), 0), "never held, or no longer"));
	CU_ASSERT_PTR_NULL(written(PAGE(1), 0x2222222222222222));
	CU_ASSERT_PTR_NULL(read_is(PAGE(1), 0x2222222222222222));
	CU_ASSERT_TRUE(says(read_is(PAGE(1), 0x1111111111111111), "never held, or no longer"));
	CU_ASSERT_TRUE(says(read_is(PAGE(1), 0x1122222222222222), "never held, or no longer"));
	CU_ASSERT_TRUE(says(read_is(PAGE(1), 0x3333333333333333), "never held, or no longer"));
	CU_ASSERT_TRUE(says(read_is(PAGE(2), 0x2222222222222222), "never held, or no longer"));
	CU_ASSERT_TRUE(says(read_is(DEVICE, 0), "without a translation to memory"));
	CU_ASSERT_TRUE(says(written(DEVICE, 0), "without a translation to memory"));
	oracle_free(&oracle);
}

/* A store that goes on while a load begins may be seen or not; once it is over it is. */
static void loads_beside_a_store(void)
{
	const struct mop load = {.who = 1, .kind = MOP_read, .len = 8, .a = PAGE(1)};

	begin(GUEST_FLAT32);
	machine.n_vcpus = 2;
	for (uint64_t value = 0; value <= 9; value += 9) {
		CU_ASSERT_PTR_NULL(written(PAGE(1), 0));
		op(MOP_write, PAGE(1), 9);
		oracle_begin(&oracle, 1, &load);
		CU_ASSERT_PTR_NULL(oracle_write_done(&oracle, 0));
		CU_ASSERT_PTR_NULL(oracle_read_done(&oracle, 1, true, value));
		oracle_begin(&oracle, 1, &load);
		CU_ASSERT_EQUAL(!oracle_read_done(&oracle, 1, true, value), value == 9);
	}
	oracle_free(&oracle);
}

/* A page fault is the guest's own where its tables deny the access now, and nowhere else. */
static void guest_faults(void)
{
	uint64_t pte = MOPS_TABLES_WINDOW + (MOPS_PT_TABLES - MOPS_TABLES_GFN) * 0x1000 +
		       100 * 8; /* of a page that holds no table in use */
	uint64_t gva = MOPS_TABLES_WINDOW + 100 * 0x1000;
	const char *denied = "whose tables allow the access";

	begin(GUEST_FLAT32);
	op(MOP_read, PAGE(1), 0);
	CU_ASSERT_TRUE(says(oracle_faulted(&oracle, 0), denied));
	oracle_free(&oracle);

	begin(GUEST_LONG64);
	op(MOP_read, gva, 0);
	CU_ASSERT_TRUE(says(oracle_faulted(&oracle, 0), denied));
	CU_ASSERT_PTR_NULL(written(pte, gva | (LEAF & ~MOPS_W)));
	op(MOP_read, gva, 0);
	CU_ASSERT_TRUE(says(oracle_faulted(&oracle, 0), denied));
	op(MOP_write, gva, 0);
	CU_ASSERT_PTR_NULL(oracle_faulted(&oracle, 0));
	CU_ASSERT_PTR_NULL(written(pte, gva | LEAF));
	op(MOP_write, gva, 0);
	CU_ASSERT_TRUE(says(oracle_faulted(&oracle, 0), denied));
	CU_ASSERT_PTR_NULL(written(pte, 0));
	op(MOP_read, gva, 0);
	CU_ASSERT_PTR_NULL(oracle_faulted(&oracle, 0));
	oracle_free(&oracle);
}

/* Until it is flushed an old translation may be used, then only the new one. */
static void translations(void)
{
	uint64_t pte = MOPS_TABLES_WINDOW + (MOPS_PT_TABLES - MOPS_TABLES_GFN) * 0x1000 + 100 * 8;
	uint64_t gva = MOPS_TABLES_WINDOW + 100 * 0x1000;

	begin(GUEST_LONG64);
	CU_ASSERT_PTR_NULL(written(gva, 5));
	CU_ASSERT_PTR_NULL(written(pte, PAGE(7) | LEAF));
	CU_ASSERT_PTR_NULL(read_is(gva, 5));
	CU_ASSERT_PTR_NULL(read_is(gva, 0));
	CU_ASSERT_TRUE(says(read_is(gva, 6), "never held, or no longer"));
	oracle_page_flushed(&oracle, 0, gva, oracle_tick(&oracle));
	CU_ASSERT_PTR_NULL(read_is(gva, 0));
	CU_ASSERT_TRUE(says(read_is(gva, 5), "never held, or no longer"));
	oracle_free(&oracle);
}

/* An exit for MMIO, and EFAULT, need an address that is a device's or read-only. */
static void exits(void)
{
	begin(GUEST_FLAT32);
	op(MOP_write, DEVICE, 0);
	CU_ASSERT_PTR_NULL(oracle_device(&oracle, 0, false));
	op(MOP_write, PAGE(1), 0);
	CU_ASSERT_TRUE(says(oracle_device(&oracle, 0, false), "where a slot is"));
	op(MOP_write, PAGE(1), 0);
	CU_ASSERT_TRUE(says(oracle_readonly(&oracle, 0), "memory is writable"));
	oracle_free(&oracle);
}

/* Memory goes along with its slot; what is stored in a read-only one is a device's. */
static void slots(void)
{
	uint64_t here = MOPS_DATA2_GFN << 12, there = MOPS_MOVED_GFN << 12;
	struct oracle_slot *s = &oracle.slot[MOPS_SLOT_DATA2];

	begin(GUEST_FLAT32);
	CU_ASSERT_PTR_NULL(written(here, 5));
	CU_ASSERT_TRUE(says(read_is(there, 5), "without a translation to memory"));
	op(MOP_read, there, 0);
	CU_ASSERT_PTR_NULL(oracle_device(&oracle, 0, false));
	oracle_begins(&oracle, &s->there[1]);
	oracle_ends(&oracle, &s->there[0]);
	oracle_begins(&oracle, &s->absent[0]);
	oracle_ends(&oracle, &s->absent[1]);
	CU_ASSERT_PTR_NULL(read_is(there, 5));
	CU_ASSERT_TRUE(says(read_is(here, 5), "without a translation to memory"));
	op(MOP_read, there, 0);
	CU_ASSERT_TRUE(says(oracle_device(&oracle, 0, false), "where a slot is"));
	oracle_ends(&oracle, &s->ram);
	oracle_begins(&oracle, &s->rom);
	CU_ASSERT_PTR_NULL(read_is(there, 5));
	CU_ASSERT_TRUE(says(written(there, 6), "without a translation to memory"));
	op(MOP_read, there, 0);
	CU_ASSERT_TRUE(says(oracle_device(&oracle, 0, false), "where a slot is"));
	op(MOP_write, there, 6);
	CU_ASSERT_PTR_NULL(oracle_device(&oracle, 0, false));
	CU_ASSERT_TRUE(says(read_is(there, 6), "never held, or no longer"));
	oracle_free(&oracle);
}

/* Every page that was stored to since logging began, and since its last report, is lost while it is
 * not reported. */
static void dirty_pages(void)
{
	uint64_t bitmap[MOPS_DATA_PAGES / 64] = {0}, first = 0;

	begin(GUEST_FLAT32);
	CU_ASSERT_PTR_NULL(written(PAGE(3), 1));
	oracle_log(&oracle, MOPS_SLOT_DATA, true);
	CU_ASSERT_EQUAL(oracle_lost(&oracle, MOPS_SLOT_DATA, &first), 0);
	CU_ASSERT_PTR_NULL(read_is(PAGE(4), 0));
	CU_ASSERT_PTR_NULL(written(PAGE(5), 1));
	CU_ASSERT_PTR_NULL(written(PAGE(70), 1));
	CU_ASSERT_EQUAL(oracle_lost(&oracle, MOPS_SLOT_DATA, &first), 2);
	CU_ASSERT_EQUAL(first, MOPS_DATA_GFN + 5);
	bitmap[0] = 1ull << 5;
	oracle_reported(&oracle, MOPS_SLOT_DATA, bitmap);
	CU_ASSERT_EQUAL(oracle_lost(&oracle, MOPS_SLOT_DATA, &first), 1);
	CU_ASSERT_EQUAL(first, MOPS_DATA_GFN + 70);
	bitmap[1] = 1ull << 6;
	oracle_reported(&oracle, MOPS_SLOT_DATA, bitmap);
	CU_ASSERT_EQUAL(oracle_lost(&oracle, MOPS_SLOT_DATA, &first), 0);
	CU_ASSERT_PTR_NULL(written(PAGE(5), 2)); /* again, after its report */
	CU_ASSERT_EQUAL(oracle_lost(&oracle, MOPS_SLOT_DATA, &first), 1);
	CU_ASSERT_EQUAL(first, MOPS_DATA_GFN + 5);
	oracle_free(&oracle);
}

static CU_TestInfo tests[] = {{"loads", loads},
			      {"loads_beside_a_store", loads_beside_a_store},
			      {"guest_faults", guest_faults},
			      {"translations", translations},
			      {"exits", exits},
			      {"slots", slots},
			      {"dirty_pages", dirty_pages},
			      CU_TEST_INFO_NULL};
TEST_MAIN("oracle", tests)
