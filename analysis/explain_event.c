// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/explain.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/output.h"
#include "analysis/run.h"
#include "traces/host/host.h"

/* Events of a trace, one by one. */

#define NAME_BYTES 64

static const struct {
	const char *says, *model;
} words[HOST_N_EVENTS] = {
#define SAYS(event, says, model) [HOST_##event] = {says, model},
#define FIELD(field, base, meaning)
#include "analysis/explain_events.def"
};
/* All events but kvm_exit, whose words are the exit's, and the three that are none of their own. */
_Static_assert(0
#define SAYS(event, says, model) +1
#define FIELD(field, base, meaning)
#include "analysis/explain_events.def"
		       == HOST_N_EVENTS - 4,
	       "every event has words");
static const struct {
	int base;
	const char *meaning;
} fields[HOST_N_FIELDS] = {
#define SAYS(event, says, model)
#define FIELD(field, base, meaning) [HOST_F_##field] = {base, meaning},
#include "analysis/explain_events.def"
};

/* "1|4" as names of bits from 0 on, those without one as "?". */
static const char *names_of_bits(uint64_t v, const char *const *names, unsigned n, char *to,
				 size_t size)
{
	size_t len = 0;

	to[0] = '\0';
	for (unsigned b = 0; b < 64 && len < size; b++)
		if (v >> b & 1)
			len += (size_t)snprintf(to + len, size - len, "%s%s", len ? ", " : "",
						b < n ? names[b] : "?");
	return to;
}

/* What this very value means; text that @to may hold, or NULL. */
static const char *meaning_of_value(const struct host_event *e, enum host_field f, char *to,
				    size_t size)
{
	static const char *const levels[] = {"?",
					     "4 KiB pages, or their table",
					     "2 MiB (4 MiB) pages, or a table of tables",
					     "1 GiB pages, or a table of tables",
					     "a table of tables",
					     "a table of tables"};
	static const char *const access[] = {"fetch", "store", "user mode"};
	static const char *const lock[] = {"spinning", "to read",      "to write",
					   "RT mutex", "per-CPU lock", "mutex"};
	static const char *const pferr[] = {"P", "W/R", "U/S", "RSVD", "I/D"};
	static const char *const mmio[] = {"a load that the VMM must answer", "a load", "a store"};
	uint64_t v = e->v[f];

	switch (f) {
	case HOST_F_level:
		return v < 6 ? levels[v] : "no such level";
	case HOST_F_access:
		return v ? names_of_bits(v, access, 3, to, size) : "nothing allowed";
	case HOST_F_flags:
		if (e->id == HOST_contention_begin)
			return v ? names_of_bits(v, lock, 6, to, size) : "a sleeping lock";
		return names_of_bits(v, pferr, 5, to, size);
	case HOST_F_error_code:
		return e->id == HOST_fast_page_fault ? names_of_bits(v, pferr, 5, to, size) : NULL;
	case HOST_F_type:
		if (e->id == HOST_kvm_mmio)
			return v < 3 ? mmio[v] : "no such type";
		return v ? "OUT" : "IN";
	case HOST_F_write:
		return v ? "a write" : "a read";
	case HOST_F_direct:
		return v ? "maps guest-physical addresses, shadows no table" : "shadows a table";
	case HOST_F_unsync:
		return v ? "out of step with its table" : "in step";
	case HOST_F_created:
		return v ? "new" : "was there";
	case HOST_F_fixed:
		return v ? "done on the fast path" : "not done";
	case HOST_F_spurious:
		return v ? "there was nothing left to do" : "there was something to do";
	case HOST_F_grow:
		return v ? "longer" : "shorter";
	case HOST_F_waited:
		return v ? "slept" : "polled";
	case HOST_F_isa:
		return v == EXIT_ISA_VMX ? "VMX" : v == EXIT_ISA_SVM ? "SVM" : "not known";
	case HOST_F_gva:
		if (e->id == HOST_fast_page_fault)
			return "guest-physical under nested paging, for all its name";
		return NULL;
	case HOST_F_spte:
		return e->id == HOST_kvm_mmu_paging_element ? "the guest's own entry" : NULL;
	case HOST_F_ret:
		return v ? "an error number" : "done";
	default:
		return NULL;
	}
}

static json_t *fields_of(const struct host_event *e)
{
	json_t *list = json_array();

	for (int f = 0; f < HOST_N_FIELDS; f++) {
		char text[OUT_TEXT], value[OUT_TEXT];
		const char *meaning;

		if (!host_has(e, f))
			continue;
		meaning = meaning_of_value(e, f, text, sizeof(text));
		if (!meaning)
			meaning = fields[f].meaning ? fields[f].meaning : "";
		if (f == HOST_F_prev_state)
			snprintf(value, sizeof(value), "%c", (int)e->v[f]);
		else if (f == HOST_F_ret)
			snprintf(value, sizeof(value), "%" PRId64, (int64_t)e->v[f]);
		else if (fields[f].base == 16)
			snprintf(value, sizeof(value), "0x%" PRIx64, e->v[f]);
		else
			snprintf(value, sizeof(value), "%" PRIu64, e->v[f]);
		explain_text_field(list, "", host_field_name(f), value, meaning);
	}
	return list;
}

/* Its reason's name as the kernel's tables have it: upper case, without EXIT_. */
static void reason_of(const struct host_event *e, char name[NAME_BYTES])
{
	struct host_text t = e->reason;
	size_t n = 0;

	if (t.len > 5 && !memcmp(t.at, "EXIT_", 5)) {
		t.at += 5;
		t.len -= 5;
	}
	for (; n < t.len && n < NAME_BYTES - 1; n++)
		name[n] = (char)toupper((unsigned char)t.at[n]);
	name[n] = '\0';
	if (!n && host_has(e, HOST_F_reason))
		snprintf(name, NAME_BYTES, "0x%" PRIx64, e->v[HOST_F_reason]);
	if (!strcmp(name, "0X400") || !strcmp(name, "0x400"))
		strcpy(name, "NPF");
}

#define THREADS 64 /* any number: what two threads share is only overwritten too soon */

struct reading {
	struct last_exit {
		int64_t tid; /* -1: none */
		enum explain_form form;
		bool has_info1;
		uint64_t info1;
	} last[THREADS];
	int (*each)(void *ctx, json_t *o);
	void *ctx;
	bool any;
};

static json_t *exit_of(const struct host_event *e)
{
	enum exit_isa isa =
		host_has(e, HOST_F_isa) ? (enum exit_isa)e->v[HOST_F_isa] : EXIT_ISA_UNKNOWN;
	struct explain_infos in = {.has_info1 = host_has(e, HOST_F_info1),
				   .has_info2 = host_has(e, HOST_F_info2),
				   .has_intr_info = host_has(e, HOST_F_intr_info)};
	char name[NAME_BYTES];
	json_t *o;
	bool found;

	in.has_error_code = host_has(e, HOST_F_error_code);
	if (in.has_error_code)
		in.error_code = e->v[HOST_F_error_code];
	if (in.has_info1)
		in.info1 = e->v[HOST_F_info1];
	if (in.has_info2)
		in.info2 = e->v[HOST_F_info2];
	if (in.has_intr_info)
		in.intr_info = e->v[HOST_F_intr_info];
	if (isa == EXIT_ISA_VMX && host_has(e, HOST_F_reason))
		in.reason = (uint32_t)e->v[HOST_F_reason];
	reason_of(e, name);
	o = explain_exit(name, isa, &in, &found);
	if (!found) {
		json_put(o, "as", json_string("an exit that no kernel has a name for"));
		json_object_del(o, "error_code");
	}
	return o;
}

static struct last_exit *last_of(struct reading *r, const struct host_event *e)
{
	return &r->last[(uint64_t)e->tid % THREADS];
}

/* A page fault's code has the form that the exit before it says. */
static void note_exit(struct reading *r, const struct host_event *e)
{
	struct last_exit *l = last_of(r, e);
	char name[NAME_BYTES];

	if (e->tid < 0)
		return;
	*l = (struct last_exit){.tid = -1};
	if (e->id != HOST_kvm_exit)
		return;
	reason_of(e, name);
	if (!strcmp(name, "EPT_VIOLATION"))
		l->form = EXPLAIN_EPT;
	else if (!strcmp(name, "NPF"))
		l->form = EXPLAIN_NPF;
	else if (!strcmp(name, "EXCEPTION_NMI") || !strcmp(name, "PF EXCP"))
		l->form = EXPLAIN_PF;
	else
		return;
	l->tid = e->tid;
	l->has_info1 = host_has(e, HOST_F_info1);
	if (l->has_info1)
		l->info1 = e->v[HOST_F_info1];
}

static json_t *page_fault(struct reading *r, const struct host_event *e)
{
	const struct last_exit *l = last_of(r, e);
	uint64_t code = e->v[HOST_F_error_code];

	if (e->tid < 0 || l->tid != e->tid)
		return explain_error_code(code, EXPLAIN_GUESS);
	/* Before 6.1 the event has the lower half alone. */
	if (l->form == EXPLAIN_NPF && l->has_info1 && code == (uint32_t)l->info1)
		code = l->info1;
	return explain_error_code(code, l->form);
}

static void put_spte(json_t *o, const struct host_event *e, const char *key, enum host_field f)
{
	if (host_has(e, f))
		json_put(
			o, key,
			explain_spte(e->v[f], EXPLAIN_GUESS,
				     host_has(e, HOST_F_level) ? (unsigned)e->v[HOST_F_level] : 0));
}

static const char *says_of(const struct host_event *e)
{
	if (e->role_unreliable)
		return "The role is decoded by a plugin's stale layout: only gfn and level hold.";
	if (e->id == HOST_UNKNOWN_KVM)
		return "No mainline kernel has an event of this name.";
	if (e->id == HOST_KVM_REST)
		return "An event of KVM's of which nothing is made here.";
	if (e->id == HOST_OTHER)
		return "An event of another subsystem, of which nothing is made here.";
	return words[e->id].says;
}

static void put_words(json_t *o, const struct host_event *e)
{
	const char *says = says_of(e);

	if (says)
		json_put(o, "says", json_string(says));
	if (says && says == words[e->id].says)
		json_put(o, "kvmsim",
			 json_string(words[e->id].model ? words[e->id].model : "not modelled"));
}

json_t *explain_event_name(const char *name)
{
	const struct host_event e = {.id = host_event_find(name, strlen(name))};
	json_t *o;

	if (e.id == HOST_OTHER || e.id == HOST_UNKNOWN_KVM)
		return NULL;
	o = explain_new(name, "");
	put_words(o, &e);
	if (e.id == HOST_kvm_exit) /* in a record the exit has the words */
		json_put(o, "says",
			 json_string("The vCPU left the guest; why, explain exit REASON tells."));
	return o;
}

static int on_event(void *ctx, const struct host_event *e)
{
	struct reading *r = ctx;
	char name[NAME_BYTES];
	json_t *o;

	r->any = true;
	snprintf(name, sizeof(name), "%.*s",
		 (int)(e->name.len < NAME_BYTES ? e->name.len : NAME_BYTES - 1), e->name.at);
	o = explain_new(name, "");
	if (e->line)
		json_put(o, "line", json_u64(e->line));
	json_put(o, "fields", fields_of(e));
	put_words(o, e);
	if (e->id == HOST_kvm_exit || e->id == HOST_kvm_entry)
		note_exit(r, e);
	if (e->id == HOST_kvm_exit || e->id == HOST_kvm_nested_vmexit ||
	    e->id == HOST_kvm_nested_vmexit_inject)
		json_put(o, "exit", exit_of(e));
	if (e->id == HOST_kvm_page_fault && host_has(e, HOST_F_error_code))
		json_put(o, "error_code", page_fault(r, e));
	if ((e->id == HOST_kvm_mmu_walker_error || e->id == HOST_kvm_mmu_pagetable_walk) &&
	    host_has(e, HOST_F_error_code))
		json_put(o, "error_code", explain_error_code(e->v[HOST_F_error_code], EXPLAIN_PF));
	if (e->id == HOST_kvm_userspace_exit && host_has(e, HOST_F_reason)) {
		struct host_text t = userspace_exit_name((uint32_t)e->v[HOST_F_reason]);

		json_put(o, "as",
			 t.len ? json_stringn(t.at, t.len)
			       : json_string("an exit to the VMM that no kernel has a name for"));
	}
	if (e->id != HOST_kvm_mmu_paging_element) /* the guest's */
		put_spte(o, e, "spte", HOST_F_spte);
	if (e->id == HOST_fast_page_fault || e->id == HOST_kvm_tdp_mmu_spte_changed) {
		put_spte(o, e, "old", HOST_F_old);
		put_spte(o, e, "new", HOST_F_new);
	}
	return o ? r->each(r->ctx, o) : KVMSIM_ENOMEM;
}

int explain_events(const char *path, const struct kvmsim_errsink *errors,
		   int (*each)(void *ctx, json_t *o), void *ctx)
{
	const struct host_opts opts = {.interrupted = &run_interrupted};
	struct reading r = {.each = each, .ctx = ctx};
	const struct host_sink sink = {.ctx = &r, .event = on_event};
	struct host_result result = {.refusal = HOST_FINE};
	int err;

	for (size_t i = 0; i < THREADS; i++)
		r.last[i].tid = -1;
	err = host_read(path, &opts, &sink, errors, &result);
	if (!err && !r.any)
		err = kvmsim_err(errors, KVMSIM_EPARSE, "%s: no record of an event", path);
	return err;
}
