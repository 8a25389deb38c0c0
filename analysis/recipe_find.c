// SPDX-License-Identifier: GPL-3.0-or-later
/* What a recipe says of something by its name. */
#include <string.h>

#include "analysis/recipe.h"

const struct recipe_series *recipe_series(const struct recipe *r, const char *name)
{
	for (size_t i = 0; i < r->n_series; i++)
		if (!strcmp(r->series[i].name, name))
			return &r->series[i];
	return NULL;
}

const struct recipe_policy *recipe_policy(const struct recipe *r, const char *name)
{
	for (size_t i = 0; i < r->n_policies; i++)
		if (!strcmp(r->policy[i].name, name))
			return &r->policy[i];
	return NULL;
}

const struct recipe_miss *recipe_miss(const struct recipe *r, const char *series,
				      const char *metric)
{
	for (size_t i = 0; i < r->n_misses; i++)
		if (!strcmp(r->miss[i].series, series) &&
		    !strcmp(r->miss[i].metric, metric ? metric : ""))
			return &r->miss[i];
	return NULL;
}

static bool has_name(const char (*names)[RECIPE_NAME], size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

bool recipe_fits_case(const struct recipe *r, const char *test_case)
{
	return has_name(r->fitted_case, r->n_cases, test_case);
}

bool recipe_passes_over(const struct recipe *r, const char *phase)
{
	return has_name(r->passed_over, r->n_passed_over, phase);
}

bool recipe_list_has(const struct recipe_list *l, uint64_t value)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->value[i] == value)
			return true;
	return false;
}

size_t recipe_fitted(const struct recipe *r)
{
	return r->n_groups + (r->latent.n > 1) + r->contended;
}
