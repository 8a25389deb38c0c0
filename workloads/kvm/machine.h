/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_KVM_MACHINE_H
#define KVMSIM_WORKLOADS_KVM_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/kvm/player.h"

/*
 * A small VM on the running kernel's /dev/kvm, for the player. Its guest is 64-bit code at CPL3,
 * which every kind of KVM runs as it is (kvm_pvm runs nothing else natively), and knows one thing:
 * to go through a list of accesses.
 *
 * The slots that are played have their guest-physical addresses, below 4 GiB, as virtual ones.
 * Above them, from OWN_GPA on, is one more slot of the machine's own, never logged: code, page
 * tables, lists.
 */
#define PAGE_SHIFT  12
#define PAGE_BYTES  4096ull
#define OWN_GPA	    0x100000000ull
#define LIST_ACCESS 65536u /* accesses that fit in a vCPU's list */

/* An access as it stands in a list: the address, and at most one of these bits. Neither: a store of
 * one byte. */
#define ACCESS_READ (1ull << 63)
#define ACCESS_RMW  (1ull << 62)

/* Written by the guest: how many accesses it has begun and how many it has done, ever. An access is
 * begun before its first try and done when it has retired. */
struct machine_counters {
	uint64_t begun, done;
};

struct kvm_run;
struct kvm_dirty_gfn;

struct machine_vcpu {
	int fd;
	struct kvm_run *run;
	volatile struct machine_counters *counters;
	uint64_t *list;
	struct kvm_dirty_gfn *ring; /* NULL: none */
	uint32_t ring_next;	    /* the entry to look at next */
};

struct machine_memory {
	uint8_t *host; /* at a 2 MiB boundary */
	uint64_t bytes;
};

struct machine {
	const struct kvm_player_opts *opts;
	int kvm, vm;
	uint64_t run_bytes;
	struct machine_memory own, slots[KVM_PLAYER_MAX_SLOTS];
	struct machine_vcpu vcpus[KVM_PLAYER_MAX_VCPUS];
};

/* The parts, for a VM of another shape. The VM alone: KVM_CREATE_VM, what the protocol needs. */
int machine_make_vm(const struct kvm_player_opts *opts, struct machine **out);
/* Anonymous memory at a 2 MiB boundary, of huge pages or without any; a store to each page of it.
 */
int machine_map(struct machine *m, struct machine_memory *mem, uint64_t bytes, bool thp);
void machine_touch_memory(const struct machine_memory *mem);
/* KVM_SET_USER_MEMORY_REGION; 0 bytes delete the slot. */
int machine_set_slot(struct machine *m, uint32_t slot, uint64_t gpa, uint64_t bytes,
		     const struct machine_memory *mem, uint32_t flags);
/* A vCPU in 64-bit code at CPL3, with these tables and this task state segment. */
int machine_add_vcpu(struct machine *m, uint32_t i, uint64_t cr3, uint64_t tss);
#define MACHINE_TSS_BYTES 0x78ull
/* A task state segment that allows OUT and IN of the first 128 ports. */
void machine_put_tss(uint8_t *host);
/* OUT is allowed by IOPL 3; kvm_pvm, whose guests have none, looks at the I/O permission map of the
 * task state segment, where a zero allows. The other bit is always set. */
#define MACHINE_RFLAGS 0x3002ull

/* Makes the VM, its slots without logging, its vCPUs. Errors, each with a message:
 * KVMSIM_EUNSUPPORTED (no /dev/kvm, or not what the options need), KVMSIM_EIO (an ioctl failed),
 * KVMSIM_ENOMEM. */
int machine_open(const struct kvm_player_opts *opts, struct machine **out);
/* NULL is fine. */
void machine_close(struct machine *m);

/* Cycles of the time stamp counter, in order with what is around. */
uint64_t machine_tsc(void);

/* ioctl() with the failure as KVMSIM_EIO and a message that begins with @what; else its result. */
int machine_ioctl(const struct machine *m, int fd, unsigned long request, void *arg,
		  const char *what);

/* KVM_SET_USER_MEMORY_REGION of one played slot, with dirty logging or without; *cycles: its time.
 */
int machine_log(struct machine *m, uint32_t slot, bool on, uint64_t *cycles);

/* Prepares @vcpu to go through the first @n accesses of its list, n <= LIST_ACCESS. */
int machine_load(struct machine *m, uint32_t vcpu, uint32_t n);

/* One KVM_RUN. What made the guest leave: */
enum machine_exit {
	MACHINE_DONE,	   /* the list is through */
	MACHINE_SIGNAL,	   /* a signal came; enter again to go on */
	MACHINE_RING_FULL, /* collect and reset the rings before entering again */
};
/* or a negative error with a message: KVMSIM_EIO. */
int machine_enter(struct machine *m, uint32_t vcpu);

#endif
