// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/interp.h"

#include "model/counts.h"
#include "model/guest/run.h"
#include "model/guest/vcpu_tlb.h"
#include "model/mmu/mmu.h"
#include "model/sim/profile.h"

/* What an op needs of its TLB entry to retire without a call, exclusive-or NEVER: what is not here
 * never does, a mere gap needs nothing. */
#define NEVER 0x80u
static const uint8_t hit_needs[256] = {
	[OP_NONE] = NEVER,
	[OP_READ] = NEVER | TLB_READ | TLB_PRIVATE,
	[OP_WRITE] = NEVER | TLB_WRITE | TLB_PRIVATE,
	[OP_RMW] = NEVER | TLB_READ | TLB_WRITE | TLB_PRIVATE,
};

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

#define LOOK_AHEAD 32 /* ops: more than the sptes that a CPU fetches at once */

/* Whether nothing but the vCPU's own translation is needed for @op. */
static inline bool hits(const struct vcpu_tlb *tlb, const struct guest_op *op)
{
	unsigned need = hit_needs[op->kind] ^ NEVER;
	const struct vcpu_tlb_entry *e = &tlb->entry[(op->arg >> PAGE_SHIFT) & tlb->mask];

	/* one test for all, since it is almost never false */
	return !need || !((e->tag ^ tlb_tag(tlb, op->arg)) | (~e->gfn_flags & need) |
			  ((op->arg & (PAGE_SIZE - 1)) + op->len > PAGE_SIZE));
}

/* Retires ops from @ops on while they hit and the vCPU may run ahead. Returns how many. */
static size_t retire_hits(struct kvm_vcpu *v, const struct guest_op *ops, size_t n,
			  struct interp_stats *stats)
{
	struct task *t = v->task;
	int64_t budget, left;
	size_t i = 0;

	if (!vcpu_may_hit(v))
		return 0;
	budget = left = allowance(t, profile_price(sim_profile(task_sim(t)), COUNT_insn));
	if (left < 0)
		return 0;
	while (i < n && ops[i].gap <= left && hits(&v->tlb, &ops[i]))
		left -= ops[i++].gap;
	if (left < budget)
		charge(t, COUNT_insn, (uint64_t)(budget - left));
	stats->insns += (uint64_t)(budget - left);
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

/* The whole instruction. One that is longer than a register touches each of its pages, the last one
 * first as vcpu_write() does, so that what faults restarts before anything is stored. */
static int access_whole(struct kvm_vcpu *v, const struct guest_op *op)
{
	const uint64_t in_page = PAGE_SIZE - 1;
	int r;

	do {
		uint64_t at = op->len > 8 ? (op->arg + op->len - 1) & ~in_page : op->arg;

		r = 0;
		for (; !r && at > op->arg; at -= PAGE_SIZE)
			r = access_once(v, op, at, 1);
		r = r ? r : access_once(v, op, op->arg, op->len > 8 ? 1 : op->len ? op->len : 1);
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
		while (r == VCPU_USERSPACE && v->mmio_store_follows)
			r = vcpu_complete_mmio(v);
		break;
	}
	return r < 0 ? r : 0;
}

/* Misses are bound by the latency of the sptes that their walks read; the ops say which those will
 * be. Looks at ops that were not looked at yet, up to @end. Returns @end. */
static size_t look_ahead(const struct kvm_vcpu *v, const struct guest_op *ops, size_t from,
			 size_t end)
{
	for (; from < end; from++)
		if (hit_needs[ops[from].kind] != NEVER && !hits(&v->tlb, &ops[from]))
			vcpu_prefetch_walk(v, ops[from].arg);
	return end;
}

int interp_run(struct kvm_vcpu *v, struct op_source *src, const struct interp_opts *opts,
	       struct interp_stats *stats)
{
	const struct guest_op *ops;
	long n;

	while ((n = src->next(src->ctx, &ops)) > 0) {
		size_t seen = 0;

		for (size_t i = 0; i < (size_t)n; i++) {
			i += retire_hits(v, ops + i, (size_t)n - i, stats);
			if (i == (size_t)n)
				break;
			if (i + LOOK_AHEAD / 2 >= seen)
				seen = look_ahead(v, ops, i > seen ? i : seen,
						  i + LOOK_AHEAD < (size_t)n ? i + LOOK_AHEAD
									     : (size_t)n);
			int err = retire(v, &ops[i], opts);

			if (err)
				return err;
			stats->insns += ops[i].gap;
		}
		stats->ops += (uint64_t)n;
	}
	return (int)n;
}
