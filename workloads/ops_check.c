// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "workloads/matrix_layout.h"
#include "workloads/ops_program.h"

/*
 * An op program against what KVM takes and what the guest has room for, without running it: every
 * loop is unrolled, and the slots are followed.
 */

#define LIMIT_MIN  64u /* KVM_MIN_ALLOC_MMU_PAGES */
#define TURNS_MAX  65536u
#define LIST_OPS   (MX_LIST_PAGES * 4096 / 16) /* both vCPUs'; OUT is one of them */
#define SLOT_PAGES 512u			       /* of slots from 2 on */

struct slot {
	uint64_t gpa, pages;
	uint32_t flags;
};

struct check {
	const struct ops_program *p;
	bool paging;
	struct ops_values v;
	const struct ops_statement *vm; /* NULL: none yet */
	bool is_setup;
	struct slot slot[OPS_SLOTS];
	unsigned turns, statements, ops;
	const struct ops_statement *run; /* that the accesses are in */
	char *error;
	size_t room;
};

__attribute__((format(printf, 3, 4))) static int bad(struct check *c, const struct ops_statement *s,
						     const char *fmt, ...)
{
	size_t used = (size_t)snprintf(c->error, c->room, "%s:%u: ", c->p->path, s->line);
	va_list args;

	va_start(args, fmt);
	if (used < c->room)
		vsnprintf(c->error + used, c->room - used, fmt, args);
	va_end(args);
	return -1;
}

static uint64_t value(const struct check *c, const struct ops_statement *s, unsigned i)
{
	return i < s->n_args ? ops_value(s->arg[i], &c->v) : 0;
}

static int vm_has_setup(struct check *c)
{
	return c->vm && !c->is_setup ? bad(c, c->vm, "a vm without setup") : 0;
}

static int new_vm(struct check *c, const struct ops_statement *s)
{
	int err = vm_has_setup(c);

	c->vm = s;
	c->is_setup = false;
	memset(c->slot, 0, sizeof(c->slot));
	c->slot[0] = (struct slot){.pages = MX_SLOT0_PAGES};
	c->slot[MX_SLOT] = (struct slot){
		.gpa = MX_TEST, .pages = c->v.slot_pages, .flags = s->logged ? OPS_SLOT_LOG : 0};
	return err;
}

/* What of @number's memory the host has. */
static uint64_t memory_pages(const struct check *c, uint64_t number)
{
	if (!number)
		return MX_SLOT0_PAGES;
	return number == MX_SLOT ? c->v.slot_pages : SLOT_PAGES;
}

/* Whether KVM_SET_USER_MEMORY_REGION takes it. */
static int change_slot(struct check *c, const struct ops_statement *s)
{
	uint64_t n = value(c, s, 0), most;
	const struct slot to = {value(c, s, 1), value(c, s, 2), s->flags};
	struct slot *old;

	if (n >= OPS_SLOTS)
		return bad(c, s, "slot %" PRIu64 ": expected 0 to %u", n, OPS_SLOTS - 1);
	old = &c->slot[n];
	most = memory_pages(c, n);
	if (!to.pages) {
		if (!old->pages)
			return bad(c, s, "slot %" PRIu64 " is not there to be deleted", n);
		*old = to;
		return 0;
	}
	if (to.gpa & 4095)
		return bad(c, s, "slot %" PRIu64 ": %#" PRIx64 " is not a page's address", n,
			   to.gpa);
	if (to.pages > most)
		return bad(c, s, "slot %" PRIu64 ": %" PRIu64 " pages, it has %" PRIu64, n,
			   to.pages, most);
	if (to.gpa > UINT64_MAX - (most << 12))
		return bad(c, s, "slot %" PRIu64 ": %#" PRIx64 " is too high", n, to.gpa);
	if (old->pages &&
	    (old->pages != to.pages || ((old->flags ^ to.flags) & OPS_SLOT_READ_ONLY)))
		return bad(c, s,
			   "slot %" PRIu64 " has %" PRIu64 " pages, %s: that stays until it is "
			   "deleted",
			   n, old->pages,
			   old->flags & OPS_SLOT_READ_ONLY ? "read-only" : "not read-only");
	for (unsigned i = 0; i < OPS_SLOTS; i++) {
		const struct slot *o = &c->slot[i];

		if (i != n && o->pages && to.gpa < o->gpa + (o->pages << 12) &&
		    o->gpa < to.gpa + (to.pages << 12))
			return bad(c, s, "slot %" PRIu64 " would overlap slot %u", n, i);
	}
	*old = to;
	return 0;
}

static int get(struct check *c, const struct ops_statement *s)
{
	uint64_t n = value(c, s, 0);

	if (n >= OPS_SLOTS || !c->slot[n].pages)
		return bad(c, s, "there is no slot %" PRIu64, n);
	if (!(c->slot[n].flags & OPS_SLOT_LOG))
		return bad(c, s, "slot %" PRIu64 " is not logged", n);
	return 0;
}

/* The host's own accesses, of @bytes. */
static int in_slot0(struct check *c, const struct ops_statement *s, uint64_t gpa, uint64_t bytes)
{
	if (gpa > MX_SLOT0_PAGES * 4096 - bytes)
		return bad(c, s, "%#" PRIx64 " is not in slot 0", gpa);
	if (gpa % bytes)
		return bad(c, s, "%#" PRIx64 " is no multiple of %" PRIu64, gpa, bytes);
	return 0;
}

static int one_access(struct check *c, const struct ops_statement *s)
{
	static const bool paging_only[N_MX_OPS] = {[MX_OP_WRITE8] = true,
						   [MX_OP_XCHG8] = true,
						   [MX_OP_INVLPG] = true,
						   [MX_OP_MOV_CR3] = true};
	uint64_t address = value(c, s, 0), first;

	if (!c->run)
		return bad(c, s, "an access stands between run and end");
	first = c->run->vcpu * LIST_OPS / MX_VCPUS;
	if (paging_only[s->access] && !c->paging)
		return bad(c, s, "a guest that does not page has no such access");
	if (address > UINT32_MAX)
		return bad(c, s, "address %#" PRIx64 ": expected 32 bits", address);
	if (first + ++c->ops >= LIST_OPS)
		return bad(c, s, "more accesses than the list of vCPU %u has room for, %" PRIu64,
			   c->run->vcpu, (uint64_t)(LIST_OPS - first - 1));
	return 0;
}

static int block(struct check *c, size_t from, size_t to);

static int run(struct check *c, const struct ops_statement *s)
{
	size_t begin = (size_t)(s - c->p->statement) + 1;
	unsigned turns = c->turns;
	int err;

	if (s->vcpu >= c->vm->vcpus)
		return bad(c, s, "vcpu=%u, and the VM has one vCPU", s->vcpu);
	c->run = s;
	c->ops = c->turns = 0;
	err = block(c, begin, s->end);
	c->run = NULL;
	c->turns = turns;
	return err;
}

static int statement(struct check *c, const struct ops_statement *s)
{
	int err;

	if (s->what == OPS_ACCESS)
		return one_access(c, s);
	if (++c->statements > OPS_UNROLLED_MAX)
		return bad(c, s, "more than %u statements, unrolled", OPS_UNROLLED_MAX);
	if (!c->vm && s->what != OPS_VM)
		return bad(c, s, "expected vm first");
	switch (s->what) {
	case OPS_VM:
		return new_vm(c, s);
	case OPS_SETUP:
		err = c->is_setup ? bad(c, s, "setup comes once per vm") : 0;
		c->is_setup = true;
		return err;
	case OPS_RUN:
		return run(c, s);
	case OPS_SLOT:
		return change_slot(c, s);
	case OPS_LIMIT:
		if (value(c, s, 0) < LIMIT_MIN)
			return bad(c, s, "a limit of %" PRIu64 " shadow pages: expected %u or more",
				   value(c, s, 0), LIMIT_MIN);
		return 0;
	case OPS_GET:
		return get(c, s);
	case OPS_SET:
		return in_slot0(c, s, value(c, s, 0), 8);
	case OPS_COPY:
		err = in_slot0(c, s, value(c, s, 0), 4096);
		return err ? err : in_slot0(c, s, value(c, s, 1), 4096);
	default:
		return 0;
	}
}

static int loop(struct check *c, const struct ops_statement *s)
{
	size_t begin = (size_t)(s - c->p->statement) + 1;
	int64_t *n = &c->v.variable[s->variable - 'a'];
	int64_t last = (int64_t)value(c, s, 1);
	int err = 0;

	for (*n = (int64_t)value(c, s, 0); *n <= last && !err; ++*n) {
		if (++c->turns > TURNS_MAX)
			return bad(c, s, "loops of more than %u turns", TURNS_MAX);
		err = block(c, begin, s->end);
	}
	return err;
}

static int block(struct check *c, size_t from, size_t to)
{
	int err = 0;

	for (size_t i = from; i < to && !err; i++) {
		const struct ops_statement *s = &c->p->statement[i];

		err = s->what == OPS_FOR ? loop(c, s) : statement(c, s);
		if (s->what == OPS_FOR || s->what == OPS_RUN)
			i = s->end;
	}
	return err;
}

int ops_check(const struct ops_program *p, uint64_t slot_pages, bool paging, char *error,
	      size_t room)
{
	struct check c = {.p = p,
			  .paging = paging,
			  .v = {.slot_pages = slot_pages},
			  .error = error,
			  .room = room};
	int err = block(&c, 0, p->n);

	return err ? err : vm_has_setup(&c);
}
