// SPDX-License-Identifier: GPL-3.0-or-later
/* A host's trace as folded stacks: how long each vCPU was in what state. */
#define HASH_NONFATAL_OOM 1
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "analysis/export.h"
#include "analysis/host_progress.h"
#include "analysis/folded.h"
#include "analysis/host_threads.h"
#include "analysis/run.h"

#define MAX_STACKS 65536

struct stack {
	char text[200];
	uint64_t ns;
	UT_hash_handle hh;
};

struct folding {
	struct host_threads *threads;
	struct stack *stacks;
	uint64_t events;
};

static struct stack *find_stack(struct folding *f, const char *text)
{
	struct stack *s;

	HASH_FIND_STR(f->stacks, text, s);
	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	snprintf(s->text, sizeof(s->text), "%s", text);
	HASH_ADD_STR(f->stacks, text, s);
	if (!s->hh.tbl) {
		free(s);
		return NULL;
	}
	return s;
}

static int on_segment(void *ctx, const struct host_segment *g)
{
	struct folding *f = ctx;
	char text[200], comm[4 * HOST_COMM];
	const char *state = g->unsure ? "cannot tell" : host_state_name(g->state);
	struct stack *s;
	int n;

	folded_frame(comm, sizeof(comm), g->who->comm);
	n = g->who->vcpu >= 0 ? snprintf(text, sizeof(text), "vCPU %" PRId64 " ", g->who->vcpu) : 0;
	n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%stid %" PRId64 ";%s", comm,
		      comm[0] ? " " : "", g->who->tid, state);
	/* whom it was descheduled for would make a stack for each thread of the host */
	if (!g->unsure && g->detail[0] && g->state != HOST_OFF)
		snprintf(text + n, sizeof(text) - (size_t)n, ";%s", g->detail);
	if (HASH_COUNT(f->stacks) >= MAX_STACKS)
		snprintf(text, sizeof(text), "others;%s", state);
	s = find_stack(f, text);
	if (!s)
		return KVMSIM_ENOMEM;
	s->ns += g->end - g->begin;
	return 0;
}

static int on_event(void *ctx, const struct host_event *e)
{
	struct folding *f = ctx;

	f->events++;
	return host_threads_event(f->threads, e);
}

static int on_loss(void *ctx, const struct host_loss *l)
{
	return host_threads_loss(((struct folding *)ctx)->threads, l);
}

static int on_elision(void *ctx)
{
	return host_threads_elision(((struct folding *)ctx)->threads);
}

static int by_text(const struct stack *a, const struct stack *b)
{
	return strcmp(a->text, b->text);
}

int export_folded(const char *path, const struct kvmsim_errsink *errors, FILE *to,
		  struct host_result *result, uint64_t *n_events)
{
	struct folding f = {0};
	const struct host_threads_sink threads = {.ctx = &f, .segment = on_segment};
	const struct host_sink sink = {
		.ctx = &f, .event = on_event, .loss = on_loss, .elision = on_elision};
	struct host_progress progress;
	const struct host_opts opts = {.interrupted = &run_interrupted,
				       .progress = host_progress_begin(&progress),
				       .progress_ctx = &progress};
	struct stack *s, *next;
	int err = KVMSIM_ENOMEM;

	memset(result, 0, sizeof(*result));
	f.threads = host_threads_create(&threads);
	if (f.threads) {
		err = host_read(path, &opts, &sink, errors, result);
		host_progress_end(&progress);
	}
	err = err ? err : host_threads_end(f.threads);
	*n_events = f.events;
	if (!err && f.events && host_threads_totals(f.threads).first == HOST_NO_TIME)
		err = kvmsim_err(errors, KVMSIM_EPARSE,
				 "%s: its records have no times: how long each state was cannot be "
				 "told",
				 path);
	HASH_SORT(f.stacks, by_text);
	HASH_ITER(hh, f.stacks, s, next)
	{
		if (!err)
			fprintf(to, "%s %" PRIu64 "\n", s->text, s->ns);
		/* The analyser takes the table to be freed with an element that is not the last. */
		HASH_DEL(f.stacks, s); // NOLINT(clang-analyzer-*)
		free(s);
	}
	host_threads_free(f.threads);
	return err;
}
