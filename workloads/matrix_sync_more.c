// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>

#include "workloads/matrix_sync.h"

/*
 * Cases F_sync, shadow pages out of step beside what else happens to a VM: slots that come and go,
 * too few shadow pages, logging, MMU notifiers, a second vCPU; and what the guest's entries may be.
 */

/* One phase; without pages the slot goes. */
static void set_slot2(struct mx_guest *g, const char *base, int k, uint64_t npages)
{
	const struct kvm_memory_region r = {
		.slot = 2, .base_gfn = 0x20000, .npages = npages, .host_populated = true};
	char phase[40];

	if (g->err)
		return;
	snprintf(phase, sizeof(phase), "%s_k%d", base, k);
	mx_key(g->m, MATRIX_NO_PATTERN, MATRIX_NONE, k);
	mx_begin(g->m, phase);
	g->err = kvm_set_user_memory_region(g->m->t, g->m->kvm, &r);
	g->err = g->err ? g->err : mx_end(g->m, NULL, 0);
}

static int slots_body(struct matrix *m)
{
	struct mx_guest g = mx_guest_warm(m);

	for (int k = 1; k <= 2; k++) {
		mx_w8(&g, PTE(0), T(16 + k) | MX_LEAF_4K);
		mx_go_k(&g, "write", k);
		set_slot2(&g, "slot2_add", k, 256);
		mx_inv(&g, T(0));
		mx_rd(&g, T(0));
		mx_go_k(&g, "inv_read", k);
		set_slot2(&g, "slot2_del", k, 0);
		mx_rd(&g, T(0));
		mx_go_k(&g, "read", k);
	}
	return g.err;
}

int mx_case_f_sync_slots(struct matrix *m)
{
	return mx_sync_vm(m, 512, NULL, slots_body);
}

/* ---- as many tables as there may be shadow pages ---- */

#define TABLES 62ull

static int few_mmu_pages(struct matrix *m)
{
	return kvm_set_nr_mmu_pages(m->t, m->kvm, 64);
}

static int recycle_body(struct matrix *m)
{
	struct mx_guest g = mx_guest_begin(m);

	for (int k = 1; k <= 3; k++) {
		for (uint64_t i = 0; i < TABLES; i++) {
			mx_rd(&g, T(i * 512));
			mx_w8(&g, MX_PT_TEST(i), T(i * 512 + k) | MX_LEAF_4K);
		}
		mx_go_k(&g, "read_write62", k);
		mx_cr3(&g, MX_PML4);
		mx_go_k(&g, "cr3", k);
		for (uint64_t i = 0; i < TABLES; i++)
			mx_rd(&g, T(i * 512));
		mx_go_k(&g, "read62", k);
	}
	return g.err;
}

int mx_case_f_sync_recycle(struct matrix *m)
{
	return mx_sync_vm(m, TABLES * 512, few_mmu_pages, recycle_body);
}

/* ---- the mapped pages are logged ---- */

static void get(struct mx_guest *g, const char *base, int k)
{
	char phase[40];

	snprintf(phase, sizeof(phase), "%s_k%d", base, k);
	g->err = g->err ? g->err : mx_get(g->m, phase);
}

static int logged_body(struct matrix *m)
{
	struct mx_guest g = mx_guest_warm(m);

	g.err = g.err ? g.err : mx_log(m, "enable_log", true);
	for (int k = 1; k <= 3; k++) {
		mx_w8(&g, PTE(0), T(16 + k) | MX_LEAF_4K);
		mx_w8(&g, PTE(1), T(24 + k) | MX_LEAF_4K);
		mx_inv(&g, T(0));
		mx_go_k(&g, "write_inv", k);
		get(&g, "get", k);
		mx_cr3(&g, MX_PML4);
		mx_go_k(&g, "cr3", k);
		for (uint64_t i = 0; i < 3; i++)
			mx_op(m, MX_OP_WRITE4, T(i), (uint64_t)k);
		mx_go_k(&g, "write3", k);
		get(&g, "get_after", k);
		mx_w8(&g, PTE(2), T(32 + k) | MX_LEAF_4K);
		mx_cr3(&g, MX_PML4);
		mx_rd(&g, T(0));
		mx_rd(&g, T(2));
		mx_go_k(&g, "write_cr3_read", k);
	}
	mx_key(m, MATRIX_NO_PATTERN, MATRIX_NONE, MATRIX_NONE);
	return g.err ? g.err : mx_log(m, "disable_log", false);
}

int mx_case_f_sync_logged(struct matrix *m)
{
	return mx_sync_vm(m, 512, NULL, logged_body);
}

/* ---- what an entry may become ---- */

static int kinds_body(struct matrix *m)
{
	const uint64_t kinds[] = {
		T(8) | MX_LEAF_4K,
		T(1) | (MX_LEAF_4K & ~0x20ull), /* without A, */
		T(1) | (MX_LEAF_4K & ~0x40ull), /* without D, */
		T(1) | (MX_LEAF_4K & ~MX_WRITABLE),
		T(1) | (MX_LEAF_4K & ~MX_USER),
		T(1) | MX_LEAF_4K | MX_NX, /* with a reserved bit: EFER.NXE is 0 */
		0,
		T(160) | MX_LEAF_4K,
		0xd0000000 | MX_LEAF_4K, /* where no slot is */
	};
	const uint64_t was = T(1) | MX_LEAF_4K;
	struct mx_guest g = mx_guest_warm(m);

	for (int k = 1; k <= 9; k++) {
		mx_w8(&g, PTE(1), kinds[k - 1]);
		mx_go_k(&g, "write", k);
		mx_inv(&g, T(1));
		mx_go_k(&g, "inv", k);
		mx_w8(&g, PTE(1), was);
		mx_inv(&g, T(1));
		mx_rd(&g, T(1));
		mx_go_k(&g, "restore_inv_read", k);
		mx_w8(&g, PTE(1), kinds[k - 1]);
		mx_cr3(&g, MX_PML4);
		mx_go_k(&g, "write_cr3", k);
		mx_w8(&g, PTE(1), was);
		mx_rd(&g, T(1));
		mx_go_k(&g, "restore_read", k);
		mx_cr3(&g, MX_PML4);
		mx_rd(&g, T(1));
		mx_go_k(&g, "cr3_read", k);
	}
	return g.err;
}

int mx_case_f_sync_kinds(struct matrix *m)
{
	return mx_sync_vm(m, 512, NULL, kinds_body);
}

/* ---- an entry that maps a device, for a while ---- */

#define DEVICE (0xd0000000ull | MX_LEAF_4K) /* no slot is there */

static int map_device(struct matrix *m)
{
	kvm_write_guest_u64(m->kvm, PTE(1), DEVICE);
	return 0;
}

static void becomes(struct mx_guest *g, const char *base, int k, uint64_t entry, bool invlpg)
{
	mx_w8(g, PTE(1), entry);
	if (invlpg)
		mx_inv(g, T(1));
	else
		mx_cr3(g, MX_PML4);
	mx_rd(g, T(1));
	if (invlpg)
		mx_rd(g, T(1));
	mx_go_k(g, base, k);
}

static void device_comes_and_goes(struct mx_guest *g, int k)
{
	const uint64_t ram = T(9) | MX_LEAF_4K, not_accessed = DEVICE & ~0x20ull;

	mx_w8(g, PTE(1), DEVICE);
	mx_cr3(g, MX_PML4);
	mx_go_k(g, "cr3", k);
	mx_rd(g, T(1));
	mx_go_k(g, "cr3_read", k);
	becomes(g, "moved_cr3_read", k, DEVICE + 4096, false);
	becomes(g, "ro_cr3_read", k, DEVICE & ~MX_WRITABLE, false);
	mx_w8(g, PTE(1), DEVICE);
	mx_op(g->m, MX_OP_WRITE4, T(1), (uint64_t)k);
	mx_go_k(g, "rw_write", k);
	mx_w8(g, PTE(1), ram);
	mx_rd(g, T(1));
	mx_go_k(g, "ram_read", k);
	mx_inv(g, T(1));
	mx_rd(g, T(1));
	mx_go_k(g, "ram_inv_read", k);
	becomes(g, "mmio_inv_read2", k, DEVICE, true);
	mx_inv(g, T(1));
	mx_rd(g, T(1));
	mx_go_k(g, "inv_read", k);
	becomes(g, "ram_cr3_read", k, ram, false);
	becomes(g, "mmio_cr3_read", k, DEVICE, false);
	mx_w8(g, PTE(1), not_accessed);
	mx_cr3(g, MX_PML4);
	mx_go_k(g, "no_a_cr3", k);
	mx_rd(g, T(1));
	mx_go_k(g, "no_a_read", k);
	mx_w8(g, PTE(1), DEVICE);
	mx_rd(g, T(1));
	mx_go_k(g, "map_again_read", k);
}

static int mmio_body(struct matrix *m)
{
	struct mx_guest g = mx_guest_begin(m);

	mx_rd(&g, T(0));
	mx_go(&g, "warm_read");
	mx_rd(&g, T(1));
	mx_go(&g, "mmio_read");
	mx_w8(&g, PTE(1), 0);
	mx_go(&g, "unmap");
	mx_rd(&g, T(2));
	mx_go(&g, "read_beside");
	mx_w8(&g, PTE(1), DEVICE);
	mx_rd(&g, T(1));
	mx_go(&g, "map_read");
	for (int k = 1; k <= 2; k++)
		device_comes_and_goes(&g, k);
	return g.err;
}

int mx_case_f_sync_mmio(struct matrix *m)
{
	return mx_sync_vm(m, 512, map_device, mmio_body);
}

/* ---- a table that maps itself ---- */

static int selfmap_body(struct matrix *m)
{
	struct mx_guest g = mx_guest_begin(m);

	kvm_write_guest_u64(m->kvm, PTE(5), MX_PT_TEST(0) | MX_LEAF_4K);
	for (uint64_t i = 0; i < 8; i++)
		mx_rd(&g, T(i));
	mx_go(&g, "warm_read8");
	for (int k = 1; k <= 4; k++) {
		mx_w8(&g, T(5) + 1 * 8, T(16 + k) | MX_LEAF_4K);
		mx_go_k(&g, "write_self", k);
		mx_inv(&g, T(1));
		mx_rd(&g, T(1));
		mx_go_k(&g, "inv_read", k);
		mx_w8(&g, T(5) + 6 * 8, T(20 + k) | MX_LEAF_4K);
		mx_inv(&g, T(5));
		mx_rd(&g, T(5));
		mx_rd(&g, T(6));
		mx_go_k(&g, "write_inv_self", k);
		mx_cr3(&g, MX_PML4);
		mx_rd(&g, T(1));
		mx_rd(&g, T(6));
		mx_go_k(&g, "cr3_read", k);
	}
	return g.err;
}

int mx_case_f_sync_selfmap(struct matrix *m)
{
	return mx_sync_vm(m, 512, NULL, selfmap_body);
}

/* ---- INC, which no table is written with ---- */

static int inc_body(struct matrix *m)
{
	struct mx_guest g = mx_warm_second_gib(m);

	for (int k = 1; k <= 4; k++) {
		mx_op(m, MX_OP_INC4, MX_PD(1) + 16 * 8, 0);
		mx_go_k(&g, "inc", k);
		mx_rd(&g, SECOND_GIB);
		mx_go_k(&g, "read", k);
	}
	for (uint64_t k = 1; k <= 4; k++) {
		mx_op(m, MX_OP_INC4, MX_PD(1) + (16 + k) * 8, 0);
		mx_inv(&g, T(0));
		mx_rd(&g, SECOND_GIB);
		mx_go_k(&g, "inc_next_inv_read", (int)k);
	}
	for (int k = 1; k <= 3; k++) {
		mx_op(m, MX_OP_INC4, PT_OTHER + 8, 0);
		mx_inv(&g, SECOND_GIB + 4096);
		mx_go_k(&g, "inc_pt_inv", k);
	}
	for (int k = 1; k <= 4; k++) {
		mx_op(m, MX_OP_INC4, MX_PDPT + 8 * 8, 0);
		mx_rd(&g, SECOND_GIB);
		mx_go_k(&g, "inc_pdpt_read", k);
	}
	for (int k = 1; k <= 3; k++) {
		mx_op(m, MX_OP_INC4, MX_PD(1) + 40 * 8, 0);
		mx_inv(&g, T(0));
		mx_rd(&g, SECOND_GIB);
		mx_go_k(&g, "inc_same_inv_read", k);
	}
	return g.err;
}

int mx_case_f_sync_inc(struct matrix *m)
{
	return mx_sync_vm(m, 512, mx_second_gib, inc_body);
}

/* ---- two vCPUs, a root each ---- */

static void two_vcpus_turn(struct mx_guest *g, int k)
{
	mx_w8(g, PTE(0), T(16 + k) | MX_LEAF_4K);
	mx_go_k(g, "v0_write", k);
	mx_guest_ops(g, 1);
	mx_rd(g, T(0));
	mx_inv(g, T(0));
	mx_rd(g, T(0));
	mx_go_k(g, "v1_inv_read", k);
	mx_guest_ops(g, 1);
	mx_cr3(g, OTHER_ROOT);
	mx_rd(g, T(0));
	mx_go_k(g, "v1_cr3_read", k);
	mx_rd(g, T(0));
	mx_w8(g, PTE(1), T(24 + k) | MX_LEAF_4K);
	mx_inv(g, T(1));
	mx_rd(g, T(1));
	mx_go_k(g, "v0_write1_inv_read", k);
	mx_guest_ops(g, 1);
	mx_w8(g, PTE(2), T(32 + k) | MX_LEAF_4K);
	mx_cr3(g, MX_PML4);
	for (uint64_t i = 0; i < 3; i++)
		mx_rd(g, T(i));
	mx_cr3(g, OTHER_ROOT);
	mx_rd(g, T(2));
	mx_go_k(g, "v1_other_root", k);
	mx_cr3(g, MX_PML4);
	mx_rd(g, T(2));
	mx_go_k(g, "v0_cr3_read", k);
}

static int two_vcpus_body(struct matrix *m)
{
	struct mx_guest g = mx_guest_begin(m);

	for (uint64_t i = 0; i < 8; i++)
		mx_rd(&g, T(i));
	mx_go(&g, "v0_read8");
	mx_guest_ops(&g, 1);
	mx_cr3(&g, OTHER_ROOT);
	for (uint64_t i = 0; i < 8; i++)
		mx_rd(&g, T(i));
	mx_go(&g, "v1_cr3_read8");
	for (int k = 1; k <= 3; k++)
		two_vcpus_turn(&g, k);
	return g.err;
}

int mx_case_f_sync_2vcpu(struct matrix *m)
{
	m->n_vcpus = MX_VCPUS;
	return mx_sync_vm(m, 512, mx_other_directories, two_vcpus_body);
}

/* ---- the VMM gives mapped pages back ---- */

static void dontneed(struct mx_guest *g, int k)
{
	char phase[40];

	if (g->err)
		return;
	snprintf(phase, sizeof(phase), "dontneed1_k%d", k);
	mx_begin(g->m, phase);
	g->err = host_madvise_dontneed(g->m->t, g->m->kvm, MX_SLOT, 16 + (uint64_t)k, 1);
	g->err = g->err ? g->err : mx_end(g->m, NULL, 0);
}

static int notifier_body(struct matrix *m)
{
	struct mx_guest g = mx_guest_warm(m);

	for (int k = 1; k <= 3; k++) {
		mx_w8(&g, PTE(0), T(16 + k) | MX_LEAF_4K);
		mx_inv(&g, T(0));
		mx_rd(&g, T(0));
		mx_go_k(&g, "write_inv_read", k);
		dontneed(&g, k);
		mx_rd(&g, T(0));
		mx_go_k(&g, "read_zero", k);
		mx_w8(&g, PTE(1), T(24) | MX_LEAF_4K);
		mx_cr3(&g, MX_PML4);
		mx_rd(&g, T(0));
		mx_rd(&g, T(1));
		mx_go_k(&g, "write1_cr3_read", k);
		mx_op(m, MX_OP_WRITE4, T(0), (uint64_t)k);
		mx_go_k(&g, "write_cow", k);
	}
	return g.err;
}

int mx_case_f_sync_notifier(struct matrix *m)
{
	m->host_anonymous = true;
	return mx_sync_vm(m, 512, NULL, notifier_body);
}
