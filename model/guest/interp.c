// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/interp.h"

#include "model/counts.h"
#include "model/mmu/mmu.h"
#include "model/sim/profile.h"

/* What a hit needs of its TLB entry, by kind of op; 0: never a hit. */
static const uint8_t hit_needs[OP_LAST] = {
	[OP_READ] = TLB_READ | TLB_PRIVATE,
	[OP_WRITE] = TLB_WRITE | TLB_PRIVATE,
	[OP_RMW] = TLB_READ | TLB_WRITE | TLB_PRIVATE,
};

/* Accesses longer than a register touch the same pages as their first and last byte. */
static unsigned chunk(const struct guest_op *op)
{
	return op->len > 8 ? 8 : op->len ? op->len : 1;
}

static bool one_page(const struct guest_op *op)
{
	return (op->arg & (PAGE_SIZE - 1)) + op->len <= PAGE_SIZE;
}

/* Instructions that @t can retire at @price each and still be strictly before its horizon,
 * whatever remainder it carries. -1: it is not before it now. */
static int64_t allowance(const struct task *t, uint64_t price)
{
	cycles_t now = task_now(t), horizon = task_horizon(t);

	if (now >= horizon)
		return -1;
	uint64_t left = horizon - now - 1;

	if (left > 1ull << 40) /* enough for any block of ops */
		left = 1ull << 40;
	return price ? (int64_t)((left << PRICE_SHIFT) / price) : INT64_MAX;
}

/* Retires hits from @ops on while the vCPU may run ahead. Returns how many. */
static size_t retire_hits(struct kvm_vcpu *v, const struct guest_op *ops, size_t n,
			  struct interp_stats *stats)
{
	struct task *t = v->task;
	int64_t left = v->mode == OUTSIDE_GUEST_MODE
			       ? -1
			       : allowance(t, profile_price(sim_profile(task_sim(t)), COUNT_insn));
	uint64_t insns = 0;
	size_t i = 0;

	if (left < 0)
		return 0;
	for (; i < n; i++) {
		const struct guest_op *op = &ops[i];
		unsigned need = op->kind < OP_LAST ? hit_needs[op->kind] : 0;

		if (op->gap > left || !need || !one_page(op) || !tlb_lookup(&v->tlb, op->arg, need))
			break;
		left -= op->gap;
		insns += op->gap;
	}
	if (insns)
		charge(t, COUNT_insn, insns);
	stats->insns += insns;
	stats->hits += i;
	return i;
}

static int access_once(struct kvm_vcpu *v, const struct guest_op *op, uint64_t gva, unsigned len)
{
	uint64_t value;

	switch (op->kind) {
	case OP_READ:
	case OP_MMIO_READ:
		return vcpu_read(v, gva, len, &value);
	case OP_WRITE:
	case OP_MMIO_WRITE:
		return vcpu_write(v, gva, len, 0);
	case OP_RMW:
		return vcpu_rmw(v, gva, len, 0);
	case OP_FETCH:
		return vcpu_fetch(v, gva);
	default:
		return KVMSIM_EPARSE;
	}
}

/* The whole instruction: both pages where it crosses from one to another. */
static int access_whole(struct kvm_vcpu *v, const struct guest_op *op)
{
	int r;

	do {
		if (one_page(op)) {
			r = access_once(v, op, op->arg, chunk(op));
		} else {
			uint64_t last = op->arg + op->len - 1;

			r = access_once(v, op, op->arg, 1);
			r = r ? r : access_once(v, op, last & ~(uint64_t)(PAGE_SIZE - 1), 1);
		}
	} while (r == VCPU_RESTART);
	return r;
}

static int retire(struct kvm_vcpu *v, const struct guest_op *op, const struct interp_opts *opts)
{
	int r = op->gap ? vcpu_gap(v, op->gap) : 0;

	if (r < 0)
		return r;
	switch (op->kind) {
	case OP_NONE:
		return 0;
	case OP_EPOCH:
	case OP_MARK:
		return opts->boundary ? opts->boundary(opts->ctx, v, op) : 0;
	case OP_PIO:
		r = vcpu_out(v, (uint16_t)op->arg);
		break;
	case OP_INVLPG:
		do
			r = vcpu_invlpg(v, op->arg);
		while (r == VCPU_RESTART);
		break;
	case OP_CR3:
		do
			r = vcpu_mov_cr3(v, op->arg);
		while (r == VCPU_RESTART);
		break;
	case OP_HLT:
		r = vcpu_hlt(v);
		break;
	default:
		r = access_whole(v, op);
		break;
	}
	return r < 0 ? r : 0;
}

int interp_run(struct kvm_vcpu *v, struct op_source *src, const struct interp_opts *opts,
	       struct interp_stats *stats)
{
	const struct guest_op *ops;
	long n;

	while ((n = src->next(src->ctx, &ops)) > 0) {
		for (size_t i = 0; i < (size_t)n; i++) {
			i += retire_hits(v, ops + i, (size_t)n - i, stats);
			if (i == (size_t)n)
				break;
			int err = retire(v, &ops[i], opts);

			if (err)
				return err;
			stats->insns += ops[i].gap;
		}
		stats->ops += (uint64_t)n;
	}
	return (int)n;
}
