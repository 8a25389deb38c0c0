// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/event_reader.h"

#include <stdlib.h>
#include <string.h>

#include "traces/reader.h"
#include "traces/tables/rows.h"

struct event_reader {
	struct trace_reader *r;
	struct event_block *block;
	uint32_t next; /* entry of the index, NO_BLOCK */
	int error;
	uint8_t raw[EVENT_RAW_MAX], stored[BLOCK_HEADER_BYTES + EVENT_RAW_MAX];
};

int event_reader_open(struct trace_reader *r, struct event_reader **out)
{
	struct event_reader *e = calloc(1, sizeof(*e));

	*out = e;
	if (e)
		e->block = event_block_new();
	if (!e || !e->block) {
		event_reader_close(e);
		*out = NULL;
		return reader_no_memory(r);
	}
	e->r = r;
	e->next = r->first_events;
	return 0;
}

void event_reader_close(struct event_reader *e)
{
	if (!e)
		return;
	event_block_free(e->block);
	free(e);
}

static int load(struct event_reader *e)
{
	struct block_buffer buf = {e->stored, e->raw, EVENT_RAW_MAX};
	struct trace_reader *r = e->r;
	struct block_header h;
	const uint8_t *raw;
	const char *wrong;
	int ret = reader_payload(r, e->next, &buf, &h, &raw);

	if (ret)
		return ret;
	wrong = event_block_decode(e->block, raw, h.raw_len, h.n_ops);
	if (wrong)
		return reader_bad(r, r->index[e->next].offset, wrong);
	r->stats.event_rows += h.n_ops;
	e->next = r->next[e->next];
	return 0;
}

int event_reader_next(struct event_reader *e, struct event_row *row)
{
	if (e->error)
		return e->error;
	while (!event_block_next(e->block, row)) {
		if (e->next == NO_BLOCK)
			return 0;
		e->error = load(e);
		if (e->error)
			return e->error;
	}
	return 1;
}

/* ---- host_read() ---- */

static void take_result(struct host_result *to, const struct host_result *from)
{
	struct host_result whole = *from;

	whole.n_sections = to->n_sections;
	memcpy(whole.sections, to->sections, sizeof(whole.sections));
	*to = whole;
}

/* What the columns of a trace say that has no end. */
static void take_event(struct host_result *r, const struct host_event *e)
{
	r->counts.records++;
	r->has_cpu |= e->cpu >= 0;
	r->has_tid |= e->tid >= 0;
	r->has_time |= e->time_ns != HOST_NO_TIME;
}

static int deliver(const struct event_row *row, const struct host_sink *s, struct tables *tables,
		   struct host_result *r)
{
	switch (row->kind) {
	case EVENT_ROW_EVENT:
		take_event(r, &row->event);
		return s->event ? s->event(s->ctx, &row->event) : 0;
	case EVENT_ROW_LOSS:
		r->counts.loss_markers += !row->loss.header;
		return s->loss ? s->loss(s->ctx, &row->loss) : 0;
	case EVENT_ROW_ELISION:
		r->counts.elisions++;
		return s->elision ? s->elision(s->ctx) : 0;
	case EVENT_ROW_CPUS:
		return s->cpus ? s->cpus(s->ctx, row->cpus, row->empty) : 0;
	case EVENT_ROW_SECTION:
		if (row->section < HOST_N_KINDS && r->n_sections < HOST_N_KINDS)
			r->sections[r->n_sections++] = row->section;
		return 0;
	case EVENT_ROW_TABLE:
		r->counts.rows++;
		return tables && row->table.at
			       ? tables_take_row(tables, row->table.at, row->table.len)
			       : 0;
	default:
		take_result(r, &row->result);
		return 0;
	}
}

int host_read_native_fd(int fd, const char *name, const void *head, size_t len,
			const struct host_opts *opts, const struct host_sink *sink,
			const struct kvmsim_errsink *errors, struct host_result *result)
{
	struct trace_reader *r;
	struct event_reader *e = NULL;
	struct event_row row;
	uint64_t told = 0;
	int ret;

	memset(result, 0, sizeof(*result));
	ret = reader_open_fd(fd, name, head, len, errors, &r);
	if (ret)
		return ret;
	if (!trace_event_rows(r)) {
		result->refusal = HOST_NO_KVM_CONTENT;
		ret = kvmsim_err(errors, KVMSIM_EPARSE, "%s: it holds nothing of a host", name);
	}
	if (!ret)
		ret = event_reader_open(r, &e);
	while (!ret && e && (ret = event_reader_next(e, &row)) > 0) {
		ret = deliver(&row, sink, opts->tables, result);
		if (ret == KVMSIM_ENOMEM)
			ret = reader_no_memory(r);
		if (!ret && opts->interrupted && *opts->interrupted)
			ret = KVMSIM_EINTR;
		if (!ret && opts->progress && r->stats.bytes - told >= 1 << 20) {
			told = r->stats.bytes;
			opts->progress(opts->progress_ctx, told);
		}
	}
	if (!ret && !result->n_sections)
		result->sections[result->n_sections++] = HOST_KIND_NATIVE;
	event_reader_close(e);
	trace_close(r);
	return ret;
}
