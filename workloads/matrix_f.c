// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/matrix_interp.h"

/*
 * Cases F, the guest's own page tables change: those of level 1. PTEs are written with and without
 * INVLPG, with accesses of several widths, back and forth between read-only and writable, by two
 * vCPUs, with A and D clear, and in a slot whose dirty pages are logged.
 */

#define T(i)	MX_TEST_PAGE(i)
#define LEAF	MX_LEAF_4K
#define PTE(i)	(MX_PT_TEST(0) + (i)*8ull)
#define RO_LEAF 0x25ull /* P US A */

int mx_f_warm(struct matrix *m)
{
	mx_key(m, MATRIX_NO_PATTERN, MATRIX_NONE, MATRIX_NONE);
	mx_ops(m, m->vcpu);
	for (uint64_t i = 0; i < 8; i++)
		mx_op(m, MX_OP_READ4, T(i), 0);
	return mx_ops_run(m, "warm_read8");
}

int mx_f_vm(struct matrix *m, enum matrix_pte pte, int (*body)(struct matrix *m))
{
	if (m->o->pte != pte)
		return kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED,
				  "case %s: its guest's PTEs are %s", m->o->test_case,
				  pte == MATRIX_PTE_2M ? "2m" : "4k");
	return mx_vm(m, 0, body);
}

/* ---- one PTE remapped again and again ---- */

static int remap(struct matrix *m, bool invalidate)
{
	int err = mx_f_warm(m);

	for (int k = 1; k <= 8 && !err; k++) {
		mx_ops(m, m->vcpu);
		mx_op(m, MX_OP_WRITE8, PTE(0), T(16 + k) | LEAF);
		if (invalidate)
			mx_op(m, MX_OP_INVLPG, T(0), 0);
		mx_op(m, MX_OP_READ4, T(0), 0);
		err = mx_ops_run_k(m, invalidate ? "w8pte_inv_read" : "w8pte_read", k);
	}
	mx_key(m, MATRIX_NO_PATTERN, MATRIX_NONE, MATRIX_NONE);
	mx_ops(m, m->vcpu);
	mx_op(m, MX_OP_MOV_CR3, 0, MX_PML4);
	mx_op(m, MX_OP_READ4, T(0), 0);
	err = err ? err : mx_ops_run(m, "cr3_reload_read");
	mx_ops(m, m->vcpu);
	mx_op(m, MX_OP_WRITE8, PTE(0), T(30) | LEAF);
	mx_op(m, MX_OP_READ4, T(0), 0);
	return err ? err : mx_ops_run(m, "w8pte_read_after_cr3");
}

static int remap_body(struct matrix *m)
{
	return remap(m, false);
}

static int remap_inv_body(struct matrix *m)
{
	return remap(m, true);
}

int mx_case_f_remap(struct matrix *m)
{
	return mx_f_vm(m, MATRIX_PTE_4K, remap_body);
}

int mx_case_f_remap_inv(struct matrix *m)
{
	return mx_f_vm(m, MATRIX_PTE_4K, remap_inv_body);
}

/* ---- several PTEs of one table, m->turn of them ---- */

static int remap8(struct matrix *m, bool invalidate)
{
	int err = mx_f_warm(m), k = m->turn;

	mx_ops(m, m->vcpu);
	for (int j = 0; j < k; j++) {
		mx_op(m, MX_OP_WRITE8, PTE(j), T(16 + j) | LEAF);
		if (invalidate)
			mx_op(m, MX_OP_INVLPG, T(j), 0);
	}
	err = err ? err : mx_ops_run_k(m, invalidate ? "write_k_ptes_inv_each" : "write_k_ptes", k);
	for (int pass = 0; pass < 2 && !err; pass++) {
		mx_ops(m, m->vcpu);
		if (pass)
			mx_op(m, MX_OP_MOV_CR3, 0, MX_PML4);
		for (uint64_t j = 0; j < 8; j++)
			mx_op(m, MX_OP_READ4, T(j), 0);
		err = mx_ops_run_k(m, pass ? "cr3_read8" : "read8", k);
	}
	return err;
}

static int remap8_body(struct matrix *m)
{
	return remap8(m, false);
}

static int remap8_inv_body(struct matrix *m)
{
	return remap8(m, true);
}

static int eight_vms(struct matrix *m, int (*body)(struct matrix *m))
{
	int err = 0;

	for (m->turn = 1; m->turn <= 8 && !err; m->turn++)
		err = mx_f_vm(m, MATRIX_PTE_4K, body);
	return err;
}

int mx_case_f_remap8(struct matrix *m)
{
	return eight_vms(m, remap8_body);
}

int mx_case_f_remap8_inv(struct matrix *m)
{
	return eight_vms(m, remap8_inv_body);
}

/* ---- the same PTE, by accesses of several widths ---- */

const struct mx_width mx_widths[4] = {{MX_OP_WRITE1, MATRIX_W1},
				      {MX_OP_WRITE4, MATRIX_W4},
				      {MX_OP_WRITE8, MATRIX_W8},
				      {MX_OP_XCHG8, MATRIX_XCHG8}};

static int ptebytes_body(struct matrix *m)
{
	const struct mx_width *w = &mx_widths[m->turn];
	int err = mx_f_warm(m);

	for (int k = 1; k <= 4 && !err; k++) {
		mx_key(m, w->pattern, MATRIX_NONE, k);
		mx_ops(m, m->vcpu);
		mx_op(m, w->op, PTE(0), T(0) | LEAF);
		mx_op(m, MX_OP_INVLPG, T(0), 0);
		mx_op(m, MX_OP_READ4, T(0), 0);
		err = mx_ops_run_k(m, "write_same_pte_inv_read", k);
	}
	return err;
}

int mx_case_f_ptebytes(struct matrix *m)
{
	int err = 0;

	for (m->turn = 0; m->turn < 4 && !err; m->turn++)
		err = mx_f_vm(m, MATRIX_PTE_4K, ptebytes_body);
	return err;
}

/* ---- read-only and writable ---- */

static int rorw_body(struct matrix *m)
{
	int err = mx_f_warm(m);

	for (int k = 1; k <= 4 && !err; k++) {
		mx_ops(m, m->vcpu);
		mx_op(m, MX_OP_WRITE8, PTE(0), T(0) | RO_LEAF);
		mx_op(m, MX_OP_INVLPG, T(0), 0);
		mx_op(m, MX_OP_READ4, T(0), 0);
		err = mx_ops_run_k(m, "make_ro_inv_read", k);
		mx_ops(m, m->vcpu);
		mx_op(m, MX_OP_WRITE8, PTE(0), T(0) | LEAF);
		mx_op(m, MX_OP_WRITE4, T(0), (uint64_t)k);
		err = err ? err : mx_ops_run_k(m, "make_rw_noinv_write", k);
	}
	return err;
}

int mx_case_f_rorw(struct matrix *m)
{
	return mx_f_vm(m, MATRIX_PTE_4K, rorw_body);
}

/* ---- A and D ---- */

static int ad_loops(struct matrix *m)
{
	int err;

	mx_key(m, MATRIX_SEQUENTIAL, 64, MATRIX_NONE);
	err = mx_loop(m, "read64", MX_CODE_READ, 64);
	err = err ? err : mx_loop(m, "write64", MX_CODE_WRITE, 64);
	err = err ? err : mx_loop(m, "write64_again", MX_CODE_WRITE, 64);
	m->first_page = 64;
	err = err ? err : mx_loop(m, "write64_fresh", MX_CODE_WRITE, 64);
	m->first_page = 0;
	return err;
}

static int ad_4k_body(struct matrix *m)
{
	int err = ad_loops(m);

	mx_key(m, MATRIX_SEQUENTIAL, 8, MATRIX_NONE);
	mx_ops(m, m->vcpu);
	for (uint64_t j = 0; j < 8; j++) {
		mx_op(m, MX_OP_WRITE8, PTE(j), T(j) | (LEAF & ~MX_ACCESSED_DIRTY));
		mx_op(m, MX_OP_INVLPG, T(j), 0);
	}
	err = err ? err : mx_ops_run(m, "clear_AD_8_inv");
	mx_ops(m, m->vcpu);
	for (uint64_t j = 0; j < 8; j++)
		mx_op(m, MX_OP_READ4, T(j), 0);
	err = err ? err : mx_ops_run(m, "read8_after_clear");
	mx_ops(m, m->vcpu);
	for (uint64_t j = 0; j < 8; j++)
		mx_op(m, MX_OP_WRITE4, T(j), 1);
	return err ? err : mx_ops_run(m, "write8_after_clear");
}

int mx_case_f_ad_4k(struct matrix *m)
{
	m->clear_ad = true;
	return mx_f_vm(m, MATRIX_PTE_4K, ad_4k_body);
}

int mx_case_f_ad_2m(struct matrix *m)
{
	m->clear_ad = true;
	return mx_f_vm(m, MATRIX_PTE_2M, ad_loops);
}

/* ---- two vCPUs on one set of tables, one after the other ---- */

static int read64(struct matrix *m, unsigned v, const char *phase)
{
	mx_ops(m, m->vcpus[v]);
	for (uint64_t i = 0; i < 64; i++)
		mx_op(m, MX_OP_READ4, T(i), 0);
	return mx_ops_run(m, phase);
}

static int two_vcpus_turn(struct matrix *m, int k)
{
	int err;

	mx_ops(m, m->vcpus[0]);
	mx_op(m, MX_OP_WRITE8, PTE(0), T(64 + k) | LEAF);
	mx_op(m, MX_OP_INVLPG, T(0), 0);
	mx_op(m, MX_OP_READ4, T(0), 0);
	err = mx_ops_run_k(m, "v0_w8pte_inv_read", k);
	mx_ops(m, m->vcpus[1]);
	mx_op(m, MX_OP_READ4, T(0), 0);
	err = err ? err : mx_ops_run_k(m, "v1_read", k);
	mx_ops(m, m->vcpus[1]);
	mx_op(m, MX_OP_INVLPG, T(0), 0);
	mx_op(m, MX_OP_READ4, T(0), 0);
	err = err ? err : mx_ops_run_k(m, "v1_inv_read", k);
	mx_ops(m, m->vcpus[1]);
	mx_op(m, MX_OP_MOV_CR3, 0, MX_PML4);
	mx_op(m, MX_OP_READ4, T(0), 0);
	err = err ? err : mx_ops_run_k(m, "v1_cr3_read", k);
	mx_ops(m, m->vcpus[1]);
	mx_op(m, MX_OP_WRITE8, PTE(1), T(80 + k) | LEAF);
	mx_op(m, MX_OP_READ4, T(1), 0);
	err = err ? err : mx_ops_run_k(m, "v1_w8pte1_read", k);
	mx_ops(m, m->vcpus[0]);
	mx_op(m, MX_OP_READ4, T(1), 0);
	mx_op(m, MX_OP_MOV_CR3, 0, MX_PML4);
	mx_op(m, MX_OP_READ4, T(1), 0);
	return err ? err : mx_ops_run_k(m, "v0_read_cr3_read", k);
}

static int two_vcpus_body(struct matrix *m)
{
	int err;

	mx_key(m, MATRIX_NO_PATTERN, MATRIX_NONE, MATRIX_NONE);
	err = read64(m, 0, "v0_read64");
	err = err ? err : read64(m, 1, "v1_read64");
	for (int k = 1; k <= 3 && !err; k++)
		err = two_vcpus_turn(m, k);
	return err;
}

int mx_case_f_2vcpu(struct matrix *m)
{
	m->n_vcpus = MX_VCPUS;
	return mx_f_vm(m, MATRIX_PTE_4K, two_vcpus_body);
}

/* ---- the tables' own slot is logged ---- */

static int wpt_body(struct matrix *m)
{
	int err = mx_f_warm(m);

	err = err ? err : mx_log_slot0(m, "slot0_log_on");
	for (int k = 1; k <= 3 && !err; k++) {
		mx_ops(m, m->vcpu);
		mx_op(m, MX_OP_WRITE8, PTE(0), T(16 + k) | LEAF);
		mx_op(m, MX_OP_INVLPG, T(0), 0);
		mx_op(m, MX_OP_READ4, T(0), 0);
		err = mx_ops_run_k(m, "w8pte_inv_read", k);
		err = err ? err : mx_get_slot0_k(m, "get_log_slot0", k);
	}
	return err;
}

int mx_case_f_wpt(struct matrix *m)
{
	return mx_f_vm(m, MATRIX_PTE_4K, wpt_body);
}
