// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/smp_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/params.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

void smp_scene_open(struct smp_scene *s, uint32_t cpus, const struct smp_opts *o, bool reference)
{
	struct smp_opts opts = *o;
	char text[512];

	snprintf(text, sizeof(text),
		 "[machine]\nunit = cycles\nhz = 1000000000\n[price]\ninsn = 1\nvm_exit = %d\n"
		 "vm_entry = %d\nipi = %d\ninject = %d\nguest_irq = %d\nguest_tick = %d\n"
		 "guest_switch = %d\nguest_wake_up = %d\nhypercall = %d\nwake_up = %d\nlock = 1\n"
		 "pause = 1\n[param]\nipi_latency = %d\n",
		 EXIT, ENTRY, IPI, INJECT, IRQ, TICK, SWITCH, WAKE, HYPERCALL, HOST_WAKE, LATENCY);
	*s = (struct smp_scene){0};
	if (profile_parse(text, strlen(text), "scene", &model_vocabulary, model_params,
			  &simple_errors, &s->profile))
		abort();
	s->sim = simple_sim(&(struct sim_opts){
		.vocabulary = &model_vocabulary, .profile = s->profile, .reference = reference});
	if (sched_create(s->sim, &(struct sched_opts){.cpus = cpus}, &s->host))
		abort();
	if (!opts.vcpus)
		opts.vcpus = 2;
	if (!opts.name)
		opts.name = "vm";
	if (smp_vm_create(s->sim, s->host, &opts, &s->vm) || smp_vm_start(s->vm))
		abort();
}

struct guest_thread *smp_scene_thread(struct smp_scene *s, guest_fn fn, void *arg, uint32_t vcpu)
{
	struct guest_thread *g = NULL;

	if (guest_thread_create(s->vm, "thread", fn, arg, vcpu, &g))
		abort();
	return g;
}

int smp_scene_run(struct smp_scene *s, cycles_t until)
{
	int r = sim_run(s->sim, until);

	if (r)
		printf("sim_run: %d: %s\n", r, simple_message);
	CU_ASSERT_EQUAL(sim_check_ledger(s->sim), 0);
	return r;
}

void smp_scene_close(struct smp_scene *s)
{
	simple_end(s->sim);
	smp_vm_destroy(s->vm);
	sched_destroy(s->host);
	profile_free(s->profile);
}
