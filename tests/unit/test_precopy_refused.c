// SPDX-License-Identifier: GPL-3.0-or-later
/* Pre-copy is the same each time; what it refuses, and what ends it. */
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/precopy_util.h"

#define EQ CU_ASSERT_EQUAL

static void test_again(void)
{
	const struct precopy_writer g = {.pages = 20000, .stores = 100};
	struct precopy_opts o = precopy_defaults();
	struct precopy_result a, b;

	o.throttle = PRECOPY_AUTO_CONVERGE;
	o.bandwidth = 100000000;
	EQ(precopy_migrate(&g, o, &a), 0);
	EQ(precopy_migrate(&g, o, &b), 0);
	EQ(a.n_rounds, b.n_rounds);
	EQ(memcmp(a.rounds, b.rounds, a.n_rounds * sizeof(*a.rounds)), 0);
	EQ(memcmp(&a.guest, &b.guest, sizeof(a.guest)), 0);
	precopy_result_free(&a);
	precopy_result_free(&b);
}

static void test_refused(void)
{
	const struct precopy_writer g = {.pages = 20000, .stores = 100};
	const int interrupted = 1;
	struct precopy_opts o = precopy_defaults();
	struct precopy_result r;

	o.bandwidth = 0;
	EQ(precopy_migrate(&g, o, &r), KVMSIM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(precopy_message, "bandwidth"));
	CU_ASSERT_PTR_NULL(r.rounds);
	o = precopy_defaults();
	o.throttle = PRECOPY_AUTO_CONVERGE;
	o.throttle_max = 10;
	EQ(precopy_migrate(&g, o, &r), KVMSIM_EINVAL);
	o = precopy_defaults();
	o.throttle = PRECOPY_DIRTY_LIMIT;
	EQ(precopy_migrate(&g, o, &r), KVMSIM_EINVAL);
	o = precopy_defaults();
	o.dirty = "nothing";
	EQ(precopy_migrate(&g, o, &r), KVMSIM_ENOENT);
	o = precopy_defaults();
	o.interrupted = &interrupted;
	EQ(precopy_migrate(&g, o, &r), KVMSIM_EINTR);
	EQ(r.n_rounds, 0);
	/* stores that are lost are found */
	o = precopy_defaults();
	o.dirty = "lossy";
	o.check = true;
	EQ(precopy_migrate(&g, o, &r), KVMSIM_ECHECK);
}

int main(void)
{
	static CU_TestInfo tests[] = {{"the same twice", test_again},
				      {"refused, interrupted, lossy", test_refused},
				      CU_TEST_INFO_NULL};
	int code;

	if (!precopy_open())
		return 1;
	code = test_main("precopy_refused", tests);
	precopy_close();
	return code;
}
