// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/sched_util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/params.h"
#include "model/sim/profile.h"
#include "tests/unit/simple.h"

void host_open(struct host *h, const struct sched_opts *opts, const char *prices, bool reference)
{
	char text[512];
	int n = snprintf(text, sizeof(text),
			 "[machine]\nunit = cycles\nhz = 1000000000\n[price]\ninsn = 1\n%s"
			 "[param]\nipi_latency = %llu\n",
			 prices, IPI);

	if (profile_parse(text, (size_t)n, "host", &model_vocabulary, model_params, &simple_errors,
			  &h->profile))
		abort();
	h->sim = simple_sim(&(struct sim_opts){
		.vocabulary = &model_vocabulary, .profile = h->profile, .reference = reference});
	if (sched_create(h->sim, opts, &h->sched))
		abort();
}

void host_close(struct host *h)
{
	sim_destroy(h->sim);
	sched_destroy(h->sched);
	profile_free(h->profile);
}

int worker_work(struct worker *w, uint64_t n)
{
	while (n) {
		uint64_t part;
		int r = sched_work(w->th, COUNT_insn, n, &part);

		n -= part;
		w->done += part;
		if (!r && sched_need_resched(w->th))
			r = sched_schedule(w->th);
		if (r)
			return r;
	}
	return 0;
}

static int worker(struct task *t, void *arg)
{
	struct worker *w = arg;
	int r = sched_start(w->th, t);

	if (!r && w->fn)
		r = w->fn(w);
	while (!r && !w->fn && w->work) {
		uint64_t n = w->burst && w->burst < w->work ? w->burst : w->work;

		r = worker_work(w, n);
		w->work -= n;
		if (!r && w->pause) {
			cycles_t until = task_now(t) + w->pause;

			r = sched_sleep_until(w->th, WAIT_idle, until);
			if (!r && task_now(t) - until > w->latest)
				w->latest = task_now(t) - until;
		}
	}
	sched_end(w->th);
	return r < 0 ? r : 0;
}

void worker_add(struct host *h, struct worker *w, const struct sched_thread_opts *opts,
		cycles_t start)
{
	struct sched_thread_opts o = *opts;

	o.private = w;
	w->host = h;
	if (sched_thread_create(h->sched, &o, &w->th))
		abort();
	w->task = simple_task(h->sim, opts->name, worker, w, start);
}

static int observer(struct task *t, void *arg)
{
	(void)arg;
	sim_stop(task_sim(t));
	return sync(t);
}

void host_run(struct host *h, cycles_t until)
{
	simple_task(h->sim, "observer", observer, NULL, until);
	if (sim_run(h->sim, CYCLES_MAX))
		abort();
}

unsigned worker_share(const struct worker *w, cycles_t from)
{
	return (unsigned)(sched_thread_stats(w->th).exec * 1000 / (sim_now(w->host->sim) - from));
}
