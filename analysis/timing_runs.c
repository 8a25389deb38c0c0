// SPDX-License-Identifier: GPL-3.0-or-later
/* The runs that predict rows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/memstress_args.h"
#include "analysis/run.h"
#include "analysis/timing_priv.h"
#include "model/sim/profile.h"

#define MAX_WORDS 48

/* The options of a run, as of the command. */
static int parse_options(const struct timing *t, const struct timing_row *row,
			 struct timing_cached *c)
{
	char *argv[MAX_WORDS + 1] = {"memstress"}, *save;
	struct memstress_args a;
	char vcpus[32] = "";
	int argc = 1;

	if (row->x)
		snprintf(vcpus, sizeof(vcpus), " -v %" PRIu64, row->x);
	if (asprintf(&c->text, "%.*s%s", (int)c->options_len, c->options, vcpus) < 0) {
		c->text = NULL;
		return KVMSIM_ENOMEM;
	}
	for (char *w = strtok_r(c->text, " ", &save); w && argc < MAX_WORDS;
	     w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	if (memstress_args_parse(&a, &verb_memstress, argc, argv) || a.help || a.profile)
		return kvmsim_err(&cli_errors, KVMSIM_EPARSE,
				  "%s:%lu: these are no options of a "
				  "run: %s",
				  t->recipe->runs, row->run->line, row->run->options);
	c->o = a.o;
	if (!strstr(row->run->options, "-b "))
		c->o.bytes = t->recipe->bytes;
	c->scale = (double)c->published_bytes / (double)c->o.bytes;
	return 0;
}

static bool is_of(const struct timing_cached *c, const struct timing_cached *wanted)
{
	return c->x == wanted->x && c->published_bytes == wanted->published_bytes &&
	       c->options_len == wanted->options_len &&
	       !memcmp(c->options, wanted->options, c->options_len);
}

/* @wanted: options, x and published_bytes. */
static int find_run(struct timing *t, const struct timing_row *row,
		    const struct timing_cached *wanted, const struct profile *profile,
		    const struct kvmsim_errsink *errors, const struct timing_cached **out)
{
	struct timing_cache *cache = t->cache;
	struct timing_cached *grown, *c;
	int err;

	if (cache->profile != profile)
		timing_cache_clear(cache);
	cache->profile = profile;
	for (size_t i = 0; i < cache->n_runs; i++) {
		*out = &cache->runs[i];
		if (is_of(*out, wanted))
			return 0;
	}
	grown = realloc(cache->runs, (cache->n_runs + 1) * sizeof(*grown));
	if (!grown)
		return KVMSIM_ENOMEM;
	cache->runs = grown;
	c = &cache->runs[cache->n_runs++];
	*c = *wanted;
	err = parse_options(t, row, c);
	if (err)
		return err;
	c->o.profile = profile;
	c->o.interrupted = &run_interrupted;
	c->o.errors = errors;
	*out = c;
	return memstress_collect(&c->o, &c->result);
}

/* The word between the options of a row and those that it is compared with. */
#define THAN " than "

/* @other: under the latter, where there are some. */
static int run_side(struct timing *t, const struct timing_row *row, bool other,
		    const struct profile *profile, const struct kvmsim_errsink *errors,
		    const struct timing_cached **out)
{
	struct timing_cached wanted = {.options = row->run->options, .x = row->x};
	const char *than = strstr(wanted.options, THAN);

	wanted.published_bytes =
		row->run->published_bytes ? row->run->published_bytes : t->recipe->published_bytes;
	if (than && other)
		wanted.options = than + strlen(THAN);
	wanted.options_len =
		than && !other ? (size_t)(than - wanted.options) : strlen(wanted.options);
	return find_run(t, row, &wanted, profile, errors, out);
}

int timing_run_row(struct timing *t, const struct timing_row *row, const struct profile *profile,
		   const struct kvmsim_errsink *errors, const struct timing_cached **out)
{
	return run_side(t, row, false, profile, errors, out);
}

/* "A/B": how many A there are for each B. */
static int count_ratio(const struct memstress_result *r, const char *a, const char *slash,
		       double *out)
{
	double n[2] = {0};

	for (uint16_t c = 0; c < N_COUNTS; c++) {
		const char *name = model_vocabulary.counts[c];
		bool above = strlen(name) == (size_t)(slash - a) &&
			     !strncmp(name, a, (size_t)(slash - a));

		for (size_t i = 0; i < r->n_rows; i++) {
			n[0] += above ? (double)r->rows[i].sums.counts[c] : 0;
			n[1] += strcmp(name, slash + 1) ? 0 : (double)r->rows[i].sums.counts[c];
		}
	}
	*out = n[1] > 0 ? n[0] / n[1] : 0;
	return 0;
}

bool timing_is_number(const struct timing_run *run)
{
	return strpbrk(run->row, "/%");
}

static int predict(struct timing *t, struct timing_row *row, const struct profile *profile,
		   const struct kvmsim_errsink *errors)
{
	const char *name = row->run->row, *slash = strchr(name, '/'), *percent = strchr(name, '%');
	const struct memstress_row *of[2] = {NULL, NULL};
	const struct timing_cached *c = NULL;
	bool saved = !strncmp(name, "saved% ", 7);

	for (int side = saved; side >= 0; side--) {
		int err = run_side(t, row, side, profile, errors, &c);

		if (err)
			return err;
		of[side] = slash ? NULL : memstress_find(&c->result, percent ? percent + 2 : name);
		if (!slash && !of[side])
			return kvmsim_err(errors, KVMSIM_EPARSE, "%s:%lu: such a run has no \"%s\"",
					  t->recipe->runs, row->run->line, name);
		row->predicted = slash ? 0 : (double)of[side]->cycles;
	}
	if (slash)
		return count_ratio(&c->result, name, slash, &row->predicted);
	if (saved)
		row->predicted = 100 * (1 - (double)of[0]->cycles / (double)of[1]->cycles);
	else if (percent)
		row->predicted = 100 * (double)of[0]->sums.waits[WAIT_lock] /
				 ((double)of[0]->cycles * c->o.vcpus);
	else
		row->predicted *= c->scale / (double)profile_hz(profile);
	return 0;
}

int timing_predict(struct timing *t, const struct profile *profile, uint64_t quick,
		   const struct kvmsim_errsink *errors)
{
	int err = 0;

	for (size_t i = 0; i < t->n_rows && !err; i++) {
		struct timing_row *row = &t->rows[i];

		row->predicted = 0;
		if (!timing_untold(row->run) && !(quick && row->x > quick))
			err = predict(t, row, profile, errors);
	}
	return err;
}
