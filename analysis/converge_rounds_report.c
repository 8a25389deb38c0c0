// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/converge_rounds.h"
#include "analysis/output.h"
#include "analysis/run.h"
#include "traces/host/host.h"
#include "traces/tables/tables.h"

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
	return r->migration
		       ? "no dirty pages rate is printed"
		       : "what was dirtied in a round is told by the round after it, and there is "
			 "none";
}

/* What the prediction takes for granted. */
static void assumed(const struct rounds_result *r, char *buf, size_t len)
{
	const struct rounds_fit *f = &r->fit;

	if (f->saturated)
		snprintf(buf, len,
			 "every round dirties the %.0f MiB again, however short: rounds of %.2f to "
			 "%.2f s all dirtied %.0f to %.0f MiB; the rate is at least %.4g MiB/s",
			 f->most, f->shortest, f->longest, f->least, f->most, f->rate);
	else if (r->migration)
		snprintf(buf, len, "the guest goes on to dirty %.4g MiB/s, by dirty pages rate",
			 f->rate);
	else
		snprintf(buf, len,
			 "the guest goes on to dirty %.4g MiB/s, in shorter and longer rounds than "
			 "those of %.2f to %.2f s, too",
			 f->rate, f->shortest, f->longest);
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
		double mib, rate;

		table_cell(out, "%" PRIu64, x->iter);
		table_cell(out, "%" PRIu64 " MiB", x->curr_mib);
		table_cell(out, "%.2f MiB/s", value(x->bw_mib_s));
		table_cell(out, "%.2f s", value(x->transfer_s));
		if (rounds_dirtied(t, i, &mib, &rate)) {
			table_cell(out, "%.0f MiB", mib);
			table_cell(out, "%.4g MiB/s", rate);
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

	printf("within %" PRIu64 " rounds it would with one of: ", r->goal.max_rounds);
	if (n->bandwidth > 0) {
		printf("a bandwidth of %.5g MiB/s", n->bandwidth);
		if (n->least_bandwidth < n->bandwidth * 0.999)
			printf(" (%.5g MiB/s, if shorter rounds dirty less)", n->least_bandwidth);
		printf("; ");
	}
	if (n->throttle)
		printf("vCPUs throttled by %s%u %%; ", r->fit.saturated ? "at least " : "",
		       n->throttle);
	if (n->limit > 0)
		printf("a dirty rate limit of %.4g MiB/s; ", n->limit);
	printf("a downtime of %.0f ms\n", ceil(n->downtime * 1e3));
}

static int print_text(const struct tables *t, const struct rounds_result *r)
{
	const struct rounds_goal *g = &r->goal;
	char text[320];
	int err = 0;

	if (r->migration)
		printf("status %s: %.5g MiB remain of %.5g MiB\n",
		       r->status ? r->status : "unknown", r->fit.left, r->fit.memory);
	else
		err = print_rounds(t);
	printf("\n");
	for (size_t i = 0; i < r->n_errors; i++)
		printf("accounting error: %s\n", r->errors[i]);
	if (!r->known) {
		printf("cannot tell whether it converges: %s\n", why_unknown(r));
		return err;
	}
	printf("%s: at %.5g MiB/s and with a downtime of %.4g ms ", verdict(r), g->bandwidth,
	       g->downtime * 1e3);
	if (r->way.converges)
		printf("after %" PRIu64 "%s rounds (%.2f s); then %.5g MiB in a stop of %.0f ms\n",
		       r->way.rounds, r->migration ? " more" : "", r->way.sent_s, r->way.left,
		       r->way.stop_s * 1e3);
	else
		printf("%" PRIu64 " rounds leave %.5g MiB, a stop of %.0f ms\n", r->way.rounds,
		       r->way.left, r->way.stop_s * 1e3);
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

	return n < 4 || strcmp(path + n - 4, ".kvt");
}

static int read_tables(const char *path, struct tables *t)
{
	const struct host_opts opts = {.tables = t, .interrupted = &run_interrupted};
	const struct host_sink nothing = {0};
	struct host_result result;

	return host_read(path, &opts, &nothing, &cli_errors, &result);
}

int converge_rounds(const char *path, const struct rounds_goal *goal, enum rounds_format format,
		    bool strict)
{
	struct rounds_result r = {0};
	struct tables t;
	bool converges;
	int err = tables_init(&t);

	if (err)
		return cli_exit_code(kvmsim_err(&cli_errors, err, "converge: out of memory"));
	err = read_tables(path, &t);
	if (!err)
		err = rounds_judge(&t, goal, &r);
	if (err == KVMSIM_ENOENT)
		err = kvmsim_err(
			&cli_errors, KVMSIM_EPARSE,
			"%s: no rounds of a pre-copy and no info migrate in it; a trace is "
			"run with --dirty and --profile",
			path);
	if (err) {
		tables_free(&t);
		return cli_input_exit_code(err);
	}
	err = rounds_report(&t, &r, path, format);
	converges = r.known && r.way.converges;
	rounds_result_free(&r);
	tables_free(&t);
	if (!err && strict && !converges)
		return EXIT_GATE;
	return cli_exit_code(err);
}
