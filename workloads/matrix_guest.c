// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/matrix_scene.h"

/* The guest's instructions, its loops over a list of pages. */

/* What an access that must end in the guest returned: 0, a negative error, or the guest left where
 * the reference's does not. */
static int retired(struct matrix *m, int r)
{
	if (r <= 0)
		return r;
	return kvmsim_err(m->o->errors, KVMSIM_ECHECK,
			  "phase %s: unexpected exit to userspace (%d)", m->phase,
			  (int)vcpu_exit_reason(m->vcpu));
}

int mx_insn_read(struct matrix *m, uint64_t rip, uint64_t gva, unsigned len, uint64_t *value)
{
	int r;

	do {
		r = vcpu_fetch(m->vcpu, rip);
		r = r ? r : vcpu_read(m->vcpu, gva, len, value);
	} while (r == VCPU_RESTART);
	return retired(m, r);
}

int mx_insn_out(struct matrix *m, uint64_t rip)
{
	int r;

	do {
		r = vcpu_fetch(m->vcpu, rip);
		r = r ? r : vcpu_out(m->vcpu, 0x10);
	} while (r == VCPU_RESTART);
	if (r == VCPU_USERSPACE && vcpu_exit_reason(m->vcpu) == KVM_EXIT_IO)
		return 0;
	return r ? retired(m, r)
		 : kvmsim_err(m->o->errors, KVMSIM_ECHECK, "phase %s: OUT did not exit", m->phase);
}

/* The loop's second instruction: `mov [rax], ecx`, `mov edx, [rax]` or `inc dword [rax]`. */
static int insn_access(struct matrix *m, uint64_t code, uint64_t gva, uint64_t ecx)
{
	uint64_t old;
	int r;

	do {
		r = vcpu_fetch(m->vcpu, code + 1);
		if (r)
			continue;
		if (code == MX_CODE_WRITE)
			r = vcpu_write(m->vcpu, gva, 4, ecx);
		else if (code == MX_CODE_READ)
			r = vcpu_read(m->vcpu, gva, 4, &old);
		else
			r = vcpu_rmw(m->vcpu, gva, 4, ecx);
	} while (r == VCPU_RESTART);
	return retired(m, r);
}

/* `loop`: the third instruction of each turn, where the turn's instructions are retired. */
static int insn_loop(struct matrix *m, uint64_t code)
{
	int r;

	do {
		r = vcpu_fetch(m->vcpu, code + 3);
	} while (r == VCPU_RESTART);
	r = r ? r : vcpu_gap(m->vcpu, 3);
	return retired(m, r);
}

/* One phase: @n turns over the list that is in guest memory, then OUT. */
static int run_loop(struct matrix *m, const char *phase, uint64_t code, uint64_t n)
{
	int err = 0;

	vcpu_set_regs(m->vcpu);
	mx_begin(m, phase);
	for (uint64_t i = 0; i < n && !err; i++) {
		uint64_t address = 0;

		err = mx_insn_read(m, code, MX_LIST + i * 4, 4, &address); /* lodsd */
		err = err ? err : insn_access(m, code, address, n - i);
		err = err ? err : insn_loop(m, code);
	}
	err = err ? err : mx_insn_out(m, code + 5);
	return err ? err : mx_end(m, NULL, 0);
}

/* Two list entries are one word of guest memory. */
static void put_list(struct matrix *m, const uint32_t *pages, uint64_t n, uint64_t base)
{
	for (uint64_t i = 0; i < n; i += 2) {
		uint64_t low = base + pages[i] * 4096ull;
		uint64_t high = i + 1 < n ? base + pages[i + 1] * 4096ull : 0;

		kvm_write_guest_u64(m->kvm, MX_LIST + i * 4, low | high << 32);
	}
}

int mx_setup(struct matrix *m)
{
	uint32_t lists[MX_LIST_PAGES];

	for (uint32_t i = 0; i < MX_LIST_PAGES; i++)
		lists[i] = i;
	mx_key(m, MATRIX_NO_PATTERN, MATRIX_NONE, MATRIX_NONE);
	put_list(m, lists, MX_LIST_PAGES, MX_LIST);
	return run_loop(m, "setup", MX_CODE_READ, MX_LIST_PAGES);
}

int mx_loop(struct matrix *m, const char *phase, uint64_t code, uint64_t n)
{
	int err;

	if (n > MX_LIST_ENTRIES)
		return kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED,
				  "case %s, phase %s: %llu pages, the guest's list holds %llu",
				  m->o->test_case, phase, (unsigned long long)n, MX_LIST_ENTRIES);
	err = matrix_pages(m->pattern, m->o->slot_pages, n, m->pages);
	if (err)
		return err == KVMSIM_EINVAL
			       ? kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED,
					    "case %s, phase %s: no %s pattern of %llu pages in a "
					    "slot of %llu",
					    m->o->test_case, phase, matrix_pattern_name(m->pattern),
					    (unsigned long long)n,
					    (unsigned long long)m->o->slot_pages)
			       : err;
	put_list(m, m->pages, n, MX_TEST);
	return run_loop(m, phase, code, n);
}
