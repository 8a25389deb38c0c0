// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/matrix_scene.h"

/*
 * Case H: two vCPUs, each with its half of the slot. Two rounds one after the other on the VMM's
 * own thread; then, with logging on, two rounds in two threads at once, and the log got after each.
 */

static int body(struct matrix *m)
{
	static const char *const phases[] = {"populate_seq_v0_then_v1", "populate2",
					     "dirty_all_logged_2threads",
					     "dirty_all_logged_2threads"};
	int64_t all = (int64_t)m->o->slot_pages;
	int err = 0;

	m->had_threads = false;
	for (int round = 0; round < 4 && !err; round++) {
		bool logged = round >= 2;

		mx_key(m, MATRIX_HALVES, all, round);
		if (round == 2)
			err = mx_log(m, "enable_log", true);
		err = err ? err : mx_halves(m, phases[round], MX_CODE_WRITE, logged);
		if (!err && logged)
			err = mx_get(m, "get_dirty_log");
	}
	mx_key(m, MATRIX_HALVES, all, MATRIX_NONE);
	return err ? err : mx_log(m, "disable_log", false);
}

int mx_case_h(struct matrix *m)
{
	m->n_vcpus = MX_VCPUS;
	return mx_vm(m, 0, body);
}
