// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/ple.h"
#include "model/smp/smp.h"

/*
 * Since 3.18 each vCPU has a window of its own: it grows at each exit and shrinks when the vCPU is
 * scheduled in (grow_ple_window() and shrink_ple_window() of arch/x86/kvm/vmx). A factor that is
 * not below the first window is added or taken away instead; of 0 the window is the first again.
 */
enum { GROW = PLE_N_COMMON, SHRINK, MAX };

static const struct policy_param params[] = {
	PLE_COMMON_PARAMS,
	{"grow", 2, 0, UINT32_MAX, 1, "factor, or if larger than the window cycles, at each exit"},
	{"shrink", 0, 0, UINT32_MAX, 1,
	 "the same, when the vCPU gets a CPU; 0: to the first window"},
	{"max", UINT32_MAX, 0, UINT32_MAX, 1, "the longest window"},
	{.name = NULL}};

static const uint64_t *values(const struct smp_vcpu *v)
{
	return smp_vm_opts(smp_vm_of(v))->ple_params.value;
}

/* The window is the private place's own value; 0: the first. */
static uint64_t window(const struct smp_vcpu *v)
{
	uintptr_t now = (uintptr_t)*smp_vcpu_ple_private((struct smp_vcpu *)v);

	return now ? now : values(v)[PLE_WINDOW];
}

static void set_window(struct smp_vcpu *v, uint64_t now)
{
	*smp_vcpu_ple_private(v) = (void *)(uintptr_t)now;
}

static void grow(struct smp_vcpu *v)
{
	const uint64_t *p = values(v);
	uint64_t now = window(v);

	if (!p[GROW])
		now = p[PLE_WINDOW];
	else if (p[GROW] < p[PLE_WINDOW])
		now *= p[GROW];
	else
		now += p[GROW];
	set_window(v, now < p[MAX] ? now : p[MAX]);
}

static void shrink(struct smp_vcpu *v)
{
	const uint64_t *p = values(v);
	uint64_t now = window(v);

	if (!p[SHRINK])
		now = p[PLE_WINDOW];
	else if (p[SHRINK] < p[PLE_WINDOW])
		now /= p[SHRINK];
	else
		now = now > p[SHRINK] ? now - p[SHRINK] : 0;
	set_window(v, now > p[PLE_WINDOW] ? now : p[PLE_WINDOW]);
}

const struct ple_policy ple_window = {
	.desc =
		{
			.name = "window",
			.family = FAMILY_PLE,
			.summary = "pause-loop exits after a window that grows with each of them",
			.params = params,
		},
	.window = window,
	.gap = ple_gap,
	.exited = grow,
	.sched_in = shrink,
	.rounds = ple_rounds,
	.eligible = ple_eligible,
};
