// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/program.h"

#include <errno.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernel/guest.h"
#include "tests/kernel/vmm.h"

#define CLUSTER_PAGES 16u
#define ROUNDS_MAX    1000u
#define RING_MAX      65536u /* what KVM takes */

static const char *const pattern_names[N_PATTERNS] = {
	[PATTERN_NONE] = "none",
	[PATTERN_EVEN] = "even",
	[PATTERN_SEQUENTIAL] = "sequential",
	[PATTERN_RANDOM] = "random",
	[PATTERN_CLUSTERED16] = "clustered16",
	[PATTERN_HALVES] = "halves",
};

const char *pattern_name(enum pattern p)
{
	return pattern_names[p];
}

static const struct {
	const char *word;
	enum statement_op op;
	bool has_phase;
} words[] = {
	{"vm", OP_VM, false},
	{"setup", OP_SETUP, false},
	{"pages", OP_PAGES, false},
	{"unkeyed", OP_UNKEYED, false},
	{"write", OP_WRITE, true},
	{"read", OP_READ, true},
	{"inc", OP_INC, true},
	{"get", OP_GET, true},
	{"clear", OP_CLEAR, true},
	{"log-on", OP_LOG_ON, true},
	{"log-off", OP_LOG_OFF, true},
	{"dontneed", OP_DONTNEED, true},
	{"protect-ro", OP_PROTECT_RO, true},
	{"protect-rw", OP_PROTECT_RW, true},
	{"null", OP_NULL, true},
	{"check-extension", OP_CHECK_EXTENSION, true},
	{"empty", OP_EMPTY, true},
	{"sweep", OP_SWEEP, false},
	{"repeat", OP_REPEAT, false},
	{"end", OP_END, false},
	{"round", OP_ROUND, false},
	{"write-threads", OP_WRITE_THREADS, true},
	{"reset", OP_RESET, true},
	{"collect", OP_COLLECT, true},
	{"reset-harvested", OP_RESET_HARVESTED, true},
	{"write-full", OP_WRITE_FULL, true},
	{"write-resets", OP_WRITE_RESETS, true},
	{"mov", OP_MOV, true},
	{"sregs", OP_SREGS, true},
	{"cr3", OP_CR3, true},
	{"store-ptes", OP_STORE_PTES, true},
	{"store-pdes", OP_STORE_PDES, true},
	{"invlpg", OP_INVLPG, true},
};

struct reader {
	const char *path;
	unsigned line;
	char *save; /* strtok_r's, of the line */
	bool in_block;
};

_Noreturn static void bad(const struct reader *r, const char *expected, const char *found)
{
	die("%s:%u: expected %s, found '%s'", r->path, r->line, expected, found ? found : "");
}

static const char *next_word(struct reader *r)
{
	return strtok_r(NULL, " \t", &r->save);
}

static uint64_t to_number(const struct reader *r, const char *text, uint64_t max)
{
	char *end;
	if (!text || *text < '0' || *text > '9')
		bad(r, "a whole number", text);
	errno = 0;
	uint64_t value = strtoull(text, &end, 10);
	if (*end || errno || value > max)
		bad(r, "a whole number in range", text);
	return value;
}

static enum pattern to_pattern(const struct reader *r, const char *text)
{
	for (unsigned i = 0; text && i < N_PATTERNS; i++)
		if (strcmp(text, pattern_names[i]) == 0)
			return (enum pattern)i;
	bad(r, "none, even, sequential, random, clustered16 or halves", text);
}

static uint64_t to_count(const struct reader *r, const char *text)
{
	if (text && strcmp(text, "all") == 0)
		return PROGRAM_ALL;
	return to_number(r, text, GUEST_MAX_SLOT_PAGES);
}

/* PATTERN,PATTERN... NUMBER,NUMBER... ROUNDS */
static void read_sweep(struct reader *r, struct statement *s)
{
	char *patterns = strtok_r(NULL, " \t", &r->save);
	char *numbers = strtok_r(NULL, " \t", &r->save);
	const char *rounds = next_word(r);
	char *save = NULL;
	if (!patterns || !numbers)
		bad(r, "patterns, numbers of pages and rounds", NULL);
	for (char *w = strtok_r(patterns, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		if (s->n_patterns == N_PATTERNS)
			bad(r, "fewer patterns", w);
		s->pattern[s->n_patterns++] = to_pattern(r, w);
	}
	for (char *w = strtok_r(numbers, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		if (s->n_numbers == SWEEP_NUMBERS_MAX)
			bad(r, "fewer numbers", w);
		s->number[s->n_numbers++] = to_count(r, w);
	}
	s->rounds = (unsigned)to_number(r, rounds, ROUNDS_MAX);
}

static void read_vm_option(const struct reader *r, struct statement *s, const char *word)
{
	if (strcmp(word, "logged") == 0)
		s->logged = true;
	else if (strcmp(word, "manual") == 0)
		s->manual = KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE;
	else if (strcmp(word, "manual-all-set") == 0)
		s->manual = KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE | KVM_DIRTY_LOG_INITIALLY_SET;
	else if (strcmp(word, "vcpus=2") == 0)
		s->vcpus = 2;
	else if (strncmp(word, "ring=", 5) == 0)
		s->ring = to_number(r, word + 5, RING_MAX);
	else if (strcmp(word, "huge") == 0)
		s->huge = true;
	else if (strcmp(word, "lazy-split") == 0)
		s->lazy_split = true;
	else if (strcmp(word, "absent") == 0)
		s->absent = true;
	else if (strcmp(word, "readonly") == 0)
		s->readonly = true;
	else if (strcmp(word, "kernel") == 0)
		s->kernel = true;
	else if (strcmp(word, "kernel-all") == 0)
		s->kernel_all = true;
	else if (strcmp(word, "ro-ptes") == 0)
		s->ro_ptes = true;
	else if (strcmp(word, "nx-ptes") == 0)
		s->nx_ptes = true;
	else if (strcmp(word, "clean") == 0)
		s->clean = true;
	else
		bad(r,
		    "logged, manual, manual-all-set, ring=ENTRIES, vcpus=2, huge, lazy-split, "
		    "absent, readonly, kernel, kernel-all, ro-ptes, nx-ptes or clean",
		    word);
}

static void read_arguments(struct reader *r, struct statement *s)
{
	const char *word;
	switch (s->op) {
	case OP_VM:
		s->vcpus = 1;
		while ((word = next_word(r)))
			read_vm_option(r, s, word);
		break;
	case OP_CLEAR:
		s->number[s->n_numbers++] = to_count(r, next_word(r));
		if (s->number[0] == 0 || (s->number[0] != PROGRAM_ALL && s->number[0] % 64))
			bad(r, "a multiple of 64 pages, or all", NULL);
		break;
	case OP_ROUND:
		word = next_word(r);
		if (!word || strcmp(word, "none") != 0)
			s->number[s->n_numbers++] = to_number(r, word, ROUNDS_MAX);
		break;
	case OP_PAGES:
		s->pattern[s->n_patterns++] = to_pattern(r, next_word(r));
		word = next_word(r);
		if (word)
			s->number[s->n_numbers++] = to_count(r, word);
		else if (s->pattern[0] != PATTERN_NONE)
			bad(r, "a number of pages or all", NULL);
		word = next_word(r);
		if (word)
			s->number[s->n_numbers++] = to_number(r, word, GUEST_MAX_SLOT_PAGES);
		break;
	case OP_DONTNEED:
	case OP_PROTECT_RO:
	case OP_PROTECT_RW:
		s->number[s->n_numbers++] = to_number(r, next_word(r), GUEST_MAX_SLOT_PAGES);
		s->number[s->n_numbers++] = to_count(r, next_word(r));
		break;
	case OP_MOV:
	case OP_SREGS:
	case OP_CR3:
	case OP_STORE_PTES:
	case OP_STORE_PDES:
		word = next_word(r);
		if (!word || strlen(word) >= sizeof(s->text))
			bad(r, "what is to change", word);
		memcpy(s->text, word, strlen(word) + 1);
		break;
	case OP_SWEEP:
		read_sweep(r, s);
		break;
	case OP_REPEAT:
		s->rounds = (unsigned)to_number(r, next_word(r), ROUNDS_MAX);
		break;
	default:
		break;
	}
	if (s->op == OP_SWEEP || s->op == OP_REPEAT || s->op == OP_END) {
		if (r->in_block != (s->op == OP_END))
			bad(r, r->in_block ? "end before another block" : "a block before its end",
			    NULL);
		r->in_block = s->op != OP_END;
	}
}

static void read_statement(struct reader *r, struct program *p, const char *word)
{
	size_t i = 0;
	while (i < sizeof(words) / sizeof(words[0]) && strcmp(words[i].word, word) != 0)
		i++;
	if (i == sizeof(words) / sizeof(words[0]))
		bad(r, "a statement", word);
	if (p->n == PROGRAM_MAX)
		bad(r, "fewer statements", word);
	struct statement *s = &p->statement[p->n++];
	s->op = words[i].op;
	if (p->n == 1 && s->op != OP_VM)
		bad(r, "vm first", word);
	if (words[i].has_phase) {
		const char *phase = next_word(r);
		if (!phase || strlen(phase) >= sizeof(s->phase))
			bad(r, "the name of the phase", phase);
		memcpy(s->phase, phase, strlen(phase) + 1);
	}
	read_arguments(r, s);
}

void program_read(struct program *p, const char *path)
{
	struct reader r = {.path = path};
	char line[256];
	FILE *f = fopen(path, "re");
	if (!f)
		die_errno("%s", path);
	memset(p, 0, sizeof(*p));
	while (fgets(line, sizeof(line), f)) {
		r.line++;
		line[strcspn(line, "#\n")] = '\0';
		const char *word = strtok_r(line, " \t", &r.save);
		if (!word)
			continue;
		if (strcmp(word, "case") == 0 && !*p->case_name) {
			const char *name = next_word(&r);
			if (!name || strlen(name) >= sizeof(p->case_name))
				bad(&r, "the name of the case", name);
			memcpy(p->case_name, name, strlen(name) + 1);
		} else {
			read_statement(&r, p, word);
		}
		word = next_word(&r);
		if (word)
			bad(&r, "the end of the line", word);
	}
	if (ferror(f))
		die_errno("%s", path);
	fclose(f);
	if (!*p->case_name || p->n == 0 || r.in_block)
		bad(&r, !*p->case_name ? "case NAME" : "more statements", "the end of the file");
}

/* Knuth's MMIX generator, as the committed matrix of the model's tests defines "random". */
static void random_pages(uint64_t n, uint64_t slot_pages, uint32_t *pages)
{
	static bool taken[GUEST_MAX_SLOT_PAGES];
	uint64_t lcg = 12345 + n;
	memset(taken, 0, sizeof(taken));
	for (uint64_t i = 0; i < n;) {
		lcg = lcg * 6364136223846793005ull + 1442695040888963407ull;
		uint32_t page = (uint32_t)((lcg >> 33) % slot_pages);
		if (taken[page])
			continue;
		taken[page] = true;
		pages[i++] = page;
	}
}

void pattern_pages(enum pattern p, uint64_t n, uint64_t slot_pages, uint32_t *pages)
{
	uint64_t runs = (n + CLUSTER_PAGES - 1) / CLUSTER_PAGES;
	if (p == PATTERN_RANDOM) {
		random_pages(n, slot_pages, pages);
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		uint64_t page = i;
		if (p == PATTERN_EVEN)
			page = i * slot_pages / n;
		else if (p == PATTERN_CLUSTERED16)
			page = i / CLUSTER_PAGES * slot_pages / runs / CLUSTER_PAGES *
				       CLUSTER_PAGES +
			       i % CLUSTER_PAGES;
		pages[i] = (uint32_t)page;
	}
}
