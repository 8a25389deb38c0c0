// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/run.h"
#include "model/guest/vm.h"

/* What the VMM does to its own memory, behind KVM's back but for the MMU notifiers. */

/* Into the system call, and the slot that the pages are of. */
static int host_call(struct task *t, struct kvm *kvm, uint32_t slot_id, uint64_t first_page,
		     uint64_t npages, struct kvm_memory_slot **out)
{
	struct kvm_memory_slot *slot;
	int r = ioctl_begin(t, kvm);

	if (r)
		return r;
	touch_shared(t);
	task_assert_first(t, "the memslots");
	slot = id_to_memslot(kvm, slot_id);
	if (!slot)
		return KVMSIM_ENOENT;
	if (!npages || first_page > slot->npages || npages > slot->npages - first_page)
		return KVMSIM_EINVAL;
	charge(t, COUNT_host_call, 1);
	*out = slot;
	return slot->host.anonymous ? 0 : KVMSIM_EUNSUPPORTED;
}

static int host_result(struct task *t, const struct kvm *kvm, int r)
{
	if (!r && task_canceled(t))
		r = KVMSIM_ECANCELED;
	return r ? r : kvm->dead ? KVMSIM_ENOMEM : 0;
}

int host_madvise_dontneed(struct task *t, struct kvm *kvm, uint32_t slot_id, uint64_t first_page,
			  uint64_t npages)
{
	uint16_t was = activity_enter(t, ACT_userspace);
	struct kvm_memory_slot *slot;
	int r = host_call(t, kvm, slot_id, first_page, npages, &slot);

	if (!r)
		host_dontneed(t, kvm, slot, slot->base_gfn + first_page, npages);
	activity_leave(t, was);
	return host_result(t, kvm, r);
}

int host_mprotect(struct task *t, struct kvm *kvm, uint32_t slot_id, uint64_t first_page,
		  uint64_t npages, bool writable)
{
	uint16_t was = activity_enter(t, ACT_userspace);
	struct kvm_memory_slot *slot;
	int r = host_call(t, kvm, slot_id, first_page, npages, &slot);

	if (!r)
		host_protect(t, kvm, slot, slot->base_gfn + first_page, npages, writable);
	activity_leave(t, was);
	return host_result(t, kvm, r);
}

int kvm_change_address_space(struct task *t, struct kvm *kvm)
{
	int r;

	lock_called_by(t, kvm, "vm_mmap_pgoff");
	r = write_lock(t, &kvm->mmap_lock);

	if (!r)
		write_unlock(t, &kvm->mmap_lock);
	return r;
}

void kvm_unmap_hva_elsewhere(struct task *t, struct kvm *kvm)
{
	touch_shared(t);
	kvm_trace_event(t, kvm, NULL, .id = TRACE_kvm_unmap_hva_range);
}
