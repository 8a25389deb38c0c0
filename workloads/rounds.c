// SPDX-License-Identifier: GPL-3.0-or-later
/* Turns a workload's rounds into streams of ops. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/sim/rng.h"
#include "workloads/scenario.h"

struct round_ops {
	struct guest_op *ops;
	size_t n, room;
	uint64_t base_gpa; /* of the target slot */
	uint64_t waiting;  /* instructions' time of all waits; their ops have OP_NONE */
	bool failed;	   /* no memory */
};

struct generator {
	const struct scenario *s;
	uint32_t vcpu, replicate;
	uint64_t seed, round;
	struct rng rng;
	struct round_ops out;
};

static struct guest_op *append(struct round_ops *out)
{
	if (out->n == out->room) {
		size_t room = out->room ? 2 * out->room : 1024;
		struct guest_op *grown = realloc(out->ops, room * sizeof(*grown));

		if (!grown) {
			out->failed = true;
			return NULL;
		}
		out->ops = grown;
		out->room = room;
	}
	return &out->ops[out->n++];
}

void round_access(struct round_ops *out, enum guest_op_kind kind, uint64_t offset, uint16_t len)
{
	struct guest_op *op = append(out);

	if (op)
		*op = (struct guest_op){.arg = out->base_gpa + offset, .len = len, .kind = kind};
}

void round_device(struct round_ops *out, enum guest_op_kind kind, uint64_t at, uint16_t len)
{
	struct guest_op *op = append(out);

	if (op)
		*op = (struct guest_op){.arg = at, .len = len, .kind = kind};
}

void round_wait(struct round_ops *out, uint32_t insns)
{
	struct guest_op *op = append(out);

	if (op)
		*op = (struct guest_op){.gap = insns, .kind = OP_NONE};
	out->waiting += insns;
}

int scenario_check_round(const struct scenario *s, uint64_t accesses,
			 const struct kvmsim_errsink *errors)
{
	if (accesses <= SCENARIO_MAX_ACCESSES)
		return 0;
	return kvmsim_err(errors, KVMSIM_EPARSE,
			  "%s: a round may make %" PRIu64 " accesses; at most %llu are possible",
			  s->name, accesses, SCENARIO_MAX_ACCESSES);
}

static void restart(struct generator *g)
{
	char name[32];

	snprintf(name, sizeof(name), "guest.vcpu%u", g->vcpu);
	rng_init(&g->rng, g->seed, g->replicate, name);
	g->round = 0;
}

static long generate(void *ctx, const struct guest_op **ops)
{
	struct generator *g = ctx;
	struct rng common;

	if (g->round == g->s->n_rounds)
		return 0;
	rng_init(&common, g->seed, g->replicate, "guest.common");
	g->out.n = 0;
	g->out.waiting = 0;
	struct guest_op *op = append(&g->out);

	if (op)
		*op = (struct guest_op){.arg = g->round, .kind = OP_EPOCH};
	g->s->workload->round(g->s, g->vcpu, g->round, &g->rng, &common, &g->out);
	g->round++;

	/* the round's instructions but those of waits are spread evenly over the accesses and the
	 * end */
	uint64_t left = g->s->interval - g->out.waiting;
	uint64_t gap = left / (g->out.n ? g->out.n : 1);

	for (size_t i = 1; i < g->out.n; i++) {
		g->out.ops[i].gap += (uint32_t)gap;
		left -= gap;
	}
	uint64_t rest = left;

	op = append(&g->out);
	if (g->out.failed)
		return KVMSIM_ENOMEM;
	/* as in a recorded trace: an epoch begins with its op, the last one ends with a mark */
	*op = (struct guest_op){.gap = (uint32_t)rest,
				.kind = g->round == g->s->n_rounds ? OP_MARK : OP_NONE};
	*ops = g->out.ops;
	return (long)g->out.n;
}

static int rewind_rounds(void *ctx)
{
	restart(ctx);
	return 0;
}

int scenario_source(const struct scenario *s, uint32_t vcpu, uint64_t seed, uint32_t replicate,
		    struct op_source *out)
{
	if (vcpu >= s->n_vcpus)
		return KVMSIM_EINVAL;
	struct generator *g = calloc(1, sizeof(*g));

	if (!g)
		return KVMSIM_ENOMEM;
	g->s = s;
	g->vcpu = vcpu;
	g->seed = seed;
	g->replicate = replicate;
	g->out.base_gpa = s->slots[s->target].base_gfn << 12;
	restart(g);
	*out = (struct op_source){.next = generate, .rewind = rewind_rounds, .ctx = g};
	return 0;
}

void scenario_source_free(struct op_source *src)
{
	struct generator *g = src->ctx;

	if (g)
		free(g->out.ops);
	free(g);
	src->ctx = NULL;
}
