// SPDX-License-Identifier: GPL-3.0-or-later
#include <ini.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/recipe_parse.h"
#include "model/params.h"

static int on_evidence(struct recipe_parse *ps, const char *key, const char *value)
{
	struct recipe *r = ps->r;
	const struct {
		const char *key;
		char *to;
	} text[] = {{"file", r->file},	     {"metric", r->metric}, {"unit", r->unit},
		    {"profile", r->profile}, {"preset", r->preset}, {"runs", r->runs}};

	for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++)
		if (!strcmp(key, text[i].key))
			return recipe_text_value(ps, key, value, text[i].to, RECIPE_TEXT);
	if (!strcmp(key, "harvests"))
		return recipe_u64_value(ps, key, value, 1000, &r->harvests);
	if (!strcmp(key, "quick"))
		return recipe_u64_value(ps, key, value, 512, &r->quick);
	if (!strcmp(key, "published_bytes"))
		return recipe_u64_value(ps, key, value, 1ull << 46, &r->published_bytes);
	if (!strcmp(key, "bytes"))
		return recipe_u64_value(ps, key, value, 1ull << 46, &r->bytes);
	return recipe_fail(ps, "[evidence] has no %s", key);
}

static int on_policy(struct recipe_parse *ps, const char *key, const char *value)
{
	struct recipe *r = ps->r;
	struct recipe_policy *p = &r->policy[r->n_policies];
	size_t len = strcspn(value, " \t");
	const char *rest = value + len + strspn(value + len, " \t");

	if (r->n_policies == RECIPE_MAX_POLICIES)
		return recipe_fail(ps, "more than %d policies", RECIPE_MAX_POLICIES);
	if (!len || len >= sizeof(p->dirty) || strlen(key) >= sizeof(p->name) ||
	    (*rest && strcmp(rest, "identify")))
		return recipe_fail(ps, "a policy is NAME = DIRTY or NAME = DIRTY identify");
	strcpy(p->name, key);
	memcpy(p->dirty, value, len);
	p->identify = *rest;
	r->n_policies++;
	return 1;
}

static int on_series(struct recipe_parse *ps, const char *name, const char *key, char *value)
{
	struct recipe *r = ps->r;
	struct recipe_series *s = NULL;

	for (size_t i = 0; i < r->n_series; i++)
		if (!strcmp(r->series[i].name, name))
			s = &r->series[i];
	if (!s) {
		if (r->n_series == RECIPE_MAX_SERIES)
			return recipe_fail(ps, "more than %d series", RECIPE_MAX_SERIES);
		s = &r->series[r->n_series++];
		*s = (struct recipe_series){.run = 1};
		if (!recipe_text_value(ps, "the name of a series", name, s->name, sizeof(s->name)))
			return 0;
	}
	if (!strcmp(key, "run"))
		return recipe_u64_value(ps, key, value, 1u << 30, &s->run);
	if (!strcmp(key, "fit"))
		return recipe_list_value(ps, key, value, &s->fit);
	if (!strcmp(key, "metric"))
		return recipe_text_value(ps, key, value, s->metric, sizeof(s->metric));
	if (!strcmp(key, "pages")) {
		s->huge = !strcmp(value, "2m");
		return s->huge || !strcmp(value, "4k") ? 1 : recipe_fail(ps, "pages is 4k or 2m");
	}
	if (strcmp(key, "judged"))
		return recipe_fail(ps, "a series has no %s", key);
	s->unjudged = !strcmp(value, "no");
	return s->unjudged || !strcmp(value, "yes") ? 1 : recipe_fail(ps, "judged is yes or no");
}

static int on_miss(struct recipe_parse *ps, const char *name, const char *key, const char *value)
{
	struct recipe *r = ps->r;
	struct recipe_miss *m = NULL;

	for (size_t i = 0; i < r->n_misses; i++)
		if (!strcmp(r->miss[i].name, name))
			m = &r->miss[i];
	if (!m) {
		if (r->n_misses == RECIPE_MAX_MISSES)
			return recipe_fail(ps, "more than %d misses", RECIPE_MAX_MISSES);
		m = &r->miss[r->n_misses++];
		if (!recipe_text_value(ps, "the name of a miss", name, m->name, sizeof(m->name)))
			return 0;
	}
	if (!strcmp(key, "series"))
		return recipe_text_value(ps, key, value, m->series, sizeof(m->series));
	if (!strcmp(key, "metric"))
		return recipe_text_value(ps, key, value, m->metric, sizeof(m->metric));
	if (!strcmp(key, "why"))
		return recipe_text_value(ps, key, value, m->why, sizeof(m->why));
	if (!strcmp(key, "median"))
		return recipe_decimal_value(ps, key, value, &m->median);
	if (!strcmp(key, "wrong"))
		return recipe_u64_value(ps, key, value, 1000, &m->wrong);
	return recipe_fail(ps, "a miss has no %s", key);
}

static int on_machine(struct recipe_parse *ps, const char *key, const char *value)
{
	struct recipe *r = ps->r;

	if (!strcmp(key, "name"))
		return recipe_text_value(ps, key, value, r->machine, sizeof(r->machine));
	if (!strcmp(key, "unit"))
		return recipe_text_value(ps, key, value, r->machine_unit, sizeof(r->machine_unit));
	if (!strcmp(key, "source"))
		return recipe_text_value(ps, key, value, r->machine_source,
					 sizeof(r->machine_source));
	if (!strcmp(key, "hz"))
		return recipe_u64_value(ps, key, value, UINT64_MAX, &r->hz);
	return recipe_fail(ps, "[machine] has no %s", key);
}

/* The counts of a group, or further ones. */
static int on_counts(struct recipe_parse *ps, struct recipe_group *g, char *value)
{
	char *save;

	for (char *w = strtok_r(value, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		char *star = strchr(w, '*');
		uint16_t c;

		if (star)
			*star = '\0';
		if (!recipe_find_count(ps, w, &c) || !recipe_once(ps, "group's or fixed count", w))
			return 0;
		g->count[g->n] = c;
		g->weight[g->n] = 1;
		if (star && !recipe_decimal_value(ps, w, star + 1, &g->weight[g->n]))
			return 0;
		if (!(g->weight[g->n++] > 0))
			return recipe_fail(ps, "a weight is more than 0");
	}
	return 1;
}

static int on_group(struct recipe_parse *ps, const char *key, char *value)
{
	struct recipe *r = ps->r;
	struct recipe_group *g = &r->group[r->n_groups];

	if (r->n_groups == RECIPE_MAX_GROUPS)
		return recipe_fail(ps, "more than %d groups", RECIPE_MAX_GROUPS);
	if (!recipe_text_value(ps, "the name of a group", key, g->name, sizeof(g->name)) ||
	    !on_counts(ps, g, value))
		return 0;
	r->n_groups++;
	g->n_fit = g->n;
	return g->n ? 1 : recipe_fail(ps, "group %s has no count", key);
}

static int on_derived(struct recipe_parse *ps, const char *key, char *value)
{
	for (size_t i = 0; i < ps->r->n_groups; i++)
		if (!strcmp(ps->r->group[i].name, key))
			return on_counts(ps, &ps->r->group[i], value);
	return recipe_fail(ps, "there is no [group] %s above", key);
}

static int on_bounds(struct recipe_parse *ps, const char *key, const char *value)
{
	struct recipe *r = ps->r;

	if (!strcmp(key, "fitted"))
		return recipe_u64_value(ps, key, value, RECIPE_MAX_GROUPS + 3, &r->max_fitted);
	if (!strcmp(key, "contended"))
		return recipe_u64_value(ps, key, value, RECIPE_MAX_VALUES, &r->contended);
	if (!strcmp(key, "noise"))
		return recipe_decimal_value(ps, key, value, &r->noise);
	if (!strcmp(key, "guest_pages"))
		return recipe_u64_value(ps, key, value, 1ull << 40, &r->guest_pages);
	if (!strcmp(key, "mmu_pages_permille"))
		return recipe_u64_value(ps, key, value, 1000, &r->mmu_pages_permille);
	if (!strcmp(key, "median"))
		return recipe_decimal_value(ps, key, value, &r->median);
	if (!strcmp(key, "worst"))
		return recipe_decimal_value(ps, key, value, &r->worst);
	if (!strcmp(key, "within10"))
		return recipe_decimal_value(ps, key, value, &r->within10);
	if (!strcmp(key, "within15"))
		return recipe_decimal_value(ps, key, value, &r->within15);
	return recipe_fail(ps, "[bounds] has no %s", key);
}

static int on_name(struct recipe_parse *ps, const char *key, char (*to)[RECIPE_NAME], size_t *n,
		   size_t max)
{
	if (*n == max)
		return recipe_fail(ps, "more than %zu names", max);
	return recipe_text_value(ps, "a name", key, to[(*n)++], RECIPE_NAME);
}

static int on_case(struct recipe_parse *ps, const char *key, const char *value)
{
	if (strcmp(value, "fitted"))
		return recipe_fail(ps, "a case is fitted or not named");
	return on_name(ps, key, ps->r->fitted_case, &ps->r->n_cases, RECIPE_MAX_CASES);
}

static int on_price(struct recipe_parse *ps, const char *section, const char *key,
		    const char *value)
{
	struct recipe *r = ps->r;
	uint16_t c;

	if (!recipe_find_count(ps, key, &c))
		return 0;
	if (!strcmp(section, "source")) {
		r->source[c] = strdup(value);
		if (!r->source[c])
			ps->err = KVMSIM_ENOMEM;
		return !ps->err;
	}
	r->is_fixed[c] = true;
	return recipe_once(ps, "group's or fixed count", key) &&
	       recipe_decimal_value(ps, key, value, &r->fixed[c]);
}

static int on_param(struct recipe_parse *ps, const char *key, const char *value)
{
	struct recipe *r = ps->r;
	size_t i;

	if (!recipe_find_param(ps, key, &i) ||
	    !recipe_u64_value(ps, key, value, model_params[i].max, &r->param[i]))
		return 0;
	if (r->param[i] < model_params[i].min)
		return recipe_fail(ps, "%s is at least %llu", key,
				   (unsigned long long)model_params[i].min);
	r->param_given[i] = true;
	return 1;
}

static int on_latent(struct recipe_parse *ps, const char *key, char *value)
{
	struct recipe *r = ps->r;

	if (r->latent.n)
		return recipe_fail(ps, "there is one latent param");
	if (!recipe_find_param(ps, key, &r->latent_param) ||
	    !recipe_list_value(ps, key, value, &r->latent))
		return 0;
	for (size_t i = 0; i < r->latent.n; i++)
		if (r->latent.value[i] < model_params[r->latent_param].min ||
		    r->latent.value[i] > model_params[r->latent_param].max)
			return recipe_fail(ps, "%llu is out of the range of %s",
					   (unsigned long long)r->latent.value[i], key);
	return 1;
}

static int on_key(void *user, const char *section, const char *key, const char *value)
{
	struct recipe_parse *ps = user;
	int ok = 0;

	if (ps->err || !recipe_once(ps, section, key))
		return 0;
	char *copy = strdup(value);

	if (!copy)
		ps->err = KVMSIM_ENOMEM;
	else if (!strcmp(section, "evidence"))
		ok = on_evidence(ps, key, value);
	else if (!strcmp(section, "policy"))
		ok = on_policy(ps, key, value);
	else if (!strncmp(section, "series ", 7))
		ok = on_series(ps, section + 7, key, copy);
	else if (!strncmp(section, "miss ", 5))
		ok = on_miss(ps, section + 5, key, value);
	else if (!strcmp(section, "machine"))
		ok = on_machine(ps, key, value);
	else if (!strcmp(section, "param"))
		ok = on_param(ps, key, value);
	else if (!strcmp(section, "fixed") || !strcmp(section, "source"))
		ok = on_price(ps, section, key, value);
	else if (!strcmp(section, "group"))
		ok = on_group(ps, key, copy);
	else if (!strcmp(section, "derived"))
		ok = on_derived(ps, key, copy);
	else if (!strcmp(section, "latent"))
		ok = on_latent(ps, key, copy);
	else if (!strcmp(section, "cases"))
		ok = on_case(ps, key, value);
	else if (!strcmp(section, "phases"))
		ok = on_name(ps, key, ps->r->passed_over, &ps->r->n_passed_over, RECIPE_MAX_PHASES);
	else if (!strcmp(section, "bounds"))
		ok = on_bounds(ps, key, value);
	else
		recipe_fail(ps, "unknown section [%s]", section);
	free(copy);
	return ok;
}

/* The same for one whose rows are runs of memstress. */
static int check_runs(struct recipe_parse *ps)
{
	const struct recipe *r = ps->r;

	if (!*r->file || !*r->profile || !r->published_bytes || !r->bytes)
		recipe_fail(ps, "[evidence] gives file, runs, profile, published_bytes and bytes");
	else if (*r->metric || *r->unit || *r->preset || r->harvests || r->n_policies ||
		 r->n_series || r->latent.n)
		recipe_fail(ps, "metric, unit, preset, harvests, [policy], [series] and [latent] "
				"do not go with runs");
	else if (r->n_groups &&
		 (!*r->machine || !*r->machine_unit || !*r->machine_source || !r->hz))
		recipe_fail(ps, "[machine] gives name, unit, hz and source");
	else if (recipe_fitted(r) != r->max_fitted)
		recipe_fail(ps, "%zu numbers are fitted, [bounds] fitted says %llu",
			    recipe_fitted(r), (unsigned long long)r->max_fitted);
	for (size_t i = 0; i < r->n_misses && !ps->err; i++)
		if (!*r->miss[i].series || !*r->miss[i].why || !(r->miss[i].median > 0))
			recipe_fail(ps, "[miss %s] gives series, median and why", r->miss[i].name);
	return ps->err;
}

/* The same for one whose rows are a matrix's. */
static int check_matrix(struct recipe_parse *ps)
{
	const struct recipe *r = ps->r;

	if (!*r->file || !*r->profile || !*r->machine || !*r->machine_unit || !*r->machine_source ||
	    !r->hz || !r->n_groups || !(r->median > 0) || !(r->within10 > 0))
		recipe_fail(ps, "[evidence] gives file and profile, [machine] name, unit, hz and "
				"source, [bounds] median and within10; there is a [group]");
	else if (*r->metric || *r->unit || *r->preset || r->harvests || r->n_policies ||
		 r->n_series || r->latent.n || r->n_misses || r->contended || *r->runs)
		recipe_fail(ps, "metric, unit, preset, harvests, runs, [policy], [series], [miss] "
				"and [latent] do not go with [cases]");
	else if (recipe_fitted(r) > r->max_fitted)
		recipe_fail(ps, "%zu numbers are fitted, [bounds] fitted allows %llu",
			    recipe_fitted(r), (unsigned long long)r->max_fitted);
	return ps->err;
}

/* What every recipe has to say. */
static int check_whole(struct recipe_parse *ps)
{
	const struct recipe *r = ps->r;

	if (r->n_cases)
		return check_matrix(ps);
	if (*r->runs)
		return check_runs(ps);
	if (r->n_misses || r->contended)
		recipe_fail(ps, "[miss NAME] and contended are of rows that are runs");
	else if (!*r->file || !*r->metric || !*r->unit || !*r->profile || !*r->preset ||
		 !r->harvests)
		recipe_fail(ps,
			    "[evidence] gives file, metric, unit, profile, preset and harvests");
	else if (!*r->machine || !*r->machine_unit || !*r->machine_source || !r->hz)
		recipe_fail(ps, "[machine] gives name, unit, hz and source");
	else if (!r->n_policies || !r->n_series || !r->n_groups)
		recipe_fail(ps, "a recipe has [policy], [series NAME] and [group]");
	else if (recipe_fitted(r) > r->max_fitted)
		recipe_fail(ps, "%zu numbers are fitted, [bounds] fitted allows %llu",
			    recipe_fitted(r), (unsigned long long)r->max_fitted);
	return ps->err;
}

static int parse_text(struct recipe *r, const char *text, const struct kvmsim_errsink *errors)
{
	struct recipe_parse ps = {.at = text, .r = r, .errors = errors};
	int bad = ini_parse_stream(recipe_next_line, &ps, on_key, &ps);

	if (bad > 0 && !ps.err) {
		ps.line = bad;
		recipe_fail(&ps, "neither [section] nor key = value");
	} else if (bad < 0 && !ps.err) {
		ps.err = KVMSIM_ENOMEM;
	}
	if (!ps.err)
		check_whole(&ps);
	for (size_t i = 0; i < ps.n_seen; i++)
		free(ps.seen[i]);
	free(ps.seen);
	return ps.err;
}

int recipe_parse(const char *text, const char *name, const struct kvmsim_errsink *errors,
		 struct recipe **out)
{
	struct recipe *r = calloc(1, sizeof(*r));
	size_t n = 0;
	int err;

	*out = NULL;
	if (!r)
		return KVMSIM_ENOMEM;
	while (model_params[n].name)
		n++;
	r->name = strdup(name);
	r->param = calloc(n + 1, sizeof(*r->param));
	r->param_given = calloc(n + 1, sizeof(*r->param_given));
	for (size_t i = 0; r->param && i < n; i++)
		r->param[i] = model_params[i].def;
	r->checksum = 0xcbf29ce484222325u;
	for (const char *c = text; *c; c++)
		r->checksum = (r->checksum ^ (unsigned char)*c) * 0x100000001b3u;
	err = r->name && r->param && r->param_given ? parse_text(r, text, errors) : KVMSIM_ENOMEM;
	if (err) {
		recipe_free(r);
		return err;
	}
	*out = r;
	return 0;
}

int recipe_open(const char *path, const struct kvmsim_errsink *errors, struct recipe **out)
{
	char *text;
	size_t len;
	int err = cli_read_file(path, &text, &len);

	*out = NULL;
	if (err)
		return err;
	if (strlen(text) < len)
		err = kvmsim_err(errors, KVMSIM_EPARSE, "%s: a NUL byte: this is no text", path);
	else
		err = recipe_parse(text, path, errors, out);
	free(text);
	return err;
}

void recipe_free(struct recipe *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < N_COUNTS; i++)
		free(r->source[i]);
	free(r->name);
	free(r->param);
	free(r->param_given);
	free(r);
}
