// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/facts_priv.h"
#include "analysis/output.h"

/* The tables and logs of tools for people. */

static void decimal_cell(struct table *t, const struct decimal *d)
{
	uint64_t unit = 1, v = d->value < 0 ? -(uint64_t)d->value : (uint64_t)d->value;

	for (unsigned i = 0; i < d->digits; i++)
		unit *= 10;
	if (!d->there)
		table_cell(t, "-");
	else if (!d->digits)
		table_cell(t, "%" PRId64, d->value);
	else
		table_cell(t, "%s%" PRIu64 ".%0*" PRIu64, d->value < 0 ? "-" : "", v / unit,
			   d->digits, v % unit);
}

static void number_cell(struct table *t, const struct number *n)
{
	char buf[OUT_TEXT];

	table_cell(t, "%s", n->there ? out_u64(buf, n->value) : "-");
}

static void time_cell(struct table *t, bool there, uint64_t ns)
{
	char buf[OUT_TEXT];

	table_cell(t, "%s", there ? out_time(buf, (double)ns, 1000000000) : "-");
}

void facts_text_cell(struct table *t, const char *text)
{
	char buf[128];
	size_t n = 0;

	for (; text && text[n] && n < sizeof(buf) - 1; n++) {
		unsigned char c = (unsigned char)text[n];

		buf[n] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
	buf[n] = '\0';
	table_cell(t, "%s", text ? buf : "-");
}

static struct table *begin(const char *align, const char *const *heading)
{
	struct table *t = table_create(align);

	for (; t && *heading; heading++)
		table_cell(t, "%s", *heading);
	return t;
}

static int finish(struct table *t)
{
	int err;

	putchar('\n');
	err = table_print(t, stdout);
	table_free(t);
	return err;
}

/* ---- kvm_stat, perf kvm stat ---- */

static int print_kvm_stat(const struct kvm_stat_table *k)
{
	static const char *const heading[] = {"kvm_stat", "total", "%", "per second", NULL};
	struct table *t = begin("lrrr", heading);

	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < k->n_rows; i++) {
		facts_text_cell(t, k->row[i].name);
		number_cell(t, &(struct number){k->row[i].total, true});
		decimal_cell(t, &k->row[i].percent);
		number_cell(t, &k->row[i].rate);
	}
	return finish(t);
}

static int print_perf_kvm(const struct perf_kvm_table *p)
{
	static const char *const heading[] = {"perf kvm stat", "samples", "time %", "min us",
					      "max us",	       "mean us", "+- %",   NULL};
	struct table *t = begin("lrrrrrr", heading);

	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < p->n_rows; i++) {
		const struct perf_kvm_row *r = &p->row[i];

		if (r->code.there)
			table_cell(t, "UNKNOWN %" PRIu64, r->code.value);
		else
			facts_text_cell(t, r->name);
		number_cell(t, &r->samples);
		decimal_cell(t, &r->time_pct);
		decimal_cell(t, &r->min_us);
		decimal_cell(t, &r->max_us);
		decimal_cell(t, &r->avg_us);
		decimal_cell(t, &r->dev_pct);
	}
	return finish(t);
}

/* ---- runs, migrations, rounds, locks ---- */

static uint64_t sum(const uint64_t *v, size_t n)
{
	uint64_t s = 0;

	for (size_t i = 0; i < n; i++)
		s += v[i];
	return s;
}

static int print_runs(const struct tables *tables)
{
	static const char *const heading[] = {"Run",   "iterations", "dirty",	"get",
					      "clear", "enable",     "disable", NULL};
	struct table *t;

	if (!tables->n_runs)
		return 0;
	t = begin("lrrrrrr", heading);
	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < tables->n_runs; i++) {
		const struct dirty_log_run *r = &tables->run[i];

		facts_text_cell(t, r->label);
		number_cell(t, &r->iterations);
		time_cell(t, r->n_dirty, sum(r->dirty_ns, r->n_dirty));
		time_cell(t, r->n_get, sum(r->get_ns, r->n_get));
		time_cell(t, r->n_clear, sum(r->clear_ns, r->n_clear));
		time_cell(t, r->enable_ns.there, r->enable_ns.value);
		time_cell(t, r->disable_ns.there, r->disable_ns.value);
	}
	return finish(t);
}

static int print_migrations(const struct tables *tables)
{
	static const char *const heading[] = {"Migration", "ms",    "total KiB", "left KiB",
					      "dirty/s",   "syncs", NULL};
	struct table *t;
	int err;

	if (!tables->n_migrations)
		return 0;
	t = begin("lrrrrr", heading);
	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < tables->n_migrations; i++) {
		const struct migration_status *m = &tables->migration[i];

		facts_text_cell(t, m->status);
		number_cell(t, &m->total_ms);
		number_cell(t, &m->total_kib);
		number_cell(t, &m->remaining_kib);
		number_cell(t, &m->dirty_pages_rate);
		number_cell(t, &m->dirty_syncs);
	}
	err = finish(t);
	for (size_t i = 0; i < tables->n_migrations; i++) {
		const struct migration_status *m = &tables->migration[i];

		for (size_t k = 0; k < n_migrate_fields; k++) {
			const struct number *n =
				(const struct number *)((const char *)m + migrate_fields[k].offset);

			if (migration_impossible(m, n))
				printf("Migration %zu: %s of %" PRIu64
				       " is an accounting error: no run can have it.\n",
				       i + 1, migrate_fields[k].name, n->value);
		}
	}
	return err;
}

static int print_dirty_rates(const struct tables *tables)
{
	static const char *const heading[] = {"Dirty rate", "mode", "seconds", "MB/s", NULL};
	struct table *t;

	if (!tables->n_dirty_rates)
		return 0;
	t = begin("llrr", heading);
	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < tables->n_dirty_rates; i++) {
		facts_text_cell(t, tables->dirty_rate[i].status);
		facts_text_cell(t, tables->dirty_rate[i].mode);
		number_cell(t, &tables->dirty_rate[i].period_s);
		number_cell(t, &tables->dirty_rate[i].rate_mb_s);
	}
	return finish(t);
}

static int print_rounds(const struct tables *tables)
{
	static const char *const heading[] = {"Round",	    "MiB",	   "MiB/s",
					      "transfer s", "downtime ms", NULL};
	struct table *t;

	if (!tables->n_rounds)
		return 0;
	t = begin("rrrrr", heading);
	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < tables->n_rounds; i++) {
		const struct precopy_round *r = &tables->round[i];

		table_cell(t, "%" PRIu64, r->iter);
		number_cell(t, &(struct number){r->curr_mib, true});
		decimal_cell(t, &r->bw_mib_s);
		decimal_cell(t, &r->transfer_s);
		number_cell(t, &(struct number){r->est_downtime_ms, true});
	}
	return finish(t);
}

static int print_locks(const struct tables *tables)
{
	static const char *const heading[] = {"Lock", "type", "contended", "total",
					      "max",  "mean", NULL};
	struct table *t;

	if (!tables->n_locks)
		return 0;
	t = begin("llrrrr", heading);
	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < tables->n_locks; i++) {
		const struct contended_lock *l = &tables->lock[i];

		facts_text_cell(t, l->name ? l->name : l->address);
		facts_text_cell(t, l->type);
		number_cell(t, &(struct number){l->contended, l->contended != UINT64_MAX});
		time_cell(t, l->total_ns != UINT64_MAX, l->total_ns);
		time_cell(t, l->max_ns != UINT64_MAX, l->max_ns);
		time_cell(t, l->avg_ns != UINT64_MAX, l->avg_ns);
	}
	return finish(t);
}

int tables_print(const struct host_facts *h)
{
	const struct tables *t = h->tables;
	int err = 0;

	for (size_t i = 0; !err && i < t->n_kvm_stat; i++)
		err = print_kvm_stat(&t->kvm_stat[i]);
	for (size_t i = 0; !err && i < t->n_perf_kvm; i++)
		err = print_perf_kvm(&t->perf_kvm[i]);
	if (!err)
		err = print_runs(t);
	if (!err)
		err = print_migrations(t);
	if (!err)
		err = print_dirty_rates(t);
	if (!err)
		err = print_rounds(t);
	if (!err)
		err = print_locks(t);
	if (t->csv.n_columns)
		printf("\nCSV: %zu rows of %zu columns\n", t->csv.n_rows, t->csv.n_columns);
	return err;
}
