// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/matrix_work.h"

#define PREFIX "work:"

int matrix_work_count(const char *quantity)
{
	if (strncmp(quantity, PREFIX, strlen(PREFIX)) != 0)
		return -1;
	for (int i = 0; i < N_COUNTS; i++) {
		if (!strcmp(model_vocabulary.counts[i], quantity + strlen(PREFIX)))
			return i;
	}
	return -1;
}

void matrix_work_counts(const struct matrix_file *f, size_t config, bool counts[N_COUNTS])
{
	memset(counts, 0, N_COUNTS * sizeof(*counts));
	for (size_t i = 0; i < f->n_rows; i++) {
		const struct matrix_row *row = &f->rows[i];
		int count = -1;

		if (row->config == config && row->kind == QUANTITY_WORK)
			count = matrix_work_count(row->quantity);
		if (count >= 0)
			counts[count] = true;
	}
}

struct matrix_quantity *matrix_work_quantities(const struct matrix_phase *p,
					       const bool counts[N_COUNTS], size_t *n)
{
	struct matrix_quantity *q = calloc(p->n_quantities + N_COUNTS, sizeof(*q));

	if (!q)
		return NULL;
	*n = p->n_quantities;
	if (*n)
		memcpy(q, p->quantities, *n * sizeof(*q));
	for (int i = 0; i < N_COUNTS; i++) {
		if (!counts[i])
			continue;
		q[*n].value = (int64_t)p->counts[i];
		snprintf(q[(*n)++].name, sizeof(q->name), PREFIX "%s", model_vocabulary.counts[i]);
	}
	return q;
}
