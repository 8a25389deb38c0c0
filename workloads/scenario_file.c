// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/scenario_file.h"

#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t scenario_fnv(uint64_t hash, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3ull;
	return hash;
}

const char *scenario_number(const char *text, uint64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return NULL;
	errno = 0;
	*out = strtoull(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10);
	return errno || (text[0] == '0' && text[1] == 'x' && end < text + 3) ? NULL : end;
}

int scenario_read_file(const char *path, const struct kvmsim_errsink *errors, char **out,
		       size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	size_t used = 0, got;

	if (!f)
		return kvmsim_err(errors, KVMSIM_EIO, "%s: %s", path, strerror(errno));
	do {
		char *grown = realloc(text, used + 65536);

		if (!grown) {
			free(text);
			fclose(f);
			return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", path);
		}
		text = grown;
		got = fread(text + used, 1, 65535, f);
		used += got;
	} while (got);
	int failed = ferror(f) ? errno : 0;

	fclose(f);
	if (failed) {
		free(text);
		return kvmsim_err(errors, KVMSIM_EIO, "%s: %s", path, strerror(failed));
	}
	text[used] = '\0';
	*out = text;
	*len = used;
	return 0;
}

/* ---- entries ---- */

/* inih's reader: one line at a time, so that lines are counted and long ones are seen. */
static char *read_line(char *str, int num, void *stream)
{
	struct parser *p = stream;
	const char *end;
	size_t len;

	if (!p->left || p->err)
		return NULL;
	p->line++;
	end = memchr(p->text, '\n', p->left);
	len = end ? (size_t)(end - p->text) + 1 : p->left;
	if (memchr(p->text, '\0', len)) {
		p->err = kvmsim_err(p->errors, KVMSIM_EPARSE, "%s:%u: not a text file", p->path,
				    p->line);
		return NULL;
	}
	if (len >= (size_t)num) {
		p->err = kvmsim_err(p->errors, KVMSIM_EPARSE,
				    "%s:%u: line of more than %d characters", p->path, p->line,
				    num - 1);
		return NULL;
	}
	p->indented = *p->text == ' ' || *p->text == '\t';
	memcpy(str, p->text, len);
	str[len] = '\0';
	p->text += len;
	p->left -= len;
	return str;
}

static bool repeated(const struct parser *p, const char *section, const char *key)
{
	for (size_t i = 0; i < p->n_entries; i++) {
		if (!strcmp(p->entries[i].section, section) && !strcmp(p->entries[i].key, key))
			return strcmp(section, "rounds") || strcmp(key, "round");
	}
	return false;
}

static int handle(void *user, const char *section, const char *key, const char *value)
{
	struct parser *p = user;

	if (p->err)
		return 0;
	/* an unknown section is the complaint about it, whatever its keys */
	if ((!strcmp(section, "scenario") || !strcmp(section, "rounds")) &&
	    repeated(p, section, key)) {
		p->err = kvmsim_err(p->errors, KVMSIM_EPARSE, "%s:%u: key '%s' again", p->path,
				    p->line, key);
		return 0;
	}
	struct entry *grown = realloc(p->entries, (p->n_entries + 1) * sizeof(*grown));

	if (!grown) {
		p->err = KVMSIM_ENOMEM;
		return 0;
	}
	p->entries = grown;
	struct entry *e = &grown[p->n_entries++];

	*e = (struct entry){.section = strdup(section),
			    .key = strdup(key),
			    .value = strdup(value),
			    .line = p->line,
			    .continued = p->indented};
	if (!e->section || !e->key || !e->value)
		p->err = KVMSIM_ENOMEM;
	return !p->err;
}

int scenario_read_entries(struct parser *p)
{
	int line = ini_parse_stream(read_line, p, handle, p);

	if (!p->err && line)
		p->err = kvmsim_err(p->errors, KVMSIM_EPARSE,
				    "%s:%d: expected [section] or KEY = VALUE", p->path, line);
	return p->err;
}

void scenario_free_entries(struct parser *p)
{
	for (size_t i = 0; i < p->n_entries; i++) {
		free(p->entries[i].section);
		free(p->entries[i].key);
		free(p->entries[i].value);
	}
	free(p->entries);
}

/* ---- rounds ---- */

static int add_run(struct scenario *s, struct page_run run)
{
	size_t n = s->run_end[s->n_rounds - 1];

	if (!(n & (n - 1))) { /* the room doubles at powers of two */
		struct page_run *grown = realloc(s->runs, (n ? 2 * n : 1) * sizeof(*grown));

		if (!grown)
			return KVMSIM_ENOMEM;
		s->runs = grown;
	}
	s->runs[n] = run;
	s->run_end[s->n_rounds - 1]++;
	return 0;
}

static int begin_round(struct scenario *s)
{
	uint64_t n = s->n_rounds;

	if (!(n & (n - 1))) {
		size_t *grown = realloc(s->run_end, (n ? 2 * n : 1) * sizeof(*grown));

		if (!grown)
			return KVMSIM_ENOMEM;
		s->run_end = grown;
	}
	s->run_end[n] = n ? s->run_end[n - 1] : 0;
	s->n_rounds++;
	return 0;
}

/* The file that a run of pages stands in, for messages. */
static const char *run_file(const struct scenario *s, bool beside)
{
	return beside ? s->rounds_name : s->name;
}

/* Appends "1 5 7-9" to the last round. */
static int add_pages(unsigned line, bool beside, const struct kvmsim_errsink *errors,
		     const char *text, struct scenario *s)
{
	for (;;) {
		text += strspn(text, " \t\r");
		if (!*text)
			return 0;
		uint64_t first = 0, last;
		const char *end = scenario_number(text, &first);

		last = first;
		if (end && *end == '-')
			end = scenario_number(end + 1, &last);
		if (!end || last < first || (*end && !strchr(" \t\r", *end)))
			return kvmsim_err(errors, KVMSIM_EPARSE,
					  "%s:%u: expected pages as in \"1 5 7-9\", found '%.40s'",
					  run_file(s, beside), line, text);
		int err = add_run(s, (struct page_run){first, last, line, beside});

		if (err)
			return err;
		text = end;
	}
}

int scenario_round_entry(const struct parser *p, const struct entry *e, struct scenario *s)
{
	int err = 0;

	if (strcmp(e->key, "round"))
		return kvmsim_err(p->errors, KVMSIM_EPARSE, "%s:%u: unknown key '%s' in [rounds]",
				  p->path, e->line, e->key);
	if (!e->continued || !s->n_rounds)
		err = begin_round(s);
	return err ? err : add_pages(e->line, false, p->errors, e->value, s);
}

static int add_lines(char *text, const struct kvmsim_errsink *errors, struct scenario *s)
{
	unsigned line = 0;
	int err = 0;

	while (!err && text && *text) {
		char *next = strchr(text, '\n');

		if (next)
			*next++ = '\0';
		line++;
		char *comment = strchr(text, '#');

		if (comment)
			*comment = '\0';
		/* a line that holds only a comment is no round, an empty line is an empty round */
		if (!comment || strspn(text, " \t\r") != strlen(text)) {
			err = begin_round(s);
			if (!err)
				err = add_pages(line, true, errors, text, s);
		}
		text = next;
	}
	return err;
}

int scenario_rounds_file(const struct parser *p, const struct entry *e, struct scenario *s)
{
	const char *slash = strrchr(p->path, '/');
	char *text = NULL;
	size_t len = 0;
	int err;

	if (asprintf(&s->rounds_name, "%.*s%s",
		     e->value[0] == '/' || !slash ? 0 : (int)(slash - p->path + 1), p->path,
		     e->value) < 0) {
		s->rounds_name = NULL;
		return KVMSIM_ENOMEM;
	}
	err = scenario_read_file(s->rounds_name, p->errors, &text, &len);
	if (!err) {
		s->checksum = scenario_fnv(s->checksum, text, len);
		err = add_lines(text, p->errors, s);
		free(text);
	}
	return err;
}

int scenario_rounds_check(const struct parser *p, const struct scenario *s)
{
	const struct scenario_slot *slot = &s->slots[s->target];

	for (uint64_t round = 0; s->run_end && round < s->n_rounds; round++) {
		for (size_t i = round ? s->run_end[round - 1] : 0; i < s->run_end[round]; i++) {
			const struct page_run *r = &s->runs[i];

			if (r->last >= slot->npages)
				return kvmsim_err(p->errors, KVMSIM_EPARSE,
						  "%s:%u: round %" PRIu64 " writes page %" PRIu64
						  ", slot %s has %" PRIu64,
						  run_file(s, r->beside), r->line, round + 1,
						  r->last, slot->name, slot->npages);
		}
	}
	return 0;
}
