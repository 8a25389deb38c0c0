// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Gains of MMIO sptes: predicted, implied, agreed on. The rows are made up; what is expected of
 * them is by hand (Student's t with 4 degrees of freedom: 2.776445). What an access is spared is
 * known from the change itself: a guest's four levels are walked by the fault and by the emulator.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/gain.h"
#include "tests/unit/harness.h"

static char message[512], dir[] = "/tmp/kvmsim-gain-XXXXXX", path[64], csv[64];

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(message, sizeof(message), "%s", msg);
}

static const struct kvmsim_errsink sink = {keep, NULL};

#define HEAD                                                                                       \
	"\n[gain]\nscenario = s.ini\nbefore = 3.0\nafter = 3.1\ncpu = intel-nehalem\n"             \
	"[range]\naccesses = 2 3 6\ninsn_cycles = 0.5 1 2\nhz = 500000000 1000000000 "             \
	"2000000000\n[instructions]\nguest_walk_level = 1000\nwalk_sp = 10\n"
#define BLOCK(name, kind, series)                                                                  \
	"[block " name "]\nfile = rows.csv\nseries = " series "\nmetric = m\npolicy = p\n"         \
	"mmu = shadow\nkind = " kind "\nguests = 2\n"

static const char rows[] = "series,metric,policy,value\n"
			   "a,m,p:before,99\na,m,p:before,100\na,m,p:before,101\n"
			   "a,m,p:after,100\na,m,p:after,101\na,m,p:after,102\n"
			   "a,other,p:after,1\na,m,q:after,1\na,m,p:during,1\n"
			   "t,m,p:before,10\nt,m,p:before,11\nt,m,p:before,12\n"
			   "t,m,p:after,8\nt,m,p:after,9\nt,m,p:after,10\n"
			   "u,m,p:before,20\nu,m,p:before,21\nu,m,p:before,22\n"
			   "u,m,p:after,8\nu,m,p:after,9\nu,m,p:after,10\n"
			   "s,m,p:before,100\ns,m,p:before,101\ns,m,p:before,102\n"
			   "s,m,p:after,50\ns,m,p:after,51\ns,m,p:after,52\n"
			   "z,zap time,after,50\n";

static void put(const char *to, const char *text)
{
	FILE *f = fopen(to, "w");

	if (!f) { /* before CUnit begins, too */
		perror(to);
		exit(1);
	}
	fputs(text, f);
	fclose(f);
}

static int begin(void)
{
	char scenario[64];

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/r.ini", dir);
	snprintf(csv, sizeof(csv), "%s/rows.csv", dir);
	snprintf(scenario, sizeof(scenario), "%s/s.ini", dir);
	put(csv, rows);
	put(scenario, "[scenario]\nworkload = tcp_rr\nslots = ram:0:1000\nrounds = 2\n"
		      "interval = 10000000\ntransactions = 1000\n");
	return 0;
}

static int end(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	return system(cmd);
}

static struct gain *predicted(const char *text)
{
	struct gain *g;

	message[0] = 0;
	put(path, text);
	CU_ASSERT_EQUAL_FATAL(gain_open(path, &sink, &g), 0);
	CU_ASSERT_EQUAL_FATAL(gain_load(g, NULL, &sink), 0);
	CU_ASSERT_EQUAL_FATAL(gain_predict(g, &sink), 0);
	CU_ASSERT_STRING_EQUAL(message, "");
	return g;
}

static void spared(void)
{
	struct gain *g = predicted(HEAD BLOCK("a", "rate", "a"));

	/* four levels twice; under nested paging the emulator walks them before and after */
	CU_ASSERT_DOUBLE_EQUAL(g->fewer[0][COUNT_guest_walk_level], 8, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(g->fewer[1][COUNT_guest_walk_level], 0, 0.01);
	/* both look for the slot, and neither does afterwards */
	for (int nested = 0; nested < 2; nested++) {
		CU_ASSERT_DOUBLE_EQUAL(g->fewer[nested][COUNT_memslot_lookup], 1, 0.01);
		CU_ASSERT_DOUBLE_EQUAL(g->fewer[nested][COUNT_emulator_slot], 1, 0.01);
		CU_ASSERT_DOUBLE_EQUAL(g->fewer[nested][COUNT_mmio_exit], 0, 0);
	}
	CU_ASSERT_DOUBLE_EQUAL(g->saved_insns[0], 8000, 10);
	gain_free(g);
}

static void predicts(void)
{
	struct gain *g = predicted(
		HEAD BLOCK("a", "rate", "a") "[predict v]\nblock = a\naccesses = 1 1 1\n");
	const struct gain_block *b = &g->block[0];
	double before = (1 / 99. + 1 / 100. + 1 / 101.) / 3;
	double after = (1 / 100. + 1 / 101. + 1 / 102.) / 3;
	double saved = 2 * 3 * 8e-6; /* two guests, three accesses of 8,000 cycles at 1 GHz */

	CU_ASSERT_EQUAL(b->n_before, 3);
	CU_ASSERT_EQUAL(b->n_after, 3);
	CU_ASSERT_DOUBLE_EQUAL(b->saved.value, before - after, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(b->gain.value, 0.01, 1e-5); /* 100 to 101, by their logarithms */
	CU_ASSERT_DOUBLE_EQUAL(b->predicted.middle, saved / (before - saved), 1e-5);
	/* two accesses of half a cycle at 2 GHz, and the longest time before: 100 +- 2.5 */
	CU_ASSERT_DOUBLE_EQUAL(b->predicted.least, 4 * 2e-6 / (1 / 97.56), 3e-5);
	CU_ASSERT_DOUBLE_EQUAL(b->predicted.most, 12 * 32e-6 * 102.54 / (1 - 12 * 32e-6 * 102.54),
			       3e-4);
	CU_ASSERT_TRUE(b->inside);
	CU_ASSERT_TRUE(g->pass);
	CU_ASSERT_DOUBLE_EQUAL(b->implied.value, (before - after) / (2 * 8e-6), 0.02);
	CU_ASSERT_DOUBLE_EQUAL(g->other[0].gain.middle, 2 * 8e-6 / before, 1e-5);
	gain_free(g);
}

static void implies(void)
{
	struct gain *g = predicted(HEAD BLOCK("t", "time", "t") BLOCK("u", "time", "u") BLOCK(
		"v", "time", "u") "[agree same]\nblocks = u, v\nexpect = yes\n"
				  "[agree other]\nblocks = t, u\nexpect = no\n"
				  "[zap z]\nfile = rows.csv\nseries = z\nmetric = "
				  "zap time\npolicy = after\ncount = walk_sp\nmost = "
				  "1249\n");
	const struct gain_block *t = &g->block[0];
	double unit = 2 * 11 * 8e-6; /* per second of 11, two guests */

	CU_ASSERT_DOUBLE_EQUAL(t->saved.value, 2, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(t->saved.se, sqrt(2 / 3.), 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(t->saved.hi, 2 + 2.776445 * sqrt(2 / 3.), 1e-5);
	CU_ASSERT_DOUBLE_EQUAL(t->implied.value, 2 / unit, 20);
	CU_ASSERT_DOUBLE_EQUAL(t->implied.hi, (2 + 2.776445 * sqrt(2 / 3.)) / unit, 40);
	/* at a quarter of the price the most, and the least, since it is below 0 */
	CU_ASSERT_DOUBLE_EQUAL(t->implied_all.most, 4 * t->implied.hi, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(t->implied_all.least, 4 * t->implied.lo, 1e-6);
	CU_ASSERT_TRUE(g->agree[0].agree);
	CU_ASSERT_DOUBLE_EQUAL(g->agree[0].difference, 0, 0);
	/* 12 of 21 seconds are another number per second than 2 of 11 */
	CU_ASSERT_FALSE(g->agree[1].agree);
	CU_ASSERT_DOUBLE_EQUAL(g->agree[1].difference, 12 / (2 * 21 * 8e-6) - 2 / unit, 200);
	/* 50 us of 10 instructions: 1,250 pages of 20 cycles at 0.5 GHz, one more than there are */
	CU_ASSERT_DOUBLE_EQUAL(g->zap[0].pages.least, 1250, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(g->zap[0].pages.middle, 5000, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(g->zap[0].pages.most, 20000, 1e-6);
	CU_ASSERT_FALSE(g->pass);
	gain_free(g);
}

static void judges(void)
{
	static const char *const miss[] = {"", "miss = because\n"};

	/* half as fast as before */
	for (int i = 0; i < 2; i++) {
		char text[2048];
		struct gain *g;

		snprintf(text, sizeof(text), "%s%s", HEAD BLOCK("s", "rate", "s"), miss[i]);
		g = predicted(text);
		CU_ASSERT_FALSE(g->block[0].inside);
		CU_ASSERT_EQUAL(g->pass, i == 1);
		gain_free(g);
	}
	struct gain *g = predicted(HEAD BLOCK("u", "time", "u") BLOCK(
		"t", "time", "t") "[agree no]\nblocks = u, t\nexpect = yes\n");

	CU_ASSERT_FALSE(g->pass);
	gain_free(g);
}

static void refuse(const char *text, const char *why)
{
	struct gain *g = NULL;
	int err;

	put(path, text);
	message[0] = 0;
	err = gain_open(path, &sink, &g);
	err = err ? err : gain_load(g, NULL, &sink);
	CU_ASSERT_EQUAL(err, KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, why));
	if (!strstr(message, why))
		printf("said '%s', not '%s'\n", message, why);
	gain_free(g);
}

static void refuses(void)
{
	refuse(HEAD, "[gain], [range] and a [block] are needed, whole");
	refuse(HEAD "[block b]\nfile = x\n", "[block b] is not whole");
	refuse(HEAD BLOCK("a", "speed", "a"), "r.ini:20: kind is rate or time");
	refuse(HEAD BLOCK("a", "rate", "a") "kind = time\n", "was given already");
	refuse("\n[gain]\ncolour = red\n", "r.ini:3: unknown key 'colour' in [gain]");
	refuse("\n[gain]\n[walls]\ncolour = red\n", "unknown section [walls]");
	refuse("\n[range]\nhz = 1 2\n", "hz is three numbers: least, middle, most");
	refuse("\n[range]\nhz = 1 3 2\n", "hz is three numbers: least, middle, most");
	refuse("\n[instructions]\nwalks = 1\n", "there is no count walks");
	refuse(HEAD BLOCK("a", "rate", "a") "[agree x]\nblocks = a, b\n",
	       "[agree x] is about blocks that there are not");
	refuse(HEAD BLOCK("a", "rate", "nothing"), "0 runs before and 0 after");
}

static void is_one(void)
{
	put(path, HEAD);
	CU_ASSERT_TRUE(gain_is(path));
	put(path, "[evidence]\n; [gain]\n");
	CU_ASSERT_FALSE(gain_is(path));
	CU_ASSERT_FALSE(gain_is("/nowhere/r.ini"));
}

static CU_TestInfo tests[] = {{"spared", spared}, {"predicts", predicts}, {"implies", implies},
			      {"judges", judges}, {"refuses", refuses},	  {"is_one", is_one},
			      CU_TEST_INFO_NULL};

int main(void)
{
	int failed = begin() || test_main("gain", tests);

	return end() || failed;
}
