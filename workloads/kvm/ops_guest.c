// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/kvm/ops_guest.h"

#include <errno.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>

#define SLOT0_BYTES (MX_SLOT0_PAGES * PAGE_BYTES)
#define HUGE_BYTES  0x200000ull
#define LIST_BYTES  (MX_VCPU_ENTRIES * 4) /* of a vCPU */
#define OP_BYTES    16u

/* In the code's page, after the interpreter. */
#define TSS	    0x1800ull
#define KERNEL_CODE 0x1900ull

/* Ports: the list is through; what the supervisor is to do; it has done it. */
#define PORT_DONE   0x10
#define PORT_INVLPG 0x11
#define PORT_CR3    0x12
#define PORT_HLT    0x13
#define PORT_BACK   0x14

/* lodsl; mov (%rax),%edx; loop; out: RSI is the list of 32-bit addresses, RCX its length. */
static const uint8_t read_code[] = {0xad, 0x8b, 0x10, 0xe2, 0xfb, 0xe6, PORT_DONE};

/* RSI: the next op {u32 what, u32 address, u64 value}. The number counts down to the op's branch;
 * what has none ends the list. */
extern const uint8_t ops_code[], ops_code_end[];
__asm__(".pushsection .rodata\n"
	"ops_code:\n"
	"1:	mov (%rsi),%eax\n"
	"	mov 4(%rsi),%edi\n"
	"	mov 8(%rsi),%rdx\n"
	"	add $16,%rsi\n"
	"	.irp op, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20\n"
	"	dec %eax\n"
	"	jz \\op\\()f\n"
	"	.endr\n"
	"	out %al,$0x10\n"
	"	jmp 1b\n"
	"11:	mov (%rdi),%ecx\n"
	"	jmp 1b\n"
	"12:	mov %edx,(%rdi)\n"
	"	jmp 1b\n"
	"13:	mov %rdx,(%rdi)\n"
	"	jmp 1b\n"
	"14:	out %al,$0x11\n"
	"	jmp 1b\n"
	"15:	out %al,$0x12\n"
	"	jmp 1b\n"
	"16:	mov %dl,(%rdi)\n"
	"	jmp 1b\n"
	"17:	xchg %rdx,(%rdi)\n"
	"	jmp 1b\n"
	"18:	out %al,$0x13\n"
	"	jmp 1b\n"
	"19:	incl (%rdi)\n"
	"	jmp 1b\n"
	"20:	mov %dx,(%rdi)\n"
	"	jmp 1b\n"
	"ops_code_end:\n"
	".popsection\n");

/* What runs at CPL0, by port. */
static const struct {
	uint8_t port, bytes[8];
} kernel_code[] = {
	{PORT_INVLPG, {0x0f, 0x01, 0x3f, 0xe6, PORT_BACK}}, /* invlpg (%rdi); out */
	{PORT_CR3, {0x0f, 0x22, 0xda, 0xe6, PORT_BACK}},    /* mov %rdx,%cr3; out */
	{PORT_HLT, {0xf4, 0xe6, PORT_BACK}},		    /* hlt; out */
};
#define N_KERNEL_CODE (sizeof(kernel_code) / sizeof(kernel_code[0]))

/* ---- memory ---- */

uint8_t *ops_guest_low(struct ops_guest *g, uint64_t gpa, uint64_t bytes)
{
	return gpa <= SLOT0_BYTES - bytes ? g->m->slots[0].host + gpa : NULL;
}

static void put(struct ops_guest *g, uint64_t gpa, uint64_t value)
{
	memcpy(g->m->slots[0].host + gpa, &value, sizeof(value));
}

static void fill_table(struct ops_guest *g, uint64_t table, uint64_t gva)
{
	for (uint64_t i = 0; i < 512; i++)
		put(g, table + i * 8, (gva + (i << PAGE_SHIFT)) | MX_LEAF_4K);
	put(g, MX_PD(gva >> 30) + (gva >> 21 & 511) * 8, table | MX_TABLE_ENTRY);
}

static void build_tables(struct ops_guest *g, uint64_t slot_pages, bool guest_2m)
{
	put(g, MX_PML4, MX_PDPT | MX_TABLE_ENTRY);
	for (uint64_t gib = 0; gib < 4; gib++)
		put(g, MX_PDPT + gib * 8, MX_PD(gib) | MX_TABLE_ENTRY);
	if (guest_2m) {
		for (uint64_t gva = 0; gva < 1ull << 32; gva += HUGE_BYTES)
			put(g, MX_PD(gva >> 30) + (gva >> 21 & 511) * 8, gva | MX_LEAF_2M);
		return;
	}
	fill_table(g, MX_PT_LOW, 0);
	for (uint64_t c = 0; c * 512 < slot_pages; c++)
		fill_table(g, MX_PT_TEST(c), MX_TEST + c * HUGE_BYTES);
	fill_table(g, MX_PT_MMIO, MX_MMIO);
}

static void put_code(struct ops_guest *g)
{
	uint8_t *low = g->m->slots[0].host;

	memcpy(low + MX_CODE_READ, read_code, sizeof(read_code));
	memcpy(low + MX_CODE_OPS, ops_code, (size_t)(ops_code_end - ops_code));
	machine_put_tss(low + TSS);
	for (size_t i = 0; i < N_KERNEL_CODE; i++)
		memcpy(low + KERNEL_CODE + i * sizeof(kernel_code[0].bytes), kernel_code[i].bytes,
		       sizeof(kernel_code[0].bytes));
}

static int map(struct ops_guest *g, uint32_t slot, uint64_t bytes)
{
	int err = machine_map(g->m, &g->m->slots[slot], bytes, false);

	if (!err)
		machine_touch_memory(&g->m->slots[slot]);
	return err;
}

int ops_guest_slot(struct ops_guest *g, uint32_t slot, uint64_t gpa, uint64_t pages, uint32_t flags)
{
	struct machine_memory *mem;
	int err = 0;

	if (slot >= OPS_SLOTS)
		return kvmsim_err(g->opts.errors, KVMSIM_EINVAL, "slot %u: expected less than %u",
				  slot, OPS_SLOTS);
	mem = &g->m->slots[slot];
	if (!mem->host)
		err = map(g, slot, OPS_MORE_PAGES * PAGE_BYTES);
	if (!err && pages * PAGE_BYTES > mem->bytes)
		err = kvmsim_err(g->opts.errors, KVMSIM_EINVAL, "slot %u: it has %llu pages", slot,
				 (unsigned long long)(mem->bytes / PAGE_BYTES));
	err = err ? err : machine_set_slot(g->m, slot, gpa, pages * PAGE_BYTES, mem, flags);
	if (!err)
		g->npages[slot] = pages;
	return err;
}

int ops_guest_open(struct ops_guest *g, uint64_t slot_pages, bool guest_2m, uint32_t flags,
		   uint32_t vcpus, const struct kvmsim_errsink *errors)
{
	int err;

	memset(g->npages, 0, sizeof(g->npages));
	g->opts = (struct kvm_player_opts){.n_vcpus = vcpus, .errors = errors};
	err = machine_make_vm(&g->opts, &g->m);
	err = err ? err : map(g, 0, SLOT0_BYTES);
	err = err ? err : map(g, MX_SLOT, slot_pages * PAGE_BYTES);
	if (err)
		return err;
	memset(g->m->slots[0].host, 0, SLOT0_BYTES);
	build_tables(g, slot_pages, guest_2m);
	put_code(g);
	err = ops_guest_slot(g, 0, 0, MX_SLOT0_PAGES, 0);
	err = err ? err : ops_guest_slot(g, MX_SLOT, MX_TEST, slot_pages, flags);
	for (uint32_t i = 0; !err && i < vcpus; i++)
		err = machine_add_vcpu(g->m, i, MX_PML4, TSS);
	return err;
}

void ops_guest_close(struct ops_guest *g)
{
	machine_close(g->m);
	g->m = NULL;
}

/* ---- registers ---- */

static int set_regs(struct ops_guest *g, uint32_t vcpu, uint64_t rip, uint64_t count)
{
	struct kvm_regs regs = {
		.rip = rip,
		.rsi = MX_LIST + vcpu * LIST_BYTES,
		.rcx = count,
		.rflags = MACHINE_RFLAGS,
	};

	g->mmio = 0;
	return machine_ioctl(g->m, g->m->vcpus[vcpu].fd, KVM_SET_REGS, &regs, "KVM_SET_REGS");
}

int ops_guest_load_setup(struct ops_guest *g)
{
	for (uint64_t i = 0; i < MX_LIST_PAGES; i++) {
		uint32_t address = (uint32_t)(MX_LIST + i * PAGE_BYTES);

		memcpy(g->m->slots[0].host + MX_LIST + i * sizeof(address), &address,
		       sizeof(address));
	}
	return set_regs(g, 0, MX_CODE_READ, MX_LIST_PAGES);
}

void ops_guest_list(struct ops_guest *g, uint32_t vcpu)
{
	g->at = MX_LIST + vcpu * LIST_BYTES;
}

int ops_guest_append(struct ops_guest *g, enum mx_op what, uint64_t address, uint64_t value)
{
	uint8_t *host = g->m->slots[0].host + g->at;
	uint32_t head[2] = {what, (uint32_t)address};

	if (g->at + OP_BYTES > MX_LIST + MX_LIST_PAGES * PAGE_BYTES)
		return kvmsim_err(g->opts.errors, KVMSIM_EINVAL,
				  "more ops than the guest's list has room for");
	memcpy(host, head, sizeof(head));
	memcpy(host + sizeof(head), &value, sizeof(value));
	g->at += OP_BYTES;
	return 0;
}

int ops_guest_load(struct ops_guest *g, uint32_t vcpu)
{
	int err = ops_guest_append(g, MX_OP_OUT, 0, 0);

	return err ? err : set_regs(g, vcpu, MX_CODE_OPS, 0);
}

/* ---- running ---- */

/* Until an OUT, whose port it returns, or an error. */
static int enter(struct ops_guest *g, uint32_t vcpu)
{
	const struct machine_vcpu *v = &g->m->vcpus[vcpu];
	int err = 0;

	while (!err) {
		if (ioctl(v->fd, KVM_RUN, 0) < 0) {
			if (errno != EINTR && errno != EAGAIN)
				return kvmsim_err(g->opts.errors, KVMSIM_EIO, "KVM_RUN: %s",
						  strerror(errno));
			err = g->may_go_on ? g->may_go_on(g->ctx) : 0;
			continue;
		}
		switch (v->run->exit_reason) {
		case KVM_EXIT_IO:
			return v->run->io.port;
		case KVM_EXIT_MMIO:
			g->mmio++;
			break;
		case KVM_EXIT_HLT:
			break;
		case KVM_EXIT_SHUTDOWN:
			return kvmsim_err(g->opts.errors, KVMSIM_EUNSUPPORTED,
					  "the guest faulted: at CPL3 it reaches no page of the "
					  "supervisor, and it has no handler");
		default:
			return kvmsim_err(g->opts.errors, KVMSIM_EIO,
					  "the guest left KVM_RUN with exit reason %u",
					  v->run->exit_reason);
		}
	}
	return err;
}

/* An OUT is done when the vCPU is entered again: that is due before its registers are read. */
static int finish_out(struct ops_guest *g, uint32_t vcpu)
{
	const struct machine_vcpu *v = &g->m->vcpus[vcpu];
	int ret;

	v->run->immediate_exit = 1;
	ret = ioctl(v->fd, KVM_RUN, 0);
	v->run->immediate_exit = 0;
	if (ret == 0 || (errno != EINTR && errno != EAGAIN))
		return kvmsim_err(g->opts.errors, KVMSIM_EIO, "KVM_RUN with immediate_exit: %s",
				  ret ? strerror(errno) : "it did not return at once");
	return 0;
}

static int change_level(struct ops_guest *g, uint32_t vcpu, bool user)
{
	int fd = g->m->vcpus[vcpu].fd, err;
	struct kvm_sregs s;

	err = machine_ioctl(g->m, fd, KVM_GET_SREGS, &s, "KVM_GET_SREGS");
	if (err < 0)
		return err;
	s.cs.dpl = s.ss.dpl = user ? 3 : 0;
	s.cs.selector = (uint16_t)((s.cs.selector & ~3) | s.cs.dpl);
	s.ss.selector = (uint16_t)((s.ss.selector & ~3) | s.ss.dpl);
	return machine_ioctl(g->m, fd, KVM_SET_SREGS, &s, "KVM_SET_SREGS");
}

/* The instruction that @port asks for, at CPL0; then the guest goes on after its OUT. */
static int supervise(struct ops_guest *g, uint32_t vcpu, int port)
{
	int fd = g->m->vcpus[vcpu].fd, err = finish_out(g, vcpu);
	struct kvm_regs user, kernel;
	size_t i = 0;

	while (i < N_KERNEL_CODE && kernel_code[i].port != port)
		i++;
	if (i == N_KERNEL_CODE)
		return kvmsim_err(g->opts.errors, KVMSIM_EIO, "the guest's OUT to port %d", port);
	err = err ? err : machine_ioctl(g->m, fd, KVM_GET_REGS, &user, "KVM_GET_REGS");
	if (err < 0)
		return err;
	kernel = user;
	kernel.rip = KERNEL_CODE + i * sizeof(kernel_code[0].bytes);
	err = change_level(g, vcpu, false);
	err = err < 0 ? err : machine_ioctl(g->m, fd, KVM_SET_REGS, &kernel, "KVM_SET_REGS");
	err = err < 0 ? err : enter(g, vcpu);
	if (err < 0)
		return err;
	if (err != PORT_BACK)
		return kvmsim_err(g->opts.errors, KVMSIM_EIO, "the supervisor's OUT to port %d",
				  err);
	err = finish_out(g, vcpu);
	err = err < 0 ? err : change_level(g, vcpu, true);
	return err < 0 ? err : machine_ioctl(g->m, fd, KVM_SET_REGS, &user, "KVM_SET_REGS");
}

int ops_guest_run(struct ops_guest *g, uint32_t vcpu)
{
	int port;

	while ((port = enter(g, vcpu)) >= 0 && port != PORT_DONE) {
		int err = supervise(g, vcpu, port);

		if (err < 0)
			return err;
	}
	return port < 0 ? port : 0;
}
