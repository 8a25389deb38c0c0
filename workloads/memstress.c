// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/memstress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/guest/watch.h"
#include "model/sim/ledger.h"
#include "workloads/memstress_scene.h"

/* 1 TiB, for which the model keeps about 10 GiB of tables. */
#define MAX_PAGES (1ull << 28)

/* What making a thread takes, with its stack and its first turn on a CPU: about 20 us, assumed. All
 * that rests on it is that it is more than the thread needs to its first fault. */
#define INSNS_PER_THREAD 50000

/* ---- rows ---- */

static void totals(const struct memstress *m, struct memstress_sums *s)
{
	const struct ledger *l = sim_ledger(m->sim);

	for (uint16_t c = 0; c < N_COUNTS; c++) {
		struct ledger_entry e =
			ledger_sum_count(l, LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, c);

		s->counts[c] = e.n;
		s->cycles[c] = e.cycles;
	}
	for (uint16_t w = 0; w < N_WAITS; w++)
		s->waits[w] = ledger_sum_wait(l, LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, w).cycles;
}

static void begin(struct memstress *m)
{
	totals(m, &m->before);
	m->began = task_now(m->main);
}

static int end(struct memstress *m, enum memstress_phase phase)
{
	struct memstress_row row = {.phase = phase, .cycles = task_now(m->main) - m->began};

	if (phase >= MEMSTRESS_DIRTY && phase <= MEMSTRESS_CLEAR)
		row.iteration = (uint32_t)m->iteration;
	totals(m, &row.sums);
	for (uint16_t c = 0; c < N_COUNTS; c++) {
		row.sums.counts[c] -= m->before.counts[c];
		row.sums.cycles[c] -= m->before.cycles[c];
	}
	for (uint16_t w = 0; w < N_WAITS; w++)
		row.sums.waits[w] -= m->before.waits[w];
	return m->row(m->ctx, &row);
}

/* ---- the main thread ---- */

static int set_logging(struct memstress *m, bool on)
{
	int r = 0;

	for (uint32_t i = 0; i < m->o->slots && !r; i++) {
		const struct kvm_memory_region region = {.slot = MEMSTRESS_SLOT + i,
							 .flags = on ? KVM_MEM_LOG_DIRTY_PAGES : 0,
							 .base_gfn =
								 (m->gpa >> 12) + i * m->slot_pages,
							 .npages = m->slot_pages,
							 .host_populated = m->o->populated,
							 .host_level = m->o->host_level};

		r = kvm_set_user_memory_region(m->main, m->kvm, &region);
	}
	return r;
}

static uint64_t *bitmap_of(const struct memstress *m, uint32_t slot)
{
	return m->bitmap + slot * ((m->slot_pages + 63) / 64);
}

static int get(struct memstress *m)
{
	long n = 0;

	begin(m);
	for (uint32_t i = 0; i < m->o->slots && n >= 0; i++)
		n = kvm_get_dirty_log(m->main, m->kvm, MEMSTRESS_SLOT + i, bitmap_of(m, i));
	return n < 0 ? (int)n : end(m, MEMSTRESS_GET);
}

static int clear(struct memstress *m)
{
	int r = 0;

	begin(m);
	for (uint32_t i = 0; i < m->o->slots && !r; i++)
		r = kvm_clear_dirty_log(m->main, m->kvm, MEMSTRESS_SLOT + i, 0, m->slot_pages,
					bitmap_of(m, i));
	return r ? r : end(m, MEMSTRESS_CLEAR);
}

/* Asks the threads for @iteration. */
static void ask(struct memstress *m, int32_t iteration)
{
	m->iteration = iteration;
	m->done = 0;
	for (uint32_t i = 0; i < m->o->vcpus; i++)
		task_wake(m->vcpus[i].task, task_now(m->main));
}

static int wait_for_all(struct memstress *m)
{
	int r = 0;

	while (!r && m->done < m->o->vcpus)
		r = task_block(m->main, WAIT_idle);
	return r;
}

static int start_vcpus(struct memstress *m)
{
	const struct memstress_opts *o = m->o;
	uint64_t each = o->bytes >> 12;
	int r = 0;

	for (uint32_t i = 0; i < o->vcpus && !r; i++) {
		struct memstress_vcpu *v = &m->vcpus[i];
		struct task_opts to = {.name = "vcpu",
				       .fn = memstress_vcpu_thread,
				       .arg = v,
				       .prices = machine_prices(m->machine, i)};

		*v = (struct memstress_vcpu){.m = m, .id = i};
		v->random = (uint32_t)((o->seed + i) % (INT32_MAX - 1)) + 1; /* 0 stays 0 */
		v->pages = o->overlap ? m->pages : each;
		v->gva = MEMSTRESS_GVA + (o->overlap ? 0 : i * each << 12);
		if (o->early) {
			charge(m->main, COUNT_insn, INSNS_PER_THREAD);
			r = kvm_change_address_space(m->main, m->kvm); /* its stack */
		}
		r = r ? r : kvm_create_vcpu(m->kvm, &v->vcpu);
		to.start = task_now(m->main);
		r = r ? r : task_create(m->sim, &to, &v->task);
		r = r ? r : machine_place(m->machine, v->task, i);
	}
	return r;
}

static int iterate(struct memstress *m)
{
	int r = 0;

	for (int32_t i = 1; i <= (int32_t)m->o->iterations && !r; i++) {
		begin(m);
		ask(m, i);
		r = wait_for_all(m);
		r = r ? r : end(m, MEMSTRESS_DIRTY);
		r = r ? r : get(m);
		if (!r && m->o->clears)
			r = clear(m);
	}
	return r;
}

static int measure(struct memstress *m)
{
	int r;

	begin(m);
	r = start_vcpus(m);
	r = r ? r : wait_for_all(m);
	r = r ? r : end(m, MEMSTRESS_POPULATE);
	if (r)
		return r;
	begin(m);
	r = set_logging(m, true);
	r = r ? r : end(m, MEMSTRESS_ENABLE);
	r = r ? r : iterate(m);
	if (r)
		return r;
	if (m->o->evil)
		ask(m, -1);
	begin(m);
	r = set_logging(m, false);
	r = r ? r : end(m, MEMSTRESS_DISABLE);
	if (!r)
		ask(m, MEMSTRESS_QUIT);
	return r;
}

static int main_thread(struct task *t, void *arg)
{
	struct memstress *m = arg;
	const struct kvm_memory_region low = {.npages = m->low_pages, .host_populated = true};
	int r;

	memstress_tables(m);
	r = kvm_set_user_memory_region(t, m->kvm, &low);
	r = r ? r : set_logging(m, false);
	r = r ? r : measure(m);
	if (!r && m->o->check)
		r = kvm_check(m->kvm);
	return r;
}

/* ---- setting up ---- */

static int invalid(const struct memstress_opts *o, const char *why)
{
	return kvmsim_err(o->errors, KVMSIM_EINVAL, "memstress: %s", why);
}

static int layout(struct memstress *m)
{
	const struct memstress_opts *o = m->o;
	const uint64_t host_page = 1ull << (9 * ((o->host_level ? o->host_level : 1) - 1));
	uint64_t frames = kvm_guest_frames(o->personality), gfn;

	if (!o->vcpus || !o->iterations || !o->slots || !o->bytes || o->mmu == MMU_SHADOW_FLAT32)
		return invalid(o,
			       "vCPUs, bytes, slots and iterations are 1 or more, the guest pages");
	if (o->bytes % 4096)
		return invalid(o, "the bytes per vCPU are a multiple of 4096");
	if (o->bytes >> 12 > MAX_PAGES / o->vcpus)
		return invalid(o, "all vCPUs together have at most 1 TiB");
	m->pages = (o->bytes >> 12) * o->vcpus;
	if (m->pages % o->slots)
		return invalid(o, "the pages cannot be divided evenly into the slots");
	if (o->guest_level > 1 && m->pages % 512)
		return invalid(o, "with 2M pages of the guest's all memory is a multiple of 2M");
	m->slot_pages = m->pages / o->slots;
	m->low_pages = memstress_low_pages(m->pages);
	/* Without such a CPU making the VM will fail, and say so. */
	if (frames && m->low_pages + m->pages > frames)
		return invalid(o, "the memory is more than the guest's physical addresses reach");
	gfn = (frames - m->pages) & ~(host_page - 1);
	if (o->gpa) {
		if (o->gpa % 4096 || o->gpa >> 12 < m->low_pages || o->gpa >> 12 > gfn)
			return kvmsim_err(o->errors, KVMSIM_EINVAL,
					  "memstress: the test memory begins at a multiple of 4096 "
					  "from %#" PRIx64 " to %#" PRIx64,
					  m->low_pages << 12, gfn << 12);
		gfn = o->gpa >> 12;
	}
	if (o->guest_level > 1)
		gfn &= ~511ull;
	m->gpa = gfn << 12;
	return 0;
}

static int create_main(struct memstress *m)
{
	const struct task_opts to = {.name = "main",
				     .fn = main_thread,
				     .arg = m,
				     .stack_bytes = 256 << 10,
				     .prices = machine_prices(m->machine, m->o->vcpus)};
	int r = task_create(m->sim, &to, &m->main);

	return r ? r : machine_place(m->machine, m->main, m->o->vcpus);
}

static void ignore_ioctl(void *ctx, const struct kvm_ioctl *i)
{
	(void)ctx;
	(void)i;
}

static void ignore_stall(void *ctx, const struct kvm_stall *s)
{
	(void)ctx;
	(void)s;
}

static int create(struct memstress *m)
{
	const struct memstress_opts *o = m->o;
	const struct sim_opts so = {.vocabulary = &model_vocabulary,
				    .profile = o->profile,
				    .seed = o->seed,
				    .errors = o->errors};
	struct kvm_vm_opts vo = {.paging = o->mmu == MMU_SHADOW_LONG64 ? PAGING_SHADOW : PAGING_TDP,
				 .mode = GUEST_LONG64,
				 .preset = o->preset,
				 .dirty = o->dirty,
				 .mmulock = o->mmulock,
				 .personality = o->personality,
				 .eager_page_split = o->eager_page_split,
				 .no_irqchip = o->no_irqchip,
				 .check = o->check};
	int r = machine_create(o->profile, o->cores, o->vcpus + 1, &m->machine);

	m->watch =
		(struct kvm_watch){.ioctl = ignore_ioctl, .stall = ignore_stall, .locks = o->locks};
	if (o->locks)
		vo.watch = &m->watch;

	m->vcpus = calloc(o->vcpus, sizeof(*m->vcpus));
	m->bitmap = calloc(o->slots * ((m->slot_pages + 63) / 64), 8);
	if (!r && (!m->vcpus || !m->bitmap))
		r = kvmsim_err(o->errors, KVMSIM_ENOMEM, "memstress: out of memory");
	r = r ? r : sim_create(&so, &m->sim);
	vo.sim = m->sim;
	r = r ? r : kvm_create_vm(&vo, &m->kvm);
	return r ? r : create_main(m);
}

int memstress_run(const struct memstress_opts *opts, memstress_row_fn row, void *ctx)
{
	struct memstress m = {.o = opts, .row = row, .ctx = ctx};
	int r = layout(&m);

	if (r)
		return r;
	r = create(&m);
	r = r ? r : sim_run(m.sim, CYCLES_MAX);
	r = r ? r : sim_check_ledger(m.sim);
	sim_destroy(m.sim); /* its tasks end first: they still use the VM */
	kvm_destroy_vm(m.kvm);
	machine_destroy(m.machine);
	free(m.vcpus);
	free(m.bitmap);
	return r;
}
