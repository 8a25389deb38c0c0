/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_HOST_IPI_H
#define KVMSIM_HOST_IPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sim/sim.h"

/*
 * Interrupts from one CPU to others: remote TLB flushes and kicks of vCPUs, as the kernel's
 * smp_call_function_many() and smp_send_reschedule().
 *
 * An IPI arrives the profile's ipi_latency after it was sent. In guest mode it takes effect at the
 * first op boundary at or after that, where it forces an exit: the vCPU looks with
 * task_message_due(). Whenever it leaves guest mode, for this or any other reason, it calls
 * ipi_receive(); for a task that ends, that is done here. A vCPU outside guest mode is not
 * interrupted: it finds the request on its next entry. Which vCPUs are in guest mode and what a
 * request is, the layer above knows.
 */

/* The kind of struct task_message that IPIs use; layers above start theirs at IPI_MESSAGE + 1. */
#define IPI_MESSAGE 1u

/* Reads ipi_latency from the profile and makes it the sim's lookahead: nothing reaches a running
 * vCPU sooner. kvm_create_vm() calls it; who sends IPIs without a VM does, before tasks run. */
void ipi_init(struct sim *sim);

/* Leaves a request with target @i, whose task is *@task. Returns whether the target is in guest
 * mode and must be interrupted. Called synced. */
typedef bool (*ipi_request_fn)(void *ctx, size_t i, struct task **task);

/* [running] Syncs, makes a request of targets 0 to @n - 1 and interrupts those in guest mode, all
 * at this moment (charges COUNT_ipi for each; never the sender itself). With @wait, blocks until
 * each of them has received it, entered as WAIT_ipi. Returns the number interrupted, or
 * KVMSIM_ECANCELED. */
int ipi_call_many(struct task *t, ipi_request_fn request, void *ctx, size_t n, bool wait);

/* [running, synced] One target in guest mode, without waiting: what kvm_vcpu_kick() sends. */
void ipi_send(struct task *t, struct task *target);

/* [running, synced] The task has left guest mode: acknowledges to their senders the IPIs that have
 * arrived, now, and those that are under way, when they arrive (host code takes an interrupt at
 * once, and the handler does nothing else). Returns how many had arrived. */
unsigned ipi_receive(struct task *t);

#endif
