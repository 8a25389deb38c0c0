/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_GUEST_VCPU_H
#define KVMSIM_GUEST_VCPU_H

#include <stdint.h>

#include "model/guest/op.h"
#include "model/guest/vm.h"
#include "model/mmu/cpu_regs.h"

/*
 * The one door into the guest: what an instruction does to the machine. Recorded streams (interp)
 * and closed-loop guests (workloads) both come through here, as the task that is the vCPU thread.
 *
 * An instruction that faults is restarted whole by its caller:
 *
 *	do {
 *		r = vcpu_fetch(v, rip);
 *		r = r ? r : vcpu_read(v, rsi, 4, &addr);
 *		r = r ? r : vcpu_write(v, addr, 4, value);
 *	} while (r == VCPU_RESTART);
 *
 * An access takes no time but for what it causes: the instructions themselves are vcpu_gap()'s.
 *
 * A function returns 0 (done), VCPU_RESTART (the access exited, was handled, and the vCPU is back
 * in guest mode: run the instruction again from its fetch), VCPU_USERSPACE (an exit to userspace
 * is pending: the VMM acts, then the next call enters with KVM_RUN and the instruction is done: it
 * is not restarted; of a device's register that was read the value is the VMM's), or a negative
 * error (KVMSIM_ECANCELED ends the thread).
 */
#define VCPU_RESTART   1
#define VCPU_USERSPACE 2

struct kvm_vcpu;

/* Ties the vCPU to the task that runs it, from that task. To another one only while the vCPU is
 * outside KVM_RUN, as a VMM's thread hands it to another's. */
void vcpu_bind(struct kvm_vcpu *v, struct task *t);
struct task *vcpu_task(const struct kvm_vcpu *v);
struct kvm *vcpu_kvm(const struct kvm_vcpu *v);
uint32_t vcpu_id(const struct kvm_vcpu *v);

/* KVM_SET_SREGS before the first run: the root of the guest's tables (gpa; unused when flat). */
void vcpu_set_cr3(struct kvm_vcpu *v, uint64_t cr3);

/* KVM_SET_REGS: the next entry looks for events to inject (req_event). Registers themselves are the
 * caller's. Loads and puts the vCPU, as every vCPU ioctl does. */
void vcpu_set_regs(struct kvm_vcpu *v);

/* The registers that say how the guest pages; and KVM_GET_SREGS with KVM_SET_SREGS, which change
 * them, the privilege level too, by the task that runs the vCPU. CR3 stays. 0 or KVMSIM_ECANCELED.
 */
struct cpu_regs vcpu_regs(const struct kvm_vcpu *v);
int vcpu_change_sregs(struct kvm_vcpu *v, const struct cpu_regs *regs);

int vcpu_fetch(struct kvm_vcpu *v, uint64_t gva);
int vcpu_read(struct kvm_vcpu *v, uint64_t gva, unsigned len, uint64_t *value);
int vcpu_write(struct kvm_vcpu *v, uint64_t gva, unsigned len, uint64_t value);
/* Read-modify-write, as INC does it: @addend is added. Whether the first fault is a read is the CPU
 * personality's. Where its page is protected since it holds a page table, KVM takes it for none,
 * and runs the instruction again. Of a device's register: VCPU_USERSPACE for the read, and
 * vcpu_complete_mmio() does the rest. */
int vcpu_rmw(struct kvm_vcpu *v, uint64_t gva, unsigned len, uint64_t addend);
/* The same by an instruction that page tables are written with: XCHG, locked AND, OR and CMPXCHG.
 */
int vcpu_xchg(struct kvm_vcpu *v, uint64_t gva, unsigned len, uint64_t value);
int vcpu_invlpg(struct kvm_vcpu *v, uint64_t gva);
int vcpu_mov_cr3(struct kvm_vcpu *v, uint64_t cr3);
/* After VCPU_USERSPACE with KVM_EXIT_MMIO, when the VMM has acted: KVM_RUN finishes the
 * instruction. 0: the guest goes on after it; VCPU_USERSPACE: it exits once more, as a
 * read-modify-write does for its store. Optional where the instruction has one access: the next
 * call does the same. */
int vcpu_complete_mmio(struct kvm_vcpu *v);
/* MOV to CR0 and CR4, WRMSR of EFER. What would be a general-protection fault ends the run:
 * KVMSIM_EINVAL, with a message. */
int vcpu_mov_cr0(struct kvm_vcpu *v, uint64_t cr0);
int vcpu_mov_cr4(struct kvm_vcpu *v, uint64_t cr4);
int vcpu_wrmsr_efer(struct kvm_vcpu *v, uint64_t efer);
/* OUT to a port that userspace emulates: VCPU_USERSPACE with exit reason IO. */
int vcpu_out(struct kvm_vcpu *v, uint16_t port);
int vcpu_hlt(struct kvm_vcpu *v);
/* @n instructions that touch nothing modelled. Interruptible by messages. */
int vcpu_gap(struct kvm_vcpu *v, uint64_t n);

/* A signal is pending for the vCPU's thread, as when the VMM stops its vCPUs: an external
 * interrupt's exit, and KVM_RUN returns to userspace with EINTR. The thread may then block for long
 * without holding up whoever flushes its TLB; its next access enters with KVM_RUN. Nothing happens
 * outside KVM_RUN. 0 or a negative error. */
int vcpu_interrupt(struct kvm_vcpu *v);

/* The userspace exit that is pending was handled; the next access enters with KVM_RUN. */
enum kvm_exit_reason {
	KVM_EXIT_NONE = 0,
	KVM_EXIT_IO = 2,
	KVM_EXIT_HLT = 5,
	KVM_EXIT_MMIO = 6,
	KVM_EXIT_INTR = 10,
	KVM_EXIT_DIRTY_RING_FULL = 31 /* seen by the function of kvm_on_ring_full() only */
};
enum kvm_exit_reason vcpu_exit_reason(const struct kvm_vcpu *v);

#endif
