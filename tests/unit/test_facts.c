// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts.h"
#include "tests/unit/harness.h"

/* The rules behind `kvmsim info` of a host's trace, on streams of events made by hand. Expected
 * values follow from the rules' words (docs/host-facts.md), worked out on paper. */

/* ---- a stream ---- */

static struct facts *f;
static struct host_result result;
static struct tables tables;

static void begin(void)
{
	f = facts_create();
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	memset(&tables, 0, sizeof(tables));
	result = (struct host_result){.sections = {HOST_KIND_TRACE_TEXT}, .n_sections = 1};
}

static void feed(const struct host_event *e)
{
	const struct host_sink *s = facts_sink(f);

	CU_ASSERT_EQUAL(s->event(s->ctx, e), 0);
}

#define US 1000ull

static struct host_event at(uint64_t us, int64_t tid, int64_t cpu, enum host_event_id id)
{
	struct host_event e = {.id = id, .time_ns = us * US, .tid = tid, .tgid = -1, .cpu = cpu};
	const char *name = host_event_name(id);

	memset(e.v, 0xee, sizeof(e.v)); /* what is not there must not be read */
	if (name)
		e.name = (struct host_text){name, strlen(name)};
	return e;
}

static void plain(uint64_t us, int64_t tid, int64_t cpu, enum host_event_id id)
{
	struct host_event e = at(us, tid, cpu, id);

	feed(&e);
}

static void leave(uint64_t us, int64_t tid, int64_t cpu, const char *reason, uint64_t info1,
		  uint64_t info2)
{
	struct host_event e = at(us, tid, cpu, HOST_kvm_exit);

	e.reason = (struct host_text){reason, strlen(reason)};
	host_set(&e, HOST_F_rip, 0x1000);
	host_set(&e, HOST_F_info1, info1);
	host_set(&e, HOST_F_info2, info2);
	feed(&e);
}

static void enter(uint64_t us, int64_t tid, int64_t cpu, int64_t vcpu)
{
	struct host_event e = at(us, tid, cpu, HOST_kvm_entry);

	if (vcpu >= 0)
		host_set(&e, HOST_F_vcpu, (uint64_t)vcpu);
	feed(&e);
}

static void fault(uint64_t us, int64_t tid, uint64_t address, uint64_t code)
{
	struct host_event e = at(us, tid, 0, HOST_kvm_page_fault);

	host_set(&e, HOST_F_address, address);
	host_set(&e, HOST_F_error_code, code);
	feed(&e);
}

static void userspace(uint64_t us, int64_t tid, uint64_t number, const char *word)
{
	struct host_event e = at(us, tid, 0, HOST_kvm_userspace_exit);

	e.reason = (struct host_text){word, strlen(word)};
	host_set(&e, HOST_F_reason, number);
	feed(&e);
}

static void loss(int64_t cpu, uint64_t count, bool header)
{
	struct host_loss l = {.cpu = cpu, .count = count, .header = header};
	const struct host_sink *s = facts_sink(f);

	CU_ASSERT_EQUAL(s->loss(s->ctx, &l), 0);
}

static void elision(void)
{
	const struct host_sink *s = facts_sink(f);

	CU_ASSERT_EQUAL(s->elision(s->ctx), 0);
}

static struct facts_given given;

static json_t *done(void)
{
	struct host_facts h = {"x", f, &tables, &result, given};
	json_t *j;

	facts_finish(f);
	j = facts_json(&h);
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	facts_free(f);
	f = NULL;
	return j;
}

/* One key as compact JSON text, keys sorted. */
static void says(json_t *j, const char *key, const char *text)
{
	json_t *v = json_object_get(j, key);
	char *got = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;

	if (!got || strcmp(got, text) != 0)
		printf("%s: %s instead of %s\n", key, got ? got : "nothing", text);
	CU_ASSERT(got && !strcmp(got, text));
	free(got);
}

/* ---- pairs ---- */

static void test_pairs(void)
{
	json_t *j;

	begin();
	enter(1, 10, 0, 0);
	leave(2, 10, 0, "HLT", 0, 0);
	leave(3, 11, 1, "npf", 0, 0);
	enter(5, 11, 1, 1); /* 2 us, the second exit */
	enter(9, 10, 0, 0); /* 7 us, the first */
	leave(10, 10, 0, "EXIT_NPF", 0, 0);
	leave(11, 10, 0, "0x400", 0, 0); /* the one before stays alone */
	enter(12, 11, 1, 1);		 /* so does this */
	enter(13, 10, 0, 0);
	j = done();
	says(j, "pairs", "3");
	says(j, "pair_ns", "[7000,2000,2000]");
	says(j, "unpaired_exits", "1");
	says(j, "unpaired_entries", "2");
	says(j, "exit_reasons", "{\"HLT\":1,\"NPF\":3}");
	says(j, "vcpus", "[0,1]");
	says(j, "vcpu_of_tid", "{\"10\":0,\"11\":1}");
	says(j, "largest_gap_ns", "7000");
	json_decref(j);
}

static void test_pairs_over_losses(void)
{
	json_t *j;

	begin();
	leave(1, 10, 0, "HLT", 0, 0);
	loss(1, 5, false); /* another CPU's */
	enter(2, 10, 0, 0);
	leave(3, 10, 0, "HLT", 0, 0);
	loss(0, 7, false);
	enter(4, 10, 2, 0); /* it is the exit's CPU that counts */
	leave(5, 10, 2, "HLT", 0, 0);
	loss(0, UINT64_MAX, false);
	enter(6, 10, 0, 0);
	leave(7, 10, 0, "HLT", 0, 0);
	loss(-1, 1, false); /* whose it was is not told: anybody's */
	enter(8, 10, 0, 0);
	j = done();
	says(j, "pairs", "2");
	says(j, "pairs_spanning_loss", "2");
	says(j, "pair_ns", "[1000,1000]");
	says(j, "unpaired_exits", "0");
	says(j, "unpaired_entries", "0");
	says(j, "lost_events", "null");
	says(j, "lost_events_min", "13");
	says(j, "lost_by_cpu", "{\"0\":null,\"1\":5}");
	says(j, "verdict", "\"too lossy\""); /* 13 of 8 */
	json_decref(j);
}

static void test_header_loss(void)
{
	json_t *j;

	begin();
	loss(-1, 3, true);
	leave(1, 10, 0, "HLT", 0, 0);
	loss(0, UINT64_MAX, false);
	loss(0, 100, false); /* adds nothing to the header's */
	enter(2, 10, 0, 0);
	j = done();
	says(j, "lost_events", "3");
	says(j, "lost_events_min", "3");
	says(j, "pairs_spanning_loss", "1");
	says(j, "verdict", "\"too lossy\""); /* 3 lost, 2 here */
	json_decref(j);
}

static void test_chunks(void)
{
	struct host_loss l = {.cpu = -1, .count = UINT64_MAX, .chunks = 4};
	json_t *j;

	begin();
	leave(1, 10, 0, "HLT", 0, 0);
	/* a tool's closing words: no place in the trace */
	facts_sink(f)->loss(facts_sink(f)->ctx, &l);
	enter(2, 10, 0, 0);
	j = done();
	says(j, "lost_events", "null");
	says(j, "lost_events_min", "0");
	says(j, "lost_chunks", "4");
	says(j, "pairs", "1");
	says(j, "verdict", "null");
	json_decref(j);
}

/* ---- columns that are not there ---- */

static void test_no_columns(void)
{
	struct host_event e = at(0, -1, -1, HOST_kvm_exit);
	json_t *j;

	begin();
	e.time_ns = HOST_NO_TIME;
	host_set(&e, HOST_F_reason, 0x12);
	feed(&e);
	e = at(0, -1, -1, HOST_kvm_entry);
	e.time_ns = HOST_NO_TIME;
	feed(&e);
	j = done();
	says(j, "timed", "false");
	says(j, "exit_reasons", "{\"0x12\":1}");
	for (const char *const *k =
		     (const char *const[]){"cpus", "tids", "comms", "vcpus", "vcpu_of_tid",
					   "cpus_of_tid", "tgid_of_tid", "first_time_ns",
					   "last_time_ns", "out_of_order", "pairs", "pair_ns",
					   "unpaired_exits", "largest_gap_ns", NULL};
	     *k; k++)
		says(j, *k, "null");
	says(j, "records", "2");
	json_decref(j);
}

static void test_heads(void)
{
	struct host_event e;
	json_t *j;

	begin();
	e = at(5, 7, 3, HOST_kvm_msr);
	e.comm = (struct host_text){"<...>", 5};
	e.flags_width = 5;
	e.time_decimals = 9;
	feed(&e);
	e = at(4, 9, 1, HOST_OTHER); /* another CPU: in order */
	e.name = (struct host_text){"irq_entry", 9};
	e.comm = (struct host_text){"a\xff", 2}; /* no UTF-8 */
	e.tgid = 8;
	feed(&e);
	plain(3, 7, 1, HOST_sched_switch);
	plain(3, 7, 1, HOST_kvm_msr); /* the same time: in order */
	plain(4, 7, 3, HOST_kvm_msr);
	e = at(9, 9, 3, HOST_UNKNOWN_KVM);
	e.name = (struct host_text){"kvm_x", 5};
	feed(&e);
	e = at(9, 12, 3, HOST_KVM_REST);
	e.name = (struct host_text){"kvm_cpuid", 9};
	feed(&e);
	j = done();
	says(j, "out_of_order", "2");
	says(j, "first_time_ns", "3000");
	says(j, "last_time_ns", "9000");
	says(j, "flags_width", "5");
	says(j, "time_decimals", "9");
	says(j, "cpus", "[1,3]");
	says(j, "tids", "[7,9,12]");
	says(j, "cpus_of_tid", "{\"12\":[3],\"7\":[3,1],\"9\":[1,3]}");
	says(j, "tgid_of_tid", "{\"12\":null,\"7\":null,\"9\":8}");
	says(j, "comms", "[null,\"a\xef\xbf\xbd\"]");
	says(j, "events", "{\"kvm_cpuid\":1,\"kvm_msr\":3}");
	says(j, "unknown_events", "{\"kvm_x\":1}");
	says(j, "other_events", "{\"irq_entry\":1,\"sched_switch\":1}");
	says(j, "vcpu_of_tid", "{\"12\":null,\"7\":null,\"9\":null}");
	says(j, "verdict", "\"no usable events\"");
	json_decref(j);
}

/* ---- faults ---- */

static void test_faults(void)
{
	struct host_event e;
	json_t *j;

	begin();
	fault(1, 10, 0xfee00300, 0x2); /* no record of the thread told a vCPU yet */
	enter(2, 10, 0, 4);
	leave(3, 10, 0, "npf", 0x100000006, 0x5000);
	fault(4, 10, 0x5000, 0x6); /* 32 bits of the longer one */
	fault(5, 10, 0x5000, 0x7); /* is not */
	leave(6, 10, 0, "EXCEPTION_NMI", 0x7ff8, 0x80000b0e);
	fault(7, 10, 0x7ff8, 0xb);
	leave(8, 10, 0, "EXCEPTION_NMI", 0, 0x80000b0d); /* #GP */
	fault(9, 10, 0x7ff8, 0x0);
	leave(10, 11, 0, "EPT_VIOLATION", 0x700000181, 0);
	fault(11, 11, 0x6000, 0x181); /* no NPF: as printed */
	e = at(12, 11, 0, HOST_kvm_exit);
	e.reason = (struct host_text){"EXCEPTION_NMI", 13};
	host_set(&e, HOST_F_intr_info, 0x80000b0e); /* kernels from 5.10 on */
	host_set(&e, HOST_F_info2, 0);
	feed(&e);
	e = at(13, 11, 0, HOST_kvm_page_fault);
	host_set(&e, HOST_F_vcpu, 2);
	host_set(&e, HOST_F_address, 0xfee00000);
	host_set(&e, HOST_F_error_code, 2);
	feed(&e);
	leave(14, 11, 0, "EXIT_EXCP_PF", 2, 0x7000); /* SVM's by libtraceevent */
	fault(15, 11, 0x7000, 2);
	j = done();
	says(j, "page_faults",
	     "[{\"apic\":true,\"error_code\":\"0x2\",\"gpa\":\"0xfee00300\",\"gva\":null,\"vcpu\":"
	     "null,"
	     "\"write\":true},"
	     "{\"error_code\":\"0x100000006\",\"gpa\":\"0x5000\",\"gva\":null,\"vcpu\":4,\"write\":"
	     "true},"
	     "{\"error_code\":\"0x7\",\"gpa\":\"0x5000\",\"gva\":null,\"vcpu\":4,\"write\":true},"
	     "{\"error_code\":\"0xb\",\"gpa\":null,\"gva\":\"0x7ff8\",\"vcpu\":4,\"write\":true},"
	     "{\"error_code\":\"0x0\",\"gpa\":\"0x7ff8\",\"gva\":null,\"vcpu\":4,\"write\":false},"
	     "{\"error_code\":\"0x181\",\"gpa\":\"0x6000\",\"gva\":null,\"vcpu\":null,\"write\":"
	     "false},"
	     "{\"error_code\":\"0x2\",\"gpa\":null,\"gva\":\"0xfee00000\",\"vcpu\":2,\"write\":"
	     "true},"
	     "{\"error_code\":\"0x2\",\"gpa\":null,\"gva\":\"0x7000\",\"vcpu\":2,\"write\":true}]");
	says(j, "truncated_error_codes", "1");
	json_decref(j);
}

static void test_loops(void)
{
	json_t *j;

	begin();
	enter(1, 10, 0, 0);
	enter(1, 11, 1, 1);
	enter(1, 12, 2, 2);
	fault(2, 10, 0x5008, 0x6);
	fault(3, 11, 0x5010, 0x6);
	fault(4, 12, 0x5ff8, 0x6); /* three vCPUs, once each: no loop yet */
	fault(5, 10, 0x8000, 0x6);
	fault(6, 10, 0x8000, 0x6); /* twice */
	fault(7, 10, 0x8000, 0x7); /* another code */
	j = done();
	says(j, "loops", "[]");
	says(j, "verdict", "null");
	json_decref(j);

	begin();
	enter(1, 10, 0, 0);
	enter(1, 11, 1, 1);
	fault(2, 10, 0x5008, 0x6);
	fault(3, 11, 0x5010, 0x6);
	fault(4, 10, 0x5ff8, 0x6);
	j = done();
	says(j, "loops", "[{\"faults\":3,\"gfn\":\"0x5\",\"rip\":\"0x0\",\"vcpus\":[0,1]}]");
	says(j, "verdict", "\"no-progress loop\"");
	json_decref(j);
}

static void test_no_loop_with_change(void)
{
	static const struct {
		enum host_event_id id;
		enum host_field field;
		uint64_t value;
		const char *verdict;
	} cases[] = {
		{HOST_kvm_mmu_set_spte, HOST_F_gfn, 9, "null"},
		{HOST_kvm_tdp_mmu_spte_changed, HOST_F_gfn, 9, "null"},
		{HOST_fast_page_fault, HOST_F_fixed, 1, "null"},
		{HOST_fast_page_fault, HOST_F_fixed, 0, "\"no-progress loop\""},
		{HOST_fast_page_fault, HOST_F_spurious, 1, "\"no-progress loop\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int late = 0; late < 2; late++) {
			struct host_event e = at(3, 10, 0, cases[i].id);
			json_t *j;

			host_set(&e, cases[i].field, cases[i].value);
			begin();
			if (!late)
				feed(&e);
			for (int k = 0; k < 3; k++)
				fault(4 + k, 10, 0x5000, 0x6);
			if (late)
				feed(&e);
			j = done();
			says(j, "verdict", cases[i].verdict);
			json_decref(j);
		}
	}
}

/* ---- MMIO ---- */

static void mmio(uint64_t us, int64_t tid, uint64_t type, uint64_t gpa, uint64_t len)
{
	struct host_event e = at(us, tid, 0, HOST_kvm_mmio);

	host_set(&e, HOST_F_type, type);
	host_set(&e, HOST_F_gpa, gpa);
	host_set(&e, HOST_F_len, len);
	feed(&e);
}

static void test_mmio(void)
{
	json_t *j;

	begin();
	mmio(1, 10, 0, 0x9000, 4);
	mmio(2, 11, 1, 0x9000, 4); /* another thread's read */
	mmio(3, 10, 1, 0x9000, 8); /* another length */
	mmio(4, 10, 1, 0x9000, 4); /* its own */
	mmio(5, 10, 0, 0x7000, 4); /* stays open */
	mmio(6, 10, 2, 0x7000, 4);
	plain(7, 10, 0, HOST_vcpu_match_mmio);
	j = done();
	says(j, "mmio",
	     "{\"accesses\":5,\"cache_hits\":1,\"gpas\":[\"0x7000\",\"0x9000\"],\"open_reads\":1,"
	     "\"reads\":3,\"round_trips\":1,\"unsatisfied_reads\":2,\"writes\":1}");
	json_decref(j);
}

static void walker_error(uint64_t us, int64_t tid, uint64_t pferr)
{
	struct host_event e = at(us, tid, 0, HOST_kvm_mmu_walker_error);

	host_set(&e, HOST_F_error_code, pferr);
	feed(&e);
}

static void test_misconfig(void)
{
	json_t *j;

	begin();
	leave(1, 10, 0, "EPT_MISCONFIG", 0, 0);
	walker_error(2, 10, 0xd); /* counts */
	enter(3, 10, 0, 0);
	leave(4, 10, 0, "EPT_MISCONFIG", 0, 0);
	walker_error(5, 10, 0x5); /* without RSVD: does not */
	enter(6, 10, 0, 0);
	leave(7, 10, 0, "EPT_MISCONFIG", 0, 0);
	walker_error(8, 10, 0xd);
	mmio(9, 10, 2, 0x9000, 4); /* it was an access after all */
	leave(10, 10, 0, "EPT_VIOLATION", 0, 0);
	walker_error(11, 10, 0x1f);
	leave(12, 10, 0, "EPT_MISCONFIG", 0, 0);
	walker_error(13, 10, 0x29); /* at the file's end */
	j = done();
	says(j, "misconfig_not_mmio", "2");
	says(j, "walker_errors",
	     "[{\"flags\":[\"P\",\"U\",\"RSVD\"],\"pferr\":\"0xd\"},"
	     "{\"flags\":[\"P\",\"U\"],\"pferr\":\"0x5\"},"
	     "{\"flags\":[\"P\",\"U\",\"RSVD\"],\"pferr\":\"0xd\"},"
	     "{\"flags\":[\"P\",\"W\",\"U\",\"RSVD\",\"F\"],\"pferr\":\"0x1f\"},"
	     "{\"flags\":[\"P\",\"RSVD\",\"0x20\"],\"pferr\":\"0x29\"}]");
	json_decref(j);
}

/* ---- sptes ---- */

static void spte(uint64_t us, uint64_t gfn, uint64_t level, uint64_t old, uint64_t new)
{
	struct host_event e = at(us, 10, 0, HOST_kvm_tdp_mmu_spte_changed);

	host_set(&e, HOST_F_as_id, 0);
	host_set(&e, HOST_F_gfn, gfn);
	host_set(&e, HOST_F_level, level);
	host_set(&e, HOST_F_old, old);
	host_set(&e, HOST_F_new, new);
	feed(&e);
}

static void test_spte_run(void)
{
	json_t *j;

	begin();
	spte(1, 0x200, 2, 0x907, 0xef3);
	spte(2, 0x200, 1, 0xb77, 0x5a0);
	spte(3, 0x201, 1, 0, 0x5a0); /* tears nothing down */
	elision();
	spte(4, 0x3ff, 1, 0xb77, 0);
	spte(5, 0x400, 1, 0xb77, 0x123); /* goes on, and changes only */
	spte(6, 0x600, 1, 0, 0x123);	 /* a run of its own: nothing was left out before it */
	elision();			 /* at the end: interrupts nothing */
	j = done();
	says(j, "spte", "{\"implied\":513,\"shown\":6,\"torn_down\":2}"); /* 200..400 */
	json_decref(j);

	begin();
	spte(1, 0, 2, 1, 0);
	elision();
	spte(2, 0x1e00, 2, 1, 0); /* slots of 512 pages: 16 of them */
	elision();
	spte(3, 0x1e00, 1, 1, 0); /* another level: a new run */
	j = done();
	says(j, "spte", "{\"implied\":16,\"shown\":3,\"torn_down\":3}");
	json_decref(j);
}

static void test_sp_pages(void)
{
	struct host_event e = at(1, 10, 0, HOST_kvm_mmu_get_page);
	json_t *j;

	host_set(&e, HOST_F_gfn, 0xe00);
	host_set(&e, HOST_F_level, 1);
	host_set(&e, HOST_F_created, 1);
	host_set(&e, HOST_F_root_count, 0);
	host_set(&e, HOST_F_unsync, 1);
	host_set(&e, HOST_F_direct, 0);
	host_set(&e, HOST_F_access, 5);
	host_set(&e, HOST_F_quadrant, 2);
	host_set(&e, HOST_F_gpte_bytes, 4);
	begin();
	feed(&e);
	e.role_unreliable = true;
	feed(&e);
	j = done();
	says(j, "sp_pages",
	     "[{\"access\":\"-ux\",\"direct\":false,\"gfn\":\"0xe00\",\"gpte_bytes\":4,\"level\":1,"
	     "\"new\":true,\"quadrant\":2,\"role_reliable\":true,\"root_count\":0,\"unsync\":true},"
	     "{\"access\":null,\"direct\":null,\"gfn\":\"0xe00\",\"gpte_bytes\":null,\"level\":1,"
	     "\"new\":true,\"quadrant\":null,\"role_reliable\":false,\"root_count\":0,"
	     "\"unsync\":true}]");
	json_decref(j);
}

/* ---- rings, windows ---- */

static void ring(uint64_t us, int64_t tid, enum host_event_id id, uint64_t vcpu, uint64_t used,
		 uint64_t ret)
{
	struct host_event e = at(us, tid, 0, id);

	host_set(&e, HOST_F_ring, vcpu);
	host_set(&e, HOST_F_used, used);
	if (id == HOST_kvm_dirty_ring_push)
		host_set(&e, HOST_F_ret, ret);
	feed(&e);
}

static void test_rings(void)
{
	json_t *j;

	begin();
	enter(1, 10, 0, 3);
	ring(2, 10, HOST_kvm_dirty_ring_push, 3, 7, 0);
	ring(3, 10, HOST_kvm_dirty_ring_push, 3, 8, 1);
	ring(4, 99, HOST_kvm_dirty_ring_push, 1, 2, 0); /* a push by somebody else */
	plain(5, 10, 0, HOST_kvm_dirty_ring_exit);	/* the vCPU by its thread */
	plain(6, 10, 0, HOST_kvm_msr);
	userspace(7, 10, 31, "0x1f");
	ring(9, 50, HOST_kvm_dirty_ring_reset, 3, 0, 0);
	ring(10, 50, HOST_kvm_dirty_ring_reset, 3, 0, 0);
	plain(17, 10, 0, HOST_kvm_fpu); /* 10 us */
	userspace(20, 10, 8, "KVM_EXIT_SHUTDOWN");
	plain(30, 10, 0, HOST_kvm_fpu); /* no stall */
	plain(40, 10, 0, HOST_kvm_dirty_ring_exit);
	userspace(41, 10, 31, "0x1f"); /* and for ever */
	j = done();
	says(j, "dirty_rings",
	     "[{\"exits\":0,\"max_used\":2,\"pushes\":1,\"reset_tids\":[],\"resets\":0,"
	     "\"soft_full\":0,\"stall_ns\":null,\"vcpu\":1},"
	     "{\"exits\":2,\"max_used\":8,\"pushes\":2,\"reset_tids\":[50],\"resets\":2,"
	     "\"soft_full\":1,\"stall_ns\":10000,\"vcpu\":3}]");
	says(j, "userspace_exits", "{\"31\":2,\"8\":1}");
	says(j, "verdict", "\"dirty-ring stall\"");
	json_decref(j);
}

static void test_userspace_words(void)
{
	json_t *j;

	begin();
	userspace(1, 10, 4, "restart");
	userspace(900, 10, 14, "error");
	userspace(2000, 10, (uint64_t)-14, "error"); /* with its sign already */
	userspace(9000, 10, 6, "KVM_EXIT_MMIO");
	j = done();
	says(j, "userspace_exits", "{\"-14\":2,\"-4\":1,\"6\":1}");
	says(j, "verdict", "null");
	json_decref(j);
}

static void test_ple(void)
{
	struct host_event e = at(1, 10, 0, HOST_kvm_ple_window);
	json_t *j;

	begin();
	host_set(&e, HOST_F_vcpu, 3);
	host_set(&e, HOST_F_old, 4096);
	host_set(&e, HOST_F_new, 8192);
	host_set(&e, HOST_F_grow, 1);
	feed(&e);
	e = at(2, 10, 0, HOST_kvm_ple_window_update);
	host_set(&e, HOST_F_old, 4096);
	host_set(&e, HOST_F_new, 4096);
	host_set(&e, HOST_F_grow, 0); /* as printed, whatever the numbers */
	feed(&e);
	j = done();
	says(j, "ple",
	     "[{\"direction\":\"grow\",\"new\":8192,\"old\":4096,\"vcpu\":3},"
	     "{\"direction\":\"shrink\",\"new\":4096,\"old\":4096,\"vcpu\":3}]");
	json_decref(j);
}

/* ---- verdicts ---- */

#define S 1000000ull /* in us */

static void test_progress_stall(void)
{
	static const struct {
		uint64_t first, second, apart;
		const char *exit, *verdict;
	} cases[] = {
		{0x5000, 0x6000, S + 1, "EPT_VIOLATION", "\"progress stall\""},
		{0x5000, 0x6000, S, "EPT_VIOLATION", "null"},		/* not more than a second */
		{0x5000, 0x7000000000, 5 * S, "EPT_VIOLATION", "null"}, /* another range */
		{0x5000, 0x6000, 5 * S, "HLT", "null"}, /* the guest had nothing to do */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *j;

		begin();
		fault(1, 10, cases[i].first, 6);
		leave(2, 10, 0, cases[i].exit, 0, 0);
		fault(2 + cases[i].apart, 10, cases[i].second, 6);
		j = done();
		says(j, "verdict", cases[i].verdict);
		json_decref(j);
	}
	/* no hole: other records of the thread come between */
	begin();
	fault(1, 10, 0x5000, 6);
	plain(S, 10, 0, HOST_kvm_msr);
	fault(2 * S, 10, 0x6000, 6);
	json_t *j = done();

	says(j, "verdict", "null");
	json_decref(j);
}

static void test_storm(void)
{
	static const struct {
		uint64_t apart;
		int n;
		const char *verdict;
	} cases[] = {
		{9, 10, "\"exit storm\""}, /* 10 in 81 us */
		{11, 12, "null"},	   /* 12 in 121 us: 99,174 a second */
		{1, 2, "null"},		   /* two are no rate */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *j;

		begin();
		for (int k = 0; k < cases[i].n; k++)
			userspace(5 + k * cases[i].apart, 10, 2, "KVM_EXIT_IO");
		j = done();
		says(j, "verdict", cases[i].verdict);
		json_decref(j);
	}
}

/* All that holds at once, then without the weightiest. */
static void test_order(void)
{
	static const char *const verdicts[] = {"\"dirty-ring stall\"", "\"no-progress loop\"",
					       "\"progress stall\"",   "\"too lossy\"",
					       "\"exit storm\"",       "\"no usable events\""};

	for (int from = 0; from < 6; from++) {
		json_t *j;

		begin();
		if (from <= 0)
			plain(1, 10, 0, HOST_kvm_dirty_ring_exit);
		for (int k = 0; from <= 1 && k < 3; k++)
			fault(2 + k, 10, 0x5000, 6);
		if (from <= 2) {
			fault(10, 10, 0x5000, 6);
			fault(2 * S, 10, 0x6000, 6);
		}
		if (from <= 3)
			loss(0, 1000, false);
		for (int k = 0; from <= 4 && k < 4; k++)
			userspace((from <= 2 ? 2 * S : 20) + (unsigned)k, 10, 2, "KVM_EXIT_IO");
		if (from == 5)
			plain(1, 10, 0, HOST_kvm_msr);
		j = done();
		says(j, "verdict", verdicts[from]);
		json_decref(j);
	}
}

static json_t *verdict_of_tables(enum host_kind kind)
{
	result.sections[0] = kind;
	return done();
}

static void test_converges(void)
{
	struct precopy_round rounds[] = {{.est_downtime_ms = 100}, {.est_downtime_ms = 300}};
	static const char *const verdicts[] = {"null", "\"converges\"", "\"does not converge\""};

	for (int i = 0; i < 3; i++) {
		json_t *j;

		begin();
		tables.round = rounds;
		tables.n_rounds = 2;
		given = (struct facts_given){i > 0, i == 1 ? 300 : 299};
		j = verdict_of_tables(HOST_KIND_PRECOPY);
		says(j, "verdict", verdicts[i]);
		says(j, "given",
		     i == 0   ? "{}"
		     : i == 1 ? "{\"downtime_goal_ms\":300}"
			      : "{\"downtime_goal_ms\":299}");
		says(j, "events", "null");
		given.has_downtime = false;
		json_decref(j);
	}
}

static void test_runs(void)
{
	uint64_t long_list[] = {10, 20, 900}, short_list[] = {11, 18}, slow_list[] = {50, 50};
	static const char *const verdicts[] = {"\"faster\"", "\"slower\"", "\"mixed result\"",
					       "null"};

	for (int i = 0; i < 4; i++) {
		/* the third iteration is not in both */
		struct dirty_log_run runs[2] = {
			{.dirty_ns = long_list, .n_dirty = 3, .disable_ns = {100, true}},
			{.dirty_ns = short_list, .n_dirty = 2, .disable_ns = {100, true}},
		};
		json_t *j;

		if (i == 1 || i == 2)
			runs[1].dirty_ns = slow_list;
		if (i == 2)
			runs[1].disable_ns.value = 99;
		if (i == 3)
			runs[1].n_dirty = 0; /* nothing is in both but what is equal */
		begin();
		tables.run = runs;
		tables.n_runs = 2;
		j = verdict_of_tables(HOST_KIND_DIRTY_LOG_PERF);
		says(j, "verdict", verdicts[i]);
		json_decref(j);
	}
}

static void test_table_storm(void)
{
	struct kvm_stat_row row = {.name = "kvm_userspace_exit", .rate = {100001, true}};
	struct kvm_stat_table table = {.row = &row, .n_rows = 1};
	json_t *j;

	begin();
	tables.kvm_stat = &table;
	tables.n_kvm_stat = 1;
	j = verdict_of_tables(HOST_KIND_KVM_STAT);
	says(j, "verdict", "\"exit storm\"");
	json_decref(j);
	row.rate.value = 100000;
	begin();
	tables.kvm_stat = &table;
	tables.n_kvm_stat = 1;
	j = verdict_of_tables(HOST_KIND_KVM_STAT);
	says(j, "verdict", "null");
	json_decref(j);
}

static void test_decimals(void)
{
	struct precopy_round round = {.iter = 1,
				      .bw_mib_s = {221055, 2, true},
				      .transfer_s = {371, 2, true},
				      .elapsed_s = {-5, 3, true}};
	json_t *j, *r;

	begin();
	tables.round = &round;
	tables.n_rounds = 1;
	j = verdict_of_tables(HOST_KIND_PRECOPY);
	r = json_array_get(json_object_get(j, "rounds"), 0);
	CU_ASSERT_EQUAL(json_real_value(json_object_get(r, "bw_mib_s")), 2210.55);
	CU_ASSERT_EQUAL(json_real_value(json_object_get(r, "transfer_s")), 3.71);
	CU_ASSERT_EQUAL(json_real_value(json_object_get(r, "elapsed_s")), -0.005);
	json_decref(j);
}

/* ---- bounds ---- */

static void test_bounded(void)
{
	json_t *j, *list;

	begin();
	for (int i = 0; i < FACTS_MAX_LIST + 10; i++) {
		leave(10 * i, 10, 0, "EPT_VIOLATION", 0, 0);
		fault(10 * i, 10, (uint64_t)i << 12, 6);
		enter(10 * i + 3, 10, 0, 0);
	}
	j = done();
	list = json_object_get(j, "page_faults");
	CU_ASSERT_EQUAL(json_array_size(list), FACTS_MAX_LIST);
	says(j, "page_faults_truncated", "true");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "pair_ns")), FACTS_MAX_LIST);
	says(j, "pair_ns_truncated", "true");
	says(j, "pairs", "10010");
	says(j, "events", "{\"kvm_entry\":10010,\"kvm_exit\":10010,\"kvm_page_fault\":10010}");
	json_decref(j);
}

static void test_percentiles(void)
{
	json_t *j, *p;

	begin();
	for (int i = 1; i <= 1000; i++) {
		leave(10000 * i, 10, 0, "HLT", 0, 0);
		enter(10000 * i + i, 10, 0, 0); /* 1 to 1000 us */
	}
	j = done();
	p = json_object_get(j, "pair_latency");
	/* within 1.6 % */
	CU_ASSERT_DOUBLE_EQUAL(json_integer_value(json_object_get(p, "p50_ns")), 501000., 8016.);
	CU_ASSERT_DOUBLE_EQUAL(json_integer_value(json_object_get(p, "p90_ns")), 901000., 14416.);
	CU_ASSERT_DOUBLE_EQUAL(json_integer_value(json_object_get(p, "p99_ns")), 991000., 15856.);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(p, "max_ns")), 1000000);
	p = json_object_get(json_object_get(j, "exit_times"), "HLT");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(p, "total_ns")), 500500000);
	json_decref(j);
}

int main(void)
{
	CU_TestInfo tests[] = {
		{"pairs", test_pairs},
		{"pairs over losses", test_pairs_over_losses},
		{"the header's loss", test_header_loss},
		{"lost chunks", test_chunks},
		{"columns that are not there", test_no_columns},
		{"heads", test_heads},
		{"faults", test_faults},
		{"loops", test_loops},
		{"no loop where an spte changed", test_no_loop_with_change},
		{"mmio", test_mmio},
		{"misconfig", test_misconfig},
		{"runs of sptes", test_spte_run},
		{"shadow pages", test_sp_pages},
		{"dirty rings", test_rings},
		{"userspace exits by word", test_userspace_words},
		{"ple windows", test_ple},
		{"progress stall", test_progress_stall},
		{"exit storm", test_storm},
		{"the order of verdicts", test_order},
		{"converges", test_converges},
		{"two runs", test_runs},
		{"exit storm in a table", test_table_storm},
		{"decimals", test_decimals},
		{"bounded lists", test_bounded},
		{"percentiles", test_percentiles},
		CU_TEST_INFO_NULL,
	};

	return test_main("facts", tests);
}
