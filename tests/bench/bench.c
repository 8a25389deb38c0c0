// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double aside; /* seconds in bench_aside() */

uint64_t bench_aside(bench_fn fn, void *arg)
{
	double start = cpu_seconds();
	uint64_t n = fn(arg);

	aside += cpu_seconds() - start;
	return n;
}

static int by_rate(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void bench_run(const char *name, const char *unit, bench_fn fn, void *arg, const char *bound)
{
	double rate[BENCH_ROUNDS];

	fn(arg);
	for (int i = 0; i < BENCH_ROUNDS; i++) {
		double start = cpu_seconds();
		uint64_t n;

		aside = 0;
		n = fn(arg);
		rate[i] = (double)n / (cpu_seconds() - start - aside) / 1e6;
	}
	qsort(rate, BENCH_ROUNDS, sizeof(rate[0]), by_rate);
	printf("%-36s %8.1f M %s/s (%.1f to %.1f), %.1f ns each; bound by %s\n", name,
	       rate[BENCH_ROUNDS / 2], unit, rate[0], rate[BENCH_ROUNDS - 1],
	       1e3 / rate[BENCH_ROUNDS / 2], bound);
	fflush(stdout);
}
