// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/kernel/guest_modes.h"
#include "tests/kernel/vmm.h"

#define SLOT0_BYTES 0x200000ull
#define HUGE_BYTES  0x200000ull

/* Guest-physical places in slot 0. */
#define CODE_GPA   0x1000ull
#define LIST_GPA   0x100000ull
#define LIST_PAGES 16u
#define VCPU_LIST_BYTES                                                                            \
	(LIST_PAGES * PAGE_BYTES / GUEST_MAX_VCPUS) /* vCPU 1's list begins there                  \
						     */
#define LEFT_GPA(vcpu) (0x9000ull + (vcpu)*8u)	    /* turns of GUEST_MIXED left */

/* RSI: list of 32-bit addresses; RCX: its length. The same bytes serve 32-bit and 64-bit code. */
static const struct {
	uint64_t gpa;
	uint8_t bytes[24];
} loop_code[] = {
	/* lodsl; mov %ecx,(%rax); loop; out %al,$0x10 */
	[GUEST_WRITE] = {CODE_GPA, {0xad, 0x89, 0x08, 0xe2, 0xfb, 0xe6, 0x10}},
	/* lodsl; mov (%rax),%edx; loop; out */
	[GUEST_READ] = {CODE_GPA + 0x40, {0xad, 0x8b, 0x10, 0xe2, 0xfb, 0xe6, 0x10}},
	/* lodsl; incl (%rax); loop; out */
	[GUEST_INC] = {CODE_GPA + 0x80, {0xad, 0xff, 0x00, 0xe2, 0xfb, 0xe6, 0x10}},
	/* 0: lodsl; mov %ecx,(%rdi); btr $0,%eax; jc 15f
	 * mov (%rax),%edx; loop 0b; jmp 19f
	 * 15: mov %ecx,(%rax); loop 0b; 19: out */
	[GUEST_MIXED] = {CODE_GPA + 0xc0,
			 {0xad, 0x89, 0x0f, 0x0f, 0xba, 0xf0, 0x00, 0x72, 0x06, 0x8b, 0x10,
			  0xe2, 0xf3, 0xeb, 0x04, 0x89, 0x08, 0xe2, 0xed, 0xe6, 0x10}},
};
/* nop; out. After an OUT, KVM_RUN skips it if RIP still stands there, so entering at the OUT itself
 * a second time would run past it. */
static const uint8_t empty_code[] = {0x90, 0xe6, 0x10};
#define EMPTY_GPA (CODE_GPA + 0x100)

uint8_t *guest_map_memory(uint64_t bytes, bool huge, bool touch)
{
	/* Reserve one huge page more, to begin at a 2 MiB boundary as a real VMM's memory does. */
	uint8_t *p = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		die_errno("mmap of %llu bytes", (unsigned long long)bytes);
	uint8_t *start = p + (HUGE_BYTES - (uintptr_t)p % HUGE_BYTES) % HUGE_BYTES;
	if (start != p)
		munmap(p, (size_t)(start - p));
	munmap(start + bytes, HUGE_BYTES - (uint64_t)(start - p));
	if (madvise(start, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) < 0 &&
	    (huge || errno != EINVAL)) /* EINVAL: no THP */
		die_errno("madvise");
	for (uint64_t off = 0; touch && off < bytes; off += PAGE_BYTES)
		start[off] = 1;
	return start;
}

void guest_set_slot(struct guest *g, uint32_t slot, uint64_t gpa, uint64_t bytes, uint8_t *hva,
		    uint32_t flags)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot,
		.flags = flags,
		.guest_phys_addr = gpa,
		.memory_size = bytes,
		.userspace_addr = (uintptr_t)hva,
	};
	if (ioctl(g->vm, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		die_errno("KVM_SET_USER_MEMORY_REGION slot %u", slot);
}

static void init_cpuid(struct guest *g, unsigned vcpu)
{
	const size_t entries = 128;
	struct kvm_cpuid2 *cpuid = calloc(1, sizeof(*cpuid) + entries * sizeof(cpuid->entries[0]));
	if (!cpuid)
		die_errno("out of memory");
	cpuid->nent = (uint32_t)entries;
	if (ioctl(g->kvm, KVM_GET_SUPPORTED_CPUID, cpuid) < 0)
		die_errno("KVM_GET_SUPPORTED_CPUID");
	if (ioctl(g->vcpu[vcpu], KVM_SET_CPUID2, cpuid) < 0)
		die_errno("KVM_SET_CPUID2");
	free(cpuid);
}

static void enable_manual(struct guest *g, uint64_t how)
{
	struct kvm_enable_cap cap = {
		.cap = KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2,
		.args = {how},
	};
	if (how && ioctl(g->vm, KVM_ENABLE_CAP, &cap) < 0)
		lacks("KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2, args %llu", (unsigned long long)how);
}

static uint64_t ring_bytes(const struct guest *g)
{
	return g->opts.ring * sizeof(struct kvm_dirty_gfn);
}

static void enable_ring(struct guest *g)
{
	struct kvm_enable_cap cap = {
		.cap = KVM_CAP_DIRTY_LOG_RING_ACQ_REL,
		.args = {ring_bytes(g)},
	};
	if (g->opts.ring && ioctl(g->vm, KVM_ENABLE_CAP, &cap) < 0)
		lacks("KVM_CAP_DIRTY_LOG_RING_ACQ_REL");
}

static void map_ring(struct guest *g, unsigned vcpu)
{
	if (!g->opts.ring)
		return;
	g->ring[vcpu].entry = mmap(NULL, ring_bytes(g), PROT_READ | PROT_WRITE, MAP_SHARED,
				   g->vcpu[vcpu], KVM_DIRTY_LOG_PAGE_OFFSET * (long)PAGE_BYTES);
	if (g->ring[vcpu].entry == MAP_FAILED)
		die_errno("mmap of the dirty ring");
}

static void create_vcpu(struct guest *g, unsigned vcpu)
{
	g->vcpu[vcpu] = ioctl(g->vm, KVM_CREATE_VCPU, vcpu);
	if (g->vcpu[vcpu] < 0)
		die_errno("KVM_CREATE_VCPU %u", vcpu);
	g->run[vcpu] =
		mmap(NULL, g->run_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g->vcpu[vcpu], 0);
	if (g->run[vcpu] == MAP_FAILED)
		die_errno("mmap of kvm_run");
	map_ring(g, vcpu);
	init_cpuid(g, vcpu);
	guest_init_sregs(g, vcpu);
}

void guest_create(struct guest *g, const struct guest_opts *opts)
{
	memset(g, 0, sizeof(*g));
	g->opts = *opts;
	g->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (g->kvm < 0)
		die_errno("/dev/kvm");
	g->vm = ioctl(g->kvm, KVM_CREATE_VM, 0);
	if (g->vm < 0)
		die_errno("KVM_CREATE_VM");

	enable_manual(g, opts->manual);
	enable_ring(g);

	g->low = guest_map_memory(SLOT0_BYTES, false, true);
	memset(g->low, 0, SLOT0_BYTES);
	g->mem = guest_map_memory(opts->slot_pages * PAGE_BYTES, opts->huge, !opts->absent);
	guest_build_tables(g);
	for (unsigned i = 0; i < sizeof(loop_code) / sizeof(loop_code[0]); i++)
		memcpy(g->low + loop_code[i].gpa, loop_code[i].bytes, sizeof(loop_code[i].bytes));
	memcpy(g->low + EMPTY_GPA, empty_code, sizeof(empty_code));
	guest_set_slot(g, 0, 0, SLOT0_BYTES, g->low, 0);
	guest_log(g, opts->logged);

	int bytes = ioctl(g->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (bytes < 0)
		die_errno("KVM_GET_VCPU_MMAP_SIZE");
	g->run_bytes = (uint64_t)bytes;
	for (unsigned i = 0; i < opts->vcpus; i++)
		create_vcpu(g, i);
}

void guest_destroy(struct guest *g)
{
	for (unsigned i = 0; i < g->opts.vcpus; i++) {
		munmap(g->run[i], g->run_bytes);
		if (g->opts.ring)
			munmap(g->ring[i].entry, ring_bytes(g));
		close(g->vcpu[i]);
	}
	close(g->vm);
	close(g->kvm);
	munmap(g->mem, g->opts.slot_pages * PAGE_BYTES);
	munmap(g->low, SLOT0_BYTES);
	for (unsigned i = 0; i < GUEST_MORE_SLOTS; i++)
		if (g->more[i])
			munmap(g->more[i], GUEST_MORE_PAGES * PAGE_BYTES);
}

void guest_set_regs(struct guest *g, unsigned vcpu, uint64_t rip, uint64_t count)
{
	struct kvm_regs regs = {
		.rip = rip,
		.rdi = LEFT_GPA(vcpu),
		.rsi = LIST_GPA + vcpu * VCPU_LIST_BYTES,
		.rcx = count,
		.rsp = GUEST_STACK_GPA,
		.rflags = GUEST_RFLAGS(g),
	};
	if (ioctl(g->vcpu[vcpu], KVM_SET_REGS, &regs) < 0)
		die_errno("KVM_SET_REGS");
}

void guest_put_list(struct guest *g, unsigned vcpu, uint64_t index, uint64_t gpa)
{
	uint32_t address = (uint32_t)gpa;
	memcpy(g->low + LIST_GPA + vcpu * VCPU_LIST_BYTES + index * sizeof(address), &address,
	       sizeof(address));
}

void guest_load(struct guest *g, unsigned vcpu, enum guest_loop loop, const uint32_t *pages,
		uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		guest_put_list(g, vcpu, i, TEST_GPA + pages[i] * PAGE_BYTES);
	guest_set_regs(g, vcpu, loop_code[loop].gpa, n);
}

static volatile uint32_t *turns_left(const struct guest *g, unsigned vcpu)
{
	return (volatile uint32_t *)(void *)(g->low + LEFT_GPA(vcpu));
}

void guest_load_mixed(struct guest *g, unsigned vcpu, const uint32_t *turns, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		guest_put_list(g, vcpu, i,
			       (TEST_GPA + (turns[i] >> 1) * PAGE_BYTES) | (turns[i] & 1));
	*turns_left(g, vcpu) = (uint32_t)n;
	guest_set_regs(g, vcpu, loop_code[GUEST_MIXED].gpa, n);
}

uint64_t guest_turns_left(const struct guest *g, unsigned vcpu)
{
	return *turns_left(g, vcpu);
}

void guest_load_setup(struct guest *g)
{
	for (uint64_t i = 0; i < LIST_PAGES; i++)
		guest_put_list(g, 0, i, LIST_GPA + i * PAGE_BYTES);
	guest_set_regs(g, 0, loop_code[GUEST_READ].gpa, LIST_PAGES);
}

void guest_load_empty(struct guest *g)
{
	guest_set_regs(g, 0, EMPTY_GPA, 0);
}

static void collect_ring(struct guest *g, unsigned vcpu)
{
	struct guest_ring *r = &g->ring[vcpu];
	for (;; r->next++) {
		struct kvm_dirty_gfn *e = &r->entry[r->next % g->opts.ring];
		if (!(__atomic_load_n(&e->flags, __ATOMIC_ACQUIRE) & KVM_DIRTY_GFN_F_DIRTY))
			return;
		__atomic_store_n(&e->flags, KVM_DIRTY_GFN_F_RESET, __ATOMIC_RELEASE);
		__atomic_fetch_add(&g->collected, 1, __ATOMIC_RELAXED);
	}
}

void guest_collect_rings(struct guest *g)
{
	for (unsigned i = 0; i < g->opts.vcpus; i++)
		collect_ring(g, i);
}

void guest_reset_rings(struct guest *g)
{
	int n = ioctl(g->vm, KVM_RESET_DIRTY_RINGS, 0);
	if (n < 0)
		die_errno("KVM_RESET_DIRTY_RINGS");
	__atomic_fetch_add(&g->reset, (uint64_t)n, __ATOMIC_RELAXED);
}

void guest_ring_mark(struct guest *g)
{
	g->full = g->collected = g->reset = 0;
}

/* False: an OUT ended the program. */
static bool go_on(struct guest *g, unsigned vcpu)
{
	while (ioctl(g->vcpu[vcpu], KVM_RUN, 0) < 0)
		if (errno != EINTR && errno != EAGAIN)
			die_errno("KVM_RUN");
	uint32_t reason = g->run[vcpu]->exit_reason;
	if (g->with_devices && (reason == KVM_EXIT_MMIO || reason == KVM_EXIT_HLT)) {
		g->mmio += reason == KVM_EXIT_MMIO;
		return true;
	}
	switch (reason) {
	case KVM_EXIT_IO:
		return false;
	case KVM_EXIT_MMIO: /* a store to a slot that is read-only: it goes nowhere */
		if (!g->opts.readonly)
			die("the guest left with an access to a device");
		return true;
	case KVM_EXIT_DIRTY_RING_FULL:
		__atomic_fetch_add(&g->full, 1, __ATOMIC_RELAXED);
		collect_ring(g, vcpu);
		guest_reset_rings(g);
		return true;
	default:
		die("the guest left with exit reason %u, not with its OUT", reason);
	}
}

void guest_run(struct guest *g, unsigned vcpu)
{
	while (go_on(g, vcpu))
		;
}

void guest_log(struct guest *g, bool on)
{
	guest_set_slot(g, 1, TEST_GPA, g->opts.slot_pages * PAGE_BYTES, g->mem,
		       (on ? KVM_MEM_LOG_DIRTY_PAGES : 0) |
			       (g->opts.readonly ? KVM_MEM_READONLY : 0));
}

void guest_get_dirty_log(struct guest *g, uint64_t *bitmap)
{
	struct kvm_dirty_log log = {.slot = 1, .dirty_bitmap = bitmap};
	if (ioctl(g->vm, KVM_GET_DIRTY_LOG, &log) < 0)
		die_errno("KVM_GET_DIRTY_LOG");
}

void guest_clear_dirty_log(struct guest *g, uint64_t chunk, uint64_t *bitmap)
{
	for (uint64_t first = 0; first < g->opts.slot_pages; first += chunk) {
		uint64_t left = g->opts.slot_pages - first;
		struct kvm_clear_dirty_log log = {
			.slot = 1,
			.first_page = first,
			.num_pages = (uint32_t)(left < chunk ? left : chunk),
			.dirty_bitmap = bitmap + first / 64,
		};
		if (ioctl(g->vm, KVM_CLEAR_DIRTY_LOG, &log) < 0)
			die_errno("KVM_CLEAR_DIRTY_LOG");
	}
}

void guest_check_extension(struct guest *g)
{
	if (ioctl(g->vm, KVM_CHECK_EXTENSION, KVM_CAP_USER_MEMORY) <= 0)
		die_errno("KVM_CAP_USER_MEMORY");
}

void guest_dontneed(struct guest *g, uint64_t first, uint64_t n)
{
	if (madvise(g->mem + first * PAGE_BYTES, n * PAGE_BYTES, MADV_DONTNEED) < 0)
		die_errno("madvise");
}

void guest_protect(struct guest *g, uint64_t first, uint64_t n, bool writable)
{
	int prot = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	if (mprotect(g->mem + first * PAGE_BYTES, n * PAGE_BYTES, prot) < 0)
		die_errno("mprotect");
}
