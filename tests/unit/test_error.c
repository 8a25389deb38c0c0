// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/sim/error.h"
#include "tests/unit/harness.h"

static char last[64];
static enum kvmsim_error last_err;

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	last_err = err;
	strncpy(last, msg, sizeof(last) - 1);
}

static void formats_and_returns(void)
{
	struct kvmsim_errsink sink = {keep, NULL};

	CU_ASSERT_EQUAL(kvmsim_err(&sink, KVMSIM_EPARSE, "%s:%d: bad", "f.ini", 3), KVMSIM_EPARSE);
	CU_ASSERT_STRING_EQUAL(last, "f.ini:3: bad");
	CU_ASSERT_EQUAL(last_err, KVMSIM_EPARSE);
	CU_ASSERT_EQUAL(kvmsim_err(NULL, KVMSIM_EIO, "dropped"), KVMSIM_EIO);
}

static void every_error_has_words(void)
{
	for (int e = 0; e >= KVMSIM_ECHECK; e--) {
		CU_ASSERT_STRING_NOT_EQUAL(kvmsim_strerror(e), "unknown error");
		for (int f = 0; f > e; f--)
			CU_ASSERT_STRING_NOT_EQUAL(kvmsim_strerror(e), kvmsim_strerror(f));
	}
	CU_ASSERT_STRING_EQUAL(kvmsim_strerror(1), "unknown error");
	CU_ASSERT_STRING_EQUAL(kvmsim_strerror(-1000), "unknown error");
}

static CU_TestInfo tests[] = {{"formats_and_returns", formats_and_returns},
			      {"every_error_has_words", every_error_has_words},
			      CU_TEST_INFO_NULL};
TEST_MAIN("error", tests)
