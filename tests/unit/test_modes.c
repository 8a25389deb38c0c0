// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <string.h>

#include "model/mmu/paging.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

/*
 * Guests that page in other modes than 64-bit: what entries mean, who may use what, and two vCPUs
 * in two modes over the same tables. The rules are the manuals' (SDM volume 3, 4.3 to 4.7). What
 * Linux does with such guests, the recorded cases M tell (tests/golden/test_kernel_recorded.sh).
 */
#define EQ   CU_ASSERT_EQUAL
#define TRUE CU_ASSERT_TRUE

/* ---- entries ---- */

static struct paging_mode mode_of(uint64_t cr0, uint64_t cr4, uint64_t efer)
{
	const struct cpu_regs r = {.cr0 = CR0_PE | cr0, .cr4 = cr4, .efer = efer};
	struct paging_mode m;

	paging_mode_init(&m, &r, false, true, 40);
	return m;
}

static void modes(void)
{
	EQ(mode_of(0, CR4_PAE, 0).level, 0);
	EQ(mode_of(CR0_PG, 0, 0).level, 2);
	EQ(mode_of(CR0_PG, CR4_PAE, 0).level, 3);
	EQ(mode_of(CR0_PG, CR4_PAE, EFER_LME | EFER_LMA).level, 4);
}

static void entries(void)
{
	struct paging_mode pse = mode_of(CR0_PG, CR4_PSE, 0), no_pse = mode_of(CR0_PG, 0, 0);
	struct paging_mode pae = mode_of(CR0_PG, CR4_PAE, 0);
	struct paging_mode nx = mode_of(CR0_PG, CR4_PAE, EFER_NXE);
	struct paging_mode long_mode = mode_of(CR0_PG, CR4_PAE, EFER_LME | EFER_LMA);

	/* 0x12345678: entries 0x48 and 0x345 of 1,024, or 0x91 and 0x145 of 512 */
	EQ(gpte_offset(&pse, 0x12345678, 2), 0x48 * 4);
	EQ(gpte_offset(&pse, 0x12345678, 1), 0x345 * 4);
	EQ(gpte_offset(&pae, 0x12345678, 2), 0x91 * 8);
	EQ(gpte_offset(&pae, 0x12345678, 1), 0x145 * 8);
	/* 4M: bits 31 to 22 of the address; 13 to 16 are its bits 32 to 35. Without PSE a table. */
	EQ(gpte_last(&pse, 0x12400083, 2), true);
	EQ(gpte_last(&no_pse, 0x12400083, 2), false);
	EQ(gpte_gfn(&pse, 0x12400083, 2), 0x12400);
	EQ(gpte_gfn(&pse, 0x12400083 | 5 << 13, 2), 0x512400);
	EQ(gpte_gfn(&no_pse, 0x12345083, 2), 0x12345);
	EQ(gpte_pages(&pse, 2), 1024);
	EQ(gpte_pages(&pae, 2), 512);
	EQ(gpte_gfn(&pae, 0x3456200083ull, 2), 0x3456200);
	/* reserved: 17 to 21 of a 4M page; 13 to 20 of a 2M page; NX without EFER.NXE; 52 to 62 */
	TRUE(gpte_reserved(&pse, 0x12400083 | 1 << 17, 2));
	TRUE(!gpte_reserved(&pse, 0x12400083 | 1 << 16, 2));
	TRUE(!gpte_reserved(&no_pse, 0x12400083 | 1 << 17, 2));
	TRUE(gpte_reserved(&pae, 0x12400083 | 1 << 13, 2));
	TRUE(gpte_reserved(&pae, 1ull << 63 | 0x83, 1));
	TRUE(!gpte_reserved(&nx, 1ull << 63 | 0x83, 1));
	TRUE(gpte_reserved(&nx, 1ull << 52 | 3, 1));
	TRUE(gpte_reserved(&nx, 1ull << 40 | 3, 1));
	TRUE(!gpte_reserved(&nx, 1ull << 39 | 3, 1));
	TRUE(!gpte_reserved(&long_mode, 1ull << 52 | 3, 1));
	TRUE(gpte_reserved(&long_mode, 1ull << 51 | 3, 1));
	TRUE(gpte_reserved(&long_mode, 0x83, 4));
	/* of a PDPTE 1, 2 and 5 to 8, too, where it is present */
	TRUE(pdpte_reserved(&pae, 0x1003) && pdpte_reserved(&pae, 0x1021));
	TRUE(!pdpte_reserved(&pae, 0x1001) && !pdpte_reserved(&pae, 0x1026));
}

/* One bit for each of U W X (4, 2, 1): whether the access faults, written out from the manual. */
static void permissions(void)
{
	static const struct {
		uint64_t cr0, cr4, efer;
		uint64_t need;
		uint8_t faults;
	} rules[] = {
		/* the user needs U, and W or X for what he does */
		{CR0_WP, 0, EFER_NXE, PFERR_USER, 0x0f},
		{CR0_WP, 0, EFER_NXE, PFERR_USER | PFERR_WRITE, 0x3f},
		{CR0_WP, 0, EFER_NXE, PFERR_USER | PFERR_FETCH, 0x5f},
		{0, 0, 0, PFERR_USER | PFERR_WRITE, 0x3f},
		{0, 0, 0, PFERR_USER | PFERR_FETCH, 0x0f},
		/* the supervisor needs W where CR0.WP is set */
		{CR0_WP, 0, EFER_NXE, 0, 0x00},
		{CR0_WP, 0, EFER_NXE, PFERR_WRITE, 0x33},
		{0, 0, EFER_NXE, PFERR_WRITE, 0x00},
		{CR0_WP, 0, EFER_NXE, PFERR_FETCH, 0x55},
		{CR0_WP, 0, 0, PFERR_FETCH, 0x00},
		/* SMEP: no fetch from the user's pages; SMAP: nothing else */
		{CR0_WP, CR4_SMEP, 0, PFERR_FETCH, 0xf0},
		{CR0_WP, CR4_SMEP, EFER_NXE, PFERR_FETCH, 0xf5},
		{CR0_WP, CR4_SMEP, EFER_NXE, 0, 0x00},
		{CR0_WP, CR4_SMAP, EFER_NXE, 0, 0xf0},
		{CR0_WP, CR4_SMAP, EFER_NXE, PFERR_WRITE, 0xf3},
		{0, CR4_SMAP, EFER_NXE, PFERR_WRITE, 0xf0},
		{CR0_WP, CR4_SMAP, EFER_NXE, PFERR_FETCH, 0x55},
		{CR0_WP, CR4_SMAP | CR4_SMEP, EFER_NXE, PFERR_USER, 0x0f},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		struct paging_mode m =
			mode_of(CR0_PG | rules[i].cr0, CR4_PAE | rules[i].cr4, rules[i].efer);

		for (unsigned access = 0; access < 8; access++)
			EQ(permission_fault(m.permissions, access, rules[i].need),
			   rules[i].faults >> access & 1);
	}
}

/* Shadow tables are walked with NX and WP set, whatever the guest has. */
static void shadow_permissions(void)
{
	struct paging_mode m = mode_of(CR0_PG, CR4_PAE | CR4_SMEP, 0);

	TRUE(permission_fault(m.hw_permissions, ACC_EXEC | ACC_USER, PFERR_WRITE));
	TRUE(permission_fault(m.hw_permissions, ACC_WRITE, PFERR_FETCH));
	TRUE(permission_fault(m.hw_permissions, ACC_ALL, PFERR_FETCH));
	TRUE(!permission_fault(m.hw_permissions, ACC_ALL, PFERR_WRITE));
}

/* ---- a guest ---- */

#define PDPT	 0x40000ull
#define PD	 0x41000ull
#define PAE_LOW	 0x42000ull
#define PAE_TEST 0x43000ull
#define DIR	 0x48000ull
#define LOW	 0x49000ull
#define TEST	 0x4a000ull
#define ENTRY	 0x27ull
#define LEAF	 0x67ull
#define PAGES	 64u
#define PAGE(i)	 (SCENE_TEST + (i)*0x1000ull)

static void put4(struct scene *s, uint64_t gpa, uint64_t value)
{
	uint64_t word = kvm_read_guest_u64(s->kvm, gpa & ~7ull);

	word = gpa & 4 ? (word & UINT32_MAX) | value << 32 : (word & ~(uint64_t)UINT32_MAX) | value;
	kvm_write_guest_u64(s->kvm, gpa & ~7ull, word);
}

/* Both sets map slot 0 and the test pages one to one, the latter with @flags. */
static void tables(struct scene *s, uint64_t flags)
{
	kvm_write_guest_u64(s->kvm, PDPT, PD | 1);
	kvm_write_guest_u64(s->kvm, PD, PAE_LOW | ENTRY);
	kvm_write_guest_u64(s->kvm, PD + (SCENE_TEST >> 21) * 8, PAE_TEST | ENTRY);
	put4(s, DIR, LOW | ENTRY);
	put4(s, DIR + (SCENE_TEST >> 22) * 4, TEST | ENTRY);
	for (uint64_t i = 0; i < 512; i++) {
		kvm_write_guest_u64(s->kvm, PAE_LOW + i * 8, i << 12 | LEAF);
		put4(s, LOW + i * 4, i << 12 | LEAF);
	}
	for (uint64_t i = 0; i < PAGES; i++) {
		kvm_write_guest_u64(s->kvm, PAE_TEST + i * 8, PAGE(i) | flags);
		put4(s, TEST + i * 4, PAGE(i) | (flags & UINT32_MAX));
	}
}

static void page(struct kvm_vcpu *v, bool pae, uint64_t cr0, uint64_t cr4, uint64_t efer,
		 unsigned cpl)
{
	const struct cpu_regs r = {.cr0 = CR0_PE | CR0_PG | cr0,
				   .cr4 = (pae ? CR4_PAE : CR4_PSE) | cr4,
				   .efer = efer,
				   .cpl = cpl};

	EQ(vcpu_change_sregs(v, &r), 0);
	vcpu_set_cr3(v, pae ? PDPT : DIR);
	EQ(vcpu_change_sregs(v, &r), 0); /* loads the PDPTEs of this CR3 */
}

/* ---- faults of the guest's own ---- */

static struct {
	bool pae;
	uint64_t flags, cr0, cr4, efer;
	unsigned cpl;
	enum { DO_READ, DO_WRITE, DO_FETCH } access;
	uint64_t address;
	int code; /* -1: none */
} fault;

static int take_fault(struct scene *s, struct task *t)
{
	char code[32];
	uint64_t value;
	int r;

	(void)t;
	tables(s, fault.flags);
	page(s->vcpu[0], fault.pae, fault.cr0, fault.cr4, fault.efer, fault.cpl);
	do {
		r = fault.access == DO_READ    ? vcpu_read(s->vcpu[0], fault.address, 4, &value)
		    : fault.access == DO_WRITE ? vcpu_write(s->vcpu[0], fault.address, 4, 1)
					       : vcpu_fetch(s->vcpu[0], fault.address);
	} while (r == VCPU_RESTART);
	EQ(r, fault.code < 0 ? 0 : KVMSIM_EINVAL);
	snprintf(code, sizeof(code), "code %#x:", (unsigned)fault.code);
	if (fault.code >= 0)
		TRUE(strstr(scene_message, code) != NULL);
	return 0;
}

#define NX (1ull << 63)

static void guest_faults(void)
{
	static const __typeof__(fault) faults[] = {
		{true, LEAF, CR0_WP, 0, 0, 3, DO_WRITE, PAGE(1), -1},
		{true, LEAF & ~2ull, CR0_WP, 0, 0, 0, DO_WRITE, PAGE(1), 0x3},
		{true, LEAF & ~2ull, 0, 0, 0, 0, DO_WRITE, PAGE(1), -1},
		{false, LEAF & ~2ull, 0, 0, 0, 0, DO_WRITE, PAGE(1), -1},
		{false, LEAF & ~2ull, 0, 0, 0, 3, DO_WRITE, PAGE(1), 0x7},
		{true, LEAF & ~4ull, CR0_WP, 0, 0, 3, DO_READ, PAGE(1), 0x5},
		{false, LEAF & ~4ull, CR0_WP, 0, 0, 0, DO_READ, PAGE(1), -1},
		{true, LEAF, CR0_WP, CR4_SMEP, 0, 0, DO_FETCH, PAGE(1), 0x11},
		{true, LEAF & ~4ull, CR0_WP, CR4_SMEP, 0, 0, DO_FETCH, PAGE(1), -1},
		{false, LEAF, CR0_WP, CR4_SMAP, 0, 0, DO_READ, PAGE(1), 0x1},
		{false, LEAF, CR0_WP, CR4_SMAP, 0, 3, DO_READ, PAGE(1), -1},
		{true, LEAF | NX, CR0_WP, 0, EFER_NXE, 0, DO_FETCH, PAGE(1), 0x11},
		{true, LEAF | NX, CR0_WP, 0, EFER_NXE, 0, DO_READ, PAGE(1), -1},
		{true, LEAF | NX, CR0_WP, 0, 0, 0, DO_READ, PAGE(1), 0x9},
		{true, LEAF, CR0_WP, 0, 0, 0, DO_READ, PAGE(PAGES), 0x0},
		{true, LEAF, CR0_WP, 0, 0, 0, DO_READ, 0xc0000000, 0x0}, /* no such PDPTE */
	};

	for (int npt = 0; npt < 3; npt++)
		for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
			const struct scene_opts o = {.paging = npt ? PAGING_TDP : PAGING_SHADOW,
						     .preset = npt == 2 ? "6.1-tdp" : NULL,
						     .slot_pages = PAGES,
						     .check = true};

			fault = faults[i];
			scene_message[0] = '\0';
			EQ(scene(&o, take_fault), 0);
		}
}

/* ---- two modes at once ---- */

static int store(struct kvm_vcpu *v, uint64_t gva, uint64_t value)
{
	int r;

	do {
		r = vcpu_fetch(v, SCENE_CODE);
		r = r ? r : vcpu_write(v, gva, 4, value);
	} while (r == VCPU_RESTART);
	return r;
}

static int load(struct kvm_vcpu *v, uint64_t gva)
{
	uint64_t value;
	int r;

	do {
		r = vcpu_read(v, gva, 4, &value);
	} while (r == VCPU_RESTART);
	return r;
}

/* The second vCPU's tables are the first one's pages, so that each has shadow pages of its own of
 * other kinds for one table, and a store to it concerns both. */
static int two_modes(struct scene *s, struct task *t)
{
	struct kvm_vcpu *a = s->vcpu[0], *b = s->vcpu[1];
	int r = 0;

	vcpu_bind(b, t);
	tables(s, LEAF & ~2ull);
	page(a, false, 0, 0, 0, 0);
	page(b, true, CR0_WP, 0, 0, 0);
	for (uint64_t i = 0; i < PAGES && !r; i++) {
		r = store(a, PAGE(i), i); /* read-only, but CR0.WP=0 */
		r = r ? r : kvm_check(s->kvm);
		r = r ? r : load(b, PAGE(i));
	}
	/* the first one turns to the other tables, with and without CR0.WP and SMEP */
	for (unsigned i = 0; i < 4 && !r; i++) {
		page(a, true, i & 1 ? CR0_WP : 0, i & 2 ? CR4_SMAP : 0, 0, 3);
		r = load(a, PAGE(i));
		r = r ? r : store(b, PAE_TEST + i * 8, PAGE(i) | LEAF);
		r = r ? r : store(b, TEST + i * 4, PAGE(i) | LEAF);
		r = r ? r : vcpu_invlpg(b, PAGE(i));
		r = r ? r : store(b, PAGE(i), i);
		r = r ? r : kvm_check(s->kvm);
	}
	return r;
}

static void vcpus_in_two_modes(void)
{
	for (int npt = 0; npt < 3; npt++) {
		const struct scene_opts o = {.paging = npt ? PAGING_TDP : PAGING_SHADOW,
					     .preset = npt == 2 ? "6.1-tdp" : NULL,
					     .personality = npt ? "intel" : "tcg",
					     .n_vcpus = 2,
					     .slot_pages = PAGES,
					     .check = true};

		EQ(scene(&o, two_modes), 0);
	}
}

/* A device's page that may not be executed, shadowed while EFER.NXE is set. Without NXE its entry
 * is reserved; what is remembered of the device has no say in a fetch. */
static int fetch_from_device(struct scene *s, struct task *t)
{
	const uint64_t gva = 0x100000 + (200 << 12);
	struct kvm_vcpu *v = s->vcpu[0];
	struct cpu_regs regs = vcpu_regs(v);

	(void)t;
	EQ(scene_setup(s), 0);
	kvm_write_guest_u64(s->kvm, 0x20000 + (gva >> 12) * 8, 0xf0000000 | LEAF | 1ull << 63);
	regs.efer |= EFER_NXE;
	EQ(vcpu_change_sregs(v, &regs), 0);
	EQ(scene_read(s, gva), VCPU_USERSPACE);
	EQ(vcpu_complete_mmio(v), 0);
	regs.efer &= ~EFER_NXE;
	EQ(vcpu_change_sregs(v, &regs), 0);
	return vcpu_fetch(v, gva);
}

static void a_fetch_from_a_device(void)
{
	const struct scene_opts o = {
		.pte = SCENE_4K, .slot_pages = PAGES, .personality = "amd", .check = true};

	EQ(scene(&o, fetch_from_device), KVMSIM_EINVAL);
	TRUE(strstr(scene_message, "page fault of the guest's own") != NULL);
}

/* ---- exits ---- */

/* How many exits these cost: CR0 and CR4 as they are, CR4.PGE, CR4.SMEP, CR0.WP, EFER.NXE. */
static uint64_t exits_of[6];

static int count_exits(struct scene *s, struct task *t)
{
	struct kvm_vcpu *v = s->vcpu[0];
	struct cpu_regs r = vcpu_regs(v);
	uint64_t before;
	int err = scene_setup(s);

	(void)t;
	for (int i = 0; i < 6 && !err; i++) {
		err = vcpu_fetch(v, SCENE_CODE);
		err = err == VCPU_RESTART ? vcpu_fetch(v, SCENE_CODE) : err;
		before = scene_stat(s, STAT_exits);
		err = err      ? err
		      : i == 0 ? vcpu_mov_cr0(v, r.cr0)
		      : i == 1 ? vcpu_mov_cr4(v, r.cr4)
		      : i == 2 ? vcpu_mov_cr4(v, r.cr4 | CR4_PGE)
		      : i == 3 ? vcpu_mov_cr4(v, r.cr4 | CR4_PGE | CR4_SMEP)
		      : i == 4 ? vcpu_mov_cr0(v, r.cr0 & ~CR0_WP)
			       : vcpu_wrmsr_efer(v, r.efer | EFER_NXE);
		exits_of[i] = scene_stat(s, STAT_exits) - before;
		if (i == 3) /* the code is the user's */
			err = err ? err : vcpu_mov_cr4(v, r.cr4 | CR4_PGE);
	}
	return err;
}

/* SVM intercepts CR4 whole and of CR0 what changes; VMX what KVM has not left to the guest. */
static void exits(void)
{
	static const struct {
		const char *cpu;
		enum kvm_paging paging;
		uint64_t expected[6];
	} cases[] = {
		{"amd", PAGING_SHADOW, {0, 1, 1, 1, 1, 1}},
		{"amd", PAGING_TDP, {0, 1, 1, 1, 1, 1}},
		{"intel", PAGING_SHADOW, {0, 0, 1, 1, 1, 1}},
		{"intel", PAGING_TDP, {0, 0, 0, 1, 1, 1}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct scene_opts o = {.paging = cases[i].paging,
					     .personality = cases[i].cpu,
					     .pte = SCENE_4K,
					     .slot_pages = PAGES,
					     .check = true};

		EQ(scene(&o, count_exits), 0);
		for (int k = 0; k < 6; k++)
			EQ(exits_of[k], cases[i].expected[k]);
	}
}

static int refused(struct scene *s, struct task *t)
{
	struct cpu_regs r = vcpu_regs(s->vcpu[0]);

	(void)t;
	EQ(vcpu_mov_cr4(s->vcpu[0], r.cr4 & ~CR4_PAE), KVMSIM_EINVAL);
	EQ(vcpu_mov_cr0(s->vcpu[0], r.cr0 & ~CR0_PG), KVMSIM_EINVAL);
	EQ(vcpu_wrmsr_efer(s->vcpu[0], 0), KVMSIM_EINVAL);
	return 0;
}

static void long_mode_is_not_left(void)
{
	const struct scene_opts o = {.pte = SCENE_4K, .slot_pages = PAGES};

	EQ(scene(&o, refused), 0);
}

static CU_TestInfo tests[] = {
	{"modes", modes},
	{"entries", entries},
	{"permissions", permissions},
	{"shadow_permissions", shadow_permissions},
	{"guest_faults", guest_faults},
	{"a_fetch_from_a_device", a_fetch_from_a_device},
	{"vcpus_in_two_modes", vcpus_in_two_modes},
	{"exits", exits},
	{"long_mode_is_not_left", long_mode_is_not_left},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("modes", tests)
