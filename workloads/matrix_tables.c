// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/matrix_scene.h"

/* The guest's page tables in each of its modes. */

enum guest_paging_mode mx_guest(const struct matrix *m)
{
	if (m->o->guest == MATRIX_GUEST_PAE)
		return GUEST_PAE;
	if (m->o->guest == MATRIX_GUEST_32BIT)
		return GUEST_32BIT;
	return m->o->mmu == MMU_SHADOW_FLAT32 ? GUEST_FLAT32 : GUEST_LONG64;
}

unsigned mx_entry_bytes(const struct matrix *m)
{
	return mx_guest(m) == GUEST_32BIT ? 4 : 8;
}

static uint64_t table_entries(const struct matrix *m)
{
	return 4096 / mx_entry_bytes(m);
}

uint64_t mx_large_bytes(const struct matrix *m)
{
	return table_entries(m) << 12;
}

uint64_t mx_root(const struct matrix *m, unsigned root)
{
	if (root)
		return MX_ROOT1;
	return mx_guest(m) == GUEST_PAE ? MX_PDPT : MX_PML4;
}

/* In its directory of the first root. */
static uint64_t pde_gpa(const struct matrix *m, uint64_t gva)
{
	if (mx_guest(m) == GUEST_32BIT)
		return MX_PML4 + gva / mx_large_bytes(m) * 4;
	return MX_PD(gva >> 30) + (gva >> 21 & 511) * 8;
}

uint64_t mx_pde_gpa(const struct matrix *m, uint64_t page)
{
	return pde_gpa(m, MX_TEST_PAGE(page));
}

uint64_t mx_pte_gpa(const struct matrix *m, uint64_t page)
{
	uint64_t n = table_entries(m);

	return MX_PT_TEST(page / n) + page % n * mx_entry_bytes(m);
}

static void put(struct matrix *m, uint64_t gpa, uint64_t value)
{
	uint64_t word = gpa & ~7ull, other;

	if (m->clear_ad)
		value &= ~MX_ACCESSED_DIRTY;
	if (mx_entry_bytes(m) == 4) {
		other = kvm_read_guest_u64(m->kvm, word);
		value = gpa & 4 ? (other & UINT32_MAX) | value << 32
				: (other & ~(uint64_t)UINT32_MAX) | value;
	}
	kvm_write_guest_u64(m->kvm, word, value);
}

/* The leaf that maps @gpa. */
static uint64_t leaf(const struct matrix *m, uint64_t gpa)
{
	bool test = gpa >= MX_TEST;
	uint64_t pte = gpa | MX_LEAF_4K;

	if (test ? m->ptes.kernel_all : m->ptes.kernel || m->ptes.kernel_all)
		pte &= ~MX_USER;
	if (test && m->ptes.ro)
		pte &= ~MX_WRITABLE;
	if (test && m->ptes.nx)
		pte |= MX_NX;
	if (test && m->ptes.clean)
		pte &= ~MX_ACCESSED_DIRTY;
	return pte;
}

static void fill_table(struct matrix *m, uint64_t table, uint64_t gva, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		put(m, table + i * mx_entry_bytes(m), leaf(m, gva + (i << 12)));
	put(m, pde_gpa(m, gva), table | MX_TABLE_ENTRY);
}

static void tables_large(struct matrix *m)
{
	for (uint64_t gva = 0; gva < 1ull << 32; gva += mx_large_bytes(m))
		put(m, pde_gpa(m, gva), leaf(m, gva) | MX_PAGE_SIZE);
}

static void tables_4k(struct matrix *m)
{
	uint64_t n = table_entries(m);

	fill_table(m, MX_PT_LOW, 0, MX_SLOT0_PAGES);
	for (uint64_t c = 0; c * n < m->o->slot_pages; c++)
		fill_table(m, MX_PT_TEST(c), MX_TEST + (c * n << 12), n);
	if (mx_guest(m) == GUEST_LONG64)
		fill_table(m, MX_PT_MMIO, MX_MMIO, n);
}

static void roots(struct matrix *m)
{
	/* All bits that a PDPTE of PAE has are reserved but P. */
	uint64_t flags = mx_guest(m) == GUEST_PAE ? MX_PRESENT : MX_TABLE_ENTRY;

	if (mx_guest(m) == GUEST_32BIT)
		return;
	for (uint64_t g = 0; g < 4; g++)
		put(m, MX_PDPT + g * 8, MX_PD(g) | flags);
	if (mx_guest(m) == GUEST_LONG64)
		put(m, MX_PML4, MX_PDPT | MX_TABLE_ENTRY);
}

static void copy_page(struct matrix *m, uint64_t to, uint64_t from)
{
	for (uint64_t i = 0; i < 4096; i += 8)
		kvm_write_guest_u64(m->kvm, to + i, kvm_read_guest_u64(m->kvm, from + i));
}

/* PAE's has directories of its own, since those are what its roots are. */
static void second_root(struct matrix *m)
{
	if (mx_guest(m) != GUEST_PAE) {
		copy_page(m, MX_ROOT1, MX_PML4);
		return;
	}
	for (uint64_t g = 0; g < 4; g++) {
		uint64_t directory = MX_ROOT1 + (1 + g) * 4096;

		copy_page(m, directory, MX_PD(g));
		put(m, MX_ROOT1 + g * 8, directory | MX_PRESENT);
	}
}

void mx_page_tables(struct matrix *m)
{
	if (m->o->pte == MATRIX_PTE_NONE)
		return;
	roots(m);
	if (m->o->pte == MATRIX_PTE_4K)
		tables_4k(m);
	else
		tables_large(m);
	if (m->two_roots)
		second_root(m);
}
