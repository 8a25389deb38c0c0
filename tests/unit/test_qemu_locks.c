// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Locks out of what CPUs run (workloads/qemu/locks.h), without QEMU: blocks by hand, and expected
 * lines by hand.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "workloads/qemu/locks.h"

static struct locks l;
static char *text;
static size_t len;
static FILE *out;

/* Functions of 0x10 bytes, in the order of /proc/kallsyms. */
enum {
	TICK = 0x100,
	SCHEDULE = 0x200,
	CALLER = 0x1000,
	LOCK = 0x2000,
	TRY = 0x2010,
	UNLOCK = 0x2020,
	READ = 0x2030,
	UNREAD = 0x2040,
	SLOW = 0x2050
};

static void begin(void)
{
	out = open_memstream(&text, &len);
	CU_ASSERT_FATAL(out != NULL);
	locks_open(&l, out);
	locks_symbol(&l, TICK, "asm_sysvec_apic_timer_interrupt");
	locks_symbol(&l, SCHEDULE, "__schedule");
	locks_symbol(&l, CALLER, "_raw_spin_rq_lock_irqsave"); /* somebody's, by its name */
	locks_symbol(&l, LOCK, "_raw_spin_lock");
	locks_symbol(&l, LOCK, "an_alias");
	locks_symbol(&l, TRY, "_raw_spin_trylock");
	locks_symbol(&l, UNLOCK, "_raw_spin_unlock_irqrestore");
	locks_symbol(&l, READ, "_raw_read_lock");
	locks_symbol(&l, UNREAD, "_raw_read_unlock");
	locks_symbol(&l, SLOW, "native_queued_spin_lock_slowpath");
	CU_ASSERT(!locks_ready(&l)); /* where does the last one end? */
	locks_symbol(&l, SLOW + 0x10, "__lock_text_end");
	CU_ASSERT(locks_ready(&l));
}

static void says(const char *expected)
{
	locks_close(&l);
	fclose(out);
	CU_ASSERT_STRING_EQUAL(text, expected);
	if (strcmp(text, expected) != 0)
		printf("got:\n%s\nexpected:\n%s\n", text, expected);
	free(text);
}

/* @vcpu runs a block of @n instructions from @start. */
static void run_block(unsigned vcpu, struct locks_block block)
{
	static struct locks_block kept[256];
	static unsigned next;
	struct locks_block *b = &kept[next++ % 256];

	*b = block;
	locks_run(&l, vcpu, b);
}

static void works(unsigned vcpu, unsigned n)
{
	run_block(vcpu, (struct locks_block){.start = CALLER, .last = CALLER + 8, .n = n});
}

/* A call of two instructions to @function, whose block of 3 has its store in the middle: 2
 * instructions of it are left then. */
static void calls(unsigned vcpu, uint64_t function, bool atomic, uint64_t lock)
{
	run_block(vcpu, (struct locks_block){
				.start = CALLER, .last = CALLER + 4, .to = function, .n = 2});
	run_block(vcpu, (struct locks_block){.start = function, .last = function + 8, .n = 3});
	locks_store(&l, vcpu, function + 4, atomic, 2, lock);
}

static void one_lock(void)
{
	begin();
	works(0, 1000);
	calls(0, LOCK, true, 0xaa); /* no phase yet */
	locks_phase(&l, 1);
	works(0, 10);
	calls(0, UNLOCK, false, 0xaa); /* taken before */
	works(0, 10);
	calls(0, LOCK, true, 0xaa); /* at 10 + 5 + 10 + 3 */
	works(0, 20);
	calls(0, UNLOCK, false, 0xaa); /* 2 + 20 + 3 later */
	works(0, 30);
	calls(0, LOCK, true, 0xbb); /* gap 2 + 30 + 3; held to the end */
	locks_phase(&l, 0);
	says("28 0 L aa 1004 2000 0 28 25 0 0\n# vcpu 1 0 90 0 0\n# locks 1 1 1\n");
	CU_ASSERT_EQUAL(locks_time(&l), 1095);
}

/* One in another; and given back in the order in which they were taken. */
static void nested(void)
{
	begin();
	locks_phase(&l, 1);
	calls(0, LOCK, true, 0xaa); /* at 3 */
	calls(0, LOCK, true, 0xbb); /* at 8, 5 after */
	calls(0, UNLOCK, false, 0xaa);
	calls(0, UNLOCK, false, 0xbb);
	calls(0, READ, true, 0xcc); /* a reader's unlock is an atomic */
	calls(0, UNREAD, true, 0xcc);
	locks_phase(&l, 0);
	says("3 0 L aa 1004 2000 0 3 10 0 0\n8 0 L bb 1004 2000 1 5 10 0 0\n"
	     "23 0 L cc 1004 2030 0 5 5 0 0\n# vcpu 1 0 30 0 0\n# locks 3 0 0\n");
}

/* The slow path is no work: of vCPU 1, which waits for vCPU 0. */
static void slow_path(void)
{
	begin();
	locks_phase(&l, 1);
	calls(0, LOCK, true, 0xaa);
	calls(1, LOCK, true, 0xaa); /* at 3 */
	run_block(1, (struct locks_block){.start = SLOW, .last = SLOW + 4, .n = 4});
	run_block(1, (struct locks_block){.start = SLOW + 4, .last = SLOW + 6, .n = 50});
	calls(0, UNLOCK, false, 0xaa);
	run_block(1, (struct locks_block){
			     .start = SLOW + 8, .last = SLOW + 9, .n = 6, .returns = true});
	works(1, 7);
	calls(1, UNLOCK, false, 0xaa); /* 2 + 7 + 3 after */
	locks_phase(&l, 0);
	says("3 0 L aa 1004 2000 0 3 5 0 0\n3 1 L aa 1004 2000 0 3 12 60 0\n"
	     "# vcpu 1 0 10 0 0\n# vcpu 1 1 17 60 0\n# locks 2 0 0\n");
}

/* A try of what somebody else has; one that is taken back; one that succeeds. */
static void tries(void)
{
	begin();
	locks_phase(&l, 1);
	calls(0, LOCK, true, 0xaa);
	calls(1, TRY, true, 0xaa);
	calls(1, TRY, true, 0xbb);
	locks_store(&l, 1, TRY + 6, true, 1, 0xbb);
	calls(1, TRY, true, 0xcc);
	calls(1, UNLOCK, false, 0xcc);
	calls(0, UNLOCK, false, 0xaa);
	locks_phase(&l, 0);
	says("13 1 L cc 1004 2010 0 13 5 0 0\n3 0 L aa 1004 2000 0 3 5 0 0\n"
	     "# vcpu 1 0 10 0 0\n# vcpu 1 1 20 0 0\n# locks 2 0 0\n");
}

/* What a timer interrupt does while a lock is held has a clock of its own. */
static void tick(void)
{
	begin();
	locks_phase(&l, 1);
	calls(0, LOCK, true, 0xaa); /* at 3 of 5 */
	run_block(0, (struct locks_block){.start = TICK, .last = TICK + 4, .n = 100});
	calls(0, LOCK, true, 0xbb); /* gap 100 + 3 */
	calls(0, UNLOCK, false, 0xbb);
	run_block(0, (struct locks_block){.start = 0x300, .last = 0x304, .n = 9, .irets = true});
	works(0, 4);
	calls(0, UNLOCK, false, 0xaa); /* 2 + 4 + 3 */
	run_block(0, (struct locks_block){.start = TICK, .last = TICK + 4, .n = 100});
	run_block(0, (struct locks_block){.start = SCHEDULE, .last = SCHEDULE + 4, .n = 1});
	calls(0, LOCK, true, 0xaa);
	calls(0, UNLOCK, false, 0xaa);
	locks_phase(&l, 0);
	says("108 0 L bb 1004 2000 0 103 5 0 1\n3 0 L aa 1004 2000 0 3 9 0 0\n"
	     "17 0 L aa 1004 2000 0 5 5 0 0\n# vcpu 1 0 24 0 220\n# locks 3 0 0\n");
}

/* A wait within a tick is the tick's; a tick within a wait is not the wait's. */
static void tick_and_wait(void)
{
	static const struct locks_block slow = {.start = SLOW, .last = SLOW + 4, .n = 40};
	static const struct locks_block back = {
		.start = SLOW + 8, .last = SLOW + 9, .n = 6, .returns = true};
	static const struct locks_block iret = {
		.start = 0x300, .last = 0x304, .n = 9, .irets = true};

	begin();
	locks_phase(&l, 1);
	run_block(0, (struct locks_block){.start = TICK, .last = TICK + 4, .n = 100});
	calls(0, LOCK, true, 0xbb);
	run_block(0, slow);
	run_block(0, back);
	calls(0, UNLOCK, false, 0xbb); /* 2 + 46 + 3 */
	run_block(0, iret);
	calls(0, LOCK, true, 0xaa); /* at 3: nothing before was work */
	run_block(0, slow);
	run_block(0, (struct locks_block){.start = TICK, .last = TICK + 4, .n = 100});
	run_block(0, iret);
	run_block(0, back);
	calls(0, UNLOCK, false, 0xaa);
	locks_phase(&l, 0);
	says("103 0 L bb 1004 2000 0 103 51 0 1\n3 0 L aa 1004 2000 0 3 5 46 0\n"
	     "# vcpu 1 0 10 46 274\n# locks 2 0 0\n");
}

/* Callers: by a jump or call that says where to, or that does not; else nobody's. */
static void callers(void)
{
	begin();
	locks_phase(&l, 1);
	run_block(0,
		  (struct locks_block){.start = CALLER, .last = CALLER + 2, .n = 1, .calls = true});
	run_block(0, (struct locks_block){.start = LOCK, .last = LOCK + 8, .n = 1});
	locks_store(&l, 0, LOCK, true, 1, 0xaa);
	calls(0, UNLOCK, false, 0xaa);
	works(0, 1);
	run_block(0, (struct locks_block){.start = LOCK, .last = LOCK + 8, .n = 1});
	locks_store(&l, 0, LOCK, true, 1, 0xaa);
	calls(0, UNLOCK, false, 0xaa);
	locks_phase(&l, 0);
	says("1 0 L aa 1002 2000 0 1 4 0 0\n8 0 L aa 0 2000 0 3 4 0 0\n"
	     "# vcpu 1 0 14 0 0\n# locks 2 0 0\n");
}

static CU_TestInfo tests[] = {{"one_lock", one_lock},	{"nested", nested},
			      {"slow_path", slow_path}, {"tries", tries},
			      {"tick", tick},		{"tick_and_wait", tick_and_wait},
			      {"callers", callers},	CU_TEST_INFO_NULL};

TEST_MAIN("qemu_locks", tests)
