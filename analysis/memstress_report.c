// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/memstress_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/contention.h"
#include "analysis/output.h"
#include "analysis/run_record.h"
#include "analysis/unpriced.h"
#include "model/guest/personality.h"
#include "model/policy/preset.h"
#include "model/sim/profile.h"

/* ---- options ---- */

static int refuse(const char *what, const char *name, const char *why)
{
	kvmsim_err(&cli_errors, KVMSIM_EINVAL, "%s %s: %s", what, name, why);
	return EXIT_USAGE;
}

static int choose_preset(struct memstress_opts *o)
{
	const struct kvm_preset *p;

	if (!o->preset)
		o->preset = o->mmu == MMU_TDP || o->mmu == N_MMU_KINDS ? "6.1-tdp" : "6.1-shadow";
	p = preset_find(o->preset);
	if (!p)
		return refuse("--kernel", o->preset, "there is no such preset (kvmsim list)");
	if (o->mmu == N_MMU_KINDS)
		o->mmu = p->tdp_mmu ? MMU_TDP : MMU_TDP_RMAP;
	if (p->tdp_mmu && o->mmu == MMU_TDP_RMAP)
		return refuse("--kernel", o->preset,
			      "it has the TDP MMU where --mmu npt1-tdp0 has "
			      "not");
	if (!p->tdp_mmu && o->mmu == MMU_TDP)
		return refuse("--kernel", o->preset, "it has no TDP MMU");
	return EXIT_DONE;
}

/* What the kernel arms with: the CPU's own log where it has one and the tables are nested. */
static const char *default_dirty(const struct memstress_opts *o, bool get_clears)
{
	bool log = o->mmu != MMU_SHADOW_LONG64 && personality_find(o->personality)->pml;

	if (get_clears)
		return log ? "pml" : preset_find(o->preset)->dirty;
	return log ? "manual,initially-all-set=1,pml=1" : "manual,initially-all-set=1";
}

int memstress_settings(struct memstress_opts *o, bool get_clears)
{
	const struct dirty_policy *policy;
	const struct policy_desc *d;
	struct policy_params params;
	int code = choose_preset(o);

	if (code)
		return code;
	if (!personality_find(o->personality))
		return refuse("--cpu", o->personality, "there is no such CPU (kvmsim list)");
	if (!o->dirty)
		o->dirty = default_dirty(o, get_clears);
	if (policy_parse(FAMILY_DIRTY, o->dirty, &cli_errors, &d, &params))
		return EXIT_USAGE;
	policy = dirty_policy_find(d->name, strlen(d->name));
	if (o->mmulock && policy_parse(FAMILY_MMULOCK, o->mmulock, &cli_errors, &d, &params))
		return EXIT_USAGE;
	if (!policy->harvest)
		return refuse("--dirty", o->dirty, "it keeps no log that could be got");
	o->clears = policy->clear;
	return EXIT_DONE;
}

/* ---- rows ---- */

static int keep(void *ctx, const struct memstress_row *row)
{
	struct memstress_result *r = ctx;
	struct memstress_row *grown = realloc(r->rows, (r->n_rows + 1) * sizeof(*grown));

	if (!grown)
		return KVMSIM_ENOMEM;
	r->rows = grown;
	r->rows[r->n_rows++] = *row;
	return 0;
}

int memstress_collect(const struct memstress_opts *o, struct memstress_result *out)
{
	*out = (struct memstress_result){0};
	return memstress_run(o, keep, out);
}

void memstress_result_free(struct memstress_result *r)
{
	free(r->rows);
	*r = (struct memstress_result){0};
}

const char *memstress_row_name(const struct memstress_row *row, char buf[MEMSTRESS_NAME])
{
	static const char *const names[] = {
		[MEMSTRESS_POPULATE] = "Populate memory time",
		[MEMSTRESS_ENABLE] = "Enabling dirty logging time",
		[MEMSTRESS_DIRTY] = "dirty memory time",
		[MEMSTRESS_GET] = "get dirty log time",
		[MEMSTRESS_CLEAR] = "clear dirty log time",
		[MEMSTRESS_DISABLE] = "Disabling dirty logging time",
	};

	if (row->iteration)
		snprintf(buf, MEMSTRESS_NAME, "Iteration %" PRIu32 " %s", row->iteration,
			 names[row->phase]);
	else
		snprintf(buf, MEMSTRESS_NAME, "%s", names[row->phase]);
	return buf;
}

const struct memstress_row *memstress_find(const struct memstress_result *r, const char *name)
{
	char buf[MEMSTRESS_NAME];

	for (size_t i = 0; i < r->n_rows; i++)
		if (!strcmp(memstress_row_name(&r->rows[i], buf), name))
			return &r->rows[i];
	return NULL;
}

/* ---- what is not priced ---- */

static struct unpriced unpriced(const struct memstress_opts *o, const struct memstress_result *r)
{
	struct unpriced u = {.profile = o->profile};

	for (size_t i = 0; i < r->n_rows; i++) {
		const struct memstress_row *row = &r->rows[i];
		bool guest = row->phase == MEMSTRESS_POPULATE || row->phase == MEMSTRESS_DIRTY;

		for (uint16_t c = 0; c < N_COUNTS; c++)
			unpriced_add(&u, !guest, c, row->sums.counts[c], row->sums.cycles[c]);
	}
	return u;
}

void memstress_warn(const struct memstress_opts *o, const struct memstress_result *r)
{
	const struct unpriced u = unpriced(o, r);

	unpriced_warn(&u);
	run_note_fallback(o->dirty, o->mmu);
}

/* ---- printing ---- */

#define NS ((uint64_t)1000000000)

/* "0.012345678s", as the selftest prints a timespec. */
static const char *seconds(char buf[OUT_TEXT], cycles_t cycles, uint64_t hz)
{
	uint64_t ns = (uint64_t)((unsigned __int128)cycles * NS / hz);

	snprintf(buf, OUT_TEXT, "%" PRIu64 ".%.9" PRIu64 "s", ns / NS, ns % NS);
	return buf;
}

static cycles_t total(const struct memstress_result *r, enum memstress_phase phase)
{
	cycles_t sum = 0;

	for (size_t i = 0; i < r->n_rows; i++)
		if (r->rows[i].phase == phase)
			sum += r->rows[i].cycles;
	return sum;
}

static void print_total(const struct memstress_opts *o, const struct memstress_result *r,
			enum memstress_phase phase, const char *name, uint64_t hz)
{
	cycles_t sum = total(r, phase);
	char all[OUT_TEXT], each[OUT_TEXT];

	printf("%s dirty log over %" PRIu32 " iterations took %s. (Avg %s/iteration)\n", name,
	       o->iterations, seconds(all, sum, hz), seconds(each, sum / o->iterations, hz));
}

/* The selftest's lines, between what was simulated and what it rests on. */
static int print_text(const struct memstress_opts *o, const struct memstress_result *r,
		      const struct contention *contention)
{
	const struct unpriced u = unpriced(o, r);
	const char *cpu = personality_find(o->personality)->name;
	uint64_t hz = profile_hz(o->profile);
	char *evidence = evidence_text(o->dirty, o->preset, cpu, o->mmu);
	char name[MEMSTRESS_NAME], time[OUT_TEXT];
	int err = 0;

	if (!evidence)
		return KVMSIM_ENOMEM;
	printf("dirty_log_perf_test under %s, preset %s, MMU %s, CPU %s, priced as %s\n\n",
	       o->dirty, o->preset, mmu_kind_name(o->mmu), cpu, profile_machine(o->profile));
	printf("Test iterations: %" PRIu32 "\n", o->iterations);
	for (size_t i = 0; i < r->n_rows; i++)
		printf("%s: %s\n%s", memstress_row_name(&r->rows[i], name),
		       seconds(time, r->rows[i].cycles, hz),
		       r->rows[i].phase == MEMSTRESS_ENABLE ? "\n" : "");
	print_total(o, r, MEMSTRESS_GET, "Get", hz);
	if (o->clears)
		print_total(o, r, MEMSTRESS_CLEAR, "Clear", hz);
	if (contention) {
		printf("\nWaits for locks, by the function of the kernel's that waited:\n");
		err = contention_print(contention, hz, profile_unit(o->profile), stdout);
	}
	printf("\nEvidence for %s: %s.\n", o->dirty, evidence);
	free(evidence);
	return err ? err : unpriced_print(&u, stdout);
}

static void print_csv(const struct memstress_result *r, uint64_t hz)
{
	struct csv_out c = {.to = stdout};
	char name[MEMSTRESS_NAME];

	csv_text(&c, "metric");
	csv_text(&c, "seconds");
	csv_text(&c, "cycles");
	csv_end_row(&c);
	for (size_t i = 0; i < r->n_rows; i++) {
		csv_text(&c, memstress_row_name(&r->rows[i], name));
		csv_field(&c, "%.9f", (double)r->rows[i].cycles / (double)hz);
		csv_field(&c, "%" PRIu64, r->rows[i].cycles);
		csv_end_row(&c);
	}
}

static json_t *counted(const struct memstress_row *row)
{
	json_t *j = json_object();

	for (uint16_t c = 0; c < N_COUNTS; c++)
		if (row->sums.counts[c])
			json_put(j, model_vocabulary.counts[c], json_u64(row->sums.counts[c]));
	return j;
}

static json_t *spent(const struct memstress_row *row)
{
	json_t *j = json_object();

	for (uint16_t c = 0; c < N_COUNTS; c++)
		if (row->sums.cycles[c])
			json_put(j, model_vocabulary.counts[c], json_u64(row->sums.cycles[c]));
	return j;
}

static json_t *waited(const struct memstress_row *row)
{
	json_t *j = json_object();

	for (uint16_t w = 0; w < N_WAITS; w++)
		if (row->sums.waits[w])
			json_put(j, model_vocabulary.waits[w], json_u64(row->sums.waits[w]));
	return j;
}

static json_t *report_json(const struct memstress_opts *o, const struct memstress_result *r,
			   const struct profile *profile, const struct contention *contention)
{
	const struct unpriced u = unpriced(o, r);
	const char *cpu = personality_find(o->personality)->name;
	uint64_t hz = profile_hz(profile);
	json_t *j = json_object(), *rows = json_array();
	char name[MEMSTRESS_NAME];

	json_put(j, "kernel", json_string(o->preset));
	json_put(j, "mmu", json_string(mmu_kind_name(o->mmu)));
	json_put(j, "dirty", json_string(o->dirty));
	unpriced_json(&u, j);
	json_put(j, "evidence",
		 json_string(policy_evidence_name(evidence_on(o->dirty, o->preset, cpu, o->mmu))));
	json_put(j, "cpu", json_string(cpu));
	json_put(j, "profile", json_string(profile_name(profile)));
	json_put(j, "unit", json_string(profile_unit(profile)));
	json_put(j, "hz", json_u64(hz));
	json_put(j, "vcpus", json_u64(o->vcpus));
	json_put(j, "bytes_per_vcpu", json_u64(o->bytes));
	json_put(j, "iterations", json_u64(o->iterations));
	for (size_t i = 0; i < r->n_rows; i++) {
		json_t *row = json_object();

		json_put(row, "metric", json_string(memstress_row_name(&r->rows[i], name)));
		json_put(row, "seconds", json_real((double)r->rows[i].cycles / (double)hz));
		json_put(row, "cycles", json_u64(r->rows[i].cycles));
		json_put(row, "counts", counted(&r->rows[i]));
		json_put(row, "count_cycles", spent(&r->rows[i]));
		json_put(row, "waited_cycles", waited(&r->rows[i]));
		json_array_append_new(rows, row);
	}
	json_put(j, "rows", rows);
	if (contention)
		json_put(j, "contention", contention_json(contention));
	return j;
}

int memstress_report(const struct memstress_opts *o, const struct memstress_result *r,
		     const struct profile *profile, const struct contention *contention,
		     enum memstress_format format)
{
	uint64_t hz = profile_hz(profile);

	if (format == MEMSTRESS_JSON)
		return json_print(report_json(o, r, profile, contention), stdout);
	if (format == MEMSTRESS_CSV)
		print_csv(r, hz);
	else
		return print_text(o, r, contention);
	return 0;
}
