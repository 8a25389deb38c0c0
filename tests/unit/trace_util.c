// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/trace_util.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <CUnit/CUnit.h>

const char tiny_hex[] =
	/* header: magic, version 1, 80 bytes of metadata, crc */
	"894b56540d0a1a0a"
	"01000000"
	"50000000"
	"d3189649"
	/* 2 vCPUs, 1 slot, instructions, unseen 7, hz 0, epochs of 30,000,000 */
	"02000000"
	"01000000"
	"00000000"
	"07000000"
	"0000000000000000"
	"80c3c90100000000"
	/* slot: gfn 0x10, 0x100 pages, "ram"; source "s", kernel "", workload "wé" */
	"1000000000000000"
	"0001000000000000"
	"72616d00000000000000000000000000"
	"0100000073"
	"00000000"
	"0300000077c3a9"
	/* block at 100: vCPU 0, stored, 3 ops, 32 bytes twice, crc of them, crc of this */
	"4b565442"
	"000000000300000020000000"
	"200000006f4b1dfc0ca42355"
	/* two shapes, least gap 0: epoch; write, shift 12. Order 0 1 1, one bit each */
	"020000000000"
	"0b0000000000"
	"020000000c01"
	"06"
	/* deltas 0 10 3 of one half-byte, gaps 0 3 300 of three */
	"010000"
	"030000"
	"300a"
	"00032c"
	"1000"
	/* block at 160: vCPU 1, 5 ops; one shape, least gap 7: HLT; deltas 0; gaps 0 but for an
	 * exception at 4 of two bytes, 0x1234 */
	"4b565442"
	"010000000500000015000000"
	"15000000107b1c2bcfc9e934"
	"010007000000"
	"0a0000000000"
	"000000"
	"000102"
	"04"
	"3412"
	/* index at 209 */
	"4b56544902000000"
	"64000000000000000300000000000000"
	"a0000000000000000500000001000000"
	/* trailer at 249 */
	"d100000000000000"
	"36b674a0"
	"0a4b5654454e440a";
const struct guest_op tiny_ops0[] = {
	{.kind = OP_EPOCH, .arg = 0, .gap = 0},
	{.kind = OP_WRITE, .arg = 0x5000, .gap = 3},
	{.kind = OP_WRITE, .arg = 0x3000, .gap = 300},
};
const struct guest_op tiny_ops1[] = {{.kind = OP_HLT, .gap = 7},
				     {.kind = OP_HLT, .gap = 7},
				     {.kind = OP_HLT, .gap = 7},
				     {.kind = OP_HLT, .gap = 7},
				     {.kind = OP_HLT, .gap = 7 + 0x1234}};

struct trace_meta meta_of(uint32_t n_vcpus)
{
	return (struct trace_meta){
		.n_vcpus = n_vcpus, .n_slots = 1, .slots = {{0, 1u << 18, "ram"}}};
}

struct trace_reader *reopen(const char *path, const struct kvmsim_errsink *errors)
{
	struct trace_reader *r = NULL;

	CU_ASSERT_EQUAL_FATAL(trace_open(path, errors, &r), 0);
	return r;
}

static char folder[64];

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	struct messages *m = ctx;

	m->n++;
	m->err = err;
	snprintf(m->last, sizeof(m->last), "%s", msg);
}

struct kvmsim_errsink keep_messages(struct messages *m)
{
	memset(m, 0, sizeof(*m));
	return (struct kvmsim_errsink){keep, m};
}

const char *temp_path(const char *name)
{
	static char path[4][128];
	static unsigned turn;
	char *p = path[turn++ % 4];

	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "/tmp/kvmsim-trace-XXXXXX");
		if (!mkdtemp(folder))
			abort();
	}
	snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
	return p;
}

static int each_file(void (*fn)(const char *name))
{
	DIR *d = opendir(temp_path("."));
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		n++;
		if (fn)
			fn(e->d_name);
	}
	if (d)
		closedir(d);
	return n;
}

static void remove_one(const char *name)
{
	unlink(temp_path(name));
}

int temp_files(void)
{
	return each_file(NULL);
}

void remove_temp(void)
{
	each_file(remove_one);
	rmdir(folder);
	folder[0] = 0;
}

void put_file(const char *path, const void *data, size_t len)
{
	FILE *f;

	unlink(path); /* some file systems write a file that was emptied and filled at once to the
			 disk */
	f = fopen(path, "wb");
	if (!f || fwrite(data, 1, len, f) != len || fclose(f))
		abort();
}

uint8_t *get_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;
	long size;

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
		abort();
	data = malloc(size + 1);
	if (!data || fread(data, 1, size, f) != (size_t)size)
		abort();
	fclose(f);
	*len = size;
	return data;
}

size_t unhex(const char *hex, uint8_t *out)
{
	size_t n = 0;
	unsigned byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		out[n++] = byte;
	return n;
}

struct stream read_stream(struct trace_reader *r, uint32_t vcpu)
{
	struct stream s = {NULL, 0, 0};
	const struct guest_op *block;
	struct op_source src;
	long n = 0;

	s.error = trace_source(r, vcpu, &src);
	while (!s.error && (n = src.next(src.ctx, &block)) > 0) {
		s.ops = realloc(s.ops, (s.n + n) * sizeof(*s.ops));
		if (!s.ops)
			abort();
		memcpy(s.ops + s.n, block, n * sizeof(*block));
		s.n += n;
	}
	if (n < 0)
		s.error = n;
	return s;
}

bool stream_is(struct trace_reader *r, uint32_t vcpu, const struct guest_op *ops, size_t n)
{
	struct stream s = read_stream(r, vcpu);
	bool same = !s.error && s.n == n && (!n || !memcmp(s.ops, ops, n * sizeof(*ops)));

	free(s.ops);
	return same;
}

uint64_t test_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}

void random_ops(uint64_t *state, struct guest_op *ops, size_t n)
{
	unsigned arg_bits = 64, gap_bits = 32, lens = 1, shift = 0, kinds = OP_LAST;

	for (size_t i = 0; i < n; i++) {
		struct guest_op *op = &ops[i];

		if (test_random(state) % 512 == 0) {
			arg_bits = test_random(state) % 65;
			gap_bits = test_random(state) % 33;
			shift = test_random(state) % 2 ? 12 : 0;
			lens = 1u << test_random(state) % 12;
			kinds = 1 + test_random(state) % OP_LAST;
		}
		memset(op, 0, sizeof(*op));
		op->kind = test_random(state) % kinds;
		op->flags = test_random(state) % 8 ? 0 : test_random(state);
		op->len = test_random(state) % lens;
		op->arg = arg_bits ? test_random(state) >> (64 - arg_bits) << shift : 0;
		op->gap = gap_bits ? (test_random(state) & 0xffffffff) >> (32 - gap_bits) : 0;
	}
}
