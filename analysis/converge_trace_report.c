// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/converge_trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis/output.h"

static double mib(double pages)
{
	return pages / 256; /* of 4 KiB */
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static double least_rate(const struct trace_stretches *x)
{
	return mib((double)x->least) / seconds(x->ns);
}

static double mean_rate(const struct trace_stretches *x)
{
	return mib((double)x->all) / (double)x->n / seconds(x->ns);
}

static const char *verdict(const struct trace_dirty_result *r)
{
	return r->known ? "does not converge" : "unknown";
}

static const char *why_unknown(const struct trace_dirty_result *r)
{
	if (r->of_what == TRACE_FIRST)
		return "no fault was for a write-protected page: dirty logging was off, or the CPU "
		       "logs by itself (PML); of each page only the first store is seen, which "
		       "does not come again";
	if (r->goal.bandwidth <= 0)
		return "a trace has no bandwidth; --bandwidth gives one";
	return "the stores that were seen would fit, but a page that was writable was stored to "
	       "unseen";
}

static const char *stores_name(const struct trace_dirty_result *r)
{
	static const char *const of[] = {"pushes to dirty rings",
					 "write faults for write-protected pages",
					 "first stores to pages"};

	return of[r->of_what];
}

static const char assumed[] = "all vCPUs are one guest's, which goes on as recorded; what the host "
			      "writes (vhost, devices, other threads) and "
			      "memory that was not stored to come on top";

/* ---- text ---- */

static int print_stretches(const struct trace_dirty_result *r)
{
	static const char *const heads[] = {
		"in stretches of",     "number",    "pages at least", "on average", "at most seen",
		"dirty rate at least", "on average"};
	struct table *t = table_create("rrrrrrr");
	char buf[OUT_TEXT];
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		table_cell(t, "%s", heads[i]);
	for (unsigned i = 0; i < r->n_of; i++) {
		const struct trace_stretches *x = &r->of[i];

		table_cell(t, "%s", out_time(buf, (double)x->ns, 1000000000));
		table_cell(t, "%s", out_u64(buf, x->n));
		table_cell(t, "%s", out_u64(buf, x->least));
		table_cell(t, "%.1f", (double)x->all / (double)x->n);
		table_cell(t, "%s", out_u64(buf, x->most));
		if (x->ns) {
			table_cell(t, "%s",
				   x->least ? out_mib(buf, least_rate(x), 4, "/s") : "none seen");
			table_cell(t, "%s", out_mib(buf, mean_rate(x), 4, "/s"));
		}
		table_end_row(t);
	}
	err = table_print(t, stdout);
	table_free(t);
	return err;
}

static void print_verdict(const struct trace_dirty_result *r)
{
	char a[OUT_TEXT], b[OUT_TEXT], left[OUT_TEXT];

	out_mib(left, mib((double)r->left), 5, "");
	if (!r->known)
		printf("cannot tell whether it converges: %s\n", why_unknown(r));
	if (r->goal.bandwidth <= 0 || r->of_what == TRACE_FIRST)
		return;
	printf("%sat %s and with a downtime of %s ", r->known ? "does not converge: " : "",
	       out_mib(a, r->goal.bandwidth, 5, "/s"), out_long_time(b, r->goal.downtime));
	if (r->known)
		printf("at least %s are left after %" PRIu64 " rounds, a stop of at least %s\n",
		       left, r->rounds, out_long_time(a, r->stop_s));
	else
		printf("it takes at least %" PRIu64 " rounds, then at least %s in a stop of %s\n",
		       r->rounds, left, out_long_time(a, r->stop_s));
	if (r->bandwidth > 0)
		printf("a bandwidth of %s is not enough, either; what is, cannot be told\n",
		       out_mib(a, r->bandwidth, 4, "/s"));
}

static int print_text(const struct trace_dirty_result *r)
{
	char n[OUT_TEXT], pages[OUT_TEXT], size[OUT_TEXT], time[OUT_TEXT];
	int err;

	printf("%s: %s, different pages %s (%s), in %s%s\n", stores_name(r), out_u64(n, r->stores),
	       out_u64(pages, r->pages), out_mib(size, mib((double)r->pages), 5, ""),
	       out_time(time, (double)r->span_ns, 1000000000),
	       r->cut ? "; the rest of the trace was not looked at" : "");
	if (r->left_out)
		printf("%s write faults at guest-virtual addresses are left out\n",
		       out_u64(n, r->left_out));
	err = print_stretches(r);
	printf("\n");
	print_verdict(r);
	printf("assumed: %s\n", assumed);
	return err;
}

/* ---- JSON ---- */

static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static int print_json(const struct trace_dirty_result *r, const char *input)
{
	json_t *j = json_object(), *all = json_array();
	bool goal = r->goal.bandwidth > 0 && r->of_what != TRACE_FIRST;

	for (unsigned i = 0; i < r->n_of; i++) {
		const struct trace_stretches *x = &r->of[i];
		json_t *o = json_object();

		json_put(o, "ns", json_u64(x->ns));
		json_put(o, "stretches", json_u64(x->n));
		json_put(o, "least_pages", json_u64(x->least));
		json_put(o, "mean_pages", json_real((double)x->all / (double)x->n));
		json_put(o, "most_pages", json_u64(x->most));
		json_put(o, "least_rate_mib_s", real(least_rate(x)));
		json_put(o, "mean_rate_mib_s", real(mean_rate(x)));
		json_array_append_new(all, o);
	}
	json_put(j, "input", json_string(input));
	json_put(j, "kind", json_string("host-trace"));
	json_put(j, "stores_of", json_string(stores_name(r)));
	json_put(j, "stores", json_u64(r->stores));
	json_put(j, "stores_left_out", json_u64(r->left_out));
	json_put(j, "pages_at_least", json_u64(r->pages));
	json_put(j, "span_ns", json_u64(r->span_ns));
	json_put(j, "cut", json_boolean(r->cut));
	json_put(j, "dirtied_at_least", all);
	json_put(j, "bandwidth_mib_s",
		 r->goal.bandwidth > 0 ? json_real(r->goal.bandwidth) : json_null());
	json_put(j, "downtime_goal_ms", json_real(r->goal.downtime * 1e3));
	json_put(j, "verdict", json_string(verdict(r)));
	json_put(j, "unknown", r->known ? json_null() : json_string(why_unknown(r)));
	json_put(j, "rounds_at_least", goal ? json_u64(r->rounds) : json_null());
	json_put(j, "stop_copy_mib_at_least", goal ? json_real(mib((double)r->left)) : json_null());
	json_put(j, "stop_copy_ms_at_least", goal ? json_real(r->stop_s * 1e3) : json_null());
	json_put(j, "bandwidth_mib_s_above",
		 r->bandwidth > 0 ? json_real(r->bandwidth) : json_null());
	json_put(j, "assumed", json_string(assumed));
	return json_print(j, stdout);
}

/* ---- CSV ---- */

static void print_csv(const struct trace_dirty_result *r)
{
	static const char *const heads[] = {"ns", "stretches", "least_pages", "mean_pages",
					    "most_pages"};
	struct csv_out c = {.to = stdout};

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		csv_text(&c, heads[i]);
	csv_end_row(&c);
	for (unsigned i = 0; i < r->n_of; i++) {
		const struct trace_stretches *x = &r->of[i];

		csv_field(&c, "%" PRIu64, x->ns);
		csv_field(&c, "%" PRIu64, x->n);
		csv_field(&c, "%" PRIu64, x->least);
		csv_field(&c, "%.3f", (double)x->all / (double)x->n);
		csv_field(&c, "%" PRIu64, x->most);
		csv_end_row(&c);
	}
}

int trace_dirty_report(const struct trace_dirty_result *r, const char *input,
		       enum rounds_format format)
{
	if (format == ROUNDS_JSON)
		return print_json(r, input);
	if (format == ROUNDS_TEXT)
		return print_text(r);
	print_csv(r);
	return 0;
}
