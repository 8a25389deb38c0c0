// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/sim/ledger.h"
#include "workloads/matrix_scene.h"

#define SLOT0 0

/* ---- building ---- */

static int set_slot1(struct matrix *m, uint32_t flags)
{
	const struct kvm_memory_region test = {.slot = MX_SLOT,
					       .flags =
						       flags | (m->readonly ? KVM_MEM_READONLY : 0),
					       .base_gfn = MX_TEST >> 12,
					       .npages = m->o->slot_pages,
					       .host_populated = !m->host_absent,
					       .host_anonymous = m->host_anonymous,
					       .host_level = m->host_level};

	return kvm_set_user_memory_region(m->t, m->kvm, &test);
}

static int make_vcpu(struct matrix *m, uint32_t i)
{
	int err = kvm_create_vcpu(m->kvm, &m->vcpus[i]);

	if (err)
		return err;
	vcpu_bind(m->vcpus[i], m->t);
	if (m->o->pte != MATRIX_PTE_NONE)
		vcpu_set_cr3(m->vcpus[i], mx_root(m, 0));
	return 0;
}

static int set_slot0(struct matrix *m, uint32_t flags)
{
	const struct kvm_memory_region low = {.slot = SLOT0,
					      .flags = flags,
					      .base_gfn = 0,
					      .npages = MX_SLOT0_PAGES,
					      .host_populated = true};

	return kvm_set_user_memory_region(m->t, m->kvm, &low);
}

static int vmm(struct task *t, void *arg)
{
	struct matrix *m = arg;
	int err;

	m->t = t;
	mx_page_tables(m);
	err = set_slot0(m, 0);
	err = err ? err : set_slot1(m, m->slot_flags);
	for (uint32_t i = 0; i < (m->n_vcpus ? m->n_vcpus : 1) && !err; i++)
		err = make_vcpu(m, i);
	m->vcpu = m->vcpus[0];
	if (!err && m->prepare)
		err = m->prepare(m);
	err = err ? err : mx_setup(m);
	err = err ? err : m->body(m);
	if (!err && m->o->check)
		err = kvm_check(m->kvm);
	return err;
}

int mx_vm(struct matrix *m, uint32_t slot_flags, int (*body)(struct matrix *m))
{
	const struct sim_opts so = {
		.vocabulary = &model_vocabulary, .profile = m->o->profile, .errors = m->o->errors};
	const struct kvm_observer observer = {.event = mx_count_event, .ctx = &m->counters};
	const bool npt = m->o->mmu == MMU_TDP_RMAP || m->o->mmu == MMU_TDP;
	struct kvm_vm_opts vo = {.paging = npt ? PAGING_TDP : PAGING_SHADOW,
				 .preset = m->o->preset		  ? m->o->preset
					   : m->o->mmu == MMU_TDP ? "6.1-tdp"
								  : "6.1-shadow",
				 .mode = mx_guest(m),
				 .dirty = m->dirty ? m->dirty : m->o->dirty,
				 .spte = m->spte ? m->spte : m->o->spte,
				 .personality = m->o->cpu ? m->o->cpu : "tcg",
				 .eager_page_split = m->eager_page_split,
				 .observer = &observer,
				 .check = m->o->check};
	const struct task_opts to = {.name = "vmm", .fn = vmm, .arg = m, .stack_bytes = 256 << 10};
	struct task *t;
	int err = sim_create(&so, &m->sim);

	if (err)
		return err;
	vo.sim = m->sim;
	m->slot_flags = slot_flags;
	m->body = body;
	err = kvm_create_vm(&vo, &m->kvm);
	if (!err) {
		err = task_create(m->sim, &to, &t);
		err = err ? err : sim_run(m->sim, CYCLES_MAX);
		err = err ? err : sim_check_ledger(m->sim);
	}
	sim_destroy(m->sim); /* its tasks end first: they still use the VM */
	kvm_destroy_vm(m->kvm);
	m->sim = NULL;
	m->kvm = NULL;
	return err;
}

/* ---- phases ---- */

void mx_key(struct matrix *m, enum matrix_pattern pattern, int64_t nr_dirty, int64_t round)
{
	m->pattern = pattern;
	m->nr_dirty = nr_dirty;
	m->round = round;
}

static uint64_t count_now(const struct matrix *m, uint16_t count)
{
	return ledger_sum_count(sim_ledger(m->sim), LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, count)
		.n;
}

void mx_begin(struct matrix *m, const char *phase)
{
	m->phase = phase;
	m->counters.n = 0;
	m->counters.overflow = false;
	for (int i = 0; i < N_KVM_STATS; i++)
		m->stats[i] = kvm_stat(m->kvm, (enum kvm_stat_id)i);
	for (uint16_t i = 0; i < N_COUNTS; i++)
		m->counts[i] = count_now(m, i);
	m->began = task_now(m->t);
	m->counters.on = true;
}

static unsigned occurrence(struct matrix *m)
{
	for (size_t i = 0; i < m->n_seen; i++) {
		struct mx_seen *s = &m->seen[i];

		if (!strcmp(s->name, m->phase) && s->key.pattern == m->pattern &&
		    s->key.nr_dirty == m->nr_dirty && s->key.round == m->round)
			return ++s->times;
	}
	struct mx_seen *grown = realloc(m->seen, (m->n_seen + 1) * sizeof(*grown));

	if (!grown)
		return 0;
	m->seen = grown;
	m->seen[m->n_seen] =
		(struct mx_seen){.key = {m->pattern, m->nr_dirty, m->round}, .times = 1};
	snprintf(m->seen[m->n_seen++].name, sizeof(m->seen->name), "%s", m->phase);
	return 1;
}

static size_t stat_quantities(const struct matrix *m, struct matrix_quantity *out)
{
	size_t n = 0;

	for (int i = 0; i < N_KVM_STATS; i++) {
		uint64_t now = kvm_stat(m->kvm, (enum kvm_stat_id)i);
		int64_t delta = (int64_t)(now - m->stats[i]);
		bool gauge = kvm_stat_is_gauge((enum kvm_stat_id)i);

		if (!delta && !(gauge && now))
			continue;
		out[n] = (struct matrix_quantity){
			.value = delta, .gauge = gauge, .abs_after = gauge ? now : 0};
		snprintf(out[n++].name, sizeof(out->name), "stat:%s",
			 kvm_stat_name((enum kvm_stat_id)i));
	}
	return n;
}

static void add_result(struct matrix_quantity *q, const char *name, int64_t value)
{
	*q = (struct matrix_quantity){.value = value};
	snprintf(q->name, sizeof(q->name), "res:%s", name);
}

int mx_end(struct matrix *m, const char *result, int64_t value)
{
	const size_t room = MX_MAX_QUANTITIES - m->n_results - 1;
	struct matrix_phase p = {.name = m->phase,
				 .pattern = m->pattern,
				 .nr_dirty = m->nr_dirty,
				 .round = m->round,
				 .quantities = m->quantities};
	size_t n;
	long got;

	_Static_assert(MX_MAX_QUANTITIES >= N_KVM_STATS + 2 * MX_MAX_COUNTERS + 4,
		       "one per statistic, an event's total and kind, and the results");
	m->counters.on = false;
	p.cycles = task_now(m->t) - m->began;
	for (uint16_t i = 0; i < N_COUNTS; i++)
		p.counts[i] = count_now(m, i) - m->counts[i];
	n = stat_quantities(m, m->quantities);
	got = mx_event_quantities(&m->counters, m->quantities + n, room - n);
	p.occurrence = occurrence(m);
	if (got < 0 || !p.occurrence)
		return kvmsim_err(m->o->errors, KVMSIM_ENOMEM, "phase %s: out of memory", m->phase);
	n += (size_t)got;
	for (size_t i = 0; i < m->n_results; i++)
		add_result(&m->quantities[n++], m->results[i].name, *m->results[i].value);
	if (result)
		add_result(&m->quantities[n++], result, value);
	p.n_quantities = n;
	return m->o->phase ? m->o->phase(m->o->ctx, &p) : 0;
}

int mx_results(struct matrix *m, const char *phase, const struct matrix_quantity *q, size_t n)
{
	struct matrix_phase p = {.name = phase,
				 .pattern = m->pattern,
				 .nr_dirty = m->nr_dirty,
				 .round = m->round,
				 .quantities = q,
				 .n_quantities = n};

	m->phase = phase;
	p.occurrence = occurrence(m);
	if (!p.occurrence)
		return kvmsim_err(m->o->errors, KVMSIM_ENOMEM, "phase %s: out of memory", phase);
	return m->o->phase ? m->o->phase(m->o->ctx, &p) : 0;
}

/* ---- ioctls ---- */

int mx_set_log(struct matrix *m, bool on)
{
	return set_slot1(m, on ? KVM_MEM_LOG_DIRTY_PAGES : 0);
}

int mx_log(struct matrix *m, const char *phase, bool on)
{
	int err;

	mx_begin(m, phase);
	err = mx_set_log(m, on);
	return err ? err : mx_end(m, NULL, 0);
}

int mx_get_slot(struct matrix *m, const char *phase, uint32_t slot, uint64_t pages)
{
	uint64_t words = (pages + 63) / 64;
	int64_t n_dirty = 0;
	long r;

	mx_begin(m, phase);
	r = kvm_get_dirty_log(m->t, m->kvm, slot, m->bitmap);
	if (r < 0)
		return (int)r;
	for (uint64_t i = 0; i < words; i++)
		n_dirty += __builtin_popcountll(m->bitmap[i]);
	return mx_end(m, "ndirty", n_dirty);
}

int mx_get(struct matrix *m, const char *phase)
{
	return mx_get_slot(m, phase, MX_SLOT, m->o->slot_pages);
}

int mx_log_slot0(struct matrix *m, const char *phase)
{
	int err;

	mx_begin(m, phase);
	err = set_slot0(m, KVM_MEM_LOG_DIRTY_PAGES);
	return err ? err : mx_end(m, NULL, 0);
}

int mx_get_slot0_k(struct matrix *m, const char *base, int k)
{
	char phase[40];

	snprintf(phase, sizeof(phase), "%s_k%d", base, k);
	mx_key(m, m->pattern, m->nr_dirty, k);
	return mx_get_slot(m, phase, SLOT0, MX_SLOT0_PAGES);
}

int mx_clear(struct matrix *m, const char *phase, uint64_t chunk)
{
	uint64_t slot = m->o->slot_pages;
	int64_t calls = 0;

	mx_begin(m, phase);
	for (uint64_t first = 0; first < slot; first += chunk, calls++) {
		int err = kvm_clear_dirty_log(m->t, m->kvm, MX_SLOT, first,
					      slot - first < chunk ? slot - first : chunk,
					      m->bitmap + first / 64);

		if (err)
			return err;
	}
	return mx_end(m, "nioctl", calls);
}

int mx_script(struct matrix *m, const struct mx_step *s)
{
	int err = 0;

	for (; s->phase && !err; s++) {
		uint64_t n = s->n ? s->n : m->o->slot_pages;

		switch (s->what) {
		case MX_LOOP:
			mx_key(m, s->pattern, (int64_t)n, MATRIX_NONE);
			err = mx_loop(m, s->phase, s->code, n);
			break;
		case MX_LOG_ON:
		case MX_LOG_OFF:
			err = mx_log(m, s->phase, s->what == MX_LOG_ON);
			break;
		case MX_GET:
			err = mx_get(m, s->phase);
			break;
		case MX_CLEAR:
			err = mx_clear(m, s->phase, n);
			break;
		}
	}
	return err;
}
