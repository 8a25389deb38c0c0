// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/kvm/ops_play.h"

#include <linux/kvm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "workloads/kvm/ops_guest.h"
#include "workloads/kvm/tally.h"
#include "workloads/ops_program.h"

#define TIMEOUT_S 60u
#define SEEN_MAX  4096u

struct seen {
	char phase[OPS_PHASE_ROOM];
	int64_t nr_dirty, round;
	unsigned times;
};

struct player {
	const struct kvm_ops_opts *opts;
	struct ops_guest guest;
	bool has_vm;
	struct vm_stats stats;
	int64_t nr_dirty, round;
	uint64_t began; /* TSC, of the phase */
	time_t deadline;
	uint64_t bitmap[(KVM_OPS_MAX_PAGES + 63) / 64];
	struct seen *seen;
	size_t n_seen;
	const struct ops_statement *statement; /* under way */
};

/* ---- phases ---- */

static int may_go_on(void *ctx)
{
	const struct player *p = ctx;
	struct timespec now;

	if (p->opts->interrupted && *p->opts->interrupted)
		return KVMSIM_EINTR;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec > p->deadline)
		return kvmsim_err(p->opts->errors, KVMSIM_EIO, "%s:%u: takes too long: given up",
				  p->opts->program->path, p->statement->line);
	return 0;
}

static unsigned occurrence(struct player *p, const char *phase)
{
	for (size_t i = 0; i < p->n_seen; i++) {
		struct seen *s = &p->seen[i];

		if (!strcmp(s->phase, phase) && s->nr_dirty == p->nr_dirty && s->round == p->round)
			return ++s->times;
	}
	if (p->n_seen == SEEN_MAX)
		return 0;
	struct seen *s = &p->seen[p->n_seen++];

	*s = (struct seen){.nr_dirty = p->nr_dirty, .round = p->round, .times = 1};
	snprintf(s->phase, sizeof(s->phase), "%s", phase);
	return 1;
}

static int phase_begin(struct player *p)
{
	struct kvm_tally none;
	int err = vm_stats_change(&p->stats, &none);

	p->began = machine_tsc();
	return err;
}

static int phase_end(struct player *p, const char *name, const char *result, uint64_t value)
{
	struct kvm_ops_phase phase = {.name = name,
				      .nr_dirty = p->nr_dirty,
				      .round = p->round,
				      .occurrence = occurrence(p, name),
				      .cycles = machine_tsc() - p->began,
				      .result = result,
				      .value = value};
	int64_t change[TALLY_MAX];
	struct kvm_tally t;
	int err = vm_stats_change(&p->stats, &t);

	if (err)
		return err;
	if (!phase.occurrence)
		return kvmsim_err(p->opts->errors, KVMSIM_EINVAL,
				  "a program of more than %u phases", SEEN_MAX);
	for (size_t i = 0; i < t.n; i++)
		change[i] = (int64_t)t.value[i];
	phase.n = t.n;
	phase.stat = t.name;
	phase.gauge = p->stats.gauge;
	phase.change = change;
	phase.after = p->stats.last;
	err = p->opts->phase(p->opts->ctx, &phase);
	return err ? err : may_go_on(p);
}

/* ---- statements ---- */

static int run_vcpu(struct player *p, uint32_t vcpu, const char *name)
{
	int err = phase_begin(p);

	err = err ? err : ops_guest_run(&p->guest, vcpu);
	if (err)
		return err;
	return phase_end(p, name, p->guest.mmio ? "user_mmio_exits" : NULL, p->guest.mmio);
}

static int append(void *ctx, const struct ops_statement *s, const struct ops_values *v)
{
	return ops_guest_append(ctx, (enum mx_op)s->access, s->n_args ? ops_value(s->arg[0], v) : 0,
				s->n_args > 1 ? ops_value(s->arg[1], v) : 0);
}

static int run(struct player *p, const struct ops_statement *s, const struct ops_values *v)
{
	int err;

	ops_guest_list(&p->guest, s->vcpu);
	err = ops_walk_run(p->opts->program, s, v, append, &p->guest);
	err = err ? err : ops_guest_load(&p->guest, s->vcpu);
	return err ? err : run_vcpu(p, s->vcpu, s->phase);
}

static int slot(struct player *p, const struct ops_statement *s, const struct ops_values *v)
{
	int err = phase_begin(p);

	err = err ? err
		  : ops_guest_slot(&p->guest, (uint32_t)ops_value(s->arg[0], v),
				   ops_value(s->arg[1], v), ops_value(s->arg[2], v), s->flags);
	return err ? err : phase_end(p, s->phase, NULL, 0);
}

static int get(struct player *p, const struct ops_statement *s, uint64_t number)
{
	struct kvm_dirty_log log = {.slot = (uint32_t)number, .dirty_bitmap = p->bitmap};
	uint64_t n = 0;
	int err;

	err = phase_begin(p);
	err = err ? err
		  : machine_ioctl(p->guest.m, p->guest.m->vm, KVM_GET_DIRTY_LOG, &log,
				  "KVM_GET_DIRTY_LOG");
	for (uint64_t i = 0; !err && i < (p->guest.npages[number] + 63) / 64; i++)
		n += (uint64_t)__builtin_popcountll(p->bitmap[i]);
	return err ? err : phase_end(p, s->phase, "ndirty", n);
}

static int limit(struct player *p, const struct ops_statement *s, uint64_t pages)
{
	int err = phase_begin(p);

	err = err ? err
		  : machine_ioctl(p->guest.m, p->guest.m->vm, KVM_SET_NR_MMU_PAGES, (void *)pages,
				  "KVM_SET_NR_MMU_PAGES");
	return err ? err : phase_end(p, s->phase, NULL, 0);
}

static int store(struct player *p, const struct ops_statement *s, const struct ops_values *v)
{
	uint64_t bytes = s->what == OPS_COPY ? PAGE_BYTES : 8, second = ops_value(s->arg[1], v);
	uint8_t *to = ops_guest_low(&p->guest, ops_value(s->arg[0], v), bytes);
	const uint8_t *from = s->what == OPS_COPY ? ops_guest_low(&p->guest, second, bytes)
						  : (const uint8_t *)&second;

	memmove(to, from, bytes);
	return 0;
}

static void end_vm(struct player *p)
{
	if (!p->has_vm)
		return;
	vm_stats_close(&p->stats);
	ops_guest_close(&p->guest);
	p->has_vm = false;
}

static int new_vm(struct player *p, const struct ops_statement *s)
{
	int err;

	end_vm(p);
	memset(&p->stats, 0, sizeof(p->stats));
	p->has_vm = true;
	p->nr_dirty = p->round = -1;
	err = ops_guest_open(&p->guest, p->opts->slot_pages, p->opts->guest_2m,
			     s->logged ? KVM_MEM_LOG_DIRTY_PAGES : 0, s->vcpus, p->opts->errors);
	p->stats.gauges = true;
	return err ? err : vm_stats_open(&p->stats, p->guest.m);
}

static int execute(void *ctx, const struct ops_statement *s, const struct ops_values *v)
{
	struct player *p = ctx;
	uint64_t first = s->n_args ? ops_value(s->arg[0], v) : 0;
	int err;

	p->statement = s;
	switch (s->what) {
	case OPS_VM:
		return new_vm(p, s);
	case OPS_SETUP:
		err = ops_guest_load_setup(&p->guest);
		return err ? err : run_vcpu(p, 0, "setup");
	case OPS_RUN:
		return run(p, s, v);
	case OPS_SLOT:
		return slot(p, s, v);
	case OPS_LIMIT:
		return limit(p, s, first);
	case OPS_GET:
		return get(p, s, first);
	case OPS_SET:
	case OPS_COPY:
		return store(p, s, v);
	case OPS_ROUND:
		p->round = s->n_args ? (int64_t)first : -1;
		return 0;
	case OPS_NUMBER:
		p->nr_dirty = s->n_args ? (int64_t)first : -1;
		return 0;
	default:
		return 0; /* loops and accesses are ops_walk()'s */
	}
}

/* ---- all ---- */

static void nothing(int sig)
{
	(void)sig; /* that it came takes the thread out of KVM_RUN */
}

static int play(struct player *p)
{
	const struct itimerval each = {{.tv_sec = 1}, {.tv_sec = 1}}, none = {0};
	struct sigaction sa = {.sa_handler = nothing}, before;
	struct timespec now;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &now);
	p->deadline = now.tv_sec + (p->opts->timeout_s ? p->opts->timeout_s : TIMEOUT_S);
	p->guest.may_go_on = may_go_on;
	p->guest.ctx = p;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGALRM, &sa, &before);
	setitimer(ITIMER_REAL, &each, NULL);
	err = ops_walk(p->opts->program, p->opts->slot_pages, execute, p);
	end_vm(p);
	setitimer(ITIMER_REAL, &none, NULL);
	sigaction(SIGALRM, &before, NULL);
	return err;
}

int kvm_ops_play(const struct kvm_ops_opts *opts)
{
	struct player *p = calloc(1, sizeof(*p));
	char error[256];
	int err;

	if (!opts->slot_pages || opts->slot_pages > KVM_OPS_MAX_PAGES) {
		free(p);
		return kvmsim_err(opts->errors, KVMSIM_EINVAL,
				  "%llu pages of slot 1: expected 1 to %u",
				  (unsigned long long)opts->slot_pages, KVM_OPS_MAX_PAGES);
	}
	if (ops_check(opts->program, opts->slot_pages, true, error, sizeof(error))) {
		free(p);
		return kvmsim_err(opts->errors, KVMSIM_EPARSE, "%s", error);
	}
	if (p)
		p->seen = calloc(SEEN_MAX, sizeof(*p->seen));
	if (!p || !p->seen) {
		free(p);
		return KVMSIM_ENOMEM;
	}
	p->opts = opts;
	err = play(p);
	free(p->seen);
	free(p);
	return err;
}
