// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/matrix_scene.h"

/* The guest's instructions, its loops over a list of pages. */

static uint64_t list_of(const struct kvm_vcpu *v)
{
	return MX_LIST + vcpu_id(v) * MX_VCPU_ENTRIES * 4;
}

/* What an access that must end in the guest returned: 0, a negative error, or the guest left where
 * the reference's does not. */
static int retired(struct matrix *m, const struct kvm_vcpu *v, int r)
{
	if (r <= 0)
		return r;
	return kvmsim_err(m->o->errors, KVMSIM_ECHECK,
			  "phase %s: unexpected exit to userspace (%d)", m->phase,
			  (int)vcpu_exit_reason(v));
}

int mx_insn_read(struct matrix *m, struct kvm_vcpu *v, uint64_t rip, uint64_t gva, unsigned len,
		 uint64_t *value)
{
	int r;

	do {
		r = vcpu_fetch(v, rip);
		r = r ? r : vcpu_read(v, gva, len, value);
	} while (r == VCPU_RESTART);
	return retired(m, v, r);
}

int mx_insn_out(struct matrix *m, struct kvm_vcpu *v, uint64_t rip)
{
	int r;

	do {
		r = vcpu_fetch(v, rip);
		r = r ? r : vcpu_out(v, 0x10);
	} while (r == VCPU_RESTART);
	if (r == VCPU_USERSPACE && vcpu_exit_reason(v) == KVM_EXIT_IO)
		return 0;
	return r ? retired(m, v, r)
		 : kvmsim_err(m->o->errors, KVMSIM_ECHECK, "phase %s: OUT did not exit", m->phase);
}

/* The loop's second instruction: `mov [rax], ecx`, `mov edx, [rax]` or `inc dword [rax]`. */
static int insn_access(struct matrix *m, struct kvm_vcpu *v, uint64_t code, uint64_t gva,
		       uint64_t ecx)
{
	uint64_t old;
	int r;

	do {
		r = vcpu_fetch(v, code + 1);
		if (r)
			continue;
		if (code == MX_CODE_WRITE)
			r = vcpu_write(v, gva, 4, ecx);
		else if (code == MX_CODE_READ)
			r = vcpu_read(v, gva, 4, &old);
		else
			r = vcpu_rmw(v, gva, 4, ecx);
	} while (r == VCPU_RESTART);
	if (r == VCPU_USERSPACE && m->readonly && vcpu_exit_reason(v) == KVM_EXIT_MMIO)
		r = 0;
	return retired(m, v, r);
}

/* `loop`: the third instruction of each turn, where the turn's instructions are retired. */
static int insn_loop(struct matrix *m, struct kvm_vcpu *v, uint64_t code)
{
	int r;

	do {
		r = vcpu_fetch(v, code + 3);
	} while (r == VCPU_RESTART);
	r = r ? r : vcpu_gap(v, 3);
	return retired(m, v, r);
}

/* One turn of the loop at MX_CODE_MIXED: the turns left are stored, then @entry's page accessed. */
static int mixed_turn(struct matrix *m, struct kvm_vcpu *v, uint64_t entry, uint64_t left)
{
	uint64_t gva = entry & ~1ull, code = MX_CODE_MIXED, old;
	int r;

	do {
		r = vcpu_fetch(v, code + 1);
		r = r ? r : vcpu_write(v, MX_LEFT(vcpu_id(v)), 4, left);
	} while (r == VCPU_RESTART);
	if (r)
		return retired(m, v, r);
	do {
		r = vcpu_fetch(v, code + (entry & 1 ? 15 : 9));
		if (!r)
			r = entry & 1 ? vcpu_write(v, gva, 4, left) : vcpu_read(v, gva, 4, &old);
	} while (r == VCPU_RESTART);
	return retired(m, v, r);
}

/* @n turns over the vCPU's list in guest memory, then OUT. */
static int turns(struct matrix *m, struct kvm_vcpu *v, uint64_t code, uint64_t n)
{
	int err = 0;

	for (uint64_t i = 0; i < n && !err; i++) {
		uint64_t address = 0;

		err = mx_insn_read(m, v, code, list_of(v) + i * 4, 4, &address); /* lodsd */
		if (!err && code == MX_CODE_MIXED)
			err = mixed_turn(m, v, address, n - i);
		else
			err = err ? err : insn_access(m, v, code, address, n - i);
		err = err ? err : insn_loop(m, v, code);
	}
	err = err ? err : vcpu_gap(v, 1);
	return err ? err : mx_insn_out(m, v, code + 5);
}

/* One phase: the first vCPU runs. */
static int run_loop(struct matrix *m, const char *phase, uint64_t code, uint64_t n)
{
	int err;

	vcpu_set_regs(m->vcpu);
	mx_begin(m, phase);
	err = turns(m, m->vcpu, code, n);
	return err ? err : mx_end(m, NULL, 0);
}
/* Two list entries are one word of guest memory. */
static void put_list(struct matrix *m, const struct kvm_vcpu *v, const uint32_t *pages, uint64_t n,
		     uint64_t base)
{
	for (uint64_t i = 0; i < n; i += 2) {
		uint64_t low = base + pages[i] * 4096ull;
		uint64_t high = i + 1 < n ? base + pages[i + 1] * 4096ull : 0;

		kvm_write_guest_u64(m->kvm, list_of(v) + i * 4, low | high << 32);
	}
}

void mx_put_list(struct matrix *m, const uint32_t *pages, uint64_t n)
{
	put_list(m, m->vcpu, pages, n, MX_TEST);
}

int mx_setup(struct matrix *m)
{
	uint32_t lists[MX_LIST_PAGES];

	for (uint32_t i = 0; i < MX_LIST_PAGES; i++)
		lists[i] = i;
	mx_key(m, MATRIX_NO_PATTERN, MATRIX_NONE, MATRIX_NONE);
	put_list(m, m->vcpu, lists, MX_LIST_PAGES, MX_LIST);
	return run_loop(m, "setup", MX_CODE_READ, MX_LIST_PAGES);
}

int mx_loop_list(struct matrix *m, const char *phase, uint64_t code, const uint32_t *pages,
		 uint64_t n)
{
	put_list(m, m->vcpu, pages, n, MX_TEST);
	return run_loop(m, phase, code, n);
}

int mx_loop(struct matrix *m, const char *phase, uint64_t code, uint64_t n)
{
	enum matrix_pattern p = m->pattern == MATRIX_NO_PATTERN ? MATRIX_SEQUENTIAL : m->pattern;
	int err;

	if (n > MX_LIST_ENTRIES)
		return kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED,
				  "case %s, phase %s: %llu pages, the guest's list holds %llu",
				  m->o->test_case, phase, (unsigned long long)n, MX_LIST_ENTRIES);
	err = matrix_pages(p, m->o->slot_pages, n, m->pages);
	if (err)
		return err == KVMSIM_EINVAL
			       ? kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED,
					    "case %s, phase %s: no %s pattern of %llu pages in a "
					    "slot of %llu",
					    m->o->test_case, phase, matrix_pattern_name(m->pattern),
					    (unsigned long long)n,
					    (unsigned long long)m->o->slot_pages)
			       : err;
	for (uint64_t i = 0; i < n; i++) {
		m->pages[i] += (uint32_t)m->first_page;
		if (m->pages[i] >= m->o->slot_pages)
			return kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED,
					  "case %s, phase %s: page %u of a slot of %llu",
					  m->o->test_case, phase, m->pages[i],
					  (unsigned long long)m->o->slot_pages);
	}
	return mx_loop_list(m, phase, code, m->pages, n);
}

/* ---- two vCPUs ---- */

static int thread(struct task *t, void *arg)
{
	struct mx_thread *self = arg;
	int err;

	vcpu_bind(self->vcpu, t);
	err = turns(self->m, self->vcpu, self->code, self->n);
	/* As it ends it gives its stack back: the lowest page, then the rest. */
	kvm_unmap_hva_elsewhere(t, self->m->kvm);
	kvm_unmap_hva_elsewhere(t, self->m->kvm);
	self->ended = true;
	task_wake(self->m->t, task_now(t));
	return err;
}

int mx_threads_start(struct matrix *m, struct mx_thread *threads, uint64_t code, uint64_t n)
{
	int err = 0;

	for (uint32_t i = 0; i < MX_VCPUS && !err; i++) {
		const struct task_opts o = {.name = i ? "vcpu1" : "vcpu0",
					    .fn = thread,
					    .arg = &threads[i],
					    .start = task_now(m->t),
					    .stack_bytes = 256 << 10};
		struct task *t;

		threads[i] = (struct mx_thread){.m = m, .vcpu = m->vcpus[i], .code = code, .n = n};
		err = task_create(m->sim, &o, &t);
	}
	/* Of the two new stacks of the reference's process one lies in a huge page, to be split. */
	if (!m->had_threads)
		kvm_unmap_hva_elsewhere(m->t, m->kvm);
	m->had_threads = true;
	return err;
}

int mx_threads_join(struct matrix *m, const struct mx_thread *threads)
{
	int err = 0;

	while (!err && !(threads[0].ended && threads[1].ended))
		err = task_block(m->t, WAIT_idle);
	for (uint32_t i = 0; i < MX_VCPUS; i++)
		vcpu_bind(m->vcpus[i], m->t);
	return err;
}

int mx_halves(struct matrix *m, const char *phase, uint64_t code, bool threads)
{
	uint64_t half = m->o->slot_pages / MX_VCPUS;
	struct mx_thread t[MX_VCPUS];
	int err = 0;

	if (!half || half > MX_VCPU_ENTRIES)
		return kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED,
				  "case %s: half a slot of %llu pages; a vCPU's list holds 1 to "
				  "%llu",
				  m->o->test_case, (unsigned long long)m->o->slot_pages,
				  MX_VCPU_ENTRIES);
	for (uint32_t i = 0; i < MX_VCPUS; i++) {
		for (uint64_t k = 0; k < half; k++)
			m->pages[k] = (uint32_t)(i * m->o->slot_pages / MX_VCPUS + k);
		put_list(m, m->vcpus[i], m->pages, half, MX_TEST);
		vcpu_set_regs(m->vcpus[i]);
	}
	mx_begin(m, phase);
	if (threads) {
		err = mx_threads_start(m, t, code, half);
		err = err ? err : mx_threads_join(m, t);
	}
	for (uint32_t i = 0; i < MX_VCPUS && !threads && !err; i++)
		err = turns(m, m->vcpus[i], code, half);
	return err ? err : mx_end(m, NULL, 0);
}
