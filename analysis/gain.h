/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_GAIN_H
#define KVMSIM_ANALYSIS_GAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "analysis/stats.h"
#include "model/counts.h"
#include "model/sim/error.h"

/*
 * Evidence of what a change to the handling of devices gained: runs of a benchmark before and after
 * it. The model says what an access of a device costs less afterwards, in counts; the recipe prices
 * them in instructions of a real kernel, says how many accesses a transaction has, as recorded, and
 * what an instruction took. Nothing is fitted to the rows. From the other side each block of rows
 * implies a number of accesses, and two blocks agree or not on one.
 *
 *	[gain]	scenario, before, after		; of the guest; presets
 *		cpu				; personality
 *	[range]	accesses = LEAST MIDDLE MOST	; per transaction and guest
 *		insn_cycles, hz			; the same; of an instruction, of the host
 *	[instructions] COUNT = PRICE
 *	[source] KEY = words			; of what is above, for people
 *	[block NAME]
 *		file, series, metric		; of the rows, whose column policy ends in ":before"
 *						; or ":after", or has no such row
 *		policy				; what comes before that
 *		mmu = shadow | nested
 *		kind = rate | time		; transactions per second; seconds of something that
 *						; has no recorded accesses: identification only
 *		guests				; whose accesses a transaction waits for
 *		miss = why			; known to lie outside of what is predicted
 *	[zap NAME]				; a time of a walk over shadow pages
 *		file, series, metric, policy
 *		count, most			; one of it per page; pages that there can be
 *	[agree NAME]
 *		blocks = A, B			; as named above
 *		expect = yes | no
 *		why
 *	[predict NAME]				; of the same guests with another device
 *		block				; whose time before it is taken
 *		accesses = LEAST MIDDLE MOST
 */
#define GAIN_MAX_BLOCKS 16
#define GAIN_MAX_NOTES	24
#define GAIN_MAX_RUNS	32
#define GAIN_TEXT	200

struct gain_range {
	double least, middle, most;
};

enum gain_kind { GAIN_RATE, GAIN_TIME };

struct gain_block {
	char name[48], file[64], series[GAIN_TEXT], metric[GAIN_TEXT], policy[64], miss[GAIN_TEXT];
	bool nested;
	enum gain_kind kind;
	double guests;
	/* gain_load(): seconds per transaction, or per whatever it was */
	double before[GAIN_MAX_RUNS], after[GAIN_MAX_RUNS];
	size_t n_before, n_after;
	/* gain_predict(): */
	struct stats_estimate saved; /* seconds, of before - after */
	struct stats_estimate gain;  /* before / after - 1, as all the following */
	struct gain_range predicted; /* with GAIN_RATE */
	/* accesses per transaction and guest, or per second, that @saved implies: at the middle
	 * price with the runs' interval, and at all prices */
	struct stats_estimate implied;
	struct gain_range implied_all;
	bool inside; /* the intervals of both gains meet */
};

struct gain_zap {
	char name[48], file[64], series[GAIN_TEXT], metric[GAIN_TEXT], policy[64];
	uint16_t count;
	double most, seconds;
	struct gain_range pages;
};

struct gain_agree {
	char name[48], a[48], b[48], why[GAIN_TEXT];
	bool expect;
	const struct gain_block *block_a, *block_b;
	double difference, half; /* of implied accesses, at the middle price; 95% of the runs */
	bool agree;
};

struct gain_other {
	char name[48], block[48];
	struct gain_range accesses, gain;
};

struct gain_note {
	char key[48], words[GAIN_TEXT];
};

struct gain {
	char *name; /* the recipe's path */
	char scenario[GAIN_TEXT], preset[2][32], cpu[32];
	struct gain_range accesses, insn_cycles, hz;
	double price[N_COUNTS];
	struct gain_block block[GAIN_MAX_BLOCKS];
	struct gain_zap zap[GAIN_MAX_BLOCKS];
	struct gain_agree agree[GAIN_MAX_BLOCKS];
	struct gain_other other[GAIN_MAX_BLOCKS];
	struct gain_note note[GAIN_MAX_NOTES];
	size_t n_blocks, n_zaps, n_agrees, n_others, n_notes;
	/* gain_predict(): [nested][count]: fewer per access afterwards; and instructions */
	double fewer[2][N_COUNTS], saved_insns[2];
	bool pass;
};

/* Whether the file at @path is such a recipe: it has a section [gain]. */
bool gain_is(const char *path);
/* Reads @path. Errors: KVMSIM_EIO, KVMSIM_EPARSE, KVMSIM_ENOMEM. */
int gain_open(const char *path, const struct kvmsim_errsink *errors, struct gain **out);
void gain_free(struct gain *g);
/* Reads the blocks' rows: of @csv, or of the files that they name beside the recipe. Errors: those
 * of csv_read(); KVMSIM_EPARSE (fewer than two runs before or after). */
int gain_load(struct gain *g, const char *csv, const struct kvmsim_errsink *errors);
/* Runs the model and fills in all that follows. Errors: run_model()'s. */
int gain_predict(struct gain *g, const struct kvmsim_errsink *errors);

int gain_print(const struct gain *g);
void gain_csv(const struct gain *g);
json_t *gain_json(const struct gain *g);

#endif
