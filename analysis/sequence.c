// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/sequence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/matrix_file.h"
#include "analysis/run.h"
#include "workloads/matrix.h"
#include "workloads/ops_program.h"

/* ---- the model's run ---- */

struct collection {
	struct trace_phases *phases;
	const struct kernel_names *has;
	bool begun;	    /* a phase, whose name comes at its end */
	uint64_t completed; /* vCPUs, as bits, whose last exit ended the instruction */
	bool no_memory;
};

static bool begin(struct collection *c)
{
	if (!c->begun)
		c->no_memory |= !trace_phases_add(c->phases);
	c->begun = true;
	return !c->no_memory;
}

/* Where the guest is entered again after an instruction that KVM did for it the model does not
 * know: its instructions have an address, and no length. After a fault it is the instruction
 * itself. */
static void hide_unknown(struct collection *c, const struct kvm_trace_event *e,
			 struct trace_line *line)
{
	uint64_t vcpu = e->vcpu < 64 ? 1ull << e->vcpu : 0;

	if (e->id == TRACE_kvm_exit && (e->code == EXIT_PF || e->code == EXIT_NPF))
		c->completed &= ~vcpu;
	else if (e->id == TRACE_kvm_exit || e->id == TRACE_kvm_emulate_insn)
		c->completed |= vcpu;
	else if (e->id == TRACE_kvm_entry && (c->completed & vcpu || !vcpu))
		line->hidden |= 1ull << LINE_rip;
}

static void on_event(void *ctx, const struct kvm_trace_event *e)
{
	struct collection *c = ctx;
	struct trace_line line;
	char name[64];

	snprintf(name, sizeof(name), "ev:%s", kvm_trace_name(e->id));
	if (!begin(c) || !kernel_names_have(c->has, name))
		return;
	trace_line_of(e, &line);
	hide_unknown(c, e, &line);
	c->no_memory |= !trace_phases_add_line(c->phases, &line);
}

static int on_phase(void *ctx, const struct matrix_phase *p)
{
	struct collection *c = ctx;
	struct trace_phase *phase;

	if (!begin(c))
		return KVMSIM_ENOMEM;
	phase = &c->phases->phase[c->phases->n - 1];
	trace_phases_name(c->phases, p->name);
	phase->pattern = p->pattern;
	phase->nr_dirty = p->nr_dirty;
	phase->round = p->round;
	c->begun = false;
	c->completed = 0; /* each phase has its own registers */
	if (run_interrupted)
		return KVMSIM_EINTR;
	return trace_phase_end(phase) ? 0 : KVMSIM_ENOMEM;
}

static int by_round(const void *a, const void *b)
{
	const struct matrix_round *x = a, *y = b;

	if (x->pattern != y->pattern)
		return x->pattern < y->pattern ? -1 : 1;
	if (x->nr_dirty != y->nr_dirty)
		return x->nr_dirty < y->nr_dirty ? -1 : 1;
	return (x->round > y->round) - (x->round < y->round);
}

/* The repeated part of the case, as far as the trace has it; in the order that the cases take
 * them in. */
static int rounds_of(const struct trace_phases *p, struct matrix_round **out, size_t *n)
{
	struct matrix_round *rounds = calloc(p->n + 1, sizeof(*rounds));

	*n = 0;
	*out = rounds;
	if (!rounds)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < p->n; i++) {
		const struct matrix_round r = {.pattern = p->phase[i].pattern,
					       .nr_dirty = p->phase[i].nr_dirty,
					       .round = p->phase[i].round};
		size_t known = 0;

		while (known < *n &&
		       (rounds[known].pattern != r.pattern ||
			rounds[known].nr_dirty != r.nr_dirty || rounds[known].round != r.round))
			known++;
		if (r.nr_dirty >= 0 && r.round >= 0 && known == *n)
			rounds[(*n)++] = r;
	}
	qsort(rounds, *n, sizeof(*rounds), by_round);
	return 0;
}

/* How often case E reads each page again: the phase's name says so. */
static unsigned device_rest(const struct trace_phases *p)
{
	unsigned rest = 0;

	for (size_t i = 0; i < p->n && !rest; i++) {
		if (sscanf(p->phase[i].name, "read_rest%u", &rest) != 1)
			rest = 0;
	}
	return rest;
}

static int run_case(const struct sequence_opts *so, struct sequence_result *s)
{
	const struct kvmsim_errsink *errors = so->errors;
	const struct trace_recording *r = s->recording;
	struct collection c = {.phases = &s->model, .has = so->has};
	const struct kvm_observer observer = {.event = on_event, .ctx = &c};
	struct matrix_round *rounds;
	struct matrix_opts o = {
		.test_case = r->test_case,
		.program = s->program,
		.mmu = r->mmu,
		.guest = r->guest,
		.preset = so->kernel ? other_kernel_preset(so->kernel, r->mmu == MMU_TDP) : NULL,
		.slot_pages = r->slot_pages,
		.pte = r->pte,
		.device_rest = device_rest(&r->phases),
		.profile = so->profile,
		.trace = &observer,
		.phase = on_phase,
		.ctx = &c,
		.errors = errors};
	int err;

	if (!s->program && !matrix_has_case(r->test_case))
		return kvmsim_err(errors, KVMSIM_ENOENT, "%s: the model has no case %s, %s %s.ops",
				  s->path, r->test_case,
				  s->looked_for ? "and there is no"
						: "and no --programs DIR was given with its",
				  r->test_case);
	if (!s->program && !matrix_case_on(r->test_case, r->mmu))
		return kvmsim_err(errors, KVMSIM_ENOENT, "%s: the model has no case %s on %s",
				  s->path, r->test_case, r->mmu_name);
	err = rounds_of(&r->phases, &rounds, &o.n_rounds);
	o.rounds = rounds;
	err = err ? err : matrix_run(&o);
	free(rounds);
	return err || !c.no_memory ? err : KVMSIM_ENOMEM;
}

/* ---- comparing ---- */

static bool same_phase(const struct trace_phase *a, const struct trace_phase *b)
{
	return !strcmp(a->name, b->name) && a->nr_dirty == b->nr_dirty && a->round == b->round;
}

/* Whether the model's VM that begins at @m begins with the trace's phases from @k on, as far as
 * that VM goes. */
static bool vm_fits(const struct trace_phases *kernel, size_t k, const struct trace_phases *model,
		    size_t m)
{
	unsigned kvm = kernel->phase[k].vm, mvm = model->phase[m].vm;

	for (; k < kernel->n && kernel->phase[k].vm == kvm; k++, m++) {
		if (m == model->n || model->phase[m].vm != mvm ||
		    !same_phase(&kernel->phase[k], &model->phase[m]))
			return false;
	}
	return true;
}

/* Where the VM after the one that @i is in begins. */
static size_t next_vm(const struct trace_phases *p, size_t i)
{
	unsigned vm = p->phase[i].vm;

	while (i < p->n && p->phase[i].vm == vm)
		i++;
	return i;
}

static void compare_phase(struct sequence_result *s, struct sequence_phase *p)
{
	const struct trace_phase *k = p->kernel, *m = p->model;
	enum trace_line_field field;

	while (m && p->equal < k->n_lines && p->equal < m->n_lines &&
	       trace_line_equal(&k->lines[p->equal], &m->lines[p->equal], &field))
		p->equal++;
	p->diverges = !m || p->equal < k->n_lines || p->equal < m->n_lines;
	s->equal += p->equal;
	s->events += k->n_lines;
	if (p->diverges && !s->first)
		s->first = p;
}

static int compare_all(struct sequence_result *s)
{
	const struct trace_phases *kernel = &s->recording->phases, *model = &s->model;
	size_t m = 0;

	s->phases = calloc(kernel->n, sizeof(*s->phases));
	if (!s->phases)
		return KVMSIM_ENOMEM;
	for (size_t k = 0; k < kernel->n;) {
		size_t end = next_vm(kernel, k), at = m;
		bool fits;

		while (at < model->n && !vm_fits(kernel, k, model, at))
			at = next_vm(model, at);
		fits = at < model->n;
		if (fits)
			m = next_vm(model, at);
		for (; k < end; k++) {
			struct sequence_phase *p = &s->phases[s->n_phases++];

			p->kernel = &kernel->phase[k];
			p->model = fits ? &model->phase[at++] : NULL;
			compare_phase(s, p);
		}
	}
	return 0;
}

static int find_program(const char *dir, const struct kvmsim_errsink *errors,
			struct sequence_result *s)
{
	const char *name = s->recording->test_case;
	int r;

	if (!dir || matrix_has_case(name))
		return 0;
	s->looked_for = true;
	s->program = calloc(1, sizeof(*s->program));
	if (!s->program)
		return KVMSIM_ENOMEM;
	r = matrix_program_read(dir, name, errors, s->program);
	if (!r) { /* run_case() says so */
		free(s->program);
		s->program = NULL;
	}
	return r < 0 ? r : 0;
}

int sequence_compare(const char *path, const struct sequence_opts *o, struct sequence_result *out)
{
	const struct kvmsim_errsink *errors = o->errors;
	int err;

	memset(out, 0, sizeof(*out));
	out->path = path;
	err = trace_recording_load(path, errors, &out->recording);
	if (err)
		return err;
	err = find_program(o->programs, errors, out);
	err = err ? err : run_case(o, out);
	err = err ? err : compare_all(out);
	if (err == KVMSIM_ENOMEM)
		kvmsim_err(errors, err, "%s: out of memory", path);
	return err;
}

void sequence_free(struct sequence_result *r)
{
	trace_recording_free(r->recording);
	trace_phases_free(&r->model);
	free(r->phases);
	free(r->program);
	memset(r, 0, sizeof(*r));
}
