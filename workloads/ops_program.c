// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/ops_program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/matrix_layout.h"

#define BLOCKS_MAX 6 /* inside each other */
#define WORDS_MAX  8

/* ---- reading ---- */

struct reader {
	struct ops_program *p;
	const char *path;
	unsigned line;
	char *word[WORDS_MAX];
	unsigned n;
	size_t block[BLOCKS_MAX]; /* the open ones */
	unsigned depth;
	bool known[26]; /* variables of the open loops */
	bool has_vm;
	char *error;
	size_t room;
};

__attribute__((format(printf, 2, 3))) static int bad(struct reader *r, const char *fmt, ...)
{
	size_t used = (size_t)snprintf(r->error, r->room, "%s:%u: ", r->path, r->line);
	va_list args;

	va_start(args, fmt);
	if (used < r->room)
		vsnprintf(r->error + used, r->room - used, fmt, args);
	va_end(args);
	return -1;
}

static const struct {
	const char *word;
	enum ops_what what;
	bool phase;
	unsigned least, most; /* expressions */
} words[] = {
	{"vm", OPS_VM, false, 0, 0},	   {"setup", OPS_SETUP, false, 0, 0},
	{"run", OPS_RUN, true, 0, 0},	   {"slot", OPS_SLOT, true, 3, 3},
	{"limit", OPS_LIMIT, true, 1, 1},  {"get", OPS_GET, true, 1, 1},
	{"set", OPS_SET, false, 2, 2},	   {"copy", OPS_COPY, false, 2, 2},
	{"round", OPS_ROUND, false, 0, 1}, {"number", OPS_NUMBER, false, 0, 1},
	{"for", OPS_FOR, false, 2, 2},	   {"end", OPS_END, false, 0, 0},
};

static const struct {
	const char *word;
	enum mx_op op;
	unsigned args;
} accesses[] = {
	{"read", MX_OP_READ4, 1},    {"write1", MX_OP_WRITE1, 2}, {"write2", MX_OP_WRITE2, 2},
	{"write4", MX_OP_WRITE4, 2}, {"write8", MX_OP_WRITE8, 2}, {"xchg8", MX_OP_XCHG8, 2},
	{"inc", MX_OP_INC4, 1},	     {"invlpg", MX_OP_INVLPG, 1}, {"cr3", MX_OP_MOV_CR3, 1},
	{"hlt", MX_OP_HLT, 0},
};

static bool in_run(const struct reader *r)
{
	for (unsigned i = 0; i < r->depth; i++) {
		if (r->p->statement[r->block[i]].what == OPS_RUN)
			return true;
	}
	return false;
}

/* The words from @at on are @s's expressions, at least and at most so many. */
static int expressions(struct reader *r, struct ops_statement *s, unsigned at, unsigned least,
		       unsigned most)
{
	if (at == r->n && !least)
		return 0;
	if (most && r->n == at + 1 && !least && !strcmp(r->word[at], "none"))
		return 0;
	if (r->n < at + least || r->n > at + most)
		return bad(r, "expected %u value%s after '%s'", most, most == 1 ? "" : "s",
			   r->word[0]);
	for (; at < r->n; at++) {
		if (strlen(r->word[at]) >= OPS_ARG_ROOM || !ops_expression(r->word[at], r->known))
			return bad(r, "expected an expression, found '%s'", r->word[at]);
		strcpy(s->arg[s->n_args++], r->word[at]);
	}
	return 0;
}

static int read_access(struct reader *r, struct ops_statement *s)
{
	for (size_t i = 0; i < sizeof(accesses) / sizeof(*accesses); i++) {
		int err;

		if (strcmp(accesses[i].word, r->word[0]))
			continue;
		s->what = OPS_ACCESS;
		s->access = accesses[i].op;
		err = expressions(r, s, 1, accesses[i].args, accesses[i].args);
		if (!err && s->access == MX_OP_MOV_CR3) { /* it is no address */
			strcpy(s->arg[1], s->arg[0]);
			strcpy(s->arg[0], "0");
			s->n_args = 2;
		}
		return err;
	}
	return bad(r, "expected an access, for or end, found '%s'", r->word[0]);
}

/* Options at the end of the line; they are no longer words. */
static int options(struct reader *r, struct ops_statement *s)
{
	while (r->n > 1) {
		const char *w = r->word[r->n - 1];

		if (s->what == OPS_VM && !strcmp(w, "vcpus=2"))
			s->vcpus = 2;
		else if (s->what == OPS_VM && !strcmp(w, "logged"))
			s->logged = true;
		else if (s->what == OPS_SLOT && !strcmp(w, "log"))
			s->flags |= OPS_SLOT_LOG;
		else if (s->what == OPS_SLOT && !strcmp(w, "read-only"))
			s->flags |= OPS_SLOT_READ_ONLY;
		else if (s->what == OPS_RUN && !strcmp(w, "vcpu=1"))
			s->vcpu = 1;
		else
			break;
		r->n--;
	}
	return 0;
}

static int open_block(struct reader *r, size_t index)
{
	struct ops_statement *s = &r->p->statement[index];
	unsigned variable;

	if (r->depth == BLOCKS_MAX)
		return bad(r, "more than %d blocks inside each other", BLOCKS_MAX);
	r->block[r->depth++] = index;
	if (s->what != OPS_FOR)
		return 0;
	variable = (unsigned)(s->variable - 'a');
	if (r->known[variable])
		return bad(r, "'%c' is the variable of a loop around this one", s->variable);
	r->known[variable] = true;
	return 0;
}

static int close_block(struct reader *r, size_t index)
{
	struct ops_statement *s;

	if (!r->depth)
		return bad(r, "end of nothing");
	s = &r->p->statement[r->block[--r->depth]];
	s->end = index;
	if (s->what == OPS_FOR)
		r->known[s->variable - 'a'] = false;
	return 0;
}

static int read_for(struct reader *r, struct ops_statement *s)
{
	if (r->n != 4 || strlen(r->word[1]) != 1 || *r->word[1] < 'a' || *r->word[1] > 'z')
		return bad(r, "expected for VARIABLE FIRST LAST, the variable one small letter");
	s->variable = *r->word[1];
	return expressions(r, s, 2, 2, 2);
}

static int read_statement(struct reader *r, struct ops_statement *s)
{
	size_t i = 0;
	int err;

	while (i < sizeof(words) / sizeof(*words) && strcmp(words[i].word, r->word[0]))
		i++;
	if (in_run(r) && (i == sizeof(words) / sizeof(*words) ||
			  (words[i].what != OPS_FOR && words[i].what != OPS_END)))
		return read_access(r, s);
	if (i == sizeof(words) / sizeof(*words))
		return bad(r, "expected a statement, found '%s'", r->word[0]);
	s->what = words[i].what;
	s->vcpus = 1;
	if (s->what == OPS_VM)
		r->has_vm = true;
	else if (!r->has_vm && s->what != OPS_FOR && s->what != OPS_END)
		return bad(r, "expected vm first, found '%s'", r->word[0]);
	if (s->what == OPS_FOR)
		return read_for(r, s);
	err = options(r, s);
	if (err || !words[i].phase)
		return err ? err : expressions(r, s, 1, words[i].least, words[i].most);
	if (r->n < 2 || strlen(r->word[1]) >= OPS_PHASE_ROOM || strchr(r->word[1], ','))
		return bad(r, "expected the name of the phase after '%s'", r->word[0]);
	strcpy(s->phase, r->word[1]);
	return expressions(r, s, 2, words[i].least, words[i].most);
}

static int read_line(struct reader *r)
{
	struct ops_program *p = r->p;
	size_t index = p->n;
	int err;

	if (!strcmp(r->word[0], "case") && !*p->name) {
		if (r->n != 2 || strlen(r->word[1]) >= sizeof(p->name))
			return bad(r, "expected the name of the case");
		strcpy(p->name, r->word[1]);
		return 0;
	}
	if (index == OPS_PROGRAM_MAX)
		return bad(r, "more than %d statements", OPS_PROGRAM_MAX);
	p->statement[index] = (struct ops_statement){.line = r->line};
	p->n++;
	err = read_statement(r, &p->statement[index]);
	if (!err && (p->statement[index].what == OPS_FOR || p->statement[index].what == OPS_RUN))
		err = open_block(r, index);
	else if (!err && p->statement[index].what == OPS_END)
		err = close_block(r, index);
	return err;
}

static int split(struct reader *r, char *line)
{
	char *save = NULL;

	line[strcspn(line, "#")] = '\0';
	r->n = 0;
	for (char *w = strtok_r(line, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save)) {
		if (r->n == WORDS_MAX)
			return bad(r, "more than %d words", WORDS_MAX);
		r->word[r->n++] = w;
	}
	return 0;
}

int ops_parse(struct ops_program *p, const char *text, const char *path, char *error, size_t room)
{
	struct reader r = {.p = p, .path = path, .error = error, .room = room};
	char line[256];
	int err = 0;

	memset(p, 0, sizeof(*p));
	snprintf(p->path, sizeof(p->path), "%s", path);
	while (*text && !err) {
		size_t len = strcspn(text, "\n");

		r.line++;
		if (len >= sizeof(line))
			return bad(&r, "a line of more than %zu characters", sizeof(line) - 1);
		memcpy(line, text, len);
		line[len] = '\0';
		text += len + (text[len] == '\n');
		err = split(&r, line);
		if (!err && r.n)
			err = read_line(&r);
	}
	if (err)
		return err;
	if (!*p->name || !p->n)
		return bad(&r, "expected %s", *p->name ? "statements" : "case NAME");
	return r.depth ? bad(&r, "a block without end, from line %u on",
			     p->statement[r.block[r.depth - 1]].line)
		       : 0;
}

/* ---- unrolling ---- */

static int walk(const struct ops_program *p, size_t from, size_t to, struct ops_values *v,
		ops_each_fn each, void *ctx)
{
	int err = 0;

	for (size_t i = from; i < to && !err; i++) {
		const struct ops_statement *s = &p->statement[i];

		if (s->what == OPS_FOR) {
			int64_t *n = &v->variable[s->variable - 'a'];
			int64_t last = (int64_t)ops_value(s->arg[1], v);

			for (*n = (int64_t)ops_value(s->arg[0], v); *n <= last && !err; ++*n)
				err = walk(p, i + 1, s->end, v, each, ctx);
			i = s->end;
			continue;
		}
		err = each(ctx, s, v);
		if (s->what == OPS_RUN)
			i = s->end;
	}
	return err;
}

int ops_walk(const struct ops_program *p, uint64_t slot_pages, ops_each_fn each, void *ctx)
{
	struct ops_values v = {.slot_pages = slot_pages};

	return walk(p, 0, p->n, &v, each, ctx);
}

int ops_walk_run(const struct ops_program *p, const struct ops_statement *run,
		 const struct ops_values *v, ops_each_fn each, void *ctx)
{
	struct ops_values own = *v;

	return walk(p, (size_t)(run - p->statement) + 1, run->end, &own, each, ctx);
}
