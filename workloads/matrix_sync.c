// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>

#include "workloads/matrix_sync.h"

/*
 * Cases F_sync, shadow pages out of step: more of them than the kernel finds at a time, below
 * tables that are zapped, under several roots, with several shadow pages of one table, linked anew,
 * used as a directory.
 */

void mx_guest_ops(struct mx_guest *g, uint32_t v)
{
	mx_ops(g->m, g->m->vcpus[v]);
}

void mx_rd(struct mx_guest *g, uint64_t address)
{
	mx_op(g->m, MX_OP_READ4, address, 0);
}

void mx_w8(struct mx_guest *g, uint64_t address, uint64_t value)
{
	mx_op(g->m, MX_OP_WRITE8, address, value);
}

void mx_inv(struct mx_guest *g, uint64_t address)
{
	mx_op(g->m, MX_OP_INVLPG, address, 0);
}

void mx_cr3(struct mx_guest *g, uint64_t root)
{
	mx_op(g->m, MX_OP_MOV_CR3, 0, root);
}

void mx_go(struct mx_guest *g, const char *phase)
{
	if (!g->err)
		g->err = mx_ops_run(g->m, phase);
	mx_guest_ops(g, 0);
}

void mx_go_k(struct mx_guest *g, const char *base, int k)
{
	if (!g->err)
		g->err = mx_ops_run_k(g->m, base, k);
	mx_guest_ops(g, 0);
}

struct mx_guest mx_guest_begin(struct matrix *m)
{
	struct mx_guest g = {.m = m};

	mx_key(m, MATRIX_NO_PATTERN, MATRIX_NONE, MATRIX_NONE);
	mx_guest_ops(&g, 0);
	return g;
}

struct mx_guest mx_guest_warm(struct matrix *m)
{
	struct mx_guest g = {.m = m, .err = mx_f_warm(m)};

	mx_guest_ops(&g, 0);
	return g;
}

int mx_sync_vm(struct matrix *m, uint64_t slot_pages, int (*prepare)(struct matrix *m),
	       int (*body)(struct matrix *m))
{
	if (m->o->slot_pages < slot_pages)
		return kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED,
				  "case %s: a slot of less than %llu pages", m->o->test_case,
				  (unsigned long long)slot_pages);
	m->prepare = prepare;
	return mx_f_vm(m, MATRIX_PTE_4K, body);
}

/* ---- twenty tables ---- */

#define TABLES 20ull

static void each_table(struct mx_guest *g, void (*fn)(struct mx_guest *g, uint64_t address))
{
	for (uint64_t i = 0; i < TABLES; i++)
		fn(g, T(i * 512));
}

static int batch_body(struct matrix *m)
{
	struct mx_guest g = mx_guest_begin(m);

	each_table(&g, mx_rd);
	mx_go(&g, "warm_read20");
	for (int k = 1; k <= 3; k++) {
		for (uint64_t i = 0; i < TABLES; i++)
			mx_w8(&g, MX_PT_TEST(i), T(i * 512 + k) | MX_LEAF_4K);
		mx_go_k(&g, "write20", k);
		if (k == 2) {
			each_table(&g, mx_inv);
			mx_go_k(&g, "inv20", k);
		}
		mx_cr3(&g, MX_PML4);
		mx_go_k(&g, "cr3", k);
		each_table(&g, mx_rd);
		mx_go_k(&g, "read20", k);
	}
	return g.err;
}

int mx_case_f_sync_batch(struct matrix *m)
{
	return mx_sync_vm(m, TABLES * 512, NULL, batch_body);
}

/* ---- below a directory that floods ---- */

int mx_second_gib(struct matrix *m)
{
	kvm_write_guest_u64(m->kvm, MX_PD(1), PT_OTHER | MX_TABLE_ENTRY);
	for (uint64_t i = 0; i < 512; i++)
		kvm_write_guest_u64(m->kvm, PT_OTHER + i * 8, T(i) | MX_LEAF_4K);
	return 0;
}

struct mx_guest mx_warm_second_gib(struct matrix *m)
{
	struct mx_guest g = mx_guest_warm(m);

	mx_rd(&g, SECOND_GIB);
	mx_go(&g, "warm_read_G0");
	return g;
}

static int above_body(struct matrix *m)
{
	static const char *const phases[] = {"write_pd1", "write_pd2", "write_pd3"};
	struct mx_guest g = mx_warm_second_gib(m);

	for (int k = 1; k <= 3; k++) {
		mx_w8(&g, PT_OTHER, T(8 + k) | MX_LEAF_4K);
		mx_w8(&g, PT_OTHER + 8, T(9 + k) | MX_LEAF_4K);
		mx_go_k(&g, "write_pt", k);
		for (unsigned j = 0; j < 3; j++) {
			mx_w8(&g, MX_PD(1) + (9 + j) * 8, 0);
			mx_go_k(&g, phases[j], k);
		}
		mx_rd(&g, SECOND_GIB);
		mx_rd(&g, SECOND_GIB + 4096);
		mx_go_k(&g, "read", k);
	}
	mx_cr3(&g, MX_PML4);
	mx_rd(&g, SECOND_GIB);
	mx_go(&g, "cr3_read");
	return g.err;
}

int mx_case_f_sync_above(struct matrix *m)
{
	return mx_sync_vm(m, 512, mx_second_gib, above_body);
}

/* ---- a table of 4K entries is a directory, too ---- */

#define THIRD_GIB 0x80000000ull
#define PDPTE2	  (MX_PDPT + 2 * 8)

/* The page that will be a table has contents to be kept. */
static int table_of_test_page(struct matrix *m)
{
	kvm_write_guest_u64(m->kvm, T(20), 1);
	return 0;
}

static void directory_link(struct mx_guest *g)
{
	mx_w8(g, T(20), T(21) | MX_LEAF_4K);
	mx_w8(g, T(20) + 8, T(22) | MX_LEAF_4K);
	mx_go(g, "fill");
	mx_w8(g, PTE(0), T(20) | MX_LEAF_4K);
	mx_w8(g, PTE(1), T(20) | MX_LEAF_4K);
	mx_go(g, "write_pt");
	mx_w8(g, PDPTE2, MX_PT_TEST(0) | MX_TABLE_ENTRY);
	mx_rd(g, THIRD_GIB);
	mx_go(g, "link_read");
	mx_rd(g, THIRD_GIB + 4096);
	mx_rd(g, THIRD_GIB + (512 << 12));
	mx_rd(g, T(0));
	mx_rd(g, T(1));
	mx_go(g, "read_both");
}

static int directory_body(struct matrix *m)
{
	struct mx_guest g = mx_guest_warm(m);

	directory_link(&g);
	for (int k = 1; k <= 4; k++) {
		mx_w8(&g, PTE(k + 1), T(20 + k) | MX_LEAF_4K);
		mx_inv(&g, T(k + 1));
		mx_rd(&g, T(k + 1));
		mx_go_k(&g, "write_pt_inv_read", k);
	}
	mx_cr3(&g, MX_PML4);
	mx_rd(&g, T(0));
	mx_rd(&g, THIRD_GIB);
	mx_go(&g, "cr3_read");
	mx_w8(&g, PDPTE2, MX_PD(2) | MX_TABLE_ENTRY);
	mx_go(&g, "unlink");
	for (int k = 1; k <= 4; k++) {
		mx_w8(&g, PTE(k + 1), T(30 + k) | MX_LEAF_4K);
		mx_go_k(&g, "write_pt", k);
	}
	mx_rd(&g, T(0));
	mx_rd(&g, T(2));
	mx_go(&g, "read");
	return g.err;
}

int mx_case_f_sync_directory(struct matrix *m)
{
	return mx_sync_vm(m, 512, table_of_test_page, directory_body);
}

/* ---- two roots ---- */

static void copy_page(struct matrix *m, uint64_t to, uint64_t from)
{
	for (uint64_t i = 0; i < 4096; i += 8)
		kvm_write_guest_u64(m->kvm, to + i, kvm_read_guest_u64(m->kvm, from + i));
}

static int other_root(struct matrix *m)
{
	copy_page(m, OTHER_ROOT, MX_PML4);
	return 0;
}

int mx_other_directories(struct matrix *m)
{
	other_root(m);
	kvm_write_guest_u64(m->kvm, OTHER_ROOT, (OTHER_ROOT + 0x1000) | MX_TABLE_ENTRY);
	copy_page(m, OTHER_ROOT + 0x1000, MX_PDPT);
	kvm_write_guest_u64(m->kvm, OTHER_ROOT + 0x1000, (OTHER_ROOT + 0x2000) | MX_TABLE_ENTRY);
	copy_page(m, OTHER_ROOT + 0x2000, MX_PD(0));
	return 0;
}

static int roots_body(struct matrix *m)
{
	struct mx_guest g = mx_guest_warm(m);

	mx_cr3(&g, OTHER_ROOT);
	for (uint64_t i = 0; i < 8; i++)
		mx_rd(&g, T(i));
	mx_cr3(&g, MX_PML4);
	mx_rd(&g, T(0));
	mx_go(&g, "both");
	for (int k = 1; k <= 3; k++) {
		mx_w8(&g, PTE(0), T(16 + k) | MX_LEAF_4K);
		mx_go_k(&g, "write", k);
		mx_inv(&g, T(0));
		mx_rd(&g, T(0));
		mx_go_k(&g, "inv_read", k);
		mx_cr3(&g, OTHER_ROOT);
		mx_rd(&g, T(0));
		mx_go_k(&g, "other_read", k);
		mx_w8(&g, PTE(1), T(24 + k) | MX_LEAF_4K);
		mx_rd(&g, T(1));
		mx_cr3(&g, MX_PML4);
		mx_rd(&g, T(1));
		mx_go_k(&g, "write_back_read", k);
		mx_cr3(&g, MX_PML4);
		mx_rd(&g, T(1));
		mx_go_k(&g, "same_read", k);
	}
	return g.err;
}

int mx_case_f_sync_roots(struct matrix *m)
{
	return mx_sync_vm(m, 512, other_root, roots_body);
}

int mx_case_f_sync_roots_mid(struct matrix *m)
{
	return mx_sync_vm(m, 512, mx_other_directories, roots_body);
}

/* ---- two shadow pages of one table: with and without W from above ---- */

#define ALIAS	  0x19000000ull
#define PDE_ALIAS PDE(200)

static int alias(struct matrix *m)
{
	kvm_write_guest_u64(m->kvm, PDE_ALIAS, MX_PT_TEST(0) | (MX_TABLE_ENTRY & ~MX_WRITABLE));
	return 0;
}

static int alias_body(struct matrix *m)
{
	struct mx_guest g = mx_guest_warm(m);

	for (uint64_t i = 0; i < 8; i++)
		mx_rd(&g, ALIAS + i * 4096);
	mx_go(&g, "warm_alias");
	for (int k = 1; k <= 3; k++) {
		mx_w8(&g, PTE(0), T(16 + k) | MX_LEAF_4K);
		mx_go_k(&g, "write", k);
		mx_inv(&g, T(0));
		mx_rd(&g, T(0));
		mx_rd(&g, ALIAS);
		mx_go_k(&g, "inv_read_both", k);
		mx_inv(&g, ALIAS);
		mx_rd(&g, ALIAS);
		mx_go_k(&g, "inv_alias_read", k);
		mx_cr3(&g, MX_PML4);
		mx_rd(&g, T(0));
		mx_rd(&g, ALIAS);
		mx_go_k(&g, "cr3_read_both", k);
	}
	mx_w8(&g, PTE(1), T(40) | MX_LEAF_4K);
	mx_w8(&g, PDE_ALIAS, MX_PT_TEST(0) | MX_TABLE_ENTRY);
	mx_rd(&g, ALIAS);
	mx_rd(&g, ALIAS + 4096);
	mx_op(m, MX_OP_WRITE4, ALIAS, 1);
	mx_go(&g, "alias_rw");
	mx_cr3(&g, MX_PML4);
	mx_rd(&g, T(1));
	mx_rd(&g, ALIAS + 4096);
	mx_go(&g, "cr3_read");
	return g.err;
}

int mx_case_f_sync_alias(struct matrix *m)
{
	return mx_sync_vm(m, 512, alias, alias_body);
}

/* ---- unlinked, out of step, and linked again ---- */

static int two_tables(struct matrix *m)
{
	for (uint64_t i = 0; i < 512; i++)
		kvm_write_guest_u64(m->kvm, PT_OTHER + i * 8, T(512 + (i ^ 1)) | MX_LEAF_4K);
	return 0;
}

static int relink_body(struct matrix *m)
{
	struct mx_guest g = mx_guest_warm(m);

	mx_rd(&g, T(512));
	mx_go(&g, "warm_read_T512");
	for (int k = 1; k <= 4; k++) {
		mx_w8(&g, MX_PT_TEST(1), T(528 + k) | MX_LEAF_4K);
		mx_go_k(&g, "write_pt", k);
		mx_w8(&g, PDE(129), PT_OTHER | MX_TABLE_ENTRY);
		mx_rd(&g, T(512));
		mx_go_k(&g, "to_alt_read", k);
		mx_w8(&g, MX_PT_TEST(1) + 8, T(536 + k) | MX_LEAF_4K);
		mx_w8(&g, PT_OTHER, T(544 + k) | MX_LEAF_4K);
		mx_go_k(&g, "write_both", k);
		mx_w8(&g, PDE(129), MX_PT_TEST(1) | MX_TABLE_ENTRY);
		mx_rd(&g, T(512));
		mx_rd(&g, T(513));
		mx_go_k(&g, "back_read", k);
	}
	mx_cr3(&g, MX_PML4);
	mx_rd(&g, T(512));
	mx_go(&g, "cr3_read");
	return g.err;
}

int mx_case_f_sync_relink(struct matrix *m)
{
	return mx_sync_vm(m, 1024, two_tables, relink_body);
}
