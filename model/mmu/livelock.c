// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/livelock.h"

#include "model/mmu/mmu.h"
#include "model/sim/profile.h"

void vcpu_progressed(struct kvm_vcpu *v)
{
	v->restarts.n = v->restarts.alone = v->restarts.n_pages = 0;
}

/* Whether it is one of the pages that the instruction has faulted on; it is from now on. */
static bool seen_before(struct vcpu_restarts *r, uint64_t page)
{
	for (unsigned i = 0; i < r->n_pages; i++)
		if (r->page[i] == page)
			return true;
	if (r->n_pages == LIVELOCK_PAGES)
		r->n_pages = 0;
	r->page[r->n_pages++] = page;
	return false;
}

int vcpu_restarted(struct kvm_vcpu *v, gva_t gva, uint64_t need, const char *why)
{
	struct vcpu_restarts *r = &v->restarts;
	const char *access = "load from";

	/* The low bits have room for what is needed. */
	if (!seen_before(r, (gva & ~(PAGE_SIZE - 1)) | (need & (PFERR_WRITE | PFERR_FETCH))))
		return 0;
	r->n++;
	r->alone = task_is_alone(v->task) ? r->alone + 1 : 0;
	if (r->alone < LIVELOCK_ALONE && r->n < v->kvm->most_restarts)
		return 0;
	if (need & PFERR_FETCH)
		access = "fetch from";
	else if (need & PFERR_WRITE)
		access = "store to";
	return kvmsim_err(
		sim_errors(v->kvm->sim), KVMSIM_ELIVELOCK,
		"livelock: task %s at %llu %s: vCPU %u's %s gva %#llx, gfn %#llx, has come to "
		"nothing %u times%s: %s",
		task_name(v->task), (unsigned long long)task_now(v->task),
		profile_unit(sim_profile(v->kvm->sim)), v->id, access, (unsigned long long)gva,
		(unsigned long long)r->gfn, r->n,
		r->alone < LIVELOCK_ALONE ? "" : ", and nothing else goes on", why);
}
