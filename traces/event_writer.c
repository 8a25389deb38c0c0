// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/event_writer.h"

#include <stdlib.h>
#include <string.h>

#include "traces/tables/rows.h"
#include "traces/writer.h"

/* Events come at the speed of a recording, and level 1 halves the time of 3 for a twentieth more.
 */
#define ZSTD_EVENT_LEVEL 1

struct event_buffer {
	struct event_block *block;
	ZSTD_CCtx *zstd;
	uint8_t raw[EVENT_RAW_MAX], stored[BLOCK_HEADER_BYTES + EVENT_RAW_MAX];
};

static int begin(struct trace_writer *w)
{
	struct event_buffer *b;

	if (w->error)
		return w->error;
	if (w->meta.version < TRACE_VERSION)
		return kvmsim_err(w->errors, KVMSIM_EINVAL,
				  "%s: events in a trace that was made for ops", w->out.path);
	if (w->events)
		return 0;
	b = w->events = calloc(1, sizeof(*b));
	if (b) {
		b->block = event_block_new();
		b->zstd = ZSTD_createCCtx();
	}
	if (!b || !b->block || !b->zstd ||
	    ZSTD_isError(
		    ZSTD_CCtx_setParameter(b->zstd, ZSTD_c_compressionLevel, ZSTD_EVENT_LEVEL)))
		return writer_fail(w, KVMSIM_ENOMEM, "no room for a block of events");
	return 0;
}

void event_writer_free(struct trace_writer *w)
{
	if (!w->events)
		return;
	event_block_free(w->events->block);
	ZSTD_freeCCtx(w->events->zstd);
	free(w->events);
	w->events = NULL;
}

int event_writer_flush(struct trace_writer *w)
{
	struct event_buffer *b = w->events;
	struct block_header h = {.events = true, .codec = CODEC_RAW};
	uint8_t *payload;
	size_t len;
	int ret;

	if (!b || !event_block_rows(b->block))
		return 0;
	payload = b->stored + BLOCK_HEADER_BYTES;
	h.n_ops = event_block_rows(b->block);
	h.raw_len = h.stored_len = event_block_encode(b->block, b->raw);
	len = ZSTD_compress2(b->zstd, payload, h.raw_len * 3 / 4, b->raw, h.raw_len);
	if (!ZSTD_isError(len)) {
		h.codec = CODEC_ZSTD;
		h.stored_len = len;
	} else {
		memcpy(payload, b->raw, h.raw_len);
	}
	h.crc = trace_crc32(0, payload, h.stored_len);
	block_header_encode(&h, b->stored);
	ret = writer_index(w, (struct index_entry){.n_ops = h.n_ops, .events = true});
	if (!ret)
		ret = writer_put(w, b->stored, BLOCK_HEADER_BYTES + h.stored_len);
	if (!ret) {
		w->stats.blocks++;
		w->stats.event_rows += h.n_ops;
	}
	return ret;
}

int trace_write_event(struct trace_writer *w, const struct host_event *e)
{
	int ret = begin(w);

	if (ret || event_block_add_event(w->events->block, e))
		return ret;
	ret = event_writer_flush(w);
	event_block_add_event(w->events->block, e);
	return ret;
}

int trace_write_row(struct trace_writer *w, const struct event_row *row)
{
	int ret = begin(w);

	if (ret || event_block_add(w->events->block, row))
		return ret;
	ret = event_writer_flush(w);
	event_block_add(w->events->block, row);
	return ret;
}

static int put_table(void *ctx, const char *text, size_t len)
{
	struct event_row row = {.kind = EVENT_ROW_TABLE, .table = {text, len}};

	return trace_write_row(ctx, &row);
}

int trace_write_tables(struct trace_writer *w, const struct tables *t)
{
	int ret = tables_put_rows(t, put_table, w);

	return ret == KVMSIM_ENOMEM ? writer_fail(w, KVMSIM_ENOMEM, "no room for a table") : ret;
}

int trace_write_result(struct trace_writer *w, const struct host_result *result)
{
	struct event_row row = {.kind = EVENT_ROW_SECTION};
	int ret = 0;

	for (unsigned i = 0; !ret && i < result->n_sections; i++) {
		row.section = result->sections[i];
		ret = trace_write_row(w, &row);
	}
	if (ret)
		return ret;
	row.kind = EVENT_ROW_RESULT;
	row.result = *result;
	return trace_write_row(w, &row);
}
