// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What QEMU's plugin tells locks.c: each block that a vCPU begins, and of the kernel's (upper half
 * of the addresses) the stores of instructions with a LOCK prefix and of a zero byte. What of that
 * is about locks is known only when it runs, since code is translated before the guest has named
 * its symbols.
 */
#include "workloads/qemu/plugin_locks.h"

#include <stdlib.h>

#include "workloads/qemu/locks.h"
#include "workloads/qemu/qemu_api.h"

struct store {
	uint64_t pc;
	uint32_t rest; /* instructions of the block from it on */
	bool atomic;
};

static struct locks *to;

static void on_block(unsigned vcpu, void *data)
{
	if (vcpu < LOCKS_VCPUS)
		locks_run(to, vcpu, data);
}

static void on_store(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	const struct store *s = data;

	if (vcpu < LOCKS_VCPUS && to->phase && qemu_plugin_mem_is_store(info))
		locks_store(to, vcpu, s->pc, s->atomic, s->rest, vaddr);
}

static int32_t rel32(const uint8_t *c)
{
	int32_t rel;

	memcpy(&rel, c, sizeof(rel));
	return rel;
}

/* Where the block's last instruction, @c of @len bytes, leads. */
static void look_at_last(struct locks_block *b, const uint8_t *c, size_t len)
{
	uint64_t next = b->last + len;
	size_t i = 0;

	/* segment, operand size, repeat, REX */
	while (i + 1 < len && (c[i] == 0x2e || c[i] == 0x3e || c[i] == 0x66 || c[i] == 0xf2 ||
			       c[i] == 0xf3 || (c[i] & 0xf0) == 0x40))
		i++;
	if ((c[i] == 0xe8 || c[i] == 0xe9) && i + 5 == len) /* CALL, JMP */
		b->to = next + rel32(c + i + 1);
	else if (c[i] == 0x0f && (c[i + 1] & 0xf0) == 0x80 && i + 6 == len) /* Jcc */
		b->to = next + rel32(c + i + 2);
	else if ((c[i] == 0xeb || (c[i] & 0xf0) == 0x70) && i + 2 == len) /* JMP, Jcc */
		b->to = next + (int8_t)c[i + 1];
	else if (c[i] == 0xff) /* CALL /2, JMP /4 */
		b->calls = (c[i + 1] & 0x38) == 0x10 || (c[i + 1] & 0x38) == 0x20;
	b->returns = c[i] == 0xc3 || c[i] == 0xc2;
	b->irets = c[i] == 0xcf;
}

static bool stores_zero(const uint8_t *c, size_t len)
{
	size_t i = len > 1 && (c[0] & 0xf0) == 0x40; /* REX */

	/* MOV of an immediate byte to memory */
	return c[i] == 0xc6 && (c[i + 1] & 0x38) == 0 && c[i + 1] < 0xc0 && c[len - 1] == 0;
}

void plugin_locks_translate(struct locks *l, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct locks_block *b =
		calloc(1, sizeof(*b)); /* for good: QEMU does not say when it ends */

	if (!b || !n)
		abort();
	to = l;
	b->n = n;
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t pc = qemu_plugin_insn_vaddr(insn);
		uint8_t code[16] = {0};
		size_t len = qemu_insn_bytes(insn, code, sizeof(code));
		bool atomic = code[0] == 0xf0;

		if (i == 0)
			b->start = pc;
		b->last = pc;
		if (i == n - 1)
			look_at_last(b, code, len);
		if (pc >> 63 && (atomic || stores_zero(code, len))) {
			struct store *s = malloc(sizeof(*s));

			if (!s)
				abort();
			*s = (struct store){.pc = pc, .rest = n - i, .atomic = atomic};
			qemu_plugin_register_vcpu_mem_cb(insn, on_store, QEMU_CB_NO_REGS,
							 QEMU_MEM_STORES, s);
		}
	}
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_CB_NO_REGS, b);
}
