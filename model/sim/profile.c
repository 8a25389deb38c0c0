// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/sim/profile.h"

#include <stdlib.h>
#include <string.h>

#include "model/sim/profile_priv.h"

static size_t covariance_index(uint16_t a, uint16_t b)
{
	size_t lo = a < b ? a : b, hi = a < b ? b : a;

	return hi * (hi + 1) / 2 + lo; /* the lower triangle, by rows */
}

struct profile *profile_new(const struct sim_vocabulary *v, const struct profile_param *params)
{
	struct profile *p = calloc(1, sizeof(*p));
	size_t n = v->n_counts;

	if (!p)
		return NULL;
	p->vocabulary = v;
	p->params = params;
	while (params && params[p->n_params].name)
		p->n_params++;
	p->price = calloc(n, sizeof(*p->price));
	p->sigma = calloc(n, sizeof(*p->sigma));
	p->covariance = calloc(n * (n + 1) / 2, sizeof(*p->covariance));
	p->source = calloc(n, sizeof(*p->source));
	p->group = calloc(n, sizeof(*p->group));
	p->param = calloc(p->n_params + 1, sizeof(*p->param));
	if (!p->price || !p->sigma || !p->covariance || !p->source || !p->group || !p->param) {
		profile_free(p);
		return NULL;
	}
	for (size_t i = 0; i < p->n_params; i++)
		p->param[i] = params[i].def;
	return p;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->vocabulary->n_counts; i++) {
		if (p->source)
			free(p->source[i]);
		if (p->group)
			free(p->group[i]);
	}
	free(p->price);
	free(p->sigma);
	free(p->covariance);
	free(p->source);
	free(p->group);
	free(p->param);
	free(p->name);
	free(p->machine);
	free(p->unit);
	free(p->machine_source);
	free(p);
}

/* Copies a string that may be NULL. */
static bool copy_string(char *const from, char **to)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

int profile_copy(const struct profile *from, struct profile **out)
{
	size_t n = from->vocabulary->n_counts;
	struct profile *p = profile_new(from->vocabulary, from->params);
	bool ok = p;

	*out = NULL;
	if (!p)
		return KVMSIM_ENOMEM;
	memcpy(p->price, from->price, n * sizeof(*p->price));
	memcpy(p->sigma, from->sigma, n * sizeof(*p->sigma));
	memcpy(p->covariance, from->covariance, n * (n + 1) / 2 * sizeof(*p->covariance));
	memcpy(p->param, from->param, p->n_params * sizeof(*p->param));
	for (size_t i = 0; i < n && ok; i++)
		ok = copy_string(from->source[i], &p->source[i]) &&
		     copy_string(from->group[i], &p->group[i]);
	ok = ok && copy_string(from->name, &p->name) && copy_string(from->machine, &p->machine) &&
	     copy_string(from->unit, &p->unit) &&
	     copy_string(from->machine_source, &p->machine_source);
	if (!ok) {
		profile_free(p);
		return KVMSIM_ENOMEM;
	}
	p->hz = from->hz;
	p->checksum = from->checksum;
	*out = p;
	return 0;
}

const char *profile_name(const struct profile *p)
{
	return p->name;
}

const char *profile_machine(const struct profile *p)
{
	return p->machine;
}

const char *profile_machine_source(const struct profile *p)
{
	return p->machine_source;
}

const char *profile_unit(const struct profile *p)
{
	return p->unit;
}

uint64_t profile_hz(const struct profile *p)
{
	return p->hz;
}

price_t profile_price(const struct profile *p, uint16_t count)
{
	return p->price[count];
}

const price_t *profile_prices(const struct profile *p)
{
	return p->price;
}

void profile_set_price(struct profile *p, uint16_t count, price_t price)
{
	p->price[count] = price;
}

price_t profile_sigma(const struct profile *p, uint16_t count)
{
	return p->sigma[count];
}

int64_t profile_covariance(const struct profile *p, uint16_t a, uint16_t b)
{
	return p->covariance[covariance_index(a, b)];
}

void profile_set_covariance(struct profile *p, uint16_t a, uint16_t b, int64_t value)
{
	p->covariance[covariance_index(a, b)] = value;
}

const char *profile_source(const struct profile *p, uint16_t count)
{
	return p->source[count];
}

const char *profile_group(const struct profile *p, uint16_t count)
{
	return p->group[count];
}

bool profile_has_price(const struct profile *p, uint16_t count)
{
	return p->price[count] || p->sigma[count] || p->source[count] || p->group[count];
}

uint64_t profile_param(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->n_params; i++)
		if (!strcmp(p->params[i].name, name))
			return p->param[i];
	return 0;
}

uint64_t profile_checksum(const struct profile *p)
{
	return p->checksum;
}
