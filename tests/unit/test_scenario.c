// SPDX-License-Identifier: GPL-3.0-or-later
/* Scenario files and the streams of their workloads. Expected pages are written out by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "workloads/scenario.h"

static char message[1024];

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(message, sizeof(message), "%s", msg);
}

static const struct kvmsim_errsink sink = {keep, NULL};

static int parse(const char *text, struct scenario **out)
{
	message[0] = '\0';
	return scenario_parse(text, strlen(text), "s.ini", &sink, out);
}

static void refuse(const char *text, int err, const char *expected)
{
	struct scenario *s;

	CU_ASSERT_EQUAL(parse(text, &s), err);
	CU_ASSERT_PTR_NULL(s);
	CU_ASSERT_STRING_EQUAL(message, expected);
}

#define HEAD "[scenario]\nworkload = pagelist\nslots = ram:16:100\n"

static void reads_keys(void)
{
	struct scenario *s;

	CU_ASSERT_EQUAL_FATAL(parse("; words\n[scenario]\nrounds = 7\npages_max = 90\nhot=0\n"
				    "workload = migration\nvcpus = 3\npreset = 2.6.36\n"
				    "target = b\nlog = b\ninterval = 1000\n"
				    "slots = a:0:100 b:0x100:200\n",
				    &s),
			      0);
	CU_ASSERT_STRING_EQUAL(s->workload->name, "migration");
	CU_ASSERT_STRING_EQUAL(s->preset, "2.6.36");
	CU_ASSERT_EQUAL(s->n_vcpus, 3);
	CU_ASSERT_EQUAL(s->n_rounds, 7);
	CU_ASSERT_EQUAL(s->interval, 1000);
	CU_ASSERT_EQUAL(s->n_slots, 2);
	CU_ASSERT_EQUAL(s->target, 1);
	CU_ASSERT_EQUAL(s->log, 1);
	CU_ASSERT_STRING_EQUAL(s->slots[1].name, "b");
	CU_ASSERT_EQUAL(s->slots[1].base_gfn, 256);
	CU_ASSERT_EQUAL(s->slots[1].npages, 200);
	CU_ASSERT_EQUAL(s->param[0], 52); /* pages_min's default */
	CU_ASSERT_EQUAL(s->param[1], 90);
	CU_ASSERT_EQUAL(s->param[2], 0);
	scenario_free(s);
}

static void refuses(void)
{
	refuse("", KVMSIM_EPARSE, "s.ini: no 'workload' in a section [scenario]");
	refuse("nonsense\n", KVMSIM_EPARSE, "s.ini:1: expected [section] or KEY = VALUE");
	refuse("[scenario]\nworkload = games\n", KVMSIM_EPARSE,
	       "s.ini:2: no workload 'games'; there are framebuffer, migration, "
	       "pagelist, tcp_rr, writer");
	refuse("[scenario]\nworkload = pagelist\n", KVMSIM_EPARSE, "s.ini: no 'slots'");
	refuse(HEAD "colour = 3\n", KVMSIM_EPARSE,
	       "s.ini:4: unknown key 'colour' of workload pagelist");
	refuse(HEAD "vcpus = 0\n", KVMSIM_EPARSE,
	       "s.ini:4: vcpus = 0: expected a whole number from 1 to 512");
	refuse(HEAD "interval = 12x\n", KVMSIM_EPARSE,
	       "s.ini:4: interval = 12x: expected a whole number from 1 to 4294967295");
	refuse(HEAD "interval = -1\n", KVMSIM_EPARSE,
	       "s.ini:4: interval = -1: expected a whole number from 1 to 4294967295");
	refuse(HEAD "stores = 99999999999999999999\n", KVMSIM_EPARSE,
	       "s.ini:4: stores = 99999999999999999999: expected a whole number from 1 to 4096");
	refuse(HEAD "vcpus = 1\nvcpus = 1\n", KVMSIM_EPARSE, "s.ini:5: key 'vcpus' again");
	refuse(HEAD "log = rom\n", KVMSIM_EPARSE, "s.ini:4: log = rom: no slot of that name");
	refuse(HEAD "[other]\nx = 1\n", KVMSIM_EPARSE, "s.ini:5: unknown section [other]");
	refuse(HEAD, KVMSIM_EPARSE, "s.ini: no rounds");
	refuse(HEAD "[rounds]\nround = 1 x\n", KVMSIM_EPARSE,
	       "s.ini:5: expected pages as in \"1 5 7-9\", found 'x'");
	refuse(HEAD "[rounds]\nround = 9-7\n", KVMSIM_EPARSE,
	       "s.ini:5: expected pages as in \"1 5 7-9\", found '9-7'");
	refuse(HEAD "[rounds]\nround = 1\nround = 100\n", KVMSIM_EPARSE,
	       "s.ini:6: round 2 writes page 100, slot ram has 100");
	refuse(HEAD "[rounds]\nround = 1\n 2\n 3 4-100\nround = 5\n", KVMSIM_EPARSE,
	       "s.ini:7: round 1 writes page 100, slot ram has 100");
	refuse(HEAD "file = not-there.txt\n", KVMSIM_EIO,
	       "not-there.txt: No such file or directory");
	refuse("[scenario]\nworkload = pagelist\nslots = a:0:10 b:9:10\n", KVMSIM_EPARSE,
	       "s.ini:3: slot 'b' has the name or the pages of slot 'a'");
	refuse("[scenario]\nworkload = pagelist\nslots = a:0\n", KVMSIM_EPARSE,
	       "s.ini:3: slot 'a:0': expected NAME:BASE_GFN:PAGES, and perhaps :4k, :2m or :1g, "
	       "its host's pages");
	refuse("[scenario]\nworkload = pagelist\nslots = a:0:9:3m\n", KVMSIM_EPARSE,
	       "s.ini:3: slot 'a:0:9:3m': expected NAME:BASE_GFN:PAGES, and perhaps :4k, :2m or "
	       ":1g, its host's pages");
	refuse("[scenario]\nworkload = pagelist\nslots = a:0:1099511627776\n", KVMSIM_EPARSE,
	       "s.ini:3: slot 'a:0:1099511627776': expected a name of at most 15 characters, a "
	       "base "
	       "gfn from 0 to 1099511627775 and 1 to 2147483647 pages");
	refuse("[scenario]\nworkload = framebuffer\nrounds = 1\nslots = a:0:575\n", KVMSIM_EPARSE,
	       "s.ini: the screen needs 576 pages, slot a has 575");
	refuse("[scenario]\nworkload = framebuffer\nrounds = 1\nslots = a:0:576\nrects = 100000\n",
	       KVMSIM_EPARSE,
	       "s.ini: a round may make 20000000 accesses; at most 16777216 are possible");
	refuse("[scenario]\nworkload = migration\nrounds = 1\nslots = a:0:1000000\n"
	       "pages_max = 600000\nloads = 40\n",
	       KVMSIM_EPARSE,
	       "s.ini: a round may make 24600016 accesses; at most 16777216 are possible");
	refuse("[scenario]\nworkload = pagelist\nslots = a:0:100000\nstores = 4000\n[rounds]\n"
	       "round = 0-9999\n",
	       KVMSIM_EPARSE,
	       "s.ini: a round may make 40000000 accesses; at most 16777216 are possible");
	refuse("[scenario]\nworkload = migration\nrounds = 1\nslots = a:0:4158\n", KVMSIM_EPARSE,
	       "s.ini: pages_max + hot is 4159, slot a has 4158 pages");
}

static void refuses_long_and_binary_lines(void)
{
	char text[1200];
	struct scenario *s;

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	CU_ASSERT_EQUAL(parse(text, &s), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "s.ini:1: line of more than"));
	memcpy(text, HEAD, sizeof(HEAD)); /* with its NUL */
	CU_ASSERT_EQUAL(scenario_parse(text, 80, "s.ini", &sink, &s), KVMSIM_EPARSE);
	CU_ASSERT_STRING_EQUAL(message, "s.ini:4: not a text file");
}

/* Every store of a stream as "W<gfn> ", beginnings of epochs as "|<n> ", marks as "M<n> ". */
static void list(struct op_source *src, char *to, size_t room)
{
	static const char words[OP_LAST + 1] = {
		[OP_WRITE] = 'W', [OP_EPOCH] = '|', [OP_MARK] = 'M'};
	const struct guest_op *ops;
	size_t used = 0;
	long n;

	to[0] = '\0';
	while ((n = src->next(src->ctx, &ops)) > 0) {
		for (long i = 0; i < n && used < room; i++) {
			unsigned shift = ops[i].kind == OP_WRITE ? 12 : 0;

			if (ops[i].kind != OP_NONE)
				used += (size_t)snprintf(to + used, room - used, "%c%llu ",
							 words[ops[i].kind],
							 (unsigned long long)(ops[i].arg >> shift));
		}
	}
	CU_ASSERT_EQUAL(n, 0);
}

static void pagelist_in_order(void)
{
	struct scenario *s;
	struct op_source src;
	char text[256];

	CU_ASSERT_EQUAL_FATAL(
		parse(HEAD "[rounds]\nround = 5 1\nround = 7-9 0x10\n  2\n\nround = 3\n", &s), 0);
	CU_ASSERT_EQUAL(s->n_rounds, 3);
	CU_ASSERT_EQUAL_FATAL(scenario_source(s, 0, 1, 0, &src), 0);
	list(&src, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "|0 W21 W17 |1 W23 W24 W25 W32 W18 |2 W19 M0 ");
	CU_ASSERT_EQUAL(src.rewind(src.ctx), 0);
	list(&src, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "|0 W21 W17 |1 W23 W24 W25 W32 W18 |2 W19 M0 ");
	scenario_source_free(&src);
	CU_ASSERT_EQUAL(scenario_source(s, 1, 1, 0, &src), KVMSIM_EINVAL);
	scenario_free(s);
}

static void pagelist_deals_to_vcpus(void)
{
	struct scenario *s;
	char text[256];
	static const char *const expected[] = {"|0 W16 W18 |1 W19 M0 ", "|0 W17 |1 M0 "};

	CU_ASSERT_EQUAL_FATAL(parse(HEAD "vcpus=2\n[rounds]\nround = 0-2\nround = 3\n", &s), 0);
	for (uint32_t v = 0; v < 2; v++) {
		struct op_source src;

		CU_ASSERT_EQUAL_FATAL(scenario_source(s, v, 1, 0, &src), 0);
		list(&src, text, sizeof(text));
		CU_ASSERT_STRING_EQUAL(text, expected[v]);
		scenario_source_free(&src);
	}
	scenario_free(s);
}

static void rounds_from_a_file(void)
{
	char folder[] = "/tmp/kvmsim-test-XXXXXX", path[64], text[64];
	struct scenario *s = NULL;
	struct op_source src;
	FILE *f;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/pages.txt", folder);
	f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("# words\n1 2 # more\n\n3-4\n", f);
	fclose(f);
	snprintf(path, sizeof(path), "%s/s.ini", folder);
	f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(HEAD "file = pages.txt\n", f);
	fclose(f);
	CU_ASSERT_EQUAL(scenario_open(path, &sink, &s), 0);
	if (s) {
		CU_ASSERT_EQUAL(s->n_rounds, 3);
		CU_ASSERT_EQUAL_FATAL(scenario_source(s, 0, 1, 0, &src), 0);
		list(&src, text, sizeof(text));
		CU_ASSERT_STRING_EQUAL(text, "|0 W17 W18 |1 |2 W19 W20 M0 ");
		scenario_source_free(&src);
		scenario_free(s);
	}
	f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("[scenario]\nworkload = pagelist\nslots = ram:0:4\nfile = pages.txt\n", f);
	fclose(f);
	CU_ASSERT_EQUAL(scenario_open(path, &sink, &s), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(message, "/pages.txt:4: round 3 writes page 4, slot ram has 4"));
	remove(path);
	snprintf(path, sizeof(path), "%s/pages.txt", folder);
	remove(path);
	remove(folder);
}

struct seen {
	uint64_t writes, reads, insns, epochs, hash, low, high;
	unsigned char dirty[4096]; /* writes of one round, by page */
	uint64_t most_dirty, least_dirty;
};

static void look(const char *path, uint32_t vcpu, uint64_t seed, uint32_t replicate,
		 struct seen *seen)
{
	struct scenario *s;
	struct op_source src;
	const struct guest_op *ops;

	memset(seen, 0, sizeof(*seen));
	seen->low = seen->least_dirty = UINT64_MAX;
	CU_ASSERT_EQUAL_FATAL(scenario_open(path, &sink, &s), 0);
	CU_ASSERT_EQUAL_FATAL(scenario_source(s, vcpu, seed, replicate, &src), 0);
	for (long n; (n = src.next(src.ctx, &ops)) > 0;) {
		uint64_t dirty = 0;

		for (long i = 0; i < n; i++) {
			uint64_t page = (ops[i].arg >> 12) - s->slots[s->target].base_gfn;

			seen->insns += ops[i].gap;
			seen->epochs += ops[i].kind == OP_EPOCH;
			seen->reads += ops[i].kind == OP_READ;
			seen->hash = seen->hash * 31 + ops[i].arg;
			if (ops[i].kind != OP_WRITE)
				continue;
			seen->writes++;
			seen->low = page < seen->low ? page : seen->low;
			seen->high = page > seen->high ? page : seen->high;
			dirty += page < 4096 && !seen->dirty[page]++;
		}
		memset(seen->dirty, 0, sizeof(seen->dirty));
		seen->most_dirty = dirty > seen->most_dirty ? dirty : seen->most_dirty;
		seen->least_dirty = dirty < seen->least_dirty ? dirty : seen->least_dirty;
	}
	CU_ASSERT_EQUAL(seen->insns, s->n_rounds * s->interval);
	CU_ASSERT_EQUAL(seen->epochs, s->n_rounds);
	scenario_source_free(&src);
	scenario_free(s);
}

/* 1024 x 768 x 3 bytes are pages 0 to 575; one rectangle of up to 100 rows makes up to 75. */
static void framebuffer_stays_on_the_screen(void)
{
	struct seen a, b;

	look("workloads/framebuffer.ini", 0, 1, 0, &a);
	CU_ASSERT_TRUE(a.high <= 575);
	CU_ASSERT_TRUE(a.most_dirty > 200 && a.most_dirty <= 576);
	CU_ASSERT_TRUE(a.least_dirty > 0);
	look("workloads/framebuffer.ini", 0, 1, 0, &b);
	CU_ASSERT_EQUAL(a.hash, b.hash);
	look("workloads/framebuffer.ini", 0, 1, 1, &b);
	CU_ASSERT_NOT_EQUAL(a.hash, b.hash);
	look("workloads/framebuffer.ini", 0, 2, 0, &b);
	CU_ASSERT_NOT_EQUAL(a.hash, b.hash);
}

/* 3 rounds of 2 hot pages and 5 others, shared by 2 vCPUs; two loads for each of the others. */
static void migration_loads_and_shares(void)
{
	struct scenario *s;
	size_t writes = 0, reads = 0;

	CU_ASSERT_EQUAL_FATAL(
		parse("[scenario]\nworkload = migration\nslots = a:0:100\nvcpus = 2\n"
		      "rounds = 3\npages_min = 5\npages_max = 5\nhot = 2\nloads = 2\n",
		      &s),
		0);
	for (uint32_t v = 0; v < 2; v++) {
		const struct guest_op *ops;
		struct op_source src;

		CU_ASSERT_EQUAL_FATAL(scenario_source(s, v, 1, 0, &src), 0);
		for (long n; (n = src.next(src.ctx, &ops)) > 0;) {
			for (long i = 0; i < n; i++) {
				writes += ops[i].kind == OP_WRITE;
				reads += ops[i].kind == OP_READ;
			}
		}
		scenario_source_free(&src);
	}
	CU_ASSERT_EQUAL(writes, 3 * (2 + 5));
	CU_ASSERT_EQUAL(reads, 3 * 2 * 5);
	scenario_free(s);
}

static void migration_scatters(void)
{
	struct seen a;

	look("workloads/migration.ini", 0, 1, 0, &a);
	/* 40 rounds of 16 hot pages and 52 to 4,143 others */
	CU_ASSERT_TRUE(a.writes >= 40 * (16 + 52) && a.writes <= 40 * (16 + 4143));
	CU_ASSERT_EQUAL(a.reads, 0);
	CU_ASSERT_TRUE(a.low < 2619 && a.high > 261888 - 2619 && a.high < 261888);
}

static CU_TestInfo tests[] = {{"reads_keys", reads_keys},
			      {"refuses", refuses},
			      {"refuses_long_and_binary_lines", refuses_long_and_binary_lines},
			      {"pagelist_in_order", pagelist_in_order},
			      {"pagelist_deals_to_vcpus", pagelist_deals_to_vcpus},
			      {"rounds_from_a_file", rounds_from_a_file},
			      {"framebuffer_stays_on_the_screen", framebuffer_stays_on_the_screen},
			      {"migration_loads_and_shares", migration_loads_and_shares},
			      {"migration_scatters", migration_scatters},
			      CU_TEST_INFO_NULL};
TEST_MAIN("scenario", tests)
