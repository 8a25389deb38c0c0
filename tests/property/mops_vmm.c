// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/guest/ring.h"
#include "tests/property/mops_machine.h"

int mops_set_slot(struct task *t, struct machine *x, unsigned slot, bool there, bool log)
{
	struct oracle_slot *s = &x->oracle.slot[slot];
	const struct kvm_memory_region region = {
		.slot = slot,
		.flags = log ? KVM_MEM_LOG_DIRTY_PAGES : 0,
		.base_gfn = s->base,
		.npages = there ? s->npages : 0,
		.host_level = slot == MOPS_SLOT_TABLES ? 1 : x->m->host_level,
		.host_populated = slot == MOPS_SLOT_TABLES || x->m->memory == MOPS_PRESENT,
		.host_anonymous = slot != MOPS_SLOT_TABLES && x->m->memory == MOPS_ANONYMOUS};

	return kvm_set_user_memory_region(t, x->kvm, &region);
}

static int change_log(struct task *t, struct machine *x, const struct mop *op)
{
	struct oracle_slot *s = &x->oracle.slot[op->a];
	int r;

	if (s->there.to != ORACLE_NEVER || (s->logged != ORACLE_NEVER) == op->b)
		return 0;
	if (!op->b)
		oracle_log(&x->oracle, (unsigned)op->a, false);
	r = mops_set_slot(t, x, (unsigned)op->a, true, op->b);
	if (op->b)
		oracle_log(&x->oracle, (unsigned)op->a, true);
	return r;
}

static int change_slot(struct task *t, struct machine *x, const struct mop *op)
{
	struct oracle_slot *s = &x->oracle.slot[op->a];
	bool there = s->there.to == ORACLE_NEVER;
	int r;

	if (there == !!op->b)
		return 0;
	if (there) {
		oracle_log(&x->oracle, (unsigned)op->a, false);
		s->absent = (struct oracle_span){oracle_tick(&x->oracle), ORACLE_NEVER};
		r = mops_set_slot(t, x, (unsigned)op->a, false, false);
		s->there.to = oracle_tick(&x->oracle);
	} else {
		s->there = (struct oracle_span){oracle_tick(&x->oracle), ORACLE_NEVER};
		r = mops_set_slot(t, x, (unsigned)op->a, true, false);
		s->absent.to = oracle_tick(&x->oracle);
	}
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
	    s->there.to != ORACLE_NEVER)
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
	s->readonly = (struct oracle_span){oracle_tick(&x->oracle), ORACLE_NEVER};
	r = host_mprotect(t, x->kvm, (uint32_t)op->a, op->b, n, false);
	r = r ? r : host_mprotect(t, x->kvm, (uint32_t)op->a, op->b, n, true);
	s->readonly.to = oracle_tick(&x->oracle);
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
		return op->a == MOPS_SLOT_TABLES ? 0 : change_slot(t, x, op);
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
