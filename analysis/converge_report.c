// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/converge_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analysis/output.h"
#include "analysis/run_record.h"
#include "model/guest/watch.h"
#include "model/sim/profile.h"

#define PAGE 4096.0

struct view {
	const struct precopy_opts *o;
	const struct precopy_result *r;
	const struct run_opts *run;
	const char *input;
	uint64_t hz;
};

/* ---- figures ---- */

static double ms(const struct view *v, cycles_t cycles)
{
	return (double)cycles * 1e3 / (double)v->hz;
}

/* Pages that the guest dirtied per second. */
static double dirty_rate(const struct view *v, const struct precopy_round *x)
{
	return x->cycles ? (double)x->dirtied * (double)v->hz / (double)x->cycles : 0;
}

static double mbps(const struct view *v, uint64_t bytes, cycles_t cycles)
{
	return cycles ? (double)bytes * 8 / 1e6 * (double)v->hz / (double)cycles : 0;
}

static double percent(cycles_t part, cycles_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static cycles_t handling(const struct precopy_guest *g)
{
	return g->elapsed - g->insns - g->throttled - g->stopped - g->waited;
}

static const char *operation_name(unsigned operation)
{
	static const char *const names[] = {
#define X(name, help) help,
		KVM_OPERATIONS(X)
#undef X
	};

	return names[operation];
}

static uint64_t sum(const struct precopy_result *r, size_t member)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->n_rounds; i++)
		n += *(const uint64_t *)((const char *)&r->rounds[i] + member);
	return n;
}
#define SUM(r, member) sum(r, offsetof(struct precopy_round, member))

/* Why it did not converge, from the last round. */
static void why_not(const struct view *v, char *buf, size_t len)
{
	const struct precopy_round *last = &v->r->rounds[v->r->n_rounds - 1];
	double rate = dirty_rate(v, last) * PAGE / 1e6, sent = (double)v->r->bandwidth / 1e6;
	char a[OUT_TEXT], b[OUT_TEXT];

	snprintf(buf, len,
		 "%" PRIu64 " collections, and %" PRIu64
		 " pages are left: in the last round the guest dirtied %s, the link sent %s%s",
		 last->collections + 1, v->r->left, out_mega(a, rate, 3, "B/s"),
		 out_mega(b, sent, 3, "B/s"),
		 v->o->throttle == PRECOPY_NO_THROTTLE ? ", and nothing slowed it down" : "");
}

/* Whether this was counted, and the profile says nothing of what it costs. */
static bool unpriced(const struct view *v, uint16_t count)
{
	bool given = count == COUNT_send_page && v->o->page_ns;

	return v->r->counts[count] && !given && !profile_has_price(v->o->profile, count);
}

/* ---- text ---- */

/* What the figures rest on. */
static int print_evidence(const struct view *v)
{
	char *text = run_evidence_text(v->run, v->o->dirty, v->o->preset);
	const char *sep = "not priced by the profile, and free of charge here: ";

	if (!text)
		return KVMSIM_ENOMEM;
	printf("evidence for %s: %s\n", v->o->dirty, text);
	free(text);
	for (uint16_t c = 0; c < N_COUNTS; c++) {
		if (!unpriced(v, c))
			continue;
		printf("%s%s", sep, model_vocabulary.counts[c]);
		sep = ", ";
	}
	if (*sep == ',')
		printf("\n");
	return 0;
}

static int print_rounds(const struct view *v)
{
	static const char *const heads[] = {
		"dirty-sync-count", "remaining",	"sent",	      "zero",	  "time",
		"collecting",	    "dirty-pages-rate", "throughput", "throttle", "guest"};
	const size_t n_heads = sizeof(heads) / sizeof(*heads);
	struct table *t = table_create("rrrrrrrrrr");
	char a[OUT_TEXT], b[OUT_TEXT];
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < n_heads; i++)
		table_cell(t, "%s", heads[i]);
	for (size_t i = 0; i < v->r->n_rounds; i++) {
		const struct precopy_round *x = &v->r->rounds[i];

		table_cell(t, "%" PRIu64 "%s", x->collections, x->stopped ? " (stopped)" : "");
		table_cell(t, "%s", out_u64(a, x->pending));
		table_cell(t, "%s", out_u64(a, x->pages));
		table_cell(t, "%s", out_u64(a, x->zero_pages));
		table_cell(t, "%s", out_time(a, (double)x->cycles, v->hz));
		table_cell(t, "%s", out_time(b, (double)x->collecting, v->hz));
		table_cell(t, "%s/s", out_u64(a, (uint64_t)(dirty_rate(v, x) + 0.5)));
		table_cell(t, "%s", out_mega(a, mbps(v, x->bytes, x->cycles), 4, "bit/s"));
		if (v->o->throttle == PRECOPY_DIRTY_LIMIT)
			table_cell(t, "%s", out_time(a, (double)x->sleep, v->hz));
		else
			table_cell(t, "%u %%", x->throttle);
		table_cell(t, "%.1f %%", percent(x->guest.insns, x->guest.elapsed));
	}
	err = table_print(t, stdout);
	table_free(t);
	return err;
}

static int print_text(const struct view *v)
{
	const struct precopy_result *r = v->r;
	const struct precopy_guest *g = &r->guest;
	char a[OUT_TEXT], b[OUT_TEXT], why[256];
	int err = print_rounds(v);

	printf("\n");
	if (r->converged) {
		printf("converged: total time %s, downtime %s",
		       out_time(a, (double)r->total, v->hz),
		       out_time(b, (double)r->downtime, v->hz));
		printf(" (%s expected when the guest was stopped, below the %.4g ms allowed)\n",
		       out_time(a, (double)r->expected, v->hz), (double)v->o->downtime_us / 1e3);
	} else {
		why_not(v, why, sizeof(why));
		printf("not converged after %s: %s\n", out_time(a, (double)r->total, v->hz), why);
	}
	printf("setup %s, sent %s pages in", out_time(a, (double)r->setup, v->hz),
	       out_u64(b, SUM(r, pages)));
	printf(" %s bytes, zero %s\n", out_u64(a, SUM(r, bytes)), out_u64(b, SUM(r, zero_pages)));
	printf("guest: instructions %.2f %% of the vCPUs' time; faults and exits %.2f %%, waiting "
	       "%.2f %%, throttled %.2f %%, stopped %.2f %%\n",
	       percent(g->insns, g->elapsed), percent(handling(g), g->elapsed),
	       percent(g->waited, g->elapsed), percent(g->throttled, g->elapsed),
	       percent(g->stopped, g->elapsed));
	if (r->longest_stall.cycles) {
		const struct precopy_stall *s = &r->longest_stall;

		printf("longest stall: %s, vCPU %" PRIu32, out_time(a, (double)s->cycles, v->hz),
		       s->vcpu);
		if (*s->by)
			printf(", held up by %s (%s)", s->by, operation_name(s->operation));
		printf("\n");
	}
	return err ? err : print_evidence(v);
}

/* ---- CSV ---- */

static void print_csv(const struct view *v)
{
	static const char *const heads[] = {"dirty_sync_count",
					    "stopped",
					    "remaining_pages",
					    "pages",
					    "zero_pages",
					    "bytes",
					    "dirty_pages",
					    "start_ms",
					    "time_ms",
					    "collecting_ms",
					    "dirty_pages_rate",
					    "mbps",
					    "cpu_throttle_percentage",
					    "dirty_limit_sleep_ms",
					    "guest_percent"};
	struct csv_out c = {.to = stdout};

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		csv_text(&c, heads[i]);
	csv_end_row(&c);
	for (size_t i = 0; i < v->r->n_rounds; i++) {
		const struct precopy_round *x = &v->r->rounds[i];
		const uint64_t whole[] = {x->collections, x->stopped, x->pending, x->pages,
					  x->zero_pages,  x->bytes,   x->dirtied};

		for (size_t k = 0; k < sizeof(whole) / sizeof(*whole); k++)
			csv_field(&c, "%" PRIu64, whole[k]);
		csv_field(&c, "%.6f", ms(v, x->start));
		csv_field(&c, "%.6f", ms(v, x->cycles));
		csv_field(&c, "%.6f", ms(v, x->collecting));
		csv_field(&c, "%.3f", dirty_rate(v, x));
		csv_field(&c, "%.3f", mbps(v, x->bytes, x->cycles));
		csv_field(&c, "%u", x->throttle);
		csv_field(&c, "%.6f", ms(v, x->sleep));
		csv_field(&c, "%.3f", percent(x->guest.insns, x->guest.elapsed));
		csv_end_row(&c);
	}
}

/* ---- JSON ---- */

static json_t *guest_json(const struct precopy_guest *g)
{
	json_t *j = json_object();

	json_put(j, "elapsed_cycles", json_u64(g->elapsed));
	json_put(j, "instructions_cycles", json_u64(g->insns));
	json_put(j, "faults_and_exits_cycles", json_u64(handling(g)));
	json_put(j, "waiting_cycles", json_u64(g->waited));
	json_put(j, "throttled_cycles", json_u64(g->throttled));
	json_put(j, "stopped_cycles", json_u64(g->stopped));
	return j;
}

static json_t *round_json(const struct view *v, const struct precopy_round *x)
{
	json_t *j = json_object();

	json_put(j, "dirty-sync-count", json_u64(x->collections));
	json_put(j, "stopped", json_boolean(x->stopped));
	json_put(j, "remaining", json_u64(x->pending * 4096));
	json_put(j, "pages", json_u64(x->pages));
	json_put(j, "duplicate", json_u64(x->zero_pages));
	json_put(j, "transferred", json_u64(x->bytes));
	json_put(j, "dirty_pages", json_u64(x->dirtied));
	json_put(j, "start_cycles", json_u64(x->start));
	json_put(j, "cycles", json_u64(x->cycles));
	json_put(j, "collecting_cycles", json_u64(x->collecting));
	json_put(j, "dirty-pages-rate", json_real(dirty_rate(v, x)));
	json_put(j, "mbps", json_real(mbps(v, x->bytes, x->cycles)));
	json_put(j, "cpu-throttle-percentage", json_u64(x->throttle));
	json_put(j, "dirty_limit_sleep_cycles", json_u64(x->sleep));
	json_put(j, "guest", guest_json(&x->guest));
	return j;
}

static json_t *stall_json(const struct precopy_stall *s)
{
	json_t *j = json_object();

	json_put(j, "start_cycles", json_u64(s->start));
	json_put(j, "cycles", json_u64(s->cycles));
	json_put(j, "vcpu", json_u64(s->vcpu));
	json_put(j, "by", *s->by ? json_string(s->by) : json_null());
	json_put(j, "operation", *s->by ? json_string(operation_name(s->operation)) : json_null());
	return j;
}

static json_t *report_json(const struct view *v)
{
	const struct precopy_result *r = v->r;
	json_t *j = json_object(), *rounds = json_array(), *free_of_charge = json_array();
	char why[256];

	json_put(j, "input", json_string(v->input));
	json_put(j, "kernel", json_string(v->o->preset));
	json_put(j, "dirty", json_string(v->o->dirty));
	json_put(j, "profile", json_string(profile_name(v->o->profile)));
	json_put(j, "unit", json_string(profile_unit(v->o->profile)));
	json_put(j, "hz", json_u64(v->hz));
	run_evidence_json(j, v->run, v->o->dirty, v->o->preset);
	for (uint16_t c = 0; c < N_COUNTS; c++)
		if (unpriced(v, c))
			json_array_append_new(free_of_charge,
					      json_string(model_vocabulary.counts[c]));
	json_put(j, "unpriced", free_of_charge);
	json_put(j, "status", json_string(r->converged ? "completed" : "active"));
	if (!r->converged) {
		why_not(v, why, sizeof(why));
		json_put(j, "why", json_string(why));
	}
	json_put(j, "setup-time", json_real(ms(v, r->setup)));
	json_put(j, "total-time", json_real(ms(v, r->total)));
	json_put(j, "expected-downtime",
		 r->converged ? json_real(ms(v, r->expected)) : json_null());
	json_put(j, "downtime", r->converged ? json_real(ms(v, r->downtime)) : json_null());
	json_put(j, "downtime-limit", json_real((double)v->o->downtime_us / 1e3));
	json_put(j, "remaining", json_u64(r->left * 4096));
	json_put(j, "transferred", json_u64(SUM(r, bytes)));
	json_put(j, "pages", json_u64(SUM(r, pages)));
	json_put(j, "duplicate", json_u64(SUM(r, zero_pages)));
	json_put(j, "bandwidth", json_u64(r->bandwidth));
	json_put(j, "guest", guest_json(&r->guest));
	json_put(j, "longest_stall",
		 r->longest_stall.cycles ? stall_json(&r->longest_stall) : json_null());
	for (size_t i = 0; i < r->n_rounds; i++)
		json_array_append_new(rounds, round_json(v, &r->rounds[i]));
	json_put(j, "rounds", rounds);
	return j;
}

/* ---- several policies ---- */

static struct view view_of(const struct converge_run *x, const struct run_opts *run,
			   const char *input)
{
	return (struct view){
		.o = &x->o, .r = &x->r, .run = run, .input = input, .hz = profile_hz(x->o.profile)};
}

static const char *const policy_heads[] = {
	"dirty",       "converged",	"collections",	     "pages_sent",	"total_ms",
	"downtime_ms", "guest_percent", "throttled_percent", "longest_stall_ms"};
#define N_POLICY_HEADS (sizeof(policy_heads) / sizeof(*policy_heads))

/* Figures from the third on. */
static void policy_cells(const struct view *v, char cell[N_POLICY_HEADS][OUT_TEXT])
{
	const struct precopy_result *r = v->r;
	const struct precopy_guest *g = &r->guest;

	snprintf(cell[2], OUT_TEXT, "%" PRIu64, r->rounds[r->n_rounds - 1].collections + 1);
	snprintf(cell[3], OUT_TEXT, "%" PRIu64, SUM(r, pages));
	snprintf(cell[4], OUT_TEXT, "%.3f", ms(v, r->total));
	cell[5][0] = '\0';
	if (r->converged)
		snprintf(cell[5], OUT_TEXT, "%.3f", ms(v, r->downtime));
	snprintf(cell[6], OUT_TEXT, "%.3f", percent(g->insns, g->elapsed));
	snprintf(cell[7], OUT_TEXT, "%.3f", percent(g->throttled, g->elapsed));
	snprintf(cell[8], OUT_TEXT, "%.6f", ms(v, r->longest_stall.cycles));
}

static int print_policies(const struct converge_run *runs, size_t n, const struct run_opts *run,
			  const char *input)
{
	char cell[N_POLICY_HEADS][OUT_TEXT];
	struct table *t = table_create("lrrrrrrrr");
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < N_POLICY_HEADS; i++)
		table_cell(t, "%s", policy_heads[i]);
	for (size_t k = 0; k < n; k++) {
		struct view v = view_of(&runs[k], run, input);

		policy_cells(&v, cell);
		table_cell(t, "%s", runs[k].o.dirty);
		table_cell(t, "%s", runs[k].r.converged ? "yes" : "no");
		for (size_t i = 2; i < N_POLICY_HEADS; i++)
			table_cell(t, "%s", cell[i]);
	}
	err = table_print(t, stdout);
	table_free(t);
	printf("\n");
	for (size_t k = 0; !err && k < n; k++) {
		struct view v = view_of(&runs[k], run, input);

		err = print_evidence(&v);
	}
	return err;
}

static void policies_csv(const struct converge_run *runs, size_t n, const struct run_opts *run,
			 const char *input)
{
	char cell[N_POLICY_HEADS][OUT_TEXT];
	struct csv_out c = {.to = stdout};

	for (size_t i = 0; i < N_POLICY_HEADS; i++)
		csv_text(&c, policy_heads[i]);
	csv_end_row(&c);
	for (size_t k = 0; k < n; k++) {
		struct view v = view_of(&runs[k], run, input);

		policy_cells(&v, cell);
		csv_text(&c, runs[k].o.dirty);
		csv_text(&c, runs[k].r.converged ? "1" : "0");
		for (size_t i = 2; i < N_POLICY_HEADS; i++)
			csv_field(&c, "%s", cell[i]);
		csv_end_row(&c);
	}
}

int converge_report(const struct converge_run *runs, size_t n, const struct run_opts *run,
		    const char *input, enum converge_format format)
{
	struct view v = view_of(runs, run, input);
	json_t *all;

	if (format == CONVERGE_JSON && n > 1) {
		all = json_array();
		for (size_t k = 0; k < n; k++) {
			v = view_of(&runs[k], run, input);
			json_array_append_new(all, report_json(&v));
		}
		return json_print(all, stdout);
	}
	if (format == CONVERGE_JSON)
		return json_print(report_json(&v), stdout);
	if (format == CONVERGE_TEXT)
		return n > 1 ? print_policies(runs, n, run, input) : print_text(&v);
	if (n > 1)
		policies_csv(runs, n, run, input);
	else
		print_csv(&v);
	return 0;
}
