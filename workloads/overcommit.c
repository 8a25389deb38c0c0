// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/overcommit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/sim/ledger.h"
#include "model/sim/sim.h"

struct scene {
	const struct overcommit_opts *o;
	struct sim *sim;
	struct sched *host;
	uint32_t n_vms;
	struct smp_vm *vm[OVERCOMMIT_MAX_VMS];
	struct smp_load load[OVERCOMMIT_MAX_VMS];
	uint32_t *pin;
	cycles_t began, ends; /* of the measured time */
	struct overcommit_result *out;
};

/* ---- making it ---- */

static int refuse(const struct overcommit_opts *o, const char *what, uint64_t n, uint64_t most)
{
	return kvmsim_err(o->errors, KVMSIM_EINVAL,
			  "%" PRIu64 " %s: from 1 to %" PRIu64 " were expected", n, what, most);
}

static int check(const struct overcommit_opts *o)
{
	if (!o->pcpus || o->pcpus > 512)
		return refuse(o, "pCPUs", o->pcpus, 512);
	if (!o->vcpus || o->vcpus > 512)
		return refuse(o, "vCPUs", o->vcpus, 512);
	if (o->vms > OVERCOMMIT_MAX_VMS)
		return refuse(o, "VMs", o->vms, OVERCOMMIT_MAX_VMS);
	if (!o->measured_ns)
		return kvmsim_err(o->errors, KVMSIM_EINVAL, "no time to measure");
	if (!o->locks && (o->workload->needs_locks || (o->beside && o->beside->needs_locks)))
		return kvmsim_err(o->errors, KVMSIM_EINVAL,
				  "workload %s takes the locks of a recording, and has none",
				  o->workload->name);
	return 0;
}

static int make_host(struct scene *s)
{
	const struct overcommit_opts *o = s->o;
	const struct sim_opts sim = {.vocabulary = &model_vocabulary,
				     .profile = o->profile,
				     .seed = o->seed,
				     .replicate = o->replicate,
				     .reference = o->reference,
				     .errors = o->errors};
	const struct sched_opts host = {
		.cpus = o->pcpus, .cpus_per_llc = o->pcpus_per_llc, .hz = o->host_hz};
	int err = sim_create(&sim, &s->sim);

	if (!err && o->check)
		sim_set_check(s->sim);
	return err ? err : sched_create(s->sim, &host, &s->host);
}

static int parse(const struct overcommit_opts *o, struct smp_opts *opts)
{
	const struct policy_desc *d;
	int err = policy_parse(FAMILY_LOCK, o->lock, o->errors, &d, &opts->lock_params);

	if (err)
		return err;
	opts->lock = lock_policy_find(d->name, strlen(d->name));
	if (!o->ple)
		return 0;
	err = policy_parse(FAMILY_PLE, o->ple, o->errors, &d, &opts->ple_params);
	if (!err)
		opts->ple = ple_policy_find(d->name, strlen(d->name));
	return err;
}

static int make_vm(struct scene *s, const struct smp_opts *alike, uint32_t i)
{
	const struct overcommit_opts *o = s->o;
	struct smp_opts opts = *alike;
	struct smp_load *l = &s->load[i];
	char name[16];
	int err;

	snprintf(name, sizeof(name), "vm%" PRIu32, i);
	opts.name = name;
	err = smp_vm_create(s->sim, s->host, &opts, &s->vm[i]);
	if (err)
		return err;
	s->n_vms++;
	l->workload = i && o->beside ? o->beside : o->workload;
	memcpy(l->param, i && o->beside ? o->beside_param : o->param, sizeof(l->param));
	l->vm = s->vm[i];
	l->locks = o->locks;
	l->index = i;
	l->errors = o->errors;
	err = smp_load_start(l);
	return err ? err : smp_vm_start(s->vm[i]);
}

static int make_vms(struct scene *s)
{
	const struct overcommit_opts *o = s->o;
	struct smp_opts opts = {.vcpus = o->vcpus,
				.halt_poll_ns = o->halt_poll_ns,
				.guest_hz = o->guest_hz,
				.apicv = o->apicv,
				.pv_ipi = o->pv_ipi,
				.kick_yields = o->kick_yields,
				.steal_time = o->steal_time};
	uint32_t n = o->vms ? o->vms : 1;
	int err = parse(o, &opts);

	if (!err && o->pin) {
		s->pin = calloc(o->vcpus, sizeof(*s->pin));
		if (!s->pin)
			return KVMSIM_ENOMEM;
		for (uint32_t i = 0; i < o->vcpus; i++)
			s->pin[i] = i % o->pcpus;
		opts.pin = s->pin;
	}
	for (uint32_t i = 0; !err && i < n; i++)
		err = make_vm(s, &opts, i);
	return err;
}

static void free_scene(struct scene *s)
{
	sim_destroy(s->sim);
	for (uint32_t i = 0; i < s->n_vms; i++) {
		smp_load_free(&s->load[i]);
		smp_vm_destroy(s->vm[i]);
	}
	sched_destroy(s->host);
	free(s->pin);
}

/* ---- measuring ---- */

/* Statistics that are all counters: the sum of @n more of them, or of those taken away. */
static void add(void *to, const void *from, size_t bytes, bool minus)
{
	uint64_t *t = to;
	const uint64_t *f = from;

	for (size_t i = 0; i < bytes / sizeof(*t); i++)
		t[i] = minus ? t[i] - f[i] : t[i] + f[i];
}

static void entry(void *ctx, uint32_t task, uint16_t activity, bool is_wait, uint16_t id,
		  struct ledger_entry e)
{
	struct overcommit_result *r = ctx;

	(void)task;
	r->activities[activity] += e.cycles;
	if (is_wait) {
		r->waits[id] += e.cycles;
		return;
	}
	r->counts[id] += e.n;
	r->count_cycles[id] += e.cycles;
}

/* Everything but the locks' classes, up to now. */
static void look(const struct scene *s, struct overcommit_result *r)
{
	*r = (struct overcommit_result){.n_vms = s->n_vms};
	for (uint32_t i = 0; i < s->o->pcpus; i++)
		r->idle += sched_idle_cycles(s->host, i);
	for (uint32_t i = 0; i < s->n_vms; i++) {
		r->vm[i].operations = s->load[i].operations;
		for (uint32_t k = 0; k < s->o->vcpus; k++) {
			struct smp_vcpu_stats v = smp_vcpu_stats(smp_vcpu(s->vm[i], k));

			add(&r->vm[i].sum, &v, sizeof(v), false);
		}
	}
	ledger_for_each(sim_ledger(s->sim), entry, r);
}

static void difference(struct overcommit_result *r, const struct overcommit_result *before)
{
	r->idle -= before->idle;
	for (uint32_t i = 0; i < r->n_vms; i++) {
		r->vm[i].operations -= before->vm[i].operations;
		add(&r->vm[i].sum, &before->vm[i].sum, sizeof(r->vm[i].sum), true);
	}
	add(r->counts, before->counts, sizeof(r->counts), true);
	add(r->count_cycles, before->count_cycles, sizeof(r->count_cycles), true);
	add(r->waits, before->waits, sizeof(r->waits), true);
	add(r->activities, before->activities, sizeof(r->activities), true);
}

/* ---- locks by class ---- */

static void forget_locks(struct scene *s)
{
	for (uint32_t i = 0; i < s->n_vms; i++)
		for (size_t k = 0; k < s->load[i].n_locks; k++)
			s->load[i].lock[k]->stats = (struct smp_lock_stats){0};
}

static void sum_stats(struct smp_lock_stats *to, const struct smp_lock_stats *s)
{
	to->acquired += s->acquired;
	to->contended += s->contended;
	to->slowpath += s->slowpath;
	to->kicks += s->kicks;
	to->wait += s->wait;
	to->hold += s->hold;
	if (s->longest_wait > to->longest_wait)
		to->longest_wait = s->longest_wait;
	if (s->longest_hold > to->longest_hold)
		to->longest_hold = s->longest_hold;
}

/* The class of all VMs' locks of that name and caller; a new one if there is none. */
static struct overcommit_class *class_of(struct overcommit_class **all, size_t *n, size_t *have,
					 const struct smp_lock_class *c)
{
	struct overcommit_class *grown = *all;

	for (size_t i = *n; i-- > 0;)
		if (!strcmp((*all)[i].name, c->name) && !strcmp((*all)[i].caller, c->caller))
			return &(*all)[i];
	if (*n == *have) {
		*have = *have ? 2 * *have : 64;
		grown = realloc(*all, *have * sizeof(*grown));
		if (!grown)
			return NULL;
		*all = grown;
	}
	grown[*n] = (struct overcommit_class){0};
	strncpy(grown[*n].name, c->name, sizeof(grown->name) - 1);
	strncpy(grown[*n].caller, c->caller, sizeof(grown->caller) - 1);
	return &grown[(*n)++];
}

static int by_wait(const void *a, const void *b)
{
	const struct overcommit_class *x = a, *y = b;
	int order;

	if (x->stats.wait != y->stats.wait)
		return x->stats.wait < y->stats.wait ? 1 : -1;
	if (x->stats.acquired != y->stats.acquired)
		return x->stats.acquired < y->stats.acquired ? 1 : -1;
	order = strcmp(x->caller, y->caller);
	return order ? order : strcmp(x->name, y->name);
}

static int sum_locks(const struct scene *s, struct overcommit_result *r)
{
	struct overcommit_class *all = NULL, *c = NULL;
	const struct smp_lock_class *last = NULL;
	size_t n = 0, have = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < s->n_vms; i++)
		for (size_t k = 0; !err && k < s->load[i].n_locks; k++) {
			const struct smp_lock *l = s->load[i].lock[k];

			if (!l->stats.acquired && !l->stats.contended)
				continue;
			if (l->class != last)
				c = class_of(&all, &n, &have, l->class);
			last = l->class;
			if (c)
				sum_stats(&c->stats, &l->stats);
			else
				err = KVMSIM_ENOMEM;
		}
	for (uint32_t i = 0; !err && i < s->n_vms; i++)
		for (size_t k = 0; !err && k < s->load[i].n_mutexes; k++) {
			const struct smp_load_mutex *mutex = &s->load[i].mutex[k];
			const struct smp_lock_class class = {mutex->name, "mutex_lock"};
			struct smp_lock_stats m = guest_mutex_stats(mutex->m);

			c = class_of(&all, &n, &have, &class);
			if (c) {
				c->sleeps = 1;
				sum_stats(&c->stats, &m);
			} else {
				err = KVMSIM_ENOMEM;
			}
		}
	if (n)
		qsort(all, n, sizeof(*all), by_wait);
	r->n_classes = n < OVERCOMMIT_MAX_CLASSES ? (uint32_t)n : OVERCOMMIT_MAX_CLASSES;
	r->classes_left_out = n - r->n_classes;
	if (n)
		memcpy(r->class, all, r->n_classes * sizeof(*all));
	free(all);
	return err;
}

/* ---- running ---- */

#define SLICES 64

/* Up to @until, in slices, so that it can be interrupted. */
static int advance(struct scene *s, cycles_t from, cycles_t until)
{
	int err = 0;

	for (unsigned i = 1; !err && i <= SLICES; i++) {
		err = sim_run(s->sim, from + (until - from) / SLICES * i +
					      (until - from) % SLICES * i / SLICES);
		if (!err && s->o->interrupted && *s->o->interrupted)
			err = KVMSIM_EINTR;
	}
	return err;
}

static int measure(struct scene *s)
{
	struct overcommit_result *before = malloc(sizeof(*before));
	int err;

	if (!before)
		return KVMSIM_ENOMEM;
	s->began = sched_cycles(s->host, s->o->warm_up_ns);
	s->ends = s->began + sched_cycles(s->host, s->o->measured_ns);
	err = advance(s, 0, s->began);
	if (!err) {
		look(s, before);
		forget_locks(s);
		err = advance(s, s->began, s->ends);
	}
	if (!err) {
		look(s, s->out);
		difference(s->out, before);
		s->out->measured = s->ends - s->began;
		s->out->events = sim_events(s->sim);
		s->out->switches = sim_switches(s->sim);
		err = sum_locks(s, s->out);
	}
	free(before);
	return err ? err : sim_check_ledger(s->sim);
}

int overcommit_run(const struct overcommit_opts *opts, struct overcommit_result *out)
{
	struct scene *s = calloc(1, sizeof(*s));
	int err = check(opts);

	memset(out, 0, sizeof(*out)); /* padding, too: results are sent and compared */
	if (!s)
		return KVMSIM_ENOMEM;
	s->o = opts;
	s->out = out;
	err = err ? err : make_host(s);
	err = err ? err : make_vms(s);
	err = err ? err : measure(s);
	if (err == KVMSIM_ENOMEM)
		kvmsim_err(opts->errors, err, "out of memory");
	free_scene(s);
	free(s);
	return err;
}
