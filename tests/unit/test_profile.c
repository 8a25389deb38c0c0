// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/sim/profile.h"

#include <string.h>

#include "model/counts.h"
#include "model/params.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

static const struct profile_param params[] = {
	{"size", 64, 16, 4096, "bytes"}, {"latency", 0, 0, 1000, "units"}, {0}};

static int parse_len(const char *text, size_t len, struct profile **p)
{
	simple_message[0] = '\0';
	simple_messages = 0;
	return profile_parse(text, len, "x.ini", &simple_vocabulary, params, &simple_errors, p);
}

static int parse(const char *text, struct profile **p)
{
	return parse_len(text, strlen(text), p);
}

/* FNV-1a of the text, from a Python reimplementation. */
#define FULL_CHECKSUM 0x28557965d1f14402u
static const char full[] = "; a comment\n"
			   "[machine]\n"
			   "name = A machine\n"
			   "unit = cycles\n"
			   "hz=2596000000\n"
			   "source = its data sheet ; p. 3\n"
			   "[price]\n"
			   "one = 1.5\n"
			   "  third = 0.333333\n"
			   "[sigma]\n"
			   "one = 0.25\n"
			   "[source]\n"
			   "one = fitted on: matrix B\n"
			   "[covariance]\n"
			   "third,one = -0.125\n"
			   "one,one = 0.0625\n"
			   "[group]\n"
			   "cheap = free third\n"
			   "[param]\n"
			   "size = 4096\n";

static void check_full(const struct profile *p)
{
	CU_ASSERT_STRING_EQUAL(profile_name(p), "x.ini");
	CU_ASSERT_STRING_EQUAL(profile_machine(p), "A machine");
	CU_ASSERT_STRING_EQUAL(profile_machine_source(p), "its data sheet");
	CU_ASSERT_STRING_EQUAL(profile_unit(p), "cycles");
	CU_ASSERT_EQUAL(profile_hz(p), 2596000000u);
	CU_ASSERT_EQUAL(profile_price(p, SIMPLE_ONE), 3u << 15);
	CU_ASSERT_EQUAL(profile_price(p, SIMPLE_THIRD), 21845);
	CU_ASSERT_EQUAL(profile_price(p, SIMPLE_FREE), 0);
	CU_ASSERT_EQUAL(profile_sigma(p, SIMPLE_ONE), 1u << 14);
	CU_ASSERT_EQUAL(profile_sigma(p, SIMPLE_THIRD), 0);
	CU_ASSERT_EQUAL(profile_covariance(p, SIMPLE_ONE, SIMPLE_THIRD), -8192);
	CU_ASSERT_EQUAL(profile_covariance(p, SIMPLE_THIRD, SIMPLE_ONE), -8192);
	CU_ASSERT_EQUAL(profile_covariance(p, SIMPLE_ONE, SIMPLE_ONE), 4096);
	CU_ASSERT_EQUAL(profile_covariance(p, SIMPLE_FREE, SIMPLE_ONE), 0);
	CU_ASSERT_STRING_EQUAL(profile_source(p, SIMPLE_ONE), "fitted on: matrix B");
	CU_ASSERT_PTR_NULL(profile_source(p, SIMPLE_THIRD));
	CU_ASSERT_STRING_EQUAL(profile_group(p, SIMPLE_THIRD), "cheap");
	CU_ASSERT_STRING_EQUAL(profile_group(p, SIMPLE_FREE), "cheap");
	CU_ASSERT_PTR_NULL(profile_group(p, SIMPLE_ONE));
	CU_ASSERT_EQUAL(profile_param(p, "size"), 4096);
	CU_ASSERT_EQUAL(profile_param(p, "latency"), 0);
	CU_ASSERT_EQUAL(profile_param(p, "nonesuch"), 0);
	CU_ASSERT_EQUAL(profile_checksum(p), FULL_CHECKSUM);
}

static void reads_everything(void)
{
	struct profile *p, *copy;

	CU_ASSERT_EQUAL_FATAL(parse(full, &p), 0);
	check_full(p);
	CU_ASSERT_EQUAL_FATAL(profile_copy(p, &copy), 0);
	profile_set_price(p, SIMPLE_ONE, 7);
	CU_ASSERT_EQUAL(profile_price(p, SIMPLE_ONE), 7);
	CU_ASSERT_EQUAL(profile_prices(p)[SIMPLE_ONE], 7);
	profile_free(p);
	check_full(copy);
	profile_free(copy);
}

/* Decimals to the nearest 1 / 65536: value * 65536, worked out by hand. */
static void decimals_are_exact(void)
{
	static const struct {
		const char *decimal;
		price_t price;
	} cases[] = {
		{"0", 0},
		{"0.000007", 0},       /* 0.459 */
		{"0.000008", 1},       /* 0.524 */
		{"0.1", 6554},	       /* 6553.6 */
		{"0.999999", 65536},   /* 65535.93 */
		{"12.345678", 809086}, /* 809086.35 */
		{"281474976710655", 281474976710655u << 16},
		{"281474976710655.999984", UINT64_MAX}, /* .999984 * 65536 = 65534.95 */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[128] = "[price]\none = ";
		struct profile *p;

		strcat(text, cases[i].decimal);
		CU_ASSERT_EQUAL_FATAL(parse(text, &p), 0);
		CU_ASSERT_EQUAL(profile_price(p, SIMPLE_ONE), cases[i].price);
		profile_free(p);
	}
}

#define LINE_OF_60 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void errors_name_the_line(void)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"[price]\none = 1\n\ntwo = 2\n", "x.ini:4: there is no count two"},
		{"[price]\none = 1\none = 2\n", "x.ini:3: one was given in line 2 already"},
		{"[price]\none = 1\n[sigma]\none = 1\n[price]\none = 1\n",
		 "x.ini:6: one was given in line 2 already"},
		{"[price]\none = -1\n", "x.ini:2: -1 is negative"},
		{"[price]\none = 1e3\n", "x.ini:2: 1e3 is no decimal number, or too large"},
		{"[price]\none =\n", "x.ini:2:  is no decimal number, or too large"},
		{"[price]\none = 3.\n", "x.ini:2: 3. is no decimal number"},
		{"[price]\none = .5\n", "x.ini:2: .5 is no decimal number, or too large"},
		{"[price]\none = 1.2.3\n", "x.ini:2: 1.2.3 is no decimal number"},
		{"[price]\none = 0.1234567\n",
		 "x.ini:2: 0.1234567 has more than 6 digits after the point"},
		{"[price]\none = 281474976710656\n", "x.ini:2: 281474976710656 is too large"},
		{"[price]\none = 281474976710655.999999\n",
		 "x.ini:2: 281474976710655.999999 is too large"},
		{"[price]\none = 99999999999999999999\n",
		 "x.ini:2: 99999999999999999999 is no decimal number, or too large"},
		{"[prices]\none = 1\n", "x.ini:2: unknown section [prices]"},
		{"\none = 1\n", "x.ini:2: one stands before any [section]"},
		{"[machine]\nunit = seconds\n",
		 "x.ini:2: unit is cycles or instructions, not seconds"},
		{"[machine]\nhz = 2.5\n", "x.ini:2: hz = 2.5 is no whole number, or too large"},
		{"[machine]\ncolour = red\n",
		 "x.ini:2: [machine] has no colour; it has name, unit, hz and source"},
		{"[machine]\nname = a\nname = b\n", "x.ini:3: name was given in line 2 already"},
		{"[covariance]\none = 1\n", "x.ini:2: a covariance is of two counts: A,B = VALUE"},
		{"[covariance]\none,third = 1\nthird,one = 1\n",
		 "x.ini:3: third,one was given in line 2 already"},
		{"[covariance]\none,one = -1\n",
		 "x.ini:2: the covariance of one,one with itself is negative"},
		{"[covariance]\none,third = 140737488355328\n",
		 "x.ini:2: 140737488355328 is too large"},
		{"[group]\ng = one\nh = third one\n", "x.ini:3: one was given in line 2 already"},
		{"[group]\ng = one\ng = third\n", "x.ini:3: group g was given already"},
		{"[group]\ng =\n", "x.ini:2: group g is empty"},
		{"[param]\nsize = 15\n", "x.ini:2: size = 15 is no whole number from 16 to 4096"},
		{"[param]\nsize = 4097\n",
		 "x.ini:2: size = 4097 is no whole number from 16 to 4096"},
		{"[param]\nsize = -20\n", "x.ini:2: size = -20 is no whole number from 16 to 4096"},
		{"[param]\nsize = 64K\n", "x.ini:2: size = 64K is no whole number from 16 to 4096"},
		{"[param]\nwidth = 1\n", "x.ini:2: there is no param width"},
		{"[param]\nsize = 64\nsize = 64\n", "x.ini:3: size was given in line 2 already"},
		{"[price]\none = 1\nnonsense\n", "x.ini:3: neither [section] nor key = value"},
		{"[price]\none = 1\n[sigma\none = 1\n",
		 "x.ini:3: neither [section] nor key = value"},
		{"[machine]\nname = " LINE_OF_60 LINE_OF_60 LINE_OF_60 LINE_OF_60 "\n",
		 "x.ini:2: line of more than 199 bytes"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct profile *p;

		CU_ASSERT_EQUAL(parse(cases[i].text, &p), KVMSIM_EPARSE);
		CU_ASSERT_PTR_NULL(p);
		CU_ASSERT_STRING_EQUAL(simple_message, cases[i].message);
		CU_ASSERT_EQUAL(simple_messages, 1);
	}
}

static void text_need_not_end(void)
{
	static const char text[] = "[price]\none = 12345";
	struct profile *p;

	CU_ASSERT_EQUAL_FATAL(parse_len(text, sizeof(text) - 4, &p), 0); /* up to 12 */
	CU_ASSERT_EQUAL(profile_price(p, SIMPLE_ONE), 12u << 16);
	profile_free(p);
	CU_ASSERT_EQUAL(parse_len("[price]\none\0= 1\n", 16, &p), KVMSIM_EPARSE);
	CU_ASSERT_STRING_EQUAL(simple_message, "x.ini:2: a NUL byte: this is no text");
	CU_ASSERT_EQUAL_FATAL(parse_len("", 0, &p), 0);
	CU_ASSERT_PTR_NULL(profile_unit(p));
	/* Without a unit there is no simulation. */
	struct sim_opts opts = {.vocabulary = &simple_vocabulary, .profile = p};
	struct sim *s;

	CU_ASSERT_EQUAL(sim_create(&opts, &s), KVMSIM_EINVAL);
	profile_free(p);
}

/* The tables that the whole model shares. */
static void the_models_own_words(void)
{
	CU_ASSERT_STRING_EQUAL(model_vocabulary.counts[COUNT_insn], "insn");
	CU_ASSERT_STRING_EQUAL(model_vocabulary.waits[WAIT_ipi], "ipi");
	CU_ASSERT_STRING_EQUAL(model_vocabulary.activities[ACT_get_dirty_log], "get_dirty_log");
	CU_ASSERT_STRING_EQUAL(model_count_help(COUNT_ipi), "IPI sent");
	CU_ASSERT_PTR_NULL(model_count_help(N_COUNTS));
	CU_ASSERT_PTR_NULL(model_activity_help(N_ACTIVITIES));
	CU_ASSERT_PTR_NULL(model_wait_help(N_WAITS));
	for (const struct profile_param *a = model_params; a->name; a++) {
		CU_ASSERT_TRUE(a->min <= a->def && a->def <= a->max);
		for (const struct profile_param *b = model_params; b < a; b++)
			CU_ASSERT_STRING_NOT_EQUAL(a->name, b->name);
	}
}

static CU_TestInfo tests[] = {
	{"reads_everything", reads_everything},		{"decimals_are_exact", decimals_are_exact},
	{"errors_name_the_line", errors_name_the_line}, {"text_need_not_end", text_need_not_end},
	{"the_models_own_words", the_models_own_words}, CU_TEST_INFO_NULL};
TEST_MAIN("profile", tests)
