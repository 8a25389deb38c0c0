// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/tables/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATOR 0x1f

enum field_kind { F_STRING, F_NUMBER, F_DECIMAL, F_U64, F_INT, F_BOOL, F_LIST };

struct row_field {
	const char *name;
	enum field_kind kind;
	size_t offset, count; /* count: of a list's number of uint64_t */
};

/* One struct of tables.h, whose array is in struct tables or, of rows, in a table's struct. */
struct row_kind {
	const char *name;
	size_t size, array, count;
	int parent; /* index of its table's kind, -1: struct tables */
	const struct row_field *fields;
	size_t n;
};

#define AT(kind, member)                                                                           \
	{                                                                                          \
#member, kind, offsetof(struct TYPE, member), 0                                    \
	}
#define LIST(member, many)                                                                         \
	{                                                                                          \
#member, F_LIST, offsetof(struct TYPE, member), offsetof(struct TYPE, many)        \
	}

#define TYPE kvm_stat_table
static const struct row_field kvm_stat[] = {
	AT(F_INT, layout),
	AT(F_STRING, scope),
	AT(F_NUMBER, total),
	AT(F_NUMBER, total_rate),
};
#undef TYPE
#define TYPE kvm_stat_row
static const struct row_field kvm_stat_rows[] = {
	AT(F_STRING, name),	AT(F_STRING, parent), AT(F_U64, total),
	AT(F_DECIMAL, percent), AT(F_NUMBER, rate),
};
#undef TYPE
#define TYPE perf_kvm_table
static const struct row_field perf_kvm[] = {
	AT(F_STRING, scope),	     AT(F_STRING, wall_clock), AT(F_NUMBER, vcpu),
	AT(F_NUMBER, total_samples), AT(F_NUMBER, lost),       AT(F_DECIMAL, total_time_us),
};
#undef TYPE
#define TYPE perf_kvm_row
static const struct row_field perf_kvm_rows[] = {
	AT(F_STRING, name),	    AT(F_NUMBER, code),	     AT(F_NUMBER, samples),
	AT(F_DECIMAL, samples_pct), AT(F_DECIMAL, time_pct), AT(F_DECIMAL, min_us),
	AT(F_DECIMAL, max_us),	    AT(F_DECIMAL, avg_us),   AT(F_DECIMAL, dev_pct),
};
#undef TYPE
#define TYPE dirty_log_run
static const struct row_field runs[] = {
	AT(F_STRING, label),	    AT(F_BOOL, range),
	AT(F_NUMBER, iterations),   AT(F_NUMBER, populate_ns),
	AT(F_NUMBER, enable_ns),    AT(F_NUMBER, disable_ns),
	AT(F_NUMBER, get_total_ns), AT(F_NUMBER, clear_total_ns),
	LIST(dirty_ns, n_dirty),    LIST(get_ns, n_get),
	LIST(clear_ns, n_clear),
};
#undef TYPE
#define TYPE migration_status
static const struct row_field migrations[] = {AT(F_INT, layout), AT(F_STRING, status),
					      AT(F_DECIMAL, throughput_mbps),
#define F(name) AT(F_NUMBER, name),
					      MIGRATE_FIELDS(F)
#undef F
};
#undef TYPE
#define TYPE dirty_rate
static const struct row_field dirty_rates[] = {
	AT(F_STRING, status),	AT(F_STRING, mode),	 AT(F_NUMBER, start_ms),
	AT(F_NUMBER, period_s), AT(F_NUMBER, rate_mb_s), AT(F_NUMBER, sample_pages),
};
#undef TYPE
#define TYPE vcpu_rate
static const struct row_field vcpu_rates[] = {AT(F_U64, vcpu), AT(F_U64, mb_s)};
#undef TYPE
#define TYPE precopy_round
static const struct row_field rounds[] = {
	AT(F_U64, iter),	   AT(F_U64, total_mib),       AT(F_U64, curr_mib),
	AT(F_U64, overhead_ms),	   AT(F_U64, est_downtime_ms), AT(F_DECIMAL, bw_mib_s),
	AT(F_DECIMAL, transfer_s), AT(F_DECIMAL, elapsed_s),   AT(F_U64, cut),
	AT(F_U64, unread),
};
#undef TYPE
#define TYPE contended_lock
static const struct row_field locks[] = {
	AT(F_U64, contended), AT(F_U64, total_ns),    AT(F_U64, max_ns),
	AT(F_U64, avg_ns),    AT(F_U64, stack_lines), AT(F_STRING, type),
	AT(F_STRING, name),   AT(F_STRING, offset),   AT(F_STRING, address),
};
#undef TYPE

#define TOP(name, type, array, count, fields)                                                      \
	{                                                                                          \
		name, sizeof(struct type), offsetof(struct tables, array),                         \
			offsetof(struct tables, count), -1, fields,                                \
			sizeof(fields) / sizeof(fields[0])                                         \
	}
#define ROW(name, type, in, array, count, above, fields)                                           \
	{                                                                                          \
		name, sizeof(struct type), offsetof(struct in, array), offsetof(struct in, count), \
			above, fields, sizeof(fields) / sizeof(fields[0])                          \
	}
static const struct row_kind kinds[] = {
	TOP("kvm_stat", kvm_stat_table, kvm_stat, n_kvm_stat, kvm_stat),
	ROW("kvm_stat/row", kvm_stat_row, kvm_stat_table, row, n_rows, 0, kvm_stat_rows),
	TOP("perf_kvm", perf_kvm_table, perf_kvm, n_perf_kvm, perf_kvm),
	ROW("perf_kvm/row", perf_kvm_row, perf_kvm_table, row, n_rows, 2, perf_kvm_rows),
	TOP("run", dirty_log_run, run, n_runs, runs),
	TOP("migration", migration_status, migration, n_migrations, migrations),
	TOP("dirty_rate", dirty_rate, dirty_rate, n_dirty_rates, dirty_rates),
	ROW("dirty_rate/vcpu", vcpu_rate, dirty_rate, vcpu, n_vcpus, 6, vcpu_rates),
	TOP("round", precopy_round, round, n_rounds, rounds),
	TOP("lock", contended_lock, lock, n_locks, locks),
};
#define N_KINDS ((int)(sizeof(kinds) / sizeof(kinds[0])))

/* Whatever the type of the pointer that is there. */
static char *get_array(const void *in, size_t offset)
{
	char *p;

	memcpy(&p, (const char *)in + offset, sizeof(p));
	return p;
}

static size_t get_count(const void *in, size_t offset)
{
	size_t n;

	memcpy(&n, (const char *)in + offset, sizeof(n));
	return n;
}

/* ---- to text ---- */

static void put_string(FILE *f, const char *s)
{
	for (; *s; s++)
		putc(*s == SEPARATOR ? ' ' : *s, f);
}

/* "-12.340": as it was printed. */
static void put_decimal(FILE *f, const struct decimal *d)
{
	uint64_t v = d->value < 0 ? -(uint64_t)d->value : (uint64_t)d->value, unit = 1;

	for (unsigned i = 0; i < d->digits; i++)
		unit *= 10;
	fprintf(f, "%s%" PRIu64, d->value < 0 ? "-" : "", v / unit);
	if (d->digits)
		fprintf(f, ".%0*" PRIu64, d->digits, v % unit);
}

static void put_list(FILE *f, const uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%" PRIu64, i ? "," : "", v[i]);
}

static void put_field(FILE *f, const struct row_field *d, const char *in)
{
	const void *at = in + d->offset;
	const struct decimal *decimal = at;
	const struct number *number = at;
	const char *string = d->kind == F_STRING ? get_array(in, d->offset) : NULL;

	if ((d->kind == F_STRING && !string) || (d->kind == F_NUMBER && !number->there) ||
	    (d->kind == F_DECIMAL && !decimal->there) ||
	    (d->kind == F_LIST && !get_count(in, d->count)))
		return;
	fprintf(f, "%c%s=", SEPARATOR, d->name);
	switch (d->kind) {
	case F_STRING:
		put_string(f, string);
		break;
	case F_NUMBER:
		fprintf(f, "%" PRIu64, number->value);
		break;
	case F_DECIMAL:
		put_decimal(f, decimal);
		break;
	case F_U64:
		fprintf(f, "%" PRIu64, *(const uint64_t *)at);
		break;
	case F_INT:
		fprintf(f, "%u", *(const unsigned *)at);
		break;
	case F_BOOL:
		fprintf(f, "%u", *(const bool *)at);
		break;
	default:
		put_list(f, (const uint64_t *)(void *)get_array(in, d->offset),
			 get_count(in, d->count));
	}
}

static int put_row(const struct row_kind *k, const char *in,
		   int (*row)(void *ctx, const char *text, size_t len), void *ctx)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int ret;

	if (!f)
		return KVMSIM_ENOMEM;
	fputs(k->name, f);
	for (size_t i = 0; i < k->n; i++)
		put_field(f, &k->fields[i], in);
	ret = fclose(f) ? KVMSIM_ENOMEM : row(ctx, text, len);
	free(text);
	return ret;
}

int tables_put_rows(const struct tables *t, int (*row)(void *ctx, const char *text, size_t len),
		    void *ctx)
{
	int ret = 0;

	for (int k = 0; !ret && k < N_KINDS; k++) {
		const struct row_kind *top = &kinds[k];
		const char *in = top->parent < 0 ? get_array(t, top->array) : NULL;
		size_t n = top->parent < 0 ? get_count(t, top->count) : 0;

		for (size_t i = 0; !ret && i < n; i++, in += top->size) {
			const struct row_kind *rows = k + 1 < N_KINDS ? top + 1 : top;
			const char *at;
			size_t m;

			ret = put_row(top, in, row, ctx);
			if (rows->parent != k)
				continue;
			at = get_array(in, rows->array);
			m = get_count(in, rows->count);
			for (size_t j = 0; !ret && j < m; j++, at += rows->size)
				ret = put_row(rows, at, row, ctx);
		}
	}
	return ret;
}

/* ---- from text ---- */

static bool take_u64(const char **p, const char *end, uint64_t *out)
{
	const char *s = *p;

	for (*out = 0; s < end && *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(*out, 10, out) ||
		    __builtin_add_overflow(*out, (uint64_t)(*s - '0'), out))
			return false;
	if (s == *p)
		return false;
	*p = s;
	return true;
}

static bool take_decimal(const char *p, const char *end, struct decimal *out)
{
	bool minus = p < end && *p == '-';
	uint64_t whole, part = 0;
	const char *point;

	p += minus;
	if (!take_u64(&p, end, &whole))
		return false;
	point = p;
	if (p < end && *p++ == '.' && !take_u64(&p, end, &part))
		return false;
	*out = (struct decimal){.there = true, .digits = p > point ? p - point - 1 : 0};
	if (p != end || p - point > 10)
		return false;
	for (unsigned i = 0; i < out->digits; i++)
		if (__builtin_mul_overflow(whole, 10, &whole))
			return false;
	if (__builtin_add_overflow(whole, part, &whole) || whole > INT64_MAX)
		return false;
	out->value = minus ? -(int64_t)whole : (int64_t)whole;
	return true;
}

static int take_list(char *in, const struct row_field *d, const char *p, const char *end)
{
	uint64_t *list = malloc(((end - p) / 2 + 1) * sizeof(*list));
	size_t n = 0;

	if (!list)
		return KVMSIM_ENOMEM;
	while (take_u64(&p, end, &list[n])) {
		n++;
		if (p == end || *p++ != ',')
			break;
	}
	free(get_array(in, d->offset));
	memcpy(in + d->offset, &list, sizeof(list));
	memcpy(in + d->count, &n, sizeof(n));
	return 0;
}

static int take_field(char *in, const struct row_field *d, const char *p, const char *end)
{
	void *at = in + d->offset;
	struct decimal decimal;
	uint64_t v = 0;
	char *string;

	switch (d->kind) {
	case F_STRING:
		string = strndup(p, end - p);
		if (!string)
			return KVMSIM_ENOMEM;
		free(get_array(in, d->offset));
		memcpy(at, &string, sizeof(string));
		return 0;
	case F_LIST:
		return take_list(in, d, p, end);
	case F_DECIMAL:
		if (take_decimal(p, end, &decimal))
			*(struct decimal *)at = decimal;
		return 0;
	default:
		if (!take_u64(&p, end, &v) || p != end)
			return 0;
	}
	if (d->kind == F_NUMBER)
		*(struct number *)at = (struct number){v, true};
	else if (d->kind == F_U64)
		*(uint64_t *)at = v;
	else if (d->kind == F_INT) /* layouts: at most three */
		*(unsigned *)at = v < 3 ? v : 0;
	else
		*(bool *)at = v;
	return 0;
}

/* A new element, zeroed, at the end of its array. *@out NULL: there is no table that it is of. */
static int append(struct tables *t, const struct row_kind *k, char **out)
{
	char *in = (char *)t, *array;
	size_t n;

	*out = NULL;
	if (k->parent >= 0) {
		const struct row_kind *top = &kinds[k->parent];

		n = get_count(t, top->count);
		if (!n)
			return 0;
		in = get_array(t, top->array) + (n - 1) * top->size;
	}
	n = get_count(in, k->count);
	array = get_array(in, k->array);
	if (!(n & (n - 1))) { /* grows by doubling */
		array = realloc(array, (n ? 2 * n : 1) * k->size);
		if (!array)
			return KVMSIM_ENOMEM;
		memcpy(in + k->array, &array, sizeof(array));
	}
	*out = array + n * k->size;
	memset(*out, 0, k->size);
	n++;
	memcpy(in + k->count, &n, sizeof(n));
	return 0;
}

int tables_take_row(struct tables *t, const char *text, size_t len)
{
	const char *end = text + len, *p = memchr(text, SEPARATOR, len);
	const struct row_kind *k = kinds;
	char *in;
	int ret;

	p = p ? p : end;
	while (k < kinds + N_KINDS &&
	       (strlen(k->name) != (size_t)(p - text) || memcmp(k->name, text, p - text)))
		k++;
	if (k == kinds + N_KINDS)
		return 0;
	ret = append(t, k, &in);
	while (!ret && in && p < end) {
		const char *key = p + 1, *stop = memchr(key, SEPARATOR, end - key), *eq;

		p = stop ? stop : end;
		eq = memchr(key, '=', p - key);
		for (size_t i = 0; eq && !ret && i < k->n; i++)
			if (strlen(k->fields[i].name) == (size_t)(eq - key) &&
			    !memcmp(k->fields[i].name, key, eq - key))
				ret = take_field(in, &k->fields[i], eq + 1, p);
	}
	return ret;
}
