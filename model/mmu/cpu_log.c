// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/cpu_log.h"

#include <stdlib.h>

#include "model/mmu/mmu.h"
#include "model/policy/preset.h"

#define ENTRIES_PER_LINE 8

bool cpu_log_init(struct kvm_vcpu *v)
{
	struct kvm *kvm = v->kvm;

	if (!kvm->cpu_dirty_log_size)
		return true;
	v->log.gpa = calloc(CPU_LOG_ENTRIES, sizeof(*v->log.gpa));
	v->log.slot = calloc(CPU_LOG_ENTRIES, sizeof(struct kvm_memory_slot *));
	v->log.index = CPU_LOG_ENTRIES - 1;
	v->log.addr = kaddr_pages(&kvm->kaddr, PAGE_SIZE);
	v->log.enabled = kvm->cpu_dirty_logging_count;
	return v->log.gpa && v->log.slot;
}

void cpu_log_free(struct kvm_vcpu *v)
{
	free(v->log.gpa);
	free(v->log.slot);
}

bool cpu_log_push(struct kvm_vcpu *v, gpa_t gpa)
{
	struct cpu_log *log = &v->log;

	if (!log->enabled)
		return true;
	if (log->index < 0)
		return false;
	log->gpa[log->index--] = gpa & ~(PAGE_SIZE - 1);
	log->unpriced++;
	return true;
}

void cpu_log_charge(struct kvm_vcpu *v)
{
	if (v->log.unpriced)
		charge(v->task, COUNT_pml_log, v->log.unpriced);
	v->log.unpriced = 0;
}

static bool is_empty(const struct cpu_log *log)
{
	return !log->gpa || log->index == CPU_LOG_ENTRIES - 1;
}

void cpu_log_stop(struct kvm_vcpu *v)
{
	struct cpu_log *log = &v->log;

	if (is_empty(log))
		return;
	srcu_read_lock(v->task, &v->kvm->srcu, &log->srcu);
	for (int i = log->index + 1; i < CPU_LOG_ENTRIES; i++)
		log->slot[i] = memslot_now(v->task, v->kvm, log->gpa[i] >> PAGE_SHIFT);
}

void cpu_log_flush(struct kvm_vcpu *v)
{
	struct cpu_log *log = &v->log;

	if (is_empty(log))
		return;
	cpu_log_charge(v);
	for (int i = log->index + 1; i < CPU_LOG_ENTRIES; i++) {
		charge(v->task, COUNT_pml_flush_entry, 1);
		if (i == log->index + 1 || i % ENTRIES_PER_LINE == 0)
			kvm_touch(v->task, v->kvm, log->addr + i * sizeof(*log->gpa),
				  sizeof(*log->gpa), false);
		mark_page_dirty_in_slot(v->task, v->kvm, log->slot[i], log->gpa[i] >> PAGE_SHIFT);
	}
	/* Till now each was in the buffer, so that at no time one was nowhere. Whatever marks a
	 * page dirty has touched last what others can see. */
	task_assert_first(v->task, "a CPU's log, which the checkers read");
	log->index = CPU_LOG_ENTRIES - 1;
	srcu_read_unlock(v->task, &v->kvm->srcu, &log->srcu);
}

uint64_t cpu_log_entries(const struct kvm_vcpu *v)
{
	return v->log.gpa ? (uint64_t)(CPU_LOG_ENTRIES - 1 - v->log.index) : 0;
}

bool cpu_log_has(const struct kvm *kvm, gfn_t gfn)
{
	for (uint32_t i = 0; i < kvm->n_vcpus && kvm->cpu_dirty_log_size; i++) {
		const struct cpu_log *log = &kvm->vcpus[i]->log;

		for (int j = log->index + 1; j < CPU_LOG_ENTRIES; j++)
			if (log->gpa[j] >> PAGE_SHIFT == gfn)
				return true;
	}
	return false;
}

void kvm_update_cpu_dirty_logging(struct task *t, struct kvm *kvm, bool on)
{
	if (!kvm->cpu_dirty_log_size)
		return;
	touch_shared(t);
	task_assert_first(t, "the number of logged slots");
	kvm->cpu_dirty_logging_count += on ? 1 : -1;
	if (kvm->cpu_dirty_logging_count == (on ? 1 : 0))
		kvm_make_all_cpus_request(t, kvm, REQ_UPDATE_CPU_DIRTY_LOGGING);
	touch_shared(t);
}

void kvm_sync_dirty_log(struct task *t, struct kvm *kvm)
{
	if (kvm->cpu_dirty_log_size || kvm->preset->get_kicks)
		kvm_make_all_cpus_request(t, kvm, 0);
}
