// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>

#include "workloads/matrix_interp.h"

#define OP_BYTES  16
#define LIST_ROOM (MX_VCPU_ENTRIES * 4 * MX_VCPUS)

/* The code of the interpreter: where it is, and in bytes from there each op's access, of a 64-bit
 * guest and of a 32-bit one, which has no 8-byte accesses, INVLPG and MOV to CR3; and how many
 * instructions find out which op it is: a decrement for each up to its number and a branch for each
 * of them that there is. OUT comes where no branch was taken. */
struct interp_code {
	uint64_t rip;
	unsigned offset[N_MX_OPS], tests[N_MX_OPS];
};

static const struct interp_code reference64 = {
	.rip = MX_CODE_INTERP,
	.offset = {49, 53, 57, 61, 66, 71, 76, 80, 85, 88},
	.tests = {18, 2, 4, 6, 8, 10, 12, 14, 16, 18},
};
static const struct interp_code reference32 = {
	.rip = MX_CODE_INTERP,
	.offset = {30, 34, 38, 0, 0, 0, 42, 0, 46, 49},
	.tests = {14, 2, 4, 0, 0, 0, 9, 0, 12, 14},
};
/* Of op programs: tests/kernel/guest_ops.c. */
static const struct interp_code program64 = {
	.rip = MX_CODE_OPS,
	.offset = {53, 57, 61, 65, 70, 75, 80, 84, 89, 92, 96},
	.tests = {20, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20},
};
static const struct interp_code program32 = {
	.rip = MX_CODE_OPS,
	.offset = {33, 37, 41, 0, 0, 0, 45, 0, 49, 52, 56},
	.tests = {16, 2, 4, 0, 0, 0, 9, 0, 12, 14, 16},
};
/* The access's length; the jump back to the interpreter's beginning comes after it. */
static const unsigned length[N_MX_OPS] = {2, 2, 2, 3, 3, 3, 2, 3, 1, 2, 3};

static const struct interp_code *code_of(const struct matrix *m)
{
	bool long_mode = mx_guest(m) == GUEST_LONG64;

	if (m->o->program)
		return long_mode ? &program64 : &program32;
	return long_mode ? &reference64 : &reference32;
}

/* Per op: three loads, an addition, the tests, its access, the jump back, which OUT does not come
 * to. */
static uint64_t instructions(const struct interp_code *c, enum mx_op what)
{
	return 4 + c->tests[what] + (what == MX_OP_OUT ? 1 : 2);
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
	case MX_OP_WRITE2:
		return vcpu_write(v, address, 2, (uint16_t)value);
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
	const bool long_mode = mx_guest(m) == GUEST_LONG64;
	const struct interp_code *c = code_of(m);
	struct mx_interp *in = &m->interp;
	uint64_t what = 0, address = 0, value = 0, rip = c->rip;
	int err;

	do {
		err = mx_insn_read(m, in->vcpu, rip, in->at, 4, &what);
		err = err ? err : mx_insn_read(m, in->vcpu, rip + 2, in->at + 4, 4, &address);
		err = err ? err
			  : mx_insn_read(m, in->vcpu, rip + 5, in->at + 8, long_mode ? 8 : 4,
					 &value);
		if (!err && (what >= N_MX_OPS || !c->offset[what]))
			err = kvmsim_err(m->o->errors, KVMSIM_ECHECK,
					 "phase %s: op %llu is none of the guest's", m->phase,
					 (unsigned long long)what);
		in->at += OP_BYTES;
		if (!err)
			err = vcpu_gap(in->vcpu, instructions(c, (enum mx_op)what));
		if (!err)
			err = what == MX_OP_OUT ? mx_insn_out(m, in->vcpu, rip + c->offset[what])
						: insn_op(m, rip + c->offset[what],
							  (enum mx_op)what, address, value);
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
