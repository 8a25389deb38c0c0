// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tests/unit/harness.h"
#include "tests/unit/trace_util.h"
#include "traces/lines.h"
#include "traces/trace.h"

#define EPOCH(n, g, f)                                                                             \
	{                                                                                          \
		.kind = OP_EPOCH, .arg = (n), .gap = (g), .flags = (f)                             \
	}
#define MARK(k, g)                                                                                 \
	{                                                                                          \
		.kind = OP_MARK, .arg = (k), .gap = (g)                                            \
	}
#define STORE(gfn, g)                                                                              \
	{                                                                                          \
		.kind = OP_WRITE, .arg = (uint64_t)(gfn) << 12, .gap = (g)                         \
	}

static struct import_stats stats;
static struct messages messages;

/* Imports @len bytes; @opts may be NULL. */
static int import(const void *text, size_t len, const struct import_opts *opts)
{
	static const struct import_opts hundred = {.epoch_len = 100};
	const char *in = temp_path("in.tr"), *out = temp_path("out.kvt");
	struct kvmsim_errsink sink = keep_messages(&messages);
	FILE *f;
	int ret;

	put_file(in, text, len);
	f = fopen(in, "rb");
	ret = import_guest_probe(f, "in.tr", opts ? opts : &hundred, out, &sink, &stats);
	fclose(f);
	return ret;
}

/* @text must import and give @vcpu these ops. */
static void gives(const char *text, uint32_t vcpu, const struct guest_op *ops, size_t n)
{
	struct trace_reader *r;

	CU_ASSERT_EQUAL_FATAL(import(text, strlen(text), NULL), 0);
	CU_ASSERT_EQUAL_FATAL(trace_open(temp_path("out.kvt"), NULL, &r), 0);
	CU_ASSERT(stream_is(r, vcpu, ops, n));
	trace_close(r);
}

#define GIVES(text, vcpu, ...)                                                                     \
	do {                                                                                       \
		static const struct guest_op ops_[] = {__VA_ARGS__};                               \
		gives(text, vcpu, ops_, sizeof(ops_) / sizeof(ops_[0]));                           \
	} while (0)

static void counted(uint64_t lines, uint64_t events, uint64_t unknown, uint64_t damaged,
		    uint64_t out_of_order)
{
	CU_ASSERT_EQUAL(stats.lines, lines);
	CU_ASSERT_EQUAL(stats.events, events);
	CU_ASSERT_EQUAL(stats.unknown, unknown);
	CU_ASSERT_EQUAL(stats.damaged, damaged);
	CU_ASSERT_EQUAL(stats.out_of_order, out_of_order);
}

static void each_kind_of_line(void)
{
	GIVES("1000 0 M 1 77\n"
	      "1004 0 S a5\n"
	      "1010 0 V fd003\n"
	      "1010 0 r fee00 apic-msi+30\n"
	      "1020 0 w febc3 e1000+mmio+818\n"
	      "1021 0 p ffffffff81a0b2c4\n"
	      "1030 0 L ffff88803e7b1c40 9330591570 1592704 45553\n"
	      "1040 0 M 0 99\n",
	      0, MARK(1, 0), EPOCH(0, 0, 0), STORE(0xa5, 4),
	      {.kind = OP_WRITE, .arg = 0xfd003000, .gap = 6, .flags = OPF_VRAM},
	      {.kind = OP_MMIO_READ, .arg = 0xfee00030},
	      {.kind = OP_MMIO_WRITE, .arg = 0xfebc3818, .gap = 10},
	      {.kind = OP_PIO, .arg = 0xffffffff81a0b2c4, .gap = 1}, MARK(0, 19));
	counted(8, 7, 1, 0, 0);
	remove_temp();
}

static void epochs_begin_at_the_mark(void)
{
	/* 100 instructions each; the third is empty, the last cut; a store at a boundary is of the
	 * epoch that begins there */
	GIVES("1050 0 M 1 0\n"
	      "1149 0 S 1\n"
	      "1150 0 S 2\n"
	      "1350 0 S 3\n"
	      "1375 0 M 0 0\n"
	      /* what passes between the phases is left out; numbers go on */
	      "5000 0 M 2 0\n"
	      "5001 0 S 4\n",
	      0, MARK(1, 0), EPOCH(0, 0, 0), STORE(1, 99), EPOCH(1, 1, 0), STORE(2, 0),
	      EPOCH(2, 100, 0), EPOCH(3, 100, 0), STORE(3, 0), MARK(0, 25), MARK(2, 0),
	      EPOCH(4, 0, OPF_PARTIAL), STORE(4, 1));
	remove_temp();
}

static void a_mark_at_a_boundary_cuts_nothing(void)
{
	GIVES("0 0 M 1 0\n"
	      "200 0 M 0 0\n"
	      "300 0 M 2 0\n"
	      "301 0 S 4\n",
	      0, MARK(1, 0), EPOCH(0, 0, 0), EPOCH(1, 100, 0), MARK(0, 100), MARK(2, 0),
	      EPOCH(2, 0, 0), STORE(4, 1));
	/* from one phase straight into the next */
	GIVES("0 0 M 1 0\n"
	      "30 0 S 1\n"
	      "50 0 M 2 0\n"
	      "60 0 S 1\n",
	      0, MARK(1, 0), EPOCH(0, 0, 0), STORE(1, 30), MARK(2, 0), EPOCH(1, 0, OPF_PARTIAL),
	      STORE(1, 10));
	remove_temp();
}

static void long_gaps_are_carried(void)
{
	const struct import_opts opts = {.epoch_len = 1ull << 40};
	const struct guest_op ops[] = {MARK(1, 0),
				       EPOCH(0, 0, 0),
				       {.kind = OP_NONE, .gap = UINT32_MAX},
				       {.kind = OP_NONE, .gap = UINT32_MAX},
				       STORE(1, 11)};
	const char text[] = "0 0 M 1 0\n8589934601 0 S 1\n"; /* 2 (2^32 - 1) + 11 */
	struct trace_reader *r;

	CU_ASSERT_EQUAL(import(text, sizeof(text) - 1, &opts), 0);
	CU_ASSERT_EQUAL_FATAL(trace_open(temp_path("out.kvt"), NULL, &r), 0);
	CU_ASSERT(stream_is(r, 0, ops, 5));
	trace_close(r);
	remove_temp();
}

static void each_vcpu_has_its_clock(void)
{
	const char text[] = "1000 2 M 1 0\n"
			    "7 0 S 1\n"
			    "1010 2 S 2\n"
			    "150 0 S 3\n"
			    "1020 2 M 0 0\n"
			    "2000 0 M 2 0\n"
			    "2001 0 S 9\n";
	struct trace_reader *r;

	GIVES(text, 0, MARK(1, 0), EPOCH(0, 0, 0), STORE(1, 0), EPOCH(1, 100, 0), STORE(3, 43),
	      MARK(0, 0), MARK(2, 0), EPOCH(2, 0, OPF_PARTIAL), STORE(9, 1));
	GIVES(text, 2, MARK(1, 0), EPOCH(0, 0, 0), STORE(2, 10), MARK(0, 10));
	CU_ASSERT_EQUAL_FATAL(trace_open(temp_path("out.kvt"), NULL, &r), 0);
	CU_ASSERT_EQUAL(trace_meta(r)->n_vcpus, 3);
	CU_ASSERT(trace_meta(r)->unseen & TRACE_ONE_CLOCK);
	CU_ASSERT(stream_is(r, 1, NULL, 0));
	trace_close(r);
	remove_temp();
}

static void damage_is_counted_and_left_out(void)
{
	GIVES("5 0 S 1\n" /* outside of a phase */
	      "10 0 M 1 0\n"
	      "\n"
	      "x 0 S 1\n"
	      "11 0 S\n"
	      "11 0 S 1 2\n"
	      "11 0 S g\n"
	      "11 512 S 1\n"
	      "11 0 S 40000\n" /* one page above RAM */
	      "11 0 V fcfff\n" /* below and above video RAM */
	      "11 0 V fe000\n"
	      "11 0 w fee00 apic+1000\n"
	      "11 0 w fee00 apic\n"
	      "11 0 M 300\n"
	      "99999999999999999999999 0 S 1\n"
	      "4611686018427387905 0 S 1\n"
	      "4000000000000000000 0 S 1\n" /* too many epochs away */
	      "12 0 S 3ffff\n"
	      "13 0 Q whatever\n"
	      "11 0 S 2\n"
	      "14 0 S 5", /* no newline: it may have been longer */
	      0, MARK(1, 0), EPOCH(0, 0, 0), STORE(0x3ffff, 2), STORE(2, 0));
	counted(21, 3, 1, 17, 1);
	CU_ASSERT_EQUAL(stats.first_damaged, 1);
	remove_temp();
}

static void lines_may_end_in_crlf(void)
{
	GIVES("0 0 M 1 0\r\n"
	      "30 0 S 1\r\n"
	      "40 0 w fee00 apic+80\r\n"
	      "41 0 S\r 2\r\n"
	      "42 0 S 2\r\r\n",
	      0, MARK(1, 0), EPOCH(0, 0, 0), STORE(1, 30),
	      {.kind = OP_MMIO_WRITE, .gap = 10, .arg = 0xfee00080});
	counted(5, 3, 0, 2, 0);
	remove_temp();
}

/* The line is no less true for epochs that are too short for it. */
static void epochs_too_short(void)
{
	const struct import_opts opts = {.epoch_len = 1};
	const char ok[] = "0 0 M 1 0\n1048576 0 S 1\n", far[] = "0 0 M 1 0\n1048577 0 S 1\n";
	const char damaged[] = "0 0 M 1 0\n1 0 S 1\n40000000000000 0 S 1\n";

	CU_ASSERT_EQUAL(import(ok, sizeof(ok) - 1, &opts), 0);
	counted(2, 2, 0, 0, 0);
	CU_ASSERT_EQUAL(import(far, sizeof(far) - 1, &opts), KVMSIM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(
		messages.last, "in.tr:2: 1048576 epochs of 1 instruction without a line "
			       "before this one; at most 1048575 are possible: choose longer "
			       "epochs"));
	CU_ASSERT_EQUAL(import(damaged, sizeof(damaged) - 1, &opts), 0);
	counted(3, 2, 0, 1, 0);
	remove_temp();
}

static void long_lines_and_nul_bytes(void)
{
	char text[8192] = "10 0 M 1 0\n";
	size_t n = strlen(text);

	memset(text + n, '7', 5000);
	n += 5000;
	memcpy(text + n, "\n11 0 S\0 1\n12 0 S 2\n", 20);
	n += 20;
	CU_ASSERT_EQUAL(import(text, n, NULL), 0);
	counted(4, 2, 0, 2, 0);
	remove_temp();
}

static void refuses_what_has_nothing(void)
{
	static const char locks[] = "10 0 M 1 0\n11 0 L a 1 2 3\n";
	const volatile int stop = 1;
	const struct import_opts opts = {.interrupted = &stop};

	CU_ASSERT_EQUAL(import("", 0, NULL), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(messages.last, "in.tr:0: nothing usable in 0 lines"));
	CU_ASSERT_EQUAL(import(locks, sizeof(locks) - 1, NULL), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(messages.last, "in.tr:2: nothing usable in 2 lines (1 unknown, 0 damaged)"));
	CU_ASSERT_EQUAL(messages.n, 1);
	CU_ASSERT_EQUAL(import("10 0 M 1 0\n", 11, &opts), KVMSIM_EINTR);
	CU_ASSERT_EQUAL(temp_files(), 1); /* the input */
	remove_temp();
}

/* gzip of @text appended to @out. */
static size_t gzip(const char *text, uint8_t *out, size_t room)
{
	z_stream z = {.next_in = (uint8_t *)text, .avail_in = strlen(text)};

	if (deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	z.next_out = out;
	z.avail_out = room;
	if (deflate(&z, Z_FINISH) != Z_STREAM_END)
		abort();
	deflateEnd(&z);
	return room - z.avail_out;
}

static void sees_through_gzip(void)
{
	uint8_t packed[4096];
	size_t n = gzip("10 0 M 1 0\n11 0 S", packed, sizeof(packed)), whole;

	/* two members, a line across both */
	whole = n + gzip(" 1\n12 0 S 2\n", packed + n, sizeof(packed) - n);
	CU_ASSERT_EQUAL(import(packed, whole, NULL), 0);
	counted(3, 3, 0, 0, 0);
	CU_ASSERT_EQUAL(messages.n, 0);
	/* cut at every byte: no crash; told and counted, but between the members, where the
	 * broken line is */
	for (size_t len = 3; len < whole; len++) {
		int ret = import(packed, len, NULL);

		CU_ASSERT(ret == 0 || ret == KVMSIM_EPARSE);
		CU_ASSERT(stats.damaged > 0 || ret);
		CU_ASSERT(messages.n >= (len != n));
	}
	packed[whole - 6] ^= 1; /* in the second member's checksum */
	CU_ASSERT_EQUAL(import(packed, whole, NULL), 0);
	CU_ASSERT_EQUAL(stats.damaged, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(messages.last, "the gzip stream is damaged"));
	remove_temp();
}

/* A guest without video RAM has no such slot, and a store to it is damage. */
static void no_vram(void)
{
	static const char text[] = "1 0 M 1 0\n2 0 S 5\n3 0 V fd000\n4 0 M 0 0\n";
	struct import_opts opts = {.no_vram = true};
	struct trace_reader *r;

	CU_ASSERT_EQUAL_FATAL(import(text, sizeof(text) - 1, &opts), 0);
	CU_ASSERT_EQUAL(stats.damaged, 1);
	CU_ASSERT_EQUAL(stats.first_damaged, 3);
	CU_ASSERT_EQUAL_FATAL(trace_open(temp_path("out.kvt"), NULL, &r), 0);
	CU_ASSERT_EQUAL(trace_meta(r)->n_slots, 1);
	CU_ASSERT_STRING_EQUAL(trace_meta(r)->slots[0].name, "ram");
	trace_close(r);
}

static CU_TestInfo tests[] = {
	{"no_vram", no_vram},
	{"each_kind_of_line", each_kind_of_line},
	{"epochs_begin_at_the_mark", epochs_begin_at_the_mark},
	{"a_mark_at_a_boundary_cuts_nothing", a_mark_at_a_boundary_cuts_nothing},
	{"long_gaps_are_carried", long_gaps_are_carried},
	{"each_vcpu_has_its_clock", each_vcpu_has_its_clock},
	{"damage_is_counted_and_left_out", damage_is_counted_and_left_out},
	{"lines_may_end_in_crlf", lines_may_end_in_crlf},
	{"epochs_too_short", epochs_too_short},
	{"long_lines_and_nul_bytes", long_lines_and_nul_bytes},
	{"refuses_what_has_nothing", refuses_what_has_nothing},
	{"sees_through_gzip", sees_through_gzip},
	CU_TEST_INFO_NULL};
TEST_MAIN("import", tests)
