// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/trace_text.h"

const char *const trace_left_out_words[N_LEFT_OUT] = {
	[LEFT_OUT_TIMER] = "host interrupts: the exit and the entry after it",
	[LEFT_OUT_OUTSIDE] = "outside the phases",
};

struct trace_phase *trace_phases_add(struct trace_phases *p)
{
	struct trace_phase *grown = realloc(p->phase, (p->n + 1) * sizeof(*grown));

	if (!grown)
		return NULL;
	p->phase = grown;
	grown[p->n] = (struct trace_phase){.nr_dirty = MATRIX_NONE, .round = MATRIX_NONE};
	p->interrupted = 0;
	return &grown[p->n++];
}

void trace_phases_name(struct trace_phases *p, const char *name)
{
	struct trace_phase *last = &p->phase[p->n - 1];

	snprintf(last->name, sizeof(last->name), "%s", name);
	last->vm = p->n > 1 ? last[-1].vm + !strcmp(name, "setup") : 0;
}

/* The host's timer interrupts the guest when it likes, and so do IPIs from other vCPUs' threads. */
static bool interrupt(struct trace_phases *p, const struct trace_line *line)
{
	uint32_t bit = 1u << (line->field[LINE_vcpu] & 31);

	if (line->id == TRACE_kvm_exit && line->field[LINE_reason] == EXIT_INTR) {
		p->interrupted |= bit;
		return true;
	}
	if (line->id != TRACE_kvm_entry || !(p->interrupted & bit))
		return false;
	p->interrupted &= ~bit;
	return true;
}

bool trace_phases_add_line(struct trace_phases *p, const struct trace_line *line)
{
	struct trace_phase *phase = &p->phase[p->n - 1];

	if (interrupt(p, line)) {
		p->left_out[LEFT_OUT_TIMER]++;
		return true;
	}
	if (phase->n_lines == phase->room) {
		size_t room = phase->room ? phase->room * 2 : 64;
		struct trace_line *grown = realloc(phase->lines, room * sizeof(*grown));

		if (!grown)
			return false;
		phase->lines = grown;
		phase->room = room;
	}
	phase->lines[phase->n_lines++] = *line;
	return true;
}

/* The least thread after @after among the events; false: there is none. */
static bool next_thread(const struct trace_phase *p, const uint64_t *after, uint64_t *thread)
{
	bool found = false;

	for (size_t i = 0; i < p->n_lines; i++) {
		uint64_t t = p->lines[i].thread;

		if ((!after || t > *after) && (!found || t < *thread)) {
			*thread = t;
			found = true;
		}
	}
	return found;
}

bool trace_phase_end(struct trace_phase *p)
{
	struct trace_line *sorted;
	uint64_t thread = 0, last;
	size_t n = 0;

	p->threads = 0;
	for (bool more = next_thread(p, NULL, &thread); more;
	     more = next_thread(p, &last, &thread)) {
		p->threads++;
		last = thread;
	}
	if (p->threads < 2)
		return true;
	sorted = malloc(p->n_lines * sizeof(*sorted));
	if (!sorted)
		return false;
	for (bool more = next_thread(p, NULL, &thread); more;
	     more = next_thread(p, &last, &thread)) {
		for (size_t i = 0; i < p->n_lines; i++) {
			if (p->lines[i].thread == thread)
				sorted[n++] = p->lines[i];
		}
		last = thread;
	}
	free(p->lines);
	p->lines = sorted;
	p->room = p->n_lines;
	return true;
}

void trace_phases_free(struct trace_phases *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->phase[i].lines);
	free(p->phase);
	memset(p, 0, sizeof(*p));
}
