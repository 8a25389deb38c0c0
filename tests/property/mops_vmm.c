// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/guest/ring.h"
#include "tests/property/mops_machine.h"

/* As the oracle has it. */
static int set_slot(struct task *t, struct machine *x, unsigned slot)
{
	struct oracle_slot *s = &x->oracle.slot[slot];
	const struct kvm_memory_region region = {
		.slot = slot,
		.flags = (s->logged != ORACLE_NEVER ? KVM_MEM_LOG_DIRTY_PAGES : 0) |
			 (s->read_only ? KVM_MEM_READONLY : 0),
		.base_gfn = s->place ? MOPS_MOVED_GFN : s->base,
		.npages = s->is_there ? s->npages : 0,
		.host_level = slot == MOPS_SLOT_TABLES ? 1 : x->m->host_level,
		.host_populated = slot == MOPS_SLOT_TABLES || x->m->memory == MOPS_PRESENT,
		.host_anonymous = slot != MOPS_SLOT_TABLES && x->m->memory == MOPS_ANONYMOUS};

	return kvm_set_user_memory_region(t, x->kvm, &region);
}

int mops_set_slots(struct task *t, struct machine *x)
{
	int err = 0;

	for (unsigned s = 0; s < MOPS_SLOTS && !err; s++)
		err = set_slot(t, x, s);
	return err;
}

static int change_log(struct task *t, struct machine *x, const struct mop *op)
{
	struct oracle_slot *s = &x->oracle.slot[op->a];
	int r;

	if (!s->is_there || (s->logged != ORACLE_NEVER) == op->b)
		return 0;
	oracle_log(&x->oracle, (unsigned)op->a, op->b);
	r = set_slot(t, x, (unsigned)op->a);
	if (op->b) /* what was stored meanwhile need not be */
		oracle_log(&x->oracle, (unsigned)op->a, true);
	return r;
}

static int delete_slot(struct task *t, struct machine *x, unsigned slot)
{
	struct oracle *o = &x->oracle;
	struct oracle_slot *s = &o->slot[slot];
	int r;

	oracle_log(o, slot, false);
	oracle_begins(o, &s->absent[s->place]);
	s->is_there = false;
	r = set_slot(t, x, slot);
	oracle_ends(o, &s->there[s->place]);
	return r;
}

/* What it is for stores may change only while it is away. */
static int make_slot(struct task *t, struct machine *x, unsigned slot, bool read_only)
{
	struct oracle *o = &x->oracle;
	struct oracle_slot *s = &o->slot[slot];
	int r;

	if (read_only != s->read_only) {
		oracle_ends(o, read_only ? &s->ram : &s->rom);
		oracle_begins(o, read_only ? &s->rom : &s->ram);
	}
	s->read_only = read_only;
	oracle_begins(o, &s->there[s->place]);
	s->is_there = true;
	r = set_slot(t, x, slot);
	oracle_ends(o, &s->absent[s->place]);
	return r;
}

static int change_slot(struct task *t, struct machine *x, const struct mop *op)
{
	if (op->a == MOPS_SLOT_TABLES || x->oracle.slot[op->a].is_there == !!op->b)
		return 0;
	return op->b ? make_slot(t, x, (unsigned)op->a, op->b == 2)
		     : delete_slot(t, x, (unsigned)op->a);
}

static int move_slot(struct task *t, struct machine *x, const struct mop *op)
{
	struct oracle *o = &x->oracle;
	struct oracle_slot *s = &o->slot[op->a];
	unsigned from = s->place, to = !from;
	int r;

	if (op->a != MOPS_SLOT_DATA2 || !s->is_there)
		return 0;
	oracle_begins(o, &s->there[to]);
	oracle_begins(o, &s->absent[from]);
	s->place = to;
	r = set_slot(t, x, (unsigned)op->a);
	oracle_ends(o, &s->there[from]);
	oracle_ends(o, &s->absent[to]);
	return r;
}

int mops_report(struct task *t, struct machine *x, unsigned slot, bool clear)
{
	long n;

	if (x->oracle.slot[slot].logged == ORACLE_NEVER)
		return 0;
	if (clear || strncmp(x->m->dirty, "manual", 6) != 0)
		n = kvm_collect_dirty_log(t, x->kvm, slot, x->bitmap);
	else
		return (int)(n = kvm_get_dirty_log(t, x->kvm, slot, x->bitmap)) < 0 ? (int)n : 0;
	if (n < 0)
		return (int)n;
	x->r->reported += (uint64_t)n;
	oracle_reported(&x->oracle, slot, x->bitmap);
	return 0;
}

/* Pages of a slot that the host has anonymous memory for; false: there are none. */
static bool host_pages(const struct machine *x, const struct mop *op, uint64_t *n)
{
	const struct oracle_slot *s = &x->oracle.slot[op->a];

	if (x->m->memory != MOPS_ANONYMOUS || op->a == MOPS_SLOT_TABLES || op->b >= s->npages ||
	    !s->is_there)
		return false;
	*n = op->len < s->npages - op->b ? op->len : s->npages - op->b;
	return *n;
}

static int give_back(struct task *t, struct machine *x, const struct mop *op)
{
	uint64_t n;
	int r;

	if (!host_pages(x, op, &n))
		return 0;
	oracle_zero_begin(&x->oracle, x->oracle.slot[op->a].base + op->b, n);
	r = host_madvise_dontneed(t, x->kvm, (uint32_t)op->a, op->b, n);
	oracle_zero_end(&x->oracle);
	return r;
}

static int protect(struct task *t, struct machine *x, const struct mop *op)
{
	struct oracle_slot *s = &x->oracle.slot[op->a];
	uint64_t n;
	int r;

	if (!host_pages(x, op, &n))
		return 0;
	oracle_begins(&x->oracle, &s->protected);
	r = host_mprotect(t, x->kvm, (uint32_t)op->a, op->b, n, false);
	r = r ? r : host_mprotect(t, x->kvm, (uint32_t)op->a, op->b, n, true);
	oracle_ends(&x->oracle, &s->protected);
	return r;
}

static int check(struct task *t, struct machine *x, const struct mop *op)
{
	int r = 0;

	x->stop = true;
	while (!r && x->n_stopped + x->n_ended < x->m->n_vcpus) {
		r = task_block(t, WAIT_idle);
		r = r ? r : sync(t);
	}
	r = r ? r : kvm_check(x->kvm);
	if (r == KVMSIM_ECHECK)
		return mops_wrong(x, op, x->message);
	x->r->checks++;
	x->stop = false;
	for (unsigned v = 0; v < x->m->n_vcpus && !r; v++)
		if (x->vcpu[v].stopped)
			task_wake(x->vcpu[v].task, task_now(t));
	return r;
}

int mops_vmm_op(struct task *t, struct machine *x, const struct mop *op)
{
	cycles_t until = task_now(t) + op->gap;
	long n;
	int r;

	do /* who ends or stops wakes it, too */
		r = task_block_until(t, WAIT_idle, until);
	while (r > 0);
	if (r)
		return r;
	switch (op->kind) {
	case MOP_collect:
	case MOP_get:
		return mops_report(t, x, (unsigned)op->a, op->kind == MOP_collect);
	case MOP_log:
		return change_log(t, x, op);
	case MOP_slot:
		return change_slot(t, x, op);
	case MOP_move:
		return move_slot(t, x, op);
	case MOP_dontneed:
		return give_back(t, x, op);
	case MOP_protect:
		return protect(t, x, op);
	case MOP_limit:
		return kvm_set_nr_mmu_pages(t, x->kvm, op->a);
	case MOP_reset:
		n = strncmp(x->m->dirty, "ring", 4) ? 0 : kvm_reset_dirty_rings(t, x->kvm);
		return n < 0 ? (int)n : 0;
	default:
		return check(t, x, op);
	}
}
