// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/guest_modes.h"

#include <linux/kvm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "tests/kernel/vmm.h"

/* Guest-physical places in slot 0. */
#define PML4_GPA       0x10000ull /* with 4-byte entries: the directory */
#define PDPT_GPA       0x11000ull
#define PD_GPA(gib)    (0x12000ull + (gib)*PAGE_BYTES)
#define ROOT1_GPA      0x16000ull /* the second root; of PAE its directories follow */
#define PT_LOW_GPA     0x20000ull /* maps slot 0 */
#define PT_TEST_GPA(i) (0x21000ull + (i)*PAGE_BYTES) /* slot 1, as much as a table maps each */
#define MMIO_GPA       0xe0000000ull		     /* no slot is here */
#define PT_MMIO_GPA    0x60000ull		     /* after the tables of slot 1 */
#define MOV_CR0_GPA    0x1200ull
#define MOV_CR3_GPA    0x1210ull
#define MOV_CR4_GPA    0x1220ull
#define WRMSR_GPA      0x1230ull
#define STORE_GPA      0x1240ull
#define INVLPG_GPA     0x1260ull

#define N_GIB	   4u
#define HUGE_BYTES 0x200000ull
#define MSR_EFER   0xc0000080u

/* As an OS leaves them: accessed, leaves also dirty, so that the software walk has nothing to set.
 */
#define PTE_PRESENT  0x01ull
#define PTE_WRITABLE 0x02ull
#define PTE_USER     0x04ull
#define PTE_ACCESSED 0x20ull
#define PTE_DIRTY    0x40ull
#define PTE_HUGE     0x80ull
#define PTE_NX	     (1ull << 63)
#define PTE_TABLE    (PTE_PRESENT | PTE_WRITABLE | PTE_USER | PTE_ACCESSED)
#define PTE_LEAF     (PTE_TABLE | PTE_DIRTY)

#define CR0_PE	 0x1ull
#define CR0_ET	 0x10ull
#define CR0_WP	 0x10000ull
#define CR0_PG	 0x80000000ull
#define CR4_PSE	 0x10ull
#define CR4_PAE	 0x20ull
#define EFER_LME 0x100ull
#define EFER_LMA 0x400ull
#define EFER_NXE 0x800ull

static const struct {
	uint64_t gpa;
	uint8_t bytes[12];
} stubs[] = {
	/* mov %rax,%cr0; out %al,$0x10, and so on */
	{MOV_CR0_GPA, {0x0f, 0x22, 0xc0, 0xe6, 0x10}},
	{MOV_CR3_GPA, {0x0f, 0x22, 0xd8, 0xe6, 0x10}},
	{MOV_CR4_GPA, {0x0f, 0x22, 0xe0, 0xe6, 0x10}},
	{WRMSR_GPA, {0x0f, 0x30, 0xe6, 0x10}},
	/* lodsl; xchg %eax,%edi; lodsl; mov %eax,(%rdi); loop; out */
	{STORE_GPA, {0xad, 0x97, 0xad, 0x89, 0x07, 0xe2, 0xf9, 0xe6, 0x10}},
	/* lodsl; invlpg (%rax); loop; out */
	{INVLPG_GPA, {0xad, 0x0f, 0x01, 0x38, 0xe2, 0xfa, 0xe6, 0x10}},
};

static uint64_t entry_bytes(const struct guest *g)
{
	return g->opts.kind == GUEST_32BIT ? 4 : 8;
}

static uint64_t table_entries(const struct guest *g)
{
	return PAGE_BYTES / entry_bytes(g);
}

/* What an entry of the directories maps. */
static uint64_t large_bytes(const struct guest *g)
{
	return table_entries(g) * PAGE_BYTES;
}

static void put_entry(struct guest *g, uint64_t table_gpa, uint64_t index, uint64_t value)
{
	memcpy(g->low + table_gpa + index * entry_bytes(g), &value, entry_bytes(g));
}

/* The leaf that maps @gpa. */
static uint64_t leaf(const struct guest *g, uint64_t gpa)
{
	const struct guest_opts *o = &g->opts;
	bool test = gpa >= TEST_GPA;
	uint64_t pte = gpa | PTE_LEAF;
	if (test ? o->kernel_all : o->kernel || o->kernel_all)
		pte &= ~PTE_USER;
	if (test && o->ro_ptes)
		pte &= ~PTE_WRITABLE;
	if (test && o->nx_ptes)
		pte |= PTE_NX;
	if (test && o->clean)
		pte &= ~(PTE_ACCESSED | PTE_DIRTY);
	return pte;
}

/* The directory entry for @gpa, in its directory of the first root. */
static uint64_t pde_gpa(const struct guest *g, uint64_t gpa)
{
	if (g->opts.kind == GUEST_32BIT)
		return PML4_GPA + gpa / large_bytes(g) * 4;
	return PD_GPA(gpa >> 30) + (gpa >> 21 & 511) * 8;
}

static void put_pde(struct guest *g, uint64_t gpa, uint64_t value)
{
	memcpy(g->low + pde_gpa(g, gpa), &value, entry_bytes(g));
}

static void fill_table(struct guest *g, uint64_t table_gpa, uint64_t gpa, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		put_entry(g, table_gpa, i, leaf(g, gpa + i * PAGE_BYTES));
	put_pde(g, gpa, table_gpa | PTE_TABLE);
}

static void build_roots(struct guest *g)
{
	/* The bits that PDPTEs of PAE have are reserved but for P. */
	uint64_t flags = g->opts.kind == GUEST_PAE ? PTE_PRESENT : PTE_TABLE;
	if (g->opts.kind == GUEST_32BIT)
		return;
	for (uint64_t gib = 0; gib < N_GIB; gib++)
		put_entry(g, PDPT_GPA, gib, PD_GPA(gib) | flags);
	if (g->opts.kind == GUEST_LONG64)
		put_entry(g, PML4_GPA, 0, PDPT_GPA | PTE_TABLE);
}

/* A copy of the first root; of PAE's its directories, since those are what its roots are. */
static void build_second_root(struct guest *g)
{
	if (g->opts.kind != GUEST_PAE) {
		memcpy(g->low + ROOT1_GPA, g->low + PML4_GPA, PAGE_BYTES);
		return;
	}
	for (uint64_t gib = 0; gib < N_GIB; gib++) {
		uint64_t directory = ROOT1_GPA + (1 + gib) * PAGE_BYTES;
		memcpy(g->low + directory, g->low + PD_GPA(gib), PAGE_BYTES);
		put_entry(g, ROOT1_GPA, gib, directory | PTE_PRESENT);
	}
}

void guest_build_tables(struct guest *g)
{
	uint64_t large = large_bytes(g), n = table_entries(g), test = g->opts.slot_pages;
	for (unsigned i = 0; i < sizeof(stubs) / sizeof(stubs[0]); i++)
		memcpy(g->low + stubs[i].gpa, stubs[i].bytes, sizeof(stubs[i].bytes));
	if (g->opts.pte == GUEST_PTE_NONE)
		return;
	build_roots(g);
	if (g->opts.pte == GUEST_PTE_2M) {
		for (uint64_t gpa = 0; gpa < (uint64_t)N_GIB << 30; gpa += large)
			put_pde(g, gpa, leaf(g, gpa) | PTE_HUGE);
	} else {
		fill_table(g, PT_LOW_GPA, 0, HUGE_BYTES / PAGE_BYTES);
		for (uint64_t t = 0; t * n < test; t++)
			fill_table(g, PT_TEST_GPA(t), TEST_GPA + t * large, n);
		if (g->opts.kind == GUEST_LONG64)
			fill_table(g, PT_MMIO_GPA, MMIO_GPA, n);
	}
	build_second_root(g);
}

/* ---- registers ---- */

static uint64_t root_gpa(const struct guest *g, unsigned root)
{
	if (root)
		return ROOT1_GPA;
	return g->opts.kind == GUEST_PAE ? PDPT_GPA : PML4_GPA;
}

static void put_sregs(struct guest *g, unsigned vcpu)
{
	const struct guest_regs *r = &g->regs;
	bool long_mode = r->efer & EFER_LMA;
	struct kvm_sregs s;
	if (ioctl(g->vcpu[vcpu], KVM_GET_SREGS, &s) < 0)
		die_errno("KVM_GET_SREGS");
	struct kvm_segment code = {
		.limit = 0xffffffff,
		.selector = (uint16_t)(8 | r->cpl),
		.type = 11, /* execute, read, accessed */
		.present = 1,
		.s = 1,
		.g = 1,
		.dpl = (uint8_t)r->cpl,
		.l = long_mode,
		.db = !long_mode,
	};
	struct kvm_segment data = code;
	data.selector = (uint16_t)(16 | r->cpl);
	data.type = 3; /* read, write, accessed */
	data.l = 0;
	data.db = 1;
	s.cs = code;
	s.ds = s.es = s.fs = s.gs = s.ss = data;
	s.cr0 = r->cr0;
	s.cr3 = r->cr3;
	s.cr4 = r->cr4;
	s.efer = r->efer;
	if (ioctl(g->vcpu[vcpu], KVM_SET_SREGS, &s) < 0)
		die_errno("KVM_SET_SREGS");
}

void guest_init_sregs(struct guest *g, unsigned vcpu)
{
	struct guest_regs *r = &g->regs;
	memset(r, 0, sizeof(*r));
	r->cr0 = CR0_PE | CR0_ET;
	if (g->opts.pte != GUEST_PTE_NONE) {
		r->cr0 |= CR0_WP | CR0_PG;
		r->cr3 = root_gpa(g, 0);
		r->cr4 = g->opts.kind == GUEST_32BIT ? CR4_PSE : CR4_PAE;
		if (g->opts.kind == GUEST_LONG64)
			r->efer = EFER_LME | EFER_LMA;
		if (g->opts.nx_ptes)
			r->efer |= EFER_NXE;
	}
	put_sregs(g, vcpu);
}

static const struct {
	const char *word;
	unsigned reg; /* 0: CR0, 4: CR4, 8: EFER */
	uint64_t bit;
} bit_words[] = {
	{"pg", 0, CR0_PG}, {"wp", 0, CR0_WP},	  {"pse", 4, CR4_PSE},	 {"pae", 4, CR4_PAE},
	{"pge", 4, 0x80},  {"smep", 4, 1u << 20}, {"smap", 4, 1u << 21}, {"nxe", 8, EFER_NXE},
};

static uint64_t *register_of(struct guest *g, unsigned reg)
{
	return reg == 0 ? &g->regs.cr0 : reg == 4 ? &g->regs.cr4 : &g->regs.efer;
}

/* Changes g->regs as @text says; returns the register of the last bit. */
static unsigned change_bits(struct guest *g, const char *text)
{
	char words[64], *save = NULL;
	unsigned reg = 0;
	strncpy(words, text, sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	for (char *w = strtok_r(words, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		char *equal = strchr(w, '=');
		unsigned i = 0;
		if (!equal)
			die("expected BIT=VALUE, found '%s'", w);
		*equal = '\0';
		if (strcmp(w, "cpl") == 0) {
			g->regs.cpl = (unsigned)strtoul(equal + 1, NULL, 10);
			continue;
		}
		while (i < sizeof(bit_words) / sizeof(bit_words[0]) && strcmp(bit_words[i].word, w))
			i++;
		if (i == sizeof(bit_words) / sizeof(bit_words[0]))
			die("no bit called '%s'", w);
		reg = bit_words[i].reg;
		*register_of(g, reg) &= ~bit_words[i].bit;
		if (equal[1] == '1')
			*register_of(g, reg) |= bit_words[i].bit;
	}
	return reg;
}

static void load_stub(struct guest *g, uint64_t rip, uint64_t rax)
{
	struct kvm_regs regs = {.rip = rip,
				.rax = rax,
				.rcx = MSR_EFER,
				.rsp = GUEST_STACK_GPA,
				.rflags = GUEST_RFLAGS(g)};
	if (ioctl(g->vcpu[0], KVM_SET_REGS, &regs) < 0)
		die_errno("KVM_SET_REGS");
}

void guest_load_mov(struct guest *g, const char *text)
{
	unsigned reg = change_bits(g, text);
	uint64_t rip = reg == 0 ? MOV_CR0_GPA : reg == 4 ? MOV_CR4_GPA : WRMSR_GPA;
	load_stub(g, rip, *register_of(g, reg));
}

void guest_load_cr3(struct guest *g, const char *text)
{
	g->regs.cr3 = root_gpa(g, strcmp(text, "0") != 0);
	load_stub(g, MOV_CR3_GPA, g->regs.cr3);
}

void guest_set_sregs(struct guest *g, const char *text)
{
	change_bits(g, text);
	put_sregs(g, 0);
}

/* ---- stores to tables ---- */

static uint64_t pte_gpa(const struct guest *g, uint64_t gpa)
{
	uint64_t i = (gpa - TEST_GPA) / PAGE_BYTES, n = table_entries(g);
	return PT_TEST_GPA(i / n) + i % n * entry_bytes(g);
}

static uint32_t changed(const struct guest *g, uint32_t entry, bool directory, const char *how)
{
	if (strcmp(how, "same") == 0)
		return entry;
	if (strcmp(how, "swap") == 0 && (!directory || (entry & PTE_HUGE)))
		return entry ^ (uint32_t)(directory ? large_bytes(g) : PAGE_BYTES);
	if (strcmp(how, "clear") == 0)
		return 0;
	if (strcmp(how, "ro") == 0)
		return entry & ~(uint32_t)PTE_WRITABLE;
	if (strcmp(how, "rw") == 0)
		return entry | (uint32_t)PTE_WRITABLE;
	if (strcmp(how, "clean") == 0)
		return entry & ~(uint32_t)(PTE_ACCESSED | PTE_DIRTY);
	die("no way to change an entry called '%s'", how);
}

void guest_load_stores(struct guest *g, bool directory, const char *how, const uint32_t *pages,
		       uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t gpa = TEST_GPA + pages[i] * PAGE_BYTES;
		uint64_t at = directory ? pde_gpa(g, gpa) : pte_gpa(g, gpa);
		uint32_t entry;
		memcpy(&entry, g->low + at, sizeof(entry));
		guest_put_list(g, 0, 2 * i, at);
		guest_put_list(g, 0, 2 * i + 1, changed(g, entry, directory, how));
	}
	guest_set_regs(g, 0, STORE_GPA, n);
}

void guest_load_invlpg(struct guest *g, const uint32_t *pages, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		guest_put_list(g, 0, i, TEST_GPA + pages[i] * PAGE_BYTES);
	guest_set_regs(g, 0, INVLPG_GPA, n);
}
