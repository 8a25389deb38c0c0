// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/csv.h"
#include "analysis/evidence.h"
#include "analysis/stats.h"
#include "model/sim/profile.h"

#define SPS_PER_SLOT_PAGE 512
/* kvm_mmu_calculate_default_mmu_pages(): never fewer. */
#define MIN_ALLOC_MMU_PAGES 64
/* Background pages of the second run, to find the price of one. */
#define PROBE_PAGES 1024

static const char *const columns[] = {"series", "metric", "unit",  "setup", "x_name",
				      "x",	"policy", "value", NULL};
enum { COL_SERIES, COL_METRIC, COL_UNIT, COL_SETUP, COL_X_NAME, COL_X, COL_POLICY, COL_VALUE };

/* The number after @key in @setup; false when @key is not there. */
static bool setup_number(const char *setup, const char *key, uint64_t *out)
{
	const char *at = strstr(setup, key);
	char *end;

	if (!at || at[strlen(key)] < '0' || at[strlen(key)] > '9')
		return false;
	*out = strtoull(at + strlen(key), &end, 10);
	return true;
}

static int add_row(void *ctx, const struct csv_row *in)
{
	struct evidence *e = ctx;
	const struct recipe *r = e->recipe;
	struct evidence_row row = {.line = in->line}, *grown;
	int err;

	row.series = recipe_series(r, in->field[COL_SERIES]);
	row.policy = recipe_policy(r, in->field[COL_POLICY]);
	if (!row.series || !row.policy ||
	    strcmp(in->field[COL_METRIC], *row.series->metric ? row.series->metric : r->metric) ||
	    strcmp(in->field[COL_UNIT], r->unit)) {
		e->other++;
		return 0;
	}
	if (strcmp(in->field[COL_X_NAME], "nr_dirty"))
		return csv_complain(in, "x_name is %s, not nr_dirty", in->field[COL_X_NAME]);
	if (!setup_number(in->field[COL_SETUP], "slot npages=", &row.slot_pages))
		return csv_complain(in, "no \"slot npages=N\" in the setup");
	row.run = row.series->run;
	setup_number(in->field[COL_SETUP], " run=", &row.run);
	err = csv_u64(in, COL_X, &row.nr_dirty);
	err = err ? err : csv_double(in, COL_VALUE, &row.measured);
	if (err)
		return err;
	if (!(row.measured > 0) || row.nr_dirty > row.slot_pages)
		return csv_complain(in, "a value is more than 0, x at most the slot's pages");
	row.fitted = !row.policy->identify && recipe_list_has(&row.series->fit, row.nr_dirty);
	grown = realloc(e->rows, (e->n_rows + 1) * sizeof(*grown));
	if (!grown)
		return KVMSIM_ENOMEM;
	e->rows = grown;
	row.series_name = strdup(in->field[COL_SERIES]);
	if (!row.series_name)
		return KVMSIM_ENOMEM;
	e->rows[e->n_rows++] = row;
	return 0;
}

int evidence_load(const char *path, const struct recipe *recipe,
		  const struct kvmsim_errsink *errors, struct evidence **out)
{
	struct evidence *e = calloc(1, sizeof(*e));
	int err;

	*out = NULL;
	if (!e)
		return KVMSIM_ENOMEM;
	e->recipe = recipe;
	e->path = strdup(path);
	err = e->path ? csv_read(path, columns, errors, add_row, e) : KVMSIM_ENOMEM;
	if (!err && !e->n_rows)
		err = kvmsim_err(errors, KVMSIM_EPARSE,
				 "%s: no row of a series, policy, metric and unit that %s names",
				 path, recipe->name);
	if (err) {
		evidence_free(e);
		return err;
	}
	*out = e;
	return 0;
}

void evidence_free(struct evidence *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n_rows; i++)
		free(e->rows[i].series_name);
	free(e->rows);
	free(e->path);
	free(e);
}

int evidence_run_row(const struct evidence *e, const struct evidence_row *row, uint64_t background,
		     const struct profile *profile, const struct kvmsim_errsink *errors,
		     struct evidence_prediction *out)
{
	const struct evidence_scene scene = {
		.slot_pages = row->slot_pages,
		.nr_dirty = row->nr_dirty,
		.run = row->run,
		.huge = row->series->huge,
		.preset = e->recipe->preset,
		.dirty = row->policy->dirty,
		.background = background,
		.harvests = e->recipe->harvests,
		.profile = profile,
		.errors = errors,
	};

	return evidence_run(&scene, out);
}

/* Standard error of a predicted time: sqrt(n' C n) over the counts n and the covariance C. */
static double price_sigma(const struct evidence_prediction *p, const struct profile *profile)
{
	double variance = 0;

	for (uint16_t a = 0; a < N_COUNTS; a++)
		for (uint16_t b = 0; b < N_COUNTS; b++)
			variance += p->count[a] * p->count[b] * profile_covariance(profile, a, b);
	return variance > 0 ? sqrt(variance / (1 << PRICE_SHIFT)) : 0;
}

/* The number of active shadow pages at which the model takes the measured time: two runs give the
 * price of one more, which is the same for all. */
static int identify(const struct evidence *e, struct evidence_row *row,
		    const struct profile *profile, const struct kvmsim_errsink *errors)
{
	const struct recipe *r = e->recipe;
	struct evidence_prediction more;
	int err = evidence_run_row(e, row, 0, profile, errors, &row->prediction);

	err = err ? err : evidence_run_row(e, row, PROBE_PAGES, profile, errors, &more);
	if (err)
		return err;
	row->per_page = (more.cycles - row->prediction.cycles) / PROBE_PAGES;
	row->shadow_pages = -1;
	if (row->per_page > 0)
		row->shadow_pages = row->prediction.shadow_pages +
				    (row->measured - row->prediction.cycles) / row->per_page;
	row->pages_min = (row->slot_pages + SPS_PER_SLOT_PAGE - 1) / SPS_PER_SLOT_PAGE;
	row->pages_max = r->guest_pages * r->mmu_pages_permille / 1000;
	if (row->pages_max < MIN_ALLOC_MMU_PAGES)
		row->pages_max = MIN_ALLOC_MMU_PAGES;
	return 0;
}

int evidence_predict(struct evidence *e, const struct profile *profile,
		     const struct kvmsim_errsink *errors)
{
	for (size_t i = 0; i < e->n_rows; i++) {
		struct evidence_row *row = &e->rows[i];
		int err;

		if (row->policy->identify)
			err = identify(e, row, profile, errors);
		else
			err = evidence_run_row(e, row, 0, profile, errors, &row->prediction);
		if (err)
			return err;
		row->sigma = price_sigma(&row->prediction, profile);
		row->error = row->prediction.cycles / row->measured - 1;
	}
	return 0;
}

/* Adds an error to a set of them: how many, how many within 15%, the worst. */
static void add_error(double error, double *all, size_t *n, size_t *n_within15, double *worst)
{
	double x = fabs(error);

	all[(*n)++] = x;
	*n_within15 += x <= 0.15;
	*worst = x > *worst ? x : *worst;
}

int evidence_judge(const struct evidence *e, struct evidence_judgement *out)
{
	const struct recipe *r = e->recipe;
	double *abs_error = calloc(2 * e->n_rows, sizeof(*abs_error));
	double *shown = abs_error + e->n_rows;
	int err = 0;

	*out = (struct evidence_judgement){0};
	if (!abs_error)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < e->n_rows; i++) {
		const struct evidence_row *row = &e->rows[i];

		if (row->policy->identify) {
			out->n_identified++;
			out->n_out_of_range += !(row->shadow_pages >= row->pages_min &&
						 row->shadow_pages <= row->pages_max);
		} else if (row->fitted) {
			out->n_fitted++;
		} else if (!row->series->unjudged) {
			add_error(row->error, abs_error, &out->n, &out->n_within15, &out->worst);
		} else {
			add_error(row->error, shown, &out->n_shown, &out->n_shown_within15,
				  &out->shown_worst);
		}
	}
	out->cannot_tell = !out->n;
	if (out->n)
		err = stats_median(abs_error, out->n, &out->median);
	if (!err && out->n_shown)
		err = stats_median(shown, out->n_shown, &out->shown_median);
	out->pass = out->n && 100 * out->median <= r->median && 100 * out->worst <= r->worst &&
		    100.0 * out->n_within15 >= r->within15 * out->n && !out->n_out_of_range;
	free(abs_error);
	return err;
}

char *evidence_beside(const char *recipe_path, const char *name)
{
	const char *slash = strrchr(recipe_path, '/');
	size_t dir = slash && name[0] != '/' ? slash + 1 - recipe_path : 0;
	char *path = malloc(dir + strlen(name) + 1);

	if (path) {
		memcpy(path, recipe_path, dir);
		strcpy(path + dir, name);
	}
	return path;
}
