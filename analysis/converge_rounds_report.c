// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/converge_rounds.h"
#include "analysis/converge_trace.h"
#include "analysis/output.h"
#include "analysis/run.h"
#include "traces/host/host.h"
#include "traces/tables/tables.h"
#include "traces/trace.h"

static double value(struct decimal d)
{
	return d.there ? (double)d.value / pow(10, d.digits) : 0;
}

/* An impossible value does not hide whether it converges: it is said beside. */
static const char *verdict(const struct rounds_result *r)
{
	if (!r->known)
		return "unknown";
	return r->way.converges ? "converges" : "does not converge";
}

static const char *why_unknown(const struct rounds_result *r)
{
	if (r->goal.bandwidth <= 0)
		return "no bandwidth is printed; --bandwidth gives one";
	if (r->unread)
		return "rounds behind the last whole one are damaged";
	return r->migration
		       ? "no dirty pages rate is printed"
		       : "what was dirtied in a round is told by the round after it, and there is "
			 "none";
}

/* What the prediction takes for granted. */
static void assumed(const struct rounds_result *r, char *buf, size_t len)
{
	const struct rounds_fit *f = &r->fit;
	char rate[OUT_TEXT];

	out_mib(rate, f->rate, 4, "/s");
	if (f->saturated)
		snprintf(buf, len,
			 "every round dirties the %.0f MiB again, however short: rounds of %.2f to "
			 "%.2f s all dirtied %.0f to %.0f MiB; the rate is at least %s",
			 f->most, f->shortest, f->longest, f->least, f->most, rate);
	else if (r->migration)
		snprintf(buf, len, "the guest goes on to dirty %s, by dirty pages rate", rate);
	else
		snprintf(buf, len,
			 "the guest goes on to dirty %s, in shorter and longer rounds than those "
			 "of %.2f to %.2f s, too",
			 rate, f->shortest, f->longest);
}

/* ---- text ---- */

static int print_rounds(const struct tables *t)
{
	static const char *const heads[] = {
		"round", "sent", "bandwidth", "time", "dirtied meanwhile", "dirty rate"};
	struct table *out = table_create("rrrrrr");
	int err;

	if (!out)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		table_cell(out, "%s", heads[i]);
	for (size_t i = 0; i < t->n_rounds; i++) {
		const struct precopy_round *x = &t->round[i];
		char buf[OUT_TEXT];
		double mib, rate;

		table_cell(out, "%" PRIu64, x->iter);
		table_cell(out, "%" PRIu64 " MiB", x->curr_mib);
		table_cell(out, "%.2f MiB/s", value(x->bw_mib_s));
		table_cell(out, "%.2f s", value(x->transfer_s));
		if (rounds_dirtied(t, i, &mib, &rate)) {
			table_cell(out, "%.0f MiB", mib);
			table_cell(out, "%s", out_mib(buf, rate, 4, "/s"));
		}
		table_end_row(out);
	}
	err = table_print(out, stdout);
	table_free(out);
	return err;
}

static void print_needs(const struct rounds_result *r)
{
	const struct rounds_needs *n = &r->needs;
	char buf[OUT_TEXT];

	printf("within %" PRIu64 " rounds it would with one of: ", r->goal.max_rounds);
	if (n->bandwidth > 0) {
		printf("a bandwidth of %s", out_mib(buf, n->bandwidth, 5, "/s"));
		if (n->least_bandwidth < n->bandwidth * 0.999)
			printf(" (%s, if shorter rounds dirty less)",
			       out_mib(buf, n->least_bandwidth, 5, "/s"));
		printf("; ");
	}
	if (n->throttle)
		printf("vCPUs throttled by %s%u %%; ", r->fit.saturated ? "at least " : "",
		       n->throttle);
	if (n->limit > 0)
		printf("a dirty rate limit of %s; ", out_mib(buf, n->limit, 4, "/s"));
	/* rounded up: so much suffices */
	printf("a downtime of %s\n", out_long_time(buf, ceil(n->downtime * 1e3) / 1e3));
}

/* Rounds are printed in hundredths of a second. */
static const char *sending_text(char buf[OUT_TEXT], double seconds)
{
	if (seconds >= 10)
		return out_long_time(buf, seconds);
	snprintf(buf, OUT_TEXT, "%.2f s", seconds);
	return buf;
}

static int print_text(const struct tables *t, const struct rounds_result *r)
{
	const struct rounds_goal *g = &r->goal;
	char text[320], a[OUT_TEXT], b[OUT_TEXT], left[OUT_TEXT];
	int err = 0;

	if (r->migration)
		printf("status %s: %s remain of %s\n", r->status ? r->status : "unknown",
		       out_mib(a, r->fit.left, 5, ""), out_mib(b, r->fit.memory, 5, ""));
	else
		err = print_rounds(t);
	printf("\n");
	for (size_t i = 0; i < r->n_errors; i++)
		printf("accounting error: %s\n", r->errors[i]);
	if (!r->known) {
		printf("cannot tell whether it converges: %s\n", why_unknown(r));
		return err;
	}
	printf("%s: at %s and with a downtime of %s ", verdict(r),
	       out_mib(a, g->bandwidth, 5, "/s"), out_long_time(b, g->downtime));
	out_mib(left, r->way.left, 5, "");
	if (r->way.converges)
		printf("after %" PRIu64 "%s rounds (%s); then %s in a stop of %s\n", r->way.rounds,
		       r->migration ? " more" : "", sending_text(a, r->way.sent_s), left,
		       out_long_time(b, r->way.stop_s));
	else
		printf("%" PRIu64 " rounds leave %s, a stop of %s\n", r->way.rounds, left,
		       out_long_time(b, r->way.stop_s));
	if (!r->way.converges)
		print_needs(r);
	if (r->fit.has_rate) {
		assumed(r, text, sizeof(text));
		printf("assumed: %s; nothing of the device state, nor of collecting the log, is in "
		       "the times\n",
		       text);
	}
	return err;
}

/* ---- JSON ---- */

static json_t *real(double v, bool there)
{
	return there && isfinite(v) ? json_real(v) : json_null();
}

static json_t *rounds_json(const struct tables *t)
{
	json_t *all = json_array();

	for (size_t i = 0; i < t->n_rounds; i++) {
		const struct precopy_round *x = &t->round[i];
		json_t *j = json_object();
		double mib = 0, rate = 0;
		bool there = rounds_dirtied(t, i, &mib, &rate);

		json_put(j, "iter", json_u64(x->iter));
		json_put(j, "curr_mib", json_u64(x->curr_mib));
		json_put(j, "bw_mib_s", real(value(x->bw_mib_s), true));
		json_put(j, "transfer_s", real(value(x->transfer_s), true));
		json_put(j, "dirtied_mib", real(mib, there));
		json_put(j, "dirty_rate_mib_s", real(rate, there));
		json_array_append_new(all, j);
	}
	return all;
}

static json_t *needs_json(const struct rounds_result *r)
{
	const struct rounds_needs *n = &r->needs;
	json_t *j = json_object();

	json_put(j, "bandwidth_mib_s", real(n->bandwidth, n->bandwidth > 0));
	json_put(j, "least_bandwidth_mib_s", real(n->least_bandwidth, n->least_bandwidth > 0));
	json_put(j, "throttle_percent", n->throttle ? json_integer(n->throttle) : json_null());
	json_put(j, "dirty_limit_mib_s", real(n->limit, n->limit > 0));
	json_put(j, "downtime_ms", real(n->downtime * 1e3, true));
	return j;
}

static int print_json(const struct tables *t, const struct rounds_result *r, const char *input)
{
	json_t *j = json_object(), *errors = json_array();
	const struct rounds_fit *f = &r->fit;
	char text[320];

	for (size_t i = 0; i < r->n_errors; i++)
		json_array_append_new(errors, json_string(r->errors[i]));
	json_put(j, "input", json_string(input));
	json_put(j, "kind", json_string(r->migration ? "qemu-monitor" : "precopy-log"));
	if (r->migration)
		json_put(j, "status", r->status ? json_string(r->status) : json_null());
	else
		json_put(j, "rounds", rounds_json(t));
	json_put(j, "memory_mib", real(f->memory, f->memory > 0));
	json_put(j, "left_mib", real(f->left, true));
	json_put(j, "dirty_rate_mib_s", real(f->rate, f->has_rate));
	json_put(j, "working_set_mib", real(f->most, f->saturated));
	json_put(j, "bandwidth_mib_s", real(r->goal.bandwidth, r->goal.bandwidth > 0));
	json_put(j, "downtime_goal_ms", real(r->goal.downtime * 1e3, true));
	json_put(j, "accounting_errors", errors);
	json_put(j, "verdict", json_string(verdict(r)));
	if (!r->known) {
		json_put(j, "unknown", json_string(why_unknown(r)));
		return json_print(j, stdout);
	}
	json_put(j, "rounds_sent", json_u64(r->way.rounds));
	json_put(j, "sending_s", real(r->way.sent_s, true));
	json_put(j, "stop_copy_mib", real(r->way.left, true));
	json_put(j, "stop_copy_ms", real(r->way.stop_s * 1e3, true));
	json_put(j, "needs", r->way.converges ? json_null() : needs_json(r));
	if (f->has_rate) {
		assumed(r, text, sizeof(text));
		json_put(j, "assumed", json_string(text));
	}
	return json_print(j, stdout);
}

/* ---- CSV ---- */

static void print_csv(const struct tables *t)
{
	static const char *const heads[] = {"iter",	  "curr_mib",	 "bw_mib_s",
					    "transfer_s", "dirtied_mib", "dirty_rate_mib_s"};
	struct csv_out c = {.to = stdout};

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		csv_text(&c, heads[i]);
	csv_end_row(&c);
	for (size_t i = 0; i < t->n_rounds; i++) {
		const struct precopy_round *x = &t->round[i];
		double mib, rate;
		bool there = rounds_dirtied(t, i, &mib, &rate);

		csv_field(&c, "%" PRIu64, x->iter);
		csv_field(&c, "%" PRIu64, x->curr_mib);
		csv_field(&c, "%.2f", value(x->bw_mib_s));
		csv_field(&c, "%.2f", value(x->transfer_s));
		if (there) {
			csv_field(&c, "%.0f", mib);
			csv_field(&c, "%.6g", rate);
		} else {
			csv_text(&c, NULL);
			csv_text(&c, NULL);
		}
		csv_end_row(&c);
	}
}

int rounds_report(const struct tables *t, const struct rounds_result *r, const char *input,
		  enum rounds_format format)
{
	if (format == ROUNDS_JSON)
		return print_json(t, r, input);
	if (format == ROUNDS_TEXT)
		return print_text(t, r);
	print_csv(t);
	return 0;
}

/* ---- the verb ---- */

bool rounds_log_name(const char *path)
{
	size_t n = strlen(path);
	struct trace_reader *r;
	bool host;

	if (n < 4 || strcmp(path + n - 4, ".kvt"))
		return true;
	if (trace_open(path, NULL, &r))
		return false;
	host = trace_meta(r)->unseen & TRACE_ONLY_FAULTS;
	trace_close(r);
	return host;
}

/* A host's events, in a file that has no rounds. */
static int judge_trace(struct trace_dirty *dirty, const char *path, const struct rounds_goal *goal,
		       enum rounds_format format)
{
	struct trace_dirty_result r;
	int err = trace_dirty_judge(dirty, goal, &r);

	if (err == KVMSIM_ENOENT)
		return kvmsim_err(
			&cli_errors, KVMSIM_EPARSE,
			r.left_out
				? "%s: its stores are known by guest-virtual addresses "
				  "(shadow paging): how many pages they dirtied cannot be told"
				: "%s: no rounds of a pre-copy, no info migrate, and no store of "
				  "the guest's with a time (kvm_page_fault, fast_page_fault, "
				  "kvm_dirty_ring_push: record tracefs --purpose mmu has them); "
				  "a recorded guest is run with --dirty and --profile",
			path);
	return err ? err : trace_dirty_report(&r, path, format);
}

int converge_rounds(const char *path, const struct rounds_goal *goal, enum rounds_format format,
		    bool strict)
{
	struct rounds_result r = {0};
	struct host_result result;
	struct host_sink sink;
	struct trace_dirty *dirty = trace_dirty_begin(&sink);
	struct tables t;
	const struct host_opts opts = {.tables = &t, .interrupted = &run_interrupted};
	bool converges, read = false;
	int err = tables_init(&t);

	if (!dirty)
		err = KVMSIM_ENOMEM;
	if (!err) {
		err = host_read(path, &opts, &sink, &cli_errors, &result);
		read = !err;
	} else {
		kvmsim_err(&cli_errors, err, "converge: out of memory");
	}
	if (read)
		err = rounds_judge(&t, goal, &r);
	if (read && err == KVMSIM_ENOENT)
		err = judge_trace(dirty, path, goal, format);
	else if (!err)
		err = rounds_report(&t, &r, path, format);
	converges = r.known && r.way.converges;
	rounds_result_free(&r);
	trace_dirty_free(dirty);
	tables_free(&t);
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted");
	if (err && !read)
		return cli_input_exit_code(err);
	if (!err && strict && !converges)
		return EXIT_GATE;
	return cli_exit_code(err);
}
