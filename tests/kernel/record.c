// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/record.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernel/events.h"
#include "tests/kernel/stats.h"
#include "tests/kernel/vmm.h"

#define PHASES_MAX   1024
#define SAMPLES_MAX  256
#define BITMAP_WORDS (GUEST_MAX_SLOT_PAGES / 64)

/* What tells one phase's rows from another's, and what was measured under that key. */
struct phase_key {
	char text[96]; /* pattern,nr_dirty,round,phase */
	unsigned occurrences;
	uint64_t samples[SAMPLES_MAX];
	unsigned n_samples;
};

struct recorder {
	struct record_opts opts;
	bool tracing;
	struct guest guest;
	bool has_guest;
	struct stats stats;
	uint32_t pages[GUEST_MAX_SLOT_PAGES];
	uint64_t n_pages;
	uint64_t bitmap[BITMAP_WORDS]; /* of the last GET_DIRTY_LOG */
	/* columns */
	enum pattern pattern;
	int64_t nr_dirty; /* negative: empty */
	int round;	  /* negative: empty */
	bool pooled;	  /* the rounds repeat one steady state: their instructions are pooled */
	/* the phase under way */
	struct phase_key *key;
	uint64_t stats_before[STATS_MAX];
	struct phase_key keys[PHASES_MAX];
	size_t n_keys;
};

/* With -icount shift=0 one tick of the TSC is one instruction. */
static uint64_t read_tsc(void)
{
	uint32_t low, high;
	__asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

void record_header(FILE *rows)
{
	fputs("case,mmu,kvm_mode,slot_pages,guest_pte,pattern,nr_dirty,round,phase,quantity,value,"
	      "unit,note\n",
	      rows);
}

static void put_row(const struct recorder *r, const struct phase_key *key, const char *quantity,
		    int64_t value, const char *unit, const char *note)
{
	static const char *const pte_words[] = {
		[GUEST_PTE_4K] = "4k", [GUEST_PTE_2M] = "2m", [GUEST_PTE_NONE] = "none"};
	const char *quote = strchr(quantity, ',') ? "\"" : "";
	fprintf(r->opts.rows, "%s,%s,stock,%" PRIu64 ",%s,%s,%s%s%s,%" PRId64 ",%s,%s\n",
		r->opts.program->case_name, r->opts.mmu, r->opts.slot_pages, pte_words[r->opts.pte],
		key->text, quote, quantity, quote, value, unit, note);
}

static struct phase_key *find_key(struct recorder *r, const char *phase)
{
	char text[sizeof(r->keys[0].text)], nr[24] = "", round[16] = "", slot[24] = "";
	size_t star = strcspn(phase, "*"); /* stands for the slot's number of pages */
	if (phase[star])
		snprintf(slot, sizeof(slot), "%" PRIu64, r->opts.slot_pages);
	if (r->nr_dirty >= 0)
		snprintf(nr, sizeof(nr), "%" PRId64, r->nr_dirty);
	if (r->round >= 0 && r->pooled && !r->tracing)
		snprintf(round, sizeof(round), "all");
	else if (r->round >= 0)
		snprintf(round, sizeof(round), "%d", r->round);
	snprintf(text, sizeof(text), "%s,%s,%s,%.*s%s",
		 r->pattern == PATTERN_NONE ? "-" : pattern_name(r->pattern), nr, round, (int)star,
		 phase, slot);

	for (size_t i = 0; i < r->n_keys; i++)
		if (strcmp(r->keys[i].text, text) == 0)
			return &r->keys[i];
	if (r->n_keys == PHASES_MAX)
		die("more than %d phases", PHASES_MAX);
	memcpy(r->keys[r->n_keys].text, text, sizeof(text));
	return &r->keys[r->n_keys++];
}

static void phase_begin(struct recorder *r, const char *phase)
{
	r->key = find_key(r, phase);
	r->key->occurrences++;
	if (r->tracing) {
		stats_read(&r->stats, r->stats_before);
		events_start();
	}
}

static void occurrence_note(const struct recorder *r, char *note, size_t size, const char *before)
{
	if (r->key->occurrences > 1)
		snprintf(note, size, "%s%soccurrence=%u", before, *before ? ";" : "",
			 r->key->occurrences);
	else
		snprintf(note, size, "%s", before);
}

/* Zeros are left out, but for a gauge that stands at something. */
static void put_stats(const struct recorder *r, const uint64_t after[STATS_MAX])
{
	for (size_t i = 0; i < r->stats.n; i++) {
		char quantity[80], note[80], standing[40] = "";
		const struct stat *st = &r->stats.stat[i];
		int64_t delta = (int64_t)(after[i] - r->stats_before[i]);
		if (delta == 0 && !(st->gauge && after[i]))
			continue;
		if (st->gauge)
			snprintf(standing, sizeof(standing), "abs_after=%" PRIu64, after[i]);
		occurrence_note(r, note, sizeof(note), standing);
		snprintf(quantity, sizeof(quantity), "stat:%s", st->name);
		put_row(r, r->key, quantity, delta, "delta", note);
	}
}

static void put_events(const struct recorder *r)
{
	static struct event_count counts[EVENTS_MAX];
	char note[40];
	size_t n = events_count(counts);
	occurrence_note(r, note, sizeof(note), "");
	for (size_t i = 0; i < n; i++) {
		char quantity[112];
		snprintf(quantity, sizeof(quantity), "ev:%.95s", counts[i].name);
		put_row(r, r->key, quantity, (int64_t)counts[i].n, "events", note);
	}
}

static void phase_end(struct recorder *r, uint64_t ticks)
{
	if (r->tracing) {
		static uint64_t after[STATS_MAX];
		events_stop();
		stats_read(&r->stats, after);
		put_stats(r, after);
		put_events(r);
		return;
	}
	if (r->key->n_samples == SAMPLES_MAX)
		die("more than %d samples of %s", SAMPLES_MAX, r->key->text);
	r->key->samples[r->key->n_samples++] = ticks;
}

static void run_phase(struct recorder *r, const char *phase)
{
	phase_begin(r, phase);
	uint64_t start = read_tsc();
	guest_run(&r->guest, 0);
	phase_end(r, read_tsc() - start);
}

struct thread {
	pthread_t id;
	struct guest *guest;
	unsigned vcpu;
};

static void *run_thread(void *arg)
{
	struct thread *t = arg;
	guest_run(t->guest, t->vcpu);
	return NULL;
}

/* All vCPUs: one after the other, or each in a new thread. */
static void run_all_phase(struct recorder *r, const char *phase, bool threads)
{
	struct thread t[GUEST_MAX_VCPUS];
	unsigned n = r->guest.opts.vcpus;
	phase_begin(r, phase);
	uint64_t start = read_tsc();
	for (unsigned i = 0; i < n; i++) {
		t[i] = (struct thread){.guest = &r->guest, .vcpu = i};
		if (!threads)
			guest_run(&r->guest, i);
		else if (pthread_create(&t[i].id, NULL, run_thread, &t[i]))
			die("no thread for vCPU %u", i);
	}
	for (unsigned i = 0; threads && i < n; i++)
		pthread_join(t[i].id, NULL);
	phase_end(r, read_tsc() - start);
}

static void put_result(const struct recorder *r, const char *name, uint64_t value)
{
	char note[40];
	occurrence_note(r, note, sizeof(note), "");
	if (r->tracing)
		put_row(r, r->key, name, (int64_t)value, "count", note);
}

static void get_dirty_log(struct recorder *r, const char *phase)
{
	uint64_t words = (r->opts.slot_pages + 63) / 64, n = 0;
	memset(r->bitmap, 0xaa, words * sizeof(r->bitmap[0])); /* every word must be overwritten */
	phase_begin(r, phase);
	uint64_t start = read_tsc();
	guest_get_dirty_log(&r->guest, r->bitmap);
	phase_end(r, read_tsc() - start);
	for (uint64_t i = 0; i < words; i++)
		n += (uint64_t)__builtin_popcountll(r->bitmap[i]);
	put_result(r, "res:ndirty", n);
}

static void clear_dirty_log(struct recorder *r, const char *phase, uint64_t chunk)
{
	uint64_t slot = r->opts.slot_pages;
	if (chunk == PROGRAM_ALL)
		chunk = (slot + 63) / 64 * 64;
	phase_begin(r, phase);
	uint64_t start = read_tsc();
	guest_clear_dirty_log(&r->guest, chunk, r->bitmap);
	phase_end(r, read_tsc() - start);
	put_result(r, "res:nioctl", (slot + chunk - 1) / chunk);
}

static void put_ring_results(struct recorder *r, enum statement_op op)
{
	const struct guest *g = &r->guest;
	if (op == OP_WRITE_FULL || op == OP_WRITE_RESETS)
		put_result(r, "res:ring_full_exits", g->full);
	if (op == OP_WRITE_RESETS)
		put_result(r, "res:collected_in_full", g->collected);
	if (op == OP_COLLECT || op == OP_RESET)
		put_result(r, "res:collected", g->collected);
	if (op == OP_WRITE_RESETS || op == OP_RESET || op == OP_RESET_HARVESTED)
		put_result(r, "res:reset_returned", g->reset);
}

static void empty_rings(struct recorder *r, const struct statement *s)
{
	phase_begin(r, s->phase);
	guest_ring_mark(&r->guest);
	uint64_t start = read_tsc();
	if (s->op != OP_RESET_HARVESTED)
		guest_collect_rings(&r->guest);
	if (s->op != OP_COLLECT)
		guest_reset_rings(&r->guest);
	phase_end(r, read_tsc() - start);
	put_ring_results(r, s->op);
}

static void end_vm(struct recorder *r)
{
	if (!r->has_guest)
		return;
	if (r->tracing)
		stats_close(&r->stats);
	guest_destroy(&r->guest);
	r->has_guest = false;
}

static void *no_thread(void *arg)
{
	return arg;
}

/* The stack of a thread that ended is the next one's, with the huge page of its top split already.
 * One such stack is what the matrix's VMM had before its first two threads, by the MMU notifiers
 * that its first phase with threads shows. */
static void leave_a_stack(void)
{
	pthread_t id;
	if (pthread_create(&id, NULL, no_thread, NULL) || pthread_join(id, NULL))
		die("no thread");
}

static void new_vm(struct recorder *r, const struct statement *s)
{
	struct guest_opts opts = {
		.slot_pages = r->opts.slot_pages,
		.pte = r->opts.pte,
		.logged = s->logged,
		.manual = s->manual,
		.ring = s->ring,
		.vcpus = s->vcpus,
	};
	end_vm(r);
	guest_create(&r->guest, &opts);
	if (r->tracing)
		stats_open(&r->stats, &r->guest);
	r->has_guest = true;
	if (s->vcpus > 1)
		leave_a_stack();
	r->pattern = PATTERN_NONE;
	r->nr_dirty = -1;
	r->round = -1;
}

static void choose_pages(struct recorder *r, enum pattern pattern, uint64_t number)
{
	if (number == PROGRAM_ALL)
		number = r->opts.slot_pages;
	r->pattern = pattern;
	r->nr_dirty = (int64_t)number;
	r->n_pages = pattern == PATTERN_NONE ? 0 : number;
	if (r->n_pages > r->opts.slot_pages)
		die("%" PRIu64 " pages of a slot of %" PRIu64, number, r->opts.slot_pages);
	pattern_pages(pattern, r->n_pages, r->opts.slot_pages, r->pages);
}

static void access_pages(struct recorder *r, const struct statement *s, enum guest_loop loop)
{
	if (r->n_pages == 0)
		die("phase %s: no pages", s->phase); /* LOOP would run 2^64 times */
	if (r->guest.opts.vcpus == 1) {
		guest_load(&r->guest, 0, loop, r->pages, r->n_pages);
		run_phase(r, s->phase);
		return;
	}
	uint64_t each = r->n_pages / r->guest.opts.vcpus;
	if (r->pattern != PATTERN_HALVES || each == 0)
		die("phase %s: several vCPUs need halves of several pages", s->phase);
	for (unsigned i = 0; i < r->guest.opts.vcpus; i++)
		guest_load(&r->guest, i, loop, r->pages + i * each, each);
	run_all_phase(r, s->phase, s->op == OP_WRITE_THREADS);
}

static void execute(struct recorder *r, const struct statement *s)
{
	uint64_t start;
	switch (s->op) {
	case OP_VM:
		new_vm(r, s);
		break;
	case OP_SETUP:
		guest_load_setup(&r->guest);
		run_phase(r, "setup");
		break;
	case OP_PAGES:
		choose_pages(r, s->pattern[0], s->n_numbers ? s->number[0] : 0);
		if (!s->n_numbers)
			r->nr_dirty = -1;
		break;
	case OP_ROUND:
		r->round = s->n_numbers ? (int)s->number[0] : -1;
		break;
	case OP_WRITE:
	case OP_WRITE_THREADS:
		access_pages(r, s, GUEST_WRITE);
		break;
	case OP_WRITE_FULL:
	case OP_WRITE_RESETS:
		guest_ring_mark(&r->guest);
		access_pages(r, s, GUEST_WRITE);
		put_ring_results(r, s->op);
		break;
	case OP_COLLECT:
	case OP_RESET:
	case OP_RESET_HARVESTED:
		empty_rings(r, s);
		break;
	case OP_READ:
		access_pages(r, s, GUEST_READ);
		break;
	case OP_INC:
		access_pages(r, s, GUEST_INC);
		break;
	case OP_GET:
		get_dirty_log(r, s->phase);
		break;
	case OP_CLEAR:
		clear_dirty_log(r, s->phase, s->number[0]);
		break;
	case OP_LOG_ON:
	case OP_LOG_OFF:
		phase_begin(r, s->phase);
		start = read_tsc();
		guest_log(&r->guest, s->op == OP_LOG_ON);
		phase_end(r, read_tsc() - start);
		break;
	case OP_NULL:
		phase_begin(r, s->phase);
		start = read_tsc();
		phase_end(r, read_tsc() - start);
		break;
	case OP_CHECK_EXTENSION:
		phase_begin(r, s->phase);
		start = read_tsc();
		guest_check_extension(&r->guest);
		phase_end(r, read_tsc() - start);
		break;
	case OP_EMPTY:
		guest_load_empty(&r->guest);
		run_phase(r, s->phase);
		break;
	case OP_SWEEP:
	case OP_REPEAT:
	case OP_END:
		break; /* run_program() */
	}
}

/* The statements between @first and the block's end, @rounds times; returns the end's index. */
static size_t run_rounds(struct recorder *r, size_t first, unsigned rounds)
{
	const struct program *p = r->opts.program;
	size_t end = first;
	while (p->statement[end].op != OP_END)
		end++;
	for (r->round = 1; r->round <= (int)rounds; r->round++)
		for (size_t i = first; i < end; i++)
			execute(r, &p->statement[i]);
	r->round = -1;
	return end;
}

static size_t run_sweep(struct recorder *r, size_t at)
{
	const struct statement *s = &r->opts.program->statement[at];
	size_t end = at;
	r->pooled = true;
	for (unsigned p = 0; p < s->n_patterns; p++)
		for (unsigned k = 0; k < s->n_numbers; k++) {
			if (s->number[k] != PROGRAM_ALL && s->number[k] > r->opts.slot_pages)
				continue;
			choose_pages(r, s->pattern[p], s->number[k]);
			end = run_rounds(r, at + 1, s->rounds);
		}
	r->pooled = false;
	if (end == at) /* every number was larger than the slot */
		end = run_rounds(r, at + 1, 0);
	return end;
}

static void run_program(struct recorder *r)
{
	const struct program *p = r->opts.program;
	for (size_t i = 0; i < p->n; i++) {
		const struct statement *s = &p->statement[i];
		if (s->op == OP_SWEEP)
			i = run_sweep(r, i);
		else if (s->op == OP_REPEAT)
			i = run_rounds(r, i + 1, s->rounds);
		else
			execute(r, s);
	}
	end_vm(r);
}

static struct recorder *recorder_new(const struct record_opts *opts, bool tracing)
{
	struct recorder *r = calloc(1, sizeof(*r));
	if (!r)
		die_errno("out of memory");
	r->opts = *opts;
	r->tracing = tracing;
	return r;
}

void record_events(const struct record_opts *opts)
{
	struct recorder *r = recorder_new(opts, true);
	events_open();
	run_program(r);
	events_close();
	free(r);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

void record_insns(const struct record_opts *opts, unsigned times)
{
	struct recorder *r = recorder_new(opts, false);
	for (unsigned i = 0; i < times; i++)
		run_program(r);
	for (size_t i = 0; i < r->n_keys; i++) {
		struct phase_key *key = &r->keys[i];
		char note[32];
		qsort(key->samples, key->n_samples, sizeof(key->samples[0]), compare_u64);
		snprintf(note, sizeof(note), "n=%u", key->n_samples);
		const struct {
			const char *name;
			unsigned index;
		} rows[] = {
			{"insns_min", 0},
			{"insns_median", (key->n_samples - 1) / 2},
			{"insns_max", key->n_samples - 1},
		};
		for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
			put_row(r, key, rows[k].name, (int64_t)key->samples[rows[k].index],
				"L1 instructions", note);
	}
	free(r);
}
