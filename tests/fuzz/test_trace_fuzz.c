// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/trace_util.h"
#include "traces/block.h"
#include "traces/format.h"
#include "traces/trace.h"

/*
 * Mutations with a fixed seed. What they look for are crashes, reads out of bounds (the debug build
 * runs under sanitizers) and streams that are accepted though they cannot be: ops of unknown kind,
 * more ops than the blocks say.
 */

#define ROUNDS 3000

/* Changes a few bytes: flips, small and boundary values, copies, cuts. Returns the new length. */
static size_t mutate(uint64_t *rnd, uint8_t *p, size_t len)
{
	static const uint8_t edge[] = {0, 1, 2, 8, 0x7f, 0x80, 0xfe, 0xff};
	unsigned times = 1 + test_random(rnd) % 4;

	while (len && times--) {
		size_t at = test_random(rnd) % len, from = test_random(rnd) % len, n;

		switch (test_random(rnd) % 5) {
		case 0:
			p[at] ^= 1u << test_random(rnd) % 8;
			break;
		case 1:
			p[at] = edge[test_random(rnd) % 8];
			break;
		case 2:
			p[at] = test_random(rnd);
			break;
		case 3:
			n = test_random(rnd) % 16;
			if (n > len - at)
				n = len - at;
			if (n > len - from)
				n = len - from;
			memmove(p + at, p + from, n);
			break;
		default:
			if (test_random(rnd) % 4 == 0)
				len = at;
		}
	}
	return len;
}

static void columns(void)
{
	enum { OPS = 700 };
	struct guest_op *ops = malloc(OPS * sizeof(*ops)), *got = malloc(OPS * sizeof(*got));
	uint8_t *raw = malloc(BLOCK_RAW_MAX);
	unsigned accepted = 0, refused = 0;
	uint64_t rnd = 11;

	for (int i = 0; i < 10 * ROUNDS; i++) {
		size_t n = 1 + test_random(&rnd) % OPS, taken, len;
		uint32_t kinds;
		uint8_t *exact;

		random_ops(&rnd, ops, n);
		len = mutate(&rnd, raw, block_encode(ops, n, raw, &taken));
		/* exactly as long as said, so that a sanitizer sees the byte after it */
		exact = malloc(len ? len : 1);
		memcpy(exact, raw, len);
		if (block_decode(exact, len, got, taken, &kinds)) {
			refused++;
		} else {
			accepted++;
			for (size_t k = 0; k < taken; k++)
				if (got[k].kind >= OP_LAST || !(kinds >> got[k].kind & 1))
					CU_FAIL("an op of a kind that the block does not have");
		}
		free(exact);
	}
	CU_ASSERT(accepted > ROUNDS);
	CU_ASSERT(refused > ROUNDS);
	free(ops);
	free(got);
	free(raw);
}

/* Puts right every checksum that can still be found, so that what is behind it is met. */
static void seal(uint8_t *p, size_t len)
{
	size_t at;

	if (len < HEADER_BYTES || get32(p + 12) > len - HEADER_BYTES)
		return;
	at = HEADER_BYTES + get32(p + 12);
	put32(p + 16, trace_crc32(trace_crc32(0, p, 16), p + HEADER_BYTES, get32(p + 12)));
	while (len - at >= BLOCK_HEADER_BYTES && !memcmp(p + at, BLOCK_MAGIC, 4)) {
		size_t stored = get32(p + at + 16);

		if (stored <= len - at - BLOCK_HEADER_BYTES)
			put32(p + at + 20, trace_crc32(0, p + at + BLOCK_HEADER_BYTES, stored));
		put32(p + at + 24, trace_crc32(0, p + at, 24));
		if (stored > len - at - BLOCK_HEADER_BYTES)
			return;
		at += BLOCK_HEADER_BYTES + stored;
	}
	if (len - at >= TRAILER_BYTES)
		put32(p + len - 12, trace_crc32(0, p + at, len - at - 12));
}

static void files(void)
{
	const char *path = temp_path("t"), *bad = temp_path("bad");
	struct trace_meta meta = {.n_vcpus = 3, .n_slots = 1, .slots = {{0, 1u << 18, "ram"}}};
	char source[] = "fuzz";
	struct guest_op ops[600];
	unsigned opened = 0, failed = 0, ended = 0; /* failed: opening or a stream */
	uint8_t *whole = NULL, *bytes = NULL;
	size_t whole_len = 0, len;
	uint64_t rnd = 12;

	meta.source = source;
	for (int i = 0; i < ROUNDS; i++) {
		struct trace_writer *w;
		struct trace_reader *r;

		/* a new trace now and then: each is synced to the disk */
		if (i % 100 == 0) {
			if (trace_create(path, &meta, NULL, &w))
				abort();
			for (uint32_t v = 0; v < 3; v++) {
				size_t n = test_random(&rnd) % 600;

				random_ops(&rnd, ops, n);
				if (trace_write(w, v, ops, n))
					abort();
			}
			if (trace_finish(w, NULL))
				abort();
			free(whole);
			whole = get_file(path, &whole_len);
		}
		bytes = realloc(bytes, whole_len);
		memcpy(bytes, whole, whole_len);
		len = mutate(&rnd, bytes, whole_len);
		if (i % 4)
			seal(bytes, len);
		put_file(bad, bytes, len);
		if (trace_open(bad, NULL, &r)) {
			failed++;
			continue;
		}
		opened++;
		for (uint32_t v = 0; v < trace_meta(r)->n_vcpus; v++) {
			struct stream s = read_stream(r, v);

			ended += !s.error;
			failed += s.error != 0;
			for (size_t k = 0; k < s.n; k++)
				if (s.ops[k].kind >= OP_LAST)
					CU_FAIL("an op of unknown kind");
			free(s.ops);
		}
		trace_close(r);
	}
	CU_ASSERT(opened > ROUNDS / 20);
	CU_ASSERT(failed > ROUNDS / 20);
	CU_ASSERT(ended > ROUNDS / 20);
	free(whole);
	free(bytes);
	remove_temp();
}

static void texts(void)
{
	static const char text[] = "1000 0 M 1 77\n1004 0 S a5\n1010 0 V fd003\n1010 1 S fee0\n"
				   "1020 0 r fee00 apic-msi+30\n1021 0 p ffffffff81a0b2c4\n"
				   "31030 0 L f 1 2 3\n52000 0 S 3ffff\n52100 0 M 0 99\n"
				   "52200 1 M 2 99\n52204 1 S 1\n";
	const struct import_opts opts = {.epoch_len = 1000};
	const char *in = temp_path("in"), *kept = temp_path("out");
	unsigned imported = 0;
	uint64_t rnd = 13;

	for (int i = 0; i < ROUNDS; i++) {
		/* a file is synced to the disk: most go nowhere */
		const char *out = i % 50 ? "/dev/null" : kept;
		char bytes[sizeof(text)];
		struct import_stats st;
		struct trace_reader *r;
		FILE *f;

		memcpy(bytes, text, sizeof(text));
		put_file(in, bytes, mutate(&rnd, (uint8_t *)bytes, sizeof(text) - 1));
		f = fopen(in, "rb");
		if (!import_guest_probe(f, "in", &opts, out, NULL, &st)) {
			imported++;
			CU_ASSERT_EQUAL(st.events + st.unknown + st.damaged, st.lines);
			if (out != kept)
				goto next;
			CU_ASSERT_EQUAL_FATAL(trace_open(out, NULL, &r), 0);
			for (uint32_t v = 0; v < trace_meta(r)->n_vcpus; v++) {
				struct stream s = read_stream(r, v);

				CU_ASSERT_EQUAL(s.error, 0);
				free(s.ops);
			}
			trace_close(r);
		}
	next:
		fclose(f);
	}
	CU_ASSERT(imported > ROUNDS / 2);
	remove_temp();
}

static CU_TestInfo tests[] = {
	{"columns", columns}, {"files", files}, {"texts", texts}, CU_TEST_INFO_NULL};
TEST_MAIN("trace_fuzz", tests)
