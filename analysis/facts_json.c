// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/facts_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/output.h"

/* The facts for programs: every key, null where the trace has no answer. */

json_t *facts_hex_json(uint64_t v)
{
	char buf[OUT_TEXT];

	snprintf(buf, sizeof(buf), "0x%" PRIx64, v);
	return json_string(buf);
}

static json_t *known(bool there, uint64_t v)
{
	return there ? json_u64(v) : json_null();
}

static json_t *vcpu_json(int64_t vcpu)
{
	return known(vcpu >= 0, (uint64_t)vcpu);
}

/* Bytes of a continued character that may follow a first byte; 0: it is none. */
static unsigned follow(unsigned char c)
{
	if (c >= 0xc2 && c <= 0xdf)
		return 1;
	if (c >= 0xe0 && c <= 0xef)
		return 2;
	return c >= 0xf0 && c <= 0xf4 ? 3 : 0;
}

json_t *facts_text_json(const char *text, size_t len)
{
	json_t *s = json_stringn(text, len), *again;
	json_t *parts;

	if (s)
		return s;
	/* as jansson sees it: what it does not take, byte for byte, becomes U+FFFD */
	parts = json_string("");
	for (size_t i = 0; parts && i < len;) {
		size_t n = 1 + follow((unsigned char)text[i]);
		json_t *c = i + n <= len ? json_stringn(text + i, n) : NULL;
		const char *have = json_string_value(parts);

		if (!c)
			n = 1;
		again = c ? json_sprintf("%s%s", have, json_string_value(c))
			  : json_sprintf("%s\xef\xbf\xbd", have);
		json_decref(c);
		json_decref(parts);
		parts = again;
		i += n;
	}
	return parts;
}

static void put_key(json_t *to, const char *key, size_t len, json_t *value)
{
	json_t *name = facts_text_json(key, len);

	if (name)
		json_put(to, json_string_value(name), value);
	else
		json_decref(value);
	json_decref(name);
}

static void put_number_key(json_t *to, int64_t key, json_t *value)
{
	char buf[OUT_TEXT];

	snprintf(buf, sizeof(buf), "%" PRId64, key);
	json_put(to, buf, value);
}

void facts_put_list(json_t *to, const char *key, json_t *list, bool truncated)
{
	char name[64];

	json_put(to, key, list);
	snprintf(name, sizeof(name), "%s_truncated", key);
	if (truncated)
		json_put(to, name, json_true());
}

static json_t *tally_list(const struct tally *t, json_t *(*of)(uint64_t))
{
	json_t *a = json_array();

	for (const struct tally_item *i = t->items; i; i = i->hh.next)
		json_array_append_new(a, of(i->key));
	return a;
}

static json_t *names_json(const struct names *t)
{
	json_t *o = json_object();

	for (const struct name_item *i = t->items; i; i = i->hh.next)
		put_key(o, i->name, i->len, json_u64(i->n));
	return o;
}

/* ---- what all records have ---- */

static json_t *events_json(const struct facts *f)
{
	json_t *o = names_json(&f->rest);

	for (int id = 0; id < HOST_N_EVENTS; id++) {
		const char *name = host_event_name(id);

		if (name && f->records_of[id] && !facts_other_system(id))
			json_put(o, name, json_u64(f->records_of[id]));
	}
	return o;
}

static json_t *other_json(const struct facts *f)
{
	json_t *o = names_json(&f->other);

	for (int id = 0; id < HOST_N_EVENTS; id++)
		if (host_event_name(id) && facts_other_system(id) && f->records_of[id])
			json_put(o, host_event_name(id), json_u64(f->records_of[id]));
	return o;
}

static json_t *cpus_json(const struct facts *f)
{
	struct tally all = {.items = NULL};
	json_t *a = json_null();

	if (!f->has_cpu)
		return a;
	for (const struct facts_thread *t = f->threads; t; t = t->hh.next)
		for (size_t i = 0; i < t->cpus.n; i++)
			if (tally_add(&all, (uint64_t)((int64_t *)t->cpus.at)[i], SIZE_MAX))
				goto out;
	tally_sort(&all);
	a = tally_list(&all, json_u64);
out:
	tally_free(&all);
	return a;
}

static json_t *comms_json(const struct facts *f)
{
	static const char lost[] = "<...>";
	json_t *a = json_array();

	if (!f->has_comm) {
		json_decref(a);
		return json_null();
	}
	for (const struct name_item *i = f->comms.items; i; i = i->hh.next) {
		if (i->len == strlen(lost) && !memcmp(i->name, lost, i->len))
			json_array_insert_new(a, 0, json_null());
		else
			json_array_append_new(a, facts_text_json(i->name, i->len));
	}
	return a;
}

static void put_threads(json_t *o, const struct facts *f)
{
	json_t *tids = json_array(), *cpus = json_object(), *tgids = json_object(),
	       *vcpus = json_object();

	for (const struct facts_thread *t = f->threads; t; t = t->hh.next) {
		json_t *list;

		if (t->tid < 0)
			continue;
		json_array_append_new(tids, json_integer(t->tid));
		list = json_array();
		for (size_t i = 0; i < t->cpus.n; i++)
			json_array_append_new(list, json_integer(((int64_t *)t->cpus.at)[i]));
		put_number_key(cpus, t->tid, list);
		put_number_key(tgids, t->tid, vcpu_json(t->tgid));
		if (t->kvm)
			put_number_key(vcpus, t->tid, vcpu_json(t->vcpu));
	}
	json_put(o, "cpus", cpus_json(f));
	facts_put_list(o, "tids", f->has_tid ? json_incref(tids) : json_null(),
		       f->threads_truncated);
	facts_put_list(o, "comms", comms_json(f), f->comms.truncated);
	json_put(o, "cpus_of_tid", f->has_tid && f->has_cpu ? json_incref(cpus) : json_null());
	json_put(o, "tgid_of_tid", f->has_tgid ? json_incref(tgids) : json_null());
	facts_put_list(o, "vcpus", f->has_vcpu ? tally_list(&f->vcpus, json_u64) : json_null(),
		       f->vcpus.truncated);
	json_put(o, "vcpu_of_tid", f->has_tid ? json_incref(vcpus) : json_null());
	json_decref(tids);
	json_decref(cpus);
	json_decref(tgids);
	json_decref(vcpus);
}

static void put_losses(json_t *o, const struct facts *f, const struct host_counts *c)
{
	uint64_t lost = f->has_header_loss ? f->header_lost : f->lost;
	json_t *by = json_object();

	for (size_t i = 0; i < f->n_cpus; i++)
		if (f->cpu[i].marked)
			put_number_key(by, (int64_t)i, known(!f->cpu[i].uncounted, f->cpu[i].lost));
	json_put(o, "lost_events", known(f->has_header_loss || !f->uncounted, lost));
	json_put(o, "lost_events_min", json_u64(lost));
	json_put(o, "lost_by_cpu", by);
	json_put(o, "loss_markers", json_u64(c->loss_markers));
	json_put(o, "lost_chunks", json_u64(f->lost_chunks));
}

/* ---- exits and faults ---- */

static json_t *latency_json(const struct hist *h, uint64_t sum, bool has_sum)
{
	json_t *o = json_object();

	json_put(o, "pairs", json_u64(h ? h->n : 0));
	if (has_sum)
		json_put(o, "total_ns", json_u64(sum));
	json_put(o, "p50_ns", known(h && h->n, h ? hist_percentile(h, 50) : 0));
	json_put(o, "p90_ns", known(h && h->n, h ? hist_percentile(h, 90) : 0));
	json_put(o, "p99_ns", known(h && h->n, h ? hist_percentile(h, 99) : 0));
	json_put(o, "max_ns", known(h && h->n, h ? h->max : 0));
	return o;
}

static void put_exits(json_t *o, const struct facts *f)
{
	json_t *reasons = json_object(), *times = json_object(), *user = json_object(),
	       *nested = json_object();
	char buf[OUT_TEXT];

	for (const struct exit_reason *r = f->reasons; r; r = r->hh.next) {
		put_key(reasons, r->name, strlen(r->name), json_u64(r->n));
		put_key(times, r->name, strlen(r->name), latency_json(r->hist, r->ns, true));
	}
	for (const struct tally_item *i = f->userspace.items; i; i = i->hh.next)
		put_number_key(user, (int64_t)i->key, json_u64(i->n));
	for (const struct tally_item *i = f->nested_rips.items; i; i = i->hh.next) {
		snprintf(buf, sizeof(buf), "0x%" PRIx64, i->key);
		json_put(nested, buf, json_u64(i->n));
	}
	facts_put_list(o, "exit_reasons", reasons, f->reasons_truncated);
	json_put(o, "exit_times", times);
	facts_put_list(o, "nested_exits_by_rip", nested, f->nested_rips.truncated);
	facts_put_list(o, "userspace_exits", user, f->userspace.truncated);
}

static json_t *fault_json(const struct facts_fault *p)
{
	json_t *o = json_object();

	json_put(o, "vcpu", vcpu_json(p->vcpu));
	json_put(o, "gpa", p->gva ? json_null() : facts_hex_json(p->address));
	json_put(o, "gva", p->gva ? facts_hex_json(p->address) : json_null());
	json_put(o, "error_code", facts_hex_json(p->code));
	json_put(o, "write", json_boolean(p->code >> 1 & 1));
	if (!p->gva && p->address >> 12 == 0xfee00)
		json_put(o, "apic", json_true());
	return o;
}

static json_t *loop_json(const struct facts_loop *l)
{
	json_t *o = json_object(), *vcpus = json_array();
	const struct facts_who *who = l->by.at;
	bool unknown = false;

	for (size_t i = 0; i < l->by.n; i++) {
		if (who[i].vcpu >= 0)
			json_array_append_new(vcpus, json_integer(who[i].vcpu));
		else
			unknown = true;
	}
	if (unknown)
		json_array_insert_new(vcpus, 0, json_null());
	json_put(o, "vcpus", vcpus);
	json_put(o, "gfn", l->key.gva ? json_null() : facts_hex_json(l->key.page));
	if (l->key.gva)
		json_put(o, "gva", facts_hex_json(l->key.page << 12));
	json_put(o, "rip", facts_hex_json(l->key.rip));
	json_put(o, "faults", json_u64(l->faults));
	return o;
}

static void put_faults(json_t *o, const struct facts *f)
{
	json_t *faults = json_array(), *loops = json_array();
	const struct facts_fault *fault = f->fault.at;

	for (size_t i = 0; i < f->fault.n; i++)
		json_array_append_new(faults, fault_json(&fault[i]));
	for (const struct facts_loop *l = NULL; (l = facts_loop_next(f, l));)
		json_array_append_new(loops, loop_json(l));
	facts_put_list(o, "page_faults", faults, f->fault.truncated);
	json_put(o, "truncated_error_codes", json_u64(f->truncated_codes));
	json_put(o, "spurious_faults", json_u64(f->spurious));
	facts_put_list(o, "loops", loops, f->loops_truncated);
}

static void put_pairs(json_t *o, const struct facts *f)
{
	const struct facts_pair *pair = f->pair.at;
	json_t *ns = json_array();

	for (size_t i = 0; i < f->pair.n; i++)
		json_array_append_new(ns, known(pair[i].ns >= 0, (uint64_t)pair[i].ns));
	json_put(o, "pairs", known(f->has_tid, f->pairs));
	facts_put_list(o, "pair_ns", f->has_tid && f->timed_records ? json_incref(ns) : json_null(),
		       f->pair.truncated);
	json_put(o, "pair_latency", latency_json(&f->pair_hist, 0, false));
	json_put(o, "pairs_spanning_loss", known(f->has_tid, f->spanning));
	json_put(o, "unpaired_exits", known(f->has_tid, f->unpaired_exits));
	json_put(o, "unpaired_entries", known(f->has_tid, f->unpaired_entries));
	json_put(o, "largest_gap_ns", known(f->has_gap, f->largest_gap));
	json_decref(ns);
}

/* ---- the file ---- */

static void put_trace(json_t *o, const struct host_facts *h)
{
	const struct facts *f = h->facts;
	bool text = facts_has(h, HOST_KIND_TRACE_TEXT), timed = f->timed_records;

	json_put(o, "events", events_json(f));
	facts_put_list(o, "unknown_events", names_json(&f->unknown), f->unknown.truncated);
	facts_put_list(o, "other_events", other_json(f), f->other.truncated);
	json_put(o, "records", json_u64(f->records));
	json_put(o, "timed", json_boolean(timed));
	json_put(o, "time_decimals", known(f->time_decimals, f->time_decimals));
	json_put(o, "first_time_ns", known(timed, f->first_time));
	json_put(o, "last_time_ns", known(timed, f->last_time));
	json_put(o, "out_of_order", known(f->has_cpu && timed, f->out_of_order));
	json_put(o, "flags_width", known(text, f->flags_width));
	put_threads(o, f);
	json_put(o, "header_cpus", known(f->has_header_cpus, f->header_cpus));
	json_put(o, "empty_cpus", tally_list(&f->empty_cpus, json_u64));
	put_losses(o, f, &h->result->counts);
	put_exits(o, f);
	put_faults(o, f);
	put_pairs(o, f);
	facts_mmu_json(o, f);
}

static json_t *kind_json(const struct host_result *r)
{
	if (r->n_sections == 1)
		return json_string(host_kind_name(r->sections[0]));
	return r->n_sections ? json_string("mixed") : json_null();
}

static json_t *sections_json(const struct host_result *r)
{
	json_t *a;

	if (r->n_sections < 2)
		return json_null();
	a = json_array();
	for (unsigned i = 0; i < r->n_sections; i++)
		json_array_append_new(a, json_string(host_kind_name(r->sections[i])));
	return a;
}

static json_t *given_json(const struct facts_given *g)
{
	json_t *o = json_object();

	if (g->has_downtime)
		json_put(o, "downtime_goal_ms", json_u64(g->downtime_ms));
	return o;
}

static void put_counts(json_t *o, const struct host_counts *c, bool text)
{
	json_put(o, "lines", known(text, c->lines));
	json_put(o, "unknown_lines", known(text, c->unknown_lines));
	json_put(o, "damaged_lines", known(text, c->damaged_lines));
	json_put(o, "dropped_lines", known(text, c->dropped_lines));
	json_put(o, "rejoined_records", known(text, c->rejoined_records));
	json_put(o, "trailing_notes", known(text, c->trailing_notes));
	json_put(o, "elisions", known(text, c->elisions));
	json_put(o, "stack_traces", known(text, c->stack_traces));
	json_put(o, "stack_lines", known(text, c->stack_lines));
}

/* The keys that only a trace has: in a file without one there is no answer. */
static void put_no_trace(json_t *o)
{
	static const char *const keys[] = {
		"events",
		"unknown_events",
		"other_events",
		"records",
		"timed",
		"time_decimals",
		"first_time_ns",
		"last_time_ns",
		"out_of_order",
		"flags_width",
		"cpus",
		"tids",
		"comms",
		"cpus_of_tid",
		"tgid_of_tid",
		"vcpus",
		"vcpu_of_tid",
		"header_cpus",
		"empty_cpus",
		"lost_events",
		"lost_events_min",
		"lost_by_cpu",
		"loss_markers",
		"lost_chunks",
		"exit_reasons",
		"exit_times",
		"nested_exits_by_rip",
		"userspace_exits",
		"page_faults",
		"truncated_error_codes",
		"spurious_faults",
		"loops",
		"pairs",
		"pair_ns",
		"pair_latency",
		"pairs_spanning_loss",
		"unpaired_exits",
		"unpaired_entries",
		"largest_gap_ns",
		"sp_pages",
		"spte",
		"mmio",
		"misconfig_not_mmio",
		"walker_errors",
		"dirty_rings",
		"ple",
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		json_put(o, keys[i], json_null());
}

json_t *facts_json(const struct host_facts *h)
{
	bool binary = facts_has(h, HOST_KIND_TRACE_DAT) || facts_has(h, HOST_KIND_NATIVE);
	const char *verdict = facts_verdict(h);
	json_t *o = json_object();

	json_put(o, "trace", facts_text_json(h->path, strlen(h->path)));
	json_put(o, "kind", kind_json(h->result));
	json_put(o, "sections", sections_json(h->result));
	json_put(o, "given", given_json(&h->given));
	json_put(o, "refuse", json_false());
	json_put(o, "error", json_null());
	json_put(o, "trace_dat", facts_dat_json(&h->result->dat));
	put_counts(o, &h->result->counts, !binary);
	json_put(o, "verdict", verdict ? json_string(verdict) : json_null());
	if (facts_has_trace(h))
		put_trace(o, h);
	else
		put_no_trace(o);
	facts_tables_json(o, h);
	return o;
}
