/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_PRECOPY_UTIL_H
#define KVMSIM_TESTS_PRECOPY_UTIL_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/precopy.h"

/* What the tests of pre-copy share: a guest that stores at a constant rate. */

#define PRECOPY_VCPUS 2

struct precopy_writer {
	uint64_t pages, working_set; /* of the slot; 0: all of it */
	uint64_t stores;	     /* per millisecond, of both vCPUs */
	bool sequential;
};

/* Makes the profile in which every count costs 1 ns, and gives it back; false: there is none. */
bool precopy_open(void);
void precopy_close(void);

/* 400 MB/s, a downtime of 20 ms, policy mask, no throttle. */
struct precopy_opts precopy_defaults(void);
/* Migrates the guest; @o has the rest. What is wrong is in precopy_message. */
int precopy_migrate(const struct precopy_writer *g, struct precopy_opts o,
		    struct precopy_result *r);
extern char precopy_message[256];

#endif
