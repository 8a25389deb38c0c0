// SPDX-License-Identifier: GPL-3.0-or-later
/* What hotspots found, for people. */
#include <inttypes.h>
#include <string.h>

#include "analysis/hotspots.h"
#include "analysis/output.h"
#include "analysis/utf8.h"

#define NS_PER_S UINT64_C(1000000000)
#define WHO	 (4 * HOST_COMM + 64)

/* "vCPU 3 (CPU 3/KVM, tid 4711)" */
static const char *who_text(char buf[WHO], const struct host_who *w)
{
	char comm[4 * HOST_COMM], vcpu[32] = "";

	utf8_clean(comm, sizeof(comm), w->comm, strlen(w->comm), false);
	if (w->vcpu >= 0)
		snprintf(vcpu, sizeof(vcpu), "vCPU %" PRId64 " ", w->vcpu);
	if (w->tid == 0)
		snprintf(buf, WHO, "an idle CPU (its interrupts)");
	else if (w->tid < 0)
		snprintf(buf, WHO, "%s%s", vcpu, comm[0] ? comm : "a thread without a tid");
	else if (comm[0])
		snprintf(buf, WHO,
			 w->vcpu >= 0 ? "%s(%s, tid %" PRId64 ")" : "%s%s (tid %" PRId64 ")", vcpu,
			 comm, w->tid);
	else
		snprintf(buf, WHO, w->vcpu >= 0 ? "%s(tid %" PRId64 ")" : "%stid %" PRId64, vcpu,
			 w->tid);
	return buf;
}

static const char *ns_text(char buf[OUT_TEXT], uint64_t ns)
{
	return out_time(buf, (double)ns, NS_PER_S);
}

/* "12.345678901" */
static const char *at_text(char buf[OUT_TEXT], uint64_t ns)
{
	if (ns == HOST_NO_TIME)
		return "";
	snprintf(buf, OUT_TEXT, "%" PRIu64 ".%09" PRIu64, ns / NS_PER_S, ns % NS_PER_S);
	return buf;
}

static int finish(struct table *t, FILE *to)
{
	int err = t ? table_print(t, to) : KVMSIM_ENOMEM;

	table_free(t);
	return err;
}

static void heading(struct table *t, const char *const *words)
{
	for (; t && *words; words++)
		table_cell(t, "%s", *words);
}

static void page_cell(struct table *t, uint64_t gva, uint64_t gfn)
{
	if (gva)
		table_cell(t, "gva 0x%" PRIx64, gfn << 12);
	else
		table_cell(t, "0x%" PRIx64, gfn);
}

/* ---- pages ---- */

static int print_spots(const struct hotspots *h, FILE *to)
{
	static const char *const heads[] = {"vCPU",   "gfn",	 "faults",   "reads",
					    "writes", "fetches", "spurious", "spte changes",
					    "MMIO",   "period",	 "missed",   NULL};
	struct table *t;

	if (!h->spots.n)
		return 0;
	t = table_create("rlrrrrrrrrr");
	heading(t, heads);
	for (size_t i = 0; t && i < h->spots.n; i++) {
		const struct hot_spot *s = top_item(&h->spots, i);
		const uint64_t n[] = {s->faults, s->reads, s->writes, s->fetches};
		char buf[OUT_TEXT];

		if (s->key.vcpu >= 0)
			table_cell(t, "%" PRId64, s->key.vcpu);
		else
			table_cell(t, "?");
		page_cell(t, s->key.gva, s->key.gfn);
		for (int k = 0; k < 4; k++)
			table_cell(t, "%s", out_u64(buf, n[k]));
		if (s->spurious && s->faults)
			table_cell(t, "%s (%.0f%%)", out_u64(buf, s->spurious),
				   100.0 * (double)s->spurious / (double)s->faults);
		else
			table_cell(t, "%s", out_u64(buf, s->spurious));
		table_cell(t, "%s", out_u64(buf, s->spte_changes));
		table_cell(t, "%s", out_u64(buf, s->mmio));
		table_cell(t, "%s%s", s->periods && !s->exact ? "~" : "",
			   s->periods ? ns_text(buf, s->period_ns) : "");
		table_cell(t, "%s%s", s->missed ? "<= " : "",
			   s->missed ? out_u64(buf, s->missed) : "");
	}
	fputc('\n', to);
	return finish(t, to);
}

/* ---- findings, one line each ---- */

static void print_loops(const struct hotspots *h, FILE *to)
{
	uint64_t in_all = h->n_loops - (h->spte_events ? 0 : h->n_elsewhere), named = 0;

	for (size_t i = 0; i < h->loops.n; i++) {
		const struct hot_loop *l = top_item(&h->loops, i);
		char n[OUT_TEXT], time[OUT_TEXT];

		if (!l->unsure && !hotspots_loop_is_sure(h, l))
			continue;
		named++;
		fprintf(to, "%s: vCPU", l->unsure ? "Cannot tell" : "No-progress loop");
		for (unsigned k = 0; k < l->n_vcpus; k++) {
			if (l->vcpu[k] >= 0)
				fprintf(to, "%s %" PRId64, k ? "," : "", l->vcpu[k]);
			else
				fprintf(to, "%s ?", k ? "," : "");
		}
		fprintf(to,
			"%s faulted %s times for %s 0x%" PRIx64 " at rip 0x%" PRIx64
			" with code 0x%" PRIx64,
			l->more_vcpus ? ", ..." : "", out_u64(n, l->faults), l->gva ? "gva" : "gfn",
			l->gva ? l->gfn << 12 : l->gfn, l->rip, l->code);
		if (l->begin != HOST_NO_TIME && l->end >= l->begin)
			fprintf(to, " in %s", ns_text(time, l->end - l->begin));
		fputs(l->unsure ? ", and events were lost in between: an spte may have changed\n"
				: ", and no spte changed\n",
		      to);
	}
	if (named && in_all > named)
		fprintf(to, "Loops in all: %" PRIu64 "\n", in_all);
	if (!h->spte_events && h->n_elsewhere)
		fprintf(to,
			"Cannot tell: %" PRIu64 " series of faults for one page at one rip, with "
			"faults for other pages in between; no event\ntells of sptes, which have "
			"changed if this is dirty logging: record kvmmmu:*, too\n",
			h->n_elsewhere);
	if (named && !h->spte_events)
		fputs("No event of this trace tells of sptes: if kvmmmu:* was not recorded, they "
		      "may have changed.\n",
		      to);
}

static void print_storm(const struct hotspots *h, FILE *to)
{
	const struct hot_userspace *u = h->storm ? &h->userspace : &h->worst;
	char n[OUT_TEXT], rate[OUT_TEXT], time[OUT_TEXT], name[HOST_REASON];
	int most = 0;

	if (!h->storm && !h->storm_window)
		return;
	for (int i = 1; i <= 40; i++)
		most = u->by_reason[i] > u->by_reason[most] ? i : most;
	fprintf(to, "Exit storm: %s exits to user space in %s, %s per second, most of them %s\n",
		out_u64(n, u->exits), ns_text(time, u->end - u->begin),
		out_u64(rate, u->per_second),
		most < 40 ? host_userspace_reason(most, name) : "signals and errors");
}

static void print_progress(const struct hotspots *h, FILE *to)
{
	for (size_t i = 0; i < h->range_gaps.n; i++) {
		const struct hot_gap *g = top_item(&h->range_gaps, i);
		char who[WHO], time[OUT_TEXT], at[OUT_TEXT];

		if (g->gap.end - g->gap.begin <= HOT_PROGRESS_STALL)
			break;
		fprintf(to,
			"Progress stall: %s had no fault for %s from %s on in 0x%" PRIx64
			"-0x%" PRIx64 "%s%s%s\n",
			who_text(who, &g->gap.who), ns_text(time, g->gap.end - g->gap.begin),
			at_text(at, g->gap.begin), g->gva ? g->first << 12 : g->first,
			g->gva ? g->last << 12 : g->last, g->name[0] ? " " : "", g->name,
			g->gap.unsure ? ", or it cannot be told: events were lost meanwhile" : "");
	}
}

static void print_findings(const struct hotspots *h, FILE *to)
{
	char n[OUT_TEXT];

	print_loops(h, to);
	print_storm(h, to);
	print_progress(h, to);
	for (size_t i = 0; i < h->stalls.n; i++) {
		const struct host_stall *s = top_item(&h->stalls, i);
		char who[WHO], by[WHO], time[OUT_TEXT], until[OUT_TEXT];

		if (s->kind != HOST_STALL_RING)
			continue;
		fprintf(to, "Dirty-ring stall: %s stood still %s%s with a full ring",
			who_text(who, &s->who), s->open ? "at least " : "",
			ns_text(time, s->end - s->begin));
		if (s->blame == HOST_BLAME_KNOWN)
			fprintf(to, ", until %s reset it after %s%s\n", who_text(by, &s->by),
				ns_text(until, s->until - s->begin),
				s->unsure ? "; events were lost meanwhile" : "");
		else
			fputs(s->blame == HOST_BLAME_LOST
				      ? "; who reset it cannot be told: events were lost\n"
				      : "; no reset is in the trace\n",
			      to);
	}
	if (h->lost || h->lost_unknown)
		fprintf(to,
			"Lost: %s%s events, told in %" PRIu64
			" place%s; intervals that span one are not counted\n",
			h->lost_unknown ? "at least " : "", out_u64(n, h->lost), h->losses,
			h->losses == 1 ? "" : "s");
	if (h->lost_chunks)
		fprintf(to, "Lost: %s chunks of events\n", out_u64(n, h->lost_chunks));
}

/* ---- stalls and gaps ---- */

static const char *blame_text(char buf[WHO], const struct host_stall *s)
{
	const char *what = s->blame == HOST_BLAME_SOFTIRQ ? "softirq" : "interrupt";

	switch (s->blame) {
	case HOST_BLAME_KNOWN:
		return who_text(buf, &s->by);
	case HOST_BLAME_INTERRUPT:
	case HOST_BLAME_SOFTIRQ:
		if (s->by_cpu < 0)
			return what;
		snprintf(buf, WHO, "%s, on CPU %" PRId64, what, s->by_cpu);
		return buf;
	default:
		return s->blame == HOST_BLAME_LOST ? "cannot tell: events lost" : "no event tells";
	}
}

static int print_stalls(const struct hotspots *h, FILE *to)
{
	static const char *const heads[] = {"Stall", "who",	 "from", "length",
					    "by",    "which at", "",	 NULL};
	struct table *t;

	if (!h->stalls.n)
		return 0;
	t = table_create("llrrlrl");
	heading(t, heads);
	for (size_t i = 0; t && i < h->stalls.n; i++) {
		const struct host_stall *s = top_item(&h->stalls, i);
		char who[WHO], buf[OUT_TEXT];

		table_cell(t, "%s", host_stall_name(s->kind));
		table_cell(t, "%s", who_text(who, &s->who));
		table_cell(t, "%s", at_text(buf, s->begin));
		table_cell(t, "%s%s",
			   s->open     ? "> "
			   : s->unsure ? "? "
				       : "",
			   ns_text(buf, s->end - s->begin));
		table_cell(t, "%s", blame_text(who, s));
		table_cell(t, "%s", s->until ? at_text(buf, s->until) : "");
		if (s->kind == HOST_STALL_LOCK)
			table_cell(t, "0x%" PRIx64, s->lock);
		else if (s->kind >= HOST_STALL_PREEMPTED)
			table_cell(t, "in %s", host_state_name(s->in));
		table_end_row(t);
	}
	fputc('\n', to);
	return finish(t, to);
}

static int print_kinds(const struct hotspots *h, FILE *to)
{
	static const char *const heads[] = {"Stalls",	       "number",      "total", "longest",
					    "open at the end", "cannot tell", NULL};
	struct table *t;
	uint64_t all = 0;

	for (int k = 0; k < HOST_N_STALLS; k++)
		all += h->by_kind[k].n + h->by_kind[k].open + h->by_kind[k].unsure;
	if (!all)
		return 0;
	t = table_create("lrrrrr");
	heading(t, heads);
	for (int k = 0; t && k < HOST_N_STALLS; k++) {
		const struct hot_stalls *s = &h->by_kind[k];
		char buf[OUT_TEXT];

		if (!s->n && !s->open && !s->unsure)
			continue;
		table_cell(t, "%s", host_stall_name(k));
		table_cell(t, "%s", out_u64(buf, s->n));
		table_cell(t, "%s", ns_text(buf, s->ns));
		table_cell(t, "%s", ns_text(buf, s->longest));
		table_cell(t, "%s", out_u64(buf, s->open));
		table_cell(t, "%s", out_u64(buf, s->unsure));
	}
	fputc('\n', to);
	return finish(t, to);
}

static int print_culprits(const struct hotspots *h, FILE *to)
{
	static const char *const heads[] = {"Held up by", "how",     "stalls",
					    "total",	  "longest", NULL};
	static const char *const nobody[] = {"no event tells", "cannot tell: events lost", "others",
					     "interrupts", "softirqs"};
	struct table *t;

	if (!h->culprits.n)
		return 0;
	t = table_create("llrrr");
	heading(t, heads);
	for (size_t i = 0; t && i < h->culprits.n; i++) {
		const struct hot_culprit *c = top_item(&h->culprits, i);
		char who[WHO], buf[OUT_TEXT];

		table_cell(t, "%s",
			   c->by.tid >= -1 ? who_text(who, &c->by)
					   : nobody[c->by.tid - HOST_NOBODY]);
		table_cell(t, "%s", host_stall_name(c->kind));
		table_cell(t, "%s", out_u64(buf, c->n));
		table_cell(t, "%s", ns_text(buf, c->ns));
		table_cell(t, "%s", ns_text(buf, c->longest));
	}
	fputc('\n', to);
	return finish(t, to);
}

static void gap_cells(struct table *t, const struct host_gap *g)
{
	char who[WHO], buf[OUT_TEXT];

	table_cell(t, "%s", who_text(who, &g->who));
	table_cell(t, "%s%s", g->unsure ? "? " : "", ns_text(buf, g->end - g->begin));
	table_cell(t, "%s", at_text(buf, g->begin));
	table_cell(t, "%s", at_text(buf, g->end));
	if (g->line)
		table_cell(t, "%" PRIu64, g->line);
	else
		table_cell(t, "%s", "");
}

static int print_gaps(const struct hotspots *h, FILE *to)
{
	static const char *const heads[] = {"Longest without a fault in",
					    "faults",
					    "thread",
					    "time",
					    "from",
					    "to",
					    "line",
					    NULL};
	static const char *const of[] = {
		"Longest without a record", "time", "from", "to", "line", NULL};
	struct table *t;
	int err = 0;

	if (h->range_gaps.n) {
		t = table_create("lrlrrrr");
		heading(t, heads);
		for (size_t i = 0; t && i < h->range_gaps.n; i++) {
			const struct hot_gap *g = top_item(&h->range_gaps, i);
			unsigned bits = g->gva ? 12 : 0;
			char buf[OUT_TEXT];

			table_cell(t, "%s%s%s0x%" PRIx64 "-0x%" PRIx64, g->name,
				   g->name[0] ? " " : "", g->gva ? "gva " : "", g->first << bits,
				   g->last << bits);
			table_cell(t, "%s", out_u64(buf, g->faults));
			gap_cells(t, &g->gap);
		}
		fputc('\n', to);
		err = finish(t, to);
	}
	if (!err && h->thread_gaps.n) {
		t = table_create("lrrrr");
		heading(t, of);
		for (size_t i = 0; t && i < h->thread_gaps.n; i++)
			gap_cells(t, top_item(&h->thread_gaps, i));
		fputc('\n', to);
		err = finish(t, to);
	}
	return err;
}

int hotspots_print(const char *path, const struct hotspots *h, FILE *to)
{
	char a[OUT_TEXT], b[OUT_TEXT], c[OUT_TEXT], time[OUT_TEXT];
	int err;

	fprintf(to, "%s: %s events, %s of KVM, %s faults", path, out_u64(a, h->events),
		out_u64(b, h->kvm_events), out_u64(c, h->faults));
	if (h->totals.first != HOST_NO_TIME)
		fprintf(to, ", in %s\n", ns_text(time, h->totals.last - h->totals.first));
	else
		fputs("; without times, which is why nothing below has one\n", to);
	if (h->outside)
		fprintf(to, "%s faults outside of the ranges\n", out_u64(a, h->outside));
	if (h->totals.backwards)
		fprintf(to, "Earlier than their thread's last record: %s\n",
			out_u64(a, h->totals.backwards));
	if (h->dropped_keys)
		fprintf(to,
			"More pages than are kept: %s were let go of; a page may have up to %s "
			"faults more\n",
			out_u64(a, h->dropped_keys), out_u64(b, h->dropped_at_most));
	print_findings(h, to);
	err = print_spots(h, to);
	err = err ? err : print_kinds(h, to);
	err = err ? err : print_stalls(h, to);
	err = err ? err : print_culprits(h, to);
	return err ? err : print_gaps(h, to);
}
