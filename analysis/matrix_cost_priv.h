/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_MATRIX_COST_PRIV_H
#define KVMSIM_ANALYSIS_MATRIX_COST_PRIV_H

#include "analysis/matrix_cost.h"

/* Between the files of analysis/matrix_cost.h. Errors have their message already. */

int cost_out_of_memory(const struct matrix_select *sel);

/* r->rows: the insns_min rows of what @sel selects and the model has; those of cases that the
 * recipe fits, with @fitted_only. */
int cost_collect(struct cost_result *r, const struct matrix_select *sel, bool fitted_only);
/* Runs each configuration that has rows once, with the rounds that they name. */
int cost_simulate(struct cost_result *r, const struct matrix_select *sel);
/* One configuration under @rounds: every phase's counts go to the rows of @r that name it, where
 * @profile makes them the least of its name; *@cycles, if not NULL, is the time of the last round's
 * GET_DIRTY_LOG. */
int cost_run(struct cost_result *r, size_t config, const struct matrix_select *sel,
	     const struct profile *profile, const struct matrix_round *rounds, size_t n_rounds,
	     double *cycles);

/* Every pair of configurations that differ only in mask and walk, and cross in the file. */
int cost_crossovers(struct cost_result *r, const struct matrix_select *sel);

#endif
