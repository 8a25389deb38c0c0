// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/matrix_layout.h"
#include "workloads/ops_program.h"

/*
 * Expressions: numbers, variables of one letter, names, functions of one argument, ( ), and the
 * operators * + - and | which binds least; no spaces. Each level is one function.
 */

struct reader {
	const char *at;
	const struct ops_values *v;
	const bool *known; /* NULL: every variable is */
	bool bad;
};

static const struct {
	const char *name;
	uint64_t value;
} constants[] = {
	{"leaf", MX_LEAF_4K},
	{"dir", MX_TABLE_ENTRY},
	{"ro", MX_LEAF_4K & ~MX_WRITABLE},
	{"clean", MX_LEAF_4K & ~MX_ACCESSED_DIRTY},
	{"undirty", MX_TABLE_ENTRY},
	{"huge", MX_LEAF_2M},
	{"pml4", MX_PML4},
	{"pdpt", MX_PDPT},
};

/* base + argument * step */
static const struct {
	const char *name;
	uint64_t base, step;
} functions[] = {
	{"test", MX_TEST, 4096},	{"pte", MX_PT_TEST(0), 8}, /* the tables lie in a row */
	{"table", MX_PT_TEST(0), 4096}, {"low", 0, 4096},
	{"lowpte", MX_PT_LOW, 8},	{"mmio", MX_MMIO, 4096},
	{"mmiopte", MX_PT_MMIO, 8},	{"pde", MX_PD(0), 8}, /* so do the directories */
	{"pdpte", MX_PDPT, 8},		{"pml4e", MX_PML4, 8},
	{"spare", 0x68000, 4096}, /* pages of slot 0 that the guest begins without */
	{"list", MX_LIST, 4096},
};

static uint64_t alternative(struct reader *r);

static uint64_t bad(struct reader *r)
{
	r->bad = true;
	return 0;
}

static uint64_t parenthesis(struct reader *r)
{
	uint64_t value;

	if (*r->at++ != '(')
		return bad(r);
	value = alternative(r);
	if (r->bad || *r->at++ != ')')
		return bad(r);
	return value;
}

static uint64_t name(struct reader *r)
{
	size_t len = strspn(r->at, "abcdefghijklmnopqrstuvwxyz0123456789");
	const char *word = r->at;

	r->at += len;
	if (len == 1) {
		unsigned i = (unsigned)(*word - 'a');

		return r->known && !r->known[i] ? bad(r) : (uint64_t)r->v->variable[i];
	}
	if (len == 3 && !strncmp(word, "all", len))
		return r->v->slot_pages;
	for (size_t i = 0; i < sizeof(constants) / sizeof(*constants); i++) {
		if (strlen(constants[i].name) == len && !strncmp(constants[i].name, word, len))
			return constants[i].value;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		if (strlen(functions[i].name) == len && !strncmp(functions[i].name, word, len))
			return functions[i].base + functions[i].step * parenthesis(r);
	}
	return bad(r);
}

static uint64_t factor(struct reader *r)
{
	char *end;
	uint64_t value;

	if (*r->at >= 'a' && *r->at <= 'z')
		return name(r);
	if (*r->at < '0' || *r->at > '9')
		return parenthesis(r);
	errno = 0;
	value = strtoull(r->at, &end, 0);
	r->at = end;
	return errno ? bad(r) : value;
}

static uint64_t product(struct reader *r)
{
	uint64_t value = factor(r);

	while (!r->bad && *r->at == '*') {
		r->at++;
		value *= factor(r);
	}
	return value;
}

static uint64_t sum(struct reader *r)
{
	uint64_t value = product(r);

	while (!r->bad && (*r->at == '+' || *r->at == '-')) {
		bool minus = *r->at++ == '-';
		uint64_t other = product(r);

		value = minus ? value - other : value + other;
	}
	return value;
}

static uint64_t alternative(struct reader *r)
{
	uint64_t value = sum(r);

	while (!r->bad && *r->at == '|') {
		r->at++;
		value |= sum(r);
	}
	return value;
}

uint64_t ops_value(const char *expression, const struct ops_values *v)
{
	struct reader r = {.at = expression, .v = v};

	return alternative(&r);
}

bool ops_expression(const char *text, const bool known[26])
{
	const struct ops_values none = {0};
	struct reader r = {.at = text, .v = &none, .known = known};

	alternative(&r);
	return !r.bad && !*r.at;
}
