// SPDX-License-Identifier: GPL-3.0-or-later
/* Tables that tools print (traces/tables): kvm_stat, perf kvm stat, perf lock contention. The texts
 * follow the tools' own formats; what is expected is read off them by hand. */
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/tables_util.h"

static struct tables t;
static struct tally n;

static void feed(const char *text)
{
	CU_ASSERT_EQUAL_FATAL(tables_init(&t), 0);
	CU_ASSERT_EQUAL(tables_feed(&t, text, strlen(text), &n), 0);
}

static void clean(unsigned rows)
{
	CU_ASSERT_EQUAL(n.rows, rows);
	CU_ASSERT_EQUAL(n.damaged, 0);
	CU_ASSERT_EQUAL(n.unknown, 0);
}

static bool is(struct decimal d, int64_t value, unsigned digits)
{
	return d.there && d.value == value && d.digits == digits;
}

static bool same(const char *a, const char *b)
{
	return !a || !b ? a == b : !strcmp(a, b);
}

/* What kvm_stat of 6.1 prints to the screen: the last line's rate is blank while nothing happens.
 */
static void test_kvm_stat_percent(void)
{
	const struct kvm_stat_table *k;

	feed("kvm statistics - pid 4117 (web-3)\n"
	     "\n"
	     " Event                                         Total %Total CurAvg/s\n"
	     " kvm_exit                                       1500   60.0      300\n"
	     "   kvm_exit(HLT)                                1000   66.7      200\n"
	     "   kvm_exit(EXTERNAL_INTERRUPT)                  500   33.3      100\n"
	     " kvm_entry                                      1000   40.0        0\n"
	     " Total                                          2500                \n");
	clean(5);
	CU_ASSERT_EQUAL(n.headings, 2);
	CU_ASSERT_EQUAL_FATAL(t.n_kvm_stat, 1);
	k = &t.kvm_stat[0];
	CU_ASSERT_EQUAL(k->layout, KVM_STAT_TOTAL_PERCENT_RATE);
	CU_ASSERT_STRING_EQUAL(k->scope, "pid 4117 (web-3)");
	CU_ASSERT_EQUAL_FATAL(k->n_rows, 4);
	CU_ASSERT_PTR_NULL(k->row[0].parent);
	CU_ASSERT_STRING_EQUAL(k->row[2].name, "kvm_exit(EXTERNAL_INTERRUPT)");
	CU_ASSERT(same(k->row[2].parent, "kvm_exit"));
	CU_ASSERT_EQUAL(k->row[2].total, 500);
	CU_ASSERT(is(k->row[2].percent, 333, 1));
	CU_ASSERT(k->row[3].rate.there && k->row[3].rate.value == 0);
	CU_ASSERT(k->total.there && k->total.value == 2500);
	CU_ASSERT(!k->total_rate.there);
	tables_free(&t);
}

/* Quoting took the indentation; one row is wrapped, in one a foreign letter, one lacks its bracket,
 * one is cut before the rate. */
static void test_kvm_stat_damage(void)
{
	const struct kvm_stat_table *k;

	feed("kvm statistics - summary\n"
	     "Event                                         Total %Total CurAvg/s\n"
	     "kvm_exit                                       1500   60.0\n"
	     "300\n"
	     "kvm_exit(HLT)x     x                           1000   66.7      200\n"
	     "kvm_exit(MSR_WRITE                              500   33.3      100\n"
	     "kvm_pio                                         400   16.\n"
	     "that is all\n"
	     "kvm_entry                                      1000   40.0       12\n"
	     "Total                                          2500             312\n");
	CU_ASSERT_EQUAL(n.rows, 5);
	CU_ASSERT_EQUAL(n.rejoined, 1);
	CU_ASSERT_EQUAL(n.damaged, 3);
	CU_ASSERT_EQUAL(n.dropped, 1);
	CU_ASSERT_EQUAL(n.unknown, 1);
	CU_ASSERT_EQUAL_FATAL(t.n_kvm_stat, 1);
	k = &t.kvm_stat[0];
	CU_ASSERT_EQUAL_FATAL(k->n_rows, 4);
	CU_ASSERT_EQUAL(k->row[0].rate.value, 300);
	CU_ASSERT_STRING_EQUAL(k->row[1].name, "kvm_exit(HLT)");
	CU_ASSERT(same(k->row[1].parent, "kvm_exit"));
	CU_ASSERT_EQUAL(k->row[1].total, 1000);
	CU_ASSERT_STRING_EQUAL(k->row[2].name, "kvm_exit(MSR_WRITE)");
	CU_ASSERT(same(k->row[2].parent, "kvm_exit"));
	CU_ASSERT_PTR_NULL(k->row[3].parent);
	CU_ASSERT_EQUAL(k->total_rate.value, 312);
	tables_free(&t);
}

/* The layout without percentages, and `-1` without any heading: kvm_exit(HLT) is a row of its own
 * where it is not indented. */
static void test_kvm_stat_current(void)
{
	feed("kvm statistics\n"
	     "\n"
	     " Event                                        Total Current\n"
	     " kvm_exit                                     12345    1000\n"
	     " kvm_exit(HLT)                                 2345     100\n"
	     " efer_reload                                      0       0\n"
	     "\n"
	     "# kvm_stat -1\n"
	     "exits                                         149443        17\n"
	     "halt_exits                                    125811         0\n"
	     "remote_tlb_flush                               73388         0\n");
	CU_ASSERT_EQUAL(n.rows, 6);
	CU_ASSERT_EQUAL(n.unknown, 1); /* the prompt */
	CU_ASSERT_EQUAL_FATAL(t.n_kvm_stat, 1);
	CU_ASSERT_EQUAL_FATAL(t.kvm_stat[0].n_rows, 6);
	CU_ASSERT_PTR_NULL(t.kvm_stat[0].row[1].parent);
	CU_ASSERT(!t.kvm_stat[0].row[0].percent.there);
	CU_ASSERT(!t.kvm_stat[0].total.there);
	CU_ASSERT_EQUAL(t.kvm_stat[0].row[3].total, 149443);
	tables_free(&t);
	feed("exits                                         149443        17\n"
	     "halt_exits                                    125811         0\n"
	     "between them\n"
	     "exits                                         149460        17\n"
	     "exits                                         149477        17\n"
	     "sheep                                         149460        17\n");
	CU_ASSERT_EQUAL(n.unknown, 2);
	CU_ASSERT_EQUAL_FATAL(t.n_kvm_stat, 3);
	CU_ASSERT_EQUAL(t.kvm_stat[0].n_rows, 2);
	CU_ASSERT_EQUAL(t.kvm_stat[0].layout, KVM_STAT_TOTAL_CURRENT);
	CU_ASSERT_STRING_EQUAL(t.kvm_stat[1].scope, "all");
	tables_free(&t);
}

static void test_perf_kvm(void)
{
	const struct perf_kvm_table *k;

	feed("Analyze events for pid(s) 4117, VCPU 2:\n"
	     "\n"
	     "             VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         "
	     "Avg time \n"
	     "\n"
	     "unknown kvm exit code:196608 on SVM\n"
	     "             UNKNOWN        300    75.00%    20.00%      0.50us     12.25us      "
	     "3.00us ( +-   1.50% )\n"
	     "                 npf        100    25.00%    80.00%      2.00us   4000.00us     "
	     "36.00us ( +-  50.00% )\n"
	     "\n"
	     "Total Samples:400, Total events handled time:4500.00us.\n"
	     "\n"
	     "\n"
	     "Lost events: 12\n");
	CU_ASSERT_EQUAL(n.rows, 4);
	CU_ASSERT_EQUAL(n.messages, 1);
	CU_ASSERT_EQUAL(n.damaged + n.unknown, 0);
	CU_ASSERT_EQUAL_FATAL(t.n_perf_kvm, 1);
	k = &t.perf_kvm[0];
	CU_ASSERT_STRING_EQUAL(k->scope, "pid 4117");
	CU_ASSERT(k->vcpu.there && k->vcpu.value == 2);
	CU_ASSERT_EQUAL_FATAL(k->n_rows, 2);
	CU_ASSERT_STRING_EQUAL(k->row[0].name, "UNKNOWN");
	CU_ASSERT(k->row[0].code.there && k->row[0].code.value == 196608);
	CU_ASSERT_EQUAL(k->row[0].samples.value, 300);
	CU_ASSERT(is(k->row[0].samples_pct, 7500, 2) && is(k->row[0].time_pct, 2000, 2));
	CU_ASSERT(is(k->row[0].min_us, 50, 2) && is(k->row[0].max_us, 1225, 2));
	CU_ASSERT(is(k->row[0].avg_us, 300, 2) && is(k->row[0].dev_pct, 150, 2));
	CU_ASSERT_STRING_EQUAL(k->row[1].name, "npf");
	CU_ASSERT(!k->row[1].code.there);
	CU_ASSERT_EQUAL(k->total_samples.value, 400);
	CU_ASSERT(is(k->total_time_us, 450000, 2));
	CU_ASSERT_EQUAL(k->lost.value, 12);
	CU_ASSERT_PTR_NULL(k->wall_clock);
	tables_free(&t);
}

/* Live, twice; then perf of 3.10, whose rows have an average only; names with blanks. */
static void test_perf_kvm_layouts(void)
{
	feed("\033[H\033[2J\n"
	     "19:22:01.123456\n"
	     "\n"
	     "Analyze events for all VMs, all VCPUs:\n"
	     "\n"
	     "             VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         "
	     "Avg time \n"
	     "\n"
	     "                 HLT          2   100.00%   100.00%      1.00us      3.00us      "
	     "2.00us ( +-  50.00% )\n"
	     "\n"
	     "Total Samples:2, Total events handled time:4.00us.\n"
	     "\n"
	     "19:22:02.123460\n"
	     "\n"
	     "Analyze events for all VMs, all VCPUs:\n"
	     "\n"
	     "             VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         "
	     "Avg time \n"
	     "\n"
	     "\n"
	     "Total Samples:0, Total events handled time:0.00us.\n"
	     "\n"
	     "Analyze events for all VCPUs:\n"
	     "\n"
	     "             VM-EXIT    Samples  Samples%     Time%         Avg time \n"
	     "\n"
	     "       APIC_ACCESS       1000    60.00%     0.50%      4.25us ( +-   0.10% )\n"
	     "\n"
	     "         MMIO Access    Samples  Samples%     Time%    Min Time    Max Time         "
	     "Avg time \n"
	     "     0xfee00380:W        387    84.31%    79.28%      8.10us     19.00us      "
	     "8.29us ( +-   3.32% )\n"
	     "DIAG (0x44) time slice end         5    1.00%    2.00%      8.10us     19.00us      "
	     "8.29us ( +-   3.32% )\n");
	CU_ASSERT_EQUAL(n.damaged, 0);
	CU_ASSERT_EQUAL_FATAL(t.n_perf_kvm, 4);
	CU_ASSERT(same(t.perf_kvm[0].wall_clock, "19:22:01.123456"));
	CU_ASSERT(same(t.perf_kvm[1].wall_clock, "19:22:02.123460"));
	CU_ASSERT_EQUAL(t.perf_kvm[1].n_rows, 0);
	CU_ASSERT(is(t.perf_kvm[1].total_time_us, 0, 2));
	CU_ASSERT_EQUAL_FATAL(t.perf_kvm[2].n_rows, 1);
	CU_ASSERT(!t.perf_kvm[2].row[0].min_us.there && !t.perf_kvm[2].row[0].max_us.there);
	CU_ASSERT(is(t.perf_kvm[2].row[0].avg_us, 425, 2));
	CU_ASSERT_EQUAL_FATAL(t.perf_kvm[3].n_rows, 2);
	CU_ASSERT_STRING_EQUAL(t.perf_kvm[3].row[0].name, "0xfee00380:W");
	CU_ASSERT_STRING_EQUAL(t.perf_kvm[3].row[1].name, "DIAG (0x44) time slice end");
	tables_free(&t);
}

/* Rows that are wrapped, cut, marked, without a bracket: as far as all fields can be read. */
static void test_perf_kvm_damage(void)
{
	const struct perf_kvm_table *k;

	feed("Analyze events for all VMs,\n"
	     "all VCPUs:\n"
	     "             VM-EXIT    Samples  Samples%     Time%    Min Time\n"
	     "Max Time         Avg time\n"
	     "            DABT_LOW       1000    50.00%    40.00%      1.00us\n"
	     "200.00us      2.00us ( +-   1.00% )\n"
	     "                 WFx   *    500    25.00%    40.00%      1.00us      9.00us      "
	     "4.00us ( +-   1.00% )\n"
	     "                 IRQ        250    12.50%    10.00%      1.00us      9.00us      "
	     "2.00us ( +-   1.25%\n"
	     "               HVC64        125     6.25%     5.00%      1.00us      9.00us      "
	     "2.00us ( +-   1.25% )   <-- here\n"
	     "            IABT_LOW        100     5.00%     4.00%      1.00us      9.00us\n"
	     "               SYS64         25     1.25%     1.00%      1.00us      9.00us      "
	     "2.00us ( +-   1.2\n"
	     "\n"
	     "Total Samples:2000, Total events handled\n"
	     "time:5000.00us.\n");
	CU_ASSERT_EQUAL(n.unknown, 0);
	CU_ASSERT_EQUAL(n.rejoined, 2);
	CU_ASSERT_EQUAL(n.damaged, 4);
	CU_ASSERT_EQUAL(n.dropped, 2);
	CU_ASSERT_EQUAL(n.notes, 1);
	CU_ASSERT_EQUAL_FATAL(t.n_perf_kvm, 1);
	k = &t.perf_kvm[0];
	CU_ASSERT_EQUAL_FATAL(k->n_rows, 4);
	CU_ASSERT(is(k->row[0].max_us, 20000, 2));
	CU_ASSERT_STRING_EQUAL(k->row[1].name, "WFx");
	CU_ASSERT_EQUAL(k->row[1].samples.value, 500);
	CU_ASSERT(is(k->row[2].dev_pct, 125, 2));
	CU_ASSERT_STRING_EQUAL(k->row[3].name, "HVC64");
	CU_ASSERT_EQUAL(k->total_samples.value, 2000);
	tables_free(&t);
}

/* A unit of its own in each cell; the stack is -v's. */
static void test_lock_caller(void)
{
	feed("   contended   total wait     max wait     avg wait         type   caller\n"
	     "\n"
	     "           3      1.50 m      60.00 s      30.00 s      rwlock:W   "
	     "kvm_mmu_notifier_invalidate_range_start+0x1af\n"
	     "\t\t\t0xffffffff8149a3c1  queued_write_lock_slowpath+0x51\n"
	     "where does this come from?\n"
	     "\t\t\t0xffffffffc0a1b2c3\n"
	     "kvm_mmu_notifier_invalidate_range_start+0x1af\n"
	     "          12    999 ns       812 ns        83 ns         mutex   "
	     "kvm_vm_ioctl+0x3\n"
	     "           7      2.00 h      1.25 ms     44.65 us       rwsem:R   "
	     "0xffffffffc0a1b2c3\n"
	     "           7      2.00 ms     1.25 ms     44.65 us      spinlock   kvm_vcpu_ki\n"
	     "           7      2.00 ms     1.25 ms\n");
	CU_ASSERT_EQUAL(n.rows, 3);
	CU_ASSERT_EQUAL(n.stack, 2);
	CU_ASSERT_EQUAL(n.dropped, 2);
	CU_ASSERT_EQUAL(n.unknown, 1);
	CU_ASSERT_EQUAL_FATAL(t.n_locks, 3);
	CU_ASSERT_EQUAL(t.lock[0].contended, 3);
	CU_ASSERT_EQUAL(t.lock[0].total_ns, 90000000000);
	CU_ASSERT_EQUAL(t.lock[0].max_ns, 60000000000);
	CU_ASSERT_EQUAL(t.lock[0].avg_ns, 30000000000);
	CU_ASSERT(same(t.lock[0].type, "rwlock:W"));
	CU_ASSERT(same(t.lock[0].name, "kvm_mmu_notifier_invalidate_range_start"));
	CU_ASSERT(same(t.lock[0].offset, "0x1af"));
	CU_ASSERT_PTR_NULL(t.lock[0].address);
	CU_ASSERT_EQUAL(t.lock[0].stack_lines, 2);
	CU_ASSERT_EQUAL(t.lock[1].max_ns, 812);
	CU_ASSERT_EQUAL(t.lock[1].stack_lines, 0);
	CU_ASSERT_EQUAL(t.lock[2].total_ns, 7200000000000);
	CU_ASSERT_EQUAL(t.lock[2].avg_ns, 44650);
	CU_ASSERT(same(t.lock[2].name, "0xffffffffc0a1b2c3"));
	CU_ASSERT_PTR_NULL(t.lock[2].offset);
	tables_free(&t);
}

static void test_lock_address(void)
{
	feed("   contended   total wait     max wait     avg\n"
	     "wait            address   symbol\n"
	     "\n"
	     "         825      8.83 ms    100.00 us     10.70 us   ffff8cda80f42a88   mmu_lock "
	     "(rwlock)\n"
	     "           9    200.00 us     90.00 us     22.22 us   00000000fc42a880   slots_lock "
	     "(mutex\n"
	     "           5    100.00 us     90.00 us     20.00 us   ffff8cda80f42a90    (rwsem)\n"
	     "           4     80.00 us     60.00 us     20.00 us   ffff8cda80f42a98   rcu_state\n"
	     "           4     80.00 us     60.00 us     20.00 us   ffff8cda\n");
	CU_ASSERT_EQUAL(n.rows, 4);
	CU_ASSERT_EQUAL(n.damaged, 2);
	CU_ASSERT_EQUAL(n.dropped, 1);
	CU_ASSERT_EQUAL_FATAL(t.n_locks, 4);
	CU_ASSERT(same(t.lock[0].address, "0xffff8cda80f42a88"));
	CU_ASSERT(same(t.lock[0].name, "mmu_lock"));
	CU_ASSERT(same(t.lock[0].type, "rwlock"));
	CU_ASSERT_PTR_NULL(t.lock[0].offset);
	CU_ASSERT(same(t.lock[1].address, "0xfc42a880"));
	CU_ASSERT(same(t.lock[1].type, "mutex"));
	CU_ASSERT_PTR_NULL(t.lock[2].name);
	CU_ASSERT(same(t.lock[2].type, "rwsem"));
	CU_ASSERT_PTR_NULL(t.lock[3].type);
	tables_free(&t);
}

/* Columns chosen with -F, in their order; a foreign letter; by task. */
static void test_lock_columns(void)
{
	feed("    avg wait   contended         type   caller\n"
	     "    10.00 us  k        6     spinlock   kvm_x+0x10\n"
	     "   contended   total wait     max wait     avg wait          pid   comm\n"
	     "           2     20.00 us     15.00 us     10.00 us         4117   CPU 0/KVM\n");
	CU_ASSERT_EQUAL(n.damaged, 1);
	CU_ASSERT_EQUAL_FATAL(t.n_locks, 2);
	CU_ASSERT_EQUAL(t.lock[0].contended, 6);
	CU_ASSERT_EQUAL(t.lock[0].avg_ns, 10000);
	CU_ASSERT_EQUAL(t.lock[0].total_ns, UINT64_MAX);
	CU_ASSERT(same(t.lock[1].name, "CPU 0/KVM"));
	CU_ASSERT_PTR_NULL(t.lock[1].type);
	tables_free(&t);
}

static CU_TestInfo tests[] = {{"kvm_stat with percentages", test_kvm_stat_percent},
			      {"kvm_stat damaged", test_kvm_stat_damage},
			      {"kvm_stat without percentages", test_kvm_stat_current},
			      {"perf kvm stat", test_perf_kvm},
			      {"perf kvm stat of all ages", test_perf_kvm_layouts},
			      {"perf kvm stat damaged", test_perf_kvm_damage},
			      {"perf lock contention by caller", test_lock_caller},
			      {"perf lock contention by address", test_lock_address},
			      {"perf lock contention, columns", test_lock_columns},
			      CU_TEST_INFO_NULL};
TEST_MAIN("test_tables", tests)
