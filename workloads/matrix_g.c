// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/matrix_scene.h"

/*
 * Cases G_eagerY and G_eagerN: dirty logging of a slot behind which the host has pages of 2 MiB,
 * with the module's parameter eager_page_split on and off. Then two more VMs, with
 * KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2, without and with initially-all-set.
 *
 * Cases G_mixY and G_mixN, beside the matrix: what those leave out. Reads first, logging that ends
 * when some mappings are split, a slot that is logged from the start, stores before the first
 * CLEAR.
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

static int mix(struct matrix *m)
{
	static const struct mx_step steps[] = {
		{"populate_read", MX_LOOP, MX_CODE_READ, MATRIX_EVEN, 64},
		{"write_after_read", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"enable_log", MX_LOG_ON, 0, 0, 0},
		{"write_random64", MX_LOOP, MX_CODE_WRITE, MATRIX_RANDOM, 64},
		{"get_random64", MX_GET, 0, 0, 0},
		{"read_clustered160", MX_LOOP, MX_CODE_READ, MATRIX_CLUSTERED16, 160},
		{"get_after_read", MX_GET, 0, 0, 0},
		{"disable_log", MX_LOG_OFF, 0, 0, 0},
		{"read_after_disable", MX_LOOP, MX_CODE_READ, MATRIX_EVEN, 64},
		{"write_after_disable", MX_LOOP, MX_CODE_WRITE, MATRIX_RANDOM, 200},
		{"enable_log_2", MX_LOG_ON, 0, 0, 0},
		{"write_random200", MX_LOOP, MX_CODE_WRITE, MATRIX_RANDOM, 200},
		{"get_random200", MX_GET, 0, 0, 0},
		{"write_64", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 64},
		{"disable_log_2", MX_LOG_OFF, 0, 0, 0},
		{"inc_64", MX_LOOP, MX_CODE_INC, MATRIX_SEQUENTIAL, 64},
		{0}};

	return mx_script(m, steps);
}

static int logged_first(struct matrix *m)
{
	static const struct mx_step steps[] = {
		{"populate_write_logged", MX_LOOP, MX_CODE_WRITE, MATRIX_EVEN, 128},
		{"get_logged", MX_GET, 0, 0, 0},
		{"disable_logged", MX_LOG_OFF, 0, 0, 0},
		{"read_after_logged", MX_LOOP, MX_CODE_READ, MATRIX_RANDOM, 200},
		{"write_all_after_logged", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"enable_log_3", MX_LOG_ON, 0, 0, 0},
		{"write_all_3", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"get_3", MX_GET, 0, 0, 0},
		{0}};

	return mx_script(m, steps);
}

static int mix_all_set(struct matrix *m)
{
	static const struct mx_step steps[] = {
		{"a3_populate_write", MX_LOOP, MX_CODE_WRITE, MATRIX_EVEN, 200},
		{"a3_enable_log", MX_LOG_ON, 0, 0, 0},
		{"a3_get", MX_GET, 0, 0, 0},
		{"a3_write_between", MX_LOOP, MX_CODE_WRITE, MATRIX_RANDOM, 64},
		{"a3_clear_chunk64", MX_CLEAR, 0, 0, 64},
		{"a3_write", MX_LOOP, MX_CODE_WRITE, MATRIX_RANDOM, 64},
		{"a3_get_2", MX_GET, 0, 0, 0},
		{"a3_clear_all", MX_CLEAR, 0, 0, 0},
		{"a3_write_clustered160", MX_LOOP, MX_CODE_WRITE, MATRIX_CLUSTERED16, 160},
		{"a3_get_3", MX_GET, 0, 0, 0},
		{"a3_disable_log", MX_LOG_OFF, 0, 0, 0},
		{"a3_write_after", MX_LOOP, MX_CODE_WRITE, MATRIX_CLUSTERED16, 160},
		{0}};

	return mx_script(m, steps);
}

static int vm(struct matrix *m, const char *dirty, uint32_t flags, int (*body)(struct matrix *m))
{
	m->dirty = dirty;
	return mx_vm(m, flags, body);
}

static int eager(struct matrix *m, enum kvm_eager_page_split split)
{
	int err;

	m->host_level = 2;
	m->eager_page_split = split;
	err = vm(m, NULL, 0, masked);
	err = err ? err : vm(m, "manual", 0, manual);
	return err ? err : vm(m, "manual,initially-all-set=1", 0, manual_all_set);
}

static int mixed(struct matrix *m, enum kvm_eager_page_split split)
{
	int err;

	m->host_level = 2;
	m->eager_page_split = split;
	err = vm(m, NULL, 0, mix);
	err = err ? err : vm(m, NULL, KVM_MEM_LOG_DIRTY_PAGES, logged_first);
	return err ? err : vm(m, "manual,initially-all-set=1", 0, mix_all_set);
}

int mx_case_g_eager_y(struct matrix *m)
{
	return eager(m, EAGER_PAGE_SPLIT_ON);
}

int mx_case_g_eager_n(struct matrix *m)
{
	return eager(m, EAGER_PAGE_SPLIT_OFF);
}

int mx_case_g_mix_y(struct matrix *m)
{
	return mixed(m, EAGER_PAGE_SPLIT_ON);
}

int mx_case_g_mix_n(struct matrix *m)
{
	return mixed(m, EAGER_PAGE_SPLIT_OFF);
}
