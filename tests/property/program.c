// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/property/program.h"

#include <stdlib.h>
#include <string.h>

#include "model/sim/rng.h"

static const char *const policies[] = {
	"walk",
	"rmap-slot",
	"mask",
	"hybrid",
	"manual",
	"manual,chunk=64",
	"manual,chunk=192,initially-all-set=1",
	"ring,size=256,reaper=0",
	"ring,size=256,reaper=20",
	"ring,size=1024,reaper=3",
	"pml",
	"manual,chunk=64,pml=1",
	"manual,chunk=320,initially-all-set=1,pml=1",
	"ring,size=1024,reaper=3,pml=1",
};

/* All but tcg, whose vCPUs never run ahead over an exit. */
static const char *const cpus[] = {"amd", "intel", "intel-haswell", "intel-nehalem"};
#define N_CPUS (sizeof(cpus) / sizeof(cpus[0]))

static const struct {
	enum kvm_paging paging;
	enum guest_paging_mode mode;
	const char *preset;
} machines[] = {
	{PAGING_SHADOW, GUEST_FLAT32, NULL},	{PAGING_SHADOW, GUEST_LONG64, NULL},
	{PAGING_TDP, GUEST_LONG64, NULL},	{PAGING_SHADOW, GUEST_FLAT32, "2.6.36"},
	{PAGING_TDP, GUEST_LONG64, "6.1-tdp"},	{PAGING_TDP, GUEST_FLAT32, "6.1-tdp"},
	{PAGING_TDP, GUEST_LONG64, "6.2-tdp"},	{PAGING_TDP, GUEST_FLAT32, "6.13-tdp"},
	{PAGING_TDP, GUEST_FLAT32, "5.16-tdp"}, {PAGING_SHADOW, GUEST_PAE, NULL},
	{PAGING_SHADOW, GUEST_32BIT, NULL},	{PAGING_TDP, GUEST_32BIT, "6.1-tdp"},
	{PAGING_TDP, GUEST_PAE, "6.13-tdp"},
};

/* Mostly runs of hits with short gaps, so that run-ahead has something to do; now and then a gap
 * far longer than the lookahead. */
static uint32_t random_gap(struct rng *r)
{
	switch (rng_below(r, 8)) {
	case 0:
		return 0;
	case 1:
		return (uint32_t)rng_below(r, 20000);
	default:
		return (uint32_t)rng_below(r, 30);
	}
}

/* A few pages that all vCPUs use, some of their own, seldom any page at all. @wide: always any. */
static uint64_t random_page(struct rng *r, uint32_t vcpu, bool wide)
{
	switch (wide ? 0 : rng_below(r, 8)) {
	case 0:
		return rng_below(r, PROGRAM_SLOTS * PROGRAM_PAGES);
	case 1:
	case 2:
		return rng_below(r, 8) * 131 % (PROGRAM_SLOTS * PROGRAM_PAGES);
	default:
		return (vcpu * 200 + rng_below(r, 12)) % (PROGRAM_SLOTS * PROGRAM_PAGES);
	}
}

static struct guest_op random_op(struct rng *r, uint32_t vcpu, enum guest_paging_mode mode,
				 bool wide)
{
	struct guest_op op = {.gap = random_gap(r), .len = (uint16_t)(1 + rng_below(r, 8))};
	uint64_t offset = rng_below(r, 64) ? rng_below(r, 512) * 8 : 4090;

	op.arg = random_page(r, vcpu, wide) << 12 | offset;
	if (op.arg + op.len > (uint64_t)PROGRAM_SLOTS * PROGRAM_PAGES << 12)
		op.arg -= 8;
	switch (rng_below(r, 32)) {
	case 0:
		op.kind = OP_NONE;
		break;
	case 1:
		op.kind = OP_PIO;
		op.arg = 0x10;
		break;
	case 2:
		op.kind = mode != GUEST_FLAT32 ? OP_INVLPG : OP_NONE;
		break;
	case 7:
		op.kind = mode != GUEST_FLAT32 ? OP_CR3
			  : rng_below(r, 2)    ? OP_MMIO_READ
					       : OP_MMIO_WRITE;
		op.arg = mode != GUEST_FLAT32 ? program_root(mode) : PROGRAM_DEVICE;
		break;
	case 8:
		op.kind = rng_below(r, 4) ? OP_NONE : OP_HLT;
		break;
	case 3:
	case 4:
	case 5:
		op.kind = OP_RMW;
		break;
	case 6:
		op.kind = OP_FETCH;
		break;
	default:
		op.kind = rng_below(r, 2) ? OP_READ : OP_WRITE;
		break;
	}
	return op;
}

/* Through shadow pages, of which the TDP MMU has none. */
static bool walks(const char *dirty)
{
	return !strcmp(dirty, "walk") || !strcmp(dirty, "hybrid");
}

/* Of three programs two have memory that is anonymous; the VMM gives some back where it would
 * collect the log. */
static void choose_memory(struct program *p, struct rng *r)
{
	p->host_anonymous = rng_below(r, 3);
	p->host_absent = p->host_anonymous && rng_below(r, 2);
	for (size_t i = 0; p->host_anonymous && i < p->n_steps; i++) {
		struct program_step *s = &p->steps[i];

		if (s->what != STEP_GET || rng_below(r, 3))
			continue;
		s->what = STEP_DONTNEED;
		s->first = rng_below(r, PROGRAM_PAGES / 64) * 64 * rng_below(r, 2);
		s->npages = 1 + rng_below(r, rng_below(r, 2) ? 16 : PROGRAM_PAGES - s->first);
	}
}

static bool fill(struct program *p, struct rng *r)
{
	bool ring = !strncmp(p->dirty, "ring", 4), restless = !rng_below(r, 4);
	bool wide = ring && rng_below(r, 2); /* so that it gets full */

	p->n_vcpus = 1 + (uint32_t)rng_below(r, PROGRAM_MAX_VCPUS);
	for (uint32_t v = 0; v < p->n_vcpus; v++) {
		p->n_ops[v] = 100 + rng_below(r, 700) + (wide ? 600 : 0);
		p->start[v] = rng_below(r, 3) * rng_below(r, 3000);
		p->ops[v] = calloc(p->n_ops[v], sizeof(*p->ops[v]));
		if (!p->ops[v]) {
			program_free(p);
			return false;
		}
		for (size_t i = 0; i < p->n_ops[v]; i++)
			p->ops[v][i] = random_op(r, v, p->on.mode, wide);
	}
	p->n_steps = 2 + rng_below(r, wide ? 6 : sizeof(p->steps) / sizeof(p->steps[0]) - 2);
	for (size_t i = 0; i < p->n_steps; i++) {
		struct program_step *s = &p->steps[i];
		uint64_t what = rng_below(r, restless ? 4 : 12);

		s->delay = restless || rng_below(r, 2) ? rng_below(r, 500) : rng_below(r, 40000);
		s->slot = (uint32_t)rng_below(r, PROGRAM_SLOTS);
		s->what = what == 0	      ? STEP_LOG_OFF
			  : what == 1	      ? STEP_LOG_ON
			  : ring && what == 2 ? STEP_RESET
					      : STEP_GET;
	}
	choose_memory(p, r);
	return true;
}

bool program_make(uint64_t number, struct program *p)
{
	struct rng r;
	size_t machine;
	bool tdp;

	memset(p, 0, sizeof(*p));
	rng_init(&r, number, 0, "program");
	machine = rng_below(&r, sizeof(machines) / sizeof(machines[0]));
	p->number = number;
	p->check = number % 2;
	p->on.paging = machines[machine].paging;
	p->on.mode = machines[machine].mode;
	p->on.preset = machines[machine].preset;
	tdp = p->on.preset && strstr(p->on.preset, "-tdp");
	do
		p->dirty = policies[rng_below(&r, sizeof(policies) / sizeof(policies[0]))];
	while (tdp && walks(p->dirty));
	p->on.cpu = strstr(p->dirty, "pml") ? "intel" : cpus[rng_below(&r, N_CPUS)];
	p->on.host_level = tdp ? 1 + (unsigned)rng_below(&r, 2) : 1;
	p->on.eager_page_split = rng_below(&r, 2) ? EAGER_PAGE_SPLIT_ON : EAGER_PAGE_SPLIT_OFF;
	return fill(p, &r);
}

bool program_make_on(uint64_t number, const struct program_machine *on, const char *dirty,
		     struct program *p)
{
	struct rng r;

	memset(p, 0, sizeof(*p));
	rng_init(&r, number, 0, "program");
	p->number = number;
	p->check = true;
	p->on = *on;
	p->dirty = dirty;
	return fill(p, &r);
}

void program_free(struct program *p)
{
	for (uint32_t v = 0; v < PROGRAM_MAX_VCPUS; v++)
		free(p->ops[v]);
	memset(p, 0, sizeof(*p));
}
