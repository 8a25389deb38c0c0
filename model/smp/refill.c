// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/sim/profile.h"
#include "model/smp/smp_priv.h"

/*
 * A vCPU's lines in the private cache of the CPU that it is on.
 *
 * Guests like dbench's go over more memory than such a cache holds (the profile's l2_bytes), so
 * that one that has the cache to itself has all of it. While others run they fetch their own lines
 * and evict it, the oldest first; on another CPU none of its lines are there. Whoever runs with a
 * part of its lines missing fetches that part of what it touches: of 1000 instructions the
 * profile's refill_permille lines, each a COUNT_l2_miss, and so less and less. Of several that take
 * turns faster than they fill the cache each has its share of it, and never more.
 *
 * Off where the profile has no l2_bytes or refill_permille.
 */
void refill_init(struct smp_vm *vm)
{
	const struct profile *p = sim_profile(vm->sim);

	vm->cache_lines = profile_param(p, "l2_bytes") / profile_param(p, "line_bytes");
	vm->refill = profile_param(p, "refill_permille");
	if (!vm->cache_lines)
		vm->refill = 0;
	vm->guarded = profile_param(p, "guarded_permille");
}

void refill_sched_in(struct smp_vcpu *v, uint32_t cpu)
{
	struct smp_vm *vm = v->vm;
	uint64_t gone;

	if (!vm->refill)
		return;
	/* Another CPU has none of its lines, nor has the first. */
	gone = v->cache_cpu == cpu ? *sched_cpu_fetched(vm->host, cpu) - v->fetched
				   : vm->cache_lines;
	v->missing += gone;
	if (v->missing > vm->cache_lines)
		v->missing = vm->cache_lines;
	v->cache_cpu = cpu;
}

void refill_sched_out(struct smp_vcpu *v)
{
	if (v->vm->refill)
		v->fetched = *sched_cpu_fetched(v->vm->host, sched_cpu(v->th));
}

uint64_t refill_due(struct smp_vcpu *v, uint64_t insns)
{
	struct smp_vm *vm = v->vm;
	uint64_t n;

	/* In thousandths of a line; what is left of one is kept. */
	v->touched += insns * vm->refill * v->missing / vm->cache_lines;
	n = v->touched / 1000;
	v->touched %= 1000;
	if (n > v->missing)
		n = v->missing;
	v->missing -= n;
	*sched_cpu_fetched(vm->host, v->cache_cpu) += n;
	return n;
}

/*
 * What a lock guards is in the cache of the CPU that held it last. Who takes it on another one
 * fetches of it, for 1000 instructions with the lock, the profile's guarded_permille lines, each a
 * COUNT_guarded_line.
 */
void guarded_taken(struct smp_vcpu *v, struct smp_lock *l)
{
	uint32_t cpu = sched_cpu(v->th) + 1;

	l->foreign = l->last_cpu && l->last_cpu != cpu;
	v->foreign += l->foreign;
	v->guarded = 0;
}

void guarded_given(struct smp_vcpu *v, struct smp_lock *l)
{
	v->foreign -= l->foreign;
	l->last_cpu = sched_cpu(v->th) + 1;
}

uint64_t guarded_due(struct smp_vcpu *v, uint64_t insns)
{
	uint64_t n;

	v->guarded += insns * v->vm->guarded;
	n = v->guarded / 1000;
	v->guarded %= 1000;
	return n;
}
