// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/qemu_locks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PHASES 64
#define FAR	   65536 /* behind a symbol: not in it */

void qemu_locks_free(struct qemu_locks *l)
{
	/* each piece of names begins with the one before */
	while (l->names) {
		char *before;

		memcpy(&before, l->names, sizeof(before));
		free(l->names);
		l->names = before;
	}
	free(l->taken);
	free(l->symbols);
	memset(l, 0, sizeof(*l));
}

/* ---- lines ---- */

static uint32_t cut(uint64_t n)
{
	return n < UINT32_MAX ? n : UINT32_MAX;
}

/* Room for one more in an array that doubles. */
static bool grow(void **array, size_t used, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 1024;
	void *p;

	if (used < *room)
		return true;
	p = realloc(*array, more * size);
	if (!p)
		return false;
	*array = p;
	*room = more;
	return true;
}

static int function_index(struct qemu_locks *l, uint64_t addr)
{
	unsigned i = 0;

	while (i < l->n_functions && l->functions[i] != addr)
		i++;
	if (i == sizeof(l->functions) / sizeof(l->functions[0]))
		return -1;
	if (i == l->n_functions)
		l->functions[l->n_functions++] = addr;
	return i;
}

int qemu_locks_line(struct qemu_locks *l, unsigned phase, const char *line)
{
	struct lock_taken t = {.phase = phase};
	uint64_t work, function, gap, hold, wait;
	unsigned vcpu, depth, tick;
	void *array = l->taken;
	int index, end = 0;

	if (sscanf(line,
		   "%" SCNu64 " %u L %" SCNx64 " %" SCNx64 " %" SCNx64 " %u %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %u%n",
		   &work, &vcpu, &t.lock, &t.caller, &function, &depth, &gap, &hold, &wait, &tick,
		   &end) != 10 ||
	    line[end] != '\n' || vcpu >= QEMU_LOCKS_VCPUS || depth > UINT8_MAX || tick > 1 ||
	    !phase || phase >= MAX_PHASES)
		return KVMSIM_EPARSE;
	index = function_index(l, function);
	if (index < 0)
		return KVMSIM_EPARSE;
	if (l->n_taken == QEMU_LOCKS_MAX || !grow(&array, l->n_taken, &l->room, sizeof(t)))
		return KVMSIM_ENOMEM;
	l->taken = array;
	t.function = index;
	t.vcpu = vcpu;
	t.depth = depth;
	t.gap = cut(gap);
	t.hold = cut(hold);
	t.waited = wait;
	t.tick = tick;
	l->taken[l->n_taken++] = t;
	return 0;
}

int qemu_locks_vcpu(struct qemu_locks *l, const char *line)
{
	unsigned phase, vcpu;
	struct lock_work w, *sum;

	if (sscanf(line, "# vcpu %u %u %" SCNu64 " %" SCNu64 " %" SCNu64, &phase, &vcpu, &w.work,
		   &w.wait, &w.ticks) != 5 ||
	    vcpu >= QEMU_LOCKS_VCPUS || !phase || phase >= MAX_PHASES)
		return KVMSIM_EPARSE;
	sum = &l->work[phase][vcpu];
	sum->work += w.work;
	sum->wait += w.wait;
	sum->ticks += w.ticks;
	return 0;
}

int qemu_locks_end(struct qemu_locks *l, const char *line)
{
	uint64_t n;

	if (sscanf(line, "# locks %" SCNu64 " %" SCNu64 " %" SCNu64, &n, &l->left, &l->strange) !=
		    3 ||
	    n != l->n_taken)
		return KVMSIM_EPARSE;
	l->ended = true;
	return 0;
}

/* ---- names ---- */

#define NAMES 65536 /* bytes of a piece */

static const char *keep_name(struct qemu_locks *l, const char *name, size_t len)
{
	char *p;

	if (len >= 1024)
		return NULL;
	if (l->names_used + len + 1 > l->names_room) {
		p = malloc(NAMES);
		if (!p)
			return NULL;
		memcpy(p, &l->names, sizeof(l->names));
		l->names = p;
		l->names_used = sizeof(l->names);
		l->names_room = NAMES;
	}
	p = l->names + l->names_used;
	memcpy(p, name, len);
	p[len] = 0;
	l->names_used += len + 1;
	return p;
}

int qemu_locks_symbol(struct qemu_locks *l, const char *words)
{
	char *at;
	uint64_t addr = strtoull(words, &at, 16);
	struct lock_symbol s = {.addr = addr};
	void *array = l->symbols;
	size_t i = l->n_symbols;

	if (at == words || *at != ' ')
		return KVMSIM_EPARSE;
	at++;
	s.name = keep_name(l, at, strcspn(at, "\n"));
	if (!s.name || !grow(&array, l->n_symbols, &l->symbols_room, sizeof(s)))
		return KVMSIM_ENOMEM;
	l->symbols = array;
	/* they come in order but for modules */
	while (i && l->symbols[i - 1].addr > addr) {
		l->symbols[i] = l->symbols[i - 1];
		i--;
	}
	l->symbols[i] = s;
	l->n_symbols++;
	return 0;
}

const char *qemu_locks_name(const struct qemu_locks *l, uint64_t addr, uint64_t *offset)
{
	size_t lo = 0, hi = l->n_symbols;

	while (lo < hi) { /* the first one behind it */
		size_t mid = lo + (hi - lo) / 2;

		if (l->symbols[mid].addr > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	if (!lo || addr - l->symbols[lo - 1].addr >= FAR)
		return NULL;
	lo--;
	while (lo && l->symbols[lo - 1].addr == l->symbols[lo].addr)
		lo--; /* of several names the first */
	*offset = addr - l->symbols[lo].addr;
	return l->symbols[lo].name;
}

struct lock_work qemu_locks_sums(const struct qemu_locks *l, unsigned phase)
{
	struct lock_work sum = {0};

	for (unsigned i = 0; i < QEMU_LOCKS_VCPUS; i++) {
		sum.work += l->work[phase][i].work;
		sum.wait += l->work[phase][i].wait;
		sum.ticks += l->work[phase][i].ticks;
	}
	return sum;
}
