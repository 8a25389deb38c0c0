// SPDX-License-Identifier: GPL-3.0-or-later
/* What hotspots found, for programs. */
#include <inttypes.h>
#include <string.h>

#include "analysis/hotspots.h"
#include "analysis/output.h"
#include "analysis/utf8.h"

static json_t *hex(uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, v);
	return json_string(text);
}

static json_t *time_or_null(uint64_t t)
{
	return t == HOST_NO_TIME ? json_null() : json_u64(t);
}

static json_t *id_or_null(int64_t id)
{
	return id < 0 ? json_null() : json_integer(id);
}

static json_t *who_json(const struct host_who *w)
{
	char comm[4 * HOST_COMM];
	json_t *o = json_object();

	json_put(o, "tid", id_or_null(w->tid));
	json_put(o, "vcpu", id_or_null(w->vcpu));
	json_put(o, "comm",
		 w->comm[0] ? json_string(utf8_clean(comm, sizeof(comm), w->comm, strlen(w->comm),
						     true))
			    : json_null());
	return o;
}

static json_t *spots_json(const struct hotspots *h)
{
	json_t *a = json_array();

	for (size_t i = 0; i < h->spots.n; i++) {
		const struct hot_spot *s = top_item(&h->spots, i);
		json_t *o = json_object();

		json_put(o, "vcpu", id_or_null(s->key.vcpu));
		json_put(o, "gfn", s->key.gva ? json_null() : hex(s->key.gfn));
		json_put(o, "gva", s->key.gva ? hex(s->key.gfn << 12) : json_null());
		json_put(o, "faults", json_u64(s->faults));
		json_put(o, "reads", json_u64(s->reads));
		json_put(o, "writes", json_u64(s->writes));
		json_put(o, "fetches", json_u64(s->fetches));
		json_put(o, "spurious", json_u64(s->spurious));
		json_put(o, "spte_changes", json_u64(s->spte_changes));
		json_put(o, "mmio", json_u64(s->mmio));
		json_put(o, "period_ns", s->periods ? json_u64(s->period_ns) : json_null());
		json_put(o, "period_exact", json_boolean(s->exact));
		json_put(o, "periods", json_u64(s->periods));
		json_put(o, "first_ns", time_or_null(s->first));
		json_put(o, "last_ns", time_or_null(s->last));
		json_put(o, "missed_at_most", json_u64(s->missed));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *loops_json(const struct hotspots *h)
{
	json_t *a = json_array();

	for (size_t i = 0; i < h->loops.n; i++) {
		const struct hot_loop *l = top_item(&h->loops, i);
		json_t *o = json_object(), *vcpus = json_array();

		for (unsigned k = 0; k < l->n_vcpus; k++)
			json_array_append_new(vcpus, id_or_null(l->vcpu[k]));
		json_put(o, "vcpus", vcpus);
		json_put(o, "more_vcpus", json_boolean(l->more_vcpus));
		json_put(o, "gfn", l->gva ? json_null() : hex(l->gfn));
		json_put(o, "gva", l->gva ? hex(l->gfn << 12) : json_null());
		json_put(o, "rip", hex(l->rip));
		json_put(o, "error_code", hex(l->code));
		json_put(o, "faults", json_u64(l->faults));
		json_put(o, "first_ns", time_or_null(l->begin));
		json_put(o, "last_ns", time_or_null(l->end));
		json_put(o, "line", l->line ? json_u64(l->line) : json_null());
		json_put(o, "elsewhere", json_u64(l->elsewhere));
		json_put(o, "cannot_tell", json_boolean(!hotspots_loop_is_sure(h, l)));
		json_array_append_new(a, o);
	}
	return a;
}

static const char *const blame_words[] = {
	[HOST_BLAME_UNSEEN] = "not seen", [HOST_BLAME_LOST] = "cannot tell",
	[HOST_BLAME_KNOWN] = "known",	  [HOST_BLAME_INTERRUPT] = "interrupt",
	[HOST_BLAME_SOFTIRQ] = "softirq",
};

static json_t *stall_json(const struct host_stall *s)
{
	json_t *o = json_object();
	bool known = s->blame == HOST_BLAME_KNOWN, lock = s->kind == HOST_STALL_LOCK;

	json_put(o, "kind", json_string(host_stall_name(s->kind)));
	json_put(o, "who", who_json(&s->who));
	json_put(o, "begin_ns", json_u64(s->begin));
	json_put(o, "end_ns", s->open ? json_null() : json_u64(s->end));
	json_put(o, "ns", s->open || s->unsure ? json_null() : json_u64(s->end - s->begin));
	json_put(o, "open", json_boolean(s->open));
	json_put(o, "cannot_tell", json_boolean(s->unsure));
	json_put(o, "by", known ? who_json(&s->by) : json_null());
	json_put(o, "by_whom", json_string(blame_words[s->blame]));
	json_put(o, "by_cpu", id_or_null(s->by_cpu));
	json_put(o, "interrupted", s->blame > HOST_BLAME_KNOWN ? who_json(&s->by) : json_null());
	json_put(o, "until_ns", s->until ? json_u64(s->until) : json_null());
	if (s->kind == HOST_STALL_RING)
		json_put(o, "resets", json_u64(s->resets));
	if (lock) {
		json_put(o, "lock", hex(s->lock));
		json_put(o, "flags", json_u64(s->flags));
	}
	if (s->kind == HOST_STALL_PREEMPTED || s->kind == HOST_STALL_SLEPT)
		json_put(o, "in", json_string(host_state_name(s->in)));
	return o;
}

static json_t *stalls_json(const struct hotspots *h)
{
	json_t *a = json_array();

	for (size_t i = 0; i < h->stalls.n; i++)
		json_array_append_new(a, stall_json(top_item(&h->stalls, i)));
	return a;
}

static json_t *kinds_json(const struct hotspots *h)
{
	json_t *all = json_object();

	for (int k = 0; k < HOST_N_STALLS; k++) {
		const struct hot_stalls *s = &h->by_kind[k];
		json_t *o = json_object();

		json_put(o, "stalls", json_u64(s->n));
		json_put(o, "ns", json_u64(s->ns));
		json_put(o, "longest_ns", json_u64(s->longest));
		json_put(o, "cannot_tell", json_u64(s->unsure));
		json_put(o, "open", json_u64(s->open));
		json_put(all, host_stall_name(k), o);
	}
	return all;
}

static json_t *culprits_json(const struct hotspots *h)
{
	json_t *a = json_array();

	for (size_t i = 0; i < h->culprits.n; i++) {
		const struct hot_culprit *c = top_item(&h->culprits, i);
		json_t *o = json_object();

		json_put(o, "kind", json_string(host_stall_name(c->kind)));
		json_put(o, "by", c->by.tid >= -1 ? who_json(&c->by) : json_null());
		json_put(o, "by_whom", json_string(blame_words[c->blame]));
		json_put(o, "stalls", json_u64(c->n));
		json_put(o, "ns", json_u64(c->ns));
		json_put(o, "longest_ns", json_u64(c->longest));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *userspace_json(const struct hot_userspace *u)
{
	json_t *o = json_object(), *reasons = json_object();

	json_put(o, "exits", json_u64(u->exits));
	json_put(o, "per_second", u->end > u->begin ? json_u64(u->per_second) : json_null());
	json_put(o, "begin_ns", u->end ? json_u64(u->begin) : json_null());
	json_put(o, "end_ns", u->end ? json_u64(u->end) : json_null());
	for (int i = 0; i <= 40; i++) {
		char name[HOST_REASON];

		if (!u->by_reason[i])
			continue;
		json_put(reasons, i < 40 ? host_userspace_reason(i, name) : "other",
			 json_u64(u->by_reason[i]));
	}
	json_put(o, "by_reason", reasons);
	return o;
}

static json_t *gap_json(const struct host_gap *g)
{
	json_t *o = json_object();

	json_put(o, "who", who_json(&g->who));
	json_put(o, "begin_ns", json_u64(g->begin));
	json_put(o, "end_ns", json_u64(g->end));
	json_put(o, "ns", g->unsure ? json_null() : json_u64(g->end - g->begin));
	json_put(o, "line", g->line ? json_u64(g->line) : json_null());
	json_put(o, "cannot_tell", json_boolean(g->unsure));
	return o;
}

static json_t *gaps_json(const struct hotspots *h)
{
	json_t *a = json_array();

	for (size_t i = 0; i < h->range_gaps.n; i++) {
		const struct hot_gap *g = top_item(&h->range_gaps, i);
		json_t *o = gap_json(&g->gap);

		json_put(o, "range", g->name[0] ? json_string(g->name) : json_null());
		json_put(o, g->gva ? "first_gva" : "first_gfn",
			 hex(g->gva ? g->first << 12 : g->first));
		json_put(o, g->gva ? "last_gva" : "last_gfn",
			 hex(g->gva ? g->last << 12 : g->last));
		json_put(o, "faults", json_u64(g->faults));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *thread_gaps_json(const struct hotspots *h)
{
	json_t *a = json_array();

	for (size_t i = 0; i < h->thread_gaps.n; i++)
		json_array_append_new(a, gap_json(top_item(&h->thread_gaps, i)));
	return a;
}

json_t *hotspots_json(const char *path, const struct hotspots *h)
{
	json_t *o = json_object(), *file = json_string(path);

	json_put(o, "trace", file ? file : json_null());
	json_put(o, "events", json_u64(h->events));
	json_put(o, "kvm_events", json_u64(h->kvm_events));
	json_put(o, "damaged_lines", json_u64(h->counts.damaged_lines));
	json_put(o, "elisions", json_u64(h->counts.elisions));
	json_put(o, "losses", json_u64(h->losses));
	json_put(o, "lost_events", h->lost_unknown ? json_null() : json_u64(h->lost));
	json_put(o, "lost_chunks", json_u64(h->lost_chunks));
	json_put(o, "first_ns", time_or_null(h->totals.first));
	json_put(o, "last_ns", time_or_null(h->totals.last));
	json_put(o, "backwards", json_u64(h->totals.backwards));
	json_put(o, "threads_forgotten", json_u64(h->totals.forgotten));
	json_put(o, "faults", json_u64(h->faults));
	json_put(o, "faults_outside", json_u64(h->outside));
	json_put(o, "spte_changes", json_u64(h->spte_events));
	json_put(o, "pages", json_u64(h->keys));
	json_put(o, "pages_let_go", json_u64(h->dropped_keys));
	json_put(o, "missed_at_most", json_u64(h->dropped_at_most));
	json_put(o, "hotspots", spots_json(h));
	json_put(o, "loops_found", json_u64(h->n_loops));
	json_put(o, "loops_with_faults_elsewhere", json_u64(h->n_elsewhere));
	json_put(o, "loops", loops_json(h));
	json_put(o, "stalls", stalls_json(h));
	json_put(o, "stalls_by_kind", kinds_json(h));
	json_put(o, "held_up_by", culprits_json(h));
	json_put(o, "userspace_exits", userspace_json(&h->userspace));
	json_put(o, "worst_window", h->worst.exits ? userspace_json(&h->worst) : json_null());
	json_put(o, "exit_storm", json_boolean(h->storm || h->storm_window));
	json_put(o, "range_gaps", gaps_json(h));
	json_put(o, "thread_gaps", thread_gaps_json(h));
	return o;
}

#define csv_maybe(c, there, format, value)                                                         \
	((there) ? csv_field(c, format, value) : csv_text(c, NULL))

void hotspots_csv(const struct hotspots *h, FILE *to)
{
	static const char *const heads[] = {
		"vcpu",	     "gfn",	 "gva",	     "faults",	      "reads",
		"writes",    "fetches",	 "spurious", "spte_changes",  "mmio",
		"period_ns", "first_ns", "last_ns",  "missed_at_most"};
	struct csv_out c = {.to = to};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		csv_text(&c, heads[i]);
	csv_end_row(&c);
	for (size_t i = 0; i < h->spots.n; i++) {
		const struct hot_spot *s = top_item(&h->spots, i);
		const uint64_t counts[] = {s->faults,	s->reads,	 s->writes, s->fetches,
					   s->spurious, s->spte_changes, s->mmio};

		csv_maybe(&c, s->key.vcpu >= 0, "%" PRIu64, (uint64_t)s->key.vcpu);
		csv_maybe(&c, !s->key.gva, "0x%" PRIx64, s->key.gfn);
		csv_maybe(&c, s->key.gva, "0x%" PRIx64, s->key.gfn << 12);
		for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
			csv_field(&c, "%" PRIu64, counts[k]);
		csv_maybe(&c, s->periods, "%" PRIu64, s->period_ns);
		csv_maybe(&c, s->first != HOST_NO_TIME, "%" PRIu64, s->first);
		csv_maybe(&c, s->last != HOST_NO_TIME, "%" PRIu64, s->last);
		csv_field(&c, "%" PRIu64, s->missed);
		csv_end_row(&c);
	}
}
