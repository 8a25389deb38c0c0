// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/precopy_util.h"

#include <stdio.h>
#include <string.h>

#include "analysis/cli.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"
#include "workloads/scenario.h"

static struct profile *unit;
char precopy_message[256];

static void keep_message(void *ctx, enum kvmsim_error err, const char *text)
{
	(void)ctx;
	(void)err;
	snprintf(precopy_message, sizeof(precopy_message), "%s", text);
}
static const struct kvmsim_errsink sink = {.emit = keep_message};

bool precopy_open(void)
{
	return !cli_profile("unit", &unit);
}

void precopy_close(void)
{
	profile_free(unit);
}

struct precopy_opts precopy_defaults(void)
{
	return (struct precopy_opts){.paging = PAGING_SHADOW,
				     .dirty = "mask",
				     .profile = unit,
				     .bandwidth = 400000000,
				     .downtime_us = 20000,
				     .max_collections = 100,
				     .throttle_initial = 20,
				     .throttle_increment = 10,
				     .throttle_max = 99,
				     .trigger_percent = 50,
				     .seed = 1,
				     .errors = &sink};
}

int precopy_migrate(const struct precopy_writer *g, struct precopy_opts o, struct precopy_result *r)
{
	const struct precopy_slot slot = {.npages = g->pages,
					  .host_level = o.slots ? o.slots->host_level : 1,
					  .logged = true};
	struct op_source sources[PRECOPY_VCPUS];
	struct scenario *s;
	char text[512];
	int err;

	snprintf(
		text, sizeof(text),
		"[scenario]\nworkload = writer\nvcpus = %d\nslots = ram:0:%llu\nrounds = 10000000\n"
		"interval = 1000000\nstores = %llu\nworking_set = %llu\nsequential = %d\n",
		PRECOPY_VCPUS, (unsigned long long)g->pages, (unsigned long long)g->stores,
		(unsigned long long)g->working_set, g->sequential);
	CU_ASSERT_EQUAL(scenario_parse(text, strlen(text), "test.ini", &sink, &s), 0);
	for (uint32_t i = 0; i < PRECOPY_VCPUS; i++)
		CU_ASSERT_EQUAL(scenario_source(s, i, 1, 0, &sources[i]), 0);
	o.slots = &slot;
	o.n_slots = 1;
	o.sources = sources;
	o.n_vcpus = PRECOPY_VCPUS;
	precopy_message[0] = '\0';
	err = precopy_run(&o, r);
	for (uint32_t i = 0; i < PRECOPY_VCPUS; i++)
		scenario_source_free(&sources[i]);
	scenario_free(s);
	return err;
}
