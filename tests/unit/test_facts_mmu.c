// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/facts_scene.h"

/* The rules behind `kvmsim info` of a host's trace: devices, sptes, rings. Expected
 * values follow from the rules' words (docs/host-facts.md), worked out on paper. */

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

#define NO_RET UINT64_MAX /* mainline's push prints none */

static void ring(uint64_t us, int64_t tid, enum host_event_id id, uint64_t vcpu, uint64_t used,
		 uint64_t ret)
{
	struct host_event e = at(us, tid, 0, id);

	host_set(&e, HOST_F_ring, vcpu);
	host_set(&e, HOST_F_used, used);
	if (id == HOST_kvm_dirty_ring_push && ret != NO_RET)
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
	ring(4, 98, HOST_kvm_dirty_ring_push, 5, 960, NO_RET);
	ring(4, 98, HOST_kvm_dirty_ring_reset, 6, 0, 0); /* no push, none that was full */
	plain(5, 10, 0, HOST_kvm_dirty_ring_exit);	 /* the vCPU by its thread */
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
	     "\"soft_full\":1,\"stall_ns\":10000,\"vcpu\":3},"
	     "{\"exits\":0,\"max_used\":960,\"pushes\":1,\"reset_tids\":[],\"resets\":0,"
	     "\"soft_full\":null,\"stall_ns\":null,\"vcpu\":5},"
	     "{\"exits\":0,\"max_used\":0,\"pushes\":0,\"reset_tids\":[98],\"resets\":1,"
	     "\"soft_full\":0,\"stall_ns\":null,\"vcpu\":6}]");
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

int main(void)
{
	CU_TestInfo tests[] = {
		{"mmio", test_mmio},
		{"misconfig", test_misconfig},
		{"runs of sptes", test_spte_run},
		{"shadow pages", test_sp_pages},
		{"dirty rings", test_rings},
		{"userspace exits by word", test_userspace_words},
		{"ple windows", test_ple},
		CU_TEST_INFO_NULL,
	};

	return test_main("facts_mmu", tests);
}
