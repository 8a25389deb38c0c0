// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "analysis/evidence_run.h"
#include "analysis/run.h"
#include "model/guest/vcpu.h"
#include "model/guest/vm.h"
#include "model/host/cache.h"
#include "model/sim/ledger.h"
#include "model/sim/rng.h"
#include "model/sim/sim.h"

/* The guest: identity mapped, 4K PTEs for the logged slot (but `huge`), 2M PTEs elsewhere; its
 * tables in slot 0. */
#define LOW_PAGES   16384ull
#define PML4	    0x100000ull
#define PDPT	    0x101000ull
#define PD(g)	    (0x102000ull + (g)*0x1000ull)
#define PT_TEST(i)  (0x200000ull + (i)*0x1000ull)
#define TEST	    0x40000000ull
#define TEST_MAX    (512ull * 512) /* pages that 512 tables map */
#define TABLE_ENTRY 0x27ull	   /* P RW US A */
#define LEAF_4K	    0x67ull	   /* P RW US A D */
#define LEAF_2M	    0xe7ull	   /* the same, and PS */
#define PORT_DONE   0x10
#define WARM_ROUNDS 2 /* the first harvests find caches that the set-up left */
#define LOGGED_SLOT 1

struct run {
	const struct evidence_scene *scene;
	struct evidence_prediction *out;
	struct sim *sim;
	struct cache *cache;
	struct kvm *kvm;
	struct kvm_vcpu *vcpu;
	struct task *t;
	struct rng rng;
	uint64_t *bitmap, *want;
};

static void page_tables(struct run *r)
{
	uint64_t tables = (r->scene->slot_pages + 511) / 512;

	kvm_write_guest_u64(r->kvm, PML4, PDPT | TABLE_ENTRY);
	for (uint64_t g = 0; g < 4; g++) {
		kvm_write_guest_u64(r->kvm, PDPT + g * 8, PD(g) | TABLE_ENTRY);
		for (uint64_t i = 0; i < 512; i++)
			kvm_write_guest_u64(r->kvm, PD(g) + i * 8, g << 30 | i << 21 | LEAF_2M);
	}
	for (uint64_t c = 0; c < tables && !r->scene->huge; c++) {
		kvm_write_guest_u64(r->kvm, PD(1) + c * 8, PT_TEST(c) | TABLE_ENTRY);
		for (uint64_t i = 0; i < 512; i++)
			kvm_write_guest_u64(r->kvm, PT_TEST(c) + i * 8,
					    (TEST + (c << 21) + (i << 12)) | LEAF_4K);
	}
}

static int write_page(struct run *r, uint64_t page)
{
	int err;

	do {
		err = vcpu_write(r->vcpu, TEST + (page << 12), 8, page);
	} while (err == VCPU_RESTART);
	return err;
}

/* The guest is done: OUT, which userspace handles. */
static int leave(struct run *r)
{
	int err;

	do {
		err = vcpu_out(r->vcpu, PORT_DONE);
	} while (err == VCPU_RESTART);
	return err == VCPU_USERSPACE ? 0 : err ? err : KVMSIM_ECHECK;
}

/* Writes nr_dirty different pages in runs at random places. */
static int write_round(struct run *r)
{
	const struct evidence_scene *s = r->scene;
	uint64_t run = s->run && s->run < s->nr_dirty ? s->run : s->nr_dirty;
	uint64_t places = s->run ? s->slot_pages / (run ? run : 1) : s->slot_pages - run + 1;
	int err = 0;

	memset(r->want, 0, (s->slot_pages + 63) / 64 * 8);
	vcpu_set_regs(r->vcpu);
	for (uint64_t n = 0; n < s->nr_dirty && !err;) {
		uint64_t first = rng_below(&r->rng, places) * (s->run ? run : 1);

		for (uint64_t p = first; p < first + run && n < s->nr_dirty && !err; p++) {
			if (r->want[p / 64] >> (p % 64) & 1)
				continue;
			r->want[p / 64] |= 1ull << (p % 64);
			n++;
			err = write_page(r, p);
		}
	}
	return err ? err : leave(r);
}

static void counts_now(const struct run *r, uint64_t n[N_COUNTS], double *waited)
{
	const struct ledger *l = sim_ledger(r->sim);

	for (uint16_t c = 0; c < N_COUNTS; c++)
		n[c] = ledger_sum_count(l, LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, c).n;
	*waited = 0;
	for (uint16_t w = 0; w < N_WAITS; w++)
		*waited += ledger_sum_wait(l, LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, w).cycles;
}

static int harvest(struct run *r, bool counts)
{
	uint64_t before[N_COUNTS], after[N_COUNTS];
	cycles_t began = task_now(r->t);
	double waited, waited_after;

	counts_now(r, before, &waited);
	long n = kvm_collect_dirty_log(r->t, r->kvm, LOGGED_SLOT, r->bitmap);

	if (n < 0)
		return n;
	if ((uint64_t)n != r->scene->nr_dirty ||
	    memcmp(r->bitmap, r->want, (r->scene->slot_pages + 63) / 64 * 8))
		return kvmsim_err(r->scene->errors, KVMSIM_ECHECK,
				  "a harvest reported %ld pages, not the %llu that were written", n,
				  (unsigned long long)r->scene->nr_dirty);
	if (!counts)
		return 0;
	counts_now(r, after, &waited_after);
	for (uint16_t c = 0; c < N_COUNTS; c++)
		r->out->count[c] += after[c] - before[c];
	r->out->cycles += task_now(r->t) - began;
	r->out->waited += waited_after - waited;
	return 0;
}

static int set_up(struct run *r)
{
	struct kvm_memory_region region = {.slot = 0, .npages = LOW_PAGES, .host_populated = true};
	int err = kvm_set_user_memory_region(r->t, r->kvm, &region);

	region.slot = LOGGED_SLOT;
	region.host_level = r->scene->huge ? 2 : 1;
	region.base_gfn = TEST >> 12;
	region.npages = r->scene->slot_pages;
	err = err ? err : kvm_set_user_memory_region(r->t, r->kvm, &region);
	err = err ? err : kvm_create_vcpu(r->kvm, &r->vcpu);
	if (err)
		return err;
	page_tables(r);
	vcpu_bind(r->vcpu, r->t);
	vcpu_set_cr3(r->vcpu, PML4);
	vcpu_set_regs(r->vcpu);
	for (uint64_t p = 0; p < r->scene->slot_pages && !err; p++)
		err = write_page(r, p);
	err = err ? err : leave(r);
	region.flags = KVM_MEM_LOG_DIRTY_PAGES;
	err = err ? err : kvm_set_user_memory_region(r->t, r->kvm, &region);
	/* what was mapped large is mapped page by page now */
	for (uint64_t p = 0; r->scene->huge && p < r->scene->slot_pages && !err; p++)
		err = write_page(r, p);
	if (!err) {
		long n = kvm_collect_dirty_log(r->t, r->kvm, LOGGED_SLOT, r->bitmap);

		err = n < 0 ? n : 0;
	}
	return err;
}

static int vmm(struct task *t, void *arg)
{
	struct run *r = arg;
	uint64_t harvests = r->scene->harvests;

	r->t = t;
	int err = set_up(r);

	for (uint64_t i = 0; i < WARM_ROUNDS + harvests && !err; i++) {
		err = run_interrupted ? KVMSIM_EINTR : write_round(r);
		err = err ? err : harvest(r, i >= WARM_ROUNDS);
	}
	for (uint16_t c = 0; c < N_COUNTS; c++)
		r->out->count[c] /= harvests;
	r->out->cycles /= harvests;
	r->out->waited /= harvests;
	r->out->shadow_pages = kvm_active_shadow_pages(r->kvm);
	return err;
}

int evidence_run(const struct evidence_scene *s, struct evidence_prediction *out)
{
	struct run r = {.scene = s, .out = out};
	const struct sim_opts so = {
		.vocabulary = &model_vocabulary, .profile = s->profile, .errors = s->errors};
	struct kvm_vm_opts vo = {.paging = PAGING_SHADOW,
				 .mode = GUEST_LONG64,
				 .preset = s->preset,
				 .dirty = s->dirty,
				 .background_sps = s->background};
	const struct task_opts to = {.name = "vmm", .fn = vmm, .arg = &r, .stack_bytes = 256 << 10};
	uint64_t words = (s->slot_pages + 63) / 64;
	struct task *t;

	*out = (struct evidence_prediction){0};
	if (!s->harvests || !s->slot_pages || s->slot_pages > TEST_MAX ||
	    s->nr_dirty > s->slot_pages)
		return kvmsim_err(
			s->errors, KVMSIM_EINVAL,
			"a scene has 1 to %llu slot pages, no more dirty ones, and a harvest",
			TEST_MAX);
	rng_init(&r.rng, 1, 0, "evidence");
	r.bitmap = calloc(words, 8);
	r.want = calloc(words, 8);
	int err = r.bitmap && r.want ? sim_create(&so, &r.sim) : KVMSIM_ENOMEM;

	err = err ? err : cache_create(s->profile, s->errors, &r.cache);
	vo.sim = r.sim;
	vo.cache = r.cache;
	err = err ? err : kvm_create_vm(&vo, &r.kvm);
	err = err ? err : task_create(r.sim, &to, &t);
	err = err ? err : sim_run(r.sim, CYCLES_MAX);
	err = err ? err : sim_check_ledger(r.sim);
	sim_destroy(r.sim); /* its tasks end first: they still use the VM */
	kvm_destroy_vm(r.kvm);
	cache_destroy(r.cache);
	free(r.bitmap);
	free(r.want);
	return err;
}
