// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/trace_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

void trace_recording_free(struct trace_recording *r)
{
	if (!r)
		return;
	trace_phases_free(&r->phases);
	for (size_t i = 0; i < r->n_names; i++)
		free(r->names[i]);
	free(r->names);
	free(r);
}

/* ---- the configuration ---- */

/* The @n characters at @name as an MMU's word; "npt0" and "npt1" are the kernel's defaults. */
static bool mmu_from(const char *name, size_t n, struct trace_recording *r)
{
	int mmu;

	if (n >= sizeof(r->mmu_name))
		return false;
	snprintf(r->mmu_name, sizeof(r->mmu_name), "%.*s", (int)n, name);
	if (!strcmp(r->mmu_name, "npt0"))
		strcpy(r->mmu_name, "npt0-long64");
	else if (!strcmp(r->mmu_name, "npt1"))
		strcpy(r->mmu_name, "npt1-tdp1");
	mmu = matrix_mmu_find(r->mmu_name, &r->guest);
	r->mmu = (enum mmu_kind)mmu;
	return mmu >= 0;
}

static bool pte_from(const char *name, size_t n, enum matrix_pte *out)
{
	static const char *const words[] = {
		[MATRIX_PTE_NONE] = "none", [MATRIX_PTE_4K] = "4k", [MATRIX_PTE_2M] = "2m", "4m"};

	for (int i = 0; i < 4; i++) {
		if (strlen(words[i]) == n && !strncmp(words[i], name, n)) {
			*out = i > MATRIX_PTE_2M ? MATRIX_PTE_2M : (enum matrix_pte)i;
			return true;
		}
	}
	return false;
}

static bool is_prefix(const char *prefix, const char *text)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* What a file's name does not say, of the reference's traces: "G" is recorded with the kernel's
 * eager_page_split, "E_P2" with its mmio_caching. */
static void defaults(struct trace_recording *r)
{
	static const struct {
		const char *prefix, *test_case;
		uint64_t slot_pages;
		enum matrix_pte pte;
	} rows[] = {{"F_pde", NULL, 1024, MATRIX_PTE_4K},
		    {"F_recycle", NULL, 65536, MATRIX_PTE_2M},
		    {"F_ad_2m", NULL, 512, MATRIX_PTE_2M},
		    {"F_", NULL, 512, MATRIX_PTE_4K},
		    {"E_P", "E_caching1", 64, MATRIX_PTE_2M},
		    {"E_", NULL, 64, MATRIX_PTE_2M},
		    {"G_", NULL, 512, MATRIX_PTE_2M},
		    {"G", "G_eagerY", 512, MATRIX_PTE_2M},
		    {"", NULL, 0, MATRIX_PTE_2M}};
	size_t i = 0;

	while (!is_prefix(rows[i].prefix, r->test_case))
		i++;
	r->pte = rows[i].pte;
	if (!r->slot_pages)
		r->slot_pages = rows[i].slot_pages;
	if (rows[i].test_case)
		snprintf(r->test_case, sizeof(r->test_case), "%s", rows[i].test_case);
}

/* MMU[-PTE] before the first dot; an MMU's word may have several parts. */
static bool mmu_and_pte(const char *text, struct trace_recording *r)
{
	size_t end = strcspn(text, "."), n = end;

	while (n && !mmu_from(text, n, r)) {
		do
			n--;
		while (n && text[n] != '-');
	}
	return n && (n == end || pte_from(text + n + 1, end - n - 1, &r->pte));
}

/* CASE[PAGES]-MMU[-PTE] before the first dot. */
static bool from_name(const char *path, struct trace_recording *r)
{
	const char *name = strrchr(path, '/');
	size_t n;
	char *end;

	name = name ? name + 1 : path;
	n = strcspn(name, "-.");
	if (!n || n >= sizeof(r->test_case) || name[n] != '-')
		return false;
	snprintf(r->test_case, sizeof(r->test_case), "%.*s", (int)n, name);
	if (isdigit((unsigned char)name[1])) {
		r->slot_pages = strtoull(name + 1, &end, 10);
		if (end != name + n)
			return false;
		r->test_case[1] = '\0';
	}
	defaults(r);
	if (!mmu_and_pte(name + n + 1, r))
		return false;
	if (r->mmu == MMU_SHADOW_FLAT32)
		r->pte = MATRIX_PTE_NONE;
	return r->slot_pages;
}

/* "CASE name=A mmu=npt0-long64 slot_pages=64 guest_pte=2m" */
static bool from_line(const char *line, struct trace_recording *r)
{
	char name[32], mmu[32], pte[8];
	unsigned long long pages;
	int end = 0;

	if (sscanf(line, "CASE name=%31s mmu=%31s slot_pages=%llu guest_pte=%7s%n", name, mmu,
		   &pages, pte, &end) != 4 ||
	    line[end] || !pages)
		return false;
	snprintf(r->test_case, sizeof(r->test_case), "%s", name);
	r->slot_pages = pages;
	return mmu_from(mmu, strlen(mmu), r) && pte_from(pte, strlen(pte), &r->pte);
}

/* ---- lines ---- */

#define LINE_MAX_BYTES 4096

struct reader {
	const char *path;
	const struct kvmsim_errsink *errors;
	struct trace_recording *r;
	unsigned long number;
	bool configured, in_phase;
	char line[LINE_MAX_BYTES];
};

static int damaged(const struct reader *rd, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static int damaged(const struct reader *rd, const char *fmt, ...)
{
	char what[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	return kvmsim_err(rd->errors, KVMSIM_EPARSE, "%s:%lu: %s", rd->path, rd->number, what);
}

/* What stands after the time: "NAME: TEXT". NULL: no line of ftrace's. */
static char *event_of(char *line)
{
	for (char *p = strstr(line, ": "); p; p = strstr(p + 1, ": ")) {
		const char *d = p;

		while (d > line && isdigit((unsigned char)d[-1]))
			d--;
		if (d == p || d == line || d[-1] != '.')
			continue;
		d--;
		if (d > line && isdigit((unsigned char)d[-1]))
			return p + 2;
	}
	return NULL;
}

static int begin_phase(struct reader *rd, const char *mark)
{
	struct trace_phase *phase;
	char name[48], pattern[24] = "-";
	long long nr, round;
	int end = 0, id;

	if (rd->in_phase)
		return damaged(rd, "a phase begins, that of line %lu has no ENDPHASE",
			       rd->r->phases.phase[rd->r->phases.n - 1].begins);
	if (sscanf(mark, "PHASE %47s nr=%lld round=%lld%n pattern=%23s%n", name, &nr, &round, &end,
		   pattern, &end) < 3 ||
	    mark[end])
		return damaged(rd, "'PHASE NAME nr=N round=N [pattern=WORD]' was expected");
	id = matrix_pattern_find(pattern);
	if (id < 0)
		return damaged(rd, "no pattern '%s'", pattern);
	phase = trace_phases_add(&rd->r->phases);
	if (!phase)
		return KVMSIM_ENOMEM;
	trace_phases_name(&rd->r->phases, name);
	phase->pattern = (enum matrix_pattern)id;
	phase->nr_dirty = nr;
	phase->round = round;
	phase->begins = rd->number;
	rd->in_phase = true;
	return 0;
}

static int mark_line(struct reader *rd, char *mark)
{
	for (size_t n = strlen(mark); n && mark[n - 1] == ' '; n--)
		mark[n - 1] = '\0';
	if (is_prefix("PHASE ", mark))
		return begin_phase(rd, mark);
	if (strcmp(mark, "ENDPHASE"))
		return damaged(rd, "a mark that is neither PHASE nor ENDPHASE");
	if (!rd->in_phase)
		return damaged(rd, "ENDPHASE, and no phase has begun");
	rd->in_phase = false;
	rd->r->phases.phase[rd->r->phases.n - 1].ends = rd->number;
	return trace_phase_end(&rd->r->phases.phase[rd->r->phases.n - 1]) ? 0 : KVMSIM_ENOMEM;
}

/* A copy that lasts; NULL: no memory. */
static const char *keep_name(struct trace_recording *r, const char *name, size_t len)
{
	char **grown = realloc(r->names, (r->n_names + 1) * sizeof(*grown));

	if (!grown)
		return NULL;
	r->names = grown;
	r->names[r->n_names] = strndup(name, len);
	return r->names[r->n_names] ? r->names[r->n_names++] : NULL;
}

/* "COMM-PID  [CPU]": 0 where there is none. */
static uint64_t thread_of(const char *line)
{
	const char *p = strstr(line, " [");

	while (p && p > line && p[-1] == ' ')
		p--;
	while (p && p > line && isdigit((unsigned char)p[-1]))
		p--;
	return p ? strtoull(p, NULL, 10) : 0;
}

static int event_line(struct reader *rd, const char *event)
{
	struct trace_line line = {.number = rd->number, .thread = thread_of(rd->line)};
	size_t len = strcspn(event, ": ");
	char expected[TRACE_LINE_PIECE];
	const char *text = event + len, *at;

	if (!len || *text != ':')
		return damaged(rd, "'EVENT: ' was expected after the time");
	text += 1 + strspn(text + 1, " ");
	line.id = trace_line_find(event, len);
	if (line.id == N_KVM_TRACE) {
		line.unknown = keep_name(rd->r, event, len);
		if (!line.unknown)
			return KVMSIM_ENOMEM;
	} else if (!trace_line_parse(line.id, text, &line, &at, expected)) {
		return damaged(rd, "%.*s: %s was expected at '%.40s'", (int)len, event, expected,
			       at);
	}
	return trace_phases_add_line(&rd->r->phases, &line) ? 0 : KVMSIM_ENOMEM;
}

static int one_line(struct reader *rd)
{
	char *event;

	if (!*rd->line || *rd->line == '#')
		return 0;
	if (is_prefix("CASE ", rd->line)) {
		rd->configured = from_line(rd->line, rd->r);
		return rd->configured ? 0
				      : damaged(rd, "'CASE name=NAME mmu=MMU slot_pages=N "
						    "guest_pte=4k|2m|none' was expected");
	}
	if (is_prefix("CPU:", rd->line) && strstr(rd->line, "LOST"))
		return damaged(rd, "the kernel lost events here");
	event = event_of(rd->line);
	if (!event)
		return damaged(rd, "no line of a trace: 'SECONDS: EVENT: ' was expected");
	if (is_prefix("tracing_mark_write: ", event))
		return mark_line(rd, event + strlen("tracing_mark_write: "));
	if (!rd->in_phase) {
		rd->r->phases.left_out[LEFT_OUT_OUTSIDE]++;
		return 0;
	}
	return event_line(rd, event);
}

static int read_lines(struct reader *rd, gzFile file)
{
	int err = 0, zerr;

	while (!err && gzgets(file, rd->line, sizeof(rd->line))) {
		size_t n = strlen(rd->line);

		rd->number++;
		if ((!n || rd->line[n - 1] != '\n') && !gzeof(file))
			return damaged(rd, "a line of text was expected, of at most %d bytes",
				       LINE_MAX_BYTES);
		while (n && (rd->line[n - 1] == '\n' || rd->line[n - 1] == '\r'))
			rd->line[--n] = '\0';
		err = one_line(rd);
	}
	if (err == KVMSIM_ENOMEM)
		return kvmsim_err(rd->errors, err, "%s: out of memory", rd->path);
	if (err)
		return err;
	gzerror(file, &zerr);
	if (zerr != Z_OK && zerr != Z_STREAM_END)
		return kvmsim_err(rd->errors, zerr == Z_ERRNO ? KVMSIM_EIO : KVMSIM_EPARSE,
				  "%s:%lu: %s", rd->path, rd->number + 1,
				  zerr == Z_ERRNO ? strerror(errno) : "damaged gzip data");
	if (rd->in_phase)
		return kvmsim_err(rd->errors, KVMSIM_EPARSE,
				  "%s: ends in the phase that begins in line %lu", rd->path,
				  rd->r->phases.phase[rd->r->phases.n - 1].begins);
	if (!rd->r->phases.n)
		return kvmsim_err(rd->errors, KVMSIM_EPARSE, "%s: no phase in it", rd->path);
	if (!rd->configured)
		return kvmsim_err(rd->errors, KVMSIM_EPARSE,
				  "%s: neither a line 'CASE name=...' nor the file's name "
				  "(CASE[PAGES]-MMU[-PTE].txt) says what was recorded",
				  rd->path);
	return 0;
}

int trace_recording_load(const char *path, const struct kvmsim_errsink *errors,
			 struct trace_recording **out)
{
	struct reader rd = {.path = path, .errors = errors};
	gzFile file;
	int err;

	*out = NULL;
	rd.r = calloc(1, sizeof(*rd.r));
	if (!rd.r)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", path);
	errno = 0;
	file = gzopen(path, "rb");
	if (!file) {
		free(rd.r);
		return kvmsim_err(errors, KVMSIM_EIO, "%s: %s", path,
				  errno ? strerror(errno) : "out of memory");
	}
	rd.configured = from_name(path, rd.r);
	err = read_lines(&rd, file);
	gzclose(file);
	if (err) {
		trace_recording_free(rd.r);
		return err;
	}
	*out = rd.r;
	return 0;
}
