// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "analysis/matrix_tally.h"
#include "analysis/matrix_timer.h"
#include "analysis/matrix_work.h"
#include "analysis/run.h"
#include "model/mmu/trace.h"

/* Why rows are not compared. */
static const char of_the_timer[] = "the host's timer";
static const char of_the_cpu[] = "not the MMU's, of a guest at CPL3";

/* One phase of the configuration that is being run, and its rows. */
struct phase {
	struct matrix_key key;
	size_t *rows;
	size_t n_rows;
	UT_hash_handle hh;
};

struct comparison {
	struct matrix_file *f;
	struct matrix_result *r;
	size_t config;
	const struct matrix_select *sel;
	struct phase *phases;
	struct matrix_timer timer;
	bool work[N_COUNTS]; /* that the configuration has rows of */
};

bool matrix_selected(const char *list, const char *name)
{
	size_t len = strlen(name);

	if (!list)
		return true;
	for (const char *p = list; *p;) {
		size_t n = strcspn(p, ",");

		if (n == len && !strncmp(p, name, len))
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}

/* What only an MMU counts: its statistics, and what the VMM saw. Exits, emulated instructions and
 * what the CPU's back end loads and flushes are its own: a guest at CPL3 asks the VMM for what a
 * kernel does itself. */
static bool counted_by_mmu(const char *quantity)
{
	static const char *const names[] = {"stat:remote_tlb_flush",
					    "stat:remote_tlb_flush_requests",
					    "stat:mmu_",
					    "stat:pages_",
					    "stat:nx_lpage_splits",
					    "stat:max_mmu_",
					    "stat:pf_",
					    "stat:invlpg",
					    "stat:mmio_exits",
					    "stat:halt_exits",
					    "stat:tlb_flush",
					    "res:",
					    NULL};

	for (const char *const *n = names; *n; n++) {
		if (!strncmp(*n, quantity, strlen(*n)))
			return true;
	}
	return false;
}

/* Whether the model counts this at all; zero is then a prediction. */
static bool known(const struct matrix_row *row)
{
	const char *name = strchr(row->quantity, ':');
	size_t len;

	if (!name)
		return false;
	len = strcspn(++name, "[");
	if (row->kind == QUANTITY_EVENT) {
		for (int id = 0; id < N_KVM_TRACE; id++) {
			const char *e = kvm_trace_name((enum kvm_trace_id)id);

			if (strlen(e) == len && !strncmp(e, name, len))
				return true;
		}
		return false;
	}
	if (row->kind == QUANTITY_WORK)
		return matrix_work_count(row->quantity) >= 0;
	if (row->kind == QUANTITY_STAT) {
		for (int id = 0; id < N_KVM_STATS; id++) {
			if (!strcmp(kvm_stat_name((enum kvm_stat_id)id), name))
				return true;
		}
	}
	return false; /* a result that the phase does not have */
}

/* ---- one phase ---- */

static const struct matrix_quantity *predicted(const struct matrix_phase *p, const char *name)
{
	for (size_t i = 0; i < p->n_quantities; i++) {
		if (!strcmp(p->quantities[i].name, name))
			return &p->quantities[i];
	}
	return NULL;
}

/* What the file has of a phase; 0 is left out. */
struct measured {
	const struct matrix_file *f;
	const struct phase *ph;
};

static double measured(void *ctx, const char *quantity)
{
	const struct measured *m = ctx;

	for (size_t i = 0; i < m->ph->n_rows; i++) {
		const struct matrix_row *row = &m->f->rows[m->ph->rows[i]];

		if (!strcmp(row->quantity, quantity))
			return row->value;
	}
	return 0;
}

static void find_timer(struct comparison *c, const struct matrix_phase *p, const struct phase *ph)
{
	const struct matrix_quantity *q = predicted(p, matrix_timer_interrupts);
	struct measured m = {c->f, ph};

	matrix_timer_phase(&c->timer, measured, &m, q ? q->value : 0);
}

static int compare_row(struct comparison *c, const struct matrix_phase *p, struct matrix_row *row)
{
	const struct matrix_quantity *q = predicted(p, row->quantity);
	int64_t added = matrix_timer_adds(&c->timer, row->quantity);
	struct matrix_difference d = {.config = c->config,
				      .key = row->key,
				      .quantity = row->quantity,
				      .predicted = (q ? (double)q->value : 0) + (double)added,
				      .added = added,
				      .measured = row->value,
				      .line = row->line};
	struct matrix_tally *t;

	row->done = true;
	if (c->sel->has && !q && !known(row) && !matrix_timer_alone(&c->timer, row->quantity) &&
	    row->kind != QUANTITY_RESULT)
		return matrix_set_apart(c->r, "the model", row->quantity);
	t = matrix_tally(c->r, c->config, row->quantity);
	if (!t)
		return KVMSIM_ENOMEM;
	if (c->f->configs[c->config].mmu_only && !counted_by_mmu(row->quantity))
		return matrix_left_out(c->r, row, of_the_cpu);
	if (matrix_timer_alone(&c->timer, row->quantity))
		return matrix_left_out(c->r, row, of_the_timer);
	if (!q && !known(row)) {
		char reason[128];

		snprintf(reason, sizeof(reason), "the model has no %.*s",
			 (int)strcspn(row->quantity, "["), row->quantity);
		return matrix_not_modelled(c->r, row, reason);
	}
	if (d.predicted != d.measured)
		return matrix_differs(c->r, &d);
	if (row->has_abs) {
		d.predicted = q ? (double)q->abs_after : 0;
		d.measured = (double)row->abs_after;
		d.abs_after = true;
		if (d.predicted != d.measured)
			return matrix_differs(c->r, &d);
	}
	t->equal++;
	c->r->total.equal++;
	return 0;
}

/* What is predicted, and left out of the file as if it were zero. */
static int compare_rest(struct comparison *c, const struct matrix_phase *p, const struct phase *ph)
{
	for (size_t i = 0; i < p->n_quantities; i++) {
		const struct matrix_quantity *q = &p->quantities[i];
		int64_t added = matrix_timer_adds(&c->timer, q->name);
		struct matrix_difference d = {.config = c->config,
					      .key = ph->key,
					      .predicted = (double)q->value + (double)added,
					      .added = added};
		bool found = false;
		int err, unrecorded;

		for (size_t j = 0; j < ph->n_rows && !found; j++)
			found = !strcmp(c->f->rows[ph->rows[j]].quantity, q->name);
		if (found || (!d.predicted && !q->abs_after))
			continue;
		if (c->f->configs[c->config].mmu_only && !counted_by_mmu(q->name))
			continue;
		unrecorded = matrix_timer_unrecorded(&c->timer, q->name);
		if (unrecorded >= 0) {
			c->r->unrecorded[unrecorded]++;
			continue;
		}
		if (!kernel_names_have(c->sel->has, q->name)) {
			err = matrix_set_apart(c->r, "the kernel", q->name);
			if (err)
				return err;
			continue;
		}
		if (!d.predicted) {
			d.predicted = (double)q->abs_after;
			d.abs_after = true;
		}
		d.quantity = matrix_file_text(c->f, q->name);
		err = d.quantity ? matrix_differs(c->r, &d) : KVMSIM_ENOMEM;
		if (err)
			return err;
	}
	return 0;
}

static struct phase *find_phase(struct comparison *c, const struct matrix_key *key)
{
	struct phase *ph;

	HASH_FIND(hh, c->phases, key, sizeof(*key), ph);
	return ph;
}

static int on_phase(void *ctx, const struct matrix_phase *p)
{
	struct comparison *c = ctx;
	struct matrix_key key = {.phase = matrix_file_text(c->f, p->name),
				 .pattern = matrix_file_text(c->f, matrix_pattern_name(p->pattern)),
				 .nr_dirty = p->nr_dirty,
				 .round = p->round,
				 .occurrence = p->occurrence};
	struct phase *ph;
	int err = 0;

	if (run_interrupted)
		return KVMSIM_EINTR;
	if (!key.phase || !key.pattern)
		return KVMSIM_ENOMEM;
	ph = find_phase(c, &key);
	if (!ph)
		return 0;
	struct matrix_phase all = *p;
	struct matrix_quantity *q = matrix_work_quantities(p, c->work, &all.n_quantities);

	if (!q)
		return KVMSIM_ENOMEM;
	all.quantities = q;
	find_timer(c, &all, ph);
	for (size_t i = 0; i < ph->n_rows && !err; i++)
		err = compare_row(c, &all, &c->f->rows[ph->rows[i]]);
	err = err ? err : compare_rest(c, &all, ph);
	free(q);
	return err;
}

/* ---- one configuration ---- */

static void free_phases(struct comparison *c)
{
	struct phase *ph, *tmp;

	HASH_ITER(hh, c->phases, ph, tmp)
	{
		/* The analyser takes the table to be freed with an element that is not the last. */
		HASH_DEL(c->phases, ph); // NOLINT(clang-analyzer-unix.Malloc)
		free(ph->rows);
		free(ph);
	}
}

static int add_to_phase(struct comparison *c, size_t index)
{
	const struct matrix_row *row = &c->f->rows[index];
	struct phase *ph = find_phase(c, &row->key);
	size_t *grown;

	if (!ph) {
		ph = calloc(1, sizeof(*ph));
		if (!ph)
			return KVMSIM_ENOMEM;
		ph->key = row->key;
		HASH_ADD(hh, c->phases, key, sizeof(ph->key), ph);
		if (!ph->hh.tbl) {
			free(ph);
			return KVMSIM_ENOMEM;
		}
	}
	grown = realloc(ph->rows, (ph->n_rows + 1) * sizeof(*grown));
	if (!grown)
		return KVMSIM_ENOMEM;
	ph->rows = grown;
	ph->rows[ph->n_rows++] = index;
	return 0;
}

const char *matrix_preset(const struct matrix_config *conf, const char *kernel)
{
	const char *release = conf->kernel ? conf->kernel : kernel;

	return release ? other_kernel_preset(release, conf->mmu_kind == MMU_TDP) : NULL;
}

/* Why this configuration cannot be run at all, or NULL. */
static const char *refused(const struct matrix_config *conf, char *room, size_t len)
{
	if (!conf->program && !matrix_has_case(conf->test_case))
		snprintf(room, len, "case %s is not built in, and %s %s.ops", conf->test_case,
			 conf->looked_for ? "there is no" : "no --programs DIR was given with its",
			 conf->test_case);
	else if (conf->mmu_kind < 0)
		snprintf(room, len, "MMU %s", conf->mmu);
	else if (!conf->program && !matrix_case_on(conf->test_case, (enum mmu_kind)conf->mmu_kind))
		snprintf(room, len, "case %s on MMU %s", conf->test_case, conf->mmu);
	else if (!conf->dirty || (conf->kernel && !matrix_preset(conf, NULL)))
		snprintf(room, len, "kvm_mode %s", conf->mode);
	else if (conf->pte_kind < 0)
		snprintf(room, len, "guest_pte %s", conf->pte);
	else
		return NULL;
	return room;
}

static int run_config(struct comparison *c)
{
	const struct matrix_config *conf = &c->f->configs[c->config];
	struct matrix_round *rounds;
	struct matrix_opts o = {.test_case = conf->test_case,
				.program = conf->program,
				.mmu = (enum mmu_kind)conf->mmu_kind,
				.guest = conf->guest,
				.preset = matrix_preset(conf, c->sel->kernel),
				.dirty = conf->dirty,
				.spte = conf->spte,
				.cpu = conf->mmu_only ? "amd" : NULL,
				.slot_pages = conf->slot_pages,
				.pte = (enum matrix_pte)conf->pte_kind,
				.profile = c->sel->profile,
				.check = c->sel->check,
				.phase = on_phase,
				.ctx = c,
				.errors = c->sel->errors};
	int err = matrix_file_rounds(c->f, c->config, &rounds, &o.n_rounds);

	if (err)
		return err;
	o.rounds = rounds;
	err = matrix_run(&o);
	free(rounds);
	/* what does not fit stays not modelled */
	return err == KVMSIM_EUNSUPPORTED ? 0 : err;
}

static int do_config(struct comparison *c)
{
	const struct matrix_config *conf = &c->f->configs[c->config];
	char room[128];
	const char *reason = refused(conf, room, sizeof(room));
	int err = 0;

	matrix_work_counts(c->f, c->config, c->work);
	for (size_t i = 0; i < c->f->n_rows && !err; i++) {
		const struct matrix_row *row = &c->f->rows[i];

		if (row->config != c->config)
			continue;
		if (row->kind == QUANTITY_COST)
			c->r->cost_rows++;
		else
			err = add_to_phase(c, i);
	}
	if (!err && !reason && c->phases)
		err = run_config(c);
	for (size_t i = 0; i < c->f->n_rows && !err; i++) {
		const struct matrix_row *row = &c->f->rows[i];
		char phase[128];

		if (row->config != c->config || row->kind == QUANTITY_COST || row->done)
			continue;
		snprintf(phase, sizeof(phase), "case %s has no such phase, key or occurrence: %s",
			 conf->test_case, row->key.phase);
		err = matrix_not_modelled(c->r, row, reason ? reason : phase);
	}
	free_phases(c);
	return err;
}

/* ---- all ---- */

int matrix_validate(struct matrix_file *f, const struct matrix_select *sel,
		    struct matrix_result *out)
{
	struct comparison c = {.f = f, .r = out, .sel = sel};
	int err = 0;

	memset(out, 0, sizeof(*out));
	out->file = f;
	matrix_timer_file(f, &c.timer);
	out->kernel = sel->kernel;
	for (int tdp = 0; tdp < 2 && sel->kernel; tdp++)
		out->preset[tdp] = other_kernel_preset(sel->kernel, tdp);
	for (c.config = 0; c.config < f->n_configs && !err; c.config++) {
		const struct matrix_config *conf = &f->configs[c.config];

		if (matrix_selected(sel->cases, conf->test_case) &&
		    matrix_selected(sel->mmus, conf->mmu))
			err = do_config(&c);
	}
	if (!err && !out->n_tallies && !out->cost_rows)
		err = kvmsim_err(sel->errors, KVMSIM_ENOENT,
				 "%s: no row of the cases and MMUs asked for", f->path);
	if (err == KVMSIM_ENOMEM)
		kvmsim_err(sel->errors, err, "%s: out of memory", f->path);
	matrix_tally_sort(out);
	out->pass = !err && out->total.equal && !out->total.different && !out->missing;
	return err;
}
