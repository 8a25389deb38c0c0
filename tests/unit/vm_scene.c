// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/vm_scene.h"

#include <stdio.h>
#include <string.h>

#include "model/counts.h"
#include "model/params.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"

#define TABLE 0x27ull /* P RW US A */
#define LEAF  0x67ull /* and D */
#define LARGE 0xe7ull /* and PS */

char scene_message[256];

static void keep_message(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(scene_message, sizeof(scene_message), "%s", msg);
}
static const struct kvmsim_errsink errors = {keep_message, NULL};

static void count_event(void *ctx, const struct kvm_trace_event *e)
{
	struct scene *s = ctx;

	s->events[e->id]++;
	s->last[e->id] = *e;
	if (e->id == TRACE_kvm_mmu_set_spte)
		s->set_spte_ro += !e->writable;
}

static struct profile *unit_profile(const char *params)
{
	static char text[8192];
	struct profile *p = NULL;
	int n = snprintf(text, sizeof(text), "[machine]\nunit = cycles\n[price]\n");

	for (int i = 0; i < N_COUNTS; i++)
		n += snprintf(text + n, sizeof(text) - n, "%s = 1\n", model_vocabulary.counts[i]);
	snprintf(text + n, sizeof(text) - n, "[param]\n%s", params ? params : "");
	CU_ASSERT_EQUAL_FATAL(profile_parse(text, strlen(text), "unit", &model_vocabulary,
					    model_params, &errors, &p),
			      0);
	return p;
}

int scene_open(struct scene *s, const struct scene_opts *o)
{
	struct kvm_vm_opts vo = {.paging = o->paging,
				 .mode = o->pte == SCENE_FLAT ? GUEST_FLAT32 : GUEST_LONG64,
				 .preset = o->preset,
				 .dirty = o->dirty,
				 .spte = o->spte,
				 .invalidations = o->invalidations,
				 .restarts = o->restarts,
				 .personality = o->personality,
				 .watch = o->watch,
				 .observer = &s->observer,
				 .background_sps = o->background_sps,
				 .eager_page_split = o->eager_page_split,
				 .check = o->check};
	struct sim_opts so = {.vocabulary = &model_vocabulary,
			      .seed = o->seed,
			      .reference = o->reference,
			      .errors = &errors};

	memset(s, 0, sizeof(*s));
	scene_message[0] = 0;
	s->o = o;
	s->observer = (struct kvm_observer){count_event, s};
	so.profile = s->profile = unit_profile(o->params);
	CU_ASSERT_EQUAL_FATAL(sim_create(&so, &s->sim), 0);
	vo.sim = s->sim;
	return kvm_create_vm(&vo, &s->kvm);
}

void scene_close(struct scene *s)
{
	sim_destroy(s->sim);
	kvm_destroy_vm(s->kvm);
	profile_free(s->profile);
}

static void page_tables(struct scene *s)
{
	uint64_t chunks = (s->o->slot_pages + 511) / 512, pd = 0x12000, pt = 0x21000;

	if (s->o->pte == SCENE_FLAT)
		return;
	kvm_write_guest_u64(s->kvm, SCENE_PML4, 0x11000 | TABLE);
	for (uint64_t g = 0; g < 4; g++)
		kvm_write_guest_u64(s->kvm, 0x11000 + g * 8, (pd + g * 0x1000) | TABLE);
	for (uint64_t i = 0; i < 4 * 512 && s->o->pte == SCENE_2M; i++)
		kvm_write_guest_u64(s->kvm, pd + i * 8, i << 21 | LARGE);
	if (s->o->pte == SCENE_2M)
		return;
	kvm_write_guest_u64(s->kvm, pd, 0x20000 | TABLE);
	for (uint64_t i = 0; i < 512; i++)
		kvm_write_guest_u64(s->kvm, 0x20000 + i * 8, i << 12 | LEAF);
	for (uint64_t c = 0; c < chunks; c++) {
		kvm_write_guest_u64(s->kvm, pd + (128 + c) * 8, (pt + c * 0x1000) | TABLE);
		for (uint64_t i = 0; i < 512; i++)
			kvm_write_guest_u64(s->kvm, pt + c * 0x1000 + i * 8,
					    (SCENE_TEST + (c << 21) + (i << 12)) | LEAF);
	}
}

int scene_log(struct scene *s, struct task *t, bool on)
{
	const struct kvm_memory_region r = {.slot = 1,
					    .flags = on ? KVM_MEM_LOG_DIRTY_PAGES : 0,
					    .base_gfn = SCENE_TEST >> 12,
					    .npages = s->o->slot_pages,
					    .host_populated = !s->o->host_absent,
					    .host_anonymous = s->o->host_anonymous,
					    .host_level = s->o->host_level};

	return kvm_set_user_memory_region(t, s->kvm, &r);
}

int scene_task(struct task *t, void *arg)
{
	static const struct kvm_memory_region low = {.npages = 512, .host_populated = true};
	struct scene *s = arg;
	unsigned n = s->o->n_vcpus ? s->o->n_vcpus : 1;
	int r;

	page_tables(s);
	r = kvm_set_user_memory_region(t, s->kvm, &low);
	r = r ? r : scene_log(s, t, s->o->slot_flags & KVM_MEM_LOG_DIRTY_PAGES);
	for (unsigned i = 0; i < n && !r; i++) {
		r = kvm_create_vcpu(s->kvm, &s->vcpu[i]);
		if (!r)
			vcpu_set_cr3(s->vcpu[i], SCENE_PML4);
	}
	if (r)
		return r;
	vcpu_bind(s->vcpu[0], t);
	r = s->body(s, t);
	s->result = r;
	return r;
}

int scene_run(struct scene *s, int (*body)(struct scene *s, struct task *t))
{
	const struct task_opts to = {
		.name = "vmm", .fn = scene_task, .arg = s, .stack_bytes = 256 << 10};
	struct task *t;
	int r;

	s->body = body;
	CU_ASSERT_EQUAL_FATAL(task_create(s->sim, &to, &t), 0);
	r = sim_run(s->sim, CYCLES_MAX);
	r = r ? r : sim_check_ledger(s->sim);
	return r;
}

int scene(const struct scene_opts *o, int (*body)(struct scene *s, struct task *t))
{
	struct scene s;
	int r = scene_open(&s, o);

	r = r ? r : scene_run(&s, body);
	scene_close(&s);
	return r;
}

int scene_read(struct scene *s, uint64_t gva)
{
	uint64_t value;
	int r;

	do {
		r = vcpu_fetch(s->vcpu[0], SCENE_CODE);
		r = r ? r : vcpu_read(s->vcpu[0], gva, 4, &value);
	} while (r == VCPU_RESTART);
	return r;
}

int scene_write(struct scene *s, uint64_t gva, unsigned len, uint64_t value)
{
	int r;

	do {
		r = vcpu_fetch(s->vcpu[0], SCENE_CODE);
		r = r ? r : vcpu_write(s->vcpu[0], gva, len, value);
	} while (r == VCPU_RESTART);
	return r;
}

int scene_out(struct scene *s)
{
	int r;

	do {
		r = vcpu_fetch(s->vcpu[0], SCENE_CODE);
		r = r ? r : vcpu_out(s->vcpu[0], 0x10);
	} while (r == VCPU_RESTART);
	return r == VCPU_USERSPACE ? 0 : r;
}

int scene_loop(struct scene *s, bool write, uint64_t first, uint64_t last)
{
	int r = 0;

	vcpu_set_regs(s->vcpu[0]);
	for (uint64_t i = first; i < last && !r; i++) {
		r = scene_read(s, SCENE_LIST + (i - first) * 4);
		if (!r)
			r = write ? scene_write(s, SCENE_TEST + (i << 12), 4, i)
				  : scene_read(s, SCENE_TEST + (i << 12));
	}
	return r ? r : scene_out(s);
}

int scene_setup(struct scene *s)
{
	int r = 0;

	vcpu_set_regs(s->vcpu[0]);
	for (uint64_t i = 0; i < 16 && !r; i++)
		r = scene_read(s, SCENE_LIST + (i << 12));
	return r ? r : scene_out(s);
}

static uint64_t total(const struct scene *s, uint16_t count)
{
	return ledger_sum_count(sim_ledger(s->sim), LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, count)
		.n;
}

void scene_mark(struct scene *s)
{
	for (int i = 0; i < N_KVM_STATS; i++)
		s->base_stat[i] = kvm_stat(s->kvm, (enum kvm_stat_id)i);
	memcpy(s->base_event, s->events, sizeof(s->base_event));
	for (uint16_t i = 0; i < N_COUNTS; i++)
		s->base_count[i] = total(s, i);
	s->base_ro = s->set_spte_ro;
}

uint64_t scene_stat(const struct scene *s, enum kvm_stat_id id)
{
	return kvm_stat(s->kvm, id) - s->base_stat[id];
}

uint64_t scene_event(const struct scene *s, enum kvm_trace_id id)
{
	return s->events[id] - s->base_event[id];
}

uint64_t scene_count(const struct scene *s, uint16_t count)
{
	return total(s, count) - s->base_count[count];
}
