// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/import_host.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/event_reader.h"
#include "traces/event_writer.h"
#include "traces/tables/tables.h"

/* Of the file of number k in a merged trace: FORMAT.md, "Columns of events". */
#define TID_STEP (1ll << 32)
#define CPU_STEP (1ll << 16)

struct importer {
	struct trace_writer *w;
	struct event_ops *ops; /* NULL: only events */
	const struct host_sink *watch;
	struct import_host_file *file;
	uint8_t decimals; /* of the first time */
	bool timed;
};

/* ---- rows on their way ---- */

static int take_event(void *ctx, const struct host_event *e)
{
	struct importer *im = ctx;
	struct import_host_file *f = im->file;
	int ret = trace_write_event(im->w, e);

	if (e->time_ns != HOST_NO_TIME) {
		if (!im->timed)
			im->decimals = e->time_decimals;
		im->timed = true;
		if (f->first_time == HOST_NO_TIME || e->time_ns < f->first_time)
			f->first_time = e->time_ns;
		if (f->last_time == HOST_NO_TIME || e->time_ns > f->last_time)
			f->last_time = e->time_ns;
	}
	if (!ret && im->ops)
		ret = event_ops_add(im->ops, e);
	if (!ret && im->watch && im->watch->event)
		ret = im->watch->event(im->watch->ctx, e);
	return ret;
}

static int take_loss(void *ctx, const struct host_loss *l)
{
	struct importer *im = ctx;
	struct event_row row = {.kind = EVENT_ROW_LOSS, .loss = *l};
	int ret = trace_write_row(im->w, &row);

	return !ret && im->watch && im->watch->loss ? im->watch->loss(im->watch->ctx, l) : ret;
}

static int take_elision(void *ctx)
{
	struct importer *im = ctx;
	struct event_row row = {.kind = EVENT_ROW_ELISION};
	int ret = trace_write_row(im->w, &row);

	return !ret && im->watch && im->watch->elision ? im->watch->elision(im->watch->ctx) : ret;
}

static int take_cpus(void *ctx, uint64_t n, bool empty)
{
	struct importer *im = ctx;
	struct event_row row = {.kind = EVENT_ROW_CPUS, .cpus = n, .empty = empty};
	int ret = trace_write_row(im->w, &row);

	return !ret && im->watch && im->watch->cpus ? im->watch->cpus(im->watch->ctx, n, empty)
						    : ret;
}

/* ---- files ---- */

static int create(struct importer *im, const struct import_host_opts *o, const char *path,
		  const struct kvmsim_errsink *errors)
{
	struct trace_meta meta = {
		.version = TRACE_VERSION,
		.n_slots = o->n_slots ? o->n_slots : 1,
		.slots = {{0, 1, "ram"}}, /* the one found takes its place */
		.clock = TRACE_CLOCK_NS,
		.clock_hz = 1000000000,
		.unseen = TRACE_NO_GVA | TRACE_NO_DMA | TRACE_NO_WALKS | TRACE_ONLY_FAULTS,
		.source = (char *)(o->source ? o->source : "tracepoints of a host"),
		.kernel = (char *)o->kernel,
		.workload = (char *)o->workload,
	};

	if (o->n_slots)
		memcpy(meta.slots, o->slots, o->n_slots * sizeof(meta.slots[0]));
	return trace_create(path, &meta, errors, &im->w);
}

static int read_file(struct importer *im, struct import_host_file *f,
		     const struct import_host_opts *o, const struct kvmsim_errsink *errors)
{
	struct tables tables;
	const struct host_opts opts = {.tables = &tables,
				       .interrupted = o->interrupted,
				       .progress = o->progress,
				       .progress_ctx = o->progress_ctx};
	const struct host_sink sink = {im, take_event, take_loss, take_elision, take_cpus};
	int ret = tables_init(&tables);

	if (ret)
		return kvmsim_err(errors, ret, "%s: out of memory", f->path);
	im->file = f;
	im->watch = f->watch;
	f->first_time = f->last_time = HOST_NO_TIME;
	ret = host_read(f->path, &opts, &sink, errors, &f->result);
	if (!ret && !f->result.counts.records && !f->result.counts.rows)
		ret = kvmsim_err(errors, KVMSIM_EPARSE, "%s: cannot tell: no event in it", f->path);
	ret = ret ? ret : trace_write_tables(im->w, &tables);
	tables_free(&tables);
	return ret;
}

/* What is known only at the end. */
static int complete(struct importer *im, const struct import_host_opts *o,
		    struct import_host_stats *stats)
{
	struct trace_slot slots[TRACE_MAX_SLOTS] = {{0, 1, "ram"}};
	uint32_t n = o->n_slots ? o->n_slots : 1;
	bool cycles = im->timed && !im->decimals;
	int ret = event_ops_end(im->ops, &stats->ops);

	if (ret)
		return ret;
	if (o->n_slots) {
		memcpy(slots, o->slots, n * sizeof(*slots));
	} else if (stats->ops.low_gfn <= stats->ops.high_gfn) {
		slots[0].base_gfn = stats->ops.low_gfn;
		slots[0].npages = stats->ops.high_gfn - stats->ops.low_gfn + 1;
		stats->slot = slots[0];
	}
	if (stats->ops.no_time)
		trace_unseen(im->w, TRACE_ONE_CLOCK);
	return trace_amend(im->w, cycles ? TRACE_CLOCK_TSC : TRACE_CLOCK_NS,
			   cycles ? 0 : 1000000000, slots, n);
}

static int import_one(struct import_host_file *f, const struct import_host_opts *o,
		      const char *out_path, const struct kvmsim_errsink *errors,
		      struct import_host_stats *stats)
{
	struct importer im = {.w = NULL};
	int ret = create(&im, o, out_path, errors);

	if (ret)
		return ret;
	ret = event_ops_new(im.w, o->slots, o->n_slots, errors, &im.ops);
	ret = ret ? ret : read_file(&im, f, o, errors);
	ret = ret ? ret : trace_write_result(im.w, &f->result);
	ret = ret ? ret : complete(&im, o, stats);
	event_ops_free(im.ops);
	if (!ret)
		return trace_finish(im.w, NULL);
	trace_abort(im.w);
	return ret;
}

/* ---- several ---- */

struct part {
	char *path; /* of what was read of the file */
	struct trace_reader *r;
	struct event_reader *rows;
	struct event_row row; /* the next one, when @more */
	bool more;
	uint64_t time; /* of its last event, offset added: where its other rows belong */
};

static int advance(struct part *p, const struct import_host_file *f)
{
	int ret = event_reader_next(p->rows, &p->row);

	p->more = ret > 0;
	if (ret <= 0)
		return ret;
	if (p->row.kind == EVENT_ROW_EVENT && p->row.event.time_ns != HOST_NO_TIME) {
		p->row.event.time_ns += f->offset_ns;
		if (p->row.event.time_ns > p->time)
			p->time = p->row.event.time_ns;
	}
	return 0;
}

static int make_part(struct part *p, struct import_host_file *f, size_t k, const char *out_path,
		     const struct import_host_opts *o, const struct kvmsim_errsink *errors,
		     struct importer *all)
{
	struct importer im = {.w = NULL};
	int ret;

	if (asprintf(&p->path, "%s.%ld-part%zu.tmp", out_path, (long)getpid(), k) < 0) {
		p->path = NULL;
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", out_path);
	}
	ret = create(&im, o, p->path, errors);
	if (ret)
		return ret;
	ret = read_file(&im, f, o, errors);
	if (!ret && !im.timed)
		ret = kvmsim_err(errors, KVMSIM_EPARSE,
				 "%s: no times in it: it cannot be merged with other files",
				 f->path);
	if (!ret && !im.decimals)
		ret = kvmsim_err(errors, KVMSIM_EPARSE,
				 "%s: its times are not seconds: it cannot be merged with other "
				 "files",
				 f->path);
	if (!ret && f->offset_ns < 0 && f->first_time < -(uint64_t)f->offset_ns)
		ret = kvmsim_err(errors, KVMSIM_EPARSE,
				 "%s: with an offset of %lld ns its first time is negative",
				 f->path, (long long)f->offset_ns);
	if (ret) {
		trace_abort(im.w);
		return ret;
	}
	f->first_time += f->offset_ns;
	f->last_time += f->offset_ns;
	if (!k) {
		all->timed = im.timed;
		all->decimals = im.decimals;
	}
	ret = trace_finish(im.w, NULL);
	ret = ret ? ret : trace_open(p->path, errors, &p->r);
	ret = ret ? ret : event_reader_open(p->r, &p->rows);
	return ret ? ret : advance(p, f);
}

static int put_row(struct importer *im, struct part *p, size_t k)
{
	struct event_row *row = &p->row;
	struct host_event *e = &row->event;
	int ret;

	if (row->kind == EVENT_ROW_EVENT) {
		e->tid += e->tid < 0 ? 0 : (int64_t)k * TID_STEP;
		e->tgid += e->tgid < 0 ? 0 : (int64_t)k * TID_STEP;
		e->cpu += e->cpu < 0 ? 0 : (int64_t)k * CPU_STEP;
		ret = trace_write_event(im->w, e);
		return !ret && !k ? event_ops_add(im->ops, e) : ret;
	}
	if (row->kind == EVENT_ROW_LOSS && row->loss.cpu >= 0)
		row->loss.cpu += (int64_t)k * CPU_STEP;
	if (row->kind == EVENT_ROW_CPUS && row->empty)
		row->cpus += k * CPU_STEP;
	return trace_write_row(im->w, row);
}

static int merge(struct importer *im, struct part *part, const struct import_host_file *files,
		 size_t n, const struct import_host_opts *o)
{
	int ret = 0;

	while (!ret) {
		size_t first = n;

		for (size_t k = 0; k < n; k++)
			if (part[k].more && (first == n || part[k].time < part[first].time))
				first = k;
		if (first == n)
			return 0;
		if (o->interrupted && *o->interrupted)
			return KVMSIM_EINTR;
		ret = put_row(im, &part[first], first);
		ret = ret ? ret : advance(&part[first], &files[first]);
	}
	return ret;
}

/* Of all files together. */
static struct host_result sum(const struct import_host_file *files, size_t n)
{
	struct host_result all = files[0].result;
	const size_t words = offsetof(struct host_counts, first_damaged) / sizeof(uint64_t);

	for (size_t k = 1; k < n; k++) {
		const struct host_result *r = &files[k].result;
		uint64_t a[sizeof(struct host_counts) / sizeof(uint64_t)];
		uint64_t b[sizeof(struct host_counts) / sizeof(uint64_t)];

		memcpy(a, &all.counts, words * sizeof(*a));
		memcpy(b, &r->counts, words * sizeof(*b));
		for (size_t i = 0; i < words; i++)
			a[i] += b[i];
		memcpy(&all.counts, a, words * sizeof(*a));
		all.has_cpu |= r->has_cpu;
		all.has_tid |= r->has_tid;
		all.has_time |= r->has_time;
		for (unsigned i = 0; i < r->n_sections; i++) {
			bool there = false;

			for (unsigned j = 0; j < all.n_sections; j++)
				there |= all.sections[j] == r->sections[i];
			if (!there && all.n_sections < HOST_N_KINDS)
				all.sections[all.n_sections++] = r->sections[i];
		}
	}
	all.counts.first_damaged = 0; /* a line of which file? */
	return all;
}

static int import_several(struct import_host_file *files, size_t n,
			  const struct import_host_opts *o, const char *out_path,
			  const struct kvmsim_errsink *errors, struct import_host_stats *stats)
{
	struct part *part = calloc(n, sizeof(*part));
	struct importer im = {.w = NULL};
	int ret = 0;

	if (!part)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", out_path);
	for (size_t k = 0; !ret && k < n; k++)
		ret = make_part(&part[k], &files[k], k, out_path, o, errors, &im);
	ret = ret ? ret : create(&im, o, out_path, errors);
	ret = ret ? ret : event_ops_new(im.w, o->slots, o->n_slots, errors, &im.ops);
	ret = ret ? ret : merge(&im, part, files, n, o);
	if (!ret) {
		struct host_result all = sum(files, n);

		ret = trace_write_result(im.w, &all);
	}
	ret = ret ? ret : complete(&im, o, stats);
	event_ops_free(im.ops);
	if (!ret)
		ret = trace_finish(im.w, NULL);
	else
		trace_abort(im.w);
	for (size_t k = 0; k < n; k++) {
		event_reader_close(part[k].rows);
		trace_close(part[k].r);
		if (part[k].path)
			unlink(part[k].path);
		free(part[k].path);
	}
	free(part);
	return ret;
}

int import_host(struct import_host_file *files, size_t n, const struct import_host_opts *opts,
		const char *out_path, const struct kvmsim_errsink *errors,
		struct import_host_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	for (size_t k = 0; k < n; k++)
		memset(&files[k].result, 0, sizeof(files[k].result));
	return n == 1 ? import_one(files, opts, out_path, errors, stats)
		      : import_several(files, n, opts, out_path, errors, stats);
}
