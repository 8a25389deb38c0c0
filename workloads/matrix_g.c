// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/matrix_scene.h"

/*
 * Cases G_eagerY and G_eagerN: dirty logging of a slot behind which the host has pages of 2 MiB,
 * with the module's parameter eager_page_split on and off. Then two more VMs, with
 * KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2, without and with initially-all-set.
 */

static int rounds(struct matrix *m)
{
	int err = 0;

	for (size_t i = 0; i < m->o->n_rounds && !err; i++) {
		const struct matrix_round *r = &m->o->rounds[i];

		mx_key(m, r->pattern, r->nr_dirty, r->round);
		err = mx_loop(m, "write_even64", MX_CODE_WRITE, (uint64_t)r->nr_dirty);
		err = err ? err : mx_get(m, "get_dirty_log");
	}
	return err;
}

static int masked(struct matrix *m)
{
	static const struct mx_step before[] = {
		{"populate_write", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"enable_log", MX_LOG_ON, 0, 0, 0},
		{0}};
	static const struct mx_step after[] = {
		{"read_all_logged", MX_LOOP, MX_CODE_READ, MATRIX_SEQUENTIAL, 0},
		{"write_all_logged", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"get_all", MX_GET, 0, 0, 0},
		{"disable_log", MX_LOG_OFF, 0, 0, 0},
		{"touch_write_after_disable", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"enable_log_2", MX_LOG_ON, 0, 0, 0},
		{"write_all_logged_2", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"get_all_2", MX_GET, 0, 0, 0},
		{0}};
	int err = mx_script(m, before);

	err = err ? err : rounds(m);
	return err ? err : mx_script(m, after);
}

/* Its first phases are written under the key of `setup`. */
static int manual(struct matrix *m)
{
	static const struct mx_step steps[] = {
		{"m1_write_even64", MX_LOOP, MX_CODE_WRITE, MATRIX_EVEN, 64},
		{"m1_get", MX_GET, 0, 0, 0},
		{"m1_clear", MX_CLEAR, 0, 0, 0},
		{"m1_disable_log", MX_LOG_OFF, 0, 0, 0},
		{0}};
	int err = mx_loop(m, "m1_populate_write", MX_CODE_WRITE, m->o->slot_pages);

	err = err ? err : mx_log(m, "m1_enable_log", true);
	return err ? err : mx_script(m, steps);
}

static int manual_all_set(struct matrix *m)
{
	static const struct mx_step steps[] = {
		{"m3_populate_write", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"m3_enable_log", MX_LOG_ON, 0, 0, 0},
		{"m3_get_initial", MX_GET, 0, 0, 0},
		{"m3_clear_chunk64", MX_CLEAR, 0, 0, 64},
		{"m3_write_even64", MX_LOOP, MX_CODE_WRITE, MATRIX_EVEN, 64},
		{"m3_get", MX_GET, 0, 0, 0},
		{"m3_clear", MX_CLEAR, 0, 0, 0},
		{"m3_disable_log", MX_LOG_OFF, 0, 0, 0},
		{0}};

	return mx_script(m, steps);
}

static int vm(struct matrix *m, const char *dirty, int (*body)(struct matrix *m))
{
	m->dirty = dirty;
	return mx_vm(m, 0, body);
}

static int vms(struct matrix *m, enum kvm_eager_page_split eager)
{
	int err;

	m->host_level = 2;
	m->eager_page_split = eager;
	err = vm(m, NULL, masked);
	err = err ? err : vm(m, "manual", manual);
	return err ? err : vm(m, "manual,initially-all-set=1", manual_all_set);
}

int mx_case_g_eager_y(struct matrix *m)
{
	return vms(m, EAGER_PAGE_SPLIT_ON);
}

int mx_case_g_eager_n(struct matrix *m)
{
	return vms(m, EAGER_PAGE_SPLIT_OFF);
}
