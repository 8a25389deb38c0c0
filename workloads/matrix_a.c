// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/matrix_scene.h"

/*
 * Case A: first touches. Writes, reads and read-modify-writes to pages that the MMU has not
 * mapped, in slots without and with dirty logging; each in a VM of its own.
 */

static int write_twice(struct matrix *m)
{
	static const struct mx_step steps[] = {
		{"populate_write", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"write_again", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{0}};

	return mx_script(m, steps);
}

static int read_then_write(struct matrix *m)
{
	static const struct mx_step steps[] = {
		{"populate_read", MX_LOOP, MX_CODE_READ, MATRIX_SEQUENTIAL, 0},
		{"write_after_read", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{0}};

	return mx_script(m, steps);
}

static int sparse(struct matrix *m)
{
	static const struct mx_step steps[] = {
		{"populate_write_even64", MX_LOOP, MX_CODE_WRITE, MATRIX_EVEN, 64},
		{"populate_write_random64", MX_LOOP, MX_CODE_WRITE, MATRIX_RANDOM, 64},
		{0}};

	return mx_script(m, steps);
}

static int increment(struct matrix *m)
{
	static const struct mx_step steps[] = {
		{"populate_inc64", MX_LOOP, MX_CODE_INC, MATRIX_SEQUENTIAL, 64}, {0}};

	return mx_script(m, steps);
}

static int write_logged(struct matrix *m)
{
	static const struct mx_step steps[] = {
		{"populate_write_logged", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"get_dirty_log", MX_GET, 0, 0, 0},
		{0}};

	return mx_script(m, steps);
}

static int read_logged(struct matrix *m)
{
	static const struct mx_step steps[] = {
		{"populate_read_logged", MX_LOOP, MX_CODE_READ, MATRIX_SEQUENTIAL, 0},
		{"get_dirty_log_after_read", MX_GET, 0, 0, 0},
		{"write_after_read_logged", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"get_dirty_log_after_write", MX_GET, 0, 0, 0},
		{0}};

	return mx_script(m, steps);
}

int mx_case_a(struct matrix *m)
{
	int err = mx_vm(m, 0, write_twice);

	err = err ? err : mx_vm(m, 0, read_then_write);
	err = err ? err : mx_vm(m, 0, sparse);
	err = err ? err : mx_vm(m, 0, increment);
	err = err ? err : mx_vm(m, KVM_MEM_LOG_DIRTY_PAGES, write_logged);
	return err ? err : mx_vm(m, KVM_MEM_LOG_DIRTY_PAGES, read_logged);
}
