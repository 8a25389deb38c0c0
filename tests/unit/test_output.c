// SPDX-License-Identifier: GPL-3.0-or-later
/* Expected texts were written by hand from the rules in output.h and RFC 4180. */
#include <stdlib.h>
#include <string.h>

#include "analysis/output.h"
#include "tests/unit/harness.h"

static char *text;
static size_t text_len;
static FILE *memory;

static FILE *begin(void)
{
	free(text);
	text = NULL;
	memory = open_memstream(&text, &text_len);
	return memory;
}

static const char *end(void)
{
	fclose(memory);
	return text;
}

static void aligns(void)
{
	struct table *t = table_create("lrl");

	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	table_cell(t, "policy");
	table_cell(t, "cycles");
	table_cell(t, "note");
	table_cell(t, "walk");
	table_cell(t, "%d", 1234567);
	table_end_row(t);
	table_cell(t, "w\xc3\xa4lk");
	table_cell(t, "7");
	table_cell(t, "x");
	CU_ASSERT_EQUAL(table_print(t, begin()), 0);
	CU_ASSERT_STRING_EQUAL(end(), "policy   cycles  note\n"
				      "walk    1234567\n"
				      "w\xc3\xa4lk          7  x\n");
	table_cell(t, "half a row");
	CU_ASSERT_NOT_EQUAL(table_print(t, begin()), 0);
	end();
	table_free(t);
}

static void quotes(void)
{
	struct csv_out c = {begin(), 0};

	csv_text(&c, "plain");
	csv_text(&c, "walk,key=1");
	csv_text(&c, NULL);
	csv_text(&c, "say \"hi\"");
	csv_field(&c, "%d", 5);
	csv_end_row(&c);
	csv_text(&c, "two\nlines");
	csv_end_row(&c);
	CU_ASSERT_STRING_EQUAL(end(),
			       "plain,\"walk,key=1\",,\"say \"\"hi\"\"\",5\n\"two\nlines\"\n");
}

static void json(void)
{
	json_t *o = json_object();

	json_object_set_new(o, "zebra", json_u64(1));
	json_object_set_new(o, "apple", json_u64(UINT64_MAX));
	json_object_set_new(o, "sum", json_hex64(0xabc));
	CU_ASSERT_EQUAL(json_print(o, begin()), 0);
	CU_ASSERT_STRING_EQUAL(end(), "{\n  \"zebra\": 1,\n"
				      "  \"apple\": \"18446744073709551615\",\n"
				      "  \"sum\": \"0000000000000abc\"\n}\n");
	CU_ASSERT_NOT_EQUAL(json_print(NULL, begin()), 0);
	end();
}

static void numbers(void)
{
	char b[OUT_TEXT];

	CU_ASSERT_STRING_EQUAL(out_u64(b, 0), "0");
	CU_ASSERT_STRING_EQUAL(out_u64(b, 999), "999");
	CU_ASSERT_STRING_EQUAL(out_u64(b, 1000), "1,000");
	CU_ASSERT_STRING_EQUAL(out_u64(b, UINT64_MAX), "18,446,744,073,709,551,615");
	CU_ASSERT_STRING_EQUAL(out_time(b, 5, 0), "");
	CU_ASSERT_STRING_EQUAL(out_time(b, 812, 1000000000), "812 ns");
	CU_ASSERT_STRING_EQUAL(out_time(b, 999.7, 1000000000), "1.00 us");
	CU_ASSERT_STRING_EQUAL(out_time(b, 35100, 1000000000), "35.1 us");
	CU_ASSERT_STRING_EQUAL(out_time(b, 4.7e6, 1000000000), "4.70 ms");
	CU_ASSERT_STRING_EQUAL(out_time(b, 1.5e12, 1000000000), "1500 s");
	CU_ASSERT_STRING_EQUAL(out_time(b, 0, 1000000000), "0 ns");
	CU_ASSERT_STRING_EQUAL(out_mib(b, 1. / (1 << 20), 4, "/s"), "1 B/s");
	CU_ASSERT_STRING_EQUAL(out_mib(b, 1.5 / 1024, 4, ""), "1.5 KiB");
	CU_ASSERT_STRING_EQUAL(out_mib(b, 0, 4, ""), "0 MiB");
	CU_ASSERT_STRING_EQUAL(out_mib(b, 8208.2578125, 5, ""), "8208.3 MiB");
	CU_ASSERT_STRING_EQUAL(out_mib(b, 1 << 24, 5, "/s"), "16384 GiB/s");
	CU_ASSERT_STRING_EQUAL(out_mega(b, 10.48576, 3, "B/s"), "10.5 MB/s");
	CU_ASSERT_STRING_EQUAL(out_mega(b, 8e-6, 3, "bit/s"), "8 bit/s");
	CU_ASSERT_STRING_EQUAL(out_mega(b, 2.5e6, 4, "bit/s"), "2500 Gbit/s");
	CU_ASSERT_STRING_EQUAL(out_long_time(b, 0), "0 ms");
	CU_ASSERT_STRING_EQUAL(out_long_time(b, 488e-6), "488 us");
	CU_ASSERT_STRING_EQUAL(out_long_time(b, 3.011), "3011 ms");
	CU_ASSERT_STRING_EQUAL(out_long_time(b, 21.329), "21.33 s");
	CU_ASSERT_STRING_EQUAL(out_long_time(b, 660), "11.0 min");
	CU_ASSERT_STRING_EQUAL(out_long_time(b, 90000), "25.0 h");
	CU_ASSERT_STRING_EQUAL(out_long_time(b, 1e6), "12 days");
	CU_ASSERT_STRING_EQUAL(out_long_time(b, 6.523e9), "207 years");
}

static void wraps(void)
{
	const char *a50 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	char in[400], want[400];

	/* 2 + 50 + 1 + 50 fit into 112, another 50 do not; nor does a word of 200, which is whole
	 */
	snprintf(in, sizeof(in), "short\n\n  %s %s %s\n", a50, a50, a50);
	snprintf(want, sizeof(want), "short\n\n  %s %s\n    %s\n", a50, a50, a50);
	out_wrapped(in, 4, begin());
	CU_ASSERT_STRING_EQUAL(end(), want);
	snprintf(in, sizeof(in), "x %s%s%s%s y", a50, a50, a50, a50);
	snprintf(want, sizeof(want), "x\n  %s%s%s%s\n  y\n", a50, a50, a50, a50);
	out_wrapped(in, 2, begin());
	CU_ASSERT_STRING_EQUAL(end(), want);
}

static CU_TestInfo tests[] = {{"aligns", aligns},   {"quotes", quotes}, {"json", json},
			      {"numbers", numbers}, {"wraps", wraps},	CU_TEST_INFO_NULL};

int main(void)
{
	int rc = test_main("output", tests);

	free(text);
	return rc;
}
