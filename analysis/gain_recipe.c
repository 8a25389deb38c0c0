// SPDX-License-Identifier: GPL-3.0-or-later
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/gain.h"
#include "analysis/recipe_parse.h"

struct gain_parse {
	struct recipe_parse ps;
	struct gain *g;
};

bool gain_is(const char *path)
{
	return recipe_begins(path, "[gain]\n");
}

static int range(struct recipe_parse *ps, const char *key, char *value, struct gain_range *to)
{
	double *const at[] = {&to->least, &to->middle, &to->most};
	char *save, *w = strtok_r(value, " \t", &save);

	for (int i = 0; i < 3; i++, w = strtok_r(NULL, " \t", &save))
		if (!w || !recipe_decimal_value(ps, key, w, at[i]))
			return recipe_fail(ps, "%s is three numbers: least, middle, most", key);
	if (w || to->least <= 0 || to->middle < to->least || to->most < to->middle)
		return recipe_fail(ps, "%s is three numbers: least, middle, most", key);
	return 1;
}

static int word(struct recipe_parse *ps, const char *key, const char *value, const char *no,
		const char *yes, bool *to)
{
	*to = !strcmp(value, yes);
	return *to || !strcmp(value, no) ? 1 : recipe_fail(ps, "%s is %s or %s", key, no, yes);
}

static int number_above_0(struct recipe_parse *ps, const char *key, const char *value, double *to)
{
	if (!recipe_decimal_value(ps, key, value, to))
		return 0;
	return *to > 0 ? 1 : recipe_fail(ps, "%s is more than 0", key);
}

static int unknown(struct recipe_parse *ps, const char *section, const char *key)
{
	return recipe_fail(ps, "unknown key '%s' in [%s]", key, section);
}

#define TEXT(to) recipe_text_value(ps, key, value, to, sizeof(to))

static int gain_key(struct gain_parse *p, const char *key, const char *value)
{
	struct recipe_parse *ps = &p->ps;
	struct gain *g = p->g;

	if (!strcmp(key, "scenario"))
		return TEXT(g->scenario);
	if (!strcmp(key, "before"))
		return TEXT(g->preset[0]);
	if (!strcmp(key, "after"))
		return TEXT(g->preset[1]);
	return strcmp(key, "cpu") ? unknown(ps, "gain", key) : TEXT(g->cpu);
}

static int range_key(struct gain_parse *p, const char *key, char *value)
{
	struct gain *g = p->g;
	struct gain_range *to = !strcmp(key, "accesses")      ? &g->accesses
				: !strcmp(key, "insn_cycles") ? &g->insn_cycles
				: !strcmp(key, "hz")	      ? &g->hz
							      : NULL;

	return to ? range(&p->ps, key, value, to) : unknown(&p->ps, "range", key);
}

static int note_key(struct gain_parse *p, const char *key, const char *value)
{
	struct recipe_parse *ps = &p->ps;
	struct gain_note *n = &p->g->note[p->g->n_notes];

	if (p->g->n_notes == GAIN_MAX_NOTES)
		return recipe_fail(ps, "more than %d sources", GAIN_MAX_NOTES);
	p->g->n_notes++;
	return recipe_text_value(ps, "a source", key, n->key, sizeof(n->key)) && TEXT(n->words);
}

static int block_key(struct gain_parse *p, struct gain_block *b, const char *key, const char *value)
{
	struct recipe_parse *ps = &p->ps;
	bool is_time;

	if (!strcmp(key, "file"))
		return TEXT(b->file);
	if (!strcmp(key, "series"))
		return TEXT(b->series);
	if (!strcmp(key, "metric"))
		return TEXT(b->metric);
	if (!strcmp(key, "policy"))
		return TEXT(b->policy);
	if (!strcmp(key, "miss"))
		return TEXT(b->miss);
	if (!strcmp(key, "mmu"))
		return word(ps, key, value, "shadow", "nested", &b->nested);
	if (!strcmp(key, "guests"))
		return number_above_0(ps, key, value, &b->guests);
	if (strcmp(key, "kind"))
		return unknown(ps, "block", key);
	if (!word(ps, key, value, "rate", "time", &is_time))
		return 0;
	b->kind = is_time ? GAIN_TIME : GAIN_RATE;
	return 1;
}

static int zap_key(struct gain_parse *p, struct gain_zap *z, const char *key, const char *value)
{
	struct recipe_parse *ps = &p->ps;

	if (!strcmp(key, "file"))
		return TEXT(z->file);
	if (!strcmp(key, "series"))
		return TEXT(z->series);
	if (!strcmp(key, "metric"))
		return TEXT(z->metric);
	if (!strcmp(key, "policy"))
		return TEXT(z->policy);
	if (!strcmp(key, "count"))
		return recipe_find_count(ps, value, &z->count);
	return strcmp(key, "most") ? unknown(ps, "zap", key)
				   : number_above_0(ps, key, value, &z->most);
}

static int agree_key(struct gain_parse *p, struct gain_agree *a, const char *key, char *value)
{
	struct recipe_parse *ps = &p->ps;
	char *comma = strchr(value, ',');

	if (!strcmp(key, "expect"))
		return word(ps, key, value, "no", "yes", &a->expect);
	if (!strcmp(key, "why"))
		return TEXT(a->why);
	if (strcmp(key, "blocks"))
		return unknown(ps, "agree", key);
	if (!comma)
		return recipe_fail(ps, "blocks are two, with a comma between");
	*comma = 0;
	comma += 1 + strspn(comma + 1, " ");
	return recipe_text_value(ps, key, value, a->a, sizeof(a->a)) &&
	       recipe_text_value(ps, key, comma, a->b, sizeof(a->b));
}

static int other_key(struct gain_parse *p, struct gain_other *o, const char *key, char *value)
{
	struct recipe_parse *ps = &p->ps;

	if (!strcmp(key, "block"))
		return TEXT(o->block);
	return strcmp(key, "accesses") ? unknown(ps, "predict", key)
				       : range(ps, key, value, &o->accesses);
}

/* The element that section "KIND NAME" is about, a new one where the last has another name; NULL:
 * another kind of section, or an error. */
static void *element(struct gain_parse *p, const char *section, const char *kind, void *array,
		     size_t *n, size_t size)
{
	size_t len = strlen(kind);
	char *last = (char *)array + (*n - 1) * size; /* begins with its name */

	if (strncmp(section, kind, len) || section[len] != ' ')
		return NULL;
	if (*n && !strcmp(last, section + len + 1))
		return last;
	if (*n == GAIN_MAX_BLOCKS || strlen(section + len + 1) >= 48) {
		recipe_fail(&p->ps, "[%s]: too many, or a name of 48 characters", section);
		return NULL;
	}
	strcpy((char *)array + *n * size, section + len + 1);
	return (char *)array + (*n)++ * size;
}
#define ELEMENT(kind, member, number)                                                              \
	element(p, section, kind, g->member, &g->number, sizeof(*g->member))

static int take(void *user, const char *section, const char *key, const char *text)
{
	struct gain_parse *p = user;
	struct recipe_parse *ps = &p->ps;
	struct gain *g = p->g;
	char value[GAIN_TEXT + 1];
	uint16_t count;
	void *e;

	if (ps->err || !recipe_once(ps, section, key) ||
	    !recipe_text_value(ps, key, text, value, sizeof(value)))
		return 0;
	if (!strcmp(section, "gain"))
		return gain_key(p, key, value);
	if (!strcmp(section, "range"))
		return range_key(p, key, value);
	if (!strcmp(section, "source"))
		return note_key(p, key, value);
	if (!strcmp(section, "instructions"))
		return recipe_find_count(ps, key, &count) &&
		       recipe_decimal_value(ps, key, value, &g->price[count]);
	if ((e = ELEMENT("block", block, n_blocks)))
		return block_key(p, e, key, value);
	if ((e = ELEMENT("zap", zap, n_zaps)))
		return zap_key(p, e, key, value);
	if ((e = ELEMENT("agree", agree, n_agrees)))
		return agree_key(p, e, key, value);
	if ((e = ELEMENT("predict", other, n_others)))
		return other_key(p, e, key, value);
	return recipe_fail(ps, "unknown section [%s]", section);
}

static const struct gain_block *block_of(const struct gain *g, const char *name)
{
	for (size_t i = 0; i < g->n_blocks; i++)
		if (!strcmp(g->block[i].name, name))
			return &g->block[i];
	return NULL;
}

static int complete(struct recipe_parse *ps, struct gain *g)
{
	if (!*g->scenario || !*g->preset[0] || !*g->preset[1] || !*g->cpu || !g->accesses.least ||
	    !g->insn_cycles.least || !g->hz.least || !g->n_blocks)
		return recipe_fail(ps, "[gain], [range] and a [block] are needed, whole");
	for (size_t i = 0; i < g->n_blocks; i++) {
		const struct gain_block *b = &g->block[i];

		if (!*b->file || !*b->series || !*b->metric || !*b->policy || !b->guests)
			return recipe_fail(ps, "[block %s] is not whole", b->name);
	}
	for (size_t i = 0; i < g->n_zaps; i++)
		if (!*g->zap[i].file || !*g->zap[i].series || !*g->zap[i].metric ||
		    !g->zap[i].most || !g->price[g->zap[i].count])
			return recipe_fail(ps, "[zap %s] is not whole, or its count has no price",
					   g->zap[i].name);
	for (size_t i = 0; i < g->n_agrees; i++) {
		g->agree[i].block_a = block_of(g, g->agree[i].a);
		g->agree[i].block_b = block_of(g, g->agree[i].b);
		if (!g->agree[i].block_a || !g->agree[i].block_b)
			return recipe_fail(ps, "[agree %s] is about blocks that there are not",
					   g->agree[i].name);
	}
	for (size_t i = 0; i < g->n_others; i++)
		if (!block_of(g, g->other[i].block) || !g->other[i].accesses.least)
			return recipe_fail(ps, "[predict %s] is not whole", g->other[i].name);
	return 1;
}

int gain_open(const char *path, const struct kvmsim_errsink *errors, struct gain **out)
{
	struct gain *g = calloc(1, sizeof(*g));
	struct recipe names = {.name = (char *)path}; /* for messages */
	struct gain_parse p = {.ps = {.r = &names, .errors = errors}, .g = g};
	char *text = NULL;
	size_t len;
	int err = g ? cli_read_file(path, &text, &len) : KVMSIM_ENOMEM;

	*out = NULL;
	if (!err) {
		g->name = strdup(path);
		p.ps.at = text;
		err = g->name ? 0 : KVMSIM_ENOMEM;
	}
	if (!err && ini_parse_stream(recipe_next_line, &p.ps, take, &p) && !p.ps.err)
		recipe_fail(&p.ps, "expected [section] or KEY = VALUE");
	if (!err && !p.ps.err)
		complete(&p.ps, g);
	err = err ? err : p.ps.err;
	for (size_t i = 0; i < p.ps.n_seen; i++)
		free(p.ps.seen[i]);
	free(p.ps.seen);
	free(text);
	if (err)
		gain_free(g);
	else
		*out = g;
	return err;
}

void gain_free(struct gain *g)
{
	if (g)
		free(g->name);
	free(g);
}
