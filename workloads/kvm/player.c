// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/kvm/player.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "workloads/kvm/player_priv.h"

#define CONCURRENT_MAX (1ull << 25) /* accesses that are kept for all of the run */

/* ---- signals ---- */

static void nothing(int sig)
{
	(void)sig; /* that it came takes the thread out of KVM_RUN */
}

/* A tick each second, in case a guest runs in this thread. */
static void start_ticks(struct sigaction *before)
{
	struct sigaction sa = {.sa_handler = nothing};
	const struct itimerval each = {{.tv_sec = 1}, {.tv_sec = 1}};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGALRM, &sa, before);
	setitimer(ITIMER_REAL, &each, NULL);
}

static void stop_ticks(const struct sigaction *before)
{
	const struct itimerval none = {0};

	setitimer(ITIMER_REAL, &none, NULL);
	sigaction(SIGALRM, before, NULL);
}

/* ---- rounds ---- */

static int tally(struct player *p, struct kvm_tally *stats, struct kvm_tally *events)
{
	int err = p->opts->stats ? vm_stats_change(&p->stats, stats) : 0;

	if (!err && p->opts->events)
		err = trace_events_count(&p->events, events);
	return err;
}

/* The values of a tally are those of its last reading: keep the run's. */
static void keep(struct kvm_tally *t, uint64_t values[TALLY_MAX])
{
	if (t->n)
		memcpy(values, t->value, t->n * sizeof(*values));
	t->value = values;
}

static int finish_round(struct player *p, struct kvm_round *r)
{
	int err = collect(&p->collector, r);

	err = err ? err : tally(p, &r->stats_collect, &r->events_collect);
	for (uint32_t i = 0; i < p->opts->n_vcpus; i++)
		r->accesses += p->collector.done[i];
	r->accesses -= p->result->accesses;
	p->result->accesses += r->accesses;
	if (!err && p->opts->round)
		err = p->opts->round(p->opts->ctx, r);
	collect_end(&p->collector);
	return err;
}

static int run_round(struct player *p, struct kvm_round *r)
{
	int err;

	if (p->n_threads) {
		player_tell_threads(p);
		err = player_wait_threads(p, 0);
		err = err < 0 ? err : 0;
	} else {
		err = player_run_vcpu(&p->vcpus[0]);
	}
	for (uint32_t i = 0; i < p->opts->n_vcpus; i++)
		r->run_cycles =
			p->vcpus[i].cycles > r->run_cycles ? p->vcpus[i].cycles : r->run_cycles;
	return err;
}

static int read_streams(struct player *p, uint64_t epochs)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < p->opts->n_vcpus; i++)
		err = stream_read(&p->streams[i], epochs);
	return err;
}

/* The vCPUs stop at each epoch. */
static int play_epochs(struct player *p)
{
	for (uint64_t epochs = 1;; epochs++) {
		struct kvm_round r = {.number = epochs};
		uint64_t stats[TALLY_MAX], events[TALLY_MAX], reached = 0;
		int err = read_streams(p, epochs);

		for (uint32_t i = 0; i < p->opts->n_vcpus; i++)
			reached = p->streams[i].ended > reached ? p->streams[i].ended : reached;
		if (err || reached < epochs)
			return err; /* all are at their ends */
		player_start_clock(p);
		err = player_may_go_on(p);
		/* from here on, nothing of the reading itself or of what lies between rounds */
		err = err ? err : tally(p, &r.stats_run, &r.events_run);
		err = err ? err : run_round(p, &r);
		err = err ? err : tally(p, &r.stats_run, &r.events_run);
		keep(&r.stats_run, stats);
		keep(&r.events_run, events);
		err = err ? err : finish_round(p, &r);
		if (err)
			return err;
		p->result->rounds = epochs;
		for (uint32_t i = 0; i < p->opts->n_vcpus; i++)
			stream_drop(&p->streams[i]);
	}
}

/* All that the streams hold. */
static int read_all(struct player *p)
{
	bool finished = false;
	int err = 0;

	for (uint64_t epochs = 1; !err && !finished; epochs++) {
		uint64_t accesses = 0;

		player_start_clock(p);
		err = player_may_go_on(p);
		err = err ? err : read_streams(p, epochs);
		finished = true;
		for (uint32_t i = 0; i < p->opts->n_vcpus; i++) {
			accesses += p->streams[i].n;
			finished &= p->streams[i].finished;
		}
		if (!err && accesses > CONCURRENT_MAX)
			err = kvmsim_err(p->opts->errors, KVMSIM_EUNSUPPORTED,
					 "collecting beside the guest is for %llu accesses at most",
					 CONCURRENT_MAX);
	}
	return err;
}

/* The vCPUs run through while the log is collected. */
static int play_through(struct player *p)
{
	int err = read_all(p), all = 0;

	if (!err)
		player_tell_threads(p);
	for (uint64_t n = 1; !err && !all; n++) {
		struct kvm_round r = {.number = n};

		player_start_clock(p);
		all = player_wait_threads(p, p->opts->every_us);
		err = all < 0 ? all : finish_round(p, &r);
		p->result->rounds = n;
	}
	return err;
}

/* ---- set-up ---- */

/* The guest stores to each page of each slot, all on vCPU 0. */
static int warm_up(struct player *p)
{
	uint64_t list[4096];
	int err = 0;

	for (uint32_t i = 0; i < p->opts->n_slots; i++) {
		const struct kvm_player_slot *s = &p->opts->slots[i];

		for (uint64_t at = 0; !err && at < s->npages;) {
			size_t n = 0;

			while (n < 4096 && at < s->npages)
				list[n++] = (s->base_gfn + at++) << PAGE_SHIFT;
			player_start_clock(p);
			err = player_run_accesses(p, 0, list, n);
		}
	}
	p->m->vcpus[0].counters->begun = p->m->vcpus[0].counters->done = 0;
	return err;
}

static int set_up(struct player *p)
{
	const struct kvm_player_opts *o = p->opts;
	struct kvm_round first = {0};
	int err = machine_open(o, &p->m);

	for (uint32_t i = 0; i < o->n_vcpus; i++) {
		stream_open(&p->streams[i], o, i);
		p->vcpus[i] = (struct player_vcpu){.p = p, .id = i};
	}
	if (err)
		return err;
	err = collector_open(&p->collector, p->m, p->streams);
	p->collector_open = true;
	if (!err && o->stats)
		err = vm_stats_open(&p->stats, p->m);
	if (!err && o->warm)
		err = warm_up(p);
	if (!err && o->events)
		err = trace_events_open(&p->events, o->events, o->errors);
	for (uint32_t i = 0; !err && i < o->n_slots; i++) {
		if (o->slots[i].logged)
			err = machine_log(p->m, i, true, &p->result->enable_cycles[i]);
	}
	err = err ? err : finish_round(p, &first);
	if (!err && (o->n_vcpus > 1 || o->every_us))
		err = player_start_threads(p);
	return err;
}

static void take_down(struct player *p)
{
	if (p->n_threads)
		player_stop_threads(p);
	trace_events_close(&p->events);
	vm_stats_close(&p->stats);
	for (uint32_t i = 0; i < p->opts->n_vcpus; i++) {
		p->result->skipped += p->streams[i].skipped;
		stream_close(&p->streams[i]);
	}
	if (p->collector_open)
		collector_close(&p->collector);
	machine_close(p->m);
}

static int check(const struct kvm_player_opts *o)
{
	if (!o->n_slots || o->n_slots > KVM_PLAYER_MAX_SLOTS || !o->n_vcpus ||
	    o->n_vcpus > KVM_PLAYER_MAX_VCPUS)
		return kvmsim_err(o->errors, KVMSIM_EUNSUPPORTED,
				  "%u vCPUs and %u slots: the recorder plays 1 to %d and 1 to %d",
				  o->n_vcpus, o->n_slots, KVM_PLAYER_MAX_VCPUS,
				  KVM_PLAYER_MAX_SLOTS);
	if (o->clear_chunk % 64 || (o->protocol == KVM_PROTOCOL_RING &&
				    (!o->ring_entries || o->ring_entries & (o->ring_entries - 1))))
		return kvmsim_err(
			o->errors, KVMSIM_EINVAL,
			"a chunk is a multiple of 64 pages, a ring's size a power of two");
	return 0;
}

int kvm_play(const struct kvm_player_opts *opts, struct kvm_player_result *out)
{
	struct player *p = calloc(1, sizeof(*p));
	struct sigaction before;
	int err = check(opts);

	memset(out, 0, sizeof(*out));
	if (!p)
		return KVMSIM_ENOMEM;
	if (err)
		goto out;
	p->opts = opts;
	p->result = out;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->told, NULL);
	pthread_cond_init(&p->came, NULL);
	start_ticks(&before);
	err = set_up(p);
	if (!err)
		err = opts->every_us ? play_through(p) : play_epochs(p);
	if (!err && !out->rounds)
		err = kvmsim_err(opts->errors, KVMSIM_EPARSE,
				 "cannot tell: no epoch ended in what was played");
	take_down(p);
	stop_ticks(&before);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->told);
	pthread_cond_destroy(&p->came);
out:
	free(p);
	return err;
}
