// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/model_play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/counts.h"
#include "model/guest/vcpu.h"
#include "model/guest/vm.h"
#include "model/params.h"
#include "model/sim/profile.h"
#include "model/sim/sim.h"
#include "workloads/kvm/machine.h"
#include "workloads/kvm/stream.h"

#define PML4	  OWN_GPA
#define PDPT	  (OWN_GPA + 0x1000)
#define PD(g)	  (OWN_GPA + 0x2000 + (g)*PAGE_BYTES)
#define PT(i)	  (OWN_GPA + 0x10000 + (i)*PAGE_BYTES)
#define TABLE	  0x27ull /* P RW US A */
#define LEAF	  0x67ull /* and D */
#define LARGE	  0xe7ull /* and PS */
#define OWN_PAGES 4096ull

struct play {
	const struct kvm_player_opts *o;
	struct kvm *kvm;
	struct kvm_vcpu *vcpu;
	struct task *t;
	uint64_t *bitmap[KVM_PLAYER_MAX_SLOTS];
	struct stream streams[KVM_PLAYER_MAX_VCPUS];
};

static void page_tables(struct play *p)
{
	uint64_t tables = 0;

	kvm_write_guest_u64(p->kvm, PML4, PDPT | TABLE);
	for (uint64_t g = 0; g < 4; g++)
		kvm_write_guest_u64(p->kvm, PDPT + 8 * g, PD(g) | TABLE);
	for (uint32_t s = 0; s < p->o->n_slots; s++) {
		for (uint64_t i = 0; i < p->o->slots[s].npages; i++) {
			uint64_t gpa = (p->o->slots[s].base_gfn + i) << PAGE_SHIFT;
			uint64_t pde = PD(gpa >> 30) + 8 * (gpa >> 21 & 511);

			if (p->o->guest_2m) {
				kvm_write_guest_u64(p->kvm, pde, gpa >> 21 << 21 | LARGE);
				continue;
			}
			if (!kvm_read_guest_u64(p->kvm, pde))
				kvm_write_guest_u64(p->kvm, pde, PT(tables++) | TABLE);
			kvm_write_guest_u64(p->kvm,
					    (kvm_read_guest_u64(p->kvm, pde) & ~0xfffull) +
						    8 * (gpa >> 12 & 511),
					    gpa | LEAF);
		}
	}
}

static int do_access(struct play *p, uint64_t access)
{
	uint64_t at = access & ~(ACCESS_READ | ACCESS_RMW), value;
	int r;

	do {
		if (access & ACCESS_READ)
			r = vcpu_read(p->vcpu, at, 1, &value);
		else if (access & ACCESS_RMW)
			r = vcpu_rmw(p->vcpu, at, 1, 1);
		else
			r = vcpu_write(p->vcpu, at, 1, 1);
	} while (r == VCPU_RESTART);
	return r;
}

/* The guest leaves: its OUT at the end of a list. */
static int leave(struct play *p)
{
	int r;

	do {
		r = vcpu_out(p->vcpu, 0x10);
	} while (r == VCPU_RESTART);
	return r == VCPU_USERSPACE ? 0 : r;
}

static int set_slots(struct play *p, bool log)
{
	int err = 0;

	for (uint32_t s = 0; !err && s < p->o->n_slots; s++) {
		const struct kvm_player_slot *slot = &p->o->slots[s];
		const struct kvm_memory_region r = {
			.slot = s,
			.flags = log && slot->logged ? KVM_MEM_LOG_DIRTY_PAGES : 0,
			.base_gfn = slot->base_gfn,
			.npages = slot->npages,
			.host_populated = !p->o->absent,
			.host_anonymous = true,
			.host_level = p->o->thp ? 2 : 1,
		};

		err = kvm_set_user_memory_region(p->t, p->kvm, &r);
	}
	return err;
}

static int warm(struct play *p)
{
	int err = 0;

	for (uint32_t s = 0; s < p->o->n_slots; s++) {
		for (uint64_t i = 0; !err && i < p->o->slots[s].npages; i++)
			err = do_access(p, (p->o->slots[s].base_gfn + i) << PAGE_SHIFT);
	}
	return err ? err : leave(p);
}

static int collect(struct play *p, uint64_t number)
{
	struct kvm_slot_report reports[KVM_PLAYER_MAX_SLOTS];
	struct kvm_round r = {.number = number, .slots = reports};

	for (uint32_t s = 0; s < p->o->n_slots; s++) {
		long n;

		if (!p->o->slots[s].logged)
			continue;
		n = kvm_collect_dirty_log(p->t, p->kvm, s, p->bitmap[s]);
		if (n < 0)
			return (int)n;
		reports[r.n_slots++] = (struct kvm_slot_report){
			.slot = s, .reported = p->bitmap[s], .nr_dirty = (uint64_t)n};
	}
	return p->o->round(p->o->ctx, &r);
}

static int rounds(struct play *p)
{
	for (uint64_t epochs = 1;; epochs++) {
		uint64_t reached = 0;
		int err = 0;

		for (uint32_t v = 0; !err && v < p->o->n_vcpus; v++) {
			err = stream_read(&p->streams[v], epochs);
			if (p->streams[v].ended > reached)
				reached = p->streams[v].ended;
		}
		if (err || reached < epochs)
			return err;
		for (uint32_t v = 0; !err && v < p->o->n_vcpus; v++) {
			for (size_t i = 0; !err && i < p->streams[v].n; i++)
				err = do_access(p, p->streams[v].access[i]);
			stream_drop(&p->streams[v]);
		}
		err = err ? err : leave(p);
		err = err ? err : collect(p, epochs);
		if (err)
			return err;
	}
}

static int body(struct task *t, void *arg)
{
	struct play *p = arg;
	const struct kvm_memory_region own = {.slot = p->o->n_slots,
					      .base_gfn = OWN_GPA >> PAGE_SHIFT,
					      .npages = OWN_PAGES,
					      .host_populated = true};
	int err;

	p->t = t;
	page_tables(p);
	err = kvm_set_user_memory_region(t, p->kvm, &own);
	err = err ? err : set_slots(p, false);
	err = err ? err : kvm_create_vcpu(p->kvm, &p->vcpu);
	if (err)
		return err;
	vcpu_set_cr3(p->vcpu, PML4);
	vcpu_bind(p->vcpu, t);
	err = p->o->warm ? warm(p) : 0;
	err = err ? err : set_slots(p, true);
	err = err ? err : collect(p, 0);
	err = err ? err : rounds(p);
	return err ? err : kvm_check(p->kvm);
}

static int policy(const struct kvm_player_opts *o, char *text, size_t size)
{
	unsigned long long chunk = o->clear_chunk ? o->clear_chunk : 262144;

	switch (o->protocol) {
	case KVM_PROTOCOL_GET:
		return snprintf(text, size, "mask");
	case KVM_PROTOCOL_MANUAL:
		return snprintf(text, size, "manual,chunk=%llu", chunk);
	case KVM_PROTOCOL_MANUAL_ALL_SET:
		return snprintf(text, size, "manual,initially-all-set=1,chunk=%llu", chunk);
	default:
		return snprintf(text, size, "ring,reaper=0,size=%u", o->ring_entries);
	}
}

static int unit_profile(const struct kvmsim_errsink *errors, struct profile **out)
{
	char text[8192];
	size_t n = (size_t)snprintf(text, sizeof(text), "[machine]\nunit = cycles\n[price]\n");

	for (int i = 0; i < N_COUNTS; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s = 1\n",
				      model_vocabulary.counts[i]);
	return profile_parse(text, n, "unit", &model_vocabulary, model_params, errors, out);
}

int model_play(const struct kvm_player_opts *o)
{
	struct play p = {.o = o};
	struct sim_opts so = {.vocabulary = &model_vocabulary, .errors = o->errors};
	struct profile *profile = NULL;
	char dirty[64];
	struct kvm_vm_opts vo = {.paging = PAGING_SHADOW,
				 .preset = "6.13-shadow",
				 .mode = GUEST_LONG64,
				 .dirty = dirty,
				 .check = true};
	const struct task_opts to = {.name = "vmm", .fn = body, .arg = &p};
	struct task *t;
	int err = unit_profile(o->errors, &profile);

	policy(o, dirty, sizeof(dirty));
	so.profile = profile;
	err = err ? err : sim_create(&so, &vo.sim);
	err = err ? err : kvm_create_vm(&vo, &p.kvm);
	for (uint32_t s = 0; !err && s < o->n_slots; s++) {
		p.bitmap[s] = calloc((o->slots[s].npages + 63) / 64, sizeof(uint64_t));
		err = p.bitmap[s] ? 0 : KVMSIM_ENOMEM;
	}
	for (uint32_t v = 0; v < o->n_vcpus; v++)
		stream_open(&p.streams[v], o, v);
	err = err ? err : task_create(vo.sim, &to, &t);
	err = err ? err : sim_run(vo.sim, CYCLES_MAX);
	for (uint32_t v = 0; v < o->n_vcpus; v++)
		stream_close(&p.streams[v]);
	for (uint32_t s = 0; s < o->n_slots; s++)
		free(p.bitmap[s]);
	sim_destroy(vo.sim);
	kvm_destroy_vm(p.kvm);
	profile_free(profile);
	return err;
}
