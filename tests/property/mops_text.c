// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/policy/preset.h"
#include "tests/property/mops.h"

static const char *const names[] = {
#define X(name, words) #name,
	MOPS_KINDS(X)
#undef X
};

#define HEAD                                                                                       \
	"machine seed=%llu preset=%s cpu=%s dirty=%s spte=%s paging=%u mode=%u memory=%u host=%u " \
	"eager=%u cache=%u vcpus=%u windows=%u tables=%u\n"
#define HEAD_IN                                                                                    \
	"machine seed=%llu preset=%23s cpu=%23s dirty=%47s spte=%47s paging=%u mode=%u memory=%u " \
	"host=%u eager=%u cache=%u vcpus=%u windows=%u tables=%u"

void mops_print(const struct mops *m, FILE *f)
{
	fprintf(f, HEAD, (unsigned long long)m->seed, m->preset, m->cpu, m->dirty, m->spte,
		m->paging, m->mode, m->memory, m->host_level, m->eager, m->cache, m->n_vcpus,
		m->n_windows, m->n_pts);
	for (size_t i = 0; i < m->n; i++) {
		const struct mop *op = &m->op[i];

		fprintf(f, "%u %s %#llx %#llx %u %u\n", op->who, names[op->kind],
			(unsigned long long)op->a, (unsigned long long)op->b, op->len, op->gap);
	}
}

/* Whether the op's a is a slot. */
static bool has_slot(unsigned kind)
{
	return kind >= MOP_FIRST_VMM && kind != MOP_limit && kind != MOP_reset && kind != MOP_check;
}

static bool parse_op(const char *line, struct mop *op)
{
	unsigned who, len, gap;
	unsigned long long a, b;
	char name[16];

	if (sscanf(line, "%u %15s %llx %llx %u %u", &who, name, &a, &b, &len, &gap) != 6)
		return false;
	for (unsigned k = 0; k < N_MOPS; k++)
		if (!strcmp(name, names[k])) {
			if (has_slot(k) && a >= MOPS_SLOTS)
				return false;
			*op = (struct mop){(uint8_t)who, (uint8_t)k, (uint16_t)len, gap, a, b};
			return who == MOPS_VMM ? k >= MOP_FIRST_VMM
					       : k < MOP_FIRST_VMM && who < MOPS_MAX_VCPUS;
		}
	return false;
}

static bool parse_head(const char *line, struct mops *m)
{
	unsigned paging, mode, memory, eager, cache;
	unsigned long long seed;

	if (sscanf(line, HEAD_IN, &seed, m->preset, m->cpu, m->dirty, m->spte, &paging, &mode,
		   &memory, &m->host_level, &eager, &cache, &m->n_vcpus, &m->n_windows,
		   &m->n_pts) != 14)
		return false;
	m->seed = seed;
	m->paging = paging;
	m->mode = mode;
	m->memory = memory;
	m->eager = eager;
	m->cache = cache;
	if (paging > PAGING_TDP || mode > GUEST_32BIT || memory > MOPS_ANONYMOUS ||
	    !preset_find(m->preset))
		return false;
	return m->n_vcpus && m->n_vcpus <= MOPS_MAX_VCPUS && m->n_pts && m->n_pts <= MOPS_MAX_PTS &&
	       m->n_windows && m->n_windows <= MOPS_MAX_WINDOWS;
}

bool mops_parse(FILE *f, const char *path, struct mops *m)
{
	char line[600];
	size_t room = 0;
	bool head = false;

	memset(m, 0, sizeof(*m));
	for (unsigned n = 1; fgets(line, sizeof(line), f); n++) {
		bool ok;

		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (m->n == room) {
			struct mop *op = realloc(m->op, (room = 2 * room + 64) * sizeof(*op));

			if (!op) {
				fprintf(stderr, "%s: out of memory\n", path);
				return false;
			}
			m->op = op;
		}
		ok = head ? parse_op(line, &m->op[m->n]) : parse_head(line, m);
		if (!ok) {
			fprintf(stderr, "%s:%u: expected %s\n", path, n,
				head ? "who kind a b len gap, with a slot that there is"
				     : "machine and what it has, as a failure prints it");
			return false;
		}
		m->n += head;
		head = true;
	}
	if (!head)
		fprintf(stderr, "%s: expected a line that begins with machine\n", path);
	return head;
}
