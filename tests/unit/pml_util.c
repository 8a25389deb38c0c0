// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/pml_util.h"

#include "model/sim/ledger.h"
#include "tests/unit/harness.h"

uint64_t pml_stat_base[N_KVM_STATS], pml_count_base[N_COUNTS];

uint64_t pml_total(const struct scene *s, uint16_t count)
{
	return ledger_sum_count(sim_ledger(s->sim), LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, count)
		.n;
}

void pml_mark(const struct scene *s)
{
	for (int i = 0; i < N_KVM_STATS; i++)
		pml_stat_base[i] = kvm_stat(s->kvm, (enum kvm_stat_id)i);
	for (uint16_t i = 0; i < N_COUNTS; i++)
		pml_count_base[i] = pml_total(s, i);
}

void pml_on_both(const char *dirty, uint64_t pages, int (*body)(struct scene *s, struct task *t))
{
	struct scene_opts o = {.paging = PAGING_TDP,
			       .pte = SCENE_FLAT,
			       .slot_pages = pages,
			       .dirty = dirty,
			       .personality = "intel",
			       .n_vcpus = 2,
			       .check = true};

	CU_ASSERT_EQUAL(scene(&o, body), 0);
	o.preset = "6.1-tdp";
	CU_ASSERT_EQUAL(scene(&o, body), 0);
}

int pml_stores(struct scene *s, uint64_t first, uint64_t last)
{
	int err = 0;

	for (uint64_t i = first; i < last && !err; i++)
		err = scene_write(s, SCENE_TEST + (i << 12), 4, i);
	return err;
}

int pml_begin(struct scene *s, struct task *t)
{
	int err = scene_setup(s);

	err = err ? err : scene_loop(s, true, 0, s->o->slot_pages);
	pml_mark(s);
	err = err ? err : scene_log(s, t, true);
	return err;
}
