// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/unpriced.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/output.h"
#include "model/sim/profile.h"

#define WARNED 5 /* names in the warning; the report has all of them */

void unpriced_add(struct unpriced *u, bool collecting, uint16_t count, uint64_t n, cycles_t cycles)
{
	if (n && !cycles && !profile_has_price(u->profile, count))
		(collecting ? u->collecting : u->elsewhere)[count] = true;
}

/* Those of @which, or of both; how many. */
static unsigned collect(const bool *which, const bool *also, const char *names[N_COUNTS])
{
	unsigned n = 0;

	for (uint16_t c = 0; c < N_COUNTS; c++)
		if (which[c] || (also && also[c]))
			names[n++] = model_vocabulary.counts[c];
	return n;
}

static bool print_names(const bool *which, const char *head, FILE *to)
{
	const char *names[N_COUNTS];
	unsigned n = collect(which, NULL, names);

	for (unsigned i = 0; i < n; i++)
		fprintf(to, "%s%s", i ? ", " : head, names[i]);
	return n;
}

int unpriced_print(const struct unpriced *u, FILE *to)
{
	const char *collecting = "in the log's operations ", *elsewhere = "elsewhere ";
	const char *names[N_COUNTS];
	char *text = NULL;
	size_t len;
	FILE *f;

	if (!collect(u->collecting, u->elsewhere, names))
		return 0;
	f = open_memstream(&text, &len);
	if (!f)
		return KVMSIM_ENOMEM;
	fprintf(f, "Not priced by profile %s: ", profile_name(u->profile));
	if (print_names(u->collecting, collecting, f))
		elsewhere = "; elsewhere ";
	print_names(u->elsewhere, elsewhere, f);
	fputc('.', f);
	if (fclose(f)) {
		free(text);
		return KVMSIM_ENOMEM;
	}
	out_wrapped(text, 2, to);
	free(text);
	return 0;
}

void unpriced_warn(const struct unpriced *u)
{
	const char *names[N_COUNTS];
	unsigned n = collect(u->collecting, NULL, names);
	char text[512] = "", more[64] = "";

	for (unsigned i = 0; i < n && i < WARNED; i++) {
		strncat(text, i ? ", " : "", sizeof(text) - strlen(text) - 1);
		strncat(text, names[i], sizeof(text) - strlen(text) - 1);
	}
	if (n > WARNED)
		snprintf(more, sizeof(more), " and %u more", n - WARNED);
	if (n)
		cli_warn("profile %s prices none of %s%s: times of the log's operations lack them",
			 profile_name(u->profile), text, more);
}

static json_t *names_json(const bool *which, const bool *also)
{
	const char *names[N_COUNTS];
	unsigned n = collect(which, also, names);
	json_t *a = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(a, json_string(names[i]));
	return a;
}

void unpriced_json(const struct unpriced *u, struct json_t *o)
{
	json_put(o, "not_priced", names_json(u->collecting, u->elsewhere));
	json_put(o, "not_priced_collecting", names_json(u->collecting, NULL));
}
