// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "workloads/matrix_modes.h"

/* The guest's instructions: MOV to CR0, and so on, each followed by OUT; and two loops. */
#define CODE_MOV_CR0 0x1200ull
#define CODE_MOV_CR3 0x1210ull
#define CODE_MOV_CR4 0x1220ull
#define CODE_WRMSR   0x1230ull
#define CODE_STORE   0x1240ull /* lodsd; xchg eax, edi; lodsd; mov [rdi], eax; loop; out */
#define CODE_INVLPG  0x1260ull /* lodsd; invlpg [rax]; loop; out */

/* ---- the guest's registers ---- */

/* "wp=0": the register and its bit. */
static const struct {
	const char *word;
	enum { REG_CR0, REG_CR4, REG_EFER } reg;
	uint64_t bit;
} bit_words[] = {
	{"pg", REG_CR0, CR0_PG},     {"wp", REG_CR0, CR0_WP},	  {"pse", REG_CR4, CR4_PSE},
	{"pge", REG_CR4, CR4_PGE},   {"smep", REG_CR4, CR4_SMEP}, {"smap", REG_CR4, CR4_SMAP},
	{"nxe", REG_EFER, EFER_NXE},
};

/* Returns the register of the last bit. */
static int change_bits(struct cpu_regs *r, const char *text)
{
	int reg = REG_CR0;

	for (; *text; text += strcspn(text, ","), text += *text == ',') {
		size_t len = strcspn(text, "=");
		bool on = text[len + 1] == '1';

		if (!strncmp(text, "cpl", len)) {
			r->cpl = (unsigned)strtoul(text + len + 1, NULL, 10);
			continue;
		}
		for (size_t i = 0; i < sizeof(bit_words) / sizeof(*bit_words); i++) {
			uint64_t *value;

			if (strlen(bit_words[i].word) != len ||
			    strncmp(bit_words[i].word, text, len))
				continue;
			reg = bit_words[i].reg;
			value = reg == REG_CR0 ? &r->cr0 : reg == REG_CR4 ? &r->cr4 : &r->efer;
			*value = on ? *value | bit_words[i].bit : *value & ~bit_words[i].bit;
		}
	}
	return reg;
}

static int mov(struct matrix *m, const struct mx_mode_step *s)
{
	static const uint64_t code[] = {CODE_MOV_CR0, CODE_MOV_CR4, CODE_WRMSR};
	struct cpu_regs regs = vcpu_regs(m->vcpu);
	int reg = change_bits(&regs, s->text), r;

	do {
		r = vcpu_fetch(m->vcpu, code[reg]);
		if (r)
			continue;
		r = reg == REG_CR0   ? vcpu_mov_cr0(m->vcpu, regs.cr0)
		    : reg == REG_CR4 ? vcpu_mov_cr4(m->vcpu, regs.cr4)
				     : vcpu_wrmsr_efer(m->vcpu, regs.efer);
	} while (r == VCPU_RESTART);
	return r ? r : mx_insn_out(m, m->vcpu, code[reg] + (reg == REG_EFER ? 2 : 3));
}

static int mov_cr3(struct matrix *m, const struct mx_mode_step *s)
{
	int r;

	do {
		r = vcpu_fetch(m->vcpu, CODE_MOV_CR3);
		r = r ? r : vcpu_mov_cr3(m->vcpu, mx_root(m, (unsigned)s->n));
	} while (r == VCPU_RESTART);
	return r ? r : mx_insn_out(m, m->vcpu, CODE_MOV_CR3 + 3);
}

static int change_sregs(struct matrix *m, const struct mx_mode_step *s)
{
	struct cpu_regs regs = vcpu_regs(m->vcpu);

	change_bits(&regs, s->text);
	return vcpu_change_sregs(m->vcpu, &regs);
}

/* ---- stores to tables ---- */

static uint32_t changed(const struct matrix *m, uint32_t entry, bool directory, const char *how)
{
	if (!strcmp(how, "swap"))
		return entry ^ (uint32_t)(directory ? mx_large_bytes(m) : 4096);
	if (!strcmp(how, "ro"))
		return entry & ~(uint32_t)MX_WRITABLE;
	if (!strcmp(how, "rw"))
		return entry | (uint32_t)MX_WRITABLE;
	if (!strcmp(how, "clean"))
		return entry & ~(uint32_t)MX_ACCESSED_DIRTY;
	return entry;
}

static void list_stores(struct matrix *m, const struct mx_mode_step *s, uint64_t n)
{
	bool directory = s->what == STORE_PDES;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t gpa = directory ? mx_pde_gpa(m, m->pages[i]) : mx_pte_gpa(m, m->pages[i]);
		uint64_t word = kvm_read_guest_u64(m->kvm, gpa & ~7ull) >> (gpa & 4) * 8;

		kvm_write_guest_u64(m->kvm, MX_LIST + i * 8,
				    gpa | (uint64_t)changed(m, (uint32_t)word, directory, s->text)
						    << 32);
	}
}

static int store_turn(struct matrix *m, uint64_t list)
{
	uint64_t address = 0, value = 0;
	int r = mx_insn_read(m, m->vcpu, CODE_STORE, list, 4, &address);

	r = r ? r : mx_insn_read(m, m->vcpu, CODE_STORE + 2, list + 4, 4, &value);
	if (r)
		return r;
	do {
		r = vcpu_fetch(m->vcpu, CODE_STORE + 3);
		r = r ? r : vcpu_write(m->vcpu, address, 4, value);
	} while (r == VCPU_RESTART);
	if (r)
		return r;
	do {
		r = vcpu_fetch(m->vcpu, CODE_STORE + 5);
	} while (r == VCPU_RESTART);
	return r ? r : vcpu_gap(m->vcpu, 5);
}

static int invlpg_turn(struct matrix *m, uint64_t list)
{
	uint64_t address = 0;
	int r = mx_insn_read(m, m->vcpu, CODE_INVLPG, list, 4, &address);

	if (r)
		return r;
	do {
		r = vcpu_fetch(m->vcpu, CODE_INVLPG + 1);
		r = r ? r : vcpu_invlpg(m->vcpu, address);
	} while (r == VCPU_RESTART);
	if (r)
		return r;
	do {
		r = vcpu_fetch(m->vcpu, CODE_INVLPG + 4);
	} while (r == VCPU_RESTART);
	return r ? r : vcpu_gap(m->vcpu, 3);
}

static int stores(struct matrix *m, uint64_t n)
{
	int r = 0;

	for (uint64_t i = 0; i < n && !r; i++)
		r = store_turn(m, MX_LIST + i * 8);
	return r ? r : mx_insn_out(m, m->vcpu, CODE_STORE + 7);
}

static int invlpgs(struct matrix *m, uint64_t n)
{
	int r = 0;

	for (uint64_t i = 0; i < n && !r; i++)
		r = invlpg_turn(m, MX_LIST + i * 4);
	return r ? r : mx_insn_out(m, m->vcpu, CODE_INVLPG + 6);
}

/* ---- steps ---- */

static int guest_step(struct matrix *m, const struct mx_mode_step *s)
{
	uint64_t n = (uint64_t)m->nr_dirty;
	int r;

	if (s->what >= STORE_PTES) {
		r = matrix_pages(m->pattern, m->o->slot_pages, n, m->pages);
		if (r)
			return r;
		if (s->what == INVLPG)
			mx_put_list(m, m->pages, n);
		else
			list_stores(m, s, n);
	}
	vcpu_set_regs(m->vcpu);
	mx_begin(m, s->phase);
	r = s->what == MOV	? mov(m, s)
	    : s->what == CR3	? mov_cr3(m, s)
	    : s->what == INVLPG ? invlpgs(m, n)
				: stores(m, n);
	return r ? r : mx_end(m, NULL, 0);
}

static int one_step(struct matrix *m, const struct mx_mode_step *s)
{
	int r;

	switch (s->what) {
	case PAGES:
		mx_key(m, s->pattern, (int64_t)s->n, MATRIX_NONE);
		return 0;
	case WRITE:
		return mx_loop(m, s->phase, MX_CODE_WRITE, (uint64_t)m->nr_dirty);
	case READ:
		return mx_loop(m, s->phase, MX_CODE_READ, (uint64_t)m->nr_dirty);
	case GET:
		return mx_get(m, s->phase);
	case SREGS:
		mx_begin(m, s->phase);
		r = change_sregs(m, s);
		return r ? r : mx_end(m, NULL, 0);
	default:
		return guest_step(m, s);
	}
}

static int body(struct matrix *m)
{
	const struct mx_mode_step *s = m->steps;
	int err = 0;

	for (; (s->phase || s->what) && s->what != VM && !err; s++)
		err = one_step(m, s);
	m->steps = s;
	return err;
}

static int prepare(struct matrix *m)
{
	struct cpu_regs regs = vcpu_regs(m->vcpu);

	if (!m->ptes.nx)
		return 0;
	regs.efer |= EFER_NXE;
	return vcpu_change_sregs(m->vcpu, &regs);
}

int mx_case_modes(struct matrix *m)
{
	const struct mx_mode_step *s = mx_mode_steps(m->o->test_case);
	int err = 0;

	m->two_roots = true;
	m->prepare = prepare;
	while (s && s->what == VM && s->text && !err) {
		m->readonly = strstr(s->text, "readonly");
		m->ptes.kernel = strstr(s->text, "kernel") && !strstr(s->text, "kernel-all");
		m->ptes.kernel_all = strstr(s->text, "kernel-all");
		m->ptes.ro = strstr(s->text, "ro-ptes");
		m->ptes.nx = strstr(s->text, "nx-ptes");
		m->ptes.clean = strstr(s->text, "clean");
		m->steps = s + 1;
		err = mx_vm(m, strstr(s->text, "logged") ? KVM_MEM_LOG_DIRTY_PAGES : 0, body);
		s = m->steps;
	}
	return err;
}
