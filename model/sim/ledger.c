// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/sim/ledger.h"

#include <stdlib.h>

#include "model/sim/task.h"

static size_t row_len(const struct ledger *l)
{
	return (size_t)l->vocabulary->n_counts + l->vocabulary->n_waits;
}

int ledger_init(struct ledger *l, const struct sim_vocabulary *v)
{
	*l = (struct ledger){.vocabulary = v};
	l->scrap = calloc(row_len(l), sizeof(*l->scrap));
	return l->scrap ? 0 : KVMSIM_ENOMEM;
}

void ledger_free(struct ledger *l)
{
	for (size_t i = 0; i < (size_t)l->n_tasks * l->vocabulary->n_activities; i++)
		free(l->rows[i]);
	free(l->rows);
	free(l->scrap);
}

int ledger_add_task(struct ledger *l, uint32_t task)
{
	size_t per_task = l->vocabulary->n_activities;

	if (task >= l->cap_tasks) {
		uint32_t cap = l->cap_tasks ? l->cap_tasks * 2 : 16;
		struct ledger_entry **p = realloc(l->rows, cap * per_task * sizeof(*p));

		if (!p)
			return KVMSIM_ENOMEM;
		l->rows = p;
		l->cap_tasks = cap;
	}
	/* A task that could not be made leaves its place, and its first row, to the next one. */
	if (task == l->n_tasks) {
		for (size_t i = 0; i < per_task; i++)
			l->rows[task * per_task + i] = NULL;
		l->n_tasks++;
	}
	return 0;
}

struct ledger_entry *ledger_row(struct ledger *l, uint32_t task, uint16_t activity)
{
	struct ledger_entry **row = &l->rows[(size_t)task * l->vocabulary->n_activities + activity];

	if (!*row)
		*row = calloc(row_len(l), sizeof(**row));
	return *row;
}

static struct ledger_entry entry(const struct ledger *l, uint32_t task, uint16_t activity,
				 size_t column)
{
	const struct ledger_entry *row;

	if (task >= l->n_tasks || activity >= l->vocabulary->n_activities || column >= row_len(l))
		return (struct ledger_entry){0};
	row = l->rows[(size_t)task * l->vocabulary->n_activities + activity];
	return row ? row[column] : (struct ledger_entry){0};
}

static struct ledger_entry sum(const struct ledger *l, uint32_t task, uint16_t activity,
			       size_t column)
{
	struct ledger_entry total = {0};
	uint32_t t0 = task == LEDGER_ALL_TASKS ? 0 : task;
	uint32_t t1 = task == LEDGER_ALL_TASKS ? l->n_tasks : task + 1;
	uint32_t a0 = activity == LEDGER_ALL_ACTIVITIES ? 0 : activity;
	uint32_t a1 = activity == LEDGER_ALL_ACTIVITIES ? l->vocabulary->n_activities : a0 + 1;

	for (uint32_t t = t0; t < t1; t++) {
		for (uint32_t a = a0; a < a1; a++) {
			struct ledger_entry e = entry(l, t, (uint16_t)a, column);

			total.n += e.n;
			total.cycles += e.cycles;
		}
	}
	return total;
}

struct ledger_entry ledger_sum_count(const struct ledger *l, uint32_t task, uint16_t activity,
				     uint16_t count)
{
	if (count >= l->vocabulary->n_counts)
		return (struct ledger_entry){0};
	return sum(l, task, activity, count);
}

struct ledger_entry ledger_sum_wait(const struct ledger *l, uint32_t task, uint16_t activity,
				    uint16_t wait)
{
	return sum(l, task, activity, (size_t)l->vocabulary->n_counts + wait);
}

cycles_t ledger_task_total(const struct ledger *l, uint32_t task)
{
	cycles_t total = 0;

	for (size_t c = 0; c < row_len(l); c++)
		total += sum(l, task, LEDGER_ALL_ACTIVITIES, c).cycles;
	return total;
}

void ledger_for_each(const struct ledger *l, ledger_fn fn, void *ctx)
{
	uint16_t n_counts = l->vocabulary->n_counts;

	for (uint32_t t = 0; t < l->n_tasks; t++) {
		for (uint16_t a = 0; a < l->vocabulary->n_activities; a++) {
			for (size_t c = 0; c < row_len(l); c++) {
				struct ledger_entry e = entry(l, t, a, c);
				bool is_wait = c >= n_counts;

				if (e.n || e.cycles)
					fn(ctx, t, a, is_wait,
					   (uint16_t)(is_wait ? c - n_counts : c), e);
			}
		}
	}
}

int sim_check_ledger(const struct sim *s)
{
	for (uint32_t i = 0; i < s->n_tasks; i++) {
		const struct task *t = s->task[i];
		cycles_t total = ledger_task_total(&s->ledger, i);
		cycles_t elapsed = t->hot.now - t->start;

		if (total != elapsed)
			return kvmsim_err(s->errors, KVMSIM_ECHECK,
					  "ledger of task %s sums to %llu, but %llu have passed",
					  t->name, (unsigned long long)total,
					  (unsigned long long)elapsed);
	}
	return 0;
}
