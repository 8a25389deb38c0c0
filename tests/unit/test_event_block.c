// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/trace_util.h"
#include "traces/event_reader.h"
#include "traces/event_writer.h"

/* A host's events in a native trace. */

static struct host_text text(const char *s)
{
	return (struct host_text){s, strlen(s)};
}

static bool same_text(struct host_text a, struct host_text b)
{
	return a.len == b.len && !memcmp(a.len ? a.at : "", b.len ? b.at : "", a.len);
}

static bool same_event(const struct host_event *a, const struct host_event *b)
{
	for (unsigned f = 0; f < HOST_N_FIELDS; f++)
		if (host_has(a, f) && a->v[f] != b->v[f])
			return false;
	return a->id == b->id && a->time_ns == b->time_ns && a->tid == b->tid &&
	       a->tgid == b->tgid && a->cpu == b->cpu && same_text(a->comm, b->comm) &&
	       same_text(a->name, b->name) && same_text(a->reason, b->reason) &&
	       a->have == b->have && a->damaged == b->damaged &&
	       a->role_unreliable == b->role_unreliable && a->time_decimals == b->time_decimals &&
	       a->flags_width == b->flags_width && a->context == b->context && a->line == b->line;
}

/* ---- any rows, through a file ---- */

#define MANY 30000

/* Row @i, always the same. Texts are in @buf. */
static struct event_row any_row(uint64_t i, char buf[3][256])
{
	uint64_t rnd = i * 0x9e3779b97f4a7c15u + 1;
	struct event_row row = {.kind = EVENT_ROW_EVENT};
	struct host_event *e = &row.event;
	unsigned what;

	test_random(&rnd);
	what = test_random(&rnd) % 64;
	if (what == 0) {
		row.kind = EVENT_ROW_LOSS;
		row.loss = (struct host_loss){.cpu = (int64_t)(test_random(&rnd) % 9) - 1,
					      .count = what % 2 ? UINT64_MAX : test_random(&rnd),
					      .chunks = test_random(&rnd) % 3,
					      .header = test_random(&rnd) % 2};
		return row;
	}
	if (what == 1) {
		row.kind = EVENT_ROW_CPUS;
		row.cpus = test_random(&rnd) % 100;
		row.empty = test_random(&rnd) % 2;
		return row;
	}
	if (what == 2) {
		row.kind = EVENT_ROW_ELISION;
		return row;
	}
	e->id = (enum host_event_id)(HOST_kvm_entry + test_random(&rnd) % 8);
	e->name = text(host_event_name(e->id));
	if (what == 3) { /* any of the others */
		e->id = HOST_OTHER;
		snprintf(buf[0], 256, "other_%u", (unsigned)(test_random(&rnd) % 200));
		e->name = text(buf[0]);
	} else if (what == 4) {
		e->id = HOST_UNKNOWN_KVM;
		e->name = text("kvm_of_no_kernel");
	} else if (what == 5) {
		e->name = text("spelled_otherwise");
	}
	e->time_ns = what == 6 ? HOST_NO_TIME : i * 1000 - test_random(&rnd) % 3000;
	/* more contexts than a block has */
	e->tid = what % 2 ? (int64_t)(test_random(&rnd) % (what % 4 == 1 ? 1u << 22 : 8)) : -1;
	e->tgid = what == 7 ? 5 : -1;
	e->cpu = (int64_t)(test_random(&rnd) % 5) - 1;
	snprintf(buf[1], 256, "comm %u", (unsigned)(e->tid & 0xffff));
	if (what % 8)
		e->comm = text(buf[1]);
	if (what == 8) {
		snprintf(buf[2], 256, "%0*u", (int)(test_random(&rnd) % 250), 7u);
		e->reason = text(buf[2]);
	} else if (what % 3 == 0) {
		e->reason = text("EPT_VIOLATION");
	}
	for (unsigned f = 0; f < HOST_N_FIELDS; f++)
		if (test_random(&rnd) % (what == 9 ? 2 : 1 + (e->id * 7 + f) % 5) == 0)
			host_set(e, f, test_random(&rnd) >> test_random(&rnd) % 64);
	if (what >= 10) /* else few would share a shape */
		e->have &= 0xf0f0f00ff0f0full << e->id % 4;
	e->have &= (1ull << HOST_N_FIELDS) - 1;
	for (unsigned f = 0; f < HOST_N_FIELDS; f++)
		if (host_has(e, f) && !e->v[f])
			e->v[f] = i + f;
	e->damaged = what == 11;
	e->role_unreliable = what == 12;
	e->time_decimals = what == 13 ? 9 : 6;
	e->flags_width = what == 14 ? 5 : 4;
	e->context = what % HOST_N_CONTEXTS;
	e->line = what == 15 ? 0 : i + 1;
	return row;
}

static bool same_row(const struct event_row *a, const struct event_row *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case EVENT_ROW_EVENT:
		return same_event(&a->event, &b->event);
	case EVENT_ROW_LOSS:
		return a->loss.cpu == b->loss.cpu && a->loss.count == b->loss.count &&
		       a->loss.chunks == b->loss.chunks && a->loss.header == b->loss.header;
	case EVENT_ROW_CPUS:
		return a->cpus == b->cpus && a->empty == b->empty;
	default:
		return true;
	}
}

static const struct guest_op some_ops[] = {{.kind = OP_WRITE, .arg = 0x5000, .gap = 3},
					   {.kind = OP_HLT, .gap = 9}};

static const struct host_result end = {
	.counts = {.bytes = 1ull << 40,
		   .lines = 77,
		   .records = 5,
		   .unknown_lines = 4,
		   .damaged_lines = 3,
		   .dropped_lines = 2,
		   .first_damaged = 9,
		   .blank = true},
	.dat = {.is_dat = true,
		.version = 7,
		.long_size = 8,
		.page_size = 4096,
		.compression = "zstd"},
	.sections = {HOST_KIND_TRACE_TEXT, HOST_KIND_QEMU_MONITOR},
	.n_sections = 2,
	.has_cpu = true,
	.has_time = true,
};

static void write_rows(const char *path, uint64_t n)
{
	struct trace_meta meta = meta_of(1);
	struct trace_stats st;
	struct trace_writer *w;
	char buf[3][256];

	meta.version = TRACE_VERSION;
	CU_ASSERT_EQUAL_FATAL(trace_create(path, &meta, NULL, &w), 0);
	for (uint64_t i = 0; i < n; i++) {
		struct event_row row = any_row(i, buf);

		if (trace_write_row(w, &row))
			CU_FAIL_FATAL("a row was not written");
		if (i == n / 2)
			CU_ASSERT_EQUAL(trace_write(w, 0, some_ops, 2), 0);
	}
	CU_ASSERT_EQUAL(trace_write_result(w, &end), 0);
	CU_ASSERT_EQUAL_FATAL(trace_finish(w, &st), 0);
	CU_ASSERT_EQUAL(st.event_rows, n + 3);
	CU_ASSERT_EQUAL(st.ops, 2);
}

/* Rows that are as they were written, from the first on; then *@ret. */
static uint64_t read_rows(const char *path, const struct kvmsim_errsink *errors, int *ret,
			  bool *differs)
{
	struct trace_reader *r;
	struct event_reader *e;
	struct event_row row;
	char buf[3][256];
	uint64_t i = 0;

	*differs = false;
	*ret = trace_open(path, errors, &r);
	if (*ret)
		return 0;
	CU_ASSERT_EQUAL_FATAL(event_reader_open(r, &e), 0);
	while ((*ret = event_reader_next(e, &row)) > 0) {
		struct event_row expected = any_row(i, buf);

		if (row.kind >= EVENT_ROW_SECTION)
			continue;
		*differs |= !same_row(&expected, &row);
		i++;
	}
	event_reader_close(e);
	trace_close(r);
	return i;
}

static void gives_back_what_was_written(void)
{
	const char *path = temp_path("many");
	struct trace_reader *r;
	bool differs;
	int ret;

	write_rows(path, MANY);
	CU_ASSERT_EQUAL(read_rows(path, NULL, &ret, &differs), MANY);
	CU_ASSERT_EQUAL(ret, 0);
	CU_ASSERT_FALSE(differs);
	r = reopen(path, NULL);
	CU_ASSERT_EQUAL(trace_meta(r)->version, 2);
	CU_ASSERT_EQUAL(trace_ops(r), 2);
	CU_ASSERT_EQUAL(trace_event_rows(r), MANY + 3);
	CU_ASSERT(stream_is(r, 0, some_ops, 2));
	trace_close(r);
}

static void keeps_long_strings(void)
{
	struct trace_meta meta = meta_of(1);
	const char *path = temp_path("long");
	char *s = malloc(70000);
	struct trace_writer *w;
	struct trace_reader *r;
	struct event_reader *e;
	struct event_row row;

	memset(s, 'x', 70000);
	meta.version = TRACE_VERSION;
	CU_ASSERT_EQUAL_FATAL(trace_create(path, &meta, NULL, &w), 0);
	for (int i = 0; i < 40; i++) {
		struct host_event ev = {.id = HOST_OTHER,
					.name = {s, 60000},
					.comm = {s, 1000 + i},
					.reason = {s + i, 70000 - i},
					.time_ns = i};

		s[i] = 'a' + i % 26;
		CU_ASSERT_EQUAL(trace_write_event(w, &ev), 0);
	}
	CU_ASSERT_EQUAL_FATAL(trace_finish(w, NULL), 0);
	r = reopen(path, NULL);
	CU_ASSERT_EQUAL_FATAL(event_reader_open(r, &e), 0);
	for (int i = 0; i < 40; i++) {
		CU_ASSERT_EQUAL_FATAL(event_reader_next(e, &row), 1);
		CU_ASSERT_EQUAL(row.event.name.len, 60000);
		CU_ASSERT_EQUAL(row.event.comm.len, (size_t)(1000 + i));
		CU_ASSERT_EQUAL(row.event.reason.len, 65535);
		CU_ASSERT_EQUAL(row.event.reason.at[0], 'a' + i % 26);
	}
	CU_ASSERT_EQUAL(event_reader_next(e, &row), 0);
	event_reader_close(e);
	trace_close(r);
	free(s);
}

/* ---- damage ---- */

static void delivers_whole_blocks_of_a_torn_file(void)
{
	const char *path = temp_path("whole"), *torn = temp_path("torn");
	uint64_t before = 0;
	uint8_t *bytes;
	size_t len;

	write_rows(path, 6000);
	bytes = get_file(path, &len);
	/* the header; places inside the blocks; the end, from the middle of the index on */
	for (size_t n = 130; n < len; n = n < 180 || n >= len - 60 ? n + 1
					  : n + 3001 > len - 60	   ? len - 60
								   : n + 3001) {
		struct messages m;
		struct kvmsim_errsink sink = keep_messages(&m);
		bool differs;
		uint64_t rows;
		int ret;

		put_file(torn, bytes, n);
		rows = read_rows(torn, &sink, &ret, &differs);
		CU_ASSERT_EQUAL(ret, 0);
		CU_ASSERT_EQUAL(m.err, KVMSIM_ETORN);
		CU_ASSERT_FALSE(differs);
		CU_ASSERT(rows >= before);
		before = rows;
	}
	CU_ASSERT_EQUAL(before, 6000);
	free(bytes);
}

static void notices_every_changed_byte(void)
{
	const char *path = temp_path("small"), *bad = temp_path("bad");
	uint8_t *bytes;
	size_t len;

	write_rows(path, 40);
	bytes = get_file(path, &len);
	for (size_t i = 0; i < len; i += i < 300 || i > len - 100 ? 1 : 7) {
		bool differs;
		int ret;

		bytes[i] ^= 1 << i % 8;
		put_file(bad, bytes, len);
		read_rows(bad, NULL, &ret, &differs);
		/* a block of ops is read by nobody here */
		if (!ret) {
			struct trace_reader *r = reopen(bad, NULL);
			struct stream s = read_stream(r, 0);

			ret = s.error;
			free(s.ops);
			trace_close(r);
		}
		CU_ASSERT(ret < 0);
		bytes[i] ^= 1 << i % 8;
	}
	free(bytes);
}

/* Whatever the columns are, behind a right checksum. */
static void survives_any_columns(void)
{
	struct event_block *b = event_block_new(), *d = event_block_new();
	uint8_t *raw = malloc(EVENT_RAW_MAX), *bad;
	uint64_t rnd = 5;
	char buf[3][256];
	size_t len, n;

	for (uint64_t i = 0; i < 200; i++) {
		struct event_row row = any_row(i, buf);

		CU_ASSERT_FATAL(event_block_add(b, &row));
	}
	n = event_block_rows(b);
	len = event_block_encode(b, raw);
	CU_ASSERT_EQUAL(event_block_rows(b), 0);
	for (int round = 0; round < 4000; round++) {
		size_t part = round % 4 ? len : test_random(&rnd) % len;
		struct event_row row;
		uint64_t rows = 0;

		bad = malloc(part + 1); /* exactly: the sanitizers see what is beyond */
		memcpy(bad, raw, part);
		for (unsigned k = test_random(&rnd) % 4; part && k < 4; k++)
			bad[test_random(&rnd) % (round % 2    ? part
						 : part < 400 ? part
							      : 400)] = test_random(&rnd);
		if (!event_block_decode(d, bad, part, n + round % 3 - (round % 3 == 2 ? 3 : 0)))
			while (event_block_next(d, &row))
				rows += row.kind != EVENT_ROW_EVENT ||
					row.event.name.len < 1u << 20;
		CU_ASSERT(rows <= EVENT_BLOCK_ROWS);
		free(bad);
	}
	free(raw);
	event_block_free(b);
	event_block_free(d);
}

/* ---- host_read() ---- */

struct seen {
	uint64_t events, losses, elisions, cpus;
	int stop;
};

static int see_event(void *ctx, const struct host_event *e)
{
	struct seen *s = ctx;

	s->events += e->name.len > 0;
	return s->stop;
}
static int see_loss(void *ctx, const struct host_loss *l)
{
	struct seen *s = ctx;

	s->losses += l->cpu >= -1;
	return 0;
}
static int see_elision(void *ctx)
{
	struct seen *s = ctx;

	s->elisions++;
	return 0;
}
static int see_cpus(void *ctx, uint64_t n, bool empty)
{
	struct seen *s = ctx;

	s->cpus += n < 100 || empty;
	return 0;
}

static void streams_to_a_sink(void)
{
	struct seen seen = {0}, expected = {0};
	struct host_sink sink = {&seen, see_event, see_loss, see_elision, see_cpus},
			 nobody = {.ctx = NULL};
	struct host_opts opts = {.tables = NULL};
	const char *path = temp_path("sink");
	struct messages m;
	struct kvmsim_errsink errors = keep_messages(&m);
	struct trace_meta meta = meta_of(1);
	struct host_result res;
	struct trace_writer *w;
	char buf[3][256];

	write_rows(path, 5000);
	for (uint64_t i = 0; i < 5000; i++) {
		struct event_row row = any_row(i, buf);

		expected.events += row.kind == EVENT_ROW_EVENT;
		expected.losses += row.kind == EVENT_ROW_LOSS;
		expected.elisions += row.kind == EVENT_ROW_ELISION;
		expected.cpus += row.kind == EVENT_ROW_CPUS;
	}
	CU_ASSERT_EQUAL(host_read(path, &opts, &sink, NULL, &res), 0);
	CU_ASSERT(!memcmp(&seen, &expected, sizeof(seen)));
	CU_ASSERT_EQUAL(res.counts.bytes, 1ull << 40);
	CU_ASSERT_EQUAL(res.counts.lines, 77);
	CU_ASSERT_EQUAL(res.counts.records, 5);
	CU_ASSERT_EQUAL(res.counts.unknown_lines, 4);
	CU_ASSERT_EQUAL(res.counts.damaged_lines, 3);
	CU_ASSERT_EQUAL(res.counts.dropped_lines, 2);
	CU_ASSERT_EQUAL(res.counts.elisions, 0);
	CU_ASSERT_EQUAL(res.counts.first_damaged, 9);
	CU_ASSERT_TRUE(res.counts.blank);
	CU_ASSERT_TRUE(res.has_cpu);
	CU_ASSERT_FALSE(res.has_tid);
	CU_ASSERT_TRUE(res.has_time);
	CU_ASSERT_TRUE(res.dat.is_dat);
	CU_ASSERT_EQUAL(res.dat.version, 7);
	CU_ASSERT_EQUAL(res.dat.long_size, 8);
	CU_ASSERT_EQUAL(res.dat.page_size, 4096);
	CU_ASSERT_FALSE(res.dat.big_endian);
	CU_ASSERT_STRING_EQUAL(res.dat.compression, "zstd");
	CU_ASSERT_EQUAL_FATAL(res.n_sections, 2);
	CU_ASSERT_EQUAL(res.sections[0], HOST_KIND_TRACE_TEXT);
	CU_ASSERT_EQUAL(res.sections[1], HOST_KIND_QEMU_MONITOR);
	CU_ASSERT_EQUAL(host_read(path, &opts, &nobody, NULL, &res), 0);
	seen = (struct seen){.stop = -77};
	CU_ASSERT_EQUAL(host_read(path, &opts, &sink, NULL, &res), -77);
	CU_ASSERT_EQUAL(seen.events, 1);

	/* a trace of ops only */
	CU_ASSERT_EQUAL_FATAL(trace_create(path, &meta, NULL, &w), 0);
	CU_ASSERT_EQUAL(trace_write_event(w, &(struct host_event){.id = HOST_OTHER}),
			KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(trace_write(w, 0, some_ops, 2), 0);
	CU_ASSERT_EQUAL_FATAL(trace_finish(w, NULL), 0);
	CU_ASSERT_EQUAL(host_read(path, &opts, &sink, &errors, &res), KVMSIM_EPARSE);
	CU_ASSERT_EQUAL(res.refusal, HOST_NO_KVM_CONTENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(m.last, "holds nothing of a host"));
	remove_temp();
}

static CU_TestInfo tests[] = {
	{"gives_back_what_was_written", gives_back_what_was_written},
	{"keeps_long_strings", keeps_long_strings},
	{"delivers_whole_blocks_of_a_torn_file", delivers_whole_blocks_of_a_torn_file},
	{"notices_every_changed_byte", notices_every_changed_byte},
	{"survives_any_columns", survives_any_columns},
	{"streams_to_a_sink", streams_to_a_sink},
	CU_TEST_INFO_NULL,
};

TEST_MAIN("event_block", tests)
