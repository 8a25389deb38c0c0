// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/facts_priv.h"
#include "analysis/output.h"

/* The tables and logs of tools, row by row, for programs. */

static json_t *text(const char *s)
{
	return s ? facts_text_json(s, strlen(s)) : json_null();
}

static json_t *number(const struct number *n)
{
	return n->there ? json_u64(n->value) : json_null();
}

static json_t *decimal(const struct decimal *d)
{
	double unit = 1;

	if (!d->there)
		return json_null();
	if (!d->digits)
		return json_integer(d->value);
	for (unsigned i = 0; i < d->digits; i++)
		unit *= 10;
	/* both are exact, so this is the double that is next to the number as printed */
	return json_real((double)d->value / unit);
}

/* ---- kvm_stat, perf kvm stat ---- */

static json_t *kvm_stat_json(const struct kvm_stat_table *t)
{
	json_t *o = json_object(), *rows = json_array();
	uint64_t sum = 0;

	for (size_t i = 0; i < t->n_rows; i++) {
		const struct kvm_stat_row *r = &t->row[i];
		json_t *row = json_object();

		json_put(row, "name", text(r->name));
		json_put(row, "parent", text(r->parent));
		json_put(row, "total", json_u64(r->total));
		json_put(row, "percent", decimal(&r->percent));
		json_put(row, "rate", number(&r->rate));
		json_array_append_new(rows, row);
		if (!r->parent)
			sum += r->total;
	}
	json_put(o, "layout",
		 json_string(t->layout == KVM_STAT_TOTAL_CURRENT ? "total-current"
								 : "total-percent-rate"));
	json_put(o, "scope", text(t->scope));
	json_put(o, "rows", rows);
	json_put(o, "total", number(&t->total));
	json_put(o, "total_rate", number(&t->total_rate));
	json_put(o, "rows_sum_ok",
		 t->total.there ? json_boolean(sum == t->total.value) : json_null());
	return o;
}

static json_t *perf_kvm_json(const struct perf_kvm_table *t)
{
	json_t *o = json_object(), *rows = json_array();

	for (size_t i = 0; i < t->n_rows; i++) {
		const struct perf_kvm_row *r = &t->row[i];
		json_t *row = json_object();

		json_put(row, "name", text(r->name));
		json_put(row, "code", number(&r->code));
		json_put(row, "samples", number(&r->samples));
		json_put(row, "samples_pct", decimal(&r->samples_pct));
		json_put(row, "time_pct", decimal(&r->time_pct));
		json_put(row, "min_us", decimal(&r->min_us));
		json_put(row, "max_us", decimal(&r->max_us));
		json_put(row, "avg_us", decimal(&r->avg_us));
		json_put(row, "dev_pct", decimal(&r->dev_pct));
		json_array_append_new(rows, row);
	}
	json_put(o, "scope", text(t->scope));
	json_put(o, "wall_clock", text(t->wall_clock));
	json_put(o, "rows", rows);
	json_put(o, "total_samples", number(&t->total_samples));
	json_put(o, "total_time_us", decimal(&t->total_time_us));
	return o;
}

/* Those of the tool whose table came first, then the other's. */
static json_t *stat_tables_json(const struct host_facts *h)
{
	const struct tables *t = h->tables;
	json_t *a = json_array();

	for (unsigned s = 0; s < h->result->n_sections; s++) {
		enum host_kind k = h->result->sections[s];

		for (size_t i = 0; k == HOST_KIND_KVM_STAT && i < t->n_kvm_stat; i++)
			json_array_append_new(a, kvm_stat_json(&t->kvm_stat[i]));
		for (size_t i = 0; k == HOST_KIND_PERF_KVM_STAT && i < t->n_perf_kvm; i++)
			json_array_append_new(a, perf_kvm_json(&t->perf_kvm[i]));
	}
	return a;
}

/* ---- dirty_log_perf_test ---- */

static json_t *list(const uint64_t *v, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_u64(v[i]));
	return a;
}

static json_t *run_json(const struct dirty_log_run *r)
{
	json_t *o = json_object();

	json_put(o, "label", text(r->label));
	json_put(o, "layout", json_string(r->range ? "range" : "offset"));
	json_put(o, "iterations", number(&r->iterations));
	json_put(o, "populate_ns", number(&r->populate_ns));
	json_put(o, "enable_ns", number(&r->enable_ns));
	json_put(o, "disable_ns", number(&r->disable_ns));
	json_put(o, "dirty_ns", list(r->dirty_ns, r->n_dirty));
	json_put(o, "get_ns", list(r->get_ns, r->n_get));
	json_put(o, "clear_ns", list(r->clear_ns, r->n_clear));
	json_put(o, "get_total_ns", number(&r->get_total_ns));
	json_put(o, "clear_total_ns", number(&r->clear_total_ns));
	return o;
}

/* ---- QEMU's monitor ---- */

/* What is left by the pages that were counted; pages sent again make it negative, then it tells
 * nothing. */
static json_t *derived_remaining(const struct migration_status *m)
{
	uint64_t sent;

	if (!m->total_kib.there || !m->zero_pages.there || !m->normal_pages.there ||
	    !m->page_kib.there ||
	    __builtin_add_overflow(m->zero_pages.value, m->normal_pages.value, &sent) ||
	    __builtin_mul_overflow(sent, m->page_kib.value, &sent) || sent > m->total_kib.value)
		return json_null();
	return json_u64(m->total_kib.value - sent);
}

/* Into a list of names, which are in order. */
static void add_name(json_t *list, const char *name)
{
	size_t at = 0;

	while (at < json_array_size(list) &&
	       strcmp(json_string_value(json_array_get(list, at)), name) < 0)
		at++;
	json_array_insert_new(list, at, json_string(name));
}

static json_t *migration_json(const struct migration_status *m)
{
	static const char *const layouts[] = {"lines", "folded", "folded-all"};
	json_t *o = json_object(), *impossible = json_array();

	json_put(o, "layout", json_string(layouts[m->layout]));
	json_put(o, "status", text(m->status));
	json_put(o, "throughput_mbps", decimal(&m->throughput_mbps));
	for (size_t i = 0; i < n_migrate_fields; i++) {
		const struct number *n =
			(const struct number *)((const char *)m + migrate_fields[i].offset);
		bool wrong = migration_impossible(m, n);

		json_put(o, migrate_fields[i].name, wrong ? json_null() : number(n));
		if (wrong)
			add_name(impossible, migrate_fields[i].name);
	}
	json_put(o, "impossible", impossible);
	if (migration_impossible(m, &m->remaining_kib))
		json_put(o, "derived_remaining_kib", derived_remaining(m));
	return o;
}

static json_t *dirty_rate_json(const struct dirty_rate *d)
{
	json_t *o = json_object(), *rates = json_object();
	char key[OUT_TEXT];

	for (size_t i = 0; i < d->n_vcpus; i++) {
		snprintf(key, sizeof(key), "%" PRIu64, d->vcpu[i].vcpu);
		json_put(rates, key, json_u64(d->vcpu[i].mb_s));
	}
	json_put(o, "status", text(d->status));
	json_put(o, "start_ms", number(&d->start_ms));
	json_put(o, "mode", text(d->mode));
	json_put(o, "period_s", number(&d->period_s));
	json_put(o, "rate_mb_s", number(&d->rate_mb_s));
	json_put(o, "sample_pages", number(&d->sample_pages));
	json_put(o, "vcpu_rates", rates);
	return o;
}

/* ---- the rest ---- */

static json_t *round_json(const struct precopy_round *r)
{
	json_t *o = json_object();

	json_put(o, "iter", json_u64(r->iter));
	json_put(o, "total_mib", json_u64(r->total_mib));
	json_put(o, "curr_mib", json_u64(r->curr_mib));
	json_put(o, "bw_mib_s", decimal(&r->bw_mib_s));
	json_put(o, "transfer_s", decimal(&r->transfer_s));
	json_put(o, "overhead_ms", json_u64(r->overhead_ms));
	json_put(o, "est_downtime_ms", json_u64(r->est_downtime_ms));
	json_put(o, "elapsed_s", decimal(&r->elapsed_s));
	return o;
}

static json_t *column(uint64_t v)
{
	return v == UINT64_MAX ? json_null() : json_u64(v);
}

static json_t *lock_json(const struct contended_lock *l)
{
	json_t *o = json_object();

	json_put(o, "contended", column(l->contended));
	json_put(o, "total_ns", column(l->total_ns));
	json_put(o, "max_ns", column(l->max_ns));
	json_put(o, "avg_ns", column(l->avg_ns));
	json_put(o, "type", text(l->type));
	json_put(o, "name", text(l->name));
	json_put(o, "offset", text(l->offset));
	json_put(o, "address", text(l->address));
	json_put(o, "stack_lines", json_u64(l->stack_lines));
	return o;
}

static json_t *csv_json(const struct csv_table *c)
{
	json_t *o = json_object(), *names = json_array(), *rows = json_array();

	for (size_t i = 0; i < c->n_columns; i++)
		json_array_append_new(names, text(c->name[i]));
	for (size_t r = 0; r < c->n_rows; r++) {
		json_t *row = json_array();

		for (size_t i = 0; i < c->n_columns; i++)
			json_array_append_new(row, text(c->cell[r * c->n_columns + i]));
		json_array_append_new(rows, row);
	}
	json_put(o, "columns", names);
	json_put(o, "rows", rows);
	return o;
}

void facts_tables_json(json_t *o, const struct host_facts *h)
{
	const struct tables *t = h->tables;
	bool stat = facts_has(h, HOST_KIND_KVM_STAT) || facts_has(h, HOST_KIND_PERF_KVM_STAT),
	     runs = facts_has(h, HOST_KIND_DIRTY_LOG_PERF),
	     monitor = facts_has(h, HOST_KIND_QEMU_MONITOR),
	     rounds = facts_has(h, HOST_KIND_PRECOPY),
	     locks = facts_has(h, HOST_KIND_LOCK_CONTENTION);
	json_t *a;

#define ROWS(key, there, n, of, at)                                                                \
	do {                                                                                       \
		a = (there) ? json_array() : json_null();                                          \
		for (size_t i = 0; (there) && i < (n); i++)                                        \
			json_array_append_new(a, of(&(at)[i]));                                    \
		json_put(o, key, a);                                                               \
	} while (0)
	json_put(o, "tables", stat ? stat_tables_json(h) : json_null());
	ROWS("runs", runs, t->n_runs, run_json, t->run);
	ROWS("migrations", monitor, t->n_migrations, migration_json, t->migration);
	ROWS("dirty_rates", monitor, t->n_dirty_rates, dirty_rate_json, t->dirty_rate);
	ROWS("rounds", rounds, t->n_rounds, round_json, t->round);
	ROWS("locks", locks, t->n_locks, lock_json, t->lock);
#undef ROWS
	json_put(o, "csv", facts_has(h, HOST_KIND_CSV) ? csv_json(&t->csv) : json_null());
}
