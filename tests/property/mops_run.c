// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/counts.h"
#include "model/mmu/mmu.h"
#include "model/params.h"
#include "model/sim/ledger.h"
#include "model/sim/profile.h"
#include "tests/property/mops_machine.h"

/* What an access may rightly end with; the model says no more than a message. */
static bool is_guest_fault(const char *msg)
{
	return strstr(msg, "page fault of the guest's own");
}

static bool is_efault(const char *msg)
{
	return strstr(msg, "mapped the memory read-only");
}

static void complain(void *ctx, enum kvmsim_error err, const char *msg)
{
	struct machine *x = ctx;

	snprintf(x->message, sizeof(x->message), "%s", msg);
	if (!x->ended && !x->r->why[0] && !is_guest_fault(msg) && !is_efault(msg))
		snprintf(x->r->why, sizeof(x->r->why), "%s (%s)", msg, kvmsim_strerror(err));
}

int mops_wrong(struct machine *x, const struct mop *op, const char *why)
{
	struct oracle_targets t;
	size_t used;

	if (x->r->why[0])
		return KVMSIM_ECHECK;
	used = (size_t)snprintf(x->r->why, sizeof(x->r->why), "op %zu: %s", (size_t)(op - x->m->op),
				why);
	if (op->kind >= MOP_FIRST_VMM)
		return KVMSIM_ECHECK;
	oracle_targets_of(&x->oracle, op->who, op->a, &t);
	for (unsigned i = 0; i < t.n && used < sizeof(x->r->why); i++)
		used += (size_t)snprintf(x->r->why + used, sizeof(x->r->why) - used, "%s%#llx",
					 i ? ", " : "; it may lead to ",
					 (unsigned long long)t.gpa[i]);
	if (t.fault && used < sizeof(x->r->why))
		snprintf(x->r->why + used, sizeof(x->r->why) - used, "; it may be denied");
	return KVMSIM_ECHECK;
}

/* ---- vCPUs ---- */

/* All stand still, for who looks at them from outside. */
static int stand_still(struct task *t, struct machine_vcpu *v)
{
	int err = vcpu_interrupt(v->vcpu);

	err = err ? err : sync(t);
	v->stopped = true;
	v->machine->n_stopped++;
	task_wake(v->machine->vmm, task_now(t));
	while (!err && v->machine->stop)
		err = task_block(t, WAIT_idle);
	v->stopped = false;
	v->machine->n_stopped--;
	return err;
}

/*
 * The host's own interrupts, and what it does then: at random times each vCPU is away for a while.
 * Without them two vCPUs, one that loads CR3 and one that stores to a table below it, may keep each
 * other from getting done for ever (tests/unit/test_livelock.c): that takes a rhythm which no host
 * keeps, and among enough machines there is one that has it.
 */
#define INTERRUPT_EVERY 100000 /* cycles on the average: some hundred restarts */
#define AWAY_AT_MOST	50000  /* more than any sync of a table takes */

static cycles_t next_interrupt(struct machine_vcpu *v)
{
	return task_now(v->task) + 1 + rng_below(&v->host, 2 * INTERRUPT_EVERY);
}

/* 1: there was one. */
static int host_interrupts(struct machine_vcpu *v)
{
	cycles_t until;
	int r;

	if (task_now(v->task) < v->interrupt_at)
		return 0;
	until = task_now(v->task) + rng_below(&v->host, AWAY_AT_MOST);
	r = vcpu_interrupt(v->vcpu);
	while (!r && task_now(v->task) < until)
		r = task_block_until(v->task, WAIT_idle, until) < 0 ? KVMSIM_ECANCELED : 0;
	v->interrupt_at = next_interrupt(v);
	v->machine->r->interrupts++;
	return r ? r : 1;
}

/* What not even that ends is a livelock. The model's own bound begins anew with each interrupt. */
#define INTERRUPTS_AT_MOST 100

static int try_instruction(struct machine_vcpu *v, const struct mop *op, uint64_t *value)
{
	switch (op->kind) {
	case MOP_read:
		return vcpu_read(v->vcpu, op->a, op->len, value);
	case MOP_write:
		return vcpu_write(v->vcpu, op->a, op->len, op->b);
	case MOP_xchg:
		return vcpu_xchg(v->vcpu, op->a, op->len, op->b);
	case MOP_inc:
		return vcpu_rmw(v->vcpu, op->a, op->len, op->b);
	default:
		return vcpu_fetch(v->vcpu, op->a);
	}
}

static int instruction(struct machine_vcpu *v, const struct mop *op, uint64_t *value)
{
	unsigned interrupts = 0;
	uint64_t restarts = 0;
	int r;

	while ((r = try_instruction(v, op, value)) == VCPU_RESTART) {
		restarts++;
		r = host_interrupts(v);
		if (r < 0)
			return r;
		interrupts += (unsigned)r;
		if (interrupts > INTERRUPTS_AT_MOST)
			return mops_wrong(v->machine, op, "a livelock that interrupts don't end");
	}
	if (restarts > v->machine->r->restarts)
		v->machine->r->restarts = restarts;
	return r;
}

/* An error that is the guest's or the VMM's own doing, and rightly so. */
static bool expected(struct machine *x, unsigned id, int r, const char **why)
{
	if (r != KVMSIM_EINVAL)
		return false;
	if (is_guest_fault(x->message)) {
		x->r->guest_faults++;
		*why = oracle_faulted(&x->oracle, id);
		return true;
	}
	if (!is_efault(x->message))
		return false;
	*why = oracle_readonly(&x->oracle, id);
	return true;
}

static int access_memory(struct machine_vcpu *v, const struct mop *op)
{
	struct machine *x = v->machine;
	bool stores = op->kind == MOP_write || op->kind == MOP_xchg || op->kind == MOP_inc;
	uint64_t value = 0;
	const char *why = NULL;
	int r;

	oracle_begin(&x->oracle, v->id, op);
	r = instruction(v, op, &value);
	if (r == VCPU_USERSPACE) {
		x->r->mmio++;
		if (vcpu_exit_reason(v->vcpu) != KVM_EXIT_MMIO)
			return mops_wrong(x, op, "an exit to userspace that is none for MMIO");
		do /* a store may follow the load */
			r = vcpu_complete_mmio(v->vcpu);
		while (r == VCPU_USERSPACE);
		if (r < 0 && !expected(x, v->id, r, &why))
			return r;
		if (!r)
			why = oracle_device(&x->oracle, v->id, x->kvm->mmio_refreshed);
	} else if (r < 0 && !expected(x, v->id, r, &why)) {
		if (!x->r->why[0])
			snprintf(x->r->why, sizeof(x->r->why), "%s (%s)", x->message,
				 kvmsim_strerror(r));
		return r;
	} else if (!r && stores) {
		why = oracle_write_done(&x->oracle, v->id);
	} else if (!r) {
		x->r->reads += op->kind == MOP_read;
		why = oracle_read_done(&x->oracle, v->id, op->kind == MOP_read, value);
	}
	return why ? mops_wrong(x, op, why) : 0;
}

static int load_cr3(struct machine_vcpu *v, const struct mop *op)
{
	struct oracle *o = &v->machine->oracle;
	uint64_t begin = oracle_tick(o);
	int r = vcpu_mov_cr3(v->vcpu, mops_cr3(v->machine->m, op->a));

	o->vcpu[v->id].root = (unsigned)op->a;
	oracle_flushed(o, v->id, begin);
	return r;
}

/* The user cannot change registers: then it is the VMM who does. */
static int change_mode(struct machine_vcpu *v, const struct mop *op)
{
	struct oracle_vcpu *c = &v->machine->oracle.vcpu[v->id];
	struct cpu_regs regs = vcpu_regs(v->vcpu);
	bool nxe;
	int r;

	regs.cr0 = (regs.cr0 & ~CR0_WP) | (op->a & MOPS_WP ? CR0_WP : 0);
	regs.cr4 = (regs.cr4 & ~(CR4_SMAP | CR4_SMEP)) | (op->a & MOPS_SMAP ? CR4_SMAP : 0) |
		   (op->a & MOPS_SMEP ? CR4_SMEP : 0);
	regs.efer = (regs.efer & ~EFER_NXE) | (op->a & MOPS_NXE ? EFER_NXE : 0);
	regs.cpl = op->a & MOPS_USER ? 3 : 0;
	if (op->b || ((c->mode ^ op->a) & MOPS_USER) || (c->mode & MOPS_USER)) {
		r = vcpu_change_sregs(v->vcpu, &regs);
	} else {
		r = vcpu_mov_cr0(v->vcpu, regs.cr0);
		r = r ? r : vcpu_mov_cr4(v->vcpu, regs.cr4);
		r = r ? r : vcpu_wrmsr_efer(v->vcpu, regs.efer);
	}
	nxe = (c->mode ^ op->a) & MOPS_NXE;
	c->mode = (unsigned)op->a;
	return !r && nxe ? load_cr3(v, &(struct mop){.a = c->root}) : r;
}

static int invalidate(struct machine_vcpu *v, const struct mop *op)
{
	struct oracle *o = &v->machine->oracle;
	uint64_t begin = oracle_tick(o);
	int r = vcpu_invlpg(v->vcpu, op->a);

	oracle_page_flushed(o, v->id, op->a, begin);
	return r;
}

static int guest_op(struct machine_vcpu *v, const struct mop *op)
{
	bool pages = v->machine->m->mode != GUEST_FLAT32;
	int r = host_interrupts(v);

	r = r < 0 ? r : vcpu_gap(v->vcpu, op->gap);
	if (r)
		return r;
	switch (op->kind) {
	case MOP_invlpg:
		return pages ? invalidate(v, op) : 0;
	case MOP_cr3:
		return pages ? load_cr3(v, op) : 0;
	case MOP_mode:
		return pages ? change_mode(v, op) : 0;
	case MOP_out:
		r = vcpu_out(v->vcpu, 0x10);
		return r == VCPU_USERSPACE ? 0 : r;
	case MOP_hlt:
		r = vcpu_hlt(v->vcpu);
		return r == VCPU_USERSPACE ? 0 : r;
	default:
		return access_memory(v, op);
	}
}

static int vcpu_thread(struct task *t, void *arg)
{
	struct machine_vcpu *v = arg;
	struct machine *x = v->machine;
	int err = 0;

	vcpu_bind(v->vcpu, t);
	v->interrupt_at = next_interrupt(v);
	if (x->m->mode != GUEST_FLAT32)
		vcpu_set_cr3(v->vcpu, mops_cr3(x->m, v->id % MOPS_ROOTS));
	for (size_t i = 0; i < x->m->n && !err; i++) {
		if (x->m->op[i].who != v->id)
			continue;
		err = guest_op(v, &x->m->op[i]);
		x->r->ops++;
		if (!err && x->stop)
			err = stand_still(t, v);
	}
	err = err ? err : vcpu_interrupt(v->vcpu);
	err = err ? err : sync(t);
	x->oracle.vcpu[v->id].ended = true;
	x->n_ended++;
	if (!err)
		task_wake(x->vmm, task_now(t));
	return err;
}

static void make_tables(struct machine *x)
{
	for (uint64_t gfn = MOPS_TABLES_GFN; gfn < MOPS_TABLES_GFN + MOPS_TABLES; gfn++)
		for (uint64_t at = gfn << 12; at < (gfn + 1) << 12; at += 8) {
			uint64_t word = mops_first_word(x->m, at);

			if (word)
				kvm_write_guest_u64(x->kvm, at, word);
		}
}

static int start(struct task *t, struct machine *x)
{
	int err = mops_set_slots(t, x);

	if (!err && x->m->mode != GUEST_FLAT32)
		make_tables(x);
	for (unsigned i = 0; i < x->m->n_vcpus && !err; i++) {
		struct machine_vcpu *v = &x->vcpu[i];
		const struct task_opts o = {
			.name = "vcpu", .fn = vcpu_thread, .arg = v, .start = task_now(t)};

		v->machine = x;
		v->id = i;
		rng_init(&v->host, x->m->seed, i, "host");
		err = kvm_create_vcpu(x->kvm, &v->vcpu);
		err = err ? err : task_create(x->sim, &o, &v->task);
	}
	return err;
}

static int vmm_thread(struct task *t, void *arg)
{
	struct machine *x = arg;
	const struct mops *m = x->m;
	uint64_t first = 0, lost;
	int err = start(t, x);

	for (size_t i = 0; i < m->n && !err; i++)
		if (m->op[i].who == MOPS_VMM) {
			err = mops_vmm_op(t, x, &m->op[i]);
			x->r->ops++;
		}
	err = err ? err : sync(t);
	while (!err && x->n_ended < m->n_vcpus) {
		err = task_block(t, WAIT_idle);
		err = err ? err : sync(t);
	}
	for (unsigned s = 0; s < MOPS_SLOTS && !err; s++) {
		err = mops_report(t, x, s, true);
		lost = oracle_lost(&x->oracle, s, &first);
		if (err || !lost)
			continue;
		snprintf(x->r->why, sizeof(x->r->why),
			 "%llu pages of slot %u were stored to and never reported; the first is "
			 "%#llx",
			 (unsigned long long)lost, s, (unsigned long long)first);
		err = KVMSIM_ECHECK;
	}
	return err;
}

/* ---- the machine ---- */

/* Of the count's name alone, so that it stays when there are more of them (FNV-1a, 32 bits). */
static uint32_t hash_of(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h;
}

/* Prices with remainders, and a latency that lets vCPUs run ahead. */
static int make_profile(struct machine *x, const struct kvmsim_errsink *errors)
{
	char text[512 + N_COUNTS * 40];
	size_t used = (size_t)snprintf(
		text, sizeof(text),
		"[machine]\nname = machines\nunit = cycles\nhz = 1000000000\nsource = made up\n"
		"[param]\nipi_latency = 300\nl2_bytes = 8192\nllc_bytes = 65536\n"
		"dtlb_entries = 64\n[price]\n");

	for (int c = 0; c < N_COUNTS; c++) {
		const char *name = model_vocabulary.counts[c];
		uint32_t h = hash_of(name);

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s = %u.%02u\n", name,
					 1 + h % 30, h / 30 % 100);
	}
	return profile_parse(text, used, "machines", &model_vocabulary, model_params, errors,
			     &x->profile);
}

static int simulate(struct machine *x, const struct kvmsim_errsink *errors)
{
	const struct mops *m = x->m;
	const struct task_opts to = {.name = "vmm", .fn = vmm_thread, .arg = x};
	const struct sim_opts so = {.vocabulary = &model_vocabulary,
				    .profile = x->profile,
				    .seed = m->seed,
				    .errors = errors};
	int err = sim_create(&so, &x->sim);

	if (!err && m->cache)
		err = cache_create(x->profile, errors, &x->cache);
	if (err)
		return err;
	const struct kvm_vm_opts vo = {.sim = x->sim,
				       .paging = m->paging,
				       .mode = m->mode,
				       .preset = m->preset,
				       .dirty = m->dirty,
				       .spte = m->spte,
				       .personality = m->cpu,
				       .cache = x->cache,
				       .keep_stores = true,
				       .eager_page_split = m->eager ? EAGER_PAGE_SPLIT_ON
								    : EAGER_PAGE_SPLIT_OFF,
				       .check = true};

	err = kvm_create_vm(&vo, &x->kvm);
	err = err ? err : task_create(x->sim, &to, &x->vmm);
	err = err ? err : sim_run(x->sim, CYCLES_MAX);
	err = err ? err : sim_check_ledger(x->sim);
	err = err ? err : kvm_check(x->kvm);
	x->r->checks++;
	for (int s = 0; x->kvm && s < N_KVM_STATS; s++)
		x->r->stat[s] = kvm_stat(x->kvm, (enum kvm_stat_id)s);
	return err;
}

void mops_run(const struct mops *m, struct mops_result *r)
{
	struct machine *x = calloc(1, sizeof(*x));
	const struct kvmsim_errsink errors = {complain, x};

	memset(r, 0, sizeof(*r));
	if (!x || !oracle_init(&x->oracle, m))
		abort();
	x->m = m;
	x->r = r;
	r->err = make_profile(x, &errors);
	r->err = r->err ? r->err : simulate(x, &errors);
	r->ambiguous = x->oracle.ambiguous;
	if (r->err && !r->why[0])
		snprintf(r->why, sizeof(r->why), "%s", kvmsim_strerror(r->err));
	x->ended = true;
	sim_destroy(x->sim);
	kvm_destroy_vm(x->kvm);
	cache_destroy(x->cache);
	profile_free(x->profile);
	oracle_free(&x->oracle);
	free(x);
}
