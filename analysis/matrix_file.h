/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_MATRIX_FILE_H
#define KVMSIM_ANALYSIS_MATRIX_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/policy/policy.h"
#include "workloads/matrix.h"

/*
 * The file of a reference matrix in memory: one row per measured quantity, grouped by
 * configuration (what one run of a case needs to know). Texts are interned: equal texts are equal
 * pointers, so keys compare fast.
 *
 * Columns: case, mmu, kvm_mode, slot_pages, guest_pte, pattern, nr_dirty (may be empty), round (may
 * be empty or "all"), phase, quantity, value, unit, note ("abs_after=N", "occurrence=N", "n=N",
 * joined by semicolons).
 */

enum quantity_kind {
	QUANTITY_EVENT,	 /* ev:NAME, ev:NAME[kind] */
	QUANTITY_STAT,	 /* stat:NAME */
	QUANTITY_RESULT, /* res:NAME */
	QUANTITY_WORK,	 /* work:NAME, a word of model/counts.h */
	QUANTITY_COST,	 /* insns_* */
	QUANTITY_OTHER
};

#define ROUND_ALL (-2) /* a cost over all rounds */

/* Interned texts and numbers: which phase of a configuration. */
struct matrix_key {
	const char *phase, *pattern;
	int64_t nr_dirty, round; /* MATRIX_NONE, ROUND_ALL */
	uint64_t occurrence;
};

struct matrix_row {
	unsigned long line;
	size_t config; /* index */
	struct matrix_key key;
	const char *quantity;
	enum quantity_kind kind;
	double value;
	bool has_abs;
	uint64_t abs_after;
	bool done; /* for the one who compares */
};

struct matrix_config {
	const char *test_case, *mmu, *mode, *pte; /* as in the file */
	uint64_t slot_pages;
	/* what they mean to the model */
	int mmu_kind; /* enum mmu_kind, or -1: not modelled */
	enum matrix_guest guest;
	const char *dirty;		   /* policy; NULL: no such mode */
	const char *spte;		   /* policy; NULL: the preset's */
	const char *kernel;		   /* whose algorithms; NULL: not said */
	bool mmu_only;			   /* rows are of the MMU's statistics and results alone */
	int pte_kind;			   /* enum matrix_pte, or -1 */
	const struct ops_program *program; /* the case is this one; NULL: built in, or none */
	bool looked_for;		   /* matrix_file_programs() has */
};

struct matrix_file {
	const char *path;
	struct matrix_row *rows;
	size_t n_rows;
	struct matrix_config *configs; /* in the order of their first rows */
	size_t n_configs;
	struct text_pool *pool;
	struct matrix_program *programs;
};

/* Errors: those of csv_read(); KVMSIM_EPARSE with line for a value that is no number, a row
 * that is there twice, and one without abs_after whose quantity has it in others. */
int matrix_file_load(const char *path, const struct kvmsim_errsink *errors,
		     struct matrix_file **out);
void matrix_file_free(struct matrix_file *f);

/* The cases that are not built in are the op programs @dir/CASE.ops, where there is such a file.
 * Errors: KVMSIM_EPARSE with file and line, KVMSIM_EIO, KVMSIM_ENOMEM. */
int matrix_file_programs(struct matrix_file *f, const char *dir,
			 const struct kvmsim_errsink *errors);
/* For matrix_file_free(). */
/* One of them: 1, or 0 when there is no such file, or an error with its message. */
int matrix_program_read(const char *dir, const char *name, const struct kvmsim_errsink *errors,
			struct ops_program *out);
void matrix_programs_free(struct matrix_file *f);

/* The interned text, or NULL when out of memory. */
const char *matrix_file_text(struct matrix_file *f, const char *text);

/* The rounds that the rows of configuration @config name, the first for a cost over all of them,
 * sorted by pattern, nr_dirty, round, each once; *out is malloc'd. 0 or KVMSIM_ENOMEM. */
int matrix_file_rounds(const struct matrix_file *f, size_t config, struct matrix_round **out,
		       size_t *n);

/* Whether the model has this configuration's MMU and the matrix its case: then every one of its
 * rows must be predicted. */
bool matrix_config_modelled(const struct matrix_config *c);

#endif
