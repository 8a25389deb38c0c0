// SPDX-License-Identifier: GPL-3.0-or-later
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "tests/unit/trace_util.h"
#include "traces/trace.h"

/* Torn and damaged files, and writing that fails. */

/* ---- torn and damaged files ---- */

#define SMALL_VCPUS 4
#define SMALL_OPS   40

struct small {
	const char *path;
	struct guest_op ops[SMALL_VCPUS][SMALL_OPS];
	uint8_t *bytes;
	size_t len, header;
	size_t end[SMALL_VCPUS]; /* of each vCPU's block */
};

static void make_small(struct small *s)
{
	struct trace_meta meta = meta_of(SMALL_VCPUS);
	struct trace_writer *w;
	uint64_t rnd = 99;
	const uint8_t *index;

	s->path = temp_path("small");
	CU_ASSERT_EQUAL_FATAL(trace_create(s->path, &meta, NULL, &w), 0);
	for (int v = 0; v < SMALL_VCPUS; v++) {
		random_ops(&rnd, s->ops[v], SMALL_OPS);
		/* one that zstd makes smaller */
		for (int i = 1; v == 2 && i < SMALL_OPS; i++)
			s->ops[v][i] = s->ops[v][0];
		CU_ASSERT_EQUAL(trace_write(w, v, s->ops[v], SMALL_OPS), 0);
	}
	CU_ASSERT_EQUAL_FATAL(trace_finish(w, NULL), 0);
	s->bytes = get_file(s->path, &s->len);
	/* FORMAT.md: 20 bytes of trailer, 16 for each of four blocks, 8 before them */
	index = s->bytes + s->len - 20 - 4 * 16 - 8;
	CU_ASSERT_EQUAL_FATAL(memcmp(index, "KVTI", 4), 0);
	s->header = index[8] | index[9] << 8;
	for (int v = 0; v < SMALL_VCPUS - 1; v++)
		s->end[v] = index[8 + 16 * (v + 1)] | index[8 + 16 * (v + 1) + 1] << 8;
	s->end[SMALL_VCPUS - 1] = index - s->bytes;
}

static void delivers_whole_blocks_of_a_torn_file(void)
{
	struct small s;
	struct messages m;
	struct kvmsim_errsink sink = keep_messages(&m);
	const char *path = temp_path("torn");

	make_small(&s);
	for (size_t len = 0; len < s.len; len++) {
		struct trace_reader *r;
		int ret;

		put_file(path, s.bytes, len);
		sink = keep_messages(&m);
		ret = trace_open(path, &sink, &r);
		if (len < s.header) {
			CU_ASSERT_EQUAL(ret, KVMSIM_EPARSE);
			CU_ASSERT_PTR_NULL(r);
			CU_ASSERT_EQUAL(m.n, 1);
			continue;
		}
		CU_ASSERT_EQUAL_FATAL(ret, 0);
		CU_ASSERT(trace_stats(r).torn);
		for (int v = 0; v < SMALL_VCPUS; v++)
			CU_ASSERT(stream_is(r, v, s.ops[v], s.end[v] <= len ? SMALL_OPS : 0));
		CU_ASSERT_EQUAL(m.n, 1);
		CU_ASSERT_EQUAL(m.err, KVMSIM_ETORN);
		trace_close(r);
	}
	free(s.bytes);
	remove_temp();
}

static void notices_every_changed_byte(void)
{
	static const uint8_t flip[] = {0x01, 0x80, 0xff};
	const char *path = temp_path("flip");
	struct small s;

	make_small(&s);
	for (size_t i = 0; i < s.len; i++) {
		for (int k = 0; k < 3; k++) {
			struct messages m;
			struct kvmsim_errsink sink = keep_messages(&m);
			struct trace_reader *r;
			int ret;

			s.bytes[i] ^= flip[k];
			put_file(path, s.bytes, s.len);
			s.bytes[i] ^= flip[k];
			ret = trace_open(path, &sink, &r);
			for (int v = 0; !ret && v < SMALL_VCPUS; v++) {
				struct stream got = read_stream(r, v);

				ret = got.error;
				CU_ASSERT(ret || !memcmp(got.ops, s.ops[v], sizeof(s.ops[v])));
				free(got.ops);
			}
			CU_ASSERT(ret == KVMSIM_EPARSE ||
				  (ret == KVMSIM_EVERSION && i >= 8 && i < 12));
			CU_ASSERT_EQUAL(m.n, 1);
			trace_close(r);
		}
	}
	free(s.bytes);
	remove_temp();
}

/* @len bytes are refused with @err; the message ends in @words after the path. */
static void refused(const void *bytes, size_t len, int err, const char *words)
{
	const char *path = temp_path("bad");
	struct messages m;
	struct kvmsim_errsink sink = keep_messages(&m);
	struct trace_reader *r;
	char expect[512];

	put_file(path, bytes, len);
	CU_ASSERT_EQUAL(trace_open(path, &sink, &r), err);
	CU_ASSERT_EQUAL(m.n, 1);
	CU_ASSERT_EQUAL((int)m.err, err);
	snprintf(expect, sizeof(expect), "%s: %s", path, words);
	CU_ASSERT_STRING_EQUAL(m.last, expect);
	CU_ASSERT_PTR_NULL(r);
	trace_close(r);
}

/* @what the message begins with. */
static void says_what_it_is(const char *text, const char *what)
{
	const char *path = temp_path("bad");
	struct messages m;
	struct kvmsim_errsink sink = keep_messages(&m);
	struct trace_reader *r;
	char expect[512];

	put_file(path, text, strlen(text));
	CU_ASSERT_EQUAL(trace_open(path, &sink, &r), KVMSIM_EPARSE);
	CU_ASSERT_EQUAL(m.n, 1);
	snprintf(expect, sizeof(expect), "%s: offset 0: not a kvmsim trace%s", path, what);
	CU_ASSERT_EQUAL(strncmp(m.last, expect, strlen(expect)), 0);
}

static void says_what_is_wrong(void)
{
	uint8_t b[TINY_BYTES + 16] = {0}, noise[64];
	uint64_t rnd = 1;
	struct messages m;
	struct kvmsim_errsink sink = keep_messages(&m);
	struct trace_reader *r;

	for (int i = 0; i < 64; i++)
		noise[i] = test_random(&rnd);
	unhex(tiny_hex, b);
	refused(b, 0, KVMSIM_EPARSE, "offset 0: not a kvmsim trace: the file is empty");
	refused(noise, 64, KVMSIM_EPARSE, "offset 0: not a kvmsim trace: the magic differs");
	says_what_it_is("\x17\x08\x44tracing6", " but a trace.dat: kvmsim import makes");
	says_what_it_is("PERFILE2\x68", " but perf's data: perf script");
	says_what_it_is("\x1f\x8b\x08", " but packed by gzip");
	says_what_it_is("; a guest\n[scenario]\n", " but a scenario: --scenario FILE");
	says_what_it_is(" CPU 0/KVM-7 [001] d... 1.0: kvm_fpu: load\r\n",
			" but text: kvmsim import");
	says_what_it_is("\xc2\xa0x\tkvm_entry", " but text: kvmsim import");
	says_what_it_is("x\x01y", ": the magic differs");
	refused(b, 5, KVMSIM_EPARSE, "offset 5: the file ends inside its header");
	refused(b, 60, KVMSIM_EPARSE, "offset 60: the file ends inside its metadata");
	refused(b, TINY_BYTES + 3, KVMSIM_EPARSE, "offset 269: bytes after the end of the trace");
	b[8] = 3;
	refused(b, TINY_BYTES, KVMSIM_EVERSION,
		"offset 8: format version 3; this program reads up to 2");
	b[8] = 0;
	refused(b, TINY_BYTES, KVMSIM_EPARSE, "offset 8: there is no format version 0");
	b[8] = 1, b[14] = 1;
	refused(b, TINY_BYTES, KVMSIM_EPARSE, "offset 12: the metadata is longer than 16384 bytes");
	b[14] = 0, b[96] = 'x';
	refused(b, TINY_BYTES, KVMSIM_EPARSE, "offset 16: checksum of the header differs");
	unhex(tiny_hex, b);
	b[219] ^= 1;
	refused(b, TINY_BYTES, KVMSIM_EPARSE, "offset 217: an entry of the index is impossible");
	b[219] ^= 1, b[257] ^= 1;
	refused(b, TINY_BYTES, KVMSIM_EPARSE, "offset 209: checksum of the index differs");
	b[257] ^= 1, b[268] ^= 1;
	refused(b, TINY_BYTES, KVMSIM_EPARSE, "offset 261: the mark of the file's end differs");

	CU_ASSERT_EQUAL(trace_open(temp_path("none"), &sink, &r), KVMSIM_EIO);
	CU_ASSERT_PTR_NOT_NULL(strstr(m.last, "/none: cannot open: No such file or directory"));
	CU_ASSERT_EQUAL(trace_open(temp_path("."), &sink, &r), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(m.last, "/.: a directory, not a kvmsim trace"));
	CU_ASSERT_EQUAL(trace_open("/dev/zero", &sink, &r), KVMSIM_EPARSE);
	CU_ASSERT_STRING_EQUAL(m.last,
			       "/dev/zero: offset 0: not a kvmsim trace: the magic differs");
	CU_ASSERT_EQUAL(m.n, 3);
	remove_temp();
}

static void says_which_block_is_bad(void)
{
	uint8_t b[TINY_BYTES + 1];
	const char *path = temp_path("t");
	struct messages m;
	struct kvmsim_errsink sink = keep_messages(&m);
	struct trace_reader *r;
	struct stream s;

	unhex(tiny_hex, b);
	b[200] ^= 4; /* in the columns of vCPU 1 */
	put_file(path, b, TINY_BYTES);
	r = reopen(path, &sink);
	CU_ASSERT(stream_is(r, 0, tiny_ops0, 3));
	s = read_stream(r, 1);
	CU_ASSERT_EQUAL(s.error, KVMSIM_EPARSE);
	CU_ASSERT_EQUAL(s.n, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(m.last, "/t: offset 160: checksum of the block differs"));
	trace_close(r);
	remove_temp();
}

/* ---- writing that fails ---- */

static void refuses_what_it_cannot_hold(void)
{
	struct trace_meta meta = meta_of(2);
	struct guest_op op = {.kind = OP_LAST};
	struct messages m;
	struct kvmsim_errsink sink = keep_messages(&m);
	struct trace_writer *w;
	char bad_text[] = "\xc3(";

	meta.n_vcpus = TRACE_MAX_VCPUS + 1;
	CU_ASSERT_EQUAL(trace_create(temp_path("t"), &meta, &sink, &w), KVMSIM_EINVAL);
	meta = meta_of(2);
	meta.n_slots = 2;
	meta.slots[1] = (struct trace_slot){(1u << 18) - 1, 5, "vram"};
	CU_ASSERT_EQUAL(trace_create(temp_path("t"), &meta, &sink, &w), KVMSIM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(m.last, "two slots overlap"));
	meta = meta_of(2);
	meta.source = bad_text;
	CU_ASSERT_EQUAL(trace_create(temp_path("t"), &meta, &sink, &w), KVMSIM_EINVAL);
	meta = meta_of(2);
	CU_ASSERT_EQUAL_FATAL(trace_create(temp_path("t"), &meta, &sink, &w), 0);
	CU_ASSERT_EQUAL(trace_write(w, 0, &op, 1), KVMSIM_EINVAL);
	op.kind = OP_HLT;
	CU_ASSERT_EQUAL(trace_write(w, 2, &op, 1), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(temp_files(), 1);
	trace_abort(w);
	CU_ASSERT_EQUAL(temp_files(), 0);
	CU_ASSERT_EQUAL(trace_create(temp_path("no/such/folder"), &meta, &sink, &w), KVMSIM_EIO);
	remove_temp();
}

/* Writes random blocks to @path; what writing and finishing returned. */
static int write_much(const char *path, struct messages *m)
{
	struct kvmsim_errsink sink = keep_messages(m);
	struct trace_meta meta = meta_of(1);
	struct guest_op *ops = calloc(1 << 14, sizeof(*ops));
	struct trace_writer *w;
	uint64_t rnd = 3;
	int ret = 0, end;

	CU_ASSERT_EQUAL_FATAL(trace_create(path, &meta, &sink, &w), 0);
	for (int i = 0; i < 1 << 14; i++)
		ops[i] = (struct guest_op){.kind = OP_WRITE, .arg = test_random(&rnd)};
	for (int i = 0; !ret && i < 8; i++)
		ret = trace_write(w, 0, ops, 1 << 14);
	end = trace_finish(w, NULL);
	CU_ASSERT(!ret || ret == end);
	free(ops);
	return end;
}

static void survives_a_full_disk(void)
{
	const char *path = temp_path("t");
	struct rlimit was, small;
	struct messages m;
	uint8_t *bytes;
	size_t len;

	put_file(path, "what was there", 14);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &was), 0);
	small = was;
	small.rlim_cur = 300000; /* in the third block */
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	CU_ASSERT_EQUAL(write_much(path, &m), KVMSIM_EIO);
	setrlimit(RLIMIT_FSIZE, &was);
	CU_ASSERT_EQUAL(m.n, 1);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(m.last, "/t: writing failed at offset 300000: File too large"));
	CU_ASSERT_EQUAL(temp_files(), 1);
	bytes = get_file(path, &len);
	CU_ASSERT(len == 14 && !memcmp(bytes, "what was there", 14));
	free(bytes);
	CU_ASSERT_EQUAL(write_much(path, &m), 0);
	CU_ASSERT_EQUAL(temp_files(), 1);
	remove_temp();
}

static void writes_devices_directly(void)
{
	struct trace_meta meta = meta_of(1);
	struct messages m;
	struct kvmsim_errsink sink = keep_messages(&m);
	struct trace_writer *w;
	struct stat st;

	CU_ASSERT_EQUAL(trace_create("/dev/full", &meta, &sink, &w), KVMSIM_EIO);
	CU_ASSERT_STRING_EQUAL(m.last,
			       "/dev/full: writing failed at offset 0: No space left on device");
	CU_ASSERT(!stat("/dev/full", &st) && S_ISCHR(st.st_mode));
	CU_ASSERT_EQUAL(write_much("/dev/null", &m), 0);
	CU_ASSERT(!stat("/dev/null", &st) && S_ISCHR(st.st_mode));
}

static void replaces_a_links_target(void)
{
	const char *path = temp_path("t"), *link = temp_path("link");
	struct messages m;
	struct stat st;

	put_file(path, "old", 3);
	CU_ASSERT_EQUAL_FATAL(symlink("t", link), 0);
	CU_ASSERT_EQUAL(write_much(link, &m), 0);
	CU_ASSERT(!lstat(link, &st) && S_ISLNK(st.st_mode));
	CU_ASSERT(!lstat(path, &st) && S_ISREG(st.st_mode) && st.st_size > 3);
	remove_temp();
}

static CU_TestInfo tests[] = {
	{"delivers_whole_blocks_of_a_torn_file", delivers_whole_blocks_of_a_torn_file},
	{"notices_every_changed_byte", notices_every_changed_byte},
	{"says_what_is_wrong", says_what_is_wrong},
	{"says_which_block_is_bad", says_which_block_is_bad},
	{"refuses_what_it_cannot_hold", refuses_what_it_cannot_hold},
	{"survives_a_full_disk", survives_a_full_disk},
	{"writes_devices_directly", writes_devices_directly},
	{"replaces_a_links_target", replaces_a_links_target},
	CU_TEST_INFO_NULL};
TEST_MAIN("trace_errors", tests)
