// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/csv.h"
#include "tests/unit/harness.h"

static char path[] = "/tmp/kvmsim-test-csv-XXXXXX";
static char message[512];
static char rows[1024]; /* every row: "line:b|a;" */

static void keep_message(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(message, sizeof(message), "%s", msg);
}

static int keep_row(void *ctx, const struct csv_row *row)
{
	size_t n = strlen(rows);

	(void)ctx;
	snprintf(rows + n, sizeof(rows) - n, "%lu:%s|%s;", row->line, row->field[0], row->field[1]);
	return 0;
}

/* Reads @text as a file; columns b and a in this order. The message comes without the path. */
static int read_text(const char *text, size_t len)
{
	static const char *const columns[] = {"b", "a", NULL};
	const struct kvmsim_errsink sink = {keep_message, NULL};
	FILE *f = fopen(path, "wb");
	int err;

	rows[0] = message[0] = '\0';
	if (!f || fwrite(text, 1, len, f) != len || fclose(f))
		return 1;
	err = csv_read(path, columns, &sink, keep_row, NULL);
	if (!strncmp(message, path, strlen(path)))
		memmove(message, message + strlen(path), strlen(message + strlen(path)) + 1);
	return err;
}
#define READ(text) read_text(text, sizeof(text) - 1)

static void fields_by_name(void)
{
	CU_ASSERT_EQUAL(READ("a,x,b\n1,2,3\n4,5,6\n"), 0);
	CU_ASSERT_STRING_EQUAL(rows, "2:3|1;3:6|4;");
	CU_ASSERT_EQUAL(READ("\xef\xbb\xbf"
			     "b,a\n1,\xef\xbb\xbf\n"),
			0); /* a byte order mark, at the beginning */
	CU_ASSERT_STRING_EQUAL(rows, "2:1|\xef\xbb\xbf;");
	CU_ASSERT_EQUAL(READ("\xef\xbb\xbf"), KVMSIM_EPARSE);
	CU_ASSERT_EQUAL(READ("a,b\n"), 0);
	CU_ASSERT_STRING_EQUAL(rows, "");
}

static void quotes_empty_fields_line_ends(void)
{
	CU_ASSERT_EQUAL(READ("b,a\r\n\"x,\"\"y\"\"\",\r\n\n,z"), 0);
	CU_ASSERT_STRING_EQUAL(rows, "2:x,\"y\"|;4:|z;");
	/* a quoted line end: the next row is one line further down */
	CU_ASSERT_EQUAL(READ("a,b\n1,\"p\nq\"\n3,4\n"), 0);
	CU_ASSERT_STRING_EQUAL(rows, "2:p\nq|1;4:4|3;");
}

static void bad_files_name_the_line(void)
{
	CU_ASSERT_EQUAL(READ(""), KVMSIM_EPARSE);
	CU_ASSERT_STRING_EQUAL(message, ":1: empty; a line of column names was expected");
	CU_ASSERT_EQUAL(READ("a,c\n1,2\n"), KVMSIM_EPARSE);
	CU_ASSERT_STRING_EQUAL(message, ":1: no column 'b' in the header");
	CU_ASSERT_EQUAL(READ("a,b,a\n"), KVMSIM_EPARSE);
	CU_ASSERT_STRING_EQUAL(message, ":1: column 'a' is there twice");
	CU_ASSERT_EQUAL(READ("a,b\n1,2\n1\n"), KVMSIM_EPARSE);
	CU_ASSERT_STRING_EQUAL(message, ":3: 1 fields, 2 expected");
	CU_ASSERT_EQUAL(READ("a,b\n1,2,3\n"), KVMSIM_EPARSE);
	CU_ASSERT_STRING_EQUAL(message, ":2: more than 2 fields");
	CU_ASSERT_EQUAL(READ("a,b\n1,\"2\n"), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, ":2: "));
	CU_ASSERT_EQUAL(READ("a,b\n1,x\"2\n"), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, ":2: "));
	CU_ASSERT_EQUAL(READ("a,b\n1,\0\n"), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, ":2: a NUL byte"));
}

static void missing_file(void)
{
	static const char *const columns[] = {"a", NULL};
	const struct kvmsim_errsink sink = {keep_message, NULL};

	CU_ASSERT_EQUAL(csv_read("/nonexistent/x.csv", columns, &sink, keep_row, NULL), KVMSIM_EIO);
	CU_ASSERT_STRING_EQUAL(message, "/nonexistent/x.csv: No such file or directory");
	CU_ASSERT_EQUAL(csv_read("/", columns, &sink, keep_row, NULL), KVMSIM_EIO);
}

static void numbers(void)
{
	static const char *const columns[] = {"n", NULL};
	const struct kvmsim_errsink sink = {keep_message, NULL};
	const char *text;
	struct csv_row row = {
		.path = "f", .line = 7, .field = &text, .columns = columns, .errors = &sink};
	uint64_t u;
	int64_t i;
	double d;

	text = "18446744073709551615";
	CU_ASSERT_EQUAL(csv_u64(&row, 0, &u), 0);
	CU_ASSERT_EQUAL(u, UINT64_MAX);
	CU_ASSERT_EQUAL(csv_i64(&row, 0, &i), KVMSIM_EPARSE);
	text = "-5";
	CU_ASSERT_EQUAL(csv_i64(&row, 0, &i), 0);
	CU_ASSERT_EQUAL(i, -5);
	CU_ASSERT_EQUAL(csv_u64(&row, 0, &u), KVMSIM_EPARSE);
	CU_ASSERT_STRING_EQUAL(message, "f:7: n is '-5', a whole number was expected");
	text = "1.25";
	CU_ASSERT_EQUAL(csv_double(&row, 0, &d), 0);
	CU_ASSERT_EQUAL(d, 1.25);
	CU_ASSERT_EQUAL(csv_i64(&row, 0, &i), KVMSIM_EPARSE);
	text = "";
	CU_ASSERT_EQUAL(csv_u64(&row, 0, &u), KVMSIM_EPARSE);
	CU_ASSERT_EQUAL(csv_double(&row, 0, &d), KVMSIM_EPARSE);
	text = "inf";
	CU_ASSERT_EQUAL(csv_double(&row, 0, &d), KVMSIM_EPARSE);
}

static CU_TestInfo tests[] = {{"fields_by_name", fields_by_name},
			      {"quotes_empty_fields_line_ends", quotes_empty_fields_line_ends},
			      {"bad_files_name_the_line", bad_files_name_the_line},
			      {"missing_file", missing_file},
			      {"numbers", numbers},
			      CU_TEST_INFO_NULL};

int main(void)
{
	int fd = mkstemp(path);
	int r;

	if (fd < 0 || close(fd))
		return 1;
	r = test_main("csv", tests);
	unlink(path);
	return r;
}
