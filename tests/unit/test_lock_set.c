// SPDX-License-Identifier: GPL-3.0-or-later
/* The locks of the recorded guest: what is drawn has the recording's own means, quantiles and
 * rates, which are read and added up here once more. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/lock_file.h"
#include "tests/unit/harness.h"
#include "workloads/quantiles.h"

#define RECORDING "traces/recorded/dbench-locks.csv"
#define GRID	  20000

/* ---- the recording, read by the test's own means ---- */

#define MAX_ROWS 512
#define FIELDS	 45

static char *text;
static char *field[MAX_ROWS][FIELDS];
static size_t n_rows; /* with the header */

static void read_recording(void)
{
	FILE *f = fopen(RECORDING, "rb");
	char *line;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	if (!text)
		text = malloc(1 << 20);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	text[fread(text, 1, (1 << 20) - 1, f)] = '\0';
	fclose(f);
	n_rows = 0;
	for (char *rest = text; (line = strsep(&rest, "\n")) && *line; n_rows++)
		for (size_t i = 0; i < FIELDS; i++)
			field[n_rows][i] = strsep(&line, ",");
}

static size_t column(const char *name)
{
	size_t i = 0;

	while (i < FIELDS && strcmp(field[0][i], name) != 0)
		i++;
	CU_ASSERT_FATAL(i < FIELDS);
	return i;
}

static double number(size_t row, const char *name)
{
	return atof(field[row][column(name)]);
}

static bool is_lock(size_t row)
{
	return !strncmp(field[row][column("row")], "lock", 4);
}

/* ---- distributions ---- */

static void check_distribution(size_t row, const char *prefix)
{
	static const char *const at[] = {"min", "p10", "p25",  "p50", "p75",
					 "p90", "p99", "p999", "max"};
	static const double part[] = {0, .1, .25, .5, .75, .9, .99, .999, 1};
	static uint64_t value[GRID];
	uint64_t knot[QUANTILES_KNOTS];
	struct quantiles q;
	char name[32];
	double mean, sum = 0, range;

	snprintf(name, sizeof(name), "%s_mean", prefix);
	if (!*field[row][column(name)])
		return;
	mean = number(row, name);
	for (size_t i = 0; i < QUANTILES_KNOTS; i++) {
		snprintf(name, sizeof(name), "%s_%s", prefix, at[i]);
		knot[i] = (uint64_t)number(row, name);
	}
	CU_ASSERT_FATAL(quantiles_init(&q, knot, (uint64_t)llround(mean * 10)));
	for (size_t i = 0; i < GRID; i++) {
		value[i] = quantiles_value(&q, (uint64_t)(((double)i + .5) / GRID * 0x1p64));
		sum += (double)value[i];
		CU_ASSERT_FATAL(!i || value[i] >= value[i - 1]);
	}
	/* The last thousandth has 20 points of the grid; a rounding of a unit, and the recorded
	 * mean's own. */
	range = (double)(knot[8] - knot[7]) / GRID + (double)(knot[7] - knot[6]) / GRID;
	CU_ASSERT_DOUBLE_EQUAL(sum / GRID, mean, 0.6 + range + mean * 1e-3);
	for (size_t k = 0; k < QUANTILES_KNOTS; k++) {
		size_t below = 0, up_to = 0;

		for (size_t i = 0; i < GRID; i++) {
			below += value[i] < knot[k];
			up_to += value[i] <= knot[k];
		}
		CU_ASSERT((double)below <= part[k] * GRID + 1);
		CU_ASSERT((double)up_to >= part[k] * GRID - 1);
	}
}

static void means_and_quantiles(void)
{
	size_t n = 0;

	read_recording();
	for (size_t i = 1; i < n_rows; i++) {
		if (!is_lock(i))
			continue;
		check_distribution(i, "hold");
		check_distribution(i, "gap");
		check_distribution(i, "inner_gap");
		n++;
	}
	CU_ASSERT_EQUAL(n, 169);
}

static void extreme_means(void)
{
	const uint64_t knot[QUANTILES_KNOTS] = {0, 100, 200, 300, 400, 500, 600, 700, 800};
	const double part[] = {.1, .15, .25, .25, .15, .09, .009, .001};
	double low = 0, high = 0;
	struct quantiles q;

	for (size_t i = 0; i < 8; i++) {
		low += part[i] * (double)knot[i];
		high += part[i] * (double)knot[i + 1];
	}
	CU_ASSERT_TRUE(quantiles_init(&q, knot, (uint64_t)llround(low * 10)));
	CU_ASSERT_EQUAL(quantiles_value(&q, UINT64_MAX / 2), 200);
	CU_ASSERT_TRUE(quantiles_init(&q, knot, (uint64_t)llround(high * 10)));
	CU_ASSERT_EQUAL(quantiles_value(&q, 0), 100);
	CU_ASSERT_EQUAL(quantiles_value(&q, UINT64_MAX), 800);
	CU_ASSERT_FALSE(quantiles_init(&q, knot, (uint64_t)llround(low * 10) - 3));
	CU_ASSERT_FALSE(quantiles_init(&q, knot, (uint64_t)llround(high * 10) + 3));
	CU_ASSERT_FALSE(
		quantiles_init(&q, (const uint64_t[]){0, 10, 20, 30, 25, 50, 60, 70, 80}, 300));
}

/* ---- the set ---- */

static void keep_message(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)err;
	snprintf(ctx, 512, "%s", msg);
}

#define DRAWS 4000000

static void rates_as_recorded(void)
{
	const struct lock_set_class *c;
	double work = 0, hold = 0, nested_hold = 0, *of, inner = 0, recorded, taken = 0;
	struct lock_set set;
	struct rng r;
	uint64_t irq = 0, tried = 0, owed = 0;

	read_recording();
	CU_ASSERT_EQUAL_FATAL(lock_file_read(NULL, NULL, &set), 0);
	rng_init(&r, 1, 0, "test");
	of = calloc(set.n_classes, sizeof(*of));
	for (size_t i = 0; i < DRAWS; i++) {
		struct lock_draw d = lock_set_outer(&set, &r);

		work += (double)(d.gap + d.hold);
		hold += (double)d.hold;
		of[d.class]++;
		irq += d.irq;
		tried += d.tried;
		owed += set.inner_per_outer;
		for (; owed >> 32; owed -= (uint64_t)1 << 32) {
			d = lock_set_inner(&set, &r);
			nested_hold += (double)d.hold;
			inner++;
			of[d.class]++;
			irq += d.irq;
			tried += d.tried;
		}
	}
	for (size_t i = 1; i < n_rows; i++)
		if (is_lock(i))
			taken += number(i, "taken");
	CU_ASSERT_EQUAL(number(1, "taken"), taken);
	recorded = taken / 1e6;
	/* Row 1 is that of all. */
	CU_ASSERT_DOUBLE_EQUAL((DRAWS + inner) / work * 1e6, number(1, "per_million"),
			       0.02 * number(1, "per_million"));
	CU_ASSERT_DOUBLE_EQUAL(inner / (DRAWS + inner), number(1, "nested") / taken, 1e-4);
	CU_ASSERT_DOUBLE_EQUAL((hold + nested_hold) / (DRAWS + inner), number(1, "hold_mean"), 2.6);
	CU_ASSERT_DOUBLE_EQUAL((double)irq / (DRAWS + inner), number(1, "irq") / taken, 2e-3);
	CU_ASSERT_DOUBLE_EQUAL((double)tried / (DRAWS + inner), number(1, "tried") / taken, 2e-3);
	CU_ASSERT(recorded > 3);
	for (size_t i = 0; i < set.n_classes; i++) {
		double share = (double)set.classes[i].taken / taken;

		c = &set.classes[i];
		CU_ASSERT_DOUBLE_EQUAL(of[i] / (DRAWS + inner), share,
				       5 * sqrt(share / DRAWS) + 1e-6);
		/* Single locks that all four vCPUs took, and those that one client did. */
		if (!strcmp(c->caller, "folio_lruvec_lock_irqsave")) {
			CU_ASSERT_EQUAL(c->locks, 1);
			CU_ASSERT_EQUAL(c->taken, 20624);
		}
		if (!strcmp(c->caller, "alloc_fd"))
			CU_ASSERT_EQUAL(c->locks, 0);
		if (!strcmp(c->symbol, "rcu_state")) {
			CU_ASSERT_EQUAL(c->locks, 1);
		}
		/* 22% of 10,419 moved between 8 locks: 3,112 of shared ones, if each other time
		 * that the same of four takes it again is chance; one such row is a thousandth. */
		if (!strcmp(c->caller, "lock_timer_base") && c->locks) {
			CU_ASSERT_EQUAL(c->taken, 2334 * 4 / 3);
			CU_ASSERT_EQUAL(c->locks, 1);
		}
	}
	free(of);
	lock_set_free(&set);
}

/* ---- files ---- */

static const char header[] =
	"phase,row,symbol,caller,objects,vcpus,taken,per_million,moved,nested,irq,tried,hold_mean,"
	"hold_min,hold_p10,hold_p25,hold_p50,hold_p75,hold_p90,hold_p99,hold_p999,hold_max,gap_"
	"mean,"
	"gap_min,gap_p10,gap_p25,gap_p50,gap_p75,gap_p90,gap_p99,gap_p999,gap_max,inner_gap_mean,"
	"inner_gap_min,inner_gap_p10,inner_gap_p25,inner_gap_p50,inner_gap_p75,inner_gap_p90,"
	"inner_gap_p99,inner_gap_p999,inner_gap_max\n";
#define SIX	"6.0,6,6,6,6,6,6,6,6,6"
#define NO_TIME ",,,,,,,,,"
#define ALL	"1,all,,,2,2,100,10,60,0,0,0," SIX "," SIX "," NO_TIME "\n"
#define LOCK	"1,lock,,f,1,2,100,10,60,0,0,0," SIX "," SIX "," NO_TIME "\n"

static int read_file(const char *rows, char message[512], struct lock_set *set)
{
	char path[] = "/tmp/kvmsim-test-locks-XXXXXX";
	const struct kvmsim_errsink sink = {keep_message, message};
	int fd = mkstemp(path), err;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");

	*message = '\0';
	if (!f || fputs(header, f) < 0 || fputs(rows, f) < 0 || fclose(f))
		return 1;
	err = lock_file_read(path, &sink, set);
	unlink(path);
	if (!strncmp(message, path, strlen(path)))
		memmove(message, message + strlen(path), strlen(message + strlen(path)) + 1);
	return err;
}

static void refused(const char *rows, const char *message)
{
	char said[512];
	struct lock_set set;

	CU_ASSERT_EQUAL(read_file(rows, said, &set), KVMSIM_EPARSE);
	CU_ASSERT_STRING_EQUAL(said, message);
	lock_set_free(&set);
}

static void files(void)
{
	char said[512];
	struct lock_set set;

	CU_ASSERT_EQUAL(read_file(ALL LOCK "1,timer,,t,1,2,9,1,0,0,0,0," SIX "," SIX "," NO_TIME
					   "\n",
				  said, &set),
			0);
	CU_ASSERT_EQUAL(set.n_rows, 1);
	CU_ASSERT_EQUAL(set.work, 10000000);
	lock_set_free(&set);
	/* The last phase counts. */
	CU_ASSERT_EQUAL(read_file(ALL LOCK LOCK "2,all,,,1,2,40,4,0,0,0,0," SIX "," SIX "," NO_TIME
						"\n2,lock,,g,1,1,40,4,0,0,0,0," SIX "," SIX
						"," NO_TIME "\n",
				  said, &set),
			0);
	CU_ASSERT_EQUAL(set.n_rows, 1);
	CU_ASSERT_EQUAL(set.taken, 40);
	CU_ASSERT_EQUAL(set.classes[0].locks, 0);
	lock_set_free(&set);
	refused(ALL,
		": no row 'all' of two vCPUs or more, or no rows 'lock' and 'locks' with a lock "
		"that was taken while no other was");
	refused(LOCK,
		": no row 'all' of two vCPUs or more, or no rows 'lock' and 'locks' with a lock "
		"that was taken while no other was");
	refused(ALL "1,lock,,f,1,2,100,10,101,0,0,0," SIX "," SIX "," NO_TIME "\n",
		":3: more moved, nested, irq or tried than taken");
	refused(ALL "1,lock,,f,1,2,100,10,0,0,0,0,6.2,6,6,6,6,6,6,6,6,6," SIX "," NO_TIME "\n",
		":3: no distribution with the quantiles from hold_min on has the mean 6.2");
}

int main(void)
{
	CU_TestInfo tests[] = {{"means_and_quantiles", means_and_quantiles},
			       {"extreme_means", extreme_means},
			       {"rates_as_recorded", rates_as_recorded},
			       {"files", files},
			       CU_TEST_INFO_NULL};

	return test_main("test_lock_set", tests);
}
