// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/matrix_scene.h"

/*
 * Case N: next to nothing. A phase without content, an ioctl that touches no VM state, and the
 * shortest KVM_RUN: a guest that reads one entry of an op list, which tells it to do OUT.
 */

static int null_phase(struct matrix *m)
{
	mx_begin(m, "null");
	return mx_end(m, NULL, 0);
}

static int check_extension(struct matrix *m)
{
	mx_begin(m, "ioctl_check_extension");
	charge(m->t, COUNT_ioctl, 1);
	return mx_end(m, NULL, 0);
}

static int empty_run(struct matrix *m)
{
	uint64_t op = 0, address = 0, value = 0;
	int err;

	/* {u32 op = OUT; u32 address; u64 value} */
	kvm_write_guest_u64(m->kvm, MX_LIST, 0);
	kvm_write_guest_u64(m->kvm, MX_LIST + 8, 0);
	vcpu_set_regs(m->vcpu);
	mx_begin(m, "empty_run");
	err = mx_insn_read(m, m->vcpu, MX_CODE_INTERP, MX_LIST, 4, &op);
	err = err ? err : mx_insn_read(m, m->vcpu, MX_CODE_INTERP + 2, MX_LIST + 4, 4, &address);
	err = err ? err : mx_insn_read(m, m->vcpu, MX_CODE_INTERP + 5, MX_LIST + 8, 8, &value);
	err = err ? err : mx_insn_out(m, m->vcpu, MX_CODE_INTERP + 49);
	return err ? err : mx_end(m, NULL, 0);
}

static int body(struct matrix *m)
{
	int err = 0;

	for (size_t i = 0; i < m->o->n_rounds && !err; i++) {
		mx_key(m, MATRIX_NO_PATTERN, 1, m->o->rounds[i].round);
		err = null_phase(m);
		err = err ? err : check_extension(m);
		err = err ? err : empty_run(m);
	}
	return err;
}

int mx_case_n(struct matrix *m)
{
	return mx_vm(m, 0, body);
}
