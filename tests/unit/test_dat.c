// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * trace.dat files against libtracecmd and libtraceevent, record by record; then what those cannot
 * read: files that are cut or damaged.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/dat_util.h"
#include "tests/unit/harness.h"

#define AT "traces/recorded/"
static const char *const files[] = {
	AT "dat-exits-v6.dat",	AT "dat-instances-v6.dat", AT "dat-instances-v7.dat",
	AT "dat-shadow-v7.dat", AT "dat-smp-v7.dat",	   AT "dat-tdp-v7.dat",
	AT "dat-lost-v7.dat",
};
#define N_FILES (sizeof(files) / sizeof(*files))

static bool equal(const struct oracle_record *a, const struct oracle_record *b)
{
	if (a->time_ns != b->time_ns || a->cpu != b->cpu || a->tid != b->tid ||
	    a->lost != b->lost || a->context != b->context || strcmp(a->name, b->name) ||
	    strcmp(a->comm, b->comm))
		return false;
	for (unsigned i = 0; i < HOST_N_FIELDS; i++)
		if (a->have >> i & b->have >> i & 1 && a->v[i] != b->v[i])
			return false;
	return true;
}

static size_t first_difference(const struct dat_seen *s, const struct oracle *o)
{
	size_t i = 0;

	while (i < s->n && i < o->n && equal(&s->r[i], &o->r[i]))
		i++;
	return i;
}

/* Fields that both have, of all records. */
static size_t fields_in_common(const struct dat_seen *s, const struct oracle *o)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n && i < o->n; i++)
		n += __builtin_popcountll(s->r[i].have & o->r[i].have);
	return n;
}

static void every_record(void)
{
	for (size_t i = 0; i < N_FILES; i++) {
		struct dat_seen s;
		struct oracle o;

		CU_ASSERT_FATAL(oracle_read(files[i], &o));
		dat_see(files[i], &s);
		CU_ASSERT_EQUAL(s.rc, 0);
		CU_ASSERT_EQUAL(s.said[0], 0);
		CU_ASSERT_EQUAL(s.n, o.n);
		CU_ASSERT_EQUAL(s.result.counts.records, o.n);
		CU_ASSERT(o.n > 100);
		CU_ASSERT_EQUAL(first_difference(&s, &o), o.n);
		CU_ASSERT(fields_in_common(&s, &o) > o.n / 4);
		CU_ASSERT_EQUAL(s.result.dat.version, strstr(files[i], "v6") ? 6 : 7);
		CU_ASSERT_EQUAL(s.result.dat.page_size, 4096);
		CU_ASSERT_STRING_EQUAL(s.result.dat.compression,
				       strstr(files[i], "v6") ? "" : "zstd");
		dat_seen_free(&s);
		oracle_free(&o);
	}
}

/* tests/golden/dat-facts.txt has what `trace-cmd report` itself counts. */
static uint64_t fact(const struct dat_seen *s, const char *what, uint64_t *sum)
{
	uint64_t n = 0, with = 0, without = 0, lost = 0;

	for (size_t i = 0; i < s->n; i++) {
		n += !strcmp(s->r[i].name, what);
		with += s->r[i].lost > 0;
		without += s->r[i].lost < 0;
		lost += s->r[i].lost > 0 ? s->r[i].lost : 0;
	}
	*sum += n;
	if (!strcmp(what, "lost"))
		return lost;
	if (!strcmp(what, "losses_with_count"))
		return with;
	if (!strcmp(what, "losses_without_count"))
		return without;
	if (!strcmp(what, "first_time"))
		return s->n ? s->r[0].time_ns : 0;
	if (!strcmp(what, "last_time"))
		return s->n ? s->r[s->n - 1].time_ns : 0;
	return n;
}

static void facts(void)
{
	FILE *f = fopen("tests/golden/dat-facts.txt", "r");
	char line[256], name[64], what[64], path[96], open[64] = "";
	unsigned long long number;
	struct dat_seen s = {0};
	uint64_t sum = 0;
	unsigned n = 0;

	CU_ASSERT_FATAL(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		if (*line == '#')
			continue;
		CU_ASSERT_FATAL(sscanf(line, "%63s %63s %llu", name, what, &number) == 3);
		if (strcmp(name, open)) {
			CU_ASSERT_EQUAL(sum, s.n); /* no event that trace-cmd does not have */
			dat_seen_free(&s);
			snprintf(path, sizeof(path), AT "%s", name);
			dat_see(path, &s);
			snprintf(open, sizeof(open), "%s", name);
			sum = 0;
			n++;
		}
		CU_ASSERT_EQUAL(fact(&s, what, &sum), number);
	}
	CU_ASSERT_EQUAL(sum, s.n);
	CU_ASSERT_EQUAL(n, N_FILES);
	dat_seen_free(&s);
	fclose(f);
}

/* A file of the other byte order, one that is packed with zlib, and one whose clock counts
 * otherwise (tests/golden/dat.py makes them) have the records of the file that they were made from.
 */
static void other_makes(void)
{
	static const char *const made[] = {"tests/golden/dat-exits-big.dat",
					   "tests/golden/dat-exits-zlib.dat"};
	struct dat_seen from, s;
	struct oracle o;

	dat_see(files[0], &from);
	for (unsigned i = 0; i < 2; i++) {
		const struct oracle same = {from.r, from.n};

		dat_see(made[i], &s);
		CU_ASSERT_EQUAL(s.rc, 0);
		CU_ASSERT_EQUAL(s.said[0], 0);
		CU_ASSERT_EQUAL(s.n, from.n);
		CU_ASSERT_EQUAL(first_difference(&s, &same), from.n);
		CU_ASSERT_EQUAL(s.result.dat.big_endian, i == 0);
		CU_ASSERT_STRING_EQUAL(s.result.dat.compression, i ? "zlib" : "");
		dat_seen_free(&s);
	}
	/* mult, shift and offset of a clock */
	dat_see("tests/golden/dat-exits-tsc.dat", &s);
	CU_ASSERT_EQUAL(s.n, from.n);
	for (size_t i = 0; i < s.n && i < from.n; i++)
		CU_ASSERT_EQUAL(s.r[i].time_ns, (from.r[i].time_ns * 825000001 >> 31) - 1000);
	dat_seen_free(&s);
	/* and libtracecmd, which has no zlib in Debian, says so of the first */
	CU_ASSERT_FATAL(oracle_read(made[0], &o));
	CU_ASSERT_EQUAL(o.n, from.n);
	CU_ASSERT_EQUAL(first_difference(&from, &o), from.n);
	oracle_free(&o);
	dat_seen_free(&from);
}

/* What `trace-cmd report -R` prints of a few records of dat-tdp-v7.dat and dat-shadow-v7.dat, put
 * down by hand; what it evaluates of an exit's reason and a shadow page's role is by `report -N`.
 */
static const struct host_event *wanted; /* set by wait_for(): which record is looked for */
static struct host_event got;
static char got_reason[32];
static unsigned got_n;

static int keep(void *ctx, const struct host_event *e)
{
	(void)ctx;
	if (e->time_ns == wanted->time_ns && e->id == wanted->id) {
		got = *e;
		snprintf(got_reason, sizeof(got_reason), "%.*s", (int)e->reason.len, e->reason.at);
		got_n++;
	}
	return 0;
}

static void look_for(const char *path, enum host_event_id id, uint64_t time_ns)
{
	const struct host_event want = {.id = id, .time_ns = time_ns};
	const struct host_sink sink = {.event = keep};
	struct host_result result;

	wanted = &want;
	got_n = 0;
	CU_ASSERT_EQUAL(host_read_dat(path, NULL, &sink, NULL, &result), 0);
	CU_ASSERT_EQUAL(got_n, 1);
}

static bool has(enum host_field f, uint64_t value)
{
	return host_has(&got, f) && got.v[f] == value;
}

static void fields(void)
{
	const char *tdp = AT "dat-tdp-v7.dat", *shadow = AT "dat-shadow-v7.dat";

	/* exit_reason=1024 guest_rip=0x1000 isa=2 info1=0x0000000200000006
	 * info2=0x0000000000010000 intr_info=0 error_code=0 vcpu_id=0; "reason npf" */
	look_for(tdp, HOST_kvm_exit, 26054933554);
	CU_ASSERT(has(HOST_F_reason, 1024) && has(HOST_F_isa, 2) && has(HOST_F_rip, 0x1000));
	CU_ASSERT(has(HOST_F_info1, 0x200000006) && has(HOST_F_info2, 0x10000));
	CU_ASSERT(has(HOST_F_vcpu, 0) && has(HOST_F_intr_info, 0) && has(HOST_F_error_code, 0));
	CU_ASSERT_STRING_EQUAL(got_reason, "NPF");
	CU_ASSERT_EQUAL(got.tid, 126);
	CU_ASSERT_EQUAL(got.cpu, 1);
	CU_ASSERT_EQUAL(got.time_decimals, 9);
	/* guest_rip=0x1000; "reason PF excp" */
	look_for(shadow, HOST_kvm_exit, 38172628012);
	CU_ASSERT(has(HOST_F_reason, 0x4e) && has(HOST_F_info1, 0x10));
	CU_ASSERT_STRING_EQUAL(got_reason, "PF EXCP");
	/* fault_address=0x0000000000010000 error_code=0x200000006 */
	look_for(tdp, HOST_kvm_page_fault, 26054957270);
	CU_ASSERT(has(HOST_F_vcpu, 0) && has(HOST_F_rip, 0x1000));
	CU_ASSERT(has(HOST_F_address, 0x10000) && has(HOST_F_error_code, 0x200000006));
	/* role=14212: 0x3784, level 4, direct, access 7; root_count=0 unsync=0 created=1 */
	look_for(tdp, HOST_kvm_mmu_get_page, 26054675182);
	CU_ASSERT(has(HOST_F_gfn, 0) && has(HOST_F_level, 4) && has(HOST_F_direct, 1));
	CU_ASSERT(has(HOST_F_access, 7) && has(HOST_F_quadrant, 0) && has(HOST_F_gpte_bytes, 8));
	CU_ASSERT(has(HOST_F_root_count, 0) && has(HOST_F_unsync, 0) && has(HOST_F_created, 1));
	CU_ASSERT_FALSE(got.role_unreliable);
	/* gfn=16, role=14084: 0x3704, the same but not direct */
	look_for(shadow, HOST_kvm_mmu_get_page, 38167848761);
	CU_ASSERT(has(HOST_F_gfn, 16) && has(HOST_F_level, 4) && has(HOST_F_direct, 0));
	/* cr2_or_gpa=10000000 error_code=7 sptep=0xffff8881028e7000 old_spte=0x102ee0e65
	 * new_spte=102ee0e67 ret=4, of "spurious: ret == 5, fixed: ret == 4" */
	look_for(tdp, HOST_fast_page_fault, 26074029624);
	CU_ASSERT(has(HOST_F_gva, 0x10000000) && has(HOST_F_error_code, 7));
	CU_ASSERT(has(HOST_F_sptep, 0xffff8881028e7000) && has(HOST_F_old, 0x102ee0e65));
	CU_ASSERT(has(HOST_F_new, 0x102ee0e67) && has(HOST_F_spurious, 0));
	CU_ASSERT(has(HOST_F_fixed, 1));
	/* sptep=0xffff8881028e2000 gfn=e0000 access=7 gen=6 */
	look_for(tdp, HOST_mark_mmio_spte, 26055710053);
	CU_ASSERT(has(HOST_F_sptep, 0xffff8881028e2000) && has(HOST_F_gfn, 0xe0000));
	CU_ASSERT(has(HOST_F_access, 7) && has(HOST_F_gen, 6));
	/* type=0 len=4 gpa=0xe0000000 val=0x0 */
	look_for(shadow, HOST_kvm_mmio, 38182164570);
	CU_ASSERT(has(HOST_F_type, 0) && has(HOST_F_len, 4) && has(HOST_F_gpa, 0xe0000000));
	/* gfn=0 old_spte=0 new_spte=1028d7827 level=4 as_id=0 */
	look_for(tdp, HOST_kvm_tdp_mmu_spte_changed, 26055147984);
	CU_ASSERT(has(HOST_F_old, 0) && has(HOST_F_new, 0x1028d7827) && has(HOST_F_level, 4));
	/* reason=5 errno=0 */
	look_for(AT "dat-smp-v7.dat", HOST_kvm_userspace_exit, 31834700701);
	CU_ASSERT(has(HOST_F_reason, 5) && has(HOST_F_ret, 0));
	CU_ASSERT_STRING_EQUAL(got_reason, "KVM_EXIT_HLT");
	/* lock_addr=0xffffffff82b341c0 flags=20 */
	look_for(AT "dat-smp-v7.dat", HOST_contention_begin, 31629130683);
	CU_ASSERT(has(HOST_F_lock_addr, 0xffffffff82b341c0) && has(HOST_F_flags, 20));
	/* prev_pid=15 prev_state=128 next_pid=129: idle */
	look_for(AT "dat-smp-v7.dat", HOST_sched_switch, 31577782450);
	CU_ASSERT(has(HOST_F_prev_pid, 15) && has(HOST_F_prev_state, 'I'));
	CU_ASSERT(has(HOST_F_next_pid, 129));
	/* prev_pid=129 prev_state=0 */
	look_for(AT "dat-smp-v7.dat", HOST_sched_switch, 31577590743);
	CU_ASSERT(has(HOST_F_prev_pid, 129) && has(HOST_F_prev_state, 'R'));
}

/* ---- cut files ---- */

/* A cut file of version 6 has the records of its whole pages, and says so; where it is cut in its
 * formats or tables, it is refused. */
static void cut_v6(void)
{
	size_t len;
	uint8_t *bytes = dat_whole(files[0], &len);
	struct oracle o;

	CU_ASSERT_FATAL(bytes && oracle_read(files[0], &o));
	for (size_t cut = 40; cut < len; cut += 811) {
		struct dat_seen s;
		size_t want = 0;

		for (size_t i = 0; i < o.n; i++)
			want += o.r[i].end <= cut;
		CU_ASSERT_FATAL(dat_see_bytes(bytes, cut, &s));
		CU_ASSERT_EQUAL(s.n, want);
		CU_ASSERT_EQUAL(s.rc, want ? 0 : KVMSIM_EPARSE);
		CU_ASSERT_EQUAL(s.result.refusal, want ? HOST_FINE : HOST_TRUNCATED_DAT);
		CU_ASSERT_PTR_NOT_NULL(strstr(s.said, "cut"));
		CU_ASSERT_EQUAL(s.result.dat.version, 6);
		dat_seen_free(&s);
	}
	oracle_free(&o);
	free(bytes);
}

/* Version 7 loses its last tables first: all records are found without them, and the CPUs' numbers.
 */
static void cut_v7(void)
{
	static const char *const cut_files[] = {AT "dat-smp-v7.dat", AT "dat-lost-v7.dat"};

	for (unsigned i = 0; i < 2; i++) {
		size_t len, before = 0;
		uint8_t *bytes = dat_whole(cut_files[i], &len);
		struct oracle o;
		struct dat_seen s;

		CU_ASSERT_FATAL(bytes && oracle_read(cut_files[i], &o));
		/* behind the data are an options section of 84 bytes with its head, and strings */
		CU_ASSERT_FATAL(dat_see_bytes(bytes, len - 150, &s));
		CU_ASSERT_EQUAL(s.rc, 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(s.said, "last tables are missing"));
		CU_ASSERT_EQUAL(first_difference(&s, &o), o.n);
		CU_ASSERT_EQUAL(s.n, o.n);
		dat_seen_free(&s);
		for (size_t cut = 40; cut < len; cut += 97) {
			CU_ASSERT_FATAL(dat_see_bytes(bytes, cut, &s));
			CU_ASSERT(s.n >= before && s.n <= o.n);
			CU_ASSERT_EQUAL(s.rc, s.n ? 0 : KVMSIM_EPARSE);
			CU_ASSERT_EQUAL(s.result.refusal, s.n ? HOST_FINE : HOST_TRUNCATED_DAT);
			before = s.n;
			dat_seen_free(&s);
		}
		CU_ASSERT_EQUAL(before, o.n);
		oracle_free(&o);
		free(bytes);
	}
}

/* A head of each kind alone. */
static void heads(void)
{
	static const struct {
		const char bytes[64];
		size_t len;
		struct host_dat dat;
	} heads[] = {
		{"\x17\x08\x44tracing6\0\1\4\0\0\x40\0header_page",
		 64,
		 {true, 6, 4, 16384, true, ""}},
		{"\x17\x08\x44tracing7\0\0\x8\0\x10\0\0zlib\0"
		 "1.2.13\0\x25\0\0\0\0\0\0\0\x10",
		 64,
		 {true, 7, 8, 4096, false, "zlib"}},
		{"\x17\x08\x44tracing7\0\1\x8\0\1\0\0none\0\0\0\0\0\0\0\0\0\x2f\0\x10\0\1",
		 64,
		 {true, 7, 8, 65536, true, "none"}},
		{"\x17\x08\x44tracing7\0\0\x8\0\x10\0\0lzma\0x\0\x25",
		 64,
		 {true, 7, 8, 4096, false, "lzma"}},
		{"\x17\x08\x44tracing6\0\0\x8\0\x10\0\0", 18, {true, 6, 8, 4096, false, ""}},
		{"\x17\x08\x44tracing7\0\0\x8\0\x10\0\0zst", 21, {true, 7, 8, 4096, false, ""}},
	};

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		const struct host_dat *want = &heads[i].dat;
		struct dat_seen s;

		CU_ASSERT_FATAL(dat_see_bytes((const uint8_t *)heads[i].bytes, heads[i].len, &s));
		CU_ASSERT_EQUAL(s.rc, KVMSIM_EPARSE);
		CU_ASSERT_EQUAL(s.result.refusal, HOST_TRUNCATED_DAT);
		CU_ASSERT_EQUAL(s.result.dat.is_dat, want->is_dat);
		CU_ASSERT_EQUAL(s.result.dat.version, want->version);
		CU_ASSERT_EQUAL(s.result.dat.big_endian, want->big_endian);
		CU_ASSERT_EQUAL(s.result.dat.long_size, want->long_size);
		CU_ASSERT_EQUAL(s.result.dat.page_size, want->page_size);
		CU_ASSERT_STRING_EQUAL(s.result.dat.compression, want->compression);
		dat_seen_free(&s);
	}
}

static void other_versions(void)
{
	struct dat_seen s;
	static const uint8_t eight[40] = "\x17\x08\x44tracing8\0\0\x8\0\x10\0\0";
	static const uint8_t text[40] = "# tracer: nop";

	CU_ASSERT_FATAL(dat_see_bytes(eight, sizeof(eight), &s));
	CU_ASSERT_EQUAL(s.rc, KVMSIM_EVERSION);
	CU_ASSERT_PTR_NOT_NULL(strstr(s.said, "version 8"));
	dat_seen_free(&s);
	CU_ASSERT_FATAL(dat_see_bytes(text, sizeof(text), &s));
	CU_ASSERT_EQUAL(s.rc, KVMSIM_EPARSE);
	CU_ASSERT(!s.result.dat.is_dat);
	dat_seen_free(&s);
	dat_see("no/such/file.dat", &s);
	CU_ASSERT_EQUAL(s.rc, KVMSIM_EIO);
	dat_seen_free(&s);
}

/* ---- others ---- */

static void from_a_pipe(void)
{
	size_t len;
	uint8_t *bytes = dat_whole(files[2], &len);
	struct oracle o;
	struct dat_seen s;
	int fd[2];
	pid_t child;

	CU_ASSERT_FATAL(bytes && oracle_read(files[2], &o) && !pipe(fd));
	child = fork();
	if (!child) {
		ssize_t n = write(fd[1], bytes, len);

		_exit(n != (ssize_t)len);
	}
	close(fd[1]);
	dat_see_fd(fd[0], &s);
	close(fd[0]);
	waitpid(child, NULL, 0);
	CU_ASSERT_EQUAL(s.rc, 0);
	CU_ASSERT_EQUAL(first_difference(&s, &o), o.n);
	CU_ASSERT_EQUAL(s.n, o.n);
	dat_seen_free(&s);
	oracle_free(&o);
	free(bytes);
}

/* An instance that has another clock is left out and named. */
static void two_clocks(void)
{
	static const char exits[] = "exits\0global";
	size_t len, n = 0;
	uint8_t *bytes = dat_whole(AT "dat-instances-v7.dat", &len), *at;
	struct dat_seen s;

	CU_ASSERT_FATAL(bytes != NULL);
	at = memmem(bytes, len, exits, sizeof(exits));
	CU_ASSERT_FATAL(at != NULL);
	memcpy(at + 6, "uptime", 6);
	CU_ASSERT_FATAL(dat_see_bytes(bytes, len, &s));
	CU_ASSERT_EQUAL(s.rc, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(s.said, "buffer 'exits' has the clock uptime, not global"));
	CU_ASSERT(s.n > 50);
	for (size_t i = 0; i < s.n; i++)
		n += !strcmp(s.r[i].name, "kvm_exit");
	CU_ASSERT_EQUAL(n, 0);
	dat_seen_free(&s);
	free(bytes);
}

/* Damaged bytes anywhere: no crash, and no more records than the file has room for. */
static void damaged(void)
{
	unsigned seed = 1;

	for (size_t i = 0; i < N_FILES; i++) {
		size_t len;
		uint8_t *bytes = dat_whole(files[i], &len), *spoiled;

		spoiled = malloc(len + 1);
		CU_ASSERT_FATAL(bytes && spoiled);
		for (unsigned round = 0; round < 60; round++) {
			struct dat_seen s;

			memcpy(spoiled, bytes, len);
			for (unsigned n = 1 + round % 20; n; n--) {
				seed = seed * 1103515245 + 12345;
				/* half of them where tables and formats are */
				spoiled[(seed >> 8) % (n & 1 ? len : 4096)] = seed >> 24;
			}
			CU_ASSERT_FATAL(dat_see_bytes(spoiled, len, &s));
			CU_ASSERT(s.n <= 200 * len);
			dat_seen_free(&s);
		}
		free(bytes);
		free(spoiled);
	}
}

static CU_TestInfo tests[] = {
	{"every record is as libtracecmd reads it", every_record},
	{"counts as trace-cmd report has them", facts},
	{"big endian; packed with zlib", other_makes},
	{"fields as trace-cmd report prints them", fields},
	{"version 6, cut", cut_v6},
	{"version 7, cut", cut_v7},
	{"heads alone", heads},
	{"other versions, no trace.dat, no file", other_versions},
	{"from a pipe", from_a_pipe},
	{"two clocks are not mixed", two_clocks},
	{"damaged", damaged},
	CU_TEST_INFO_NULL,
};

TEST_MAIN("dat", tests)
