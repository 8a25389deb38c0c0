// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "traces/tables/scratch.h"

const struct text_format *const table_formats[] = {
	&kvm_stat_format, &perf_kvm_format,   &lock_format,    &dirty_log_format,
	&migrate_format,  &dirty_rate_format, &precopy_format, &csv_format};
const size_t n_table_formats = sizeof(table_formats) / sizeof(*table_formats);

int tables_grow(void *array, size_t n, size_t size)
{
	void **a = array;
	size_t bytes;

	if (!(n & (n - 1))) { /* the capacity is a power of two */
		void *more;

		if (__builtin_mul_overflow(n ? 2 * n : 1, size, &bytes))
			return KVMSIM_ENOMEM;
		more = realloc(*a, bytes);
		if (!more)
			return KVMSIM_ENOMEM;
		*a = more;
	}
	memset((char *)*a + n * size, 0, size);
	return 0;
}

char *tables_copy(struct host_text t)
{
	char *s = malloc(t.len + 1);

	if (!s)
		return NULL;
	memcpy(s, t.at, t.len);
	s[t.len] = '\0';
	return s;
}

int tables_init(struct tables *t)
{
	*t = (struct tables){0};
	t->scratch = calloc(1, sizeof(*t->scratch));
	return t->scratch ? 0 : KVMSIM_ENOMEM;
}

void tables_use_csv(struct tables *t, const struct csv_map *map)
{
	t->scratch->csv.map = map;
}

static void free_kvm(struct tables *t)
{
	for (size_t i = 0; i < t->n_kvm_stat; i++) {
		struct kvm_stat_table *k = &t->kvm_stat[i];

		for (size_t j = 0; j < k->n_rows; j++) {
			free(k->row[j].name);
			free(k->row[j].parent);
		}
		free(k->row);
		free(k->scope);
	}
	free(t->kvm_stat);
	for (size_t i = 0; i < t->n_perf_kvm; i++) {
		struct perf_kvm_table *k = &t->perf_kvm[i];

		for (size_t j = 0; j < k->n_rows; j++)
			free(k->row[j].name);
		free(k->row);
		free(k->scope);
		free(k->wall_clock);
	}
	free(t->perf_kvm);
}

static void free_rest(struct tables *t)
{
	for (size_t i = 0; i < t->n_runs; i++) {
		free(t->run[i].label);
		free(t->run[i].dirty_ns);
		free(t->run[i].get_ns);
		free(t->run[i].clear_ns);
	}
	free(t->run);
	for (size_t i = 0; i < t->n_migrations; i++)
		free(t->migration[i].status);
	free(t->migration);
	for (size_t i = 0; i < t->n_dirty_rates; i++) {
		free(t->dirty_rate[i].status);
		free(t->dirty_rate[i].mode);
		free(t->dirty_rate[i].vcpu);
	}
	free(t->dirty_rate);
	free(t->round);
	for (size_t i = 0; i < t->n_locks; i++) {
		free(t->lock[i].type);
		free(t->lock[i].name);
		free(t->lock[i].offset);
		free(t->lock[i].address);
	}
	free(t->lock);
	for (size_t i = 0; i < t->csv.n_columns; i++)
		free(t->csv.name[i]);
	for (size_t i = 0; i < t->csv.n_rows * t->csv.n_columns; i++)
		free(t->csv.cell[i]);
	free(t->csv.name);
	free(t->csv.cell);
}

void tables_free(struct tables *t)
{
	free_kvm(t);
	free_rest(t);
	if (t->scratch) {
		free(t->scratch->kvm_stat.scope);
		free(t->scratch->perf_kvm.clock);
		free(t->scratch->dirty_log.label);
		free(t->scratch->csv.column);
		free(t->scratch);
	}
	*t = (struct tables){0};
}
