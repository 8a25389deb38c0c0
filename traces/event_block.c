// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/event_block.h"

#include <stdlib.h>
#include <string.h>

#include "traces/event_shape.h"

#define NO_ROW UINT32_MAX
/* Strings that a new shape may bring: the names of its columns, two of its own. */
#define SHAPE_STRINGS 256u
#define SHAPE_TEXT    4096u

#define R(name, member)                                                                            \
	{                                                                                          \
		name, offsetof(struct host_result, member),                                        \
			sizeof(((struct host_result *)0)->member)                                  \
	}
const struct event_result_column event_result_columns[] = {
	R("bytes", counts.bytes),
	R("lines", counts.lines),
	R("records", counts.records),
	R("rows", counts.rows),
	R("unknown_lines", counts.unknown_lines),
	R("damaged_lines", counts.damaged_lines),
	R("dropped_lines", counts.dropped_lines),
	R("rejoined_records", counts.rejoined_records),
	R("trailing_notes", counts.trailing_notes),
	R("elisions", counts.elisions),
	R("stack_traces", counts.stack_traces),
	R("stack_lines", counts.stack_lines),
	R("loss_markers", counts.loss_markers),
	R("first_damaged", counts.first_damaged),
	R("blank", counts.blank),
	R("has_cpu", has_cpu),
	R("has_tid", has_tid),
	R("has_time", has_time),
	R("is_dat", dat.is_dat),
	R("dat_version", dat.version),
	R("dat_long_size", dat.long_size),
	R("dat_page_size", dat.page_size),
	R("dat_big_endian", dat.big_endian),
};
#undef R
const unsigned n_event_result_columns =
	sizeof(event_result_columns) / sizeof(event_result_columns[0]);

_Static_assert(sizeof(event_result_columns) / sizeof(event_result_columns[0]) <=
		       N_EVENT_COLUMNS - COLUMN_RESULT,
	       "every word of the result has a column");

const char *event_column_name(unsigned column)
{
	static const char *const head[] = {"@time", "@line", "@where", "@reason"};
	static const char *const loss[] = {"@cpu", "@count", "@chunks", "@n"};

	if (column < COLUMN_FIELDS)
		return head[column];
	if (column < COLUMN_CPU)
		return host_field_name((enum host_field)(column - COLUMN_FIELDS));
	if (column < COLUMN_RESULT)
		return loss[column - COLUMN_CPU];
	column -= COLUMN_RESULT;
	return column < n_event_result_columns ? event_result_columns[column].name : NULL;
}

struct event_block *event_block_new(void)
{
	struct event_block *b = calloc(1, sizeof(*b));

	if (b)
		b->text = b->text_own;
	return b;
}

void event_block_free(struct event_block *b)
{
	free(b);
}

size_t event_block_rows(const struct event_block *b)
{
	return b->n_rows;
}

static void reset(struct event_block *b)
{
	b->n_rows = b->n_values = b->n_shapes = b->n_contexts = b->n_strings = 0;
	b->text_len = b->text_room = 0;
	memset(b->column_name, 0, sizeof(b->column_name));
	memset(b->shape_hash, 0, sizeof(b->shape_hash));
	memset(b->context_hash, 0, sizeof(b->context_hash));
	memset(b->string_hash, 0, sizeof(b->string_hash));
}

/* ---- strings, contexts, shapes by number ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

static uint64_t hash_bytes(const char *s, size_t len)
{
	uint64_t h = len, v;

	for (; len >= 8; s += 8, len -= 8) {
		memcpy(&v, s, 8);
		h = mix(h, v);
	}
	v = 0;
	memcpy(&v, s, len);
	return mix(h, v);
}

/* The number of a string, from 1; the caller has seen that there is room. */
static uint32_t intern(struct event_block *b, const char *s, size_t len)
{
	uint32_t h, mask = (1u << STRING_HASH_BITS) - 1;

	if (len > EVENT_STRING_MAX)
		len = EVENT_STRING_MAX;
	for (h = hash_bytes(s, len) & mask; b->string_hash[h]; h = (h + 1) & mask) {
		const struct event_string *t = &b->string[b->string_hash[h] - 1];

		if (t->len == len && !memcmp(b->text_own + t->at, s, len))
			return b->string_hash[h];
	}
	b->string[b->n_strings] = (struct event_string){b->text_len, len};
	memcpy(b->text_own + b->text_len, s, len);
	b->text_len += len;
	b->text_room += len + 3;
	b->string_hash[h] = ++b->n_strings;
	return b->n_strings;
}

static size_t cut(struct host_text t)
{
	return t.len > EVENT_STRING_MAX ? EVENT_STRING_MAX : t.len;
}

static bool room(const struct event_block *b, size_t text)
{
	return b->n_rows < EVENT_BLOCK_ROWS && b->n_shapes < EVENT_SHAPES &&
	       b->n_values + N_EVENT_COLUMNS <= EVENT_BLOCK_VALUES &&
	       b->n_contexts < EVENT_CONTEXTS && b->n_strings + SHAPE_STRINGS <= EVENT_STRINGS &&
	       b->text_room + text + SHAPE_TEXT <= EVENT_TEXT_MAX;
}

static uint64_t context_of(struct event_block *b, const struct host_event *e)
{
	uint32_t mask = (1u << CONTEXT_HASH_BITS) - 1, h;
	const char *comm = e->comm.at ? e->comm.at : "";
	size_t len = e->comm.at ? cut(e->comm) : 0;
	uint64_t first = 0;

	memcpy(&first, comm, len < 8 ? len : 8);
	h = mix(mix(mix(e->tid, e->cpu), e->tgid), first) & mask;
	for (; b->context_hash[h]; h = (h + 1) & mask) {
		const struct event_context *c = &b->context[b->context_hash[h] - 1];
		const struct event_string *s = c->comm ? &b->string[c->comm - 1] : NULL;

		if (c->tid == e->tid && c->cpu == e->cpu && c->tgid == e->tgid &&
		    (s ? s->len == len && !memcmp(b->text_own + s->at, comm, len) : !len))
			return b->context_hash[h] - 1;
	}
	b->context[b->n_contexts] =
		(struct event_context){e->tid, e->tgid, e->cpu, len ? intern(b, comm, len) : 0};
	b->context_hash[h] = ++b->n_contexts;
	return b->n_contexts - 1;
}

static void add_column(struct event_block *b, struct event_shape *s, unsigned column)
{
	const char *name = event_column_name(column);

	if (!b->column_name[column])
		b->column_name[column] = intern(b, name, strlen(name));
	if (column < N_SHARED_COLUMNS)
		s->shared[column] = s->n_columns;
	s->column[s->n_columns++] = column;
}

/* What tells shapes apart, before the strings are numbered. */
static bool same_shape(const struct event_block *b, const struct event_shape *s,
		       const struct event_shape *key, struct host_text id_name,
		       struct host_text name)
{
	const struct event_string *t;

	if (s->kind != key->kind || s->flags != key->flags || s->have != key->have ||
	    s->head != key->head || s->id != key->id || s->decimals != key->decimals ||
	    s->flags_width != key->flags_width)
		return false;
	if (!s->id_name != !id_name.len || !s->name != !name.len)
		return false;
	t = s->id_name ? &b->string[s->id_name - 1] : NULL;
	if (t && (t->len != id_name.len || memcmp(b->text_own + t->at, id_name.at, t->len)))
		return false;
	t = s->name ? &b->string[s->name - 1] : NULL;
	return !t || (t->len == name.len && !memcmp(b->text_own + t->at, name.at, t->len));
}

static uint32_t shape_of(struct event_block *b, struct event_shape *key, struct host_text id_name,
			 struct host_text name)
{
	uint32_t mask = (1u << SHAPE_HASH_BITS) - 1, h;
	struct event_shape *s;

	id_name.len = cut(id_name);
	name.len = cut(name);
	h = mix(mix(key->have, key->id * 64 + key->kind), key->head + 256 * key->flags) & mask;
	for (; b->shape_hash[h]; h = (h + 1) & mask)
		if (same_shape(b, &b->shape[b->shape_hash[h] - 1], key, id_name, name))
			return b->shape_hash[h] - 1;
	s = &b->shape[b->n_shapes];
	*s = *key;
	s->n_columns = 0;
	memset(s->shared, UINT8_MAX, sizeof(s->shared));
	s->first = s->last = NO_ROW;
	s->id_name = id_name.len ? intern(b, id_name.at, id_name.len) : 0;
	s->name = name.len ? intern(b, name.at, name.len) : 0;
	for (unsigned c = 0; c < COLUMN_FIELDS; c++)
		if (s->head >> c & 1)
			add_column(b, s, c);
	for (unsigned f = 0; f < HOST_N_FIELDS; f++)
		if (s->kind == EVENT_ROW_EVENT && s->have >> f & 1)
			add_column(b, s, COLUMN_FIELDS + f);
	b->shape_hash[h] = ++b->n_shapes;
	return b->n_shapes - 1;
}

static uint64_t *begin_row(struct event_block *b, uint32_t shape)
{
	struct event_shape *s = &b->shape[shape];
	uint32_t row = b->n_rows++;

	b->shape_of[row] = shape;
	b->offset[row] = b->n_values;
	b->next[row] = NO_ROW;
	if (s->first == NO_ROW)
		s->first = row;
	else
		b->next[s->last] = row;
	s->last = row;
	b->n_values += s->n_columns;
	return b->value + b->offset[row];
}

/* ---- filling ---- */

bool event_block_add_event(struct event_block *b, const struct host_event *e)
{
	const char *own = host_event_name(e->id);
	struct host_text id_name = {own, own ? strlen(own) : 0}, name = e->name;
	struct event_shape key;
	uint64_t *v;

	if (!room(b, cut(e->comm) + cut(e->name) + cut(e->reason)))
		return false;
	if (own && id_name.len == name.len && !memcmp(own, name.at, name.len))
		name.len = 0;
	key.kind = EVENT_ROW_EVENT;
	key.flags = (e->damaged ? SHAPE_DAMAGED : 0) | (e->role_unreliable ? SHAPE_UNRELIABLE : 0) |
		    e->context * SHAPE_CONTEXT;
	key.decimals = e->time_decimals;
	key.flags_width = e->flags_width;
	key.have = e->have;
	key.id = e->id;
	key.head = 1 << COLUMN_where | (e->time_ns != HOST_NO_TIME) << COLUMN_time |
		   !!e->line << COLUMN_line | !!e->reason.len << COLUMN_reason;
	v = begin_row(b, shape_of(b, &key, id_name, name));
	if (e->time_ns != HOST_NO_TIME)
		*v++ = e->time_ns;
	if (e->line)
		*v++ = e->line;
	*v++ = context_of(b, e);
	if (e->reason.len)
		*v++ = intern(b, e->reason.at, e->reason.len);
	for (uint64_t left = e->have; left; left &= left - 1)
		*v++ = e->v[__builtin_ctzll(left)];
	return true;
}

/* A row of @columns, which are no fields of events: one shape for each such set. */
static bool add_plain(struct event_block *b, enum event_row_kind kind, unsigned flags,
		      struct host_text text, const uint8_t *columns, const uint64_t *values,
		      unsigned n)
{
	struct event_shape key = {.kind = kind, .flags = flags};
	struct event_shape *s;
	uint32_t shape;
	uint64_t *v;

	if (!room(b, cut(text)))
		return false;
	if (text.len)
		key.head = 1 << COLUMN_reason;
	for (unsigned i = 0; i < n; i++)
		key.have |= 1ull << (columns[i] - COLUMN_CPU);
	shape = shape_of(b, &key, (struct host_text){0}, (struct host_text){0});
	s = &b->shape[shape];
	if (s->first == NO_ROW)
		for (unsigned i = 0; i < n; i++)
			add_column(b, s, columns[i]);
	v = begin_row(b, shape);
	if (text.len)
		*v++ = intern(b, text.at, text.len);
	for (unsigned i = 0; i < n; i++)
		v[i] = values[i];
	return true;
}

static uint64_t get_word(const struct host_result *r, const struct event_result_column *c)
{
	const char *at = (const char *)r + c->offset;
	uint64_t v = 0;
	uint32_t w;

	switch (c->size) {
	case sizeof(bool):
		return *(const bool *)at;
	case sizeof(w):
		memcpy(&w, at, sizeof(w));
		return w;
	default:
		memcpy(&v, at, sizeof(v));
		return v;
	}
}

static bool add_result(struct event_block *b, const struct host_result *r)
{
	size_t len = strnlen(r->dat.compression, sizeof(r->dat.compression));
	uint8_t columns[N_EVENT_COLUMNS - COLUMN_RESULT];
	uint64_t values[N_EVENT_COLUMNS - COLUMN_RESULT];
	unsigned n = 0;

	for (unsigned i = 0; i < n_event_result_columns; i++) {
		uint64_t v = get_word(r, &event_result_columns[i]);

		if (!v)
			continue;
		columns[n] = COLUMN_RESULT + i;
		values[n++] = v;
	}
	return add_plain(b, EVENT_ROW_RESULT, 0, (struct host_text){r->dat.compression, len},
			 columns, values, n);
}

bool event_block_add(struct event_block *b, const struct event_row *row)
{
	static const uint8_t loss[] = {COLUMN_CPU, COLUMN_COUNT, COLUMN_CHUNKS}, one[] = {COLUMN_N};
	const uint64_t values[] = {row->loss.cpu, row->loss.count, row->loss.chunks};
	struct host_text name = {0};

	switch (row->kind) {
	case EVENT_ROW_EVENT:
		return event_block_add_event(b, &row->event);
	case EVENT_ROW_LOSS:
		return add_plain(b, row->kind, row->loss.header ? SHAPE_HEADER : 0, name, loss,
				 values, 3);
	case EVENT_ROW_CPUS:
		return add_plain(b, row->kind, row->empty ? SHAPE_EMPTY : 0, name, one, &row->cpus,
				 1);
	case EVENT_ROW_SECTION:
		name.at = host_kind_name(row->section);
		name.len = strlen(name.at);
		return add_plain(b, row->kind, 0, name, NULL, NULL, 0);
	case EVENT_ROW_RESULT:
		return add_result(b, &row->result);
	case EVENT_ROW_TABLE:
		return add_plain(b, row->kind, 0, row->table, NULL, NULL, 0);
	default:
		return add_plain(b, EVENT_ROW_ELISION, 0, name, NULL, NULL, 0);
	}
}

/* ---- encoding ---- */

static uint8_t *put(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = v | 0x80;
	*p++ = v;
	return p;
}

static uint8_t *put_signed(uint8_t *p, uint64_t v)
{
	return put(p, v << 1 ^ (uint64_t)((int64_t)v >> 63));
}

static uint8_t *put_tables(const struct event_block *b, uint8_t *p)
{
	p = put(p, b->n_strings);
	for (size_t i = 0; i < b->n_strings; i++)
		p = put(p, b->string[i].len);
	memcpy(p, b->text_own, b->text_len);
	p += b->text_len;
	p = put(p, b->n_contexts);
	for (size_t i = 0; i < b->n_contexts; i++) {
		const struct event_context *c = &b->context[i];

		p = put_signed(p, c->tid);
		p = put_signed(p, c->tgid);
		p = put_signed(p, c->cpu);
		p = put(p, c->comm);
	}
	p = put(p, b->n_shapes);
	for (size_t i = 0; i < b->n_shapes; i++) {
		const struct event_shape *s = &b->shape[i];

		*p++ = s->kind;
		*p++ = s->flags;
		*p++ = s->decimals;
		*p++ = s->flags_width;
		p = put(p, s->id_name);
		p = put(p, s->name);
		*p++ = s->id == HOST_KVM_REST	   ? CLASS_REST
		       : s->id == HOST_UNKNOWN_KVM ? CLASS_UNKNOWN
						   : CLASS_OTHER;
		*p++ = s->n_columns;
		for (unsigned k = 0; k < s->n_columns; k++)
			p = put(p, b->column_name[s->column[k]]);
	}
	memcpy(p, b->shape_of, b->n_rows);
	return p + b->n_rows;
}

size_t event_block_encode(struct event_block *b, uint8_t *raw)
{
	uint8_t *p;

	p = put_tables(b, raw);
	for (unsigned c = 0; c < N_SHARED_COLUMNS; c++) {
		uint64_t last = 0;

		for (size_t row = 0; row < b->n_rows; row++) {
			unsigned at = b->shape[b->shape_of[row]].shared[c];
			uint64_t v;

			if (at == UINT8_MAX)
				continue;
			v = b->value[b->offset[row] + at];
			p = put_signed(p, v - last);
			last = v;
		}
	}
	for (size_t i = 0; i < b->n_shapes; i++) {
		const struct event_shape *s = &b->shape[i];

		for (unsigned k = 0; k < s->n_columns; k++) {
			uint64_t last = 0;

			if (s->column[k] < N_SHARED_COLUMNS)
				continue;
			for (uint32_t row = s->first; row != NO_ROW; row = b->next[row]) {
				uint64_t v = b->value[b->offset[row] + k];

				p = put_signed(p, v - last);
				last = v;
			}
		}
	}
	reset(b);
	return p - raw;
}
