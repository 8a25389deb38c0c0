// SPDX-License-Identifier: GPL-3.0-or-later
/* What the threads of a host's trace do, what they stand still for, and whose doing it is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/host_threads.h"
#include "tests/unit/harness.h"
#include "tests/unit/host_feed.h"

/* All that was told, as text: TID STATE[ DETAIL] BEGIN-END[ unsure][ open], and so on. */
static char told[8192];

static void tell(const char *text)
{
	strncat(told, text, sizeof(told) - strlen(told) - 1);
}

static int on_segment(void *ctx, const struct host_segment *s)
{
	char line[256];

	(void)ctx;
	snprintf(line, sizeof(line), "%" PRId64 " %s%s%s %" PRIu64 "-%" PRIu64 "%s%s\n",
		 s->who->tid, host_state_name(s->state), s->detail[0] ? " " : "", s->detail,
		 s->begin, s->end, s->unsure ? " unsure" : "", s->open ? " open" : "");
	tell(line);
	return 0;
}

static int on_stall(void *ctx, const struct host_stall *s)
{
	static const char *const blames[HOST_N_BLAMES] = {"unseen", "lost", "by", "interrupt",
							  "softirq"};
	char line[256], by[64] = "";

	(void)ctx;
	if (s->blame == HOST_BLAME_KNOWN)
		snprintf(by, sizeof(by), " %" PRId64 " at %" PRIu64, s->by.tid, s->until);
	if (s->blame > HOST_BLAME_KNOWN)
		snprintf(by, sizeof(by), " on %" PRId64 " at %" PRIu64, s->by_cpu, s->until);
	snprintf(line, sizeof(line),
		 "%" PRId64 " vcpu %" PRId64 " %s %" PRIu64 "-%" PRIu64 "%s%s %s%s\n", s->who.tid,
		 s->who.vcpu, host_stall_name(s->kind), s->begin, s->end,
		 s->unsure ? " unsure" : "", s->open ? " open" : "", blames[s->blame], by);
	tell(line);
	return 0;
}

static int on_gap(void *ctx, const struct host_gap *g)
{
	char line[256];

	(void)ctx;
	snprintf(line, sizeof(line), "%" PRId64 " gap %" PRIu64 "-%" PRIu64 " line %" PRIu64 "%s\n",
		 g->who.tid, g->begin, g->end, g->line, g->unsure ? " unsure" : "");
	tell(line);
	return 0;
}

enum { SEGMENTS = 1, STALLS = 2, GAPS = 4 };

static int feed_event(void *ctx, const struct host_event *e)
{
	return host_threads_event(ctx, e);
}
static int feed_loss(void *ctx, const struct host_loss *l)
{
	return host_threads_loss(ctx, l);
}
static int feed_elision(void *ctx)
{
	return host_threads_elision(ctx);
}

static struct host_threads_totals totals;

static void check(int what, const char *text, const char *expected)
{
	const struct host_threads_sink sink = {.segment = what & SEGMENTS ? on_segment : NULL,
					       .stall = what & STALLS ? on_stall : NULL,
					       .gap = what & GAPS ? on_gap : NULL};
	struct host_threads *t = host_threads_create(&sink);
	const struct host_sink into = {
		.ctx = t, .event = feed_event, .loss = feed_loss, .elision = feed_elision};

	told[0] = '\0';
	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	CU_ASSERT_EQUAL(host_feed(&into, text), 0);
	totals = host_threads_totals(t);
	CU_ASSERT_EQUAL(host_threads_end(t), 0);
	CU_ASSERT_STRING_EQUAL(told, expected);
	if (strcmp(told, expected))
		printf("told:\n%s", told);
	host_threads_free(t);
}

static void states_follow_each_other(void)
{
	check(SEGMENTS,
	      "q 7 0 100 kvm_entry vcpu=3\n"
	      "q 7 0 150 kvm_exit r=EPT_VIOLATION\n"
	      "q 7 0 152 kvm_page_fault address=0x1000 error_code=2\n"
	      "q 7 0 160 kvm_entry vcpu=3\n"
	      "q 7 1 200 kvm_exit r=EXIT_NPF\n"
	      "q 7 1 210 kvm_userspace_exit reason=6\n"
	      "q 7 1 300 kvm_fpu\n"
	      "q 7 1 310 kvm_entry vcpu=3\n"
	      "q 7 1 400 kvm_exit isa=2 reason=0x78\n"
	      "q 7 1 450 kvm_vcpu_wakeup ns=50\n"
	      "q 7 1 460 kvm_entry vcpu=3\n",
	      "7 guest 100-150\n"
	      "7 host EPT_VIOLATION 150-160\n"
	      "7 guest 160-200\n"
	      "7 host NPF 200-210\n"
	      "7 userspace MMIO 210-300\n"
	      "7 host KVM_RUN 300-310\n"
	      "7 guest 310-400\n"
	      "7 halted REASON_0x78 400-450\n"
	      "7 host HLT 450-460\n"
	      "7 guest 460-460 open\n");
}

/* Who could run is descheduled; a halted vCPU that sleeps is halted. */
static void the_scheduler_covers_states(void)
{
	check(SEGMENTS | STALLS,
	      "q 7 0 100 kvm_exit r=hlt vcpu=1\n"
	      "q 7 0 110 sched_switch prev_pid=7 prev_state=S next_pid=0\n"
	      "w 9 2 150 sched_waking pid=7\n"
	      "w 9 2 151 sched_wakeup pid=7\n"
	      "i 0 0 160 sched_switch prev_pid=0 prev_state=R next_pid=7\n"
	      "q 7 0 170 kvm_vcpu_wakeup ns=1\n"
	      "q 7 0 180 sched_switch prev_pid=7 prev_state=R next_pid=33\n"
	      "x 33 0 190 sched_switch prev_pid=33 prev_state=S next_pid=7\n"
	      "q 7 0 200 kvm_entry vcpu=1\n",
	      "7 vcpu 1 halted 100-170 by 9 at 150\n"
	      "7 halted HLT 100-170\n"
	      "7 host HLT 170-180\n"
	      "7 vcpu 1 preempted 180-190 by 33 at 0\n"
	      "7 descheduled for 33 180-190\n"
	      "7 host HLT 190-200\n"
	      "7 guest 200-200 open\n");
	/* interrupts came to 9 and to an idle CPU: neither woke anybody. Without flags, nobody can
	 * tell of 9's record; the first that tells counts. */
	check(STALLS,
	      "q 7 0 100 kvm_exit r=hlt vcpu=1\n"
	      "w 9 2 150 sched_waking pid=7 in=hardirq\n"
	      "w 9 2 151 sched_wakeup pid=7 in=task\n"
	      "q 7 0 170 kvm_vcpu_wakeup ns=1\n"
	      "q 7 0 200 kvm_exit r=hlt\n"
	      "w 9 3 250 sched_waking pid=7 in=softirq\n"
	      "q 7 0 270 kvm_vcpu_wakeup ns=1\n"
	      "q 7 0 300 kvm_exit r=hlt\n"
	      "i 0 1 350 sched_wakeup pid=7\n"
	      "q 7 0 370 kvm_vcpu_wakeup ns=1\n"
	      "q 7 0 400 kvm_exit r=hlt\n"
	      "w 9 1 450 sched_waking pid=7 in=nmi\n"
	      "q 7 0 470 kvm_vcpu_wakeup ns=1\n"
	      "q 7 0 500 kvm_exit r=hlt\n"
	      "w 9 1 550 sched_waking pid=7 in=task\n"
	      "q 7 0 570 kvm_vcpu_wakeup ns=1\n"
	      "q 7 0 600 kvm_fpu\n"
	      "q 7 0 610 sched_switch prev_pid=7 prev_state=S next_pid=0\n"
	      "w 9 2 620 sched_waking pid=7 in=hardirq\n"
	      "i 0 0 630 sched_switch prev_pid=0 prev_state=R next_pid=7\n",
	      "7 vcpu 1 halted 100-170 interrupt on 2 at 150\n"
	      "7 vcpu 1 halted 200-270 softirq on 3 at 250\n"
	      "7 vcpu 1 halted 300-370 interrupt on 1 at 350\n"
	      "7 vcpu 1 halted 400-470 interrupt on 1 at 450\n"
	      "7 vcpu 1 halted 500-570 by 9 at 550\n"
	      "7 vcpu 1 slept 610-630 interrupt on 2 at 620\n");
	/* a thread that ends sleeps no more; its number is free for one that is no vCPU yet */
	check(SEGMENTS | STALLS | GAPS,
	      "q 7 0 100 kvm_exit r=io vcpu=1\n"
	      "q 7 0 110 sched_switch prev_pid=7 prev_state=Z next_pid=33\n"
	      "q 8 1 120 kvm_exit r=hlt vcpu=2\n"
	      "i 0 1 130 sched_switch prev_pid=8 prev_state=X next_pid=0\n"
	      "z 7 0 140 kvm_fpu\n"
	      "z 7 0 150 sched_switch prev_pid=7 prev_state=S next_pid=33\n"
	      "x 33 0 500 sched_switch prev_pid=33 prev_state=R next_pid=7\n",
	      "7 host IO 100-110\n"
	      "7 gap 100-110 line 2\n"
	      "8 halted HLT 120-130\n"
	      "8 vcpu 2 halted 120-130 unseen\n"
	      "7 gap 140-150 line 6\n");
	/* it runs again, as its own record says, but nobody saw it come back */
	check(SEGMENTS | STALLS,
	      "q 7 0 100 kvm_exit r=io vcpu=1\n"
	      "q 7 0 180 sched_switch prev_pid=7 prev_state=D next_pid=33\n"
	      "q 7 0 200 kvm_entry vcpu=1\n",
	      "7 host IO 100-180\n"
	      "7 vcpu 1 slept 180-200 unsure unseen\n"
	      "7 descheduled 180-200 unsure\n"
	      "7 host IO 200-200\n"
	      "7 guest 200-200 open\n");
}

static void a_loss_makes_intervals_unsure(void)
{
	/* on the CPU of its beginning, of its end, of another, of none that is known */
	check(SEGMENTS, "q 7 4 10 kvm_entry vcpu=0\nLOST 4 5\nq 7 5 20 kvm_exit r=io\n",
	      "7 guest 10-20 unsure\n7 host IO 20-20 open\n");
	check(SEGMENTS, "q 7 4 10 kvm_entry vcpu=0\nLOST 5\nq 7 5 20 kvm_exit r=io\n",
	      "7 guest 10-20 unsure\n7 host IO 20-20 open\n");
	check(SEGMENTS, "q 7 4 10 kvm_entry vcpu=0\nLOST 6 1\nq 7 5 20 kvm_exit r=io\n",
	      "7 guest 10-20\n7 host IO 20-20 open\n");
	check(SEGMENTS, "q 7 4 10 kvm_entry vcpu=0\nLOST -1 1\nq 7 5 20 kvm_exit r=io\n",
	      "7 guest 10-20 unsure\n7 host IO 20-20 open\n");
	check(SEGMENTS, "q 7 4 10 kvm_entry vcpu=0\n...\nq 7 5 20 kvm_exit r=io\n",
	      "7 guest 10-20 unsure\n7 host IO 20-20 open\n");
	/* an exit that nobody lost is missing all the same */
	check(SEGMENTS, "q 7 4 10 kvm_entry vcpu=0\nq 7 4 20 kvm_entry vcpu=0\n",
	      "7 guest 10-20 unsure\n7 guest 20-20 open\n");
}

#define RING                                                                                       \
	"q 7 0 100 kvm_entry vcpu=2\n"                                                             \
	"q 7 0 110 kvm_dirty_ring_exit vcpu=2\n"                                                   \
	"q 7 0 115 kvm_userspace_exit reason=31\n"

static void a_full_ring_waits_for_its_reset(void)
{
	check(STALLS,
	      RING "m 5 1 300 kvm_dirty_ring_reset ring=1\n"
		   "m 6 1 400 kvm_dirty_ring_reset ring=2\n"
		   "m 5 1 410 kvm_dirty_ring_reset ring=2\n"
		   "q 7 0 450 kvm_fpu\n",
	      "7 vcpu 2 dirty ring full 115-450 by 6 at 400\n");
	/* who resets it itself */
	check(STALLS, RING "q 7 0 400 kvm_dirty_ring_reset ring=2\nq 7 0 450 kvm_entry vcpu=2\n",
	      "7 vcpu 2 dirty ring full 115-400 by 7 at 400\n");
	/* a loss anywhere may hide the reset, but not how long it took */
	check(STALLS, RING "LOST 3 9\nq 7 0 450 kvm_fpu\n",
	      "7 vcpu 2 dirty ring full 115-450 lost\n");
	check(STALLS, RING "q 7 0 450 kvm_fpu\n", "7 vcpu 2 dirty ring full 115-450 unseen\n");
	check(STALLS, RING "m 6 1 400 kvm_dirty_ring_reset ring=2\nLOST 0 9\nq 7 0 450 kvm_fpu\n",
	      "7 vcpu 2 dirty ring full 115-450 unsure by 6 at 400\n");
	/* it never comes back */
	check(STALLS, RING "m 6 1 400 kvm_fpu\n", "7 vcpu 2 dirty ring full 115-400 open unseen\n");
	/* another VM's ring of that number */
	check(STALLS,
	      "q 7 0 100 kvm_dirty_ring_exit vcpu=2 tgid=70\n"
	      "q 7 0 115 kvm_userspace_exit reason=31 tgid=70\n"
	      "m 6 1 300 kvm_dirty_ring_reset ring=2 tgid=60\n"
	      "m 8 1 400 kvm_dirty_ring_reset ring=2 tgid=70\n"
	      "q 7 0 450 kvm_fpu tgid=70\n",
	      "7 vcpu 2 dirty ring full 115-450 by 8 at 400\n");
	/* an exit to user space for another reason */
	check(STALLS, "q 7 0 100 kvm_entry vcpu=2\nq 7 0 115 kvm_userspace_exit reason=6\n", "");
}

static void a_lock_is_held_by_who_got_it_before(void)
{
	/* a got it while b waited, and had it until b got it; who had it before, nobody knows */
	check(STALLS,
	      "a 1 0 100 contention_begin lock_addr=0xf0 flags=1\n"
	      "b 2 1 110 contention_begin lock_addr=0xf0 flags=1\n"
	      "a 1 0 130 contention_end lock_addr=0xf0 ret=0\n"
	      "b 2 1 170 contention_end lock_addr=0xf0 ret=0\n"
	      "c 3 1 200 contention_begin lock_addr=0xf0 flags=1\n"
	      "c 3 1 210 contention_end lock_addr=0xf0 ret=0\n",
	      "1 vcpu -1 lock 100-130 unseen\n"
	      "2 vcpu -1 lock 110-170 by 1 at 130\n"
	      "3 vcpu -1 lock 200-210 unseen\n");
	/* readers 2 and 3 wait for writer 1, not for each other; writer 4 for a reader */
	check(STALLS,
	      "a 1 0 100 contention_begin lock_addr=0xf0 flags=4\n"
	      "b 2 1 101 contention_begin lock_addr=0xf0 flags=2\n"
	      "c 3 2 102 contention_begin lock_addr=0xf0 flags=2\n"
	      "d 4 3 103 contention_begin lock_addr=0xf0 flags=4\n"
	      "a 1 0 110 contention_end lock_addr=0xf0 ret=0\n"
	      "b 2 1 120 contention_end lock_addr=0xf0 ret=0\n"
	      "c 3 2 121 contention_end lock_addr=0xf0 ret=0\n"
	      "d 4 3 130 contention_end lock_addr=0xf0 ret=0\n",
	      "1 vcpu -1 lock 100-110 unseen\n"
	      "2 vcpu -1 lock 101-120 by 1 at 110\n"
	      "3 vcpu -1 lock 102-121 by 1 at 110\n"
	      "4 vcpu -1 lock 103-130 by 3 at 121\n");
	/* a mutex is spun for, then slept for: one wait; within it, another lock's */
	check(STALLS,
	      "a 1 0 100 contention_begin lock_addr=0xf0 flags=33\n"
	      "a 1 0 110 contention_begin lock_addr=0xf0 flags=32\n"
	      "a 1 0 111 contention_begin lock_addr=0xe0 flags=1\n"
	      "a 1 0 112 contention_end lock_addr=0xe0 ret=0\n"
	      "a 1 0 120 contention_end lock_addr=0xf0 ret=0\n",
	      "1 vcpu -1 lock 111-112 unseen\n1 vcpu -1 lock 100-120 unseen\n");
	/* who gave up did not get it */
	check(STALLS,
	      "a 1 0 100 contention_begin lock_addr=0xf0 flags=32\n"
	      "b 2 1 101 contention_begin lock_addr=0xf0 flags=32\n"
	      "a 1 0 110 contention_end lock_addr=0xf0 ret=-4\n"
	      "b 2 1 120 contention_end lock_addr=0xf0 ret=0\n",
	      "1 vcpu -1 lock 100-110 unseen\n2 vcpu -1 lock 101-120 unseen\n");
	check(STALLS,
	      "a 1 0 100 contention_begin lock_addr=0xf0 flags=1\nLOST 1 4\n"
	      "a 1 0 110 contention_end lock_addr=0xf0 ret=0\n",
	      "1 vcpu -1 lock 100-110 lost\n");
}

static void a_vcpu_is_what_its_thread_printed(void)
{
	/* comm and CPU would say something else */
	check(STALLS,
	      "vcpu9 7 9 100 kvm_entry vcpu=4\n"
	      "vcpu9 7 9 110 kvm_exit r=HLT\n"
	      "vcpu9 7 9 120 kvm_entry\n"
	      "vcpu9 8 9 130 kvm_exit r=HLT\n"
	      "vcpu9 8 9 140 kvm_entry\n",
	      "7 vcpu 4 halted 110-120 unseen\n");
}

static void the_longest_gap_of_a_thread(void)
{
	check(GAPS,
	      "q 7 0 100 kvm_fpu\nq 7 0 150 kvm_fpu\nq 8 0 160 kvm_fpu\nq 7 0 250 kvm_fpu\n"
	      "q 7 0 260 kvm_fpu\nLOST 0 1\nq 8 0 900 kvm_fpu\n",
	      "7 gap 150-250 line 4\n8 gap 160-900 line 7 unsure\n");
}

/* It is counted, and no interval is negative or lies over another. */
static void time_that_goes_backwards(void)
{
	check(SEGMENTS | STALLS | GAPS,
	      "q 7 0 100 kvm_entry vcpu=0\n"
	      "q 7 0 50 kvm_exit r=hlt\n"
	      "q 7 0 40 kvm_entry vcpu=0\n"
	      "q 7 0 120 kvm_exit r=io\n",
	      "7 guest 100-100 unsure\n"
	      "7 halted HLT 100-100 unsure\n"
	      "7 guest 100-120\n"
	      "7 host IO 120-120 open\n"
	      "7 gap 40-120 line 4\n");
	CU_ASSERT_EQUAL(totals.backwards, 2);
	CU_ASSERT_EQUAL(totals.first, 40);
	CU_ASSERT_EQUAL(totals.last, 120);
}

static void nothing_without_times_or_tids(void)
{
	check(SEGMENTS | STALLS | GAPS,
	      "q 7 0 - kvm_entry vcpu=0\nq 7 0 - kvm_exit r=hlt\nq 7 0 - kvm_entry vcpu=0\n", "");
	CU_ASSERT_EQUAL(totals.first, HOST_NO_TIME);
	check(SEGMENTS | STALLS | GAPS,
	      "q -1 0 10 kvm_entry vcpu=0\nq -1 0 20 kvm_exit r=hlt\nq 0 0 30 kvm_entry vcpu=0\n",
	      "");
}

/* Memory is bounded: the thread that was silent for longest is told of, and forgotten. */
static void more_threads_than_are_kept(void)
{
	const struct host_threads_sink sink = {.segment = on_segment};
	struct host_threads *t = host_threads_create(&sink);
	struct host_event e = {.id = HOST_kvm_exit, .cpu = 0, .tgid = -1};

	told[0] = '\0';
	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	for (int64_t i = 1; i <= HOST_MAX_THREADS + 1; i++) {
		e.tid = i;
		e.time_ns = (uint64_t)i;
		CU_ASSERT_EQUAL(host_threads_event(t, &e), 0);
		if (i == 2) { /* the first is heard of once more */
			e.tid = 1;
			CU_ASSERT_EQUAL(host_threads_event(t, &e), 0);
		}
	}
	CU_ASSERT_EQUAL(host_threads_totals(t).forgotten, 1);
	CU_ASSERT_STRING_EQUAL(told,
			       "1 host REASON_0x0 1-2 unsure\n2 host REASON_0x0 2-4097 open\n");
	host_threads_free(t);
}

static void reasons_have_names(void)
{
	char buf[HOST_REASON];
	struct host_event e = {.reason = {"npf", 3}};

	CU_ASSERT_STRING_EQUAL(host_reason(&e, buf), "NPF");
	e.reason = (struct host_text){"0x400", 5};
	CU_ASSERT_STRING_EQUAL(host_reason(&e, buf), "NPF");
	e.reason = (struct host_text){"EXIT_write_cr3", 14};
	CU_ASSERT_STRING_EQUAL(host_reason(&e, buf), "WRITE_CR3");
	e.reason.len = 0;
	host_set(&e, HOST_F_reason, 0x33);
	CU_ASSERT_STRING_EQUAL(host_reason(&e, buf), "REASON_0x33");
	CU_ASSERT_STRING_EQUAL(host_userspace_reason(31, buf), "DIRTY_RING_FULL");
	CU_ASSERT_STRING_EQUAL(host_userspace_reason(39, buf), "MEMORY_FAULT");
	CU_ASSERT_STRING_EQUAL(host_userspace_reason(-4, buf), "signal");
	CU_ASSERT_STRING_EQUAL(host_userspace_reason(-14, buf), "error 14");
	CU_ASSERT_STRING_EQUAL(host_userspace_reason(77, buf), "exit 77");
}

static CU_TestInfo tests[] = {
	{"states_follow_each_other", states_follow_each_other},
	{"the_scheduler_covers_states", the_scheduler_covers_states},
	{"a_loss_makes_intervals_unsure", a_loss_makes_intervals_unsure},
	{"a_full_ring_waits_for_its_reset", a_full_ring_waits_for_its_reset},
	{"a_lock_is_held_by_who_got_it_before", a_lock_is_held_by_who_got_it_before},
	{"a_vcpu_is_what_its_thread_printed", a_vcpu_is_what_its_thread_printed},
	{"the_longest_gap_of_a_thread", the_longest_gap_of_a_thread},
	{"time_that_goes_backwards", time_that_goes_backwards},
	{"nothing_without_times_or_tids", nothing_without_times_or_tids},
	{"more_threads_than_are_kept", more_threads_than_are_kept},
	{"reasons_have_names", reasons_have_names},
	CU_TEST_INFO_NULL};
TEST_MAIN("host_threads", tests)
