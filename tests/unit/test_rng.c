// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/sim/rng.h"

#include <string.h>

#include "tests/unit/harness.h"

/* xoshiro256** from the state 1, 2, 3, 4: the vector that the reference implementation gives, also
 * printed in the tests of Rust's rand_xoshiro. */
static void known_answers(void)
{
	static const uint64_t published[] = {11520u,
					     0u,
					     1509978240u,
					     1215971899390074240u,
					     1216172134540287360u,
					     607988272756665600u,
					     16172922978634559625u,
					     8476171486693032832u,
					     10595114339597558777u,
					     2904607092377533576u};
	struct rng r = {{1, 2, 3, 4}};

	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++)
		CU_ASSERT_EQUAL(rng_u64(&r), published[i]);
}

/* Seeds through splitmix64 and FNV-1a; the numbers come from a reimplementation in Python. */
static void streams_by_name(void)
{
	static const struct {
		uint64_t seed;
		uint32_t replicate;
		const char *name;
		uint64_t first[3];
	} streams[] = {
		{1, 0, "guest", {0xe76dd0a3cf58b07bu, 0x194d529b194df6f6u, 0x7a02d40672dbcc27u}},
		{1, 1, "guest", {0xe7d80c6fa574f27cu, 0xb8db23a289adce63u, 0xa51f3683b25406c4u}},
		{1, 0, "phase", {0x586f3011ade704afu, 0x9e531730cf1a2558u, 0x33a1a7a12c71382fu}},
		{0, 0, "", {0xd4e9384e6f5a37c4u, 0x98f31a73738390ffu, 0x4853b0223447cbcfu}},
	};

	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		struct rng r;

		rng_init(&r, streams[i].seed, streams[i].replicate, streams[i].name);
		for (int k = 0; k < 3; k++)
			CU_ASSERT_EQUAL(rng_u64(&r), streams[i].first[k]);
	}
}

/* Near seeds and replicates share no first number. */
static void streams_differ(void)
{
	static uint64_t first[64 * 64];
	size_t n = 0, equal = 0;

	for (uint64_t seed = 0; seed < 64; seed++) {
		for (uint32_t replicate = 0; replicate < 64; replicate++) {
			struct rng r;

			rng_init(&r, seed, replicate, "guest");
			first[n++] = rng_u64(&r);
		}
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			equal += first[i] == first[k];
	CU_ASSERT_EQUAL(equal, 0);
}

/* From Python's integers by the algorithm of figure 1 in Lemire's paper; from 2^63 + 1 on, about
 * half (and a quarter) of the raw numbers are refused. */
static void below_known_answers(void)
{
	static const struct {
		uint64_t n, value[8];
	} cases[] = {
		{10u, {0u, 0u, 0u, 0u, 0u, 8u, 4u, 5u}},
		{1000003u, {0u, 0u, 65918u, 65929u, 32959u, 876738u, 459495u, 574364u}},
		{9223372036854775809u,
		 {7236058096720714768u, 6531673166550522182u, 5390582961875169806u,
		  7762127939569525534u, 4413079761054109u, 6022813401919593070u,
		  8560938468619008226u, 629453566714136441u}},
		{13835058055282163712u,
		 {12129692233975919718u, 7946335754698169082u, 12396538069003663325u,
		  6619619641581164u, 8831302824773833926u, 8701026863578888265u,
		  944180350071204662u, 10269788031755366601u}},
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct rng r = {{1, 2, 3, 4}};

		for (int i = 0; i < 8; i++)
			CU_ASSERT_EQUAL(rng_below(&r, cases[c].n), cases[c].value[i]);
	}
}

/* Without the refusal, every second number below 3 * 2^62 would be a multiple of 3. */
static void below_is_not_biased(void)
{
	struct rng r;
	unsigned multiples = 0, beyond = 0;

	rng_init(&r, 1, 0, "bias");
	for (int i = 0; i < 30000; i++) {
		uint64_t x = rng_below(&r, 3ull << 62);

		multiples += x % 3 == 0;
		beyond += x >= 3ull << 62;
	}
	CU_ASSERT_EQUAL(beyond, 0);
	/* 10000, standard deviation 82 */
	CU_ASSERT_TRUE(multiples > 9600 && multiples < 10400);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(rng_below(&r, 1), 0);
}

static CU_TestInfo tests[] = {{"known_answers", known_answers},
			      {"streams_by_name", streams_by_name},
			      {"streams_differ", streams_differ},
			      {"below_known_answers", below_known_answers},
			      {"below_is_not_biased", below_is_not_biased},
			      CU_TEST_INFO_NULL};
TEST_MAIN("rng", tests)
