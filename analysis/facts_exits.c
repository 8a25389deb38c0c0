// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/facts_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exits, their ends, and the faults that they brought. */

#define NPF_NUMBER 0x400 /* SVM_EXIT_NPF, as texts without a name print it */
#define SVM_PF	   0x4e	 /* SVM_EXIT_EXCP_BASE + #PF */
#define PF_VECTOR  14
#define PAGE_SHIFT 12
#define APIC_PAGE  0xfee00
/* The gfns one page of a page table's third level covers: so far apart, faults are of one range. */
#define RANGE_PAGES 0x40000

/* The reason as all tools' texts have it: "EPT_VIOLATION", "NPF", "0x4f" without a name. */
static size_t reason_name(const struct host_event *e, char *buf, size_t size)
{
	const char *at = e->reason.at;
	size_t len = e->reason.len, n = 0;

	if (!len) {
		if (!host_has(e, HOST_F_reason))
			return 0;
		if (e->v[HOST_F_reason] == NPF_NUMBER)
			return (size_t)snprintf(buf, size, "NPF");
		return (size_t)snprintf(buf, size, "0x%" PRIx64, e->v[HOST_F_reason]);
	}
	if (len == 5 && !memcmp(at, "0x400", 5))
		return (size_t)snprintf(buf, size, "NPF");
	if (len > 2 && at[0] == '0' && at[1] == 'x') {
		n = len < size ? len : size - 1;
		memcpy(buf, at, n);
		return n;
	}
	if (len > 5 && (!memcmp(at, "EXIT_", 5) || !memcmp(at, "exit_", 5))) {
		at += 5;
		len -= 5;
	}
	for (; n < len && n + 1 < size; n++)
		buf[n] = at[n] >= 'a' && at[n] <= 'z' ? (char)(at[n] - 'a' + 'A') : at[n];
	return n;
}

static int reason_of(struct facts *f, const char *name, size_t len, struct exit_reason **out)
{
	struct exit_reason *r = f->reason;

	if (!r || r->len != len || memcmp(r->name, name, len) != 0)
		HASH_FIND(hh, f->reasons, name, len, r);
	*out = f->reason = r;
	if (r)
		return 0;
	if (HASH_COUNT(f->reasons) >= FACTS_MAX_NAMES) {
		f->reasons_truncated = true;
		return 0;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return KVMSIM_ENOMEM;
	r->name = strndup(name, len);
	r->len = len;
	if (r->name)
		HASH_ADD_KEYPTR(hh, f->reasons, r->name, len, r);
	if (!r->name || !r->hh.tbl) {
		free(r->name);
		free(r);
		return KVMSIM_ENOMEM;
	}
	*out = r;
	return 0;
}

void facts_exits_free(struct facts *f)
{
	struct exit_reason *r, *next;
	struct facts_loop *l, *after;

	r = f->reasons;
	HASH_CLEAR(hh, f->reasons);
	for (; r; r = next) {
		next = r->hh.next;
		free(r->hist);
		free(r->name);
		free(r);
	}
	l = f->loops;
	HASH_CLEAR(hh, f->loops);
	for (; l; l = after) {
		after = l->hh.next;
		free(l->by.at);
		free(l);
	}
	tally_free(&f->nested_rips);
	tally_free(&f->userspace);
	free(f->pair.at);
	free(f->fault.at);
}

/* ---- kvm_exit to kvm_entry ---- */

static void close_exit(struct facts *f, struct facts_thread *t)
{
	if (t->misconfig && t->reserved && !t->accessed)
		f->misconfig_not_mmio++;
	t->open = t->misconfig = t->reserved = t->accessed = false;
}

void facts_exit_close(struct facts *f, struct facts_thread *t)
{
	f->unpaired_exits += t->open;
	close_exit(f, t);
}

/* With the vector of an exception in its own field since 5.10, in info2 before. */
static bool is_shadow_fault(const struct host_event *e, const char *name)
{
	uint64_t intr = facts_get(e, HOST_F_intr_info);

	/* SVM's, by the kernel and by libtraceevent */
	if (!strcmp(name, "PF EXCP") || !strcmp(name, "EXCP0E") || !strcmp(name, "EXCP_PF"))
		return true;
	if (facts_get(e, HOST_F_reason) == SVM_PF && facts_get(e, HOST_F_isa) == 2)
		return true;
	if (strcmp(name, "EXCEPTION_NMI"))
		return false;
	if (intr)
		return (intr & 0xff) == PF_VECTOR;
	return (facts_get(e, HOST_F_info2) & 0xff) == PF_VECTOR;
}

static int on_exit_(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	char name[64];
	size_t len = reason_name(e, name, sizeof(name));
	struct exit_reason *r = NULL;

	name[len] = '\0';
	f->exits++;
	if (len && reason_of(f, name, len, &r))
		return KVMSIM_ENOMEM;
	if (r)
		r->n++;
	if (!t)
		return 0;
	facts_exit_close(f, t);
	t->exited = t->open = true;
	t->reason = r;
	t->exit_number = f->exits;
	t->exit_time = e->time_ns;
	t->exit_cpu = e->cpu;
	t->exit_mark = f->mark;
	t->exit_rip = facts_get(e, HOST_F_rip);
	t->exit_info1 = facts_get(e, HOST_F_info1);
	t->npf = !strcmp(name, "NPF");
	t->halted = !strcmp(name, "HLT");
	t->misconfig = !strcmp(name, "EPT_MISCONFIG");
	t->shadow_fault = is_shadow_fault(e, name);
	return 0;
}

static int add_latency(struct facts *f, struct facts_thread *t, uint64_t ns)
{
	struct exit_reason *r = t->reason;

	hist_add(&f->pair_hist, ns);
	if (!r)
		return 0;
	if (!r->hist)
		r->hist = calloc(1, sizeof(*r->hist));
	if (!r->hist)
		return KVMSIM_ENOMEM;
	hist_add(r->hist, ns);
	r->pairs++;
	r->ns += ns;
	return 0;
}

static int on_entry(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	struct facts_pair *p;
	void *item;
	int err = 0;

	if (!t)
		return 0;
	if (!t->open) {
		f->unpaired_entries++;
		return 0;
	}
	close_exit(f, t);
	if (facts_lost_since(f, t->exit_mark, t->exit_cpu)) {
		f->spanning++;
		return 0;
	}
	f->pairs++;
	if (vec_push(&f->pair, sizeof(*p), FACTS_MAX_LIST, &item))
		return KVMSIM_ENOMEM;
	p = item;
	if (p)
		*p = (struct facts_pair){t->exit_number, -1};
	if (!facts_timed(e) || t->exit_time == HOST_NO_TIME || e->time_ns < t->exit_time)
		return 0;
	if (p)
		p->ns = (int64_t)(e->time_ns - t->exit_time);
	if (t->tid >= 0)
		err = add_latency(f, t, e->time_ns - t->exit_time);
	return err;
}

static int on_userspace(struct facts *f, const struct host_event *e)
{
	uint64_t n;

	if (!host_has(e, HOST_F_reason))
		return 0;
	n = e->v[HOST_F_reason];
	/* "restart (4)": the number is that of an error, which the kernel prints without its sign
	 */
	if ((int64_t)n > 0 && ((e->reason.len == 5 && !memcmp(e->reason.at, "error", 5)) ||
			       (e->reason.len == 7 && !memcmp(e->reason.at, "restart", 7))))
		n = -n;
	return tally_add(&f->userspace, n, FACTS_MAX_NAMES);
}

/* ---- faults ---- */

static void drop_loops(struct facts *f)
{
	struct facts_loop *l, *next;

	f->spte_changed = true;
	l = f->loops;
	HASH_CLEAR(hh, f->loops);
	for (; l; l = next) {
		next = l->hh.next;
		free(l->by.at);
		free(l);
	}
}

#define MAX_WHO 4096 /* vCPUs of one loop */

static int add_who(struct facts_loop *l, int64_t vcpu)
{
	struct facts_who *w = l->by.at;
	size_t i = 0;
	void *item;

	l->faults++;
	while (i < l->by.n && w[i].vcpu != vcpu)
		i++;
	if (i == l->by.n) {
		if (vec_push(&l->by, sizeof(*w), MAX_WHO, &item))
			return KVMSIM_ENOMEM;
		if (!item)
			return 0;
		w = l->by.at;
		w[i].vcpu = vcpu;
	}
	w[i].n++;
	if (w[i].n > l->most)
		l->most = w[i].n;
	return 0;
}

static int add_loop(struct facts *f, const struct facts_thread *t, const struct facts_loop_key *key,
		    int64_t vcpu)
{
	struct facts_loop *l;

	HASH_FIND(hh, f->loops, key, sizeof(*key), l);
	if (!l) {
		if (HASH_COUNT(f->loops) >= FACTS_MAX_LOOPS) {
			f->loops_truncated = true;
			return 0;
		}
		l = calloc(1, sizeof(*l));
		if (!l)
			return KVMSIM_ENOMEM;
		l->key = *key;
		HASH_ADD(hh, f->loops, key, sizeof(l->key), l);
		if (!l->hh.tbl) {
			free(l);
			return KVMSIM_ENOMEM;
		}
	}
	return add_who(l, vcpu >= 0 ? vcpu : -2 - (t ? t->tid : -1));
}

bool facts_is_loop(const struct facts_loop *l)
{
	return l->faults >= 3 && l->most >= 2;
}

const struct facts_loop *facts_loop_next(const struct facts *f, const struct facts_loop *after)
{
	const struct facts_loop *l = after ? after->hh.next : f->loops;

	while (l && !facts_is_loop(l))
		l = l->hh.next;
	return l;
}

/* The hole of a thread that lies between two faults of one range. */
static void judge_hole(struct facts *f, struct facts_thread *t, uint64_t gfn)
{
	uint64_t apart = gfn > t->fault_gfn ? gfn - t->fault_gfn : t->fault_gfn - gfn;

	if (t->hole && apart < RANGE_PAGES)
		f->stalled = true;
	t->hole = false;
	t->faulted = true;
	t->fault_gfn = gfn;
}

static int on_fault(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	struct facts_loop_key key = {.rip = 0};
	struct facts_fault fault = {.vcpu = facts_vcpu(t, e)}, *to;
	void *item;

	if (!host_has(e, HOST_F_address) || !host_has(e, HOST_F_error_code))
		return 0;
	fault.address = e->v[HOST_F_address];
	fault.code = e->v[HOST_F_error_code];
	fault.gva = t && t->exited && t->shadow_fault;
	if (t && t->open && t->npf && fault.code <= UINT32_MAX && t->exit_info1 > UINT32_MAX &&
	    (uint32_t)t->exit_info1 == fault.code) {
		fault.code = t->exit_info1;
		f->truncated_codes++;
	}
	if (vec_push(&f->fault, sizeof(fault), FACTS_MAX_LIST, &item))
		return KVMSIM_ENOMEM;
	to = item;
	if (to)
		*to = fault;
	if (t)
		judge_hole(f, t, fault.address >> PAGE_SHIFT);
	if (f->spte_changed)
		return 0;
	key.page = fault.address >> PAGE_SHIFT;
	key.gva = fault.gva;
	key.code = fault.code;
	if (host_has(e, HOST_F_rip))
		key.rip = e->v[HOST_F_rip];
	else if (t && t->exited)
		key.rip = t->exit_rip;
	return add_loop(f, t, &key, fault.vcpu);
}

int facts_exit_event(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	switch (e->id) {
	case HOST_kvm_exit:
		return on_exit_(f, t, e);
	case HOST_kvm_entry:
		return on_entry(f, t, e);
	case HOST_kvm_nested_vmexit:
		return host_has(e, HOST_F_rip)
			       ? tally_add(&f->nested_rips, e->v[HOST_F_rip], FACTS_MAX_LIST)
			       : 0;
	case HOST_kvm_userspace_exit:
		return on_userspace(f, e);
	case HOST_kvm_page_fault:
		return on_fault(f, t, e);
	case HOST_fast_page_fault:
		f->spurious += facts_get(e, HOST_F_spurious) != 0;
		if (facts_get(e, HOST_F_fixed) && !f->spte_changed)
			drop_loops(f);
		return 0;
	case HOST_kvm_tdp_mmu_spte_changed:
	case HOST_kvm_mmu_set_spte:
		if (!f->spte_changed)
			drop_loops(f);
		return 0;
	default:
		return 0;
	}
}
