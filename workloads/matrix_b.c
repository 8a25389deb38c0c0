// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/matrix_scene.h"

/*
 * Case B: GET_DIRTY_LOG. Everything is mapped and dirtied once, then rounds of "write these pages,
 * harvest", then logging is switched off and on again.
 */

static int rounds(struct matrix *m)
{
	int err = 0;

	for (size_t i = 0; i < m->o->n_rounds && !err; i++) {
		const struct matrix_round *r = &m->o->rounds[i];

		mx_key(m, r->pattern, r->nr_dirty, r->round);
		if (r->nr_dirty > 0)
			err = mx_loop(m, "write", MX_CODE_WRITE, (uint64_t)r->nr_dirty);
		err = err ? err : mx_get(m, "get_dirty_log");
	}
	return err;
}

static int body(struct matrix *m)
{
	static const struct mx_step before[] = {
		{"populate_write", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"enable_log", MX_LOG_ON, 0, 0, 0},
		{"get_empty_after_enable", MX_GET, 0, 0, 0},
		{"dirty_all", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"get_all", MX_GET, 0, 0, 0},
		{0}};
	static const struct mx_step after[] = {
		{"disable_log", MX_LOG_OFF, 0, 0, 0},
		{"write_after_disable", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"enable_log_2", MX_LOG_ON, 0, 0, 0},
		{"dirty_all_2", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"get_all_2", MX_GET, 0, 0, 0},
		{"read_all_after_get", MX_LOOP, MX_CODE_READ, MATRIX_SEQUENTIAL, 0},
		{0}};
	int err = mx_script(m, before);

	err = err ? err : rounds(m);
	mx_key(m, MATRIX_SEQUENTIAL, (int64_t)m->o->slot_pages, MATRIX_NONE);
	return err ? err : mx_script(m, after);
}

int mx_case_b(struct matrix *m)
{
	return mx_vm(m, 0, body);
}
