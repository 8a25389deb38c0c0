// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/record_ops.h"

#include <inttypes.h>
#include <string.h>

#include "tests/kernel/guest_ops.h"
#include "tests/kernel/vmm.h"

static int append(void *ctx, const struct ops_statement *s, const struct ops_values *v)
{
	guest_ops_append(ctx, s->access, s->n_args ? ops_value(s->arg[0], v) : 0,
			 s->n_args > 1 ? ops_value(s->arg[1], v) : 0);
	return 0;
}

static void run(struct recorder *r, const struct ops_statement *s, const struct ops_values *v)
{
	struct guest_ops ops = {.guest = &r->guest, .vcpu = s->vcpu};
	ops_walk_run(r->opts.ops, s, v, append, &ops);
	guest_ops_load(&ops);
	recorder_run(r, s->vcpu, s->phase);
	if (r->guest.mmio)
		phase_result(r, "res:user_mmio_exits", r->guest.mmio);
}

static void get(struct recorder *r, const struct ops_statement *s, uint32_t slot)
{
	uint64_t n = 0, start;
	memset(r->bitmap, 0, sizeof(r->bitmap));
	phase_begin(r, s->phase);
	start = read_tsc();
	guest_get_slot_log(&r->guest, slot, r->bitmap);
	phase_end(r, read_tsc() - start);
	for (size_t i = 0; i < BITMAP_WORDS; i++)
		n += (uint64_t)__builtin_popcountll(r->bitmap[i]);
	phase_result(r, "res:ndirty", n);
}

static void new_vm(struct recorder *r, const struct ops_statement *s)
{
	const struct statement vm = {.op = OP_VM, .vcpus = s->vcpus, .logged = s->logged};
	recorder_new_vm(r, &vm);
	guest_ops_init(&r->guest);
}

static void change_slot(struct recorder *r, const struct ops_statement *s,
			const struct ops_values *v)
{
	uint32_t slot = (uint32_t)ops_value(s->arg[0], v);
	uint64_t gpa = ops_value(s->arg[1], v), pages = ops_value(s->arg[2], v), start;
	uint8_t *memory = guest_slot_memory(&r->guest, slot, pages);
	phase_begin(r, s->phase);
	start = read_tsc();
	guest_set_slot(&r->guest, slot, gpa, pages * PAGE_BYTES, memory, s->flags);
	phase_end(r, read_tsc() - start);
}

static int execute(void *ctx, const struct ops_statement *s, const struct ops_values *v)
{
	struct recorder *r = ctx;
	uint64_t first = s->n_args ? ops_value(s->arg[0], v) : 0, start;
	now_doing(r->opts.ops->path, s->line, s->phase);
	switch (s->what) {
	case OPS_VM:
		new_vm(r, s);
		break;
	case OPS_SETUP:
		guest_load_setup(&r->guest);
		recorder_run(r, 0, "setup");
		break;
	case OPS_RUN:
		run(r, s, v);
		break;
	case OPS_SLOT:
		change_slot(r, s, v);
		break;
	case OPS_LIMIT:
		phase_begin(r, s->phase);
		start = read_tsc();
		guest_limit_mmu_pages(&r->guest, first);
		phase_end(r, read_tsc() - start);
		break;
	case OPS_GET:
		get(r, s, (uint32_t)first);
		break;
	case OPS_SET:
		guest_host_store(&r->guest, first, ops_value(s->arg[1], v));
		break;
	case OPS_COPY:
		guest_host_copy_page(&r->guest, first, ops_value(s->arg[1], v));
		break;
	case OPS_ROUND:
		r->round = s->n_args ? (int)first : -1;
		break;
	case OPS_NUMBER:
		r->nr_dirty = s->n_args ? (int64_t)first : -1;
		break;
	case OPS_FOR:
	case OPS_END:
	case OPS_ACCESS:
		break; /* ops_walk() */
	}
	return 0;
}

void record_ops(struct recorder *r)
{
	ops_walk(r->opts.ops, r->opts.slot_pages, execute, r);
}
