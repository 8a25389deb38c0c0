// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "workloads/matrix_interp.h"
#include "workloads/ops_program.h"

/*
 * An op program on the model. Its loops are unrolled first, so that its VMs come one after the
 * other, each with the statements up to the next. ops_check() has seen that it can be done.
 */

struct mx_unrolled {
	struct {
		const struct ops_statement *s;
		struct ops_values v;
	} * item;
	size_t n, room, at;
	uint64_t slot_pages[OPS_SLOTS]; /* as they are now */
};

static int unroll(void *ctx, const struct ops_statement *s, const struct ops_values *v)
{
	struct mx_unrolled *u = ctx;

	if (u->n == u->room) {
		size_t room = u->room ? 2 * u->room : 64;
		void *grown =
			room > OPS_UNROLLED_MAX ? NULL : realloc(u->item, room * sizeof(*u->item));

		if (!grown)
			return KVMSIM_ENOMEM;
		u->item = grown;
		u->room = room;
	}
	u->item[u->n].s = s;
	u->item[u->n++].v = *v;
	return 0;
}

/* What goes wrong in a statement is told with its place. */
struct mx_place {
	const struct kvmsim_errsink *errors;
	const struct ops_program *program;
	const struct mx_unrolled *unrolled;
};

static void emit(void *ctx, enum kvmsim_error err, const char *msg)
{
	const struct mx_place *p = ctx;
	const struct mx_unrolled *u = p->unrolled;
	const struct ops_statement *s = u->at < u->n ? u->item[u->at].s : NULL;

	if (!s)
		kvmsim_err(p->errors, err, "%s: %s", p->program->path, msg);
	else if (*s->phase)
		kvmsim_err(p->errors, err, "%s:%u: phase %s: %s", p->program->path, s->line,
			   s->phase, msg);
	else
		kvmsim_err(p->errors, err, "%s:%u: %s", p->program->path, s->line, msg);
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

	mx_begin(m, s->phase);
	err = kvm_set_user_memory_region(m->t, m->kvm, &r);
	if (err)
		return kvmsim_err(m->o->errors, err, "the slot cannot become that");
	m->unrolled->slot_pages[r.slot] = r.npages;
	return mx_end(m, NULL, 0);
}

static int get(struct matrix *m, const struct ops_statement *s, const struct ops_values *v)
{
	uint64_t number = ops_value(s->arg[0], v);

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
	default: /* vms(), before_setup() */
		return 0;
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
	const struct matrix_opts *o = m->o;
	struct mx_unrolled u = {0};
	struct mx_place place = {o->errors, o->program, &u};
	const struct kvmsim_errsink errors = {.emit = emit, .ctx = &place};
	struct matrix_opts own = *o;
	char error[256];
	int err;

	if (ops_check(o->program, o->slot_pages, mx_guest(m) == GUEST_LONG64, error, sizeof(error)))
		return kvmsim_err(o->errors, KVMSIM_EPARSE, "%s", error);
	own.errors = &errors;
	m->unrolled = &u;
	m->o = &own;
	err = ops_walk(o->program, o->slot_pages, unroll, &u);
	err = err ? err : vms(m);
	m->o = o;
	free(u.item);
	return err;
}
