// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>

#include "analysis/contention.h"
#include "analysis/output.h"

const char *contention_type(const struct contention_row *row)
{
	static const char *const types[][2] = {
		[LOCK_SPINLOCK] = {"spinlock", "spinlock"},
		[LOCK_RWLOCK] = {"rwlock:W", "rwlock:R"},
		[LOCK_MUTEX] = {"mutex", "mutex"},
		[LOCK_RWSEM] = {"rwsem:W", "rwsem:R"},
	};

	return types[row->kind][row->shared];
}

static void time_cell(struct table *t, double cycles, uint64_t hz, const char *unit)
{
	char buf[OUT_TEXT];

	if (hz)
		table_cell(t, "%s", out_time(buf, cycles, hz));
	else
		table_cell(t, "%.0f %s", cycles, unit);
}

int contention_print(const struct contention *c, uint64_t hz, const char *unit, FILE *to)
{
	static const char *const headings[] = {"contended", "total wait", "max wait",
					       "avg wait",  "type",	  "caller"};
	struct table *t;
	int err;

	if (c->failed)
		return KVMSIM_ENOMEM;
	if (!c->n) {
		fputs("No lock was contended.\n", to);
		return 0;
	}
	t = table_create("rrrrll");
	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < sizeof(headings) / sizeof(*headings); i++)
		table_cell(t, "%s", headings[i]);
	for (size_t i = 0; i < c->n; i++) {
		const struct contention_row *r = &c->rows[i];

		table_cell(t, "%" PRIu64, r->contended);
		time_cell(t, (double)r->wait, hz, unit);
		time_cell(t, (double)r->longest, hz, unit);
		time_cell(t, (double)r->wait / (double)r->contended, hz, unit);
		table_cell(t, "%s", contention_type(r));
		table_cell(t, "%s", r->caller);
	}
	err = table_print(t, to);
	table_free(t);
	return err;
}

json_t *contention_json(const struct contention *c)
{
	json_t *rows = c->failed ? NULL : json_array();

	for (size_t i = 0; rows && i < c->n; i++) {
		const struct contention_row *r = &c->rows[i];
		json_t *o = json_object();

		json_put(o, "contended", json_u64(r->contended));
		json_put(o, "total_wait", json_u64(r->wait));
		json_put(o, "max_wait", json_u64(r->longest));
		json_put(o, "avg_wait", json_u64(r->wait / r->contended));
		json_put(o, "type", json_string(contention_type(r)));
		json_put(o, "lock", json_string(r->lock));
		json_put(o, "caller", json_string(r->caller));
		json_array_append_new(rows, o);
	}
	return rows;
}
