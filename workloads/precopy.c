// SPDX-License-Identifier: GPL-3.0-or-later
/* The migration thread: rounds until the rest fits the downtime. */
#include "workloads/precopy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/counts.h"
#include "model/guest/ring.h"
#include "model/guest/watch.h"
#include "model/sim/ledger.h"
#include "model/sim/profile.h"
#include "workloads/precopy_scene.h"

#define SLICE_US  50	  /* between two looks of a vCPU's thread at orders */
#define PERIOD_US 1000000 /* between two looks at the rates, at least */

int precopy_interrupted(const struct precopy *m)
{
	return m->o->interrupted && *m->o->interrupted ? KVMSIM_EINTR : 0;
}

cycles_t precopy_time(const struct precopy *m, uint64_t us)
{
	return (cycles_t)((unsigned __int128)us * m->hz / 1000000);
}

static int set_slot(struct precopy *m, uint32_t i, bool log)
{
	const struct precopy_slot *s = &m->o->slots[i];
	const struct kvm_memory_region r = {.slot = i,
					    .flags = log ? KVM_MEM_LOG_DIRTY_PAGES : 0,
					    .base_gfn = s->base_gfn,
					    .npages = s->npages,
					    .host_populated = true,
					    .host_level = s->host_level};

	return kvm_set_user_memory_region(m->thread, m->kvm, &r);
}

/* ---- rounds ---- */

static void add(struct precopy_guest *sum, const struct precopy_guest *now,
		const struct precopy_guest *before)
{
	sum->elapsed += now->elapsed - before->elapsed;
	sum->insns += now->insns - before->insns;
	sum->throttled += now->throttled - before->throttled;
	sum->stopped += now->stopped - before->stopped;
	sum->waited += now->waited - before->waited;
}

static void round_begin(struct precopy *m)
{
	m->round_start = task_now(m->thread);
	m->round = (struct precopy_round){.collections = m->collections,
					  .stopped = m->stop,
					  .pending = m->pending,
					  .start = m->round_start - m->start,
					  .throttle = m->throttle};
	for (uint32_t i = 0; i < m->o->n_vcpus; i++) {
		m->vcpus[i].before = precopy_guest_time(&m->vcpus[i]);
		if (m->vcpus[i].sleep > m->round.sleep)
			m->round.sleep = m->vcpus[i].sleep;
	}
}

static int keep_round(struct precopy *m)
{
	struct precopy_result *r = m->result;
	struct precopy_round *grown = realloc(r->rounds, (r->n_rounds + 1) * sizeof(*grown));

	if (!grown)
		return KVMSIM_ENOMEM;
	for (uint32_t i = 0; i < m->o->n_vcpus; i++) {
		struct precopy_guest now = precopy_guest_time(&m->vcpus[i]);

		add(&m->round.guest, &now, &m->vcpus[i].before);
	}
	r->rounds = grown;
	r->rounds[r->n_rounds++] = m->round;
	return 0;
}

/* Bytes per second while sending; 0: nothing was sent yet. */
static uint64_t bandwidth(const struct precopy *m)
{
	return m->sending ? (uint64_t)((unsigned __int128)m->bytes * m->hz / m->sending) : 0;
}

/* What is left would go within the downtime. */
static bool fits(const struct precopy *m)
{
	unsigned __int128 downtime_bytes =
		(unsigned __int128)bandwidth(m) * m->o->downtime_us / 1000000;

	return !m->pending || m->pending * 4096 < downtime_bytes;
}

/* The guest dirties too much for the second time. */
static int slow_down(struct precopy *m)
{
	const struct precopy_opts *o = m->o;

	m->high = 0;
	if (o->throttle == PRECOPY_DIRTY_LIMIT)
		return precopy_limit_start(m);
	if (o->throttle == PRECOPY_AUTO_CONVERGE) {
		m->throttle =
			m->throttle ? m->throttle + o->throttle_increment : o->throttle_initial;
		if (m->throttle > o->throttle_max)
			m->throttle = o->throttle_max;
	}
	return 0;
}

static int look_at_rates(struct precopy *m)
{
	cycles_t now = task_now(m->thread);
	uint64_t sent = m->bytes - m->looked_bytes, found = m->found * 4096;
	int r = sync(m->thread);

	if (r || now - m->looked <= precopy_time(m, PERIOD_US))
		return r;
	if (found > sent * m->o->trigger_percent / 100 && ++m->high >= 2)
		r = slow_down(m);
	m->looked = now;
	m->looked_bytes = m->bytes;
	m->found = 0;
	return r;
}

static int collect(struct precopy *m)
{
	cycles_t from = task_now(m->thread);
	long found = precopy_collect(m);

	if (found < 0)
		return (int)found;
	m->round.collecting = task_now(m->thread) - from;
	m->round.dirtied = (uint64_t)found;
	m->found += (uint64_t)found;
	return 0;
}

/* The guest runs: sends until the log is to be collected, and collects it. */
static int copy_round(struct precopy *m)
{
	cycles_t interval = precopy_time(m, m->o->interval_us);
	int r = 0;

	round_begin(m);
	while (!r && !fits(m) &&
	       (!m->o->interval_us || task_now(m->thread) - m->round_start < interval)) {
		r = precopy_interrupted(m);
		r = r ? r : precopy_send(m);
	}
	r = r ? r : collect(m);
	m->round.cycles = task_now(m->thread) - m->round_start;
	r = r ? r : look_at_rates(m);
	return r ? r : keep_round(m);
}

/* The last round: the vCPUs stop, what is left goes. */
static int stop_and_copy(struct precopy *m)
{
	int r = sync(m->thread);
	uint64_t rate = bandwidth(m);

	if (r)
		return r;
	if (m->pending && rate) /* as it is when something was sent */
		m->result->expected =
			(cycles_t)((unsigned __int128)m->pending * 4096 * m->hz / rate);
	m->stop = true;
	round_begin(m);
	precopy_wake_vcpus(m);
	r = precopy_wait_stopped(m);
	if (r)
		return r;
	r = collect(m);
	m->round.pending = m->pending;
	m->round.dirtied = 0;
	while (!r && m->pending)
		r = precopy_send(m);
	m->round.cycles = m->result->downtime = task_now(m->thread) - m->round_start;
	return r;
}

static uint64_t counted(const struct precopy *m, uint16_t count)
{
	return ledger_sum_count(sim_ledger(m->sim), LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, count)
		.n;
}

/* All memory is to be sent, and logged from now on. */
static int begin(struct precopy *m)
{
	int r = 0;

	m->start = task_now(m->thread);
	m->started = true;
	for (uint32_t i = 0; i < m->o->n_vcpus; i++)
		m->vcpus[i].first = precopy_guest_time(&m->vcpus[i]);
	for (uint16_t c = 0; c < N_COUNTS; c++)
		m->result->counts[c] = counted(m, c);
	for (uint32_t i = 0; !r && i < m->o->n_slots; i++) {
		const struct precopy_slot *s = &m->o->slots[i];

		if (!s->logged)
			continue;
		r = set_slot(m, i, true);
		for (uint64_t page = 0; page < s->npages; page++)
			m->memory[i].pending[page / 64] |= 1ull << (page % 64);
		memcpy(m->memory[i].fresh, m->memory[i].pending, precopy_words(s) * 8);
		m->pending += s->npages;
	}
	r = r ? r : collect(m);
	m->found = 0;
	m->looked = task_now(m->thread);
	m->result->setup = m->looked - m->start;
	return r;
}

static int migrate(struct precopy *m)
{
	int r = begin(m);

	while (!r && !m->result->converged && m->collections < m->o->max_collections) {
		r = copy_round(m);
		m->result->converged = !r && fits(m);
	}
	if (!r && m->result->converged)
		r = stop_and_copy(m);
	m->result->total = task_now(m->thread) - m->start;
	m->result->left = m->pending;
	m->result->bandwidth = bandwidth(m);
	return r;
}

static int create_vcpus(struct precopy *m)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < m->o->n_vcpus; i++) {
		struct precopy_vcpu *v = &m->vcpus[i];
		char name[16];
		const struct task_opts o = {.name = name,
					    .fn = precopy_vcpu_thread,
					    .arg = v,
					    .start = task_now(m->thread)};

		snprintf(name, sizeof(name), "vcpu%u", i);
		v->m = m;
		v->id = i;
		r = kvm_create_vcpu(m->kvm, &v->vcpu);
		r = r ? r : task_create(m->sim, &o, &v->task);
	}
	return r ? r : kvm_start_ring_reaper(m->kvm, task_now(m->thread));
}

static int migration_thread(struct task *t, void *arg)
{
	struct precopy *m = arg;
	cycles_t begin_at;
	int r = 0;

	for (uint32_t i = 0; !r && i < m->o->n_slots; i++)
		r = set_slot(m, i, false);
	r = r ? r : create_vcpus(m);
	begin_at = task_now(t) + precopy_time(m, m->o->warmup_us);
	while (r >= 0 && task_now(t) < begin_at)
		r = task_block_until(t, WAIT_idle, begin_at);
	r = r < 0 ? r : migrate(m);
	r = r ? r : sync(t);
	m->quit = true;
	if (r)
		return r;
	precopy_wake_vcpus(m);
	if (m->limiter)
		task_wake(m->limiter, task_now(t));
	return 0;
}

/* ---- one migration ---- */

static void on_stall(void *ctx, const struct kvm_stall *s)
{
	struct precopy *m = ctx;
	struct precopy_stall *longest = &m->result->longest_stall;
	struct precopy_vcpu *v = &m->vcpus[s->vcpu];
	cycles_t cycles = s->cycles - v->slept_in_run;

	v->slept_in_run = 0;
	if (!m->started || s->start < m->start || cycles <= longest->cycles)
		return;
	*longest = (struct precopy_stall){.start = s->start - m->start,
					  .cycles = cycles,
					  .vcpu = s->vcpu,
					  .operation = s->why.operation};
	snprintf(longest->by, sizeof(longest->by), "%s", s->why.by ? task_name(s->why.by) : "");
}

static void on_ioctl(void *ctx, const struct kvm_ioctl *i)
{
	(void)ctx;
	(void)i;
}

static int check_opts(const struct precopy_opts *o)
{
	const char *why = NULL;
	bool logged = false;

	for (uint32_t i = 0; i < o->n_slots; i++)
		logged |= o->slots[i].logged;
	if (!logged || !o->n_vcpus)
		why = "no memory or no vCPU";
	else if (!profile_hz(o->profile))
		why = "the profile does not say how many of its units a second has";
	else if (!profile_price(o->profile, COUNT_insn))
		why = "the profile has no price of an instruction";
	else if (!o->bandwidth || !o->max_collections || o->zero_percent > 100 ||
		 o->clear_chunk % 64)
		why = "bandwidth and collections are 1 or more, percents at most 100, and a chunk "
		      "is a multiple of 64";
	else if (o->throttle == PRECOPY_AUTO_CONVERGE &&
		 (!o->throttle_initial || o->throttle_initial > o->throttle_max ||
		  o->throttle_max > 99))
		why = "the throttle begins with 1 or more, and no more than its most, up to 99";
	else if (o->throttle == PRECOPY_DIRTY_LIMIT && !o->dirty_limit)
		why = "the dirty limit is 1 or more";
	return why ? kvmsim_err(o->errors, KVMSIM_EINVAL, "migration: %s", why) : 0;
}

static int create_memory(struct precopy *m)
{
	uint64_t most = 0;

	m->memory = calloc(m->o->n_slots, sizeof(*m->memory));
	m->vcpus = calloc(m->o->n_vcpus, sizeof(*m->vcpus));
	if (!m->memory || !m->vcpus)
		return KVMSIM_ENOMEM;
	for (uint32_t i = 0; i < m->o->n_slots; i++) {
		uint64_t words = precopy_words(&m->o->slots[i]);
		struct precopy_memory *mem = &m->memory[i];

		most = words > most ? words : most;
		if (!m->o->slots[i].logged)
			continue;
		mem->pending = calloc(words, 8);
		mem->unclear = calloc(words, 8);
		mem->fresh = calloc(words, 8);
		if (!mem->pending || !mem->unclear || !mem->fresh)
			return KVMSIM_ENOMEM;
	}
	m->bitmap = calloc(most, 8);
	return m->bitmap ? 0 : KVMSIM_ENOMEM;
}

static int create(struct precopy *m, const struct kvm_watch *watch)
{
	const struct precopy_opts *o = m->o;
	const struct sim_opts so = {.vocabulary = &model_vocabulary,
				    .profile = o->profile,
				    .seed = o->seed,
				    .errors = o->errors};
	const struct task_opts to = {.name = "migration", .fn = migration_thread, .arg = m};
	struct kvm_vm_opts vo = {.paging = o->paging,
				 .mode = GUEST_FLAT32,
				 .preset = o->preset,
				 .dirty = o->dirty,
				 .personality = o->personality,
				 .eager_page_split = o->eager_page_split,
				 .watch = watch,
				 .check = o->check};
	uint64_t price = profile_price(o->profile, COUNT_insn);
	unsigned __int128 slice;
	int r = create_memory(m);

	m->hz = profile_hz(o->profile);
	slice = ((unsigned __int128)precopy_time(m, SLICE_US) << PRICE_SHIFT) / price;
	m->slice = slice < 1 ? 1 : slice > UINT32_MAX ? UINT32_MAX : (uint64_t)slice;
	r = r ? r : sim_create(&so, &m->sim);
	vo.sim = m->sim;
	r = r ? r : kvm_create_vm(&vo, &m->kvm);
	return r ? r : task_create(m->sim, &to, &m->thread);
}

/* After the end of all tasks. */
static int finish(struct precopy *m)
{
	int r = m->result->converged ? keep_round(m) : 0;

	for (uint16_t c = 0; c < N_COUNTS; c++)
		m->result->counts[c] = counted(m, c) - m->result->counts[c];

	for (uint32_t i = 0; i < m->o->n_vcpus; i++) {
		struct precopy_guest now = precopy_guest_time(&m->vcpus[i]);

		add(&m->result->guest, &now, &m->vcpus[i].first);
	}
	return r;
}

int precopy_run(const struct precopy_opts *opts, struct precopy_result *out)
{
	struct precopy m = {.o = opts, .result = out};
	const struct kvm_watch watch = {.ioctl = on_ioctl, .stall = on_stall, .ctx = &m};
	int r;

	*out = (struct precopy_result){0};
	r = check_opts(opts);
	if (r)
		return r;
	r = create(&m, &watch);
	r = r ? r : sim_run(m.sim, CYCLES_MAX);
	r = r ? r : sim_check_ledger(m.sim);
	if (!r && opts->check)
		r = kvm_check(m.kvm);
	r = r ? r : finish(&m);
	if (r == KVMSIM_ENOMEM)
		kvmsim_err(opts->errors, r, "migration: out of memory");
	if (r)
		precopy_result_free(out);
	sim_destroy(m.sim);
	kvm_destroy_vm(m.kvm);
	for (uint32_t i = 0; m.memory && i < opts->n_slots; i++) {
		free(m.memory[i].pending);
		free(m.memory[i].unclear);
		free(m.memory[i].fresh);
	}
	free(m.memory);
	free(m.vcpus);
	free(m.bitmap);
	return r;
}

void precopy_result_free(struct precopy_result *r)
{
	free(r->rounds);
	*r = (struct precopy_result){0};
}
