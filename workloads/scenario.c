// SPDX-License-Identifier: GPL-3.0-or-later
/* The scenario's file: read whole into entries, then resolved, so that keys come in any order. */
#include "workloads/scenario.h"

#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/scenario_file.h"

static const struct workload *const workloads[] = {
	&workload_framebuffer, &workload_migration, &workload_pagelist,
	&workload_tcp_rr,      &workload_writer,
};

size_t workload_count(void)
{
	return sizeof(workloads) / sizeof(workloads[0]);
}

const struct workload *workload_at(size_t i)
{
	return i < workload_count() ? workloads[i] : NULL;
}

/* ---- keys ---- */

static int parse_u64(const struct parser *p, unsigned line, const char *key, const char *text,
		     uint64_t min, uint64_t max, uint64_t *out)
{
	const char *end = scenario_number(text, out);

	if (!end || *end || *out < min || *out > max)
		return kvmsim_err(p->errors, KVMSIM_EPARSE,
				  "%s:%u: %s = %s: expected a whole number from %" PRIu64
				  " to %" PRIu64,
				  p->path, line, key, text, min, max);
	return 0;
}

#define MAX_BASE_GFN   ((1ull << 40) - 1) /* of 52-bit physical addresses */
#define MAX_SLOT_PAGES ((1ull << 31) - 1) /* KVM_MEM_MAX_NR_PAGES */

/* "name:base:pages ..." */
/* ":2m" after the pages. False: neither that nor nothing. */
static bool parse_host_pages(const char *text, unsigned *level)
{
	static const char *const sizes[] = {"", ":4k", ":2m", ":1g"};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if (!strcmp(text, sizes[i])) {
			*level = i ? i : 1;
			return true;
		}
	return false;
}

static int parse_slots(const struct parser *p, const struct entry *e, struct scenario *s)
{
	char *save = NULL;

	for (char *word = strtok_r(e->value, " \t", &save); word;
	     word = strtok_r(NULL, " \t", &save)) {
		struct scenario_slot slot = {0};
		char *colon = strchr(word, ':');
		size_t len = colon ? (size_t)(colon - word) : 0;
		const char *at = colon ? scenario_number(colon + 1, &slot.base_gfn) : NULL;

		at = at && *at == ':' ? scenario_number(at + 1, &slot.npages) : NULL;
		if (!at || !len || !parse_host_pages(at, &slot.host_level))
			return kvmsim_err(p->errors, KVMSIM_EPARSE,
					  "%s:%u: slot '%s': expected NAME:BASE_GFN:PAGES, and "
					  "perhaps :4k, :2m or :1g, its host's pages",
					  p->path, e->line, word);
		if (len >= sizeof(slot.name) || !slot.npages || slot.base_gfn > MAX_BASE_GFN ||
		    slot.npages > MAX_SLOT_PAGES)
			return kvmsim_err(p->errors, KVMSIM_EPARSE,
					  "%s:%u: slot '%s': expected a name of at most %zu "
					  "characters, a base gfn from 0 to %llu and 1 to %llu "
					  "pages",
					  p->path, e->line, word, sizeof(slot.name) - 1,
					  MAX_BASE_GFN, MAX_SLOT_PAGES);
		memcpy(slot.name, word, len);
		for (uint32_t i = 0; i < s->n_slots; i++) {
			const struct scenario_slot *o = &s->slots[i];

			if (!strcmp(o->name, slot.name) ||
			    (slot.base_gfn < o->base_gfn + o->npages &&
			     o->base_gfn < slot.base_gfn + slot.npages))
				return kvmsim_err(p->errors, KVMSIM_EPARSE,
						  "%s:%u: slot '%s' has the name or the pages of "
						  "slot '%s'",
						  p->path, e->line, slot.name, o->name);
		}
		if (s->n_slots == SCENARIO_MAX_SLOTS)
			return kvmsim_err(p->errors, KVMSIM_EPARSE, "%s:%u: more than %d slots",
					  p->path, e->line, SCENARIO_MAX_SLOTS);
		s->slots[s->n_slots++] = slot;
	}
	return 0;
}

static int find_slot(const struct parser *p, const struct entry *e, const struct scenario *s,
		     uint32_t *out)
{
	for (uint32_t i = 0; i < s->n_slots; i++) {
		if (!strcmp(s->slots[i].name, e->value)) {
			*out = i;
			return 0;
		}
	}
	return kvmsim_err(p->errors, KVMSIM_EPARSE, "%s:%u: %s = %s: no slot of that name", p->path,
			  e->line, e->key, e->value);
}

/* One of the words that stand for the first parameter's values. */
static int parse_word(const struct parser *p, const struct entry *e, const char *const *words,
		      uint64_t *out)
{
	char all[128] = "";

	for (uint64_t i = 0; words[i]; i++) {
		size_t used = strlen(all);

		if (!strcmp(words[i], e->value)) {
			*out = i;
			return 0;
		}
		snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", words[i]);
	}
	return kvmsim_err(p->errors, KVMSIM_EPARSE, "%s:%u: %s = %s: expected one of %s", p->path,
			  e->line, e->key, e->value, all);
}

/* A key of the workload's own. KVMSIM_ENOENT: it has none of that name; no message. */
static int parse_param(const struct parser *p, const struct entry *e, struct scenario *s)
{
	const struct workload_param *w = s->workload->params;

	for (size_t i = 0; w[i].name; i++) {
		if (!strcmp(w[i].name, e->key) && !i && s->workload->words)
			return parse_word(p, e, s->workload->words, &s->param[i]);
		if (!strcmp(w[i].name, e->key))
			return parse_u64(p, e->line, e->key, e->value, w[i].min, w[i].max,
					 &s->param[i]);
	}
	return KVMSIM_ENOENT;
}

static int parse_key(const struct parser *p, const struct entry *e, struct scenario *s)
{
	uint64_t n;
	int err;

	if (!strcmp(e->key, "workload") || !strcmp(e->key, "slots"))
		return 0; /* looked at before the others */
	if (!strcmp(e->key, "preset")) {
		if (strlen(e->value) >= sizeof(s->preset))
			return kvmsim_err(p->errors, KVMSIM_EPARSE, "%s:%u: preset name too long",
					  p->path, e->line);
		strcpy(s->preset, e->value);
		return 0;
	}
	if (!strcmp(e->key, "vcpus")) {
		err = parse_u64(p, e->line, e->key, e->value, 1, 512, &n);
		s->n_vcpus = err ? 0 : (uint32_t)n;
		return err;
	}
	if (!strcmp(e->key, "target"))
		return find_slot(p, e, s, &s->target);
	if (!strcmp(e->key, "log")) {
		uint32_t slot = 0;

		if (!strcmp(e->value, "all"))
			return 0; /* as when it is not given */
		err = find_slot(p, e, s, &slot);
		s->log = (int32_t)slot;
		return err;
	}
	if (!strcmp(e->key, "rounds") && !s->workload->explicit_rounds)
		return parse_u64(p, e->line, e->key, e->value, 1, 10000000, &s->n_rounds);
	if (!strcmp(e->key, "interval"))
		return parse_u64(p, e->line, e->key, e->value, 1, UINT32_MAX, &s->interval);
	if (!strcmp(e->key, "file") && s->workload->explicit_rounds)
		return scenario_rounds_file(p, e, s);
	err = parse_param(p, e, s);
	if (err == KVMSIM_ENOENT)
		return kvmsim_err(p->errors, KVMSIM_EPARSE,
				  "%s:%u: unknown key '%s' of workload %s", p->path, e->line,
				  e->key, s->workload->name);
	return err;
}

static const struct entry *find_entry(const struct parser *p, const char *key)
{
	for (size_t i = 0; i < p->n_entries; i++) {
		if (!strcmp(p->entries[i].section, "scenario") && !strcmp(p->entries[i].key, key))
			return &p->entries[i];
	}
	return NULL;
}

static int find_workload(const struct parser *p, struct scenario *s)
{
	const struct entry *e = find_entry(p, "workload");

	if (!e) {
		kvmsim_err(p->errors, KVMSIM_EPARSE, "%s: no 'workload' in a section [scenario]",
			   p->path);
		return KVMSIM_EPARSE;
	}
	for (size_t i = 0; i < workload_count(); i++) {
		if (!strcmp(workloads[i]->name, e->value))
			s->workload = workloads[i];
	}
	if (!s->workload) {
		kvmsim_err(p->errors, KVMSIM_EPARSE,
			   "%s:%u: no workload '%s'; there are framebuffer, migration, pagelist, "
			   "tcp_rr, writer",
			   p->path, e->line, e->value);
		return KVMSIM_EPARSE;
	}
	for (size_t i = 0; s->workload->params[i].name; i++)
		s->param[i] = s->workload->params[i].def;
	return 0;
}

static int resolve(struct parser *p, struct scenario *s)
{
	int err = find_workload(p, s);
	const struct entry *slots = err ? NULL : find_entry(p, "slots");

	if (err)
		return err;
	if (!slots)
		return kvmsim_err(p->errors, KVMSIM_EPARSE, "%s: no 'slots'", p->path);
	err = parse_slots(p, slots, s);
	for (size_t i = 0; !err && i < p->n_entries; i++) {
		const struct entry *e = &p->entries[i];

		if (!strcmp(e->section, "scenario"))
			err = parse_key(p, e, s);
		else if (!strcmp(e->section, "rounds") && s->workload->explicit_rounds)
			err = scenario_round_entry(p, e, s);
		else
			err = kvmsim_err(p->errors, KVMSIM_EPARSE, "%s:%u: unknown section [%s]",
					 p->path, e->line, e->section);
	}
	if (err)
		return err;
	if (!s->n_slots)
		return kvmsim_err(p->errors, KVMSIM_EPARSE, "%s:%u: no slot", p->path, slots->line);
	if (!s->n_rounds)
		return kvmsim_err(p->errors, KVMSIM_EPARSE, "%s: no rounds", p->path);
	err = scenario_rounds_check(p, s);
	if (!err && s->workload->check)
		err = s->workload->check(s, p->errors);
	return err;
}

int scenario_parse(const char *text, size_t len, const char *path,
		   const struct kvmsim_errsink *errors, struct scenario **out)
{
	struct parser p = {.path = path, .errors = errors, .text = text, .left = len};
	struct scenario *s = calloc(1, sizeof(*s));
	int err = KVMSIM_ENOMEM;

	*out = NULL;
	if (!s || !(s->name = strdup(path)))
		goto out;
	s->n_vcpus = 1;
	s->log = -1;
	s->interval = 30000000;
	s->checksum = scenario_fnv(SCENARIO_FNV_START, text, len);
	err = scenario_read_entries(&p);
	if (!err)
		err = resolve(&p, s);
out:
	if (err == KVMSIM_ENOMEM)
		kvmsim_err(errors, err, "%s: out of memory", path);
	scenario_free_entries(&p);
	if (err)
		scenario_free(s);
	else
		*out = s;
	return err;
}

int scenario_open(const char *path, const struct kvmsim_errsink *errors, struct scenario **out)
{
	char *text = NULL;
	size_t len;
	int err = scenario_read_file(path, errors, &text, &len);

	*out = NULL;
	if (err)
		return err;
	err = scenario_parse(text, len, path, errors, out);
	free(text);
	return err;
}

void scenario_free(struct scenario *s)
{
	if (!s)
		return;
	free(s->name);
	free(s->rounds_name);
	free(s->runs);
	free(s->run_end);
	free(s);
}
