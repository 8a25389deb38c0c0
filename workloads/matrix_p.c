// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/matrix_scene.h"
#include "workloads/parallel.h"

/*
 * Cases P: two vCPUs at the same time, with random loads and stores (parallel.h). In P_quiet the
 * log is got while they rest: the bitmap is compared page for page. In P_get and P_clear it is
 * collected while they run: what each collection reported must lie between the stores completed
 * before and those begun before its return, and all together are compared page for page. Nothing
 * else of these phases is: two runs on real CPUs differ.
 */
#define TURNS	    1000ull
#define CLEAR_CHUNK 256ull
#define COLLECTIONS 512u
#define POLL	    100ull /* in the profile's unit: how often the VMM looks for a turn's end */
#define ROUNDS	    3

_Static_assert(PARALLEL_VCPUS == MX_VCPUS, "the scene's vCPUs");

struct parallel {
	struct matrix *m;
	unsigned lists;
	uint32_t turns[PARALLEL_VCPUS][TURNS];
	struct parallel_collection c[COLLECTIONS];
	uint64_t *bitmaps; /* of each collection */
	uint8_t *marks;
	struct matrix_quantity *q;
};

static uint64_t words(const struct matrix *m)
{
	return (m->o->slot_pages + 63) / 64;
}

static void destroy(struct parallel *p)
{
	if (!p)
		return;
	free(p->bitmaps);
	free(p->marks);
	free(p->q);
	free(p);
}

static int create(struct matrix *m, struct parallel **out)
{
	struct parallel *p = calloc(1, sizeof(*p));

	*out = NULL;
	if (p) {
		p->m = m;
		p->bitmaps = calloc(COLLECTIONS * words(m), sizeof(*p->bitmaps));
		p->marks = malloc(m->o->slot_pages);
		p->q = calloc(2 * words(m) + 3, sizeof(*p->q));
	}
	if (!p || !p->bitmaps || !p->marks || !p->q) {
		destroy(p);
		kvmsim_err(m->o->errors, KVMSIM_ENOMEM, "matrix: out of memory");
		return KVMSIM_ENOMEM;
	}
	*out = p;
	return 0;
}

/* The next lists into guest memory, two entries in each word. */
static void load_lists(struct parallel *p)
{
	struct matrix *m = p->m;

	_Static_assert(TURNS <= MX_VCPU_ENTRIES && TURNS % 2 == 0, "whole words of the lists");
	for (unsigned v = 0; v < PARALLEL_VCPUS; v++) {
		uint32_t *turns = p->turns[v];

		parallel_list(v, p->lists, m->o->slot_pages, TURNS, turns);
		for (uint64_t i = 0; i < TURNS; i += 2) {
			uint64_t low = (MX_TEST + PARALLEL_PAGE(turns[i]) * 4096ull) |
				       PARALLEL_WRITE(turns[i]);
			uint64_t high = (MX_TEST + PARALLEL_PAGE(turns[i + 1]) * 4096ull) |
					PARALLEL_WRITE(turns[i + 1]);

			kvm_write_guest_u64(m->kvm, MX_LIST + (v * MX_VCPU_ENTRIES + i) * 4,
					    low | high << 32);
		}
		kvm_write_guest_u64(m->kvm, MX_LEFT(v), TURNS);
		vcpu_set_regs(m->vcpus[v]);
	}
	p->lists++;
}

static size_t add(struct parallel *p, size_t n, const char *name, uint64_t value)
{
	p->q[n] = (struct matrix_quantity){.value = (int64_t)value};
	snprintf(p->q[n].name, sizeof(p->q[n].name), "res:%s", name);
	return n + 1;
}

static size_t add_bitmap(struct parallel *p, size_t n, const uint64_t *bitmap)
{
	for (uint64_t first = 0; first < p->m->o->slot_pages; first += 32) {
		char name[32];

		snprintf(name, sizeof(name), "pages[%llu]", (unsigned long long)first);
		n = add(p, n, name, (uint32_t)(bitmap[first / 64] >> (first % 64)));
	}
	return n;
}

/* ---- P_quiet ---- */

static int run_both(struct parallel *p)
{
	struct mx_thread t[MX_VCPUS];
	int err;

	load_lists(p);
	err = mx_threads_start(p->m, t, MX_CODE_MIXED, TURNS);
	return err ? err : mx_threads_join(p->m, t);
}

static int get(struct parallel *p, const char *phase)
{
	struct matrix *m = p->m;
	long r = kvm_get_dirty_log(m->t, m->kvm, MX_SLOT, m->bitmap);

	return r < 0 ? (int)r : mx_results(m, phase, p->q, add_bitmap(p, 0, m->bitmap));
}

static int quiet_rounds(struct parallel *p, const char *phase, int rounds)
{
	int err = 0;

	for (int round = 0; round < rounds && !err; round++) {
		mx_key(p->m, MATRIX_NO_PATTERN, TURNS, round);
		err = run_both(p);
		err = err ? err : get(p, phase);
	}
	return err;
}

static int quiet(struct matrix *m)
{
	struct parallel *p;
	int err = create(m, &p);

	if (!err && m->slot_flags) {
		err = quiet_rounds(p, "get_after_populate_logged", 2);
	} else if (!err) {
		mx_key(m, MATRIX_NO_PATTERN, TURNS, 0);
		err = run_both(p);
		err = err ? err : mx_set_log(m, true);
		err = err ? err : get(p, "get_after_enable");
		err = err ? err : quiet_rounds(p, "get_after_mixed", ROUNDS);
	}
	destroy(p);
	return err;
}

int mx_case_p_quiet(struct matrix *m)
{
	int err;

	m->n_vcpus = MX_VCPUS;
	err = mx_vm(m, 0, quiet);
	return err ? err : mx_vm(m, KVM_MEM_LOG_DIRTY_PAGES, quiet);
}

/* ---- P_get, P_clear ---- */

static uint64_t completed(const struct parallel *p, const struct mx_thread *t, unsigned v)
{
	return t[v].ended ? TURNS : TURNS - kvm_read_guest_u64(p->m->kvm, MX_LEFT(v));
}

static int collect_one(struct parallel *p, const struct mx_thread *t, unsigned k)
{
	struct parallel_collection *c = &p->c[k];
	uint64_t *bitmap = p->bitmaps + k * words(p->m), pages = p->m->o->slot_pages;
	struct matrix *m = p->m;
	int err = sync(m->t);
	long r;

	c->bitmap = bitmap;
	for (unsigned v = 0; v < PARALLEL_VCPUS; v++)
		c->completed[v] = completed(p, t, v);
	r = err ? err : kvm_get_dirty_log(m->t, m->kvm, MX_SLOT, bitmap);
	err = r < 0 ? (int)r : 0;
	for (uint64_t first = 0; m->dirty && first < pages && !err; first += CLEAR_CHUNK)
		err = kvm_clear_dirty_log(m->t, m->kvm, MX_SLOT, first,
					  pages - first < CLEAR_CHUNK ? pages - first : CLEAR_CHUNK,
					  bitmap + first / 64);
	err = err ? err : sync(m->t);
	for (unsigned v = 0; v < PARALLEL_VCPUS; v++)
		c->begun[v] = completed(p, t, v) + !t[v].ended;
	return err;
}

/* Until a vCPU has gone on: 1; until all have ended: 0; or a negative error. */
static int wait_for_turns(struct parallel *p, const struct mx_thread *t, uint64_t *seen)
{
	int err = sync(p->m->t);

	while (!err) {
		uint64_t now = completed(p, t, 0) + completed(p, t, 1);

		if (t[0].ended && t[1].ended)
			return 0;
		if (now != *seen) {
			*seen = now;
			return 1;
		}
		err = task_block_until(p->m->t, WAIT_idle, task_now(p->m->t) + POLL);
		err = err < 0 ? err : sync(p->m->t);
	}
	return err;
}

static int judge(struct parallel *p, unsigned n)
{
	const struct parallel_run run = {.slot_pages = p->m->o->slot_pages,
					 .n = TURNS,
					 .turns = {p->turns[0], p->turns[1]},
					 .c = p->c,
					 .n_collections = n};
	struct parallel_verdict v = parallel_judge(&run, p->marks);
	uint64_t *all = p->m->bitmap;
	size_t k;

	memset(all, 0, words(p->m) * sizeof(*all));
	for (uint64_t i = 0; i < n * words(p->m); i++)
		all[i % words(p->m)] |= p->bitmaps[i];
	k = add(p, 0, "missed", v.missed);
	k = add(p, k, "early", v.early);
	k = add(p, k, "concurrent", v.during > 0);
	return mx_results(p->m, "collect", p->q, add_bitmap(p, k, all));
}

static int concurrent(struct parallel *p)
{
	struct mx_thread t[MX_VCPUS];
	uint64_t seen = 0;
	unsigned n = 0;
	int r;

	load_lists(p);
	r = mx_threads_start(p->m, t, MX_CODE_MIXED, TURNS);
	while (!r && n < COLLECTIONS - 1 && (r = wait_for_turns(p, t, &seen)) > 0)
		r = collect_one(p, t, n++);
	r = r < 0 ? r : mx_threads_join(p->m, t);
	r = r ? r : collect_one(p, t, n++);
	return r ? r : judge(p, n);
}

static int collecting(struct matrix *m)
{
	struct parallel *p;
	int err = create(m, &p);

	for (int round = 0; round < ROUNDS && !err; round++) {
		mx_key(m, MATRIX_NO_PATTERN, TURNS, round);
		err = concurrent(p);
	}
	destroy(p);
	return err;
}

int mx_case_p_get(struct matrix *m)
{
	m->n_vcpus = MX_VCPUS;
	return mx_vm(m, KVM_MEM_LOG_DIRTY_PAGES, collecting);
}

int mx_case_p_clear(struct matrix *m)
{
	m->n_vcpus = MX_VCPUS;
	m->dirty = "manual";
	return mx_vm(m, KVM_MEM_LOG_DIRTY_PAGES, collecting);
}
