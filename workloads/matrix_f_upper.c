// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "workloads/matrix_interp.h"

/*
 * Cases F, the guest's own page tables change: those above level 1, several roots, and more shadow
 * pages than KVM may have.
 */

#define T(i)	   MX_TEST_PAGE(i)
#define TABLE	   MX_TABLE_ENTRY
#define PDE(i)	   (MX_PD(0) + (i)*8ull)
#define PDE_CHUNK1 PDE(129)   /* maps T(512) and those that follow */
#define PT_OTHER   0x68000ull /* a table of level 1 besides */
#define FLOODED	   MX_PD(1)   /* is on the walk of none of the addresses that write it */
#define FLOODED_VA 0x40000000ull
#define ROOTS	   0x70000ull /* the further roots' tables, five pages each */

static void no_key(struct matrix *m)
{
	mx_key(m, MATRIX_NO_PATTERN, MATRIX_NONE, MATRIX_NONE);
}

static int read_one(struct matrix *m, const char *phase, uint64_t address)
{
	mx_ops(m, m->vcpu);
	mx_op(m, MX_OP_READ4, address, 0);
	return mx_ops_run(m, phase);
}

/* ---- a PDE goes back and forth between two tables ---- */

static int two_tables(struct matrix *m)
{
	for (uint64_t i = 0; i < 512; i++)
		kvm_write_guest_u64(m->kvm, PT_OTHER + i * 8, T(512 + (i ^ 1)) | MX_LEAF_4K);
	return 0;
}

static int pde(struct matrix *m, bool invalidate, bool read)
{
	int err = mx_f_warm(m);

	err = err ? err : read_one(m, "warm_read_T512", T(512));
	for (int k = 1; k <= 8 && !err; k++) {
		mx_ops(m, m->vcpu);
		mx_op(m, MX_OP_WRITE8, PDE_CHUNK1, (k & 1 ? PT_OTHER : MX_PT_TEST(1)) | TABLE);
		if (invalidate)
			mx_op(m, MX_OP_INVLPG, T(512), 0);
		if (read)
			mx_op(m, MX_OP_READ4, T(512), 0);
		err = mx_ops_run_k(m, read ? "w8pde_read" : "w8pde", k);
	}
	no_key(m);
	mx_ops(m, m->vcpu);
	mx_op(m, MX_OP_MOV_CR3, 0, MX_PML4);
	mx_op(m, MX_OP_READ4, T(512), 0);
	mx_op(m, MX_OP_READ4, T(0), 0);
	return err ? err : mx_ops_run(m, "cr3_read");
}

static int pde_body(struct matrix *m)
{
	return pde(m, false, false);
}

static int pde_read_body(struct matrix *m)
{
	return pde(m, false, true);
}

static int pde_inv_read_body(struct matrix *m)
{
	return pde(m, true, true);
}

/* T(512) is there, and a table for it. */
static int second_chunk(struct matrix *m, int (*prepare)(struct matrix *m),
			int (*body)(struct matrix *m))
{
	if (m->o->slot_pages < 1024)
		return kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED,
				  "case %s: a slot of less than 1024 pages", m->o->test_case);
	m->prepare = prepare;
	return mx_f_vm(m, MATRIX_PTE_4K, body);
}

int mx_case_f_pde(struct matrix *m)
{
	return second_chunk(m, two_tables, pde_body);
}

int mx_case_f_pde_read(struct matrix *m)
{
	return second_chunk(m, two_tables, pde_read_body);
}

int mx_case_f_pde_inv_read(struct matrix *m)
{
	return second_chunk(m, two_tables, pde_inv_read_body);
}

/* The PDE is written as it is, by accesses of several widths. */
static int pde1_body(struct matrix *m)
{
	const struct mx_width *w = &mx_widths[m->turn];
	int err = mx_f_warm(m);

	mx_key(m, w->pattern, MATRIX_NONE, MATRIX_NONE);
	err = err ? err : read_one(m, "warm_read_T512", T(512));
	for (int k = 1; k <= 5 && !err; k++) {
		mx_ops(m, m->vcpu);
		mx_op(m, w->op, PDE_CHUNK1, MX_PT_TEST(1) | TABLE);
		mx_op(m, MX_OP_READ4, T(512), 0);
		err = mx_ops_run_k(m, "write_same_pde_read", k);
	}
	return err;
}

int mx_case_f_pde1(struct matrix *m)
{
	int err = 0;

	for (m->turn = 0; m->turn < 4 && !err; m->turn++) {
		if (mx_widths[m->turn].op != MX_OP_WRITE8)
			err = second_chunk(m, NULL, pde1_body);
	}
	return err;
}

/* ---- an entry of the root that maps nothing ---- */

static int pml4_body(struct matrix *m)
{
	int err = mx_f_warm(m);

	for (int k = 1; k <= 8 && !err; k++) {
		mx_ops(m, m->vcpu);
		mx_op(m, MX_OP_WRITE8, MX_PML4 + 8 * 8, 0);
		err = mx_ops_run_k(m, "w8_unused_pml4e", k);
	}
	no_key(m);
	return err ? err : read_one(m, "read_T0", T(0));
}

int mx_case_f_pml4(struct matrix *m)
{
	return mx_f_vm(m, MATRIX_PTE_4K, pml4_body);
}

/* ---- write flooding ---- */

enum flood_read { READ_NEVER, READ_EACH, READ_EVERY_OTHER };

static const struct flood {
	const char *name; /* after "F_flood_" */
	enum mx_op op;
	bool used;	 /* the entry that maps FLOODED_VA, with the value that it has; or others */
	unsigned offset; /* in the entry */
	enum flood_read read;
} floods[] = {
	{"unused", MX_OP_WRITE8, false, 0, READ_NEVER},
	{"unused_read", MX_OP_WRITE8, false, 0, READ_EACH},
	{"used", MX_OP_WRITE8, true, 0, READ_NEVER},
	{"used_read", MX_OP_WRITE8, true, 0, READ_EACH},
	{"2then1", MX_OP_WRITE8, false, 0, READ_EVERY_OTHER},
	{"w1_off0", MX_OP_WRITE1, false, 0, READ_NEVER},
	{"w1_off1", MX_OP_WRITE1, false, 1, READ_NEVER},
	{"w4_off4", MX_OP_WRITE4, false, 4, READ_NEVER},
	{"xchg8", MX_OP_XCHG8, false, 0, READ_NEVER},
	{"inc", MX_OP_INC4, false, 0, READ_NEVER},
};

static const struct flood *find_flood(const char *test_case)
{
	const char *name = test_case + strlen("F_flood_");
	const struct flood *f = floods;

	while (strcmp(f->name, name))
		f++;
	return f;
}

static int flood_tables(struct matrix *m)
{
	kvm_write_guest_u64(m->kvm, FLOODED, PT_OTHER | TABLE);
	for (uint64_t i = 0; i < 512; i++)
		kvm_write_guest_u64(m->kvm, PT_OTHER + i * 8, T(i) | MX_LEAF_4K);
	return 0;
}

static int flood_body(struct matrix *m)
{
	const struct flood *f = find_flood(m->o->test_case);
	int err = mx_f_warm(m);

	err = err ? err : read_one(m, "warm_read_G0", FLOODED_VA);
	for (int k = 1; k <= 8 && !err; k++) {
		uint64_t entry = f->used ? FLOODED : FLOODED + (8 + (unsigned)k) * 8;

		mx_ops(m, m->vcpu);
		mx_op(m, f->op, entry + f->offset, f->used ? PT_OTHER | TABLE : 0);
		if (f->read == READ_EACH || (f->read == READ_EVERY_OTHER && !(k & 1)))
			mx_op(m, MX_OP_READ4, FLOODED_VA, 0);
		err = mx_ops_run_k(m, "write", k);
	}
	no_key(m);
	err = err ? err : read_one(m, "read_G0", FLOODED_VA);
	for (int k = 1; k <= 4 && !err; k++) {
		mx_ops(m, m->vcpu);
		mx_op(m, MX_OP_WRITE8, FLOODED + (32 + (unsigned)k) * 8, 0);
		err = mx_ops_run_k(m, "write_after", k);
	}
	return err;
}

int mx_case_f_flood(struct matrix *m)
{
	m->prepare = flood_tables;
	return mx_f_vm(m, MATRIX_PTE_4K, flood_body);
}

/* ---- several roots: what follows the name "F_cr3_" is their number, and whether tables below the
 * root are shared or separate ---- */

static unsigned n_roots(const struct matrix *m)
{
	return (unsigned)(m->o->test_case[strlen("F_cr3_")] - '0');
}

static uint64_t root(const struct matrix *m, unsigned i)
{
	unsigned k = i % n_roots(m);

	return k ? ROOTS + k * 0x5000ull : MX_PML4;
}

static void copy_table(struct matrix *m, uint64_t to, uint64_t from)
{
	for (uint64_t i = 0; i < 4096; i += 8)
		kvm_write_guest_u64(m->kvm, to + i, kvm_read_guest_u64(m->kvm, from + i));
}

static int roots(struct matrix *m)
{
	bool separate = strstr(m->o->test_case, "sep");

	for (unsigned k = 1; k < n_roots(m); k++) {
		uint64_t base = root(m, k);

		copy_table(m, base, MX_PML4);
		if (!separate)
			continue;
		kvm_write_guest_u64(m->kvm, base, (base + 0x1000) | TABLE);
		copy_table(m, base + 0x1000, MX_PDPT);
		kvm_write_guest_u64(m->kvm, base + 0x1000, (base + 0x2000) | TABLE);
		copy_table(m, base + 0x2000, MX_PD(0));
		kvm_write_guest_u64(m->kvm, base + 0x2000, (base + 0x3000) | TABLE);
		copy_table(m, base + 0x3000, MX_PT_LOW);
		kvm_write_guest_u64(m->kvm, base + 0x2000 + 128 * 8ull, (base + 0x4000) | TABLE);
		copy_table(m, base + 0x4000, MX_PT_TEST(0));
	}
	return 0;
}

static int switches(struct matrix *m, const char *phase, unsigned from, unsigned to)
{
	mx_ops(m, m->vcpu);
	for (unsigned i = from; i <= to; i++) {
		mx_op(m, MX_OP_MOV_CR3, 0, root(m, i));
		mx_op(m, MX_OP_READ4, T(0), 0);
	}
	return mx_ops_run(m, phase);
}

static int cr3_body(struct matrix *m)
{
	unsigned n = n_roots(m);
	int err = mx_f_warm(m);

	err = err ? err : switches(m, "first_cycle", 1, n);
	err = err ? err : switches(m, "second_cycle", 1, n);
	err = err ? err : switches(m, "50_switches_read", 1, 50);
	mx_ops(m, m->vcpu);
	for (unsigned i = 51; i <= 100; i++) {
		mx_op(m, MX_OP_MOV_CR3, 0, root(m, i));
		mx_op(m, MX_OP_WRITE8, MX_PT_TEST(0) + 8, T(16 + i % 8) | MX_LEAF_4K);
		mx_op(m, MX_OP_READ4, T(1), 0);
	}
	return err ? err : mx_ops_run(m, "50_switches_w8pte_read");
}

int mx_case_f_cr3(struct matrix *m)
{
	m->prepare = roots;
	return mx_f_vm(m, MATRIX_PTE_4K, cr3_body);
}

/* ---- more shadow pages than there may be: one page in each 2 MiB ---- */

static int few_mmu_pages(struct matrix *m)
{
	return kvm_set_nr_mmu_pages(m->t, m->kvm, 64);
}

static int recycle_body(struct matrix *m)
{
	static const uint32_t n[] = {32, 48, 56, 64, 128};
	uint32_t pages[128];
	int err = 0;

	for (uint32_t i = 0; i < 128; i++)
		pages[i] = i * 512;
	for (size_t q = 0; q < sizeof(n) / sizeof(*n); q++) {
		for (int round = 1; round <= 3 && !err; round++) {
			mx_key(m, MATRIX_EVEN, n[q], round);
			err = mx_loop_list(m, "read_1_per_2m", MX_CODE_READ, pages, n[q]);
		}
	}
	return err;
}

int mx_case_f_recycle(struct matrix *m)
{
	if (m->o->slot_pages < 128 * 512)
		return kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED,
				  "case %s: a slot of less than 65536 pages", m->o->test_case);
	m->prepare = few_mmu_pages;
	return mx_f_vm(m, MATRIX_PTE_2M, recycle_body);
}
