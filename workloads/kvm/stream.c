// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/kvm/stream.h"

#include <stdlib.h>

#include "workloads/kvm/machine.h"

void stream_open(struct stream *s, const struct kvm_player_opts *opts, uint32_t vcpu)
{
	*s = (struct stream){.opts = opts, .vcpu = vcpu};
}

void stream_close(struct stream *s)
{
	free(s->access);
	s->access = NULL;
}

void stream_drop(struct stream *s)
{
	s->first += s->n;
	s->n = 0;
}

static bool in_a_slot(const struct stream *s, uint64_t gpa)
{
	for (uint32_t i = 0; i < s->opts->n_slots; i++) {
		const struct kvm_player_slot *slot = &s->opts->slots[i];

		if ((gpa >> PAGE_SHIFT) - slot->base_gfn < slot->npages)
			return true;
	}
	return false;
}

static int append(struct stream *s, uint64_t access)
{
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 4096;
		uint64_t *grown = realloc(s->access, room * sizeof(*grown));

		if (!grown)
			return KVMSIM_ENOMEM;
		s->access = grown;
		s->room = room;
	}
	s->access[s->n++] = access;
	return 0;
}

/* One access per page, of one byte: what a page table and a dirty log can tell apart. */
static int add_access(struct stream *s, const struct guest_op *op)
{
	uint64_t last = op->arg + (op->len ? op->len - 1u : 0), kind = 0;
	int err = 0;

	if (op->kind == OP_READ || op->kind == OP_FETCH)
		kind = ACCESS_READ;
	else if (op->kind == OP_RMW)
		kind = ACCESS_RMW;
	for (uint64_t at = op->arg; !err && at <= last; at = (at | (PAGE_BYTES - 1)) + 1) {
		if (in_a_slot(s, at))
			err = append(s, at | kind);
		else
			s->skipped++;
	}
	return err;
}

static int take(struct stream *s, const struct guest_op *op)
{
	switch (op->kind) {
	case OP_READ:
	case OP_FETCH:
	case OP_WRITE:
	case OP_RMW:
		return add_access(s, op);
	case OP_EPOCH:
		s->ended = op->arg;
		s->open = true;
		return 0;
	case OP_MARK:
		s->ended += op->arg == 0 && s->open;
		s->open &= op->arg != 0;
		return 0;
	case OP_NONE:
		return 0;
	default:
		s->skipped++;
		return 0;
	}
}

int stream_read(struct stream *s, uint64_t epochs)
{
	const struct op_source *from = &s->opts->sources[s->vcpu];

	while (!s->finished && s->ended < epochs) {
		size_t began = s->at;
		int err = 0;

		if (s->at == s->n_ops) {
			long n = from->next(from->ctx, &s->ops);

			if (n < 0)
				return (int)n;
			s->n_ops = (size_t)n;
			s->at = 0;
			s->finished = !n;
			continue;
		}
		while (!err && s->at < s->n_ops && s->ended < epochs)
			err = take(s, &s->ops[s->at++]);
		if (!err && s->opts->played)
			err = s->opts->played(s->opts->ctx, s->vcpu, s->ops + began, s->at - began);
		if (err)
			return err;
	}
	return 0;
}
