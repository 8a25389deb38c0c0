// SPDX-License-Identifier: GPL-3.0-or-later
/* The profile that a recipe and its fitted prices make, as text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/recipe.h"
#include "model/params.h"
#include "model/sim/profile.h"

/* Digits after the point as profiles have them. */
static void put_decimal(FILE *f, double v)
{
	if (fabs(v) < 5e-7)
		v = 0; /* no "-0.000000" */
	fprintf(f, "%.6f\n", v);
}

/* The group that a count is priced in, or NULL; *i is its index there. */
static const struct recipe_group *find_group(const struct recipe *r, uint16_t count, size_t *i)
{
	for (size_t g = 0; g < r->n_groups; g++)
		for (*i = 0; *i < r->group[g].n; ++*i)
			if (r->group[g].count[*i] == count)
				return &r->group[g];
	return NULL;
}

static const struct recipe_group *group_of(const struct recipe *r, uint16_t count)
{
	size_t i;

	return find_group(r, count, &i);
}

static void put_prices(FILE *f, const struct recipe *r, const double *price, const double *cov)
{
	fprintf(f, "\n[price]\n");
	for (uint16_t c = 0; c < N_COUNTS; c++) {
		if (!r->is_fixed[c] && !group_of(r, c))
			continue;
		fprintf(f, "%s = ", model_vocabulary.counts[c]);
		put_decimal(f, r->is_fixed[c] ? r->fixed[c] : price[c]);
	}
	if (!cov)
		return;
	fprintf(f, "\n[sigma]\n");
	for (uint16_t c = 0; c < N_COUNTS; c++) {
		if (!group_of(r, c))
			continue;
		fprintf(f, "%s = ", model_vocabulary.counts[c]);
		put_decimal(f, sqrt(cov[c * N_COUNTS + c]));
	}
}

static void put_sources(FILE *f, const struct recipe *r, const char *source)
{
	fprintf(f, "\n[source]\n");
	for (uint16_t c = 0; c < N_COUNTS; c++) {
		size_t i;
		const struct recipe_group *g = find_group(r, c, &i);

		if (g && i >= g->n_fit)
			fprintf(f, "%s = derived: %g/%g of %s%s%s\n", model_vocabulary.counts[c],
				g->weight[i], g->weight[0], model_vocabulary.counts[g->count[0]],
				r->source[c] ? ": " : "", r->source[c] ? r->source[c] : "");
		else if (g)
			fprintf(f, "%s = %s\n", model_vocabulary.counts[c], source);
		else if (r->is_fixed[c])
			fprintf(f, "%s = %s\n", model_vocabulary.counts[c],
				r->source[c] ? r->source[c] : "assumed");
	}
}

static void put_covariance(FILE *f, const double *cov)
{
	fprintf(f, "\n[covariance]\n");
	for (uint16_t a = 0; a < N_COUNTS; a++) {
		for (uint16_t b = a; b < N_COUNTS; b++) {
			double v = cov[a * N_COUNTS + b];

			if (fabs(v) < 5e-7)
				continue;
			fprintf(f, "%s,%s = ", model_vocabulary.counts[a],
				model_vocabulary.counts[b]);
			put_decimal(f, v);
		}
	}
}

static void put_groups(FILE *f, const struct recipe *r)
{
	bool title = false;

	for (size_t g = 0; g < r->n_groups; g++) {
		if (r->group[g].n < 2)
			continue;
		fprintf(f, "%s%s =", title ? "" : "\n[group]\n", r->group[g].name);
		title = true;
		for (size_t i = 0; i < r->group[g].n; i++)
			fprintf(f, " %s", model_vocabulary.counts[r->group[g].count[i]]);
		fprintf(f, "\n");
	}
}

static void put_params(FILE *f, const struct recipe *r, uint64_t latent)
{
	fprintf(f, "\n[param]\n");
	for (size_t i = 0; model_params[i].name; i++) {
		bool is_latent = r->latent.n && i == r->latent_param;

		if (is_latent || r->param_given[i])
			fprintf(f, "%s = %llu\n", model_params[i].name,
				(unsigned long long)(is_latent ? latent : r->param[i]));
	}
}

char *recipe_profile_text(const struct recipe *r, const double *price, const double *cov,
			  uint64_t latent, const char *source)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fprintf(f,
		"; SPDX-License-Identifier: GPL-2.0-or-later\n"
		"; Written by kvmsim calibrate: edit the recipe, not this.\n"
		"[machine]\nname = %s\nunit = %s\nhz = %llu\nsource = %s\n",
		r->machine, r->machine_unit, (unsigned long long)r->hz, r->machine_source);
	put_prices(f, r, price, cov);
	put_sources(f, r, source);
	if (cov)
		put_covariance(f, cov);
	put_groups(f, r);
	put_params(f, r, latent);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

int recipe_check_profile(const struct recipe *r, const struct profile *p,
			 const struct kvmsim_errsink *errors)
{
	for (size_t i = 0; model_params[i].name; i++) {
		const char *name = model_params[i].name;
		uint64_t has = profile_param(p, name);
		bool is_latent = r->latent.n && i == r->latent_param;

		if (is_latent ? recipe_list_has(&r->latent, has)
			      : !r->param_given[i] || has == r->param[i])
			continue;
		return kvmsim_err(errors, KVMSIM_EPARSE,
				  "%s: profile %s has another %s, %llu, and is not this recipe's: "
				  "write it with kvmsim calibrate",
				  r->name, profile_name(p), name, (unsigned long long)has);
	}
	for (uint16_t c = 0; c < N_COUNTS; c++) {
		double has = (double)profile_price(p, c) / (1 << PRICE_SHIFT);

		if (!r->is_fixed[c] || fabs(has - r->fixed[c]) <= 1.0 / (1 << PRICE_SHIFT))
			continue;
		return kvmsim_err(errors, KVMSIM_EPARSE,
				  "%s: profile %s has another price of %s, %g, and is not this "
				  "recipe's: write it with kvmsim calibrate",
				  r->name, profile_name(p), model_vocabulary.counts[c], has);
	}
	return 0;
}
