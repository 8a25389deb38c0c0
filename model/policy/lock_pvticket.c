// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/lock.h"

#include <stdlib.h>

#include "model/counts.h"

/*
 * Paravirtual ticket locks, 3.12 to 4.1 (arch/x86/include/asm/spinlock.h and kernel/kvm.c of 3.12,
 * R. K T and J. Fitzhardinge): who has waited for too long notes which lock and ticket it waits
 * for, sets the slow-path flag and halts; who unlocks with that flag set looks through the notes of
 * all and kicks the vCPU whose turn it is.
 */
const struct policy_param pvticket_params[] = {LOCK_THRESHOLD_PARAM, {.name = NULL}};

/* klock_waiting of each vCPU; @lock NULL: it is not in waiting_cpus. */
struct waiting {
	const struct smp_lock *lock;
	uint32_t want;
};

int pvticket_vm_init(struct smp_vm *vm)
{
	struct waiting *w = calloc(smp_vm_opts(vm)->vcpus, sizeof(*w));

	*smp_vm_lock_private(vm) = w;
	return w ? 0 : KVMSIM_ENOMEM;
}

void pvticket_vm_free(struct smp_vm *vm)
{
	free(*smp_vm_lock_private(vm));
}

static struct waiting *waiting(struct smp_vcpu *v)
{
	struct waiting *w = *smp_vm_lock_private(smp_vm_of(v));

	return &w[smp_vcpu_id(v)];
}

/* kvm_lock_spinning(). Interrupts are off from before the note until the halt: a handler that waits
 * for a lock writes its own over it. With them on in the halt an interrupt ends that, so that the
 * note is not missed. */
static int halt_for_turn(struct smp_vcpu *v, struct smp_lock *l, uint32_t want)
{
	struct ticket_state *s = l->state;
	struct waiting *w = waiting(v);
	bool flags = smp_irq_save(v);
	int r = smp_line_rmw(v, &l->line);

	if (r)
		return r;
	w->lock = l;
	w->want = want;
	s->slowpath = true;
	if (s->head != want) {
		l->stats.slowpath++;
		r = pv_halt(v, flags);
		if (!r)
			r = sync(smp_task(v));
		if (r)
			return r;
	}
	w->lock = NULL;
	return smp_irq_restore(v, flags);
}

int pvticket_lock(struct smp_vcpu *v, struct smp_lock *l, bool *contended)
{
	const uint64_t threshold = lock_param(v, 0);
	struct ticket_waiter w;
	int r = ticket_take(v, l, &w);

	if (r)
		return r < 0 ? r : 0;
	*contended = true;
	while (!(r = spin_wait(v, &w.s, threshold))) {
		r = halt_for_turn(v, l, w.want);
		if (r)
			break;
	}
	return r < 0 ? r : 0;
}

/* kvm_unlock_kick(). */
static int kick(struct smp_vcpu *v, struct smp_lock *l, uint32_t turn)
{
	struct smp_vm *vm = smp_vm_of(v);
	const struct waiting *w = *smp_vm_lock_private(vm);

	for (uint32_t i = 0; i < smp_vm_opts(vm)->vcpus; i++) {
		if (w[i].lock != l || w[i].want != turn)
			continue;
		l->stats.kicks++;
		return smp_kick_cpu(v, smp_vcpu(vm, i));
	}
	return 0;
}

int pvticket_unlock(struct smp_vcpu *v, struct smp_lock *l)
{
	struct ticket_state *s = l->state;
	uint32_t turn, tail;
	int r;

	charge(smp_task(v), COUNT_pv_unlock, 1);
	r = smp_line_store(v, &l->line);
	if (r)
		return r;
	ticket_advance(v, s);
	if (!s->slowpath)
		return 0;
	turn = s->head;
	tail = s->tail;
	if (turn == tail) { /* nobody waits: the flag can go, unless somebody has come by then */
		r = smp_line_rmw(v, &l->line);
		if (r)
			return r;
		if (s->head == turn && s->tail == tail) {
			s->slowpath = false;
			return 0;
		}
	}
	return kick(v, l, turn);
}

const struct lock_policy lock_pvticket = {
	.desc =
		{
			.name = "pvticket",
			.family = FAMILY_LOCK,
			.summary =
				"paravirtual ticket locks: who waits for long halts, and is kicked",
			.params = pvticket_params,
		},
	.fifo = true,
	.vm_init = pvticket_vm_init,
	.vm_free = pvticket_vm_free,
	.init = ticket_init,
	.free = lock_free_state,
	.lock = pvticket_lock,
	.trylock = ticket_trylock,
	.unlock = pvticket_unlock,
};
