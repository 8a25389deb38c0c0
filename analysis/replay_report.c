// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/contention.h"
#include "analysis/replay_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/operations_report.h"
#include "analysis/output.h"
#include "analysis/run_record.h"
#include "analysis/unpriced.h"
#include "model/sim/profile.h"

/* ---- what is not priced ---- */

/* The activities whose time is in the calls, or holds mmu_lock for them. */
static bool collects(int activity)
{
	return activity == ACT_memslot || activity == ACT_get_dirty_log ||
	       activity == ACT_clear_dirty_log || activity == ACT_reset_dirty_rings ||
	       activity == ACT_tlb_flush || activity == ACT_userspace;
}

static struct unpriced unpriced(const struct run_opts *o, const struct run_result *r)
{
	struct unpriced u = {.profile = o->profile};

	for (int a = 0; a < N_ACTIVITIES; a++)
		for (uint16_t c = 0; c < N_COUNTS; c++)
			/* a count that is computed has cycles somewhere */
			unpriced_add(&u, collects(a), c, r->by_activity[a][c].n,
				     r->count_cycles[c]);
	return u;
}

void replay_warn(const struct run_opts *o, const struct run_result *r)
{
	const struct unpriced u = unpriced(o, r);

	unpriced_warn(&u);
	run_note_fallback(o->dirty, run_mmu(r->preset, o->long_mode, o->nested));
	run_note_spte(o, r);
}

/* ---- tables ---- */

static void cell_cycles(struct table *t, double cycles, uint64_t hz)
{
	char number[OUT_TEXT], time[OUT_TEXT];

	table_cell(t, "%s", out_u64(number, (uint64_t)(cycles + 0.5)));
	table_cell(t, "%s", out_time(time, cycles, hz));
}

/* What the VMM's call is: with rings there is no GET. */
static const char *call_name(const char *dirty)
{
	const struct policy_desc *d;
	struct policy_params params;

	if (policy_parse(FAMILY_DIRTY, dirty, NULL, &d, &params))
		return "Collection";
	const struct dirty_policy *p = dirty_policy_find(d->name, strlen(d->name));

	return p->reset_rings ? "Collect and reset rings"
	       : p->clear     ? "GET_DIRTY_LOG and CLEAR_DIRTY_LOG"
			      : "GET_DIRTY_LOG";
}

static int print_calls(const struct run_opts *o, const struct run_result *r, FILE *to)
{
	static const char *const heads[] = {"slot",   "pages", "calls", "dirty min",
					    "median", "max",   "mean",	"(time)",
					    "p50",    "p99",   "max",	"(time)"};
	struct table *t = table_create("lrrrrrrlrrrl");
	uint64_t hz = profile_hz(o->profile);
	int err = t ? 0 : KVMSIM_ENOMEM;
	char number[OUT_TEXT];

	if (err)
		return err;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_cell(t, "%s", hz || heads[i][0] != '(' ? heads[i] : "");
	for (uint32_t s = 0; !err && s < r->n_slots; s++) {
		struct call_summary c;

		if (!r->slots[s].logged)
			continue;
		err = summarize_calls(r, s, &c);
		table_cell(t, "%s", r->slots[s].name);
		table_cell(t, "%s", out_u64(number, r->slots[s].npages));
		table_cell(t, "%s", out_u64(number, c.calls));
		if (c.calls) {
			table_cell(t, "%s", out_u64(number, (uint64_t)c.dirty_min));
			table_cell(t, "%s", out_u64(number, (uint64_t)(c.dirty_median + 0.5)));
			table_cell(t, "%s", out_u64(number, (uint64_t)c.dirty_max));
			cell_cycles(t, c.mean, hz);
			table_cell(t, "%s", out_u64(number, (uint64_t)(c.p50 + 0.5)));
			table_cell(t, "%s", out_u64(number, (uint64_t)(c.p99 + 0.5)));
			cell_cycles(t, c.max, hz);
		}
		table_end_row(t);
	}
	fprintf(to, "%s every %s guest instructions%s (dirty pages; %s per call):\n",
		call_name(o->dirty), out_u64(number, r->interval),
		o->running ? ", beside running vCPUs" : "", profile_unit(o->profile));
	err = err ? err : table_print(t, to);
	table_free(t);
	return err;
}

static void row_time(struct table *t, const char *name, double cycles, double whole, uint64_t hz)
{
	table_cell(t, "%s", name);
	cell_cycles(t, cycles, hz);
	if (whole > 0)
		table_cell(t, "%.1f%%", 100 * cycles / whole);
	table_end_row(t);
}

static int print_cycles(const struct run_opts *o, const struct run_result *r, FILE *to)
{
	struct table *t = table_create("lrlr");
	uint64_t hz = profile_hz(o->profile);
	double idle = (double)r->wait_cycles[WAIT_idle];
	double busy = (double)r->ledger_cycles - idle;

	if (!t)
		return KVMSIM_ENOMEM;
	for (uint16_t a = 0; a < N_ACTIVITIES; a++) {
		if (r->activity_cycles[a])
			row_time(t, model_activity_help(a), (double)r->activity_cycles[a], busy,
				 hz);
	}
	for (uint16_t w = 0; w < N_WAITS; w++) {
		char name[80];

		snprintf(name, sizeof(name), "waiting: %s", model_wait_help(w));
		if (r->wait_cycles[w] && w != WAIT_idle)
			row_time(t, name, (double)r->wait_cycles[w], busy, hz);
	}
	row_time(t, "sum", busy, busy, hz);
	row_time(t, "beside it, idle", idle, 0, hz);
	fprintf(to, "\nWhere the %s of all tasks went:\n", profile_unit(o->profile));
	int err = table_print(t, to);

	table_free(t);
	return err;
}

static int print_figures(const struct run_opts *o, const struct run_result *r, FILE *to)
{
	struct table *t = table_create("lrlr");
	const char *unit = profile_unit(o->profile);
	uint64_t hz = profile_hz(o->profile);
	char n[OUT_TEXT], name[80];

	if (!t)
		return KVMSIM_ENOMEM;
	const struct {
		const char *name;
		uint64_t n;
	} numbers[] = {
		{"guest instructions", r->guest_insns},
		{"page faults taken", r->stats[STAT_pf_taken]},
		{"exits", r->stats[STAT_exits]},
		{"remote TLB flushes", r->stats[STAT_remote_tlb_flush]},
		{"active shadow pages", r->active_shadow_pages},
		{"mmu_lock acquired", r->mmu_lock.acquired},
		{"mmu_lock contended", r->mmu_lock.contended},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		table_cell(t, "%s", numbers[i].name);
		table_cell(t, "%s", out_u64(n, numbers[i].n));
		table_end_row(t);
	}
	const bool reads = r->mmu_lock_read.acquired;
	const struct {
		const char *name;
		cycles_t cycles;
		bool shown;
	} times[] = {
		{"mmu_lock wait", r->mmu_lock.wait, true},
		{"mmu_lock longest wait", r->mmu_lock.longest_wait, true},
		{"mmu_lock longest hold", r->mmu_lock.longest_hold, true},
		{"mmu_lock wait to read", r->mmu_lock_read.wait, reads},
		{"mmu_lock longest wait to read", r->mmu_lock_read.longest_wait, reads},
		{"mmu_lock longest hold to read", r->mmu_lock_read.longest_hold, reads},
		{"guest elapsed", r->elapsed, true},
	};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (!times[i].shown)
			continue;
		snprintf(name, sizeof(name), "%s, %s", times[i].name, unit);
		row_time(t, name, (double)times[i].cycles, 0, hz);
	}
	fputc('\n', to);
	int err = table_print(t, to);

	table_free(t);
	return err;
}

static int print_contention(const struct run_opts *o, FILE *to)
{
	if (!o->contention)
		return 0;
	fprintf(to, "\nWaits for locks, by the function of the kernel's that waited:\n");
	return contention_print(o->contention, profile_hz(o->profile), profile_unit(o->profile),
				to);
}

int replay_print(const struct run_opts *o, const struct run_result *r, FILE *to)
{
	const struct unpriced u = unpriced(o, r);

	fprintf(to, "%s under %s%s%s, preset %s, MMU %s, CPU %s, priced as %s\n\n",
		o->trace ? o->trace : o->scenario, o->dirty, o->spte ? " and " : "",
		o->spte ? o->spte : "", r->preset,
		mmu_kind_name(run_mmu(r->preset, o->long_mode, o->nested)), run_cpu(o),
		profile_machine(o->profile));
	int err = print_calls(o, r, to);

	err = err ? err : print_figures(o, r, to);
	err = err ? err : operations_print(o, r, to);
	err = err ? err : print_contention(o, to);
	err = err ? err : print_cycles(o, r, to);
	char *evidence = run_evidence_text(o, o->dirty, r->preset);

	if (!evidence)
		return KVMSIM_ENOMEM;
	fprintf(to, "\nEvidence for %s: %s.\n", o->dirty, evidence);
	free(evidence);
	err = err ? err : run_print_spte_evidence(o, r->preset, "Evidence for spte policy ", to);
	err = err ? err : unpriced_print(&u, to);
	fprintf(to, "Checks: the ledger's sum is the elapsed time of all %zu tasks", r->n_tasks);
	if (r->checked)
		fprintf(to,
			"; sptes, rmaps, TLBs consistent; %" PRIu64 " lost store%s, %" PRIu64
			" page%s reported without a store",
			r->lost_stores, r->lost_stores == 1 ? "" : "s", r->false_dirties,
			r->false_dirties == 1 ? "" : "s");
	fprintf(to, ".\n");
	if (r->torn)
		fprintf(to, "The trace is torn: this covers it up to its last whole block.\n");
	return err;
}

/* ---- JSON ---- */

static json_t *json_calls(const struct run_result *r, uint32_t slot)
{
	struct call_summary c;
	json_t *o = json_object(), *d = json_object(), *t = json_object();

	if (!o || !d || !t || summarize_calls(r, slot, &c)) {
		json_decref(o);
		json_decref(d);
		json_decref(t);
		return NULL;
	}
	json_put(o, "calls", json_u64(c.calls));
	json_put(d, "total", json_real(c.dirty_total));
	if (c.calls) {
		json_put(d, "min", json_real(c.dirty_min));
		json_put(d, "median", json_real(c.dirty_median));
		json_put(d, "max", json_real(c.dirty_max));
	}
	json_put(o, "dirty_pages", d);
	json_put(t, "total", json_real(c.total));
	if (c.calls) {
		json_put(t, "mean", json_real(c.mean));
		json_put(t, "p50", json_real(c.p50));
		json_put(t, "p99", json_real(c.p99));
		json_put(t, "max", json_real(c.max));
	}
	json_put(o, "time", t);
	return o;
}

static json_t *json_slots(const struct run_result *r)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < r->n_slots; i++) {
		json_t *s = json_object();

		json_put(s, "name", json_string(r->slots[i].name));
		json_put(s, "base_gfn", json_u64(r->slots[i].base_gfn));
		json_put(s, "pages", json_u64(r->slots[i].npages));
		json_put(s, "logged", json_boolean(r->slots[i].logged));
		if (r->slots[i].logged)
			json_put(s, "get_dirty_log", json_calls(r, i));
		json_array_append_new(a, s);
	}
	return a;
}

static json_t *json_collections(const struct run_result *r)
{
	json_t *a = json_array();

	for (size_t i = 0; i < r->n_collections; i++) {
		const struct run_collection *c = &r->collections[i];
		json_t *o = json_object();

		json_put(o, "epoch", json_u64(c->epoch));
		json_put(o, "slot", json_string(r->slots[c->slot].name));
		json_put(o, "nr_dirty", json_u64(c->nr_dirty));
		json_put(o, "start", json_u64(c->start));
		json_put(o, "time", json_u64(c->cycles));
		json_array_append_new(a, o);
	}
	return a;
}

/* What was counted in each activity; names that have nothing are left out. */
static json_t *json_by_activity(const struct run_result *r)
{
	json_t *o = json_object();

	for (int a = 0; a < N_ACTIVITIES; a++) {
		json_t *counts = json_object();

		for (int c = 0; c < N_COUNTS; c++) {
			const struct run_count *k = &r->by_activity[a][c];

			if (k->n || k->cycles)
				json_put(counts, model_vocabulary.counts[c],
					 json_pack("{s:o, s:o}", "n", json_u64(k->n), "time",
						   json_u64(k->cycles)));
		}
		json_put(o, model_vocabulary.activities[a], counts);
	}
	return o;
}

static json_t *json_ledger(const struct run_result *r)
{
	json_t *o = json_object(), *counts = json_object(), *activities = json_object();
	json_t *waits = json_object(), *tasks = json_array();

	json_put(o, "sum", json_u64(r->ledger_cycles));
	for (int i = 0; i < N_ACTIVITIES; i++)
		json_put(activities, model_vocabulary.activities[i],
			 json_u64(r->activity_cycles[i]));
	for (int i = 0; i < N_COUNTS; i++) {
		json_t *c = json_object();

		json_put(c, "n", json_u64(r->counts[i]));
		json_put(c, "time", json_u64(r->count_cycles[i]));
		json_put(counts, model_vocabulary.counts[i], c);
	}
	for (int i = 0; i < N_WAITS; i++)
		json_put(waits, model_vocabulary.waits[i], json_u64(r->wait_cycles[i]));
	for (size_t i = 0; i < r->n_tasks; i++) {
		json_t *t = json_object();

		json_put(t, "name", json_string(r->tasks[i].name));
		json_put(t, "elapsed", json_u64(r->tasks[i].elapsed));
		json_put(t, "sum", json_u64(r->tasks[i].ledger));
		json_array_append_new(tasks, t);
	}
	json_put(o, "activities", activities);
	json_put(o, "waits", waits);
	json_put(o, "counts", counts);
	json_put(o, "by_activity", json_by_activity(r));
	json_put(o, "tasks", tasks);
	return o;
}

static json_t *json_provenance(const struct run_opts *o, const struct run_result *r)
{
	json_t *p = json_object(), *profile = json_object(), *in = json_object();

	json_put(p, "kvmsim", json_string(kvmsim_version));
	json_put(in, o->trace ? "trace" : "scenario",
		 json_string(o->trace ? o->trace : o->scenario));
	json_put(in, "checksum", json_hex64(r->input_checksum));
	json_put(p, "input", in);
	json_put(profile, "name", json_string(profile_name(o->profile)));
	json_put(profile, "machine", json_string(profile_machine(o->profile)));
	json_put(profile, "unit", json_string(profile_unit(o->profile)));
	json_put(profile, "hz", json_u64(profile_hz(o->profile)));
	json_put(profile, "checksum", json_hex64(profile_checksum(o->profile)));
	json_put(p, "profile", profile);
	return p;
}

static json_t *json_lock(const struct run_lock *l)
{
	json_t *j = json_object();

	json_put(j, "acquired", json_u64(l->acquired));
	json_put(j, "contended", json_u64(l->contended));
	json_put(j, "wait", json_u64(l->wait));
	json_put(j, "longest_wait", json_u64(l->longest_wait));
	json_put(j, "longest_hold", json_u64(l->longest_hold));
	return j;
}

json_t *replay_json(const struct run_opts *o, const struct run_result *r)
{
	json_t *j = json_object(), *stats = json_object();
	json_t *checks = json_object();
	const struct unpriced u = unpriced(o, r);

	json_put(j, "provenance", json_provenance(o, r));
	json_put(j, "dirty", json_string(o->dirty));
	json_put(j, "mmu", json_string(mmu_kind_name(run_mmu(r->preset, o->long_mode, o->nested))));
	run_evidence_json(j, o, o->dirty, r->preset);
	unpriced_json(&u, j);
	json_put(j, "preset", json_string(r->preset));
	json_put(j, "cpu", json_string(run_cpu(o)));
	json_put(j, "seed", json_u64(o->seed));
	json_put(j, "replicate", json_u64(o->replicate));
	json_put(j, "shadow_pages", json_u64(o->shadow_pages));
	json_put(j, "epoch_len", json_u64(r->epoch_len));
	json_put(j, "interval", json_u64(r->interval));
	json_put(j, "phase", json_u64(o->phase));
	json_put(j, "long_mode", json_boolean(o->long_mode));
	json_put(j, "nested", json_boolean(o->nested));
	json_put(j, "running", json_boolean(o->running));
	json_put(j, "disable_after", json_u64(o->disable_after));
	run_memory_json(j, o);
	json_put(j, "vcpus", json_u64(r->n_vcpus));
	json_put(j, "epochs", json_u64(r->epochs));
	json_put(j, "torn", json_boolean(r->torn));
	json_put(j, "guest_instructions", json_u64(r->guest_insns));
	json_put(j, "setup", json_u64(r->setup));
	json_put(j, "elapsed", json_u64(r->elapsed));
	json_put(j, "get_dirty_log", json_calls(r, UINT32_MAX));
	json_put(j, "slots", json_slots(r));
	json_put(j, "ledger", json_ledger(r));
	json_put(j, "mmu_lock", json_lock(&r->mmu_lock));
	json_put(j, "mmu_lock_read", json_lock(&r->mmu_lock_read));
	if (o->contention)
		json_put(j, "contention", contention_json(o->contention));
	json_put(j, "operations", operations_json(r));
	json_put(j, "longest_stall", stall_json(&r->longest_stall));
	for (int i = 0; i < N_KVM_STATS; i++)
		json_put(stats, kvm_stat_name((enum kvm_stat_id)i), json_u64(r->stats[i]));
	json_put(j, "stats", stats);
	json_put(j, "active_shadow_pages", json_u64(r->active_shadow_pages));
	json_put(checks, "made", json_boolean(r->checked));
	json_put(checks, "lost_stores", json_u64(r->lost_stores));
	json_put(checks, "false_dirties", json_u64(r->false_dirties));
	json_put(j, "checks", checks);
	json_put(j, "collections", json_collections(r));
	return j;
}

/* ---- CSV ---- */

void replay_csv(const struct run_opts *o, const struct run_result *r, FILE *to)
{
	struct csv_out c = {to, 0};
	static const char *const heads[] = {"dirty", "epoch", "slot", "nr_dirty",
					    "start", "time",  "unit"};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		csv_text(&c, heads[i]);
	csv_end_row(&c);
	for (size_t i = 0; i < r->n_collections; i++) {
		const struct run_collection *k = &r->collections[i];

		csv_text(&c, o->dirty);
		csv_field(&c, "%" PRIu64, k->epoch);
		csv_text(&c, r->slots[k->slot].name);
		csv_field(&c, "%" PRIu64, k->nr_dirty);
		csv_field(&c, "%" PRIu64, k->start);
		csv_field(&c, "%" PRIu64, k->cycles);
		csv_text(&c, profile_unit(o->profile));
		csv_end_row(&c);
	}
}
