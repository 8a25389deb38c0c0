// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/lock_file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analysis/csv.h"

extern const char recorded_locks[], recorded_locks_end[];

enum column {
	PHASE,
	ROW,
	SYMBOL,
	CALLER,
	OBJECTS,
	VCPUS,
	TAKEN,
	PER_MILLION,
	MOVED,
	NESTED,
	IRQ,
	TRIED,
	HOLD, /* the mean, then the quantiles */
	GAP = HOLD + 1 + QUANTILES_KNOTS,
	INNER_GAP = GAP + 1 + QUANTILES_KNOTS,
};

#define DISTRIBUTION(x)                                                                            \
	x "_mean", x "_min", x "_p10", x "_p25", x "_p50", x "_p75", x "_p90", x "_p99",           \
		x "_p999", x "_max"

static const char *const columns[] = {"phase",
				      "row",
				      "symbol",
				      "caller",
				      "objects",
				      "vcpus",
				      "taken",
				      "per_million",
				      "moved",
				      "nested",
				      "irq",
				      "tried",
				      DISTRIBUTION("hold"),
				      DISTRIBUTION("gap"),
				      DISTRIBUTION("inner_gap"),
				      NULL};

struct reading {
	struct lock_set *set;
	uint64_t phase;
	const struct kvmsim_errsink *errors;
};

static int distribution(const struct csv_row *row, size_t at, struct quantiles *q)
{
	uint64_t knot[QUANTILES_KNOTS];
	double mean;
	int err = csv_double(row, at, &mean);

	for (size_t i = 0; !err && i < QUANTILES_KNOTS; i++)
		err = csv_u64(row, at + 1 + i, &knot[i]);
	if (err)
		return err;
	if (mean < 0 || mean > 1e15 || !quantiles_init(q, knot, (uint64_t)llround(10 * mean)))
		return csv_complain(row,
				    "no distribution with the quantiles from %s on has the "
				    "mean %s",
				    columns[at + 1], row->field[at]);
	return 0;
}

static int name(const struct csv_row *row, size_t at, char *out, size_t bytes)
{
	if (strlen(row->field[at]) >= bytes)
		return csv_complain(row, "%s of more than %zu characters", columns[at], bytes - 1);
	strcpy(out, row->field[at]);
	return 0;
}

static int numbers(const struct csv_row *row, struct lock_row *r)
{
	const struct {
		size_t column;
		uint64_t *to;
	} all[] = {{OBJECTS, &r->objects}, {VCPUS, &r->vcpus},	 {TAKEN, &r->taken},
		   {MOVED, &r->moved},	   {NESTED, &r->nested}, {IRQ, &r->irq},
		   {TRIED, &r->tried}};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(all) / sizeof(*all); i++) {
		err = csv_u64(row, all[i].column, all[i].to);
		if (!err && *all[i].to > UINT32_MAX)
			err = csv_complain(row, "%s is above %" PRIu32, columns[all[i].column],
					   UINT32_MAX);
	}
	return err;
}

static int each_row(void *ctx, const struct csv_row *row)
{
	struct reading *in = ctx;
	struct lock_row r = {0};
	const char *kind = row->field[ROW];
	bool all = !strcmp(kind, "all");
	double per_million = 0;
	uint64_t phase;
	int err = csv_u64(row, PHASE, &phase);

	if (err || (!all && strcmp(kind, "lock") != 0 && strcmp(kind, "locks") != 0))
		return err;
	if (phase != in->phase)
		lock_set_free(in->set);
	in->phase = phase;
	err = name(row, SYMBOL, r.symbol, sizeof(r.symbol));
	err = err ? err : name(row, CALLER, r.caller, sizeof(r.caller));
	err = err ? err : numbers(row, &r);
	if (!err && all)
		err = csv_double(row, PER_MILLION, &per_million);
	if (!err && all && per_million <= 0)
		err = csv_complain(row, "no lock was taken");
	if (!err && all)
		r.work = (uint64_t)llround((double)r.taken * 1e6 / per_million);
	if (!err && !all)
		err = distribution(row, HOLD, &r.hold);
	if (!err && !all && r.nested < r.taken)
		err = distribution(row, GAP, &r.gap);
	if (!err && !all && r.nested)
		err = distribution(row, INNER_GAP, &r.inner_gap);
	if (err)
		return err;
	err = lock_set_add(in->set, &r);
	if (err == KVMSIM_EINVAL)
		return csv_complain(row, "more moved, nested, irq or tried than taken");
	return err;
}

int lock_file_read(const char *path, const struct kvmsim_errsink *errors, struct lock_set *out)
{
	const char *shown = path ? path : "dbench-locks.csv";
	struct reading in = {out, 0, errors};
	int err;

	*out = (struct lock_set){0};
	if (path)
		err = csv_read(path, columns, errors, each_row, &in);
	else
		err = csv_read_text(recorded_locks, (size_t)(recorded_locks_end - recorded_locks),
				    shown, columns, errors, each_row, &in);
	err = err ? err : lock_set_finish(out);
	if (err == KVMSIM_EINVAL)
		err = kvmsim_err(errors, KVMSIM_EPARSE,
				 "%s: no row 'all' of two vCPUs or more, or no rows 'lock' and "
				 "'locks' with a lock that was taken while no other was",
				 shown);
	return err;
}
