// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/phase.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/kernel/events.h"
#include "tests/kernel/vmm.h"

void record_header(FILE *rows)
{
	fputs("case,mmu,kvm_mode,slot_pages,guest_pte,pattern,nr_dirty,round,phase,quantity,value,"
	      "unit,note\n",
	      rows);
}

static const char *const pte_words[] = {
	[GUEST_PTE_4K] = "4k", [GUEST_PTE_2M] = "2m", [GUEST_PTE_NONE] = "none"};

static const char *pte_word(const struct record_opts *o)
{
	return o->kind == GUEST_32BIT && o->pte == GUEST_PTE_2M ? "4m" : pte_words[o->pte];
}

static void put_row(const struct recorder *r, const struct phase_key *key, const char *quantity,
		    int64_t value, const char *unit, const char *note)
{
	const char *quote = strchr(quantity, ',') ? "\"" : "";
	fprintf(r->opts.rows, "%s,%s,%s,%" PRIu64 ",%s,%s,%s%s%s,%" PRId64 ",%s,%s\n",
		r->opts.program->case_name, r->opts.mmu, r->opts.mode, r->opts.slot_pages,
		pte_word(&r->opts), key->text, quote, quantity, quote, value, unit, note);
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

void phase_text_begin(const struct recorder *r)
{
	const struct record_opts *o = &r->opts;
	const char *name = o->program->case_name, *pte = pte_word(o);
	fprintf(o->rows,
		"TRACE %s-%s-%" PRIu64 "-%s\nCASE name=%s mmu=%s slot_pages=%" PRIu64
		" guest_pte=%s\n",
		name, o->mmu, o->slot_pages, pte, name, o->mmu, o->slot_pages, pte);
}

void phase_text_end(const struct recorder *r)
{
	fputs("ENDTRACE\n", r->opts.rows);
}

static void mark_phase(const struct recorder *r)
{
	char text[128];
	const char *name = strrchr(r->key->text, ',') + 1;
	snprintf(text, sizeof(text), "PHASE %s nr=%" PRId64 " round=%d pattern=%s", name,
		 r->nr_dirty < 0 ? -1 : r->nr_dirty, r->round < 0 ? -1 : r->round,
		 r->pattern == PATTERN_NONE ? "-" : pattern_name(r->pattern));
	events_mark(text);
}

/* A walk over a whole slot that is asked to give up the CPU flushes first. A tick can ask that, so
 * such a walk begins with one just behind it: the next is 4 million instructions away. */
static void after_a_tick(void)
{
	struct timespec first, now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &first);
	do
		clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	while (now.tv_nsec == first.tv_nsec);
}

void phase_begin(struct recorder *r, const char *phase)
{
	r->key = find_key(r, phase);
	r->key->occurrences++;
	if (r->text) {
		events_start();
		mark_phase(r);
		return;
	}
	if (r->tracing) {
		stats_read(&r->stats, r->stats_before);
		work_read(&r->work_before);
		events_start();
		if (!strncmp(phase, "disable_log", strlen("disable_log")))
			after_a_tick();
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

/* The first phase has every count, so that what is left out of others is known to be zero. */
static void put_work(struct recorder *r, const struct work *after)
{
	char quantity[64], note[40];
	if (after->n != r->work_before.n)
		die("the work's counts have changed");
	occurrence_note(r, note, sizeof(note), "");
	for (size_t i = 0; i < after->n; i++) {
		uint64_t n = after->count[i].value - r->work_before.count[i].value;
		if (n == 0 && r->work_named)
			continue;
		snprintf(quantity, sizeof(quantity), "work:%s", after->count[i].name);
		put_row(r, r->key, quantity, (int64_t)n, "count", note);
	}
	r->work_named = true;
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

void phase_end(struct recorder *r, uint64_t ticks)
{
	if (r->text) {
		events_mark("ENDPHASE");
		events_stop();
		events_text(r->opts.rows);
		return;
	}
	if (r->tracing) {
		static uint64_t after[STATS_MAX];
		static struct work work;
		events_stop();
		work_read(&work);
		stats_read(&r->stats, after);
		put_stats(r, after);
		put_work(r, &work);
		put_events(r);
		return;
	}
	if (r->key->n_samples == SAMPLES_MAX)
		die("more than %d samples of %s", SAMPLES_MAX, r->key->text);
	r->key->samples[r->key->n_samples++] = ticks;
}

void phase_result(const struct recorder *r, const char *name, uint64_t value)
{
	char note[40];
	occurrence_note(r, note, sizeof(note), "");
	if (r->tracing)
		put_row(r, r->key, name, (int64_t)value, "count", note);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

void phase_insns(struct recorder *r)
{
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
}
