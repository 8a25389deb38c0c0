// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "traces/event_block.h"
#include "traces/event_shape.h"

/*
 * Every number is checked where it is read, so that event_block_next() need not look: numbers of
 * strings, contexts and shapes are those of something that is there.
 */

struct in {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t get(struct in *in)
{
	uint64_t v = 0;

	for (unsigned shift = 0; in->p < in->end && shift < 64; shift += 7) {
		uint8_t c = *in->p++;

		if (shift == 63 && c > 1)
			break;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80)
			return v;
	}
	in->bad = true;
	return 0;
}

static uint64_t get_signed(struct in *in)
{
	uint64_t z = get(in);

	return z >> 1 ^ -(z & 1);
}

static uint8_t get_byte(struct in *in)
{
	if (in->p < in->end)
		return *in->p++;
	in->bad = true;
	return 0;
}

/* At most @most; else the block is bad. */
static uint64_t get_below(struct in *in, uint64_t most)
{
	uint64_t v = get(in);

	if (v <= most)
		return v;
	in->bad = true;
	return 0;
}

static const char *get_strings(struct event_block *b, struct in *in)
{
	size_t n = get_below(in, EVENT_STRINGS), len = 0;

	for (size_t i = 0; i < n && !in->bad; i++) {
		b->string[i] = (struct event_string){len, get_below(in, EVENT_STRING_MAX)};
		len += b->string[i].len;
	}
	if (in->bad || len > EVENT_TEXT_MAX || (size_t)(in->end - in->p) < len)
		return "the block ends inside its strings";
	b->n_strings = n;
	b->text = (const char *)in->p;
	in->p += len;
	return NULL;
}

static const char *get_contexts(struct event_block *b, struct in *in)
{
	size_t n = get_below(in, EVENT_CONTEXTS);

	for (size_t i = 0; i < n && !in->bad; i++) {
		struct event_context *c = &b->context[i];

		c->tid = get_signed(in);
		c->tgid = get_signed(in);
		c->cpu = get_signed(in);
		c->comm = get_below(in, b->n_strings);
	}
	b->n_contexts = n;
	return in->bad ? "the block has contexts that cannot be" : NULL;
}

static struct host_text text(const struct event_block *b, uint32_t number)
{
	const struct event_string *s = number ? &b->string[number - 1] : NULL;

	return s ? (struct host_text){b->text + s->at, s->len} : (struct host_text){NULL, 0};
}

static unsigned column_find(struct host_text name)
{
	for (unsigned c = 0; c < N_EVENT_COLUMNS; c++) {
		const char *known = event_column_name(c);

		if (known && strlen(known) == name.len && !memcmp(known, name.at, name.len))
			return c;
	}
	return UNKNOWN_COLUMN;
}

/* The columns by the names that the block has for them. Those of one name are found once. */
static void get_columns(struct event_block *b, struct in *in, struct event_shape *s)
{
	s->n_columns = get_byte(in);
	if (s->n_columns > N_EVENT_COLUMNS)
		in->bad = true;
	for (unsigned k = 0; k < s->n_columns && !in->bad; k++) {
		uint32_t name = get_below(in, b->n_strings);
		unsigned c;

		if (!name) {
			in->bad = true;
			break;
		}
		if (!b->known[name - 1])
			b->known[name - 1] = 1 + column_find(text(b, name));
		c = b->known[name - 1] - 1;
		s->column[k] = c;
		if (c < N_SHARED_COLUMNS) {
			in->bad |= s->shared[c] != UINT8_MAX;
			s->shared[c] = k;
		}
	}
}

static const char *get_shapes(struct event_block *b, struct in *in)
{
	size_t n = get_below(in, EVENT_SHAPES);

	memset(b->known, 0, b->n_strings * sizeof(b->known[0]));
	for (size_t i = 0; i < n && !in->bad; i++) {
		struct event_shape *s = &b->shape[i];
		enum host_event_id found;
		uint8_t class;

		memset(s->shared, UINT8_MAX, sizeof(s->shared));
		s->kind = get_byte(in);
		s->flags = get_byte(in);
		s->decimals = get_byte(in);
		s->flags_width = get_byte(in);
		s->id_name = get_below(in, b->n_strings);
		s->name = get_below(in, b->n_strings);
		class = get_byte(in);
		get_columns(b, in, s);
		if (s->kind >= EVENT_ROW_KINDS || s->flags > SHAPE_FLAGS || class > CLASS_REST)
			in->bad = true;
		if (in->bad)
			break;
		s->id = class == CLASS_OTHER	 ? HOST_OTHER
			: class == CLASS_UNKNOWN ? HOST_UNKNOWN_KVM
						 : HOST_KVM_REST;
		if (s->id_name) {
			struct host_text t = text(b, s->id_name);

			found = host_event_find(t.at, t.len);
			s->id = host_event_name(found) ? found : HOST_KVM_REST;
		}
		s->have = 0;
		for (unsigned k = 0; k < s->n_columns; k++)
			if (s->column[k] >= COLUMN_FIELDS && s->column[k] < COLUMN_CPU)
				s->have |= 1ull << (s->column[k] - COLUMN_FIELDS);
	}
	b->n_shapes = n;
	return in->bad ? "the block has shapes that cannot be" : NULL;
}

/* The column of every row that has it, as @at says of its shape. */
static void get_shared(struct event_block *b, struct in *in, unsigned column)
{
	uint64_t last = 0;

	for (size_t row = 0; row < b->n_rows && !in->bad; row++) {
		unsigned at = b->shape[b->shape_of[row]].shared[column];

		if (at == UINT8_MAX)
			continue;
		last += get_signed(in);
		if (column == COLUMN_where && last >= b->n_contexts)
			in->bad = true;
		b->value[b->offset[row] + at] = last;
	}
}

static void get_own(struct event_block *b, struct in *in, const struct event_shape *s)
{
	for (unsigned k = 0; k < s->n_columns; k++) {
		uint64_t last = 0;

		if (s->column[k] < N_SHARED_COLUMNS)
			continue;
		for (uint32_t row = s->first; row != UINT32_MAX && !in->bad; row = b->next[row]) {
			last += get_signed(in);
			if (s->column[k] == COLUMN_reason && last > b->n_strings)
				in->bad = true;
			b->value[b->offset[row] + k] = last;
		}
	}
}

const char *event_block_decode(struct event_block *b, const uint8_t *raw, size_t len, size_t n)
{
	struct in in = {raw, raw + len, false};
	const char *wrong = get_strings(b, &in);

	b->pos = b->n_rows = b->n_values = 0;
	wrong = wrong ? wrong : get_contexts(b, &in);
	wrong = wrong ? wrong : get_shapes(b, &in);
	if (wrong)
		return wrong;
	if (n > EVENT_BLOCK_ROWS || (size_t)(in.end - in.p) < n)
		return "the block ends inside its column of shapes";
	memcpy(b->shape_of, in.p, n);
	in.p += n;
	for (size_t i = 0; i < b->n_shapes; i++)
		b->shape[i].first = b->shape[i].last = UINT32_MAX;
	for (size_t row = 0; row < n; row++) {
		struct event_shape *s = &b->shape[b->shape_of[row]];

		if (b->shape_of[row] >= b->n_shapes)
			return "the block names a shape that it does not have";
		if (b->n_values + s->n_columns > EVENT_BLOCK_VALUES)
			return "the block has more values than one can";
		b->offset[row] = b->n_values;
		b->n_values += s->n_columns;
		b->next[row] = UINT32_MAX;
		if (s->first == UINT32_MAX)
			s->first = row;
		else
			b->next[s->last] = row;
		s->last = row;
	}
	b->n_rows = n;
	for (unsigned c = 0; c < N_SHARED_COLUMNS; c++)
		get_shared(b, &in, c);
	for (size_t i = 0; i < b->n_shapes; i++)
		get_own(b, &in, &b->shape[i]);
	if (in.bad || in.p != in.end) {
		b->n_rows = 0;
		return in.bad ? "the block has a value that cannot be"
			      : "the block has bytes left over";
	}
	return NULL;
}

/* ---- rows ---- */

static void next_event(const struct event_block *b, const struct event_shape *s, const uint64_t *v,
		       struct host_event *e)
{
	e->id = s->id;
	e->name = text(b, s->name ? s->name : s->id_name);
	e->damaged = s->flags & SHAPE_DAMAGED;
	e->role_unreliable = s->flags & SHAPE_UNRELIABLE;
	e->time_decimals = s->decimals;
	e->flags_width = s->flags_width;
	e->context = s->flags / SHAPE_CONTEXT;
	e->have = s->have;
	e->time_ns = HOST_NO_TIME;
	e->line = 0;
	e->tid = e->tgid = e->cpu = -1;
	e->comm = e->reason = (struct host_text){NULL, 0};
	for (unsigned k = 0; k < s->n_columns; k++) {
		unsigned c = s->column[k];

		if (c >= COLUMN_FIELDS && c < COLUMN_CPU) {
			e->v[c - COLUMN_FIELDS] = v[k];
		} else if (c == COLUMN_time) {
			e->time_ns = v[k];
		} else if (c == COLUMN_line) {
			e->line = v[k];
		} else if (c == COLUMN_reason) {
			e->reason = text(b, v[k]);
		} else if (c == COLUMN_where) {
			const struct event_context *x = &b->context[v[k]];

			e->tid = x->tid;
			e->tgid = x->tgid;
			e->cpu = x->cpu;
			e->comm = text(b, x->comm);
		}
	}
}

static void set_word(struct host_result *r, const struct event_result_column *c, uint64_t v)
{
	char *at = (char *)r + c->offset;
	uint32_t w = v;

	if (c->size == sizeof(bool))
		*(bool *)at = v;
	else
		memcpy(at, c->size == sizeof(w) ? (const void *)&w : &v, c->size);
}

static void next_plain(const struct event_block *b, const struct event_shape *s, const uint64_t *v,
		       struct event_row *row)
{
	struct host_text name = {NULL, 0};

	row->loss = (struct host_loss){.cpu = -1, .header = s->flags & SHAPE_HEADER};
	row->empty = s->flags & SHAPE_EMPTY;
	row->cpus = 0;
	memset(&row->result, 0, sizeof(row->result));
	for (unsigned k = 0; k < s->n_columns; k++) {
		unsigned c = s->column[k];

		if (c == COLUMN_CPU)
			row->loss.cpu = v[k];
		else if (c == COLUMN_COUNT)
			row->loss.count = v[k];
		else if (c == COLUMN_CHUNKS)
			row->loss.chunks = v[k];
		else if (c == COLUMN_N)
			row->cpus = v[k];
		else if (c == COLUMN_reason)
			name = text(b, v[k]);
		else if (c >= COLUMN_RESULT && c - COLUMN_RESULT < n_event_result_columns)
			set_word(&row->result, &event_result_columns[c - COLUMN_RESULT], v[k]);
	}
	if (row->kind == EVENT_ROW_RESULT && name.at &&
	    name.len < sizeof(row->result.dat.compression))
		memcpy(row->result.dat.compression, name.at, name.len);
	row->table = name;
	row->section = HOST_N_KINDS;
	for (unsigned i = 0; row->kind == EVENT_ROW_SECTION && name.at && i < HOST_N_KINDS; i++) {
		const char *known = host_kind_name((enum host_kind)i);

		if (strlen(known) == name.len && !memcmp(known, name.at, name.len))
			row->section = (enum host_kind)i;
	}
}

bool event_block_next(struct event_block *b, struct event_row *row)
{
	const struct event_shape *s;
	const uint64_t *v;

	if (b->pos == b->n_rows)
		return false;
	s = &b->shape[b->shape_of[b->pos]];
	v = b->value + b->offset[b->pos++];
	row->kind = (enum event_row_kind)s->kind;
	if (s->kind == EVENT_ROW_EVENT)
		next_event(b, s, v, &row->event);
	else
		next_plain(b, s, v, row);
	return true;
}
