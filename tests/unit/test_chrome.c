// SPDX-License-Identifier: GPL-3.0-or-later
/* Time lines and folded stacks of what may be any bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "analysis/chrome.h"
#include "analysis/folded.h"
#include "analysis/utf8.h"
#include "tests/unit/harness.h"

#define FFFD "\xef\xbf\xbd"

static void clean(const char *from, size_t len, bool controls, const char *expected)
{
	char to[64];

	CU_ASSERT_STRING_EQUAL(utf8_clean(to, sizeof(to), from, len, controls), expected);
}

static void what_is_no_utf8_is_replaced(void)
{
	clean("qemu", 4, false, "qemu");
	clean("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9, false,
	      "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
	clean("a\xff"
	      "b",
	      3, false, "a" FFFD "b");
	clean("\xc3", 1, false, FFFD);			 /* cut */
	clean("\xc0\xaf", 2, false, FFFD FFFD);		 /* overlong */
	clean("\xed\xa0\x80", 3, false, FFFD FFFD FFFD); /* a surrogate */
	clean("\xf4\x90\x80\x80", 4, false, FFFD FFFD FFFD FFFD);
	clean("a\0b", 3, true, "a" FFFD "b");
	clean("a\x1b[", 3, false, "a" FFFD "[");
	clean("a\x1b[", 3, true, "a\x1b[");
}

/* Cut between characters. */
static void a_text_is_cut_whole(void)
{
	char to[4];

	CU_ASSERT_STRING_EQUAL(utf8_clean(to, 4, "ab\xc3\xa4", 4, false), "ab");
	CU_ASSERT_STRING_EQUAL(utf8_clean(to, 4, "a\xc3\xa4", 3, false), "a\xc3\xa4");
	CU_ASSERT_STRING_EQUAL(utf8_clean(to, 1, "a", 1, false), "");
}

static void a_frame_has_no_semicolon(void)
{
	char to[32];

	CU_ASSERT_STRING_EQUAL(folded_frame(to, sizeof(to), "a;b\nc"), "a:b" FFFD "c");
}

/* Every byte that a name can have, read by a parser that takes nothing else than JSON. */
static void strings_are_json_whatever_they_hold(void)
{
	char name[256], *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	const char *about[] = {"file", "\"\xff", NULL};
	struct chrome c;
	json_t *o, *e;

	for (int i = 0; i < 255; i++)
		name[i] = (char)(i + 1);
	name[255] = '\0';
	CU_ASSERT_PTR_NOT_NULL_FATAL(to);
	chrome_open(&c, to);
	chrome_process(&c, 1, name);
	chrome_track(&c, 1, 7, "\\");
	chrome_span(&c, 1, 7, name, 1234567, 89);
	chrome_text(&c, name, name);
	chrome_u64(&c, "n", 18446744073709551615ull);
	chrome_hex(&c, "h", 255);
	chrome_true(&c, "t");
	chrome_end(&c);
	chrome_instant(&c, 1, 7, "", 5);
	chrome_end(&c);
	chrome_close(&c, about);
	CU_ASSERT_EQUAL(fclose(to), 0);
	/* 2528394 / 2^11 and 182 / 2^11 */
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"ts\":1234.56738281250,\"dur\":0.08886718750,"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "\"n\":18446744073709551615,\"h\":\"0xff\",\"t\":true}}"));
	o = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(o);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(o, "traceEvents")), 5);
	e = json_array_get(json_object_get(o, "traceEvents"), 3);
	/* the bytes from 0x80 on are no UTF-8 as they stand here */
	CU_ASSERT_EQUAL(memcmp(json_string_value(json_object_get(e, "name")), name, 0x7f), 0);
	CU_ASSERT_STRING_EQUAL(
		json_string_value(json_object_get(json_object_get(o, "otherData"), "file")),
		"\"" FFFD);
	json_decref(o);
	free(text);
}

static double number(const json_t *event, const char *key)
{
	return json_number_value(json_object_get(event, key));
}

/*
 * Viewers subtract the first ts and add ts and dur as doubles: one span must end where the next
 * begins, not 1 ulp behind.
 */
static void spans_meet_in_doubles(void)
{
	enum { SPANS = 20000 };
	const char *about[] = {NULL};
	uint64_t at[SPANS + 1] = {1234567}, seed = 42;
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	struct chrome c;
	json_t *o, *list;
	double first;

	CU_ASSERT_PTR_NOT_NULL_FATAL(to);
	chrome_open(&c, to);
	for (int i = 0; i < SPANS; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		/* of 0 to 2^34 ns, short ones more often */
		at[i + 1] = at[i] + (seed >> 30 >> (seed & 0x7c000000) / 0x4000000);
		chrome_span(&c, 1, 1, "", at[i], at[i + 1] - at[i]);
		chrome_end(&c);
	}
	chrome_close(&c, about);
	CU_ASSERT_EQUAL(fclose(to), 0);
	o = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(o);
	list = json_object_get(o, "traceEvents");
	first = number(json_array_get(list, 0), "ts");
	for (size_t i = 0; i + 1 < SPANS; i++) {
		json_t *e = json_array_get(list, i), *next = json_array_get(list, i + 1);

		CU_ASSERT_EQUAL(number(e, "ts") - first + number(e, "dur"),
				number(next, "ts") - first);
		CU_ASSERT_EQUAL((uint64_t)(number(e, "ts") * 1000), at[i]);
		CU_ASSERT_EQUAL((uint64_t)(number(e, "dur") * 1000 + 0.5), at[i + 1] - at[i]);
	}
	json_decref(o);
	free(text);
}

static void nothing_is_json_too(void)
{
	const char *about[] = {NULL};
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	struct chrome c;

	CU_ASSERT_PTR_NOT_NULL_FATAL(to);
	chrome_open(&c, to);
	chrome_close(&c, about);
	CU_ASSERT_EQUAL(fclose(to), 0);
	CU_ASSERT_STRING_EQUAL(
		text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n],\"otherData\":{}}\n");
	free(text);
}

static CU_TestInfo tests[] = {
	{"what_is_no_utf8_is_replaced", what_is_no_utf8_is_replaced},
	{"a_text_is_cut_whole", a_text_is_cut_whole},
	{"a_frame_has_no_semicolon", a_frame_has_no_semicolon},
	{"strings_are_json_whatever_they_hold", strings_are_json_whatever_they_hold},
	{"spans_meet_in_doubles", spans_meet_in_doubles},
	{"nothing_is_json_too", nothing_is_json_too},
	CU_TEST_INFO_NULL};
TEST_MAIN("chrome", tests)
