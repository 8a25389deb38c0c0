// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/matrix_interp.h"

/*
 * Case I: the exits by themselves. A hundred of OUT, HLT, INVLPG and MOV to CR3 of the value that
 * it has, a thousand reads that hit, a list without ops.
 */

#define TIMES 100

static void ops(struct matrix *m, unsigned n, enum mx_op what, uint64_t address, uint64_t value)
{
	mx_ops(m, m->vcpu);
	for (unsigned i = 0; i < n; i++)
		mx_op(m, what, address, value);
}

static int body(struct matrix *m)
{
	int err;

	mx_key(m, MATRIX_NO_PATTERN, TIMES, MATRIX_NONE);
	ops(m, TIMES, MX_OP_OUT, 0, 0);
	err = mx_ops_run_outs(m, "out_x100", TIMES);
	ops(m, TIMES, MX_OP_HLT, 0, 0);
	err = err ? err : mx_ops_run(m, "hlt_x100");
	ops(m, 10 * TIMES, MX_OP_READ4, MX_LIST, 0);
	err = err ? err : mx_ops_run(m, "read_mapped_x1000");
	if (m->o->pte != MATRIX_PTE_NONE) {
		ops(m, TIMES, MX_OP_INVLPG, MX_TEST, 0);
		err = err ? err : mx_ops_run(m, "invlpg_x100");
		ops(m, TIMES, MX_OP_MOV_CR3, 0, MX_PML4);
		err = err ? err : mx_ops_run(m, "cr3_same_x100");
	}
	mx_ops(m, m->vcpu);
	return err ? err : mx_ops_run(m, "empty");
}

int mx_case_i(struct matrix *m)
{
	return mx_vm(m, 0, body);
}
