// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/recipe_parse.h"
#include "model/params.h"

int recipe_fail(struct recipe_parse *ps, const char *fmt, ...)
{
	char msg[512];
	va_list ap;

	if (ps->err)
		return 0;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	ps->err = kvmsim_err(ps->errors, KVMSIM_EPARSE, "%s:%u: %s", ps->r->name, ps->line, msg);
	return 0;
}

bool recipe_begins(const char *path, const char *section)
{
	char *text = NULL;
	const char *at;
	size_t len;
	FILE *f = fopen(path, "r");
	bool found;

	if (f)
		fclose(f);
	if (!f || cli_read_file(path, &text, &len))
		return false;
	at = strstr(text, section);
	while (at && at != text && at[-1] != '\n')
		at = strstr(at + 1, section);
	found = at;
	free(text);
	return found;
}

/* ini_reader: fgets() that counts, without indentation (a continued value to libinih). */
char *recipe_next_line(char *buf, int size, void *stream)
{
	struct recipe_parse *ps = stream;

	if (!*ps->at || ps->err)
		return NULL;
	ps->line++;
	size_t whole = strcspn(ps->at, "\n");
	size_t blank = strspn(ps->at, " \t"), len;

	whole += ps->at[whole] == '\n';
	len = blank < whole ? whole - blank : 0;
	if (len >= (size_t)size) {
		recipe_fail(ps, "line of more than %d bytes", size - 1);
		return NULL;
	}
	memcpy(buf, ps->at + whole - len, len);
	buf[len] = '\0';
	ps->at += whole;
	return buf;
}

bool recipe_once(struct recipe_parse *ps, const char *section, const char *key)
{
	char *name;
	char **grown;

	if (asprintf(&name, "[%s] %s", section, key) < 0) {
		ps->err = KVMSIM_ENOMEM;
		return false;
	}
	for (size_t i = 0; i < ps->n_seen; i++) {
		if (strcmp(ps->seen[i], name))
			continue;
		recipe_fail(ps, "%s was given already", name);
		free(name);
		return false;
	}
	grown = realloc(ps->seen, (ps->n_seen + 1) * sizeof(*grown));
	if (!grown) {
		free(name);
		ps->err = KVMSIM_ENOMEM;
		return false;
	}
	ps->seen = grown;
	ps->seen[ps->n_seen++] = name;
	return true;
}

int recipe_text_value(struct recipe_parse *ps, const char *key, const char *value, char *to,
		      size_t size)
{
	if (!*value || strlen(value) >= size)
		return recipe_fail(ps, "%s is 1 to %zu characters", key, size - 1);
	strcpy(to, value);
	return 1;
}

int recipe_u64_value(struct recipe_parse *ps, const char *key, const char *value, uint64_t max,
		     uint64_t *to)
{
	char *end;
	unsigned long long n = strtoull(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || n > max)
		return recipe_fail(ps, "%s = %s is no whole number of at most %llu", key, value,
				   (unsigned long long)max);
	*to = n;
	return 1;
}

int recipe_decimal_value(struct recipe_parse *ps, const char *key, const char *value, double *to)
{
	char *end;

	*to = strtod(value, &end);
	if (*value < '0' || *value > '9' || *end || !isfinite(*to))
		return recipe_fail(ps, "%s = %s is no decimal number", key, value);
	return 1;
}

int recipe_list_value(struct recipe_parse *ps, const char *key, char *value, struct recipe_list *to)
{
	char *save;

	for (char *w = strtok_r(value, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		if (to->n == RECIPE_MAX_VALUES)
			return recipe_fail(ps, "%s has more than %d values", key,
					   RECIPE_MAX_VALUES);
		if (!recipe_u64_value(ps, key, w, UINT64_MAX, &to->value[to->n++]))
			return 0;
	}
	return to->n ? 1 : recipe_fail(ps, "%s has no value", key);
}

int recipe_find_count(struct recipe_parse *ps, const char *name, uint16_t *out)
{
	*out = N_COUNTS;
	for (uint16_t i = 0; i < model_vocabulary.n_counts; i++) {
		if (!strcmp(model_vocabulary.counts[i], name)) {
			*out = i;
			return 1;
		}
	}
	return recipe_fail(ps, "there is no count %s", name);
}

int recipe_find_param(struct recipe_parse *ps, const char *name, size_t *out)
{
	for (*out = 0; model_params[*out].name; ++*out)
		if (!strcmp(model_params[*out].name, name))
			return 1;
	return recipe_fail(ps, "there is no param %s", name);
}
