// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/parallel.h"

#include <inttypes.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/kernel/vmm.h"
#include "workloads/parallel.h"

#define TURNS		1000u
#define CLEAR_CHUNK	256u
#define COLLECTIONS_MAX 512u
#define BITMAP_WORDS	(GUEST_MAX_SLOT_PAGES / 64)
#define TICK_US		20u

static uint32_t turns[PARALLEL_VCPUS][TURNS];
static uint64_t bitmaps[COLLECTIONS_MAX][BITMAP_WORDS];
static struct parallel_collection collections[COLLECTIONS_MAX];

struct scene {
	const struct record_opts *opts;
	const char *test_case;
	unsigned lists, rounds; /* of the VM, so far */
	struct guest guest;
};

static void pin(unsigned cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die_errno("no CPU %u", cpu);
}

/* ---- the vCPUs' threads ---- */

struct vcpu_thread {
	pthread_t id;
	struct guest *guest;
	unsigned vcpu;
	atomic_bool ended;
};

static void *run_vcpu(void *arg)
{
	struct vcpu_thread *t = arg;
	pin(t->vcpu);
	guest_run(t->guest, t->vcpu);
	atomic_store(&t->ended, true);
	return NULL;
}

static void load_lists(struct scene *s)
{
	for (unsigned v = 0; v < PARALLEL_VCPUS; v++) {
		parallel_list(v, s->lists, s->opts->slot_pages, TURNS, turns[v]);
		guest_load_mixed(&s->guest, v, turns[v], TURNS);
	}
	s->lists++;
}

static void start(struct scene *s, struct vcpu_thread t[PARALLEL_VCPUS])
{
	for (unsigned v = 0; v < PARALLEL_VCPUS; v++) {
		t[v].guest = &s->guest;
		t[v].vcpu = v;
		atomic_init(&t[v].ended, false);
		if (pthread_create(&t[v].id, NULL, run_vcpu, &t[v]))
			die("no thread for vCPU %u", v);
	}
}

static void join(const struct vcpu_thread t[PARALLEL_VCPUS])
{
	for (unsigned v = 0; v < PARALLEL_VCPUS; v++)
		pthread_join(t[v].id, NULL);
}

/* ---- rows ---- */

static void put(const struct scene *s, const char *phase, const char *quantity, uint64_t value,
		const char *note)
{
	static const char *const pte_words[] = {
		[GUEST_PTE_4K] = "4k", [GUEST_PTE_2M] = "2m", [GUEST_PTE_NONE] = "none"};
	fprintf(s->opts->rows, "%s,%s,%s,%" PRIu64 ",%s,-,%u,%u,%s,%s,%" PRIu64 ",count,%s\n",
		s->test_case, s->opts->mmu, s->opts->mode, s->opts->slot_pages,
		pte_words[s->opts->pte], TURNS, s->rounds, phase, quantity, value, note);
}

/* 32 pages in each row: a value that a double holds. */
static void put_bitmap(const struct scene *s, const char *phase, const uint64_t *bitmap)
{
	for (uint64_t first = 0; first < s->opts->slot_pages; first += 32) {
		char quantity[32];
		snprintf(quantity, sizeof(quantity), "res:pages[%" PRIu64 "]", first);
		put(s, phase, quantity, (uint32_t)(bitmap[first / 64] >> (first % 64)), "");
	}
}

/* ---- P_quiet ---- */

static void new_vm(struct scene *s, const char *test_case, bool logged, uint64_t manual)
{
	const struct guest_opts o = {
		.slot_pages = s->opts->slot_pages,
		.kind = s->opts->kind,
		.pte = s->opts->pte,
		.logged = logged,
		.manual = manual,
		.vcpus = PARALLEL_VCPUS,
	};
	s->test_case = test_case;
	guest_create(&s->guest, &o);
}

static void run_both(struct scene *s)
{
	struct vcpu_thread t[PARALLEL_VCPUS];
	load_lists(s);
	start(s, t);
	join(t);
}

static void get(struct scene *s, const char *phase)
{
	guest_get_dirty_log(&s->guest, bitmaps[0]);
	put_bitmap(s, phase, bitmaps[0]);
}

static void quiet(struct scene *s)
{
	static const char *const phases[] = {"get_after_populate_logged", "get_after_mixed"};
	s->lists = s->rounds = 0;
	new_vm(s, "P_quiet", false, 0);
	run_both(s);
	guest_log(&s->guest, true);
	get(s, "get_after_enable");
	for (unsigned i = 0; i < 3; i++, s->rounds++) {
		run_both(s);
		get(s, phases[1]);
	}
	guest_destroy(&s->guest);

	s->lists = s->rounds = 0;
	new_vm(s, "P_quiet", true, 0);
	for (unsigned i = 0; i < 2; i++, s->rounds++) {
		run_both(s);
		get(s, phases[0]);
	}
	guest_destroy(&s->guest);
}

/* ---- P_get, P_clear ---- */

/* QEMU switches between the emulated CPUs when a timer is due: with many timers, all of CPU 1, they
 * run in small turns, so that a guest stores in the middle of the ioctl on CPU 0. */
static atomic_bool tick;

static void *tick_thread(void *arg)
{
	(void)arg;
	pin(1);
	prctl(PR_SET_TIMERSLACK, 1);
	while (atomic_load(&tick))
		usleep(TICK_US);
	return NULL;
}

static void look(const struct scene *s, const struct vcpu_thread *t, uint64_t *completed,
		 uint64_t *begun)
{
	for (unsigned v = 0; v < PARALLEL_VCPUS; v++) {
		bool ended = atomic_load(&t[v].ended);
		uint64_t left = guest_turns_left(&s->guest, v);
		if (completed)
			completed[v] = ended ? TURNS : TURNS - left;
		if (begun)
			begun[v] = ended ? TURNS : TURNS - left + 1;
	}
}

static void collect_one(struct scene *s, const struct vcpu_thread *t, unsigned k, bool clear)
{
	struct parallel_collection *c = &collections[k];
	c->bitmap = bitmaps[k];
	look(s, t, c->completed, NULL);
	guest_get_dirty_log(&s->guest, bitmaps[k]);
	if (clear) {
		/* what a GET takes leaves nothing to judge a CLEAR by: pages that it got stay
		 * writable until then, and are read by a VMM after it */
		guest_clear_dirty_log(&s->guest, CLEAR_CHUNK, bitmaps[k]);
	}
	look(s, t, NULL, c->begun);
}

/* Until a vCPU has gone on, or all have ended: then false. */
static bool wait_for_turns(struct scene *s, const struct vcpu_thread *t, uint64_t *seen)
{
	for (;;) {
		uint64_t now[PARALLEL_VCPUS];
		bool ended = atomic_load(&t[0].ended) && atomic_load(&t[1].ended);
		look(s, t, now, NULL);
		if (ended || memcmp(now, seen, sizeof(now)) != 0) {
			memcpy(seen, now, sizeof(now));
			return !ended;
		}
		usleep(TICK_US);
	}
}

static void concurrent(struct scene *s, bool clear)
{
	static uint8_t marks[GUEST_MAX_SLOT_PAGES];
	static uint64_t all[BITMAP_WORDS];
	struct vcpu_thread t[PARALLEL_VCPUS];
	pthread_t ticker;
	unsigned n = 0, inside = 0;
	char note[80];
	uint64_t seen[PARALLEL_VCPUS] = {0};

	load_lists(s);
	atomic_store(&tick, true);
	if (pthread_create(&ticker, NULL, tick_thread, NULL))
		die("no thread");
	start(s, t);
	while (n < COLLECTIONS_MAX - 1 && wait_for_turns(s, t, seen))
		collect_one(s, t, n++, clear);
	join(t);
	atomic_store(&tick, false);
	pthread_join(ticker, NULL);
	collect_one(s, t, n++, clear);

	const struct parallel_run run = {.slot_pages = s->opts->slot_pages,
					 .n = TURNS,
					 .turns = {turns[0], turns[1]},
					 .c = collections,
					 .n_collections = n};
	struct parallel_verdict v = parallel_judge(&run, marks);
	memset(all, 0, sizeof(all));
	for (unsigned k = 0; k < n; k++) {
		for (unsigned w = 0; w < BITMAP_WORDS; w++)
			all[w] |= bitmaps[k][w];
		for (unsigned i = 0; i < PARALLEL_VCPUS; i++)
			inside += collections[k].begun[i] > collections[k].completed[i] + 1;
	}
	put(s, "collect", "res:missed", v.missed, "");
	put(s, "collect", "res:early", v.early, "");
	snprintf(note, sizeof(note), "collections=%u;during=%" PRIu64 ";inside=%u", n, v.during,
		 inside);
	put(s, "collect", "res:concurrent", v.during > 0, note);
	put_bitmap(s, "collect", all);
}

static void collecting(struct scene *s, const char *test_case, uint64_t manual)
{
	s->lists = s->rounds = 0;
	new_vm(s, test_case, true, manual);
	for (unsigned i = 0; i < 3; i++, s->rounds++)
		concurrent(s, manual);
	guest_destroy(&s->guest);
}

void record_parallel(const struct record_opts *opts)
{
	struct scene s = {.opts = opts};
	if (sysconf(_SC_NPROCESSORS_ONLN) < PARALLEL_VCPUS)
		die("parallel: %d CPUs are needed", PARALLEL_VCPUS);
	pin(0);
	quiet(&s);
	collecting(&s, "P_get", 0);
	collecting(&s, "P_clear", KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE);
}
