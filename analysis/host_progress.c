// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/host_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define QUIET_SECONDS 2

static void show(void *ctx, uint64_t bytes)
{
	struct host_progress *p = ctx;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec - p->start.tv_sec <= QUIET_SECONDS)
		return;
	fprintf(stderr, "\r%" PRIu64 " MiB", bytes >> 20);
	p->said = true;
}

void (*host_progress_begin(struct host_progress *p))(void *ctx, uint64_t bytes)
{
	p->said = false;
	clock_gettime(CLOCK_MONOTONIC, &p->start);
	return isatty(STDERR_FILENO) ? show : NULL;
}

void host_progress_end(const struct host_progress *p)
{
	if (p->said)
		fputs("\r                    \r", stderr);
}
