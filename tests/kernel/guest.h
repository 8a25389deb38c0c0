/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_GUEST_H
#define KVMSIM_KERNEL_GUEST_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A VM on the running kernel's /dev/kvm, and the three loops that its vCPUs can run.
 *
 * Two slots: slot 0 holds the code, the guest's page tables and the page list; slot 1 is the memory
 * under test, mapped one to one at TEST_GPA. The host touches every page of both before the first
 * entry and keeps huge pages away, unless they are asked for. The layout is in README.md; the
 * model's guest has the same.
 *
 * Every function dies on an ioctl's failure.
 */

#define TEST_GPA   0x10000000ull
#define PAGE_BYTES 4096ull

enum guest_kind {
	GUEST_LONG64, /* 64-bit, 4-level */
	GUEST_FLAT32, /* 32-bit, paging off */
	GUEST_PAE,    /* 32-bit, 3-level */
	GUEST_32BIT,  /* 32-bit, 2-level, 4-byte entries */
};

enum guest_pte {
	GUEST_PTE_4K,	/* 4K PTEs under the tested slot */
	GUEST_PTE_2M,	/* 2M PTEs, of GUEST_32BIT 4M */
	GUEST_PTE_NONE, /* paging off */
};

struct guest_opts {
	uint64_t slot_pages; /* of slot 1, 1 to GUEST_MAX_SLOT_PAGES */
	enum guest_kind kind;
	enum guest_pte pte;
	bool readonly;		 /* slot 1 has KVM_MEM_READONLY: what is stored there is an exit */
	bool kernel, kernel_all; /* slot 0's pages are the supervisor's, or all are */
	bool ro_ptes, nx_ptes, clean; /* slot 1's PTEs: without W, with NX, without A and D */
	bool logged;		      /* slot 1 has KVM_MEM_LOG_DIRTY_PAGES from the start */
	uint64_t manual;	      /* of KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2; 0: not enabled */
	uint64_t ring;		      /* entries of each vCPU's dirty ring; 0: there is none */
	unsigned vcpus;		      /* 1 to GUEST_MAX_VCPUS */
	bool huge;   /* slot 1's host memory in huge pages of 2 MiB, where it has whole ones */
	bool absent; /* the host touches nothing of it */
};
#define GUEST_MAX_SLOT_PAGES 16384u /* what the page list and the 4K tables have room for */
#define GUEST_MAX_VCPUS	     2u	    /* which share the room for page lists */

#define GUEST_MORE_SLOTS 6u
#define GUEST_MORE_PAGES 512u /* at most, each */

struct guest {
	struct guest_opts opts;
	int kvm, vm, vcpu[GUEST_MAX_VCPUS];
	struct kvm_run *run[GUEST_MAX_VCPUS];
	uint64_t run_bytes;
	struct guest_regs {
		uint64_t cr0, cr3, cr4, efer;
		unsigned cpl;
	} regs;				 /* of vCPU 0, and of a new one */
	uint8_t *low, *mem;		 /* host memory of slots 0 and 1 */
	uint8_t *more[GUEST_MORE_SLOTS]; /* of slots 2 and so on, once they were made */
	bool with_devices; /* reads and stores where no slot is, and HLT, are no failure */
	uint64_t mmio;	   /* such accesses, by guest_run() */
	struct guest_ring {
		struct kvm_dirty_gfn *entry;
		uint64_t next; /* to be collected */
	} ring[GUEST_MAX_VCPUS];
	/* since guest_ring_mark(): exits with a full ring, entries collected, entries reset */
	uint64_t full, collected, reset;
};

/* One per page of the list, in its order: a 4-byte store, load, or increment; or what bit 0 of the
 * list's entry says, a store or a load, and before it a store of the turns left, this one included.
 */
enum guest_loop { GUEST_WRITE, GUEST_READ, GUEST_INC, GUEST_MIXED };

#define GUEST_STACK_GPA 0x8000ull
/* The bit that is always set; the user may do OUT. */
#define GUEST_RFLAGS(g) (2u | ((g)->regs.cpl == 3 ? 0x3000u : 0))

void guest_create(struct guest *g, const struct guest_opts *opts);
void guest_destroy(struct guest *g);

/* Prepares @loop over @n pages of slot 1 on @vcpu; guest_run() then enters it until its last OUT.
 */
void guest_load(struct guest *g, unsigned vcpu, enum guest_loop loop, const uint32_t *pages,
		uint64_t n);
/* An entry of the vCPU's list; its registers, to go through @count entries from @rip on. */
void guest_put_list(struct guest *g, unsigned vcpu, uint64_t index, uint64_t gpa);
void guest_set_regs(struct guest *g, unsigned vcpu, uint64_t rip, uint64_t count);
/* On vCPU 0, the READ loop over the pages of the page lists themselves. */
void guest_load_setup(struct guest *g);
/* On vCPU 0, a program that leaves at once. */
void guest_load_empty(struct guest *g);
/* The same for GUEST_MIXED: entries are page << 1 | store. */
void guest_load_mixed(struct guest *g, unsigned vcpu, const uint32_t *turns, uint64_t n);
/* Turns of GUEST_MIXED left, as its guest stored it last. While it runs, too. */
uint64_t guest_turns_left(const struct guest *g, unsigned vcpu);
/* May be called by several threads for a vCPU each. When the vCPU leaves with a full ring, collects
 * that one, resets all and goes on. */
void guest_run(struct guest *g, unsigned vcpu);

/* Host memory that begins at a 2 MiB boundary. */
uint8_t *guest_map_memory(uint64_t bytes, bool huge, bool touch);
/* KVM_SET_USER_MEMORY_REGION. */
void guest_set_slot(struct guest *g, uint32_t slot, uint64_t gpa, uint64_t bytes, uint8_t *hva,
		    uint32_t flags);
/* KVM_SET_USER_MEMORY_REGION on slot 1: dirty logging on or off. */
void guest_log(struct guest *g, bool on);
/* KVM_GET_DIRTY_LOG of slot 1; @bitmap has (slot_pages + 63) / 64 words. */
void guest_get_dirty_log(struct guest *g, uint64_t *bitmap);
/* KVM_CLEAR_DIRTY_LOG of slot 1 for the bits of @bitmap, in chunks of @chunk pages (a multiple of
 * 64), those without a bit too. */
void guest_clear_dirty_log(struct guest *g, uint64_t chunk, uint64_t *bitmap);
/* Reads the dirty entries of every ring and marks them. */
void guest_collect_rings(struct guest *g);
/* KVM_RESET_DIRTY_RINGS. */
void guest_reset_rings(struct guest *g);
/* The tallies start anew. */
void guest_ring_mark(struct guest *g);
/* madvise(MADV_DONTNEED) and mprotect() of @n pages of slot 1's host memory. */
void guest_dontneed(struct guest *g, uint64_t first, uint64_t n);
void guest_protect(struct guest *g, uint64_t first, uint64_t n, bool writable);
void guest_check_extension(struct guest *g);

#endif
