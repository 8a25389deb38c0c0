// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>

#include "workloads/matrix_interp.h"

/*
 * Case E: a device's registers, one in each of P pages, read and written again and again; slots
 * come and go elsewhere, slot 1 begins to be logged, and a slot takes the device's place for a
 * while. Each access that reaches the device exits to userspace.
 */

enum { SLOT_ELSEWHERE = 2, SLOT_BESIDE, SLOT_OVER };

#define SLOT_PAGES 256 /* 1 MiB */

static int access_all(struct matrix *m, const char *phase, enum mx_op what, unsigned times)
{
	mx_ops(m, m->vcpu);
	for (unsigned i = 0; i < times; i++) {
		for (int64_t p = 0; p < m->nr_dirty; p++)
			mx_op(m, what, MX_MMIO + (uint64_t)p * 4096, i);
	}
	return mx_ops_run(m, phase);
}

static int read_all(struct matrix *m, const char *phase)
{
	return access_all(m, phase, MX_OP_READ4, 1);
}

static int write_all(struct matrix *m, const char *phase)
{
	return access_all(m, phase, MX_OP_WRITE4, 1);
}

/* One phase; without pages the slot goes. */
static int set_slot(struct matrix *m, const char *phase, uint32_t slot, uint64_t gpa,
		    uint64_t npages)
{
	const struct kvm_memory_region r = {
		.slot = slot, .base_gfn = gpa >> 12, .npages = npages, .host_populated = true};
	int err;

	mx_begin(m, phase);
	err = kvm_set_user_memory_region(m->t, m->kvm, &r);
	return err ? err : mx_end(m, NULL, 0);
}

static int accesses(struct matrix *m)
{
	const unsigned rest = m->o->device_rest ? m->o->device_rest : 99;
	char reads[32], writes[32];
	int err = read_all(m, "read_first");

	snprintf(reads, sizeof(reads), "read_rest%u", rest);
	snprintf(writes, sizeof(writes), "write_rest%u", rest);
	err = err ? err : access_all(m, reads, MX_OP_READ4, rest);
	err = err ? err : write_all(m, "write_first");
	return err ? err : access_all(m, writes, MX_OP_WRITE4, rest);
}

static int slots_elsewhere(struct matrix *m)
{
	int err = set_slot(m, "slot2_add", SLOT_ELSEWHERE, 0x20000000, SLOT_PAGES);

	err = err ? err : read_all(m, "read_after_add2");
	err = err ? err : read_all(m, "read_again");
	err = err ? err : set_slot(m, "slot3_add", SLOT_BESIDE, 0x30000000, SLOT_PAGES);
	err = err ? err : write_all(m, "write_after_add3");
	err = err ? err : write_all(m, "write_again");
	err = err ? err : mx_log(m, "slot1_log_on", true);
	err = err ? err : read_all(m, "read_after_flags");
	err = err ? err : set_slot(m, "slot3_del", SLOT_BESIDE, 0x30000000, 0);
	err = err ? err : read_all(m, "read_after_del3");
	return err ? err : read_all(m, "read_again_del3");
}

static int slot_over(struct matrix *m)
{
	int err = set_slot(m, "slot4_add_over_mmio", SLOT_OVER, MX_MMIO, (uint64_t)m->nr_dirty);

	err = err ? err : read_all(m, "read_ram_over_mmio");
	err = err ? err : write_all(m, "write_ram_over_mmio");
	err = err ? err : set_slot(m, "slot4_del", SLOT_OVER, MX_MMIO, 0);
	err = err ? err : read_all(m, "read_mmio_again");
	err = err ? err : read_all(m, "read_mmio_again2");
	return err ? err : access_all(m, "inc_first", MX_OP_INC4, 1);
}

static int body(struct matrix *m)
{
	int err;

	mx_key(m, MATRIX_ROUNDROBIN, m->device_pages, MATRIX_NONE);
	err = accesses(m);
	err = err ? err : slots_elsewhere(m);
	return err ? err : slot_over(m);
}

static int each_size(struct matrix *m)
{
	static const int64_t pages[] = {1, 2, 8};
	int err = 0;

	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages) && !err; i++) {
		m->device_pages = pages[i];
		err = mx_vm(m, 0, body);
	}
	return err;
}

int mx_case_e_caching1(struct matrix *m)
{
	return each_size(m);
}

/* kvm.mmio_caching=0 */
int mx_case_e_caching0(struct matrix *m)
{
	m->spte = "vcpu-cache";
	return each_size(m);
}
