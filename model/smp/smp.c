// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/host/ipi.h"
#include "model/sim/profile.h"
#include "model/smp/smp_priv.h"

static int check_opts(struct sim *sim, struct sched *host, const struct smp_opts *o)
{
	const struct kvmsim_errsink *errors = sim_errors(sim);

	if (!o->vcpus || o->vcpus > 512)
		return kvmsim_err(errors, KVMSIM_EINVAL,
				  "VM %s with %u vCPUs: 1 to 512 are possible",
				  o->name ? o->name : "", o->vcpus);
	for (uint32_t i = 0; o->pin && i < o->vcpus; i++) {
		if (o->pin[i] >= sched_cpus(host))
			return kvmsim_err(errors, KVMSIM_EINVAL,
					  "vCPU %u is pinned to CPU %u, but the host has %u", i,
					  o->pin[i], sched_cpus(host));
	}
	if (o->guest_hz > 100000)
		return kvmsim_err(errors, KVMSIM_EINVAL, "%u ticks a second are too many",
				  o->guest_hz);
	return 0;
}

static void init_vcpu(struct smp_vm *vm, uint32_t i)
{
	struct smp_vcpu *v = &vm->vcpu[i];

	v->vm = vm;
	v->id = i;
	v->irqs_on = true;
	v->cache_cpu = UINT32_MAX;
	v->kick_at = CYCLES_MAX;
	v->timer_at = CYCLES_MAX;
	v->next_tick = CYCLES_MAX;
	TAILQ_INIT(&v->queue);
	TAILQ_INIT(&v->timers);
	LIST_INIT(&v->watches);
}

static int create_thread(struct smp_vm *vm, struct smp_vcpu *v)
{
	char name[64];
	struct sched_thread_opts o = {
		.name = name,
		.group = vm->group,
		.pin = vm->pin ? (int32_t)vm->pin[v->id] : -1,
		.sched_in = vcpu_sched_in,
		.sched_out = vcpu_sched_out,
		.private = v,
	};

	snprintf(name, sizeof(name), "%.40s/vcpu%u", vm->opts.name, v->id);
	return sched_thread_create(vm->host, &o, &v->th);
}

static int make(struct smp_vm *vm)
{
	const struct smp_opts *o = &vm->opts;
	int r;

	vm->opts.name = strdup(o->name ? o->name : "vm");
	if (!vm->opts.name)
		return KVMSIM_ENOMEM;
	if (o->pin) {
		vm->pin = malloc(o->vcpus * sizeof(*vm->pin));
		if (!vm->pin)
			return KVMSIM_ENOMEM;
		memcpy(vm->pin, o->pin, o->vcpus * sizeof(*vm->pin));
		vm->opts.pin = vm->pin;
	}
	refill_init(vm);
	vm->ipi = profile_param(sim_profile(vm->sim), "ipi_latency");
	vm_init_lines(vm);
	vm->tick = o->guest_hz ? sched_cycles(vm->host, 1000000000u / o->guest_hz) : 0;
	if (o->guest_hz && !vm->tick)
		vm->tick = 1;
	r = sched_group_create(vm->host, vm->opts.name, o->shares ? o->shares : 1024, &vm->group);
	for (uint32_t i = 0; !r && i < o->vcpus; i++)
		r = create_thread(vm, &vm->vcpu[i]);
	if (!r)
		r = guest_sched_init(vm);
	if (!r && o->lock && o->lock->vm_init) {
		r = o->lock->vm_init(vm);
		vm->locks_made = !r;
	}
	return r;
}

int smp_vm_create(struct sim *sim, struct sched *host, const struct smp_opts *opts,
		  struct smp_vm **out)
{
	struct smp_vm *vm;
	int r = check_opts(sim, host, opts);

	*out = NULL;
	if (r)
		return r;
	vm = calloc(1, sizeof(*vm) + opts->vcpus * sizeof(struct smp_vcpu));
	if (!vm)
		return KVMSIM_ENOMEM;
	vm->sim = sim;
	vm->host = host;
	vm->opts = *opts;
	vm->opts.name = NULL;
	vm->opts.pin = NULL;
	TAILQ_INIT(&vm->threads);
	for (uint32_t i = 0; i < opts->vcpus; i++)
		init_vcpu(vm, i);
	vm->opts.name = opts->name;
	vm->opts.pin = opts->pin;
	r = make(vm);
	if (r) {
		if (vm->opts.name == opts->name)
			vm->opts.name = NULL;
		smp_vm_destroy(vm);
		return r;
	}
	*out = vm;
	return 0;
}

void smp_vm_destroy(struct smp_vm *vm)
{
	if (!vm)
		return;
	if (vm->locks_made && vm->opts.lock->vm_free)
		vm->opts.lock->vm_free(vm);
	guest_sched_free(vm);
	for (uint32_t i = 0; i < vm->opts.vcpus; i++)
		free(vm->vcpu[i].csd);
	free(vm->pin);
	free((char *)vm->opts.name);
	free(vm);
}

int smp_vm_start(struct smp_vm *vm)
{
	int r = 0;

	if (vm->started)
		return KVMSIM_EINVAL;
	vm->started = true;
	for (uint32_t i = 0; !r && i < vm->opts.vcpus; i++)
		r = guest_idle_create(&vm->vcpu[i]);
	return r;
}

struct sim *smp_sim(const struct smp_vm *vm)
{
	return vm->sim;
}

const struct smp_opts *smp_vm_opts(const struct smp_vm *vm)
{
	return &vm->opts;
}

struct smp_vcpu *smp_vcpu(const struct smp_vm *vm, uint32_t i)
{
	return i < vm->opts.vcpus ? (struct smp_vcpu *)&vm->vcpu[i] : NULL;
}

struct smp_vm *smp_vm_of(const struct smp_vcpu *v)
{
	return v->vm;
}

uint32_t smp_vcpu_id(const struct smp_vcpu *v)
{
	return v->id;
}

struct sched_thread *smp_thread(const struct smp_vcpu *v)
{
	return v->th;
}

struct task *smp_task(const struct smp_vcpu *v)
{
	return sched_task(v->th);
}

void **smp_vm_lock_private(struct smp_vm *vm)
{
	return &vm->lock_private;
}

void **smp_vcpu_lock_private(struct smp_vcpu *v)
{
	return &v->lock_private;
}

void **smp_vcpu_ple_private(struct smp_vcpu *v)
{
	return &v->ple_private;
}

bool smp_vcpu_is_preempted(const struct smp_vcpu *v)
{
	return v->reported;
}

bool smp_vcpu_was_preempted(const struct smp_vcpu *v)
{
	return v->preempted;
}

bool smp_vcpu_blocking(const struct smp_vcpu *v)
{
	return v->blocking;
}

bool smp_vcpu_has_events(const struct smp_vcpu *v)
{
	return v->irr || v->pv_unhalted;
}

struct smp_vcpu_stats *smp_vcpu_count(struct smp_vcpu *v)
{
	return &v->stats;
}

struct smp_vcpu_stats smp_vcpu_stats(const struct smp_vcpu *v)
{
	return v->stats;
}
