// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/paging.h"

#include <string.h>

#include "model/mmu/trace.h"

/* A 4-byte entry of a 4M page has the address's bits 32 to 35 in its own bits 13 to 16 (PSE-36). */
#define PSE36_SHIFT 13
#define PSE36_MASK  (0xfull << PSE36_SHIFT)

static uint64_t bits(int first, int last)
{
	return (2ull << last) - (1ull << first);
}

static bool access_faults(const struct paging_mode *m, unsigned access, uint64_t code)
{
	bool user = code & PFERR_USER, fetch = code & PFERR_FETCH;

	if ((code & PFERR_WRITE) && !(access & ACC_WRITE) && (user || m->wp))
		return true;
	if (fetch && m->nx && !(access & ACC_EXEC))
		return true;
	if (user)
		return !(access & ACC_USER);
	return (access & ACC_USER) && (fetch ? m->smep : m->smap);
}

static void fill_permissions(const struct paging_mode *m, uint8_t permissions[N_PERMISSIONS])
{
	memset(permissions, 0, N_PERMISSIONS);
	for (unsigned i = 0; i < N_PERMISSIONS; i++)
		for (unsigned access = 0; access <= ACC_ALL; access++)
			permissions[i] |= access_faults(m, access, i << 1) << access;
}

static unsigned root_level(const struct cpu_regs *r)
{
	if (!(r->cr0 & CR0_PG))
		return 0;
	if (r->efer & EFER_LMA)
		return ROOT_LEVEL_4;
	return r->cr4 & CR4_PAE ? PT32E_ROOT_LEVEL : PT32_ROOT_LEVEL;
}

/* Nested tables are the same whatever the guest does; shadow pages have NX always. */
static union kvm_mmu_page_role root_role(const struct paging_mode *m, bool tdp, bool ad)
{
	union kvm_mmu_page_role role = {.level = m->level > PT32E_ROOT_LEVEL ? m->level
									     : PT32E_ROOT_LEVEL,
					.access = ACC_ALL,
					.efer_nx = 1,
					.direct = tdp || !m->level,
					.ad_disabled = !ad};

	if (tdp) {
		role.level = ROOT_LEVEL_4;
		role.cr0_wp = 1;
	} else if (m->level) {
		role.has_4_byte_gpte = m->level == PT32_ROOT_LEVEL;
		role.cr0_wp = m->wp;
		role.smep_andnot_wp = m->smep && !m->wp;
		role.smap_andnot_wp = m->smap && !m->wp;
	}
	return role;
}

void paging_mode_init(struct paging_mode *m, const struct cpu_regs *r, bool tdp, bool ad,
		      unsigned gpa_bits)
{
	struct paging_mode hw = {.wp = true, .nx = true};

	m->level = root_level(r);
	m->wp = r->cr0 & CR0_WP;
	m->nx = r->efer & EFER_NXE;
	m->pse = r->cr4 & CR4_PSE;
	/* In long mode bits 52 to 62 are the guest's own. */
	m->gpa_reserved =
		~((1ull << gpa_bits) - 1) & ((1ull << (m->level == ROOT_LEVEL_4 ? 52 : 63)) - 1);
	/* While the guest does not page its linear addresses are everybody's. */
	m->smep = m->level && (r->cr4 & CR4_SMEP);
	m->smap = m->level && (r->cr4 & CR4_SMAP);
	fill_permissions(m, m->permissions);
	if (!tdp) {
		hw.smep = m->smep;
		hw.smap = m->smap;
	}
	fill_permissions(&hw, m->hw_permissions);
	m->root_role = root_role(m, tdp, ad);
}

gfn_t gpte_gfn(const struct paging_mode *m, uint64_t gpte, int level)
{
	gfn_t gfn = (gpte & PT_ADDR_MASK) >> PAGE_SHIFT;

	if (!gpte_last(m, gpte, level))
		return gfn;
	gfn &= ~(gpte_pages(m, level) - 1);
	if (m->level == PT32_ROOT_LEVEL && level > PG_LEVEL_4K)
		gfn |= (gpte & PSE36_MASK) << (32 - PSE36_SHIFT - PAGE_SHIFT);
	return gfn;
}

unsigned gpte_access(uint64_t gpte)
{
	return (gpte & PT_NX ? 0 : ACC_EXEC) | (gpte & PT_WRITABLE ? ACC_WRITE : 0) |
	       (gpte & PT_USER ? ACC_USER : 0);
}

bool gpte_reserved(const struct paging_mode *m, uint64_t gpte, int level)
{
	uint64_t reserved = m->nx ? 0 : PT_NX;
	bool large = level > PG_LEVEL_4K && gpte_last(m, gpte, level);

	if (m->level == PT32_ROOT_LEVEL)
		return large && (gpte & bits(17, 21));
	reserved |= m->gpa_reserved;
	if (level == ROOT_LEVEL_4)
		reserved |= PT_PAGE_SIZE;
	else if (large)
		reserved |= bits(13, PAGE_SHIFT + 9 * (level - 1) - 1);
	return gpte & reserved;
}

bool pdpte_reserved(const struct paging_mode *m, uint64_t pdpte)
{
	return (pdpte & PT_PRESENT) &&
	       (pdpte & (bits(1, 2) | bits(5, 8) | m->gpa_reserved | PT_NX));
}
