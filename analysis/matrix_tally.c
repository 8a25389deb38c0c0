// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "analysis/matrix_tally.h"

#define FIRST_DIFFERENCES 10 /* kept per case and MMU */

struct matrix_tally *matrix_tally(struct matrix_result *r, size_t config, const char *quantity)
{
	const struct matrix_config *conf = &r->file->configs[config];
	char base[64];
	const char *name;

	snprintf(base, sizeof(base), "%.*s", (int)strcspn(quantity, "["), quantity);
	name = matrix_file_text(r->file, base);
	if (!name)
		return NULL;
	for (size_t i = r->n_tallies; i-- > 0;) {
		struct matrix_tally *t = &r->tallies[i];

		if (t->quantity == name && t->test_case == conf->test_case && t->mmu == conf->mmu)
			return t;
	}
	struct matrix_tally *grown = realloc(r->tallies, (r->n_tallies + 1) * sizeof(*grown));

	if (!grown)
		return NULL;
	r->tallies = grown;
	r->tallies[r->n_tallies] = (struct matrix_tally){
		.test_case = conf->test_case, .mmu = conf->mmu, .quantity = name};
	return &r->tallies[r->n_tallies++];
}

int matrix_differs(struct matrix_result *r, const struct matrix_difference *d)
{
	const struct matrix_config *conf = &r->file->configs[d->config];
	struct matrix_tally *t = matrix_tally(r, d->config, d->quantity);
	size_t same = 0;

	if (!t)
		return KVMSIM_ENOMEM;
	t->different++;
	r->total.different++;
	for (size_t i = 0; i < r->n_differences; i++) {
		const struct matrix_config *o = &r->file->configs[r->differences[i].config];

		same += o->test_case == conf->test_case && o->mmu == conf->mmu;
	}
	if (same >= FIRST_DIFFERENCES)
		return 0;
	struct matrix_difference *grown =
		realloc(r->differences, (r->n_differences + 1) * sizeof(*grown));

	if (!grown)
		return KVMSIM_ENOMEM;
	r->differences = grown;
	r->differences[r->n_differences++] = *d;
	return 0;
}

static int add_reason(struct matrix_reason **reasons, size_t *n, const char *text)
{
	struct matrix_reason *grown;

	for (size_t i = 0; i < *n; i++) {
		if ((*reasons)[i].text == text) {
			(*reasons)[i].rows++;
			return 0;
		}
	}
	grown = realloc(*reasons, (*n + 1) * sizeof(*grown));
	if (!grown)
		return KVMSIM_ENOMEM;
	*reasons = grown;
	grown[(*n)++] = (struct matrix_reason){text, 1};
	return 0;
}

int matrix_not_modelled(struct matrix_result *r, const struct matrix_row *row, const char *reason)
{
	const struct matrix_config *conf = &r->file->configs[row->config];
	struct matrix_tally *t = matrix_tally(r, row->config, row->quantity);
	const char *text = matrix_file_text(r->file, reason);

	if (!t || !text)
		return KVMSIM_ENOMEM;
	t->not_modelled++;
	r->total.not_modelled++;
	if (matrix_config_modelled(conf))
		r->missing++;
	return add_reason(&r->reasons, &r->n_reasons, text);
}

int matrix_set_apart(struct matrix_result *r, const char *who, const char *quantity)
{
	char reason[128];
	const char *text;

	snprintf(reason, sizeof(reason), "%s has no %.*s", who, (int)strcspn(quantity, "["),
		 quantity);
	text = matrix_file_text(r->file, reason);
	return text ? add_reason(&r->apart, &r->n_apart, text) : KVMSIM_ENOMEM;
}

int matrix_left_out(struct matrix_result *r, const struct matrix_row *row, const char *why)
{
	struct matrix_tally *t = matrix_tally(r, row->config, row->quantity);

	if (!t)
		return KVMSIM_ENOMEM;
	t->noise++;
	r->total.noise++;
	for (size_t i = 0; i < r->n_left_out; i++) {
		if (r->left_out[i].quantity == row->quantity && r->left_out[i].why == why) {
			r->left_out[i].rows++;
			return 0;
		}
	}
	struct matrix_unjudged *grown = realloc(r->left_out, (r->n_left_out + 1) * sizeof(*grown));

	if (!grown)
		return KVMSIM_ENOMEM;
	r->left_out = grown;
	r->left_out[r->n_left_out++] = (struct matrix_unjudged){row->quantity, why, 1};
	return 0;
}

static int by_group(const void *a, const void *b)
{
	const struct matrix_tally *x = a, *y = b;
	int order = strcmp(x->test_case, y->test_case);

	order = order ? order : strcmp(x->mmu, y->mmu);
	return order ? order : strcmp(x->quantity, y->quantity);
}

void matrix_tally_sort(struct matrix_result *r)
{
	if (r->n_tallies)
		qsort(r->tallies, r->n_tallies, sizeof(*r->tallies), by_group);
}

void matrix_result_free(struct matrix_result *r)
{
	free(r->tallies);
	free(r->differences);
	free(r->reasons);
	free(r->left_out);
	free(r->apart);
	memset(r, 0, sizeof(*r));
}
