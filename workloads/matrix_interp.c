// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>

#include "workloads/matrix_interp.h"

#define OP_BYTES  16
#define LIST_ROOM (MX_VCPU_ENTRIES * 4 * MX_VCPUS)

/* Where the interpreter's instructions are, in bytes from MX_CODE_INTERP: the access of each op,
 * of a 64-bit guest and of a 32-bit one, which has no 8-byte accesses, INVLPG and MOV to CR3. */
static const unsigned offset64[N_MX_OPS] = {49, 53, 57, 61, 66, 71, 76, 80, 85, 88};
static const unsigned offset32[N_MX_OPS] = {30, 34, 38, 0, 0, 0, 42, 0, 46, 49};
/* The access's length; the jump back to the interpreter's beginning comes after it. */
static const unsigned length[N_MX_OPS] = {2, 2, 2, 3, 3, 3, 2, 3, 1, 2};

/* Instructions per op: three loads, an addition, the decrements and branches up to the op's, its
 * access, the jump back. OUT comes where no branch was taken. */
static uint64_t instructions(bool long_mode, enum mx_op what)
{
	static const unsigned tests32[N_MX_OPS] = {14, 2, 4, 0, 0, 0, 9, 0, 12, 14};
	unsigned tests = what == MX_OP_OUT ? 2 * (N_MX_OPS - 1) : 2 * what;

	return 4 + (long_mode ? tests : tests32[what]) + 2;
}

static uint64_t list_of(const struct kvm_vcpu *v)
{
	return MX_LIST + vcpu_id(v) * MX_VCPU_ENTRIES * 4;
}

void mx_ops(struct matrix *m, struct kvm_vcpu *v)
{
	m->interp = (struct mx_interp){.vcpu = v, .end = list_of(v)};
}

void mx_op(struct matrix *m, enum mx_op what, uint64_t address, uint64_t value)
{
	struct mx_interp *in = &m->interp;

	if (in->end + OP_BYTES <= MX_LIST + LIST_ROOM) {
		kvm_write_guest_u64(m->kvm, in->end, what | address << 32);
		kvm_write_guest_u64(m->kvm, in->end + 8, value);
	}
	in->end += OP_BYTES;
}

static int access_once(struct kvm_vcpu *v, enum mx_op what, uint64_t address, uint64_t value)
{
	uint64_t old;

	switch (what) {
	case MX_OP_READ4:
		return vcpu_read(v, address, 4, &old);
	case MX_OP_WRITE4:
		return vcpu_write(v, address, 4, (uint32_t)value);
	case MX_OP_WRITE8:
		return vcpu_write(v, address, 8, value);
	case MX_OP_WRITE1:
		return vcpu_write(v, address, 1, (uint8_t)value);
	case MX_OP_INVLPG:
		return vcpu_invlpg(v, address);
	case MX_OP_MOV_CR3:
		return vcpu_mov_cr3(v, value);
	case MX_OP_XCHG8:
		return vcpu_xchg(v, address, 8, value);
	case MX_OP_HLT:
		return vcpu_hlt(v);
	case MX_OP_INC4:
		return vcpu_rmw(v, address, 4, 1);
	default:
		return KVMSIM_EINVAL;
	}
}

/* An op's access and the jump after it; the VMM goes on after HLT, and answers for the device. */
static int insn_op(struct matrix *m, uint64_t rip, enum mx_op what, uint64_t address,
		   uint64_t value)
{
	struct kvm_vcpu *v = m->interp.vcpu;
	int r;

	do {
		r = vcpu_fetch(v, rip);
		r = r ? r : access_once(v, what, address, value);
	} while (r == VCPU_RESTART);
	while (r == VCPU_USERSPACE && vcpu_exit_reason(v) == KVM_EXIT_MMIO) {
		m->interp.mmio_exits++;
		r = vcpu_complete_mmio(v);
	}
	if (!r || (r == VCPU_USERSPACE && vcpu_exit_reason(v) == KVM_EXIT_HLT)) {
		do {
			r = vcpu_fetch(v, rip + length[what]);
		} while (r == VCPU_RESTART);
	}
	return r <= 0 ? r
		      : kvmsim_err(m->o->errors, KVMSIM_ECHECK,
				   "phase %s: unexpected exit to userspace (%d)", m->phase,
				   (int)vcpu_exit_reason(v));
}

/* Ops until OUT has left the guest. */
static int run_to_out(struct matrix *m)
{
	const bool long_mode = m->o->pte != MATRIX_PTE_NONE;
	const unsigned *offset = long_mode ? offset64 : offset32;
	struct mx_interp *in = &m->interp;
	uint64_t what = 0, address = 0, value = 0, rip = MX_CODE_INTERP;
	int err;

	do {
		err = mx_insn_read(m, in->vcpu, rip, in->at, 4, &what);
		err = err ? err : mx_insn_read(m, in->vcpu, rip + 2, in->at + 4, 4, &address);
		err = err ? err
			  : mx_insn_read(m, in->vcpu, rip + 5, in->at + 8, long_mode ? 8 : 4,
					 &value);
		if (!err && (what >= N_MX_OPS || (!long_mode && !offset32[what])))
			err = kvmsim_err(m->o->errors, KVMSIM_ECHECK,
					 "phase %s: op %llu is none of the guest's", m->phase,
					 (unsigned long long)what);
		in->at += OP_BYTES;
		if (!err)
			err = what == MX_OP_OUT ? mx_insn_out(m, in->vcpu, rip + offset[what])
						: insn_op(m, rip + offset[what], (enum mx_op)what,
							  address, value);
		if (!err && what != MX_OP_OUT)
			err = vcpu_gap(in->vcpu, instructions(long_mode, (enum mx_op)what));
	} while (!err && what != MX_OP_OUT);
	return err;
}

int mx_ops_run_outs(struct matrix *m, const char *phase, unsigned times)
{
	struct mx_interp *in = &m->interp;
	int err = 0;

	mx_op(m, MX_OP_OUT, 0, 0);
	if (in->end > MX_LIST + LIST_ROOM)
		return kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED,
				  "case %s, phase %s: %llu ops, the guest's list holds %llu",
				  m->o->test_case, phase,
				  (unsigned long long)((in->end - list_of(in->vcpu)) / OP_BYTES),
				  (unsigned long long)(LIST_ROOM / OP_BYTES));
	in->at = list_of(in->vcpu);
	in->mmio_exits = 0;
	vcpu_set_regs(in->vcpu);
	mx_begin(m, phase);
	for (unsigned i = 0; i < times && !err; i++)
		err = run_to_out(m);
	return err ? err : mx_end(m, in->mmio_exits ? "user_mmio_exits" : NULL, in->mmio_exits);
}

int mx_ops_run(struct matrix *m, const char *phase)
{
	return mx_ops_run_outs(m, phase, 1);
}

int mx_ops_run_k(struct matrix *m, const char *base, int k)
{
	char phase[40];

	snprintf(phase, sizeof(phase), "%s_k%d", base, k);
	mx_key(m, m->pattern, m->nr_dirty, k);
	return mx_ops_run(m, phase);
}
