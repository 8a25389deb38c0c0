/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RECIPE_H
#define KVMSIM_ANALYSIS_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/counts.h"
#include "model/sim/error.h"

/*
 * A recipe says how the rows of one evidence file (CSV) are predicted, which of them a calibration
 * may fit, how many numbers it may fit, and how good the prediction of the others must be. It is
 * written before the fit and lies beside the evidence:
 *
 *	[evidence]  file, metric, unit    ; rows of other metrics and units are passed over
 *	            profile               ; that prices the prediction
 *	            preset                ; of the kernel that was measured
 *	            harvests              ; rounds per row: each writes the row's pages, then GETs
 *	            runs = FILE.csv       ; in place of preset and harvests: which run of memstress
 *	                                  ; predicts each row (analysis/timing.h)
 *	            published_bytes       ; memory of each vCPU as it was measured
 *	            bytes                 ; and as it is run
 *	            quick                 ; rows of more vCPUs are run when asked for
 *	[policy]    NAME = DIRTY          ; a policy of the evidence and the one that predicts it
 *	            NAME = DIRTY identify ; its time tells the number of shadow pages, no more
 *	[series NAME]
 *	            run = N               ; pages are written in aligned runs of N at random places;
 *	                                  ; 0: all in one run
 *	            metric = WORDS        ; of its rows, where it is not the evidence's
 *	            fit = N N ...         ; nr_dirty of the rows that are fitted
 *	            pages = 4k | 2m       ; guest PTEs and host pages of the slot; 4k when not given
 *	            judged = yes | no     ; whether the bounds are about it; yes when not given
 *	[machine]   name, unit, hz, source
 *	[param]     of the profile, from data sheets
 *	[fixed]     COUNT = PRICE         ; not fitted
 *	[source]    COUNT = words         ; where a fixed price comes from
 *	[group]     NAME = COUNT*WEIGHT COUNT ...  ; one fitted number: each costs WEIGHT of it
 *	[derived]   NAME = COUNT*WEIGHT ...        ; more counts at a group's price, not in the fit:
 *	                                  ; the fitted rows have none of them
 *	[latent]    PARAM = N N ...       ; a param chosen from these values by re-simulation
 *	[cases]     NAME = fitted         ; rows are costs of a reference matrix (matrix_cost.h):
 *	                                  ; these cases are fitted, all others predicted
 *	[phases]    NAME = WHY            ; of them, neither
 *	[bounds]    fitted                ; numbers that may be fitted, at most
 *	            median, worst, within15     ; percent, of the rows that are not fitted
 *	            within10              ; of a matrix: percent that are off by 10 % at most
 *	            contended             ; params that rows with contention set: as many as the
 *	                                  ; runs say (they count as fitted)
 *	            noise                 ; percent: no sign is asked of smaller differences
 *	            guest_pages           ; for the era's limit of shadow pages
 *	            mmu_pages_permille    ; of them (KVM_PERMILLE_MMU_PAGES, at least 64 pages)
 *
 *	[miss NAME]                       ; of rows that are runs: what is known to miss the median
 *	            series, metric        ; whose; without a metric of all the series
 *	            median                ; percent: more than this is a failure
 *	            wrong                 ; signs: more wrong ones than this are a failure; else 0
 *	            why                   ; for people
 *
 * Unknown sections and keys, repeated ones and values out of range are errors with file and line.
 */
#define RECIPE_MAX_SERIES   32
#define RECIPE_MAX_POLICIES 8
#define RECIPE_MAX_GROUPS   48
#define RECIPE_MAX_VALUES   32 /* of a list */
#define RECIPE_MAX_MISSES   16
#define RECIPE_MAX_CASES    64
#define RECIPE_MAX_PHASES   8
#define RECIPE_NAME	    48 /* of a case or phase */
#define RECIPE_TEXT	    160

struct recipe_list {
	uint64_t value[RECIPE_MAX_VALUES];
	size_t n;
};

struct recipe_series {
	char name[RECIPE_TEXT], metric[RECIPE_TEXT]; /* metric empty: the recipe's */
	uint64_t run;
	struct recipe_list fit;
	bool unjudged, huge;
};

struct profile;

struct recipe_policy {
	char name[32], dirty[64];
	bool identify;
};

struct recipe_group {
	char name[32];
	uint16_t count[N_COUNTS];
	double weight[N_COUNTS];
	size_t n, n_fit; /* those from n_fit on are derived */
};

struct recipe_miss {
	char name[RECIPE_TEXT], series[RECIPE_TEXT], metric[RECIPE_TEXT], why[RECIPE_TEXT];
	double median;	/* percent */
	uint64_t wrong; /* signs */
};

struct recipe {
	char *name; /* its path, for messages */
	char file[RECIPE_TEXT], metric[RECIPE_TEXT], unit[RECIPE_TEXT];
	char profile[RECIPE_TEXT], preset[RECIPE_TEXT];
	uint64_t harvests;
	char runs[RECIPE_TEXT];		 /* "": rows are GET_DIRTY_LOG calls */
	uint64_t published_bytes, bytes; /* per vCPU, as measured and as run */
	uint64_t quick;			 /* vCPUs; 0: not given */
	uint64_t contended;		 /* params that contended rows set */
	double noise;			 /* percent; smaller differences have no sign */
	struct recipe_miss miss[RECIPE_MAX_MISSES];
	size_t n_misses;
	struct recipe_policy policy[RECIPE_MAX_POLICIES];
	size_t n_policies;
	struct recipe_series series[RECIPE_MAX_SERIES];
	size_t n_series;
	char machine[RECIPE_TEXT], machine_unit[RECIPE_TEXT], machine_source[RECIPE_TEXT];
	uint64_t hz;
	uint64_t *param; /* by model_params[], with its defaults */
	bool *param_given;
	double fixed[N_COUNTS];
	bool is_fixed[N_COUNTS];
	char *source[N_COUNTS];
	struct recipe_group group[RECIPE_MAX_GROUPS];
	size_t n_groups;
	size_t latent_param;	   /* index in model_params[] */
	struct recipe_list latent; /* n == 0: none */
	uint64_t max_fitted, guest_pages, mmu_pages_permille;
	char fitted_case[RECIPE_MAX_CASES][RECIPE_NAME]; /* n_cases == 0: no matrix */
	size_t n_cases;
	char passed_over[RECIPE_MAX_PHASES][RECIPE_NAME];
	size_t n_passed_over;
	double median, worst, within15, within10; /* percent */
	uint64_t checksum;			  /* FNV-1a of the text */
};

/* Reads @path. Errors: KVMSIM_EIO, KVMSIM_EPARSE, KVMSIM_ENOMEM. */
int recipe_open(const char *path, const struct kvmsim_errsink *errors, struct recipe **out);
/* The same from a text; @name is for messages and stands for its path. */
int recipe_parse(const char *text, const char *name, const struct kvmsim_errsink *errors,
		 struct recipe **out);
void recipe_free(struct recipe *r);

/* The series or policy of that name, or NULL. */
const struct recipe_series *recipe_series(const struct recipe *r, const char *name);
const struct recipe_policy *recipe_policy(const struct recipe *r, const char *name);
/* What is known to miss: of the series' metric, of all the series where it is NULL; or NULL. */
const struct recipe_miss *recipe_miss(const struct recipe *r, const char *series,
				      const char *metric);
/* Of a matrix: whether the case is fitted, whether the phase is neither fitted nor judged. */
bool recipe_fits_case(const struct recipe *r, const char *test_case);
bool recipe_passes_over(const struct recipe *r, const char *phase);
bool recipe_list_has(const struct recipe_list *l, uint64_t value);

/* How many numbers the recipe fits: one per group, one for a latent, and the params that rows with
 * contention set. */
size_t recipe_fitted(const struct recipe *r);

/* The text of a profile of the recipe's machine: @price holds N_COUNTS prices, @cov their
 * covariance (N_COUNTS * N_COUNTS) or NULL; @latent is the value of the latent param, if there is
 * one; @source says where the fitted ones come from. malloc'd; NULL: no memory. */
char *recipe_profile_text(const struct recipe *r, const double *price, const double *cov,
			  uint64_t latent, const char *source);

/* Whether @p can be the profile that the recipe calibrates: the same [param] and [fixed], and one
 * of the latent's values. 0, or KVMSIM_EPARSE with the first that differs: what the recipe calls
 * fitted would be said of another fit. */
int recipe_check_profile(const struct recipe *r, const struct profile *p,
			 const struct kvmsim_errsink *errors);

#endif
