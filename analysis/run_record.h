/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RUN_RECORD_H
#define KVMSIM_ANALYSIS_RUN_RECORD_H

#include <stdio.h>

#include "analysis/metrics.h"
#include "analysis/run.h"
#include "model/policy/policy.h"

/* What a run was, for whoever shows it or keeps it. */
struct store;

/* The name of the CPU that the guest runs on. */
const char *run_cpu(const struct run_opts *opts);

/* What the figures of a run of @dirty (with parameters) on @preset rest on: its name; a malloc'd
 * sentence that also names the MMUs with more, and why there is none where rows exist ("none on
 * npt0-flat32 (published on npt0-long64)"; NULL: no memory); and both for programs, put into @o as
 * evidence, evidence_elsewhere and evidence_note. */
const char *run_evidence(const struct run_opts *opts, const char *dirty, const char *preset);
char *run_evidence_text(const struct run_opts *opts, const char *dirty, const char *preset);
enum policy_evidence evidence_on(const char *dirty, const char *preset, const char *cpu,
				 enum mmu_kind mmu);
char *evidence_text(const char *dirty, const char *preset, const char *cpu, enum mmu_kind mmu);
/* The name of what the spte policy that was asked for rests on. */
const char *run_spte_evidence(const struct run_opts *opts, const char *preset);
/* "@leadPOLICY: TEXT." of the spte policy that was asked for; nothing where none was. 0 or
 * KVMSIM_ENOMEM. */
int run_print_spte_evidence(const struct run_opts *opts, const char *preset, const char *lead,
			    FILE *to);
struct json_t;
void run_evidence_json(struct json_t *o, const struct run_opts *opts, const char *dirty,
		       const char *preset);

/* A warning where @dirty asks for the CPU's log and @mmu, shadow paging, has none. */
void run_note_fallback(const char *dirty, enum mmu_kind mmu);
/* A warning when --spte was given and @r had nothing that it is about: no access of a device, and
 * no shadowed page table. */
void run_note_spte(const struct run_opts *opts, const struct run_result *r);

/* Keeps one run in the store at @path, which is opened with the first run (*@store is NULL until
 * then), so that bad input leaves no empty store behind. Messages go to @errors. Errors: those of
 * store_open() and store_add(), KVMSIM_ENOMEM. */
int run_keep(const char *path, struct store **store, const struct run_opts *opts,
	     const struct run_result *r, const double metric[N_METRICS],
	     const struct kvmsim_errsink *errors);

/* Members host_pages, host_memory, eager_page_split, spte and invalidations: what the options said,
 * null: nothing.
 */
void run_memory_json(struct json_t *o, const struct run_opts *opts);

#endif
