// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/guest_ops.h"

#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>

#include "tests/kernel/vmm.h"

#define SLOT0_BYTES (MX_SLOT0_PAGES * PAGE_BYTES)
#define OP_BYTES    16u

/*
 * RSI: the next op {u32 what, u32 address, u64 value}. The number counts down to the op's branch;
 * what has none is OUT. workloads/matrix_interp.c knows where each access is.
 */
extern const uint8_t interp64[], interp64_end[], interp32[], interp32_end[];
__asm__(".pushsection .rodata\n"
	".code64\n"
	"interp64:\n"
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
	"14:	invlpg (%rdi)\n"
	"	jmp 1b\n"
	"15:	mov %rdx,%cr3\n"
	"	jmp 1b\n"
	"16:	mov %dl,(%rdi)\n"
	"	jmp 1b\n"
	"17:	xchg %rdx,(%rdi)\n"
	"	jmp 1b\n"
	"18:	hlt\n"
	"	jmp 1b\n"
	"19:	incl (%rdi)\n"
	"	jmp 1b\n"
	"20:	mov %dx,(%rdi)\n"
	"	jmp 1b\n"
	"interp64_end:\n"
	".code32\n"
	"interp32:\n"
	"1:	mov (%esi),%eax\n"
	"	mov 4(%esi),%edi\n"
	"	mov 8(%esi),%edx\n"
	"	add $16,%esi\n"
	"	dec %eax\n"
	"	jz 11f\n"
	"	dec %eax\n"
	"	jz 12f\n"
	"	dec %eax\n" /* no write8, invlpg, cr3 */
	"	dec %eax\n"
	"	dec %eax\n"
	"	dec %eax\n"
	"	jz 16f\n"
	"	dec %eax\n" /* no xchg8 */
	"	dec %eax\n"
	"	jz 18f\n"
	"	dec %eax\n"
	"	jz 19f\n"
	"	dec %eax\n"
	"	jz 20f\n"
	"	out %al,$0x10\n"
	"	jmp 1b\n"
	"11:	mov (%edi),%ecx\n"
	"	jmp 1b\n"
	"12:	mov %edx,(%edi)\n"
	"	jmp 1b\n"
	"16:	mov %dl,(%edi)\n"
	"	jmp 1b\n"
	"18:	hlt\n"
	"	jmp 1b\n"
	"19:	incl (%edi)\n"
	"	jmp 1b\n"
	"20:	mov %dx,(%edi)\n"
	"	jmp 1b\n"
	"interp32_end:\n"
	".code64\n"
	".popsection\n");

void guest_ops_init(struct guest *g)
{
	if (g->opts.kind == GUEST_LONG64)
		memcpy(g->low + MX_CODE_OPS, interp64, (size_t)(interp64_end - interp64));
	else if (g->opts.kind == GUEST_FLAT32)
		memcpy(g->low + MX_CODE_OPS, interp32, (size_t)(interp32_end - interp32));
	else
		die("op programs are for 64-bit guests and those that do not page");
	g->with_devices = true;
}

void guest_ops_append(struct guest_ops *o, enum mx_op what, uint64_t address, uint64_t value)
{
	uint64_t offset = o->vcpu * MX_VCPU_ENTRIES * 4 + o->n++ * OP_BYTES;
	uint32_t head[2] = {what, (uint32_t)address};
	if (offset + OP_BYTES > MX_LIST_PAGES * PAGE_BYTES)
		die("more ops than the list has room for");
	memcpy(o->guest->low + MX_LIST + offset, head, sizeof(head));
	memcpy(o->guest->low + MX_LIST + offset + sizeof(head), &value, sizeof(value));
}

void guest_ops_load(struct guest_ops *o)
{
	guest_ops_append(o, MX_OP_OUT, 0, 0);
	o->guest->mmio = 0;
	guest_set_regs(o->guest, o->vcpu, MX_CODE_OPS, 0);
}

uint8_t *guest_slot_memory(struct guest *g, uint32_t slot, uint64_t pages)
{
	if (slot < 2)
		return slot ? g->mem : g->low;
	if (slot - 2 >= GUEST_MORE_SLOTS || pages > GUEST_MORE_PAGES)
		die("slot %u: at most %u more slots of %u pages", slot, GUEST_MORE_SLOTS,
		    GUEST_MORE_PAGES);
	if (!g->more[slot - 2])
		g->more[slot - 2] = guest_map_memory(GUEST_MORE_PAGES * PAGE_BYTES, false, true);
	return g->more[slot - 2];
}

void guest_limit_mmu_pages(struct guest *g, uint64_t n)
{
	if (ioctl(g->vm, KVM_SET_NR_MMU_PAGES, n) < 0)
		die_errno("KVM_SET_NR_MMU_PAGES");
}

void guest_get_slot_log(struct guest *g, uint32_t slot, uint64_t *bitmap)
{
	struct kvm_dirty_log log = {.slot = slot, .dirty_bitmap = bitmap};
	if (ioctl(g->vm, KVM_GET_DIRTY_LOG, &log) < 0)
		die_errno("KVM_GET_DIRTY_LOG");
}

static uint8_t *low_at(struct guest *g, uint64_t gpa, uint64_t bytes)
{
	if (gpa > SLOT0_BYTES - bytes)
		die("%#llx is not in slot 0", (unsigned long long)gpa);
	return g->low + gpa;
}

void guest_host_store(struct guest *g, uint64_t gpa, uint64_t value)
{
	memcpy(low_at(g, gpa, sizeof(value)), &value, sizeof(value));
}

void guest_host_copy_page(struct guest *g, uint64_t to, uint64_t from)
{
	memmove(low_at(g, to, PAGE_BYTES), low_at(g, from, PAGE_BYTES), PAGE_BYTES);
}
