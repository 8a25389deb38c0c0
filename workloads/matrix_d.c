// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/guest/ring.h"
#include "workloads/matrix_scene.h"

/*
 * Case D: dirty rings. A vCPU whose ring is full leaves the guest; its thread collects that ring
 * and has all of them reset. First the whole slot is written, twice; then rounds of "write these
 * pages, collect and reset". The ring has 1,024 entries; in cases D_256 and D_4096, others.
 *
 * Case D_256 ends with collecting and resetting apart, and a reset of nothing.
 *
 * Case D_mix: reads that dirty, and entries that are still in the ring when logging ends and begins
 * anew. Case D_2vcpu: two vCPUs, each with its ring and its half of the slot.
 */

static int reset(struct matrix *m, struct task *t)
{
	long n = kvm_reset_dirty_rings(t, m->kvm);

	if (n < 0)
		return (int)n;
	m->ring.returned += n;
	return 0;
}

static int collect(struct matrix *m, struct kvm_vcpu *v, struct task *t)
{
	long n = kvm_collect_dirty_ring(t, v);

	if (n < 0)
		return (int)n;
	m->ring.collected += n;
	return 0;
}

static int on_full(struct kvm_vcpu *v, void *ctx)
{
	struct matrix *m = ctx;
	int err = collect(m, v, vcpu_task(v));

	m->ring.full++;
	return err ? err : reset(m, vcpu_task(v));
}

static void result(struct matrix *m, const char *name, const int64_t *value)
{
	m->results[m->n_results++] = (struct mx_result){name, value};
}

int mx_rings(struct matrix *m, const char *phase, unsigned what)
{
	int err = 0;

	m->ring = (struct mx_ring){0};
	if (what & MX_COLLECT)
		result(m, "collected", &m->ring.collected);
	if (what & MX_RESET)
		result(m, "reset_returned", &m->ring.returned);
	mx_begin(m, phase);
	for (uint32_t i = 0; (what & MX_COLLECT) && i < MX_VCPUS && m->vcpus[i] && !err; i++)
		err = collect(m, m->vcpus[i], m->t);
	if (!err && (what & MX_RESET))
		err = reset(m, m->t);
	err = err ? err : mx_end(m, NULL, 0);
	m->n_results = 0;
	return err;
}

static int reset_phase(struct matrix *m, const char *phase)
{
	return mx_rings(m, phase, MX_COLLECT | MX_RESET);
}

/* The phase that follows tells of full rings; @all: and of what that made of them. */
static void expect_full(struct matrix *m, bool all)
{
	m->ring = (struct mx_ring){0};
	result(m, "ring_full_exits", &m->ring.full);
	if (!all)
		return;
	result(m, "collected_in_full", &m->ring.collected);
	result(m, "reset_returned", &m->ring.returned);
}

static int loop_phase(struct matrix *m, const char *phase, uint64_t code, uint64_t n)
{
	int err = mx_loop(m, phase, code, n);

	m->n_results = 0;
	return err;
}

static int whole_slot(struct matrix *m)
{
	int64_t all = (int64_t)m->o->slot_pages;
	int err = 0;

	for (int64_t round = 1; round <= 2 && !err; round++) {
		mx_key(m, MATRIX_SEQUENTIAL, all, round);
		expect_full(m, true);
		err = loop_phase(m, "write_all_with_resets", MX_CODE_WRITE, (uint64_t)all);
		err = err ? err : reset_phase(m, "final_reset");
	}
	return err;
}

/* The file has the rounds of the whole slot beside the others. */
static int rounds(struct matrix *m)
{
	int err = 0;

	for (size_t i = 0; i < m->o->n_rounds && !err; i++) {
		const struct matrix_round *r = &m->o->rounds[i];

		if (r->pattern == MATRIX_SEQUENTIAL && r->nr_dirty == (int64_t)m->o->slot_pages)
			continue;
		mx_key(m, r->pattern, r->nr_dirty, r->round);
		expect_full(m, false);
		err = loop_phase(m, "write", MX_CODE_WRITE, (uint64_t)r->nr_dirty);
		err = err ? err : reset_phase(m, "reset");
	}
	return err;
}

static int log_off(struct matrix *m)
{
	mx_key(m, MATRIX_NO_PATTERN, (int64_t)m->o->slot_pages, MATRIX_NONE);
	return mx_log(m, "disable_log", false);
}

static int to_the_rounds(struct matrix *m)
{
	static const struct mx_step before[] = {
		{"populate_write", MX_LOOP, MX_CODE_WRITE, MATRIX_SEQUENTIAL, 0},
		{"enable_log", MX_LOG_ON, 0, 0, 0},
		{0}};
	int err;

	kvm_on_ring_full(m->kvm, on_full, m);
	err = mx_script(m, before);
	err = err ? err : whole_slot(m);
	return err ? err : rounds(m);
}

static int body(struct matrix *m)
{
	int err = to_the_rounds(m);

	return err ? err : log_off(m);
}

static int body_256(struct matrix *m)
{
	static const struct mx_step more[] = {
		{"write_more", MX_LOOP, MX_CODE_WRITE, MATRIX_RANDOM, 150}, {0}};
	int err = to_the_rounds(m);

	err = err ? err : mx_script(m, more);
	err = err ? err : mx_rings(m, "collect_only", MX_COLLECT);
	err = err ? err : mx_rings(m, "reset_only", MX_RESET);
	err = err ? err : mx_rings(m, "reset_empty", MX_RESET);
	return err ? err : log_off(m);
}

static int mix(struct matrix *m)
{
	static const struct mx_step first[] = {
		{"read_logged", MX_LOOP, MX_CODE_READ, MATRIX_SEQUENTIAL, 300}, {0}};
	static const struct mx_step second[] = {
		{"write_after_reset", MX_LOOP, MX_CODE_WRITE, MATRIX_RANDOM, 400},
		{"inc", MX_LOOP, MX_CODE_INC, MATRIX_CLUSTERED16, 500},
		{"disable_log", MX_LOG_OFF, 0, 0, 0},
		{"write_unlogged", MX_LOOP, MX_CODE_WRITE, MATRIX_EVEN, 40},
		{"enable_log", MX_LOG_ON, 0, 0, 0},
		{"write_logged_again", MX_LOOP, MX_CODE_WRITE, MATRIX_EVEN, 250},
		{0}};
	int err;

	kvm_on_ring_full(m->kvm, on_full, m);
	err = mx_script(m, first);
	err = err ? err : reset_phase(m, "reset_after_read");
	err = err ? err : reset_phase(m, "reset_again");
	err = err ? err : mx_script(m, second);
	err = err ? err : reset_phase(m, "reset_after_write");
	return err ? err : log_off(m);
}

static int two(struct matrix *m)
{
	int64_t all = (int64_t)m->o->slot_pages;
	int err;

	kvm_on_ring_full(m->kvm, on_full, m);
	mx_key(m, MATRIX_HALVES, all, MATRIX_NONE);
	err = mx_halves(m, "populate_write", MX_CODE_WRITE, false);
	err = err ? err : mx_log(m, "enable_log", true);
	for (int64_t round = 1; round <= 2 && !err; round++) {
		mx_key(m, MATRIX_HALVES, all, round);
		expect_full(m, true);
		err = mx_halves(m, "write_all_with_resets", MX_CODE_WRITE, false);
		m->n_results = 0;
		err = err ? err : reset_phase(m, "final_reset");
	}
	return err ? err : log_off(m);
}

static int vm(struct matrix *m, const char *dirty, uint32_t flags, int (*fn)(struct matrix *m))
{
	m->dirty = dirty;
	return mx_vm(m, flags, fn);
}

int mx_case_d(struct matrix *m)
{
	return vm(m, "ring,size=1024", 0, body);
}

int mx_case_d_256(struct matrix *m)
{
	return vm(m, "ring,size=256", 0, body_256);
}

int mx_case_d_4096(struct matrix *m)
{
	return vm(m, "ring,size=4096", 0, body);
}

int mx_case_d_mix(struct matrix *m)
{
	return vm(m, "ring,size=256", KVM_MEM_LOG_DIRTY_PAGES, mix);
}

int mx_case_d_2vcpu(struct matrix *m)
{
	m->n_vcpus = MX_VCPUS;
	return vm(m, "ring,size=256", 0, two);
}
