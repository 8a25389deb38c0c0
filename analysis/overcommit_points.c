// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "analysis/overcommit_report.h"
#include "analysis/pool.h"
#include "model/sim/profile.h"

#define LEVEL 0.95

static double seconds(const struct overcommit_point *p, uint32_t replicate)
{
	return (double)p->r[replicate].measured / (double)profile_hz(p->opts.profile);
}

double overcommit_rate(const struct overcommit_point *p, uint32_t replicate)
{
	const struct overcommit_result *r = &p->r[replicate];
	uint32_t n = p->opts.beside ? 1 : r->n_vms;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += r->vm[i].operations;
	return (double)sum / n / seconds(p, replicate);
}

static struct stats_estimate estimate(const double *x, uint32_t n)
{
	struct stats_estimate e = {.value = stats_mean(x, n)};

	e.lo = e.hi = e.value;
	if (n > 1)
		stats_t_interval(x, n, LEVEL, &e);
	return e;
}

#define MAX_REPLICATES 1000

struct stats_estimate overcommit_mean(const struct overcommit_point *p, uint32_t replicates)
{
	double x[MAX_REPLICATES];

	for (uint32_t i = 0; i < replicates; i++)
		x[i] = overcommit_rate(p, i);
	return estimate(x, replicates);
}

struct stats_estimate overcommit_relative(const struct overcommit_point *p,
					  const struct overcommit_point *to, uint32_t replicates)
{
	double x[MAX_REPLICATES];

	for (uint32_t i = 0; i < replicates; i++) {
		double base = overcommit_rate(to, i);

		x[i] = base > 0 ? overcommit_rate(p, i) / base : 0;
	}
	return estimate(x, replicates);
}

/* ---- runs ---- */

struct runs {
	struct overcommit_point *p;
	uint32_t replicates;
};

static int work(void *ctx, size_t i, const struct kvmsim_errsink *errors, void *out)
{
	const struct runs *runs = ctx;
	struct overcommit_opts opts = runs->p[i / runs->replicates].opts;

	opts.replicate = (uint32_t)(i % runs->replicates);
	opts.errors = errors;
	return overcommit_run(&opts, out);
}

static int done(void *ctx, size_t i, const void *result)
{
	const struct runs *runs = ctx;

	memcpy(&runs->p[i / runs->replicates].r[i % runs->replicates], result,
	       sizeof(struct overcommit_result));
	return 0;
}

int overcommit_points_run(struct overcommit_point *p, size_t n, uint32_t replicates,
			  unsigned workers)
{
	struct runs runs = {p, replicates};
	const struct pool pool = {.n = n * replicates,
				  .bytes = sizeof(struct overcommit_result),
				  .workers = workers,
				  .work = work,
				  .done = done,
				  .ctx = &runs};

	for (size_t i = 0; i < n; i++) {
		p[i].r = calloc(replicates, sizeof(*p[i].r));
		if (!p[i].r)
			return kvmsim_err(&cli_errors, KVMSIM_ENOMEM, "out of memory");
	}
	return pool_run(&pool, &cli_errors);
}

void overcommit_points_free(struct overcommit_point *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(p[i].r);
}
