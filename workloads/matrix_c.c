// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>

#include "workloads/matrix_scene.h"

/*
 * Cases C_cap1 and C_cap3: GET_DIRTY_LOG and CLEAR_DIRTY_LOG with
 * KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2, without and with its initially-all-set. Rounds of "write these
 * pages, get, clear the whole slot", for three sizes of chunks.
 *
 * Cases C_store1 and C_store3: stores between GET and CLEAR.
 */

static int round_of(struct matrix *m, const struct matrix_round *r, uint64_t chunk)
{
	char write[40], get[40], clear[40];
	int err = 0;

	snprintf(write, sizeof(write), "write_before_chunk%llu", (unsigned long long)chunk);
	snprintf(get, sizeof(get), "get_before_chunk%llu", (unsigned long long)chunk);
	snprintf(clear, sizeof(clear), "clear_chunk%llu", (unsigned long long)chunk);
	mx_key(m, r->pattern, r->nr_dirty, r->round);
	if (r->nr_dirty > 0)
		err = mx_loop(m, write, MX_CODE_WRITE, (uint64_t)r->nr_dirty);
	err = err ? err : mx_get(m, get);
	return err ? err : mx_clear(m, clear, chunk);
}

static int cap(struct matrix *m)
{
	static const struct mx_step before[] = {
		{"populate_write", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"enable_log", MX_LOG_ON, 0, 0, 0},
		{"get_1st", MX_GET, 0, 0, 0},
		{"clear_all_1st", MX_CLEAR, 0, 0, 0},
		{"dirty_all", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"get_all", MX_GET, 0, 0, 0},
		{"get_all_again", MX_GET, 0, 0, 0},
		{"clear_all_chunk64", MX_CLEAR, 0, 0, 64},
		{"get_after_clear", MX_GET, 0, 0, 0},
		{0}};
	const uint64_t chunks[] = {64, 1024, m->o->slot_pages};
	int err = mx_script(m, before);

	for (size_t c = 0; c < sizeof(chunks) / sizeof(*chunks); c++) {
		for (size_t i = 0; i < m->o->n_rounds && !err; i++)
			err = round_of(m, &m->o->rounds[i], chunks[c]);
	}
	mx_key(m, MATRIX_NO_PATTERN, (int64_t)m->o->slot_pages, MATRIX_NONE);
	return err ? err : mx_log(m, "disable_log", false);
}

static int store(struct matrix *m)
{
	static const struct mx_step steps[] = {
		{"populate_write", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"enable_log", MX_LOG_ON, 0, 0, 0},
		{"get_1st", MX_GET, 0, 0, 0},
		{"clear_1st", MX_CLEAR, 0, 0, 0},
		{"write", MX_LOOP, MX_CODE_WRITE, MATRIX_EVEN, 64},
		{"get", MX_GET, 0, 0, 0},
		{"write_between", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 64},
		{"clear", MX_CLEAR, 0, 0, 64},
		{"get_after_clear", MX_GET, 0, 0, 0},
		{"write_again", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 64},
		{"write_after_clear", MX_LOOP, MX_CODE_WRITE, MATRIX_EVEN, 64},
		{"get_after_write", MX_GET, 0, 0, 0},
		{0}};
	int err = mx_script(m, steps);

	mx_key(m, MATRIX_NO_PATTERN, (int64_t)m->o->slot_pages, MATRIX_NONE);
	return err ? err : mx_log(m, "disable_log", false);
}

static int vm(struct matrix *m, const char *dirty, int (*body)(struct matrix *m))
{
	m->dirty = dirty;
	return mx_vm(m, 0, body);
}

int mx_case_c_cap1(struct matrix *m)
{
	return vm(m, "manual", cap);
}

int mx_case_c_cap3(struct matrix *m)
{
	return vm(m, "manual,initially-all-set=1", cap);
}

int mx_case_c_store1(struct matrix *m)
{
	return vm(m, "manual", store);
}

int mx_case_c_store3(struct matrix *m)
{
	return vm(m, "manual,initially-all-set=1", store);
}
