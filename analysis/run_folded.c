// SPDX-License-Identifier: GPL-3.0-or-later
/* A run's ledger as folded stacks: TASK;ACTIVITY;COUNT cycles. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/folded.h"
#include "analysis/run_folded.h"

/* One entry per task, activity and count or wait. */
static size_t place(uint32_t task, uint16_t activity, bool is_wait, uint16_t id)
{
	return ((size_t)task * N_ACTIVITIES + activity) * (N_COUNTS + N_WAITS) +
	       (is_wait ? N_COUNTS + id : id);
}

static void keep(void *ctx, uint32_t task, uint16_t activity, bool is_wait, uint16_t id,
		 struct ledger_entry e)
{
	struct folded_ledger *f = ctx;

	if (task < f->tasks)
		f->before[place(task, activity, is_wait, id)] = e.cycles;
}

int folded_ledger_start(struct folded_ledger *f, const struct sim *sim)
{
	while (sim_task_name(sim, f->tasks))
		f->tasks++;
	f->before =
		calloc((size_t)f->tasks * N_ACTIVITIES * (N_COUNTS + N_WAITS), sizeof(*f->before));
	if (!f->before)
		return KVMSIM_ENOMEM;
	ledger_for_each(sim_ledger(sim), keep, f);
	return 0;
}

void folded_ledger_free(struct folded_ledger *f)
{
	free(f->before);
	f->before = NULL;
}

struct writing {
	const struct folded_ledger *f;
	const struct sim *sim;
	FILE *to;
};

static void write_entry(void *ctx, uint32_t task, uint16_t activity, bool is_wait, uint16_t id,
			struct ledger_entry e)
{
	const struct writing *w = ctx;
	cycles_t before = task < w->f->tasks ? w->f->before[place(task, activity, is_wait, id)] : 0;
	char name[64];

	if (e.cycles == before)
		return;
	folded_frame(name, sizeof(name), sim_task_name(w->sim, task));
	fprintf(w->to, "%s;%s;%s%s %" PRIu64 "\n", name, model_vocabulary.activities[activity],
		is_wait ? "wait: " : "",
		is_wait ? model_vocabulary.waits[id] : model_vocabulary.counts[id],
		e.cycles - before);
}

void folded_ledger_write(const struct folded_ledger *f, const struct sim *sim, FILE *to)
{
	struct writing w = {f, sim, to};

	ledger_for_each(sim_ledger(sim), write_entry, &w);
}
