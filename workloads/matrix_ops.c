// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "workloads/matrix_interp.h"
#include "workloads/ops_program.h"

/*
 * An op program on the model. Its loops are unrolled first, so that its VMs come one after the
 * other, each with the statements up to the next.
 */

#define SLOTS	     8
#define UNROLLED_MAX 65536

struct mx_unrolled {
	struct {
		const struct ops_statement *s;
		struct ops_values v;
	} * item;
	size_t n, room, at;
	uint64_t slot_pages[SLOTS]; /* as they are now */
};

static int unroll(void *ctx, const struct ops_statement *s, const struct ops_values *v)
{
	struct mx_unrolled *u = ctx;

	if (u->n == u->room) {
		size_t room = u->room ? 2 * u->room : 64;
		void *grown =
			room > UNROLLED_MAX ? NULL : realloc(u->item, room * sizeof(*u->item));

		if (!grown)
			return KVMSIM_ENOMEM;
		u->item = grown;
		u->room = room;
	}
	u->item[u->n].s = s;
	u->item[u->n++].v = *v;
	return 0;
}

static int complain(struct matrix *m, const struct ops_statement *s, const char *what)
{
	return kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED, "case %s, line %u of its program: %s",
			  m->o->test_case, s->line, what);
}

static int append(void *ctx, const struct ops_statement *s, const struct ops_values *v)
{
	struct matrix *m = ctx;

	mx_op(m, (enum mx_op)s->access, s->n_args ? ops_value(s->arg[0], v) : 0,
	      s->n_args > 1 ? ops_value(s->arg[1], v) : 0);
	return 0;
}

static int run(struct matrix *m, const struct ops_statement *s, const struct ops_values *v)
{
	int err;

	if (!m->vcpus[s->vcpu])
		return complain(m, s, "no such vCPU");
	mx_ops(m, m->vcpus[s->vcpu]);
	err = ops_walk_run(m->o->program, s, v, append, m);
	return err ? err : mx_ops_run(m, s->phase);
}

static int slot(struct matrix *m, const struct ops_statement *s, const struct ops_values *v)
{
	const struct kvm_memory_region r = {.slot = (uint32_t)ops_value(s->arg[0], v),
					    .flags = s->flags,
					    .base_gfn = ops_value(s->arg[1], v) >> 12,
					    .npages = ops_value(s->arg[2], v),
					    .host_populated = true};
	int err;

	if (r.slot >= SLOTS)
		return complain(m, s, "no such slot");
	mx_begin(m, s->phase);
	err = kvm_set_user_memory_region(m->t, m->kvm, &r);
	if (err)
		return complain(m, s, "the slot cannot become that");
	m->unrolled->slot_pages[r.slot] = r.npages;
	return mx_end(m, NULL, 0);
}

static int get(struct matrix *m, const struct ops_statement *s, const struct ops_values *v)
{
	uint64_t number = ops_value(s->arg[0], v);

	if (number >= SLOTS || !m->unrolled->slot_pages[number])
		return complain(m, s, "no such slot");
	return mx_get_slot(m, s->phase, (uint32_t)number, m->unrolled->slot_pages[number]);
}

static int limit(struct matrix *m, const struct ops_statement *s, const struct ops_values *v)
{
	int err;

	mx_begin(m, s->phase);
	err = kvm_set_nr_mmu_pages(m->t, m->kvm, ops_value(s->arg[0], v));
	return err ? err : mx_end(m, NULL, 0);
}

static void copy_page(struct matrix *m, uint64_t to, uint64_t from)
{
	for (uint64_t i = 0; i < 4096; i += 8)
		kvm_write_guest_u64(m->kvm, to + i, kvm_read_guest_u64(m->kvm, from + i));
}

static int statement(struct matrix *m, const struct ops_statement *s, const struct ops_values *v)
{
	int64_t number = s->n_args ? (int64_t)ops_value(s->arg[0], v) : MATRIX_NONE;

	switch (s->what) {
	case OPS_RUN:
		return run(m, s, v);
	case OPS_SLOT:
		return slot(m, s, v);
	case OPS_LIMIT:
		return limit(m, s, v);
	case OPS_GET:
		return get(m, s, v);
	case OPS_SET:
		kvm_write_guest_u64(m->kvm, (uint64_t)number, ops_value(s->arg[1], v));
		return 0;
	case OPS_COPY:
		copy_page(m, (uint64_t)number, ops_value(s->arg[1], v));
		return 0;
	case OPS_ROUND:
		mx_key(m, MATRIX_NO_PATTERN, m->nr_dirty, number);
		return 0;
	case OPS_NUMBER:
		mx_key(m, MATRIX_NO_PATTERN, number, m->round);
		return 0;
	default:
		return complain(m, s, "not here");
	}
}

/* Statements up to the next VM, or up to setup. */
static int statements(struct matrix *m, bool to_setup)
{
	struct mx_unrolled *u = m->unrolled;
	int err = 0;

	for (; u->at < u->n && u->item[u->at].s->what != OPS_VM && !err; u->at++) {
		if (u->item[u->at].s->what == OPS_SETUP && to_setup)
			break;
		err = statement(m, u->item[u->at].s, &u->item[u->at].v);
	}
	return err;
}

static int before_setup(struct matrix *m)
{
	struct mx_unrolled *u = m->unrolled;
	int err = statements(m, true);

	if (!err && (u->at == u->n || u->item[u->at].s->what != OPS_SETUP))
		return complain(m, u->item[u->at - 1].s, "expected setup after it");
	u->at++;
	return err;
}

static int body(struct matrix *m)
{
	return statements(m, false);
}

static int vms(struct matrix *m)
{
	struct mx_unrolled *u = m->unrolled;
	int err = 0;

	m->prepare = before_setup;
	while (u->at < u->n && !err) {
		const struct ops_statement *s = u->item[u->at++].s;

		m->n_vcpus = s->vcpus;
		memset(m->vcpus, 0, sizeof(m->vcpus));
		memset(u->slot_pages, 0, sizeof(u->slot_pages));
		u->slot_pages[0] = MX_SLOT0_PAGES;
		u->slot_pages[MX_SLOT] = m->o->slot_pages;
		mx_key(m, MATRIX_NO_PATTERN, MATRIX_NONE, MATRIX_NONE);
		err = mx_vm(m, s->logged ? KVM_MEM_LOG_DIRTY_PAGES : 0, body);
	}
	return err;
}

int mx_case_program(struct matrix *m)
{
	struct mx_unrolled u = {0};
	int err = ops_walk(m->o->program, m->o->slot_pages, unroll, &u);

	m->unrolled = &u;
	if (err)
		kvmsim_err(m->o->errors, err, "case %s: its program is too long, unrolled",
			   m->o->test_case);
	else
		err = vms(m);
	free(u.item);
	return err;
}
