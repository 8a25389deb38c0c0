// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/output.h"
#include "analysis/sequence.h"

static const char *const pte_words[] = {
	[MATRIX_PTE_NONE] = "none", [MATRIX_PTE_4K] = "4k", [MATRIX_PTE_2M] = "2m"};

/* The event at which a phase diverges, of one side; NULL: that side has ended. */
static const struct trace_line *at(const struct trace_phase *p, size_t i)
{
	return p && i < p->n_lines ? &p->lines[i] : NULL;
}

static void print_line(char sign, const struct trace_line *l, FILE *to)
{
	char text[TRACE_LINE_TEXT];

	if (l->number)
		fprintf(to, "%c %7lu  %s\n", sign, l->number, trace_line_text(l, text));
	else
		fprintf(to, "%c %7s  %s\n", sign, "", trace_line_text(l, text));
}

/* @context events after the first that differs, too. */
static void print_side(char sign, const struct trace_phase *p, size_t from, uint64_t context,
		       const char *side, FILE *to)
{
	size_t i;

	if (!p || !p->lines)
		return;
	for (i = from; i < p->n_lines && i - from <= context; i++)
		print_line(sign, &p->lines[i], to);
	if (i == p->n_lines)
		fprintf(to, "%c          (%s's phase ends here)\n", sign, side);
}

static void print_divergence(const struct sequence_result *r, uint64_t context, FILE *to)
{
	const struct sequence_phase *p = r->first;
	const struct trace_line *k = at(p->kernel, p->equal), *m = at(p->model, p->equal);
	enum trace_line_field field = N_LINE_FIELDS;

	fprintf(to, "%s: first divergence in phase %s (line %lu)", r->path, p->kernel->name,
		p->kernel->begins);
	if (!p->model) {
		fprintf(to, ": case %s has no VM with the phases of this one\n",
			r->recording->test_case);
		return;
	}
	if (k && m && !trace_line_equal(k, m, &field) && field != N_LINE_FIELDS)
		fprintf(to, ", event %zu: %s\n", p->equal + 1, trace_line_field_name(field));
	else
		fprintf(to, ", event %zu\n", p->equal + 1);
	fprintf(to, "- kernel\n+ model\n");
	for (size_t i = p->equal > context ? p->equal - context : 0; i < p->equal; i++)
		print_line(' ', &p->kernel->lines[i], to);
	print_side('-', p->kernel, p->equal, context, "the kernel", to);
	print_side('+', p->model, p->equal, context, "the model", to);
}

int sequence_print(const struct sequence_result *r, uint64_t context, FILE *to)
{
	const struct trace_recording *rec = r->recording;
	char equal[OUT_TEXT], events[OUT_TEXT];
	size_t diverge = 0, threads = 0;

	for (size_t i = 0; i < r->n_phases; i++) {
		diverge += r->phases[i].diverges;
		threads += r->phases[i].kernel->threads > 1;
	}
	fprintf(to, "%s: case %s, %s, slot of %llu pages, guest PTEs %s: %zu phases, ", r->path,
		rec->test_case, rec->mmu_name, (unsigned long long)rec->slot_pages,
		pte_words[rec->pte], r->n_phases);
	if (!diverge)
		fprintf(to, "%s events, equal line by line\n", out_u64(events, r->events));
	else
		fprintf(to, "%zu of them diverge; %s of %s events before that are equal\n", diverge,
			out_u64(equal, r->equal), out_u64(events, r->events));
	for (int i = 0; i < N_LEFT_OUT; i++) {
		if (rec->phases.left_out[i])
			fprintf(to, "  left out: %s lines, %s\n",
				out_u64(events, rec->phases.left_out[i]), trace_left_out_words[i]);
	}
	if (threads)
		fprintf(to, "  thread by thread: %zu phases that had several\n", threads);
	if (r->first)
		print_divergence(r, context, to);
	return 0;
}

static json_t *lines_json(const struct trace_phase *p, size_t from, uint64_t context)
{
	json_t *list = json_array();
	size_t begin = from > context ? from - context : 0;

	if (!p || !p->lines)
		return list;
	for (size_t i = begin; i < p->n_lines && i <= from + context; i++) {
		json_t *line = json_object();
		char text[TRACE_LINE_TEXT];

		if (p->lines[i].number)
			json_put(line, "line", json_u64(p->lines[i].number));
		json_put(line, "event", json_string(trace_line_text(&p->lines[i], text)));
		json_array_append_new(list, line);
	}
	return list;
}

static json_t *divergence_json(const struct sequence_phase *p, uint64_t context)
{
	const struct trace_line *k = at(p->kernel, p->equal), *m = at(p->model, p->equal);
	enum trace_line_field field = N_LINE_FIELDS;
	json_t *d = json_object();

	json_put(d, "phase", json_string(p->kernel->name));
	json_put(d, "phase_line", json_u64(p->kernel->begins));
	json_put(d, "vm_modelled", json_boolean(p->model));
	json_put(d, "event", json_u64(p->equal + 1));
	if (k && m && !trace_line_equal(k, m, &field) && field != N_LINE_FIELDS)
		json_put(d, "field", json_string(trace_line_field_name(field)));
	json_put(d, "kernel", lines_json(p->kernel, p->equal, context));
	json_put(d, "model", lines_json(p->model, p->equal, context));
	return d;
}

json_t *sequence_json(const struct sequence_result *r, uint64_t context)
{
	const struct trace_recording *rec = r->recording;
	json_t *o = json_object(), *phases = json_array(), *left_out = json_object();

	json_put(o, "file", json_string(r->path));
	json_put(o, "case", json_string(rec->test_case));
	json_put(o, "mmu", json_string(rec->mmu_name));
	json_put(o, "slot_pages", json_u64(rec->slot_pages));
	json_put(o, "guest_pte", json_string(pte_words[rec->pte]));
	json_put(o, "events", json_u64(r->events));
	json_put(o, "equal", json_u64(r->equal));
	for (size_t i = 0; i < r->n_phases; i++) {
		const struct sequence_phase *p = &r->phases[i];
		json_t *phase = json_object();

		json_put(phase, "phase", json_string(p->kernel->name));
		json_put(phase, "line", json_u64(p->kernel->begins));
		json_put(phase, "threads", json_u64(p->kernel->threads));
		json_put(phase, "events", json_u64(p->kernel->n_lines));
		json_put(phase, "equal", json_u64(p->equal));
		json_put(phase, "diverges", json_boolean(p->diverges));
		json_array_append_new(phases, phase);
	}
	json_put(o, "phases", phases);
	for (int i = 0; i < N_LEFT_OUT; i++)
		json_put(left_out, trace_left_out_words[i], json_u64(rec->phases.left_out[i]));
	json_put(o, "left_out", left_out);
	if (r->first)
		json_put(o, "first_divergence", divergence_json(r->first, context));
	return o;
}
