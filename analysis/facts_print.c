// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts_priv.h"
#include "analysis/output.h"

/* The facts for people: one page. */

#define NS 1000000000

static void line(const char *label, const char *words)
{
	printf("%-13s %s\n", label, words);
}

static const char *ns_text(char buf[OUT_TEXT], uint64_t ns)
{
	return out_time(buf, (double)ns, NS);
}

static void print_file(const struct host_facts *h)
{
	const struct host_counts *c = &h->result->counts;
	char a[OUT_TEXT], b[OUT_TEXT], d[OUT_TEXT];
	const char *verdict = facts_verdict(h);

	line("Trace", h->path);
	printf("%-13s ", "Format");
	for (unsigned i = 0; i < h->result->n_sections; i++)
		printf("%s%s", i ? ", " : "", host_kind_name(h->result->sections[i]));
	putchar('\n');
	if (c->lines) {
		printf("%-13s %s: %s unknown, %s damaged (%s dropped)", "Lines",
		       out_u64(a, c->lines), out_u64(b, c->unknown_lines),
		       out_u64(d, c->damaged_lines),
		       out_u64((char[OUT_TEXT]){0}, c->dropped_lines));
		if (c->rejoined_records)
			printf(", %s rejoined", out_u64(a, c->rejoined_records));
		if (c->elisions)
			printf(", %s left out", out_u64(a, c->elisions));
		putchar('\n');
	}
	line("Verdict", verdict ? verdict : "none of the rules holds");
}

static void print_head(const struct host_facts *h)
{
	const struct facts *f = h->facts;
	char a[OUT_TEXT], b[OUT_TEXT], d[OUT_TEXT];

	printf("%-13s %s: %s of KVM, %s unknown, %s of others\n", "Events", out_u64(a, f->records),
	       out_u64(b, facts_kvm_records(f)), out_u64(d, f->records_of[HOST_UNKNOWN_KVM]),
	       out_u64((char[OUT_TEXT]){0},
		       f->records - facts_kvm_records(f) - f->records_of[HOST_UNKNOWN_KVM]));
	if (f->timed_records) {
		printf("%-13s %s, from %" PRIu64 ".%09" PRIu64 " s", "Time",
		       ns_text(a, f->last_time - f->first_time), f->first_time / NS,
		       f->first_time % NS);
		if (f->out_of_order)
			printf("; %s out of order", out_u64(a, f->out_of_order));
		putchar('\n');
	}
	printf("%-13s ", "vCPUs");
	if (!f->has_vcpu)
		printf("no record tells one");
	for (const struct tally_item *i = f->vcpus.items; i; i = i->hh.next)
		printf("%s%" PRIu64, i == f->vcpus.items ? "" : " ", i->key);
	putchar('\n');
	if (f->has_tid)
		printf("%-13s %u%s\n", "Threads", HASH_COUNT(f->threads),
		       f->threads_truncated ? " or more" : "");
}

static void print_lost(const struct host_facts *h)
{
	const struct facts *f = h->facts;
	uint64_t lost = f->has_header_loss ? f->header_lost : f->lost;
	char a[OUT_TEXT];

	printf("%-13s ", "Lost");
	if (f->uncounted && !f->has_header_loss)
		printf("%s%s, how many is not told\n", lost ? "more than " : "some",
		       lost ? out_u64(a, lost) : "");
	else
		printf("%s\n", lost ? out_u64(a, lost) : "none");
	if (f->lost_chunks)
		printf("%-13s %s of perf's, of events unknown\n", "Lost chunks",
		       out_u64(a, f->lost_chunks));
}

static int finish_table(struct table *t)
{
	int err;

	putchar('\n');
	err = table_print(t, stdout);
	table_free(t);
	return err;
}

/* ---- events by name, exits by reason ---- */

struct row {
	const char *name;
	uint64_t n;
	const struct exit_reason *reason;
};

static int by_number(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return strcmp(x->name, y->name);
}

#define MAX_ROWS 40 /* of a page; the rest is in the JSON */

static int print_events(const struct facts *f)
{
	size_t max = HOST_N_EVENTS + HASH_COUNT(f->rest.items) + HASH_COUNT(f->unknown.items) +
		     HASH_COUNT(f->other.items);
	struct row *row = calloc(max, sizeof(*row));
	struct table *t = table_create("lr");
	const struct names *sets[] = {&f->rest, &f->unknown, &f->other};
	char buf[OUT_TEXT];
	size_t n = 0;

	if (!row || !t) {
		free(row);
		table_free(t);
		return KVMSIM_ENOMEM;
	}
	for (int id = 0; id < HOST_N_EVENTS; id++)
		if (host_event_name(id) && f->records_of[id])
			row[n++] = (struct row){host_event_name(id), f->records_of[id], NULL};
	for (int s = 0; s < 3; s++)
		for (const struct name_item *i = sets[s]->items; i; i = i->hh.next)
			row[n++] = (struct row){i->name, i->n, NULL};
	qsort(row, n, sizeof(*row), by_number);
	table_cell(t, "Event");
	table_cell(t, "number");
	for (size_t i = 0; i < n && i < MAX_ROWS; i++) {
		facts_text_cell(t, row[i].name);
		table_cell(t, "%s", out_u64(buf, row[i].n));
	}
	if (n > MAX_ROWS) {
		table_cell(t, "and %zu more", n - MAX_ROWS);
		table_end_row(t);
	}
	free(row);
	return finish_table(t);
}

static void latency_cells(struct table *t, const struct exit_reason *r)
{
	char buf[OUT_TEXT];

	if (!r->pairs)
		return;
	table_cell(t, "%s", out_u64(buf, r->pairs));
	table_cell(t, "%s", ns_text(buf, r->ns));
	table_cell(t, "%s", ns_text(buf, hist_percentile(r->hist, 50)));
	table_cell(t, "%s", ns_text(buf, hist_percentile(r->hist, 99)));
	table_cell(t, "%s", ns_text(buf, r->hist->max));
}

static int print_exits(const struct facts *f)
{
	static const char *const heading[] = {"Exit",	"number", "with time", "total",
					      "median", "99 %",	  "longest"};
	struct row *row;
	struct table *t;
	char buf[OUT_TEXT];
	size_t n = 0;

	if (!f->exits)
		return 0;
	row = calloc(HASH_COUNT(f->reasons) + 1, sizeof(*row));
	t = table_create("lrrrrrr");
	if (!row || !t) {
		free(row);
		table_free(t);
		return KVMSIM_ENOMEM;
	}
	for (const struct exit_reason *r = f->reasons; r; r = r->hh.next)
		row[n++] = (struct row){r->name, r->n, r};
	qsort(row, n, sizeof(*row), by_number);
	for (int i = 0; i < 7; i++)
		table_cell(t, "%s", heading[i]);
	for (size_t i = 0; i < n && i < MAX_ROWS; i++) {
		facts_text_cell(t, row[i].name);
		table_cell(t, "%s", out_u64(buf, row[i].n));
		if (!facts_too_lossy(f))
			latency_cells(t, row[i].reason);
		table_end_row(t);
	}
	free(row);
	return finish_table(t);
}

/* ---- what was found, and what cannot be told ---- */

static void print_loops(const struct facts *f)
{
	unsigned shown = 0;
	char a[OUT_TEXT];

	for (const struct facts_loop *l = NULL; (l = facts_loop_next(f, l)) && shown < 10; shown++)
		printf("%s faults without progress on %s 0x%" PRIx64 ", rip 0x%" PRIx64
		       ", code 0x%" PRIx64 "\n",
		       out_u64(a, l->faults), l->key.gva ? "the page of GVA" : "gfn",
		       l->key.gva ? l->key.page << 12 : l->key.page, l->key.rip, l->key.code);
}

static void print_rings(const struct facts *f)
{
	char a[OUT_TEXT], b[OUT_TEXT], c[OUT_TEXT];
	unsigned shown = 0;

	for (const struct facts_ring *r = f->rings; r && shown < 10; r = r->hh.next, shown++) {
		printf("Dirty ring of vCPU %" PRIu64 ": %s pushes, %s resets, left full %s times",
		       r->vcpu, out_u64(a, r->pushes), out_u64(b, r->resets), out_u64(c, r->exits));
		if (r->stalls)
			printf(", standing still for %s", ns_text(a, r->stall_ns));
		putchar('\n');
	}
}

static void print_found(const struct facts *f)
{
	char a[OUT_TEXT], b[OUT_TEXT];

	putchar('\n');
	if (f->records_of[HOST_kvm_page_fault])
		printf("%s page faults, %s found nothing to do\n",
		       out_u64(a, f->records_of[HOST_kvm_page_fault]), out_u64(b, f->spurious));
	print_loops(f);
	print_rings(f);
	if (f->mmio[0] + f->mmio[1] + f->mmio[2])
		printf("MMIO: %s accesses at %u addresses\n",
		       out_u64(a, f->mmio[1] + f->mmio[2] + f->open_reads),
		       HASH_COUNT(f->gpas.items));
	if (f->has_gap)
		printf("Longest time between two records of one thread: %s\n",
		       ns_text(a, f->largest_gap));
}

static void print_untold(const struct facts *f)
{
	char a[OUT_TEXT];

	if (!facts_usable(f))
		printf("No event in it tells what KVM cost; that is not a cost of zero.\n");
	if (facts_too_lossy(f))
		printf("More events were lost than are here: no latencies are told.\n");
	else if (f->spanning)
		printf("%s exits span a loss: how long they took is not told.\n",
		       out_u64(a, f->spanning));
	if (!f->timed_records)
		printf("There is no time column: nothing is told of how long anything took.\n");
	if (!f->has_tid)
		printf("There is no thread in it: exits and entries cannot be paired.\n");
	if (f->records_of[HOST_kvm_page_fault])
		printf("Faults are seen, not accesses: what a page that is mapped was used for "
		       "is not told.\n");
}

int facts_print(const struct host_facts *h)
{
	int err = 0;

	print_file(h);
	if (facts_has_trace(h)) {
		print_head(h);
		print_lost(h);
		err = print_events(h->facts);
		if (!err)
			err = print_exits(h->facts);
		print_found(h->facts);
		print_untold(h->facts);
	}
	return err ? err : tables_print(h);
}
