// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/lock_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/host/ipi.h"
#include "model/params.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

static struct profile *prices(const struct lock_scene_opts *o)
{
	struct profile *p;
	char text[512];

	snprintf(text, sizeof(text),
		 "[machine]\nunit = cycles\nhz = 1000000000\n[price]\ninsn = 1\npause = 1\n"
		 "lock = %d\nvm_exit = %d\nvm_entry = %d\nhypercall = %d\nwake_up = %d\n[param]\n"
		 "ipi_latency = 100\nline_transfer = %d\n",
		 o->lock_price, o->exit, o->entry, o->hypercall, o->wake, o->transfer);
	if (profile_parse(text, strlen(text), "scene", &model_vocabulary, model_params,
			  &simple_errors, &p))
		abort();
	return p;
}

void lock_scene_open(struct lock_scene *s, const struct lock_scene_opts *o)
{
	static const struct smp_lock_class class = {"lock", "test"};
	struct smp_opts vm = {.name = "vm",
			      .vcpus = o->vcpus ? o->vcpus : 2,
			      .pin = o->pin,
			      .halt_poll_ns = o->halt_poll_ns,
			      .guest_hz = o->guest_hz,
			      .kick_yields = o->kick_yields,
			      .steal_time = o->steal_time};
	uint32_t cpus = o->cpus ? o->cpus : vm.vcpus, pin[512];
	const struct policy_desc *d;

	*s = (struct lock_scene){.profile = prices(o)};
	s->sim = simple_sim(&(struct sim_opts){.vocabulary = &model_vocabulary,
					       .profile = s->profile,
					       .seed = o->seed,
					       .reference = o->reference});
	for (uint32_t i = 0; i < vm.vcpus; i++)
		pin[i] = i % cpus;
	if (o->pinned)
		vm.pin = pin;
	if (policy_parse(FAMILY_LOCK, o->lock, &simple_errors, &d, &vm.lock_params))
		abort();
	vm.lock = lock_policy_find(d->name, strlen(d->name));
	if (o->ple) {
		if (policy_parse(FAMILY_PLE, o->ple, &simple_errors, &d, &vm.ple_params))
			abort();
		vm.ple = ple_policy_find(d->name, strlen(d->name));
	}
	if (sched_create(s->sim, &(struct sched_opts){.cpus = cpus, .hz = (uint32_t)o->host_hz},
			 &s->host) ||
	    smp_vm_create(s->sim, s->host, &vm, &s->vm))
		abort();
	for (int i = 0; i < LOCK_SCENE_LOCKS; i++)
		if (smp_lock_init(s->vm, &s->lock[i], &class))
			abort();
}

struct guest_thread *lock_scene_thread(struct lock_scene *s, guest_fn fn, void *arg, uint32_t vcpu)
{
	struct guest_thread *g = NULL;

	if (guest_thread_create(s->vm, "thread", fn, arg, vcpu, &g))
		abort();
	return g;
}

int lock_scene_run(struct lock_scene *s)
{
	int r = smp_vm_start(s->vm);

	if (!r)
		r = sim_run(s->sim, CYCLES_MAX - 1);
	if (r && r != KVMSIM_ECHECK)
		printf("sim_run: %d: %s\n", r, simple_message);
	CU_ASSERT_EQUAL(sim_check_ledger(s->sim), 0);
	return r;
}

void lock_scene_close(struct lock_scene *s)
{
	simple_end(s->sim);
	for (int i = 0; i < LOCK_SCENE_LOCKS; i++)
		smp_lock_free(&s->lock[i]);
	smp_vm_destroy(s->vm);
	sched_destroy(s->host);
	profile_free(s->profile);
}

cycles_t lock_scene_now(struct guest_thread *g)
{
	return task_now(smp_task(guest_vcpu(g)));
}

int lock_scene_at(struct guest_thread *g, cycles_t when)
{
	cycles_t now = lock_scene_now(g);

	return when > now ? guest_work(g, when - now) : 0;
}
