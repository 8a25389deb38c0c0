// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "analysis/output.h"
#include "analysis/record_kvm.h"
#include "analysis/stats.h"

/* ---- what was measured ---- */

static double get_of(const struct record_sample *s)
{
	return s->get;
}

static double clear_of(const struct record_sample *s)
{
	return s->clear;
}

/* All that a VMM waits for. */
static double total_of(const struct record_sample *s)
{
	return s->get + s->clear + s->collect + s->reset;
}

static double longest_of(const struct record_sample *s)
{
	return s->clear_longest;
}

static double collect_of(const struct record_sample *s)
{
	return s->collect;
}

static double reset_of(const struct record_sample *s)
{
	return s->reset;
}

static double access_of(const struct record_sample *s)
{
	return s->per_access;
}

static const struct metric {
	const char *name, *heading;
	double (*of)(const struct record_sample *s);
	unsigned protocols; /* bits */
} metrics[] = {
	{"GET_DIRTY_LOG ioctl", "GET", get_of,
	 1u << KVM_PROTOCOL_GET | 1u << KVM_PROTOCOL_MANUAL | 1u << KVM_PROTOCOL_MANUAL_ALL_SET},
	{"CLEAR_DIRTY_LOG ioctls", "CLEAR", clear_of,
	 1u << KVM_PROTOCOL_MANUAL | 1u << KVM_PROTOCOL_MANUAL_ALL_SET},
	{"longest CLEAR_DIRTY_LOG ioctl", "longest", longest_of,
	 1u << KVM_PROTOCOL_MANUAL | 1u << KVM_PROTOCOL_MANUAL_ALL_SET},
	{"dirty ring collection", "collection", collect_of, 1u << KVM_PROTOCOL_RING},
	{"RESET_DIRTY_RINGS ioctls", "RESET", reset_of, 1u << KVM_PROTOCOL_RING},
	{"dirty log collection", "total", total_of,
	 1u << KVM_PROTOCOL_MANUAL | 1u << KVM_PROTOCOL_MANUAL_ALL_SET | 1u << KVM_PROTOCOL_RING},
	{"guest run per access", "run/access", access_of, ~0u},
};
#define N_METRICS (sizeof(metrics) / sizeof(metrics[0]))

static bool measured(const struct record_kvm *k, const struct metric *m)
{
	/* beside running guests no round has a run of its own */
	return m->protocols >> k->player->protocol & 1 &&
	       !(m->of == access_of && k->player->every_us);
}

/* The rounds of one slot with the same number of dirty pages. */
struct group {
	const struct record_sample *first;
	size_t n;
};

static int by_group(const void *pa, const void *pb)
{
	const struct record_sample *a = pa, *b = pb;

	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	return a->nr_dirty < b->nr_dirty ? -1 : a->nr_dirty > b->nr_dirty;
}

static struct group group_at(const struct record_kvm *k, size_t i)
{
	struct group g = {.first = &k->samples[i]};

	while (i < k->n && !by_group(g.first, &k->samples[i])) {
		g.n++;
		i++;
	}
	return g;
}

struct spread {
	double low, median, high; /* the quartiles */
};

static int spread_of(const struct group *g, const struct metric *m, struct spread *out)
{
	static const double p[] = {0.25, 0.5, 0.75};
	double q[3], *x = malloc(g->n * sizeof(*x));

	if (!x)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < g->n; i++)
		x[i] = m->of(&g->first[i]);
	int err = stats_quantiles(x, g->n, p, 3, q);

	free(x);
	*out = (struct spread){q[0], q[1], q[2]};
	return err;
}

/* Of a normal distribution, by its quartiles: what a few disturbed rounds did does not count. */
static double robust_sd(const struct spread *s)
{
	return (s->high - s->low) / 1.349;
}

static const char *slot_name(const struct record_kvm *k, uint32_t slot)
{
	return slot == RECORD_ALL_SLOTS ? "all" : k->slots[slot].name;
}

/* ---- the machine ---- */

static void first_line_with(const char *path, const char *key, char *out, size_t size)
{
	FILE *f = fopen(path, "re");
	char line[256];

	snprintf(out, size, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		const char *colon = strchr(line, ':');

		if (strncmp(line, key, strlen(key)) || !colon)
			continue;
		snprintf(out, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
		break;
	}
	if (f)
		fclose(f);
}

const char *record_kvm_module(void)
{
	static const char *const modules[] = {"kvm_pvm", "kvm_amd", "kvm_intel"};

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "/sys/module/%s", modules[i]);
		if (!access(path, F_OK))
			return modules[i];
	}
	return "kvm";
}

char *record_kvm_setup(const struct record_kvm *k, const struct record_sample *s)
{
	const struct kvm_player_opts *o = k->player;
	char cpu[128], *text = NULL;
	struct utsname host;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	first_line_with("/proc/cpuinfo", "model name", cpu, sizeof(cpu));
	uname(&host);
	fprintf(f, "%s on %s; kernel %s; guest 64-bit CPL3; %s guest PTEs; %s", record_kvm_module(),
		cpu, host.release, o->guest_2m ? "2M" : "4K",
		o->thp ? "transparent huge pages" : "4K host pages");
	if (o->n_vcpus > 1)
		fprintf(f, "; %" PRIu32 " vCPUs", o->n_vcpus);
	if (o->every_us)
		fprintf(f, "; collected beside the guest, %" PRIu32 " us apart", o->every_us);
	if (o->absent || !o->warm)
		fprintf(f, "; guest's first accesses%s", o->absent ? ", host pages absent" : "");
	if (o->protocol == KVM_PROTOCOL_MANUAL_ALL_SET)
		fputs("; initially all set", f);
	if (o->clear_chunk)
		fprintf(f, "; chunk=%" PRIu64, o->clear_chunk);
	if (o->protocol == KVM_PROTOCOL_RING)
		fprintf(f, "; ring=%" PRIu32, o->ring_entries);
	if (s && s->slot != RECORD_ALL_SLOTS)
		fprintf(f, "; slot npages=%" PRIu64, k->slots[s->slot].npages);
	for (uint32_t i = 0; s && s->slot == RECORD_ALL_SLOTS && i < o->n_slots; i++) {
		if (k->slots[i].logged)
			fprintf(f, "; slot npages=%" PRIu64, k->slots[i].npages);
	}
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- output ---- */

static int print_table(const struct record_kvm *k, FILE *to)
{
	char columns[4 + 2 * N_METRICS] = "lrr", n[OUT_TEXT];
	struct table *t;
	int err = 0;

	for (size_t m = 0; m < N_METRICS; m++) {
		if (measured(k, &metrics[m]))
			strcat(columns, "rr");
	}
	t = table_create(columns);
	if (!t)
		return KVMSIM_ENOMEM;
	table_cell(t, "slot");
	table_cell(t, "dirty pages");
	table_cell(t, "rounds");
	for (size_t m = 0; m < N_METRICS; m++) {
		if (measured(k, &metrics[m])) {
			table_cell(t, "%s", metrics[m].heading);
			table_cell(t, "quartiles");
		}
	}
	for (size_t i = 0; !err && i < k->n;) {
		struct group g = group_at(k, i);

		table_cell(t, "%s", slot_name(k, g.first->slot));
		table_cell(t, "%s", out_u64(n, g.first->nr_dirty));
		table_cell(t, "%zu", g.n);
		for (size_t m = 0; !err && m < N_METRICS; m++) {
			struct spread s;
			char low[OUT_TEXT], high[OUT_TEXT];

			if (!measured(k, &metrics[m]))
				continue;
			err = spread_of(&g, &metrics[m], &s);
			table_cell(t, "%s", out_u64(n, (uint64_t)llround(s.median)));
			table_cell(t, "%s to %s", out_u64(low, (uint64_t)llround(s.low)),
				   out_u64(high, (uint64_t)llround(s.high)));
		}
		i += g.n;
	}
	err = err ? err : table_print(t, to);
	table_free(t);
	return err;
}

static void print_summary(const struct record_kvm *k, const struct kvm_player_result *result,
			  FILE *to)
{
	char a[OUT_TEXT], b[OUT_TEXT], c[OUT_TEXT];

	fprintf(to, "\nTSC cycles, medians. Logging was switched on in ");
	for (uint32_t i = 0, n = 0; i < k->player->n_slots; i++) {
		if (k->slots[i].logged)
			fprintf(to, "%s%s (%s)", n++ ? ", " : "",
				out_u64(a, result->enable_cycles[i]), k->slots[i].name);
	}
	fprintf(to, ".\n%s rounds, %s accesses. Of %s pages that had to be reported ",
		out_u64(a, k->n_rounds), out_u64(b, result->accesses), out_u64(c, k->must));
	fprintf(to, "%s were not; reported without a store: %s",
		k->missing ? out_u64(a, k->missing) : "none",
		k->maybe ? out_u64(b, k->maybe) : "none");
	fprintf(to, "; without an access: %s.\n", k->beside ? out_u64(c, k->beside) : "none");
	if (k->player->protocol == KVM_PROTOCOL_RING)
		fprintf(to, "A ring was full %s times.\n", out_u64(a, k->ring_full));
}

static int print_row(const struct record_kvm *k, const struct group *g, const struct metric *m,
		     struct csv_out *c)
{
	static const char *const policy[N_KVM_PROTOCOLS] = {"mask", "manual", "manual", "ring"};
	struct spread s;
	int err = spread_of(g, m, &s);
	char *setup = record_kvm_setup(k, g->first);

	if (err || !setup) {
		free(setup);
		return KVMSIM_ENOMEM;
	}
	csv_text(c, "dirty_logging");
	csv_text(c, k->series);
	csv_text(c, m->name);
	csv_text(c, "tsc_cycles");
	csv_text(c, setup);
	csv_text(c, "nr_dirty");
	csv_field(c, "%" PRIu64, g->first->nr_dirty);
	csv_text(c, policy[k->player->protocol]);
	csv_field(c, "%.0f", s.median);
	csv_field(c, "%.0f", robust_sd(&s));
	csv_text(c, k->source ? k->source : "kvmsim record kvm");
	csv_field(c, "median of %zu rounds; stdev from their quartiles, %.0f and %.0f", g->n, s.low,
		  s.high);
	csv_end_row(c);
	free(setup);
	return 0;
}

static int print_csv(const struct record_kvm *k, FILE *to)
{
	static const char *const columns[] = {"topic", "series", "metric", "unit",
					      "setup", "x_name", "x",	   "policy",
					      "value", "stdev",	 "source", "source_locator"};
	struct csv_out c = {.to = to};
	int err = 0;

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		csv_text(&c, columns[i]);
	csv_end_row(&c);
	for (size_t i = 0; !err && i < k->n;) {
		struct group g = group_at(k, i);

		for (size_t m = 0; !err && m < N_METRICS; m++) {
			if (measured(k, &metrics[m]))
				err = print_row(k, &g, &metrics[m], &c);
		}
		i += g.n;
	}
	return err;
}

int record_kvm_print(struct record_kvm *k, const struct kvm_player_result *result, FILE *to)
{
	int err;

	if (k->n)
		qsort(k->samples, k->n, sizeof(*k->samples), by_group);
	switch (k->format) {
	case RECORD_CSV:
		return print_csv(k, to);
	case RECORD_JSON:
		return record_kvm_json(k, result, to);
	default:
		err = print_table(k, to);
		if (!err)
			print_summary(k, result, to);
		return err;
	}
}
