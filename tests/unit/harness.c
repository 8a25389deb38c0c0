// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/harness.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <CUnit/TestRun.h>

static const char *skip_reason;

void test_skip(const char *reason)
{
	skip_reason = reason;
}

/* The programs are in build/VARIANT; what they read is named from the folder above that. */
static void enter_source(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	for (int up = 0; n > 0 && up < 3; up++) {
		path[n] = 0;
		n = strrchr(path, '/') ? strrchr(path, '/') - path : 0;
	}
	if (n <= 0)
		return;
	path[n] = 0;
	if (chdir(path))
		perror(path);
}

int test_main(const char *name, CU_TestInfo *tests)
{
	unsigned passed = 0, failed = 0, skipped = 0;

	enter_source();
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite suite = CU_add_suite(name, NULL, NULL);
	for (CU_TestInfo *t = tests; suite && t->pName; t++) {
		CU_pTest test = CU_add_test(suite, t->pName, t->pTestFunc);

		if (!test)
			return 1;
		skip_reason = NULL;
		CU_run_test(suite, test);
		if (skip_reason) {
			printf("%s: %s: skipped: %s\n", name, t->pName, skip_reason);
			skipped++;
		} else if (CU_get_number_of_failures() || !CU_get_number_of_asserts()) {
			if (!CU_get_number_of_asserts())
				printf("%s: %s: asserted nothing\n", name, t->pName);
			for (CU_pFailureRecord f = CU_get_failure_list(); f; f = f->pNext)
				printf("%s: %s: %s:%u: %s\n", name, t->pName, f->strFileName,
				       f->uiLineNumber, f->strCondition);
			failed++;
		} else {
			passed++;
		}
	}
	CU_cleanup_registry();
	printf("%s: %u passed, %u failed, %u skipped\n", name, passed, failed, skipped);
	return failed || !(passed + skipped);
}
