/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RECIPE_PARSE_H
#define KVMSIM_ANALYSIS_RECIPE_PARSE_H

#include "analysis/recipe.h"

/* What the sections of a recipe are read with. Private to recipe.c and recipe_text.c. */
struct recipe_parse {
	const char *at; /* rest of the text */
	unsigned line;
	struct recipe *r;
	const struct kvmsim_errsink *errors;
	int err;
	/* sections and keys given so far, to refuse them twice */
	char **seen;
	size_t n_seen;
};

/* Keeps the first error, with file and line. Always 0, which a value that is wrong returns; a right
 * one is 1. */
int recipe_fail(struct recipe_parse *ps, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Whether a line of the file at @path is @section, "[gain]\n": of which kind the recipe is. A file
 * that cannot be read has none: who reads it next complains. */
bool recipe_begins(const char *path, const char *section);
/* An ini_reader. */
char *recipe_next_line(char *buf, int size, void *stream);
/* Whether @key of @section comes for the first time. */
bool recipe_once(struct recipe_parse *ps, const char *section, const char *key);
int recipe_text_value(struct recipe_parse *ps, const char *key, const char *value, char *to,
		      size_t size);
int recipe_u64_value(struct recipe_parse *ps, const char *key, const char *value, uint64_t max,
		     uint64_t *to);
int recipe_decimal_value(struct recipe_parse *ps, const char *key, const char *value, double *to);
/* @value is cut up. */
int recipe_list_value(struct recipe_parse *ps, const char *key, char *value,
		      struct recipe_list *to);
/* The index of a count, of a param. */
int recipe_find_count(struct recipe_parse *ps, const char *name, uint16_t *out);
int recipe_find_param(struct recipe_parse *ps, const char *name, size_t *out);

#endif
