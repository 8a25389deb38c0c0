/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_GUEST_RUN_H
#define KVMSIM_GUEST_RUN_H

#include "model/guest/watch.h"
#include "model/mmu/mmu.h"

/* Inside model/guest: entering and leaving guest mode, hardware walks, the emulator. */

/* kvm_mmio's type field. */
enum { MMIO_UNSATISFIED_READ, MMIO_READ, MMIO_WRITE };

/* ---- run.c ---- */

/* KVM_RUN begins. */
void kvm_run_begin(struct kvm_vcpu *v);
/* In guest mode, with every message that is due seen, synced. 0 or a negative error. */
int vcpu_ready(struct kvm_vcpu *v);
/* VM exit for @reason (EXIT_*): the vCPU is outside guest mode. */
void vcpu_exit(struct kvm_vcpu *v, unsigned reason);
/* KVM_RUN returns to userspace with @reason: VCPU_USERSPACE. */
int vcpu_to_userspace(struct kvm_vcpu *v, unsigned reason);

/* ---- vm.c ---- */

/* A task cannot be in guest mode and in userspace: a vCPU of the VM that it left there is fetched
 * out. 0 or KVMSIM_ECANCELED. */
int leave_run(struct task *t, struct kvm *kvm);
/* The same, and on into an ioctl. */
int ioctl_begin(struct task *t, struct kvm *kvm);

/* ---- ring.c: the VMM's side of dirty rings ---- */

int ring_user_init(struct kvm *kvm);
void ring_user_free(struct kvm *kvm);
/* kvm_collect_dirty_log() of a VM whose vCPUs log into rings. */
long ring_collect_log(struct task *t, struct kvm *kvm, uint32_t slot, uint64_t *bitmap);
/* KVM_RUN of @v has returned since its ring is full: the VMM acts on it. 0 or a negative error. */
int ring_full(struct kvm_vcpu *v);

/* ---- watch.c ---- */

/* An ioctl's activity and, to a watch, its operation: from its begin to its end. */
struct ioctl_scope {
	uint16_t activity, operation; /* what was before */
	enum kvm_operation op;
	cycles_t start;
};
struct ioctl_scope ioctl_enter(struct task *t, struct kvm *kvm, enum kvm_operation op);
void ioctl_leave(struct task *t, struct kvm *kvm, const struct ioctl_scope *s);
/* The vCPU has left the guest, for reason @exit; it is about to enter it (@guest), or returns to
 * userspace, where it stalls no longer. */
void stall_begin(struct kvm_vcpu *v, unsigned exit);
void stall_end(struct kvm_vcpu *v, bool guest);

/* ---- mode.c ---- */

/* What the CPU answers with a general-protection fault, for which guests here have no handler: a
 * message that says @what, KVMSIM_EINVAL. */
int vcpu_refuse(const struct kvm_vcpu *v, const char *what);

/* ---- hwwalk.c ---- */

static inline bool canonical(gva_t gva)
{
	return (uint64_t)((int64_t)(gva << 16) >> 16) == gva;
}

/* What an access needs, as bits of the page-fault error code: 0, PFERR_WRITE, PFERR_FETCH. */
/* Walks the tables as the CPU does and caches the translation. 0, VCPU_RESTART (a fault was
 * handled), VCPU_USERSPACE (a device), or VCPU_EMULATED (the access itself was done by the
 * emulator with @len bytes of @value: a write to a page that stays protected). */
#define VCPU_EMULATED 3
int vcpu_translate(struct kvm_vcpu *v, gva_t gva, uint64_t access, unsigned len, uint64_t value);

/* A hint to the machine that the model runs on: the tables will soon be walked for @gva. Nothing
 * happens in the model. */
void vcpu_prefetch_walk(const struct kvm_vcpu *v, gva_t gva);

/* ---- emulate.c ---- */

/* An exit that KVM answers by emulating the instruction at v->rip, whose bytes it fetches through
 * the guest's tables where the CPU does not hand them over. */
void emulate_instruction(struct kvm_vcpu *v);
/* A fault at @fault_addr that only the emulator can answer: on a device, VCPU_USERSPACE; on a page
 * that has to stay write-protected, the store is done: VCPU_EMULATED, as is a load from a slot that
 * has taken the device's place meanwhile: v->emulated.loaded. */
int emulate_access(struct kvm_vcpu *v, uint64_t fault_addr, gva_t gva, uint64_t need, unsigned len,
		   uint64_t value);

/* ---- memory.c ---- */

/* A store to guest memory, by the CPU or by KVM for it. [synced] */
void guest_store(struct kvm_vcpu *v, gpa_t gpa, unsigned len, uint64_t value);

/* ---- vm_choose.c ---- */

struct kvm_vm_opts;

/* Fills in the VM's preset, CPU, back end and policies. Errors: as kvm_create_vm(). */
int kvm_choose_algorithms(struct kvm *kvm, const struct kvm_vm_opts *opts);

#endif
