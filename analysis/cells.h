/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_CELLS_H
#define KVMSIM_ANALYSIS_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "model/sim/error.h"

/*
 * Evidence of a third kind (after evidence.h's and timing.h's): what a benchmark in overcommitted
 * VMs printed, cell by cell: a throughput, a time, or what a change gained. Each cell is predicted
 * by runs of `kvmsim overcommit`. A recipe says
 *
 *	[cells]
 *	file	rows: series, metric, unit, x, policy, value, stdev
 *	runs	the table below
 *	topic	of the rows; left out: all are
 *	profile	built in
 *	options	of every run
 *	fitted	how many numbers were fitted (to the rows whose fit is yes)
 *	median	aimed at for the errors of ratios of rows that are not fitted, percent
 *	signs	aimed at for signs that are right, percent
 *	sd	standard deviation of a value that has none, percent
 *	replicates
 *	[miss]
 *	SERIES = why	a series known to be off
 *
 * and a table of runs, of which the first line that fits a row is its own,
 *
 *	series, metric, policy, x	of the row; "*": any
 *	kind	modelled; derived: from other rows, or from a recording; out: of scope
 *	options	of the run; "{x}" stands for the number that the row's x begins with
 *	base	of a gain: the options of the run that it is over
 *	quantity	rate; time (of a given work), task-time (of a given work of each of x
 *tasks); gain (of rates, in percent); of a derived row "gain A B": of the rows of policies A over B
 *at the same series, metric's rows and x; "mean": the geometric mean of its series' and policy's
 *rows; "hold N": percent of dbench's recorded holds below N instructions fit	yes: a number was
 *fitted to the row note	why, for people
 *
 * What is judged are ratios: of two policies at the same x, of each x to the least, of a gain to
 * none. Values of a series and metric are scaled by one factor, so that the first row agrees.
 */
enum cell_kind { CELL_MODELLED, CELL_DERIVED, CELL_OUT };
enum cell_quantity { CELL_RATE, CELL_TIME, CELL_GAIN, CELL_MEAN, CELL_HOLD };

struct cell_run {
	char *series, *metric, *policy, *x, *options, *base, *quantity, *note;
	enum cell_kind kind;
	enum cell_quantity what;
	char a[64], b[64]; /* of a derived gain */
	bool fit, per_task;
	unsigned long line;
};

struct cell_row {
	unsigned long line;
	const struct cell_run *run;
	char *series, *metric, *policy, *unit, *x;
	double x_number; /* 0: none */
	double measured; /* of a gain: 1 + percent / 100, so a ratio as all are judged */
	double sd;	 /* of it, relative; the recipe's where none is stated */
	bool has_sd;
	/* cells_predict(): a rate, the inverse of a time, or a ratio; 0: none */
	double predicted, predicted_sd;
	double scale; /* that makes it the row's unit; 0: none */
};

struct cells {
	char *name, *file, *runs_file, *profile, *options, *topic;
	uint64_t fitted, replicates;
	double median, signs, sd;
	struct cell_run *runs;
	size_t n_runs;
	struct cell_row *rows;
	size_t n_rows;
	struct cell_miss {
		char *series, *why;
	} * miss;
	size_t n_miss;
};

/* Whether the recipe at @path is of this kind. */
bool cells_is(const char *path);
/* Reads recipe, table and rows (@csv in the place of the recipe's where not NULL). Errors: those of
 * csv_read(), KVMSIM_EPARSE: also a row that no run is for. */
int cells_load(const char *path, const char *csv, const struct kvmsim_errsink *errors,
	       struct cells **out);
void cells_free(struct cells *c);

/* Fills in the predictions, on @workers processes. Errors: those of overcommit_run(). */
int cells_predict(struct cells *c, unsigned workers);

struct cells_judgement {
	const char *series; /* NULL: all of the file */
	size_t n_rows, n_modelled, n_derived, n_out, n_fitted, n_told;
	size_t n_ratios;
	double median, worst;	 /* of errors of ratios, fractions */
	size_t n_signs, n_right; /* of differences beyond two standard deviations */
	const char *miss;
	bool pass;
};
/* One per series in the file's order, the last one of all; malloc'd. KVMSIM_ENOMEM. */
int cells_judge(const struct cells *c, struct cells_judgement **out, size_t *n);

/* Whether each series is as good as is aimed at, or known not to be. */
bool cells_pass(const struct cells_judgement *j, size_t n);

int cells_print(const struct cells *c, const struct cells_judgement *j, size_t n);
void cells_csv(const struct cells *c);
/* NULL: no memory. */
json_t *cells_json(const struct cells *c, const struct cells_judgement *j, size_t n);

#endif
