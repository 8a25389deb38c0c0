// SPDX-License-Identifier: GPL-3.0-or-later
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "tests/unit/trace_util.h"
#include "traces/block.h"
#include "traces/trace.h"

static void decodes_bytes_made_by_hand(void)
{
	const char *path = temp_path("tiny");
	uint8_t bytes[TINY_BYTES + 1];
	struct messages m;
	struct kvmsim_errsink sink = keep_messages(&m);
	struct trace_reader *r;
	const struct trace_meta *meta;

	CU_ASSERT_EQUAL_FATAL(unhex(tiny_hex, bytes), TINY_BYTES);
	put_file(path, bytes, TINY_BYTES);
	r = reopen(path, &sink);
	meta = trace_meta(r);
	CU_ASSERT_EQUAL(meta->version, 1);
	CU_ASSERT_EQUAL(meta->n_vcpus, 2);
	CU_ASSERT_EQUAL_FATAL(meta->n_slots, 1);
	CU_ASSERT_EQUAL(meta->slots[0].base_gfn, 0x10);
	CU_ASSERT_EQUAL(meta->slots[0].npages, 0x100);
	CU_ASSERT_STRING_EQUAL(meta->slots[0].name, "ram");
	CU_ASSERT_EQUAL(meta->clock, TRACE_CLOCK_INSN);
	CU_ASSERT_EQUAL(meta->epoch_len, 30000000);
	CU_ASSERT_EQUAL(meta->unseen, TRACE_NO_LOADS | TRACE_NO_GVA | TRACE_FIRST_STORES);
	CU_ASSERT_STRING_EQUAL(meta->source, "s");
	CU_ASSERT_STRING_EQUAL(meta->kernel, "");
	CU_ASSERT_STRING_EQUAL(meta->workload, "wé");
	CU_ASSERT(stream_is(r, 0, tiny_ops0, 3));
	CU_ASSERT(stream_is(r, 1, tiny_ops1, 5));
	CU_ASSERT_EQUAL(trace_stats(r).blocks, 2);
	CU_ASSERT_EQUAL(trace_stats(r).ops, 8);
	CU_ASSERT_EQUAL(trace_stats(r).epochs, 1);
	CU_ASSERT_EQUAL(trace_stats(r).bytes, 209 - 100);
	CU_ASSERT_FALSE(trace_stats(r).torn);
	CU_ASSERT_EQUAL(m.n, 0);
	trace_close(r);
	remove_temp();
}

static void writes_bytes_made_by_hand(void)
{
	const char *path = temp_path("tiny");
	uint8_t bytes[TINY_BYTES + 1], *got;
	char source[] = "s", workload[] = "wé";
	struct trace_meta meta = {.n_vcpus = 2,
				  .n_slots = 1,
				  .slots = {{0x10, 0x100, "ram"}},
				  .unseen = 7,
				  .epoch_len = 30000000,
				  .source = source,
				  .workload = workload};
	struct trace_writer *w;
	struct trace_stats st;
	size_t len;

	unhex(tiny_hex, bytes);
	CU_ASSERT_EQUAL_FATAL(trace_create(path, &meta, NULL, &w), 0);
	CU_ASSERT_EQUAL(trace_write(w, 1, tiny_ops1, 5), 0);
	CU_ASSERT_EQUAL(trace_write(w, 0, tiny_ops0, 1), 0);
	CU_ASSERT_EQUAL(trace_write(w, 0, tiny_ops0 + 1, 2), 0);
	CU_ASSERT_EQUAL(trace_finish(w, &st), 0);
	CU_ASSERT_EQUAL(st.bytes, TINY_BYTES);
	got = get_file(path, &len);
	CU_ASSERT_EQUAL_FATAL(len, TINY_BYTES);
	CU_ASSERT_EQUAL(memcmp(got, bytes, len), 0);
	free(got);
	CU_ASSERT_EQUAL(temp_files(), 1);
	remove_temp();
}

static void returns_what_was_written(void)
{
	enum { VCPUS = 3, MAX = 60000 };
	uint64_t rnd = 20260704;
	struct guest_op *ops[VCPUS];

	for (int v = 0; v < VCPUS; v++)
		ops[v] = malloc(MAX * sizeof(*ops[v]));
	for (int round = 0; round < 12; round++) {
		const char *path = temp_path("t");
		struct trace_meta meta = meta_of(round % 2 ? VCPUS : 0);
		size_t n[VCPUS], done[VCPUS] = {0}, left = 0;
		struct trace_writer *w;
		struct trace_reader *r;
		struct trace_stats st;

		CU_ASSERT_EQUAL_FATAL(trace_create(path, &meta, NULL, &w), 0);
		for (int v = 0; v < VCPUS; v++) {
			/* sizes at and around a whole block, small ones, large ones */
			static const size_t size[] = {0, 1, 255, 256, 257, 16383, 16384, 16385};

			n[v] = round < 8 ? size[(round + v) % 8] : test_random(&rnd) % MAX;
			n[VCPUS - 1] = n[VCPUS - 1] ? n[VCPUS - 1] : 1;
			random_ops(&rnd, ops[v], n[v]);
			left += n[v];
		}
		while (left) {
			int v = test_random(&rnd) % VCPUS;
			size_t part = test_random(&rnd) % 5000;

			if (part > n[v] - done[v])
				part = n[v] - done[v];
			CU_ASSERT_EQUAL(trace_write(w, v, ops[v] + done[v], part), 0);
			done[v] += part;
			left -= part;
		}
		CU_ASSERT_EQUAL_FATAL(trace_finish(w, &st), 0);
		CU_ASSERT_EQUAL(st.ops, n[0] + n[1] + n[2]);
		r = reopen(path, NULL);
		CU_ASSERT_EQUAL(trace_meta(r)->n_vcpus, VCPUS);
		for (int v = 0; v < VCPUS; v++)
			CU_ASSERT(stream_is(r, v, ops[v], n[v]));
		CU_ASSERT_EQUAL(trace_stats(r).ops, st.ops);
		CU_ASSERT_EQUAL(trace_stats(r).blocks, st.blocks);
		CU_ASSERT_EQUAL(trace_stats(r).marks, st.marks);
		CU_ASSERT_EQUAL(trace_stats(r).epochs, st.epochs);
		trace_close(r);
	}
	for (int v = 0; v < VCPUS; v++)
		free(ops[v]);
	remove_temp();
}

static void rewinds_each_vcpu_by_itself(void)
{
	const char *path = temp_path("t");
	struct trace_meta meta = meta_of(2);
	struct guest_op *ops = malloc(40000 * sizeof(*ops));
	const struct guest_op *block;
	struct op_source a, b;
	struct trace_writer *w;
	struct trace_reader *r;
	uint64_t rnd = 5;
	long n;

	random_ops(&rnd, ops, 40000);
	CU_ASSERT_EQUAL_FATAL(trace_create(path, &meta, NULL, &w), 0);
	for (int i = 0; i < 40; i++)
		CU_ASSERT_EQUAL(trace_write(w, i % 2, ops + i / 2 * 1000, 1000), 0);
	CU_ASSERT_EQUAL_FATAL(trace_finish(w, NULL), 0);
	r = reopen(path, NULL);
	CU_ASSERT_EQUAL(trace_source(r, 0, &a), 0);
	CU_ASSERT_EQUAL(trace_source(r, 1, &b), 0);
	n = a.next(a.ctx, &block);
	CU_ASSERT(n > 0 && !memcmp(block, ops, n * sizeof(*ops)));
	CU_ASSERT_EQUAL(a.rewind(a.ctx), 0);
	CU_ASSERT(stream_is(r, 1, ops, 20000));
	CU_ASSERT_EQUAL(b.next(b.ctx, &block), 0); /* the other one stays at its end */
	CU_ASSERT(stream_is(r, 0, ops, 20000));
	CU_ASSERT_EQUAL(trace_source(r, 2, &a), KVMSIM_EINVAL);
	trace_close(r);
	free(ops);
	remove_temp();
}

static void reads_what_cannot_seek(void)
{
	const char *path = temp_path("t");
	uint8_t bytes[TINY_BYTES + 1];
	int stdin_was = dup(STDIN_FILENO), fds[2];
	struct trace_reader *r;

	unhex(tiny_hex, bytes);
	CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
	CU_ASSERT_EQUAL(write(fds[1], bytes, TINY_BYTES), TINY_BYTES);
	close(fds[1]);
	dup2(fds[0], STDIN_FILENO);
	close(fds[0]);
	r = reopen("-", NULL);
	CU_ASSERT(stream_is(r, 1, tiny_ops1, 5));
	CU_ASSERT(stream_is(r, 0, tiny_ops0, 3));
	trace_close(r);
	put_file(path, bytes, TINY_BYTES);
	CU_ASSERT_PTR_NOT_NULL(freopen(path, "r", stdin));
	r = reopen("-", NULL);
	CU_ASSERT(stream_is(r, 0, tiny_ops0, 3));
	trace_close(r);
	dup2(stdin_was, STDIN_FILENO);
	close(stdin_was);
	remove_temp();
}

static void sums_a_file(void)
{
	const char *path = temp_path("t");
	uint64_t sum = 0;

	/* the published test vectors of FNV-1a, 64 bits */
	put_file(path, "", 0);
	CU_ASSERT_EQUAL(trace_checksum(path, &sum), 0);
	CU_ASSERT_EQUAL(sum, 0xcbf29ce484222325u);
	put_file(path, "foobar", 6);
	CU_ASSERT_EQUAL(trace_checksum(path, &sum), 0);
	CU_ASSERT_EQUAL(sum, 0x85944171f73967e8u);
	CU_ASSERT_EQUAL(trace_checksum(temp_path("none"), &sum), KVMSIM_EIO);
	remove_temp();
}

static CU_TestInfo tests[] = {{"decodes_bytes_made_by_hand", decodes_bytes_made_by_hand},
			      {"writes_bytes_made_by_hand", writes_bytes_made_by_hand},
			      {"returns_what_was_written", returns_what_was_written},
			      {"rewinds_each_vcpu_by_itself", rewinds_each_vcpu_by_itself},
			      {"reads_what_cannot_seek", reads_what_cannot_seek},
			      {"sums_a_file", sums_a_file},
			      CU_TEST_INFO_NULL};
TEST_MAIN("trace", tests)
