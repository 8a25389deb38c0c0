// SPDX-License-Identifier: GPL-3.0-or-later
/* A host's trace as CSV. */
#include <inttypes.h>
#include <string.h>

#include "analysis/export.h"
#include "analysis/host_progress.h"
#include "analysis/output.h"
#include "analysis/run.h"
#include "analysis/utf8.h"

/* Fields that people read as decimal numbers; the others are addresses, bits and values. */
#define DECIMAL_FIELDS                                                                             \
	(1ull << HOST_F_vcpu | 1ull << HOST_F_isa | 1ull << HOST_F_level | 1ull << HOST_F_gen |    \
	 1ull << HOST_F_as_id | 1ull << HOST_F_direct | 1ull << HOST_F_quadrant |                  \
	 1ull << HOST_F_gpte_bytes | 1ull << HOST_F_root_count | 1ull << HOST_F_unsync |           \
	 1ull << HOST_F_created | 1ull << HOST_F_type | 1ull << HOST_F_len |                       \
	 1ull << HOST_F_count | 1ull << HOST_F_write | 1ull << HOST_F_fixed |                      \
	 1ull << HOST_F_spurious | 1ull << HOST_F_ring | 1ull << HOST_F_slot |                     \
	 1ull << HOST_F_used | 1ull << HOST_F_grow | 1ull << HOST_F_prev_pid |                     \
	 1ull << HOST_F_next_pid | 1ull << HOST_F_pid | 1ull << HOST_F_target_cpu |                \
	 1ull << HOST_F_ns | 1ull << HOST_F_waited)

struct rows {
	struct csv_out csv;
	uint64_t events;
	bool begun;
};

static void text(struct csv_out *c, struct host_text t)
{
	char clean[4 * 256];

	if (!t.len)
		csv_text(c, NULL);
	else
		csv_text(c, utf8_clean(clean, sizeof(clean), t.at, t.len, false));
}

static void id(struct csv_out *c, int64_t v)
{
	if (v < 0)
		csv_text(c, NULL);
	else
		csv_field(c, "%" PRId64, v);
}

static void field(struct csv_out *c, const struct host_event *e, enum host_field f)
{
	bool sign = f == HOST_F_ret || (f == HOST_F_reason && e->id == HOST_kvm_userspace_exit);
	bool ple = e->id == HOST_kvm_ple_window || e->id == HOST_kvm_ple_window_update;

	if (!host_has(e, f))
		csv_text(c, NULL);
	else if (sign)
		csv_field(c, "%" PRId64, (int64_t)e->v[f]);
	else if (f == HOST_F_prev_state)
		csv_field(c, "%c", e->v[f] > ' ' && e->v[f] < 0x7f ? (int)e->v[f] : '?');
	else if (DECIMAL_FIELDS >> f & 1 || (ple && (f == HOST_F_old || f == HOST_F_new)))
		csv_field(c, "%" PRIu64, e->v[f]);
	else
		csv_field(c, "0x%" PRIx64, e->v[f]);
}

/* Before the first row; nothing is written where there is none. */
static void heading(struct rows *r)
{
	static const char *const heads[] = {"time_ns", "cpu",  "tid",	  "tgid", "comm",
					    "event",   "line", "damaged", "lost", "exit_reason"};

	if (r->begun)
		return;
	r->begun = true;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		csv_text(&r->csv, heads[i]);
	for (unsigned f = 0; f < HOST_N_FIELDS; f++)
		csv_text(&r->csv, host_field_name(f));
	csv_end_row(&r->csv);
}

static int on_event(void *ctx, const struct host_event *e)
{
	struct rows *r = ctx;
	struct csv_out *c = &r->csv;

	heading(r);
	r->events++;
	if (e->time_ns == HOST_NO_TIME)
		csv_text(c, NULL);
	else
		csv_field(c, "%" PRIu64, e->time_ns);
	id(c, e->cpu);
	id(c, e->tid);
	id(c, e->tgid);
	text(c, e->comm);
	text(c, e->name);
	id(c, e->line ? (int64_t)e->line : -1);
	csv_text(c, e->damaged ? "1" : NULL);
	csv_text(c, NULL);
	text(c, e->reason);
	for (unsigned f = 0; f < HOST_N_FIELDS; f++)
		field(c, e, f);
	csv_end_row(c);
	return 0;
}

/* A row without an event's fields. */
static void other_row(struct rows *r, int64_t cpu, const char *name, uint64_t count)
{
	struct csv_out *c = &r->csv;

	heading(r);
	csv_text(c, NULL);
	id(c, cpu);
	for (int i = 0; i < 3; i++)
		csv_text(c, NULL);
	csv_text(c, name);
	csv_text(c, NULL);
	csv_text(c, NULL);
	if (count == UINT64_MAX)
		csv_text(c, NULL);
	else
		csv_field(c, "%" PRIu64, count);
	csv_text(c, NULL);
	for (unsigned f = 0; f < HOST_N_FIELDS; f++)
		csv_text(c, NULL);
	csv_end_row(c);
}

static int on_loss(void *ctx, const struct host_loss *l)
{
	other_row(ctx, l->cpu, l->chunks ? "(lost chunks)" : "(lost)",
		  l->chunks ? l->chunks : l->count);
	return 0;
}

static int on_elision(void *ctx)
{
	other_row(ctx, -1, "(left out)", UINT64_MAX);
	return 0;
}

int export_csv(const char *path, const struct kvmsim_errsink *errors, FILE *to,
	       struct host_result *result, uint64_t *n_events)
{
	struct rows r = {.csv = {.to = to}};
	const struct host_sink sink = {
		.ctx = &r, .event = on_event, .loss = on_loss, .elision = on_elision};
	struct host_progress progress;
	const struct host_opts opts = {.interrupted = &run_interrupted,
				       .progress = host_progress_begin(&progress),
				       .progress_ctx = &progress};
	int err;

	memset(result, 0, sizeof(*result));
	err = host_read(path, &opts, &sink, errors, result);
	host_progress_end(&progress);
	*n_events = r.events;
	return err;
}
