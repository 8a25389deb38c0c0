// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The table of a guest's locks. Its rows are ranges of the records in some order: by lock for rows
 * "lock", by who takes the record's lock most for "locks", by who took it for "caller".
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/qemu_locks.h"

#define RARE 1000 /* a lock with less than one in so many has no row of its own */
#define NONE UINT32_MAX

static const struct {
	const char *name;
	unsigned per_mille;
} quantiles[] = {
	{"min", 0},   {"p10", 100}, {"p25", 250},  {"p50", 500},  {"p75", 750},
	{"p90", 900}, {"p99", 990}, {"p999", 999}, {"max", 1000},
};
#define N_QUANTILES (sizeof(quantiles) / sizeof(quantiles[0]))

/* Records of one phase. */
struct view {
	const struct qemu_locks *l;
	size_t *order, n;
	uint32_t *site; /* by record: caller's function */
	uint32_t *main; /* by record: who takes its lock most; NONE: it has a row of its own */
	bool *moved;	/* by record: another vCPU had its lock before */
	const char **sites;
	uint64_t *seen; /* by site, all 0 */
	uint32_t n_sites;
	uint32_t *values; /* room for one number per record */
	uint8_t how[64];  /* by function: HOW_... */
};

enum { HOW_IRQ = 1, HOW_BH = 2, HOW_TRY = 4 };

struct row {
	const char *kind, *caller;
	uint64_t lock; /* 0: of no single one */
	size_t first, n;
};

struct rows {
	struct row *row;
	size_t n, room;
};

/* ---- orders ---- */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Within a lock, records are in the order of time. */
static int by_lock(const void *a, const void *b, void *ctx)
{
	const struct view *v = ctx;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int c = compare(v->l->taken[x].lock, v->l->taken[y].lock);

	return c ? c : compare(x, y);
}

static int by_caller(const void *a, const void *b, void *ctx)
{
	const struct view *v = ctx;

	return compare(v->l->taken[*(const size_t *)a].caller,
		       v->l->taken[*(const size_t *)b].caller);
}

static int by_site(const void *a, const void *b, void *ctx)
{
	const struct view *v = ctx;
	int c = compare(v->site[*(const size_t *)a], v->site[*(const size_t *)b]);

	return c ? c : by_lock(a, b, ctx);
}

static int by_main(const void *a, const void *b, void *ctx)
{
	const struct view *v = ctx;
	int c = compare(v->main[*(const size_t *)a], v->main[*(const size_t *)b]);

	return c ? c : by_lock(a, b, ctx);
}

static int by_value(const void *a, const void *b)
{
	return compare(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Many first; the same for the same numbers. */
static int by_size(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static void sort(struct view *v, int (*how)(const void *, const void *, void *))
{
	qsort_r(v->order, v->n, sizeof(*v->order), how, v);
}

/* ---- who calls, who takes a lock most ---- */

static uint32_t site_of(struct view *v, uint64_t caller)
{
	uint64_t offset;
	const char *name = qemu_locks_name(v->l, caller, &offset);

	if (!name)
		name = "";
	/* callers come in the order of their addresses: functions, too */
	if (!v->n_sites || strcmp(v->sites[v->n_sites - 1], name) != 0)
		v->sites[v->n_sites++] = name;
	return v->n_sites - 1;
}

static void find_sites(struct view *v)
{
	uint64_t last = 0;
	uint32_t site = 0;

	sort(v, by_caller);
	for (size_t i = 0; i < v->n; i++) {
		size_t r = v->order[i];

		if (!i || v->l->taken[r].caller != last)
			site = site_of(v, v->l->taken[r].caller);
		last = v->l->taken[r].caller;
		v->site[r] = site;
	}
}

/* The records @order[@first..@first + @n) are of one lock. */
static uint32_t main_site(struct view *v, size_t first, size_t n)
{
	uint32_t best = v->site[v->order[first]];

	for (size_t i = first; i < first + n; i++)
		v->seen[v->site[v->order[i]]]++;
	for (size_t i = first; i < first + n; i++) {
		uint32_t s = v->site[v->order[i]];

		if (v->seen[s] > v->seen[best] || (v->seen[s] == v->seen[best] && s < best))
			best = s;
	}
	for (size_t i = first; i < first + n; i++)
		v->seen[v->site[v->order[i]]] = 0;
	return best;
}

/* ---- rows ---- */

static int add_row(struct rows *rows, struct row row)
{
	if (rows->n == rows->room) {
		size_t room = rows->room ? 2 * rows->room : 256;
		struct row *p = realloc(rows->row, room * sizeof(*p));

		if (!p)
			return KVMSIM_ENOMEM;
		rows->row = p;
		rows->room = room;
	}
	rows->row[rows->n++] = row;
	return 0;
}

static double mean(const uint32_t *values, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return (double)sum / (double)n;
}

/* Mean and quantiles (nearest rank) of @n values, which are sorted. */
static void print_values(FILE *f, uint32_t *values, size_t n)
{
	if (!n) {
		for (size_t q = 0; q <= N_QUANTILES; q++)
			fputc(',', f);
		return;
	}
	qsort(values, n, sizeof(*values), by_value);
	fprintf(f, ",%.1f", mean(values, n));
	for (size_t q = 0; q < N_QUANTILES; q++) {
		size_t rank = (n * quantiles[q].per_mille + 999) / 1000;

		fprintf(f, ",%" PRIu32, values[rank ? rank - 1 : 0]);
	}
}

/* What the names of the functions that took locks say. */
static void find_how(struct view *v)
{
	for (unsigned i = 0; i < v->l->n_functions; i++) {
		uint64_t offset;
		const char *name = qemu_locks_name(v->l, v->l->functions[i], &offset);

		if (!name)
			name = "";
		v->how[i] = (strstr(name, "irq") ? HOW_IRQ : 0) |
			    (strstr(name, "_bh") ? HOW_BH : 0) |
			    (strstr(name, "try") ? HOW_TRY : 0);
	}
}

static void print_symbol(FILE *f, const struct view *v, uint64_t lock)
{
	uint64_t offset;
	const char *name = lock ? qemu_locks_name(v->l, lock, &offset) : NULL;

	if (!name)
		return;
	fprintf(f, offset ? "%s+0x%" PRIx64 : "%s", name, offset);
}

/* What is counted of the records of a row, whose locks come one after another. */
struct counts {
	uint64_t objects, vcpus, moved, nested, irq, bh, tried, waited;
};

static struct counts count(const struct view *v, const struct row *row)
{
	struct counts c = {0};
	uint64_t before = 0, by_vcpu = 0;

	for (size_t i = row->first; i < row->first + row->n; i++) {
		const struct lock_taken *t = &v->l->taken[v->order[i]];

		c.objects += i == row->first || t->lock != before;
		before = t->lock;
		by_vcpu |= 1ull << t->vcpu;
		c.moved += v->moved[v->order[i]];
		c.nested += t->depth != 0;
		c.irq += !!(v->how[t->function] & HOW_IRQ);
		c.bh += !!(v->how[t->function] & HOW_BH);
		c.tried += !!(v->how[t->function] & HOW_TRY);
		c.waited += t->waited;
	}
	c.vcpus = __builtin_popcountll(by_vcpu);
	return c;
}

static void print_row(FILE *f, const struct view *v, const char *test, unsigned phase,
		      const struct row *row)
{
	struct counts c = count(v, row);
	struct lock_work sum = qemu_locks_sums(v->l, phase);
	size_t n = 0;

	fprintf(f, "%u,%s,%s,", phase, test, row->kind);
	print_symbol(f, v, row->lock);
	fprintf(f,
		",%s,%" PRIu64 ",%" PRIu64 ",%zu,%.3f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
		",%" PRIu64 ",%" PRIu64,
		row->caller, c.objects, c.vcpus, row->n,
		sum.work ? 1e6 * (double)row->n / (double)sum.work : 0.0, c.moved, c.nested, c.irq,
		c.bh, c.tried, c.waited);
	for (size_t i = row->first; i < row->first + row->n; i++)
		v->values[n++] = v->l->taken[v->order[i]].hold;
	print_values(f, v->values, n);
	for (unsigned nested = 0; nested < 2; nested++) {
		n = 0;
		for (size_t i = row->first; i < row->first + row->n; i++) {
			const struct lock_taken *t = &v->l->taken[v->order[i]];

			if (!t->depth == !nested)
				v->values[n++] = t->gap;
		}
		print_values(f, v->values, n);
	}
	fputc('\n', f);
}

static void print_rows(FILE *f, const struct view *v, const char *test, unsigned phase,
		       struct rows *rows)
{
	if (rows->n) /* a sort of nothing is not defined */
		qsort(rows->row, rows->n, sizeof(*rows->row), by_size);
	for (size_t i = 0; i < rows->n; i++)
		print_row(f, v, test, phase, &rows->row[i]);
	rows->n = 0;
}

/* Finds main and moved, and adds the rows "lock". */
static int find_locks(struct view *v, struct rows *rows)
{
	size_t n;
	int err = 0;

	sort(v, by_lock);
	for (size_t i = 0; !err && i < v->n; i += n) {
		const struct lock_taken *t = &v->l->taken[v->order[i]];
		uint32_t main;
		bool own;

		for (n = 1; i + n < v->n && v->l->taken[v->order[i + n]].lock == t->lock; n++)
			v->moved[v->order[i + n]] = v->l->taken[v->order[i + n]].vcpu !=
						    v->l->taken[v->order[i + n - 1]].vcpu;
		v->moved[v->order[i]] = false;
		main = main_site(v, i, n);
		own = n * RARE >= v->n;
		for (size_t k = i; k < i + n; k++)
			v->main[v->order[k]] = own ? NONE : main;
		if (own)
			err = add_row(rows, (struct row){"lock", v->sites[main], t->lock, i, n});
	}
	return err;
}

/* Rows of the ranges that have the same number in @of. */
static int add_ranges(struct view *v, struct rows *rows, const char *kind, const uint32_t *of)
{
	size_t n;
	int err = 0;

	for (size_t i = 0; !err && i < v->n; i += n) {
		uint32_t site = of[v->order[i]];

		for (n = 1; i + n < v->n && of[v->order[i + n]] == site; n++)
			;
		if (site != NONE)
			err = add_row(rows, (struct row){kind, v->sites[site], 0, i, n});
	}
	return err;
}

/* The records of @phase, in timer interrupts or outside of them, and their sites. */
static void choose(struct view *v, unsigned phase, bool tick)
{
	v->n = 0;
	v->n_sites = 0;
	for (size_t i = 0; i < v->l->n_taken; i++) {
		if (v->l->taken[i].phase == phase && v->l->taken[i].tick == tick)
			v->order[v->n++] = i;
	}
	find_sites(v);
}

static int print_phase(FILE *f, struct view *v, const char *test, unsigned phase, bool tick,
		       struct rows *rows)
{
	int err;

	choose(v, phase, tick);
	if (!v->n)
		return 0;
	err = find_locks(v, rows);
	if (err)
		return err;
	print_row(f, v, test, phase, &(struct row){tick ? "timer" : "all", "", 0, 0, v->n});
	if (tick)
		rows->n = 0;
	print_rows(f, v, test, phase, rows);
	sort(v, by_main);
	err = tick ? 0 : add_ranges(v, rows, "locks", v->main);
	if (err)
		return err;
	print_rows(f, v, test, phase, rows);
	sort(v, by_site);
	err = add_ranges(v, rows, tick ? "timer_caller" : "caller", v->site);
	if (!err)
		print_rows(f, v, test, phase, rows);
	return err;
}

static void print_header(FILE *f)
{
	static const char *const of[] = {"hold", "gap", "inner_gap"};

	fprintf(f, "phase,test,row,symbol,caller,objects,vcpus,taken,per_million,moved,nested,irq,"
		   "bh,tried,waited");
	for (unsigned i = 0; i < 3; i++) {
		fprintf(f, ",%s_mean", of[i]);
		for (size_t q = 0; q < N_QUANTILES; q++)
			fprintf(f, ",%s_%s", of[i], quantiles[q].name);
	}
	fputc('\n', f);
}

int qemu_locks_print(const struct qemu_locks *l, const char *const *tests, unsigned n_phases,
		     FILE *f)
{
	size_t n = l->n_taken + 1;
	struct view v = {
		.l = l,
		.order = malloc(n * sizeof(*v.order)),
		.site = malloc(n * sizeof(*v.site)),
		.main = malloc(n * sizeof(*v.main)),
		.moved = malloc(n * sizeof(*v.moved)),
		.sites = malloc((l->n_symbols + n) * sizeof(*v.sites)),
		.seen = calloc(l->n_symbols + n, sizeof(*v.seen)),
		.values = malloc(n * sizeof(*v.values)),
	};
	struct rows rows = {0};
	int err = v.order && v.site && v.main && v.moved && v.sites && v.seen && v.values
			  ? 0
			  : KVMSIM_ENOMEM;

	find_how(&v);
	if (!err)
		print_header(f);
	for (unsigned phase = 1; !err && phase < n_phases; phase++) {
		err = print_phase(f, &v, tests[phase], phase, false, &rows);
		if (!err)
			err = print_phase(f, &v, tests[phase], phase, true, &rows);
	}
	free(v.order);
	free(v.site);
	free(v.main);
	free(v.moved);
	free(v.sites);
	free(v.seen);
	free(v.values);
	free(rows.row);
	return err ? err : ferror(f) ? KVMSIM_EIO : 0;
}
