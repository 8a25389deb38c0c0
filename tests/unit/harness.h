/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_HARNESS_H
#define KVMSIM_TESTS_HARNESS_H

#include <CUnit/CUnit.h>

/*
 * One test program is one CUnit suite. TEST_MAIN runs it, prints each failed assertion with file
 * and line, and ends with "NAME: N passed, N failed, N skipped"; exit 0 or 1. A test that cannot
 * run here calls test_skip("why") and returns: the reason is printed and it counts as skipped.
 * Wherever it is called, it runs in the source's folder.
 */
int test_main(const char *name, CU_TestInfo *tests);
void test_skip(const char *reason);

#define TEST_MAIN(name, tests)                                                                     \
	int main(void)                                                                             \
	{                                                                                          \
		return test_main(name, tests);                                                     \
	}

#endif
