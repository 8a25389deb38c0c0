/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_GUEST_OP_H
#define KVMSIM_GUEST_OP_H

#include <stddef.h>
#include <stdint.h>

/*
 * A recorded guest is one stream of 16-byte ops per vCPU. A workload or a trace reader hands them
 * over in blocks through an op_source; the interpreter (guest/interp.h) retires them on a vCPU.
 */
enum guest_op_kind {
	OP_NONE = 0, /* only the gap: computing */
	OP_READ,     /* arg: guest address (gpa when the stream says so), len bytes */
	OP_WRITE,
	OP_RMW,	      /* read-modify-write: a CPU personality may read first */
	OP_FETCH,     /* instruction fetch */
	OP_MMIO_READ, /* arg: gpa of a device register */
	OP_MMIO_WRITE,
	OP_PIO, /* arg: port, or the instruction's address where the port is unknown */
	OP_INVLPG,
	OP_CR3, /* arg: new root, gpa */
	OP_HLT,
	OP_EPOCH, /* arg: number of the epoch that begins; flags: OPF_PARTIAL */
	OP_MARK,  /* arg: the recorder's mark, 0 = end of a phase */
	OP_LAST
};

#define OPF_PARTIAL 0x01 /* OP_EPOCH: the epoch that ended was cut short by a mark */
#define OPF_VRAM    0x02 /* access: the recorder saw it as device memory */

struct guest_op {
	uint64_t arg;
	uint32_t gap; /* guest instructions retired before this op, since the op before */
	uint16_t len; /* bytes accessed; 0 where not known */
	uint8_t kind;
	uint8_t flags;
};
_Static_assert(sizeof(struct guest_op) == 16, "ops are 16 bytes");

/* A stream of ops. @next gives a block that stays valid until the following call: returns its
 * length, 0 at the end, or a negative enum kvmsim_error. @rewind may be NULL. */
struct op_source {
	long (*next)(void *ctx, const struct guest_op **ops);
	int (*rewind)(void *ctx);
	void *ctx;
};

#endif
