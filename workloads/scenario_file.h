/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_SCENARIO_FILE_H
#define KVMSIM_WORKLOADS_SCENARIO_FILE_H

/* Private to the scenario parser: the text as entries with their lines, and lists of pages. */

#include <stdbool.h>

#include "workloads/scenario.h"

struct entry {
	char *section, *key, *value;
	unsigned line;
	bool continued; /* the line began with a blank: it goes on with the entry above */
};

struct parser {
	const char *path;
	const struct kvmsim_errsink *errors;
	const char *text; /* what is not read yet */
	size_t left;
	unsigned line; /* of the text read last */
	bool indented; /* that line began with a blank */
	struct entry *entries;
	size_t n_entries;
	int err;
};

#define SCENARIO_FNV_START 0xcbf29ce484222325ull
uint64_t scenario_fnv(uint64_t hash, const char *text, size_t len);

/* Reads the number (decimal or 0x...) at @text; returns the character after it, NULL when there is
 * no number or it does not fit. */
const char *scenario_number(const char *text, uint64_t *out);

/* *@out is malloc'd and NUL-terminated. KVMSIM_EIO, KVMSIM_ENOMEM. */
int scenario_read_file(const char *path, const struct kvmsim_errsink *errors, char **out,
		       size_t *len);

/* Fills p->entries from p->text. KVMSIM_EPARSE: syntax, a repeated key, a line too long. */
int scenario_read_entries(struct parser *p);
void scenario_free_entries(struct parser *p);

/* `round = 1 5 7-9`: one more round, or more of the last one. */
int scenario_round_entry(const struct parser *p, const struct entry *e, struct scenario *s);
/* `file = NAME`: all rounds from a file beside the scenario, one per line, '#' begins a comment. */
int scenario_rounds_file(const struct parser *p, const struct entry *e, struct scenario *s);
/* Every page lies in the target slot. */
int scenario_rounds_check(const struct parser *p, const struct scenario *s);

#endif
