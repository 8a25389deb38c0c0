// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/host_summary.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analysis/cli.h"

#define MAX_CPUS (1ull << 20)

static int grow(struct host_summary *s, uint64_t cpu)
{
	size_t n = s->n_cpus ? s->n_cpus : 64;
	uint64_t *p;

	while (n <= cpu)
		n *= 2;
	p = realloc(s->last, n * sizeof(*p));
	if (!p)
		return KVMSIM_ENOMEM;
	for (size_t i = s->n_cpus; i < n; i++)
		p[i] = UINT64_MAX;
	s->last = p;
	s->n_cpus = n;
	return 0;
}

int host_summary_event(struct host_summary *s, const struct host_event *e)
{
	uint64_t cpu = e->cpu;

	if (e->cpu < 0 || cpu >= MAX_CPUS || e->time_ns == HOST_NO_TIME)
		return 0;
	if (cpu >= s->n_cpus) {
		int err = grow(s, cpu);

		if (err)
			return err;
	}
	s->out_of_order += s->last[cpu] != UINT64_MAX && e->time_ns < s->last[cpu];
	s->last[cpu] = e->time_ns;
	return 0;
}

void host_summary_loss(struct host_summary *s, const struct host_loss *l)
{
	if (l->header) {
		s->has_header = true;
		s->header += l->count;
	} else if (l->count == UINT64_MAX) {
		s->marks++;
	} else {
		s->marked += l->count;
	}
}

struct summary host_summary(const struct host_summary *s, const struct host_result *r)
{
	return (struct summary){
		.lines = r->counts.lines,
		.events = r->counts.records,
		.unknown = r->counts.unknown_lines,
		.damaged = r->counts.damaged_lines,
		.out_of_order = s->out_of_order,
		.lost = s->has_header ? s->header : s->marked,
		.lost_more = !s->has_header && s->marks,
		.rows = r->counts.rows,
		.no_order = r->counts.records && !r->has_cpu,
		.first_damaged = r->counts.first_damaged,
	};
}

void host_summary_free(struct host_summary *s)
{
	free(s->last);
	s->last = NULL;
	s->n_cpus = 0;
}

void summary_print(const char *file, const struct summary *s)
{
	char rows[48] = "", first[48] = "";

	if (s->rows)
		snprintf(rows, sizeof(rows), "; %" PRIu64 " row%s of tables", s->rows,
			 s->rows == 1 ? "" : "s");
	if (s->first_damaged)
		snprintf(first, sizeof(first), "; first damaged line %" PRIu64, s->first_damaged);
	kvmsim_err(&cli_errors, KVMSIM_OK,
		   "%s: %" PRIu64 " line%s, %" PRIu64 " event%s, %" PRIu64 " unknown, %" PRIu64
		   " damaged, %s%" PRIu64 " lost, %" PRIu64 " out of order%s%s%s",
		   file, s->lines, s->lines == 1 ? "" : "s", s->events, s->events == 1 ? "" : "s",
		   s->unknown, s->damaged, s->lost_more ? "at least " : "", s->lost,
		   s->out_of_order, s->no_order ? " (no CPU column)" : "", rows, first);
}

int summary_exit_code(const struct summary *s, bool strict)
{
	return strict && (s->unknown || s->damaged || s->lost || s->lost_more || s->out_of_order)
		       ? EXIT_GATE
		       : EXIT_DONE;
}
