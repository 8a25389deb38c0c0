// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/overcommit_report.h"

#include <inttypes.h>

#include "analysis/output.h"
#include "model/sim/profile.h"

/* What happened in all VMs, summed; means over replicates are made of these. */
#define EVENTS(X)                                                                                  \
	X(exits)                                                                                   \
	X(halt_exits)                                                                              \
	X(pause_exits)                                                                             \
	X(hypercalls)                                                                              \
	X(irq_exits)                                                                               \
	X(preemptions)                                                                             \
	X(halt_poll_success)                                                                       \
	X(halt_poll_fail)                                                                          \
	X(halt_wakeups)                                                                            \
	X(yield_attempted)                                                                         \
	X(yield_successful)                                                                        \
	X(kicks)                                                                                   \
	X(irqs)                                                                                    \
	X(ticks)                                                                                   \
	X(steal)                                                                                   \
	X(halted)                                                                                  \
	X(polled)                                                                                  \
	X(spun)

struct sums {
#define X(name) double name;
	EVENTS(X)
#undef X
	double idle;
};

/* Per second and machine; times per second of one CPU. */
static struct sums sums_of(const struct overcommit_point *p, uint32_t replicate)
{
	const struct overcommit_result *r = &p->r[replicate];
	double cycles = (double)r->measured, s = cycles / (double)profile_hz(p->opts.profile);
	struct sums sums = {.idle = (double)r->idle / cycles};

	for (uint32_t i = 0; i < r->n_vms; i++) {
		const struct smp_vcpu_stats *v = &r->vm[i].sum;

#define X(name) sums.name += (double)v->name;
		EVENTS(X)
#undef X
	}
#define X(name) sums.name /= s;
	EVENTS(X)
#undef X
	sums.steal *= s / cycles;
	sums.halted *= s / cycles;
	sums.polled *= s / cycles;
	sums.spun *= s / cycles;
	return sums;
}

static struct sums mean_sums(const struct overcommit_point *p, uint32_t replicates)
{
	struct sums mean = {0};

	for (uint32_t i = 0; i < replicates; i++) {
		struct sums one = sums_of(p, i);

#define X(name) mean.name += one.name / replicates;
		EVENTS(X)
#undef X
		mean.idle += one.idle / replicates;
	}
	return mean;
}

static double vcpus(const struct overcommit_point *p)
{
	return (double)p->opts.vms * p->opts.vcpus;
}

/* ---- for people ---- */

/* "12.3k": three digits. */
static const char *rate(char buf[OUT_TEXT], double v)
{
	static const char suffix[] = " kMG";
	unsigned i = 0;

	for (; v >= 999.5 && suffix[i + 1]; i++)
		v /= 1000;
	snprintf(buf, OUT_TEXT, "%.*f%.*s",
		 v >= 99.95 || (!i && v == (uint64_t)v) ? 0
		 : v >= 9.995				? 1
							: 2,
		 v, i ? 1 : 0, &suffix[i]);
	return buf;
}

static void percent(struct table *t, double part)
{
	table_cell(t, "%.1f%%", 100 * part);
}

static void point_name(struct table *t, const struct overcommit_point *p)
{
	if (p->factor)
		table_cell(t, "%" PRIu32 "x", p->factor);
	else
		table_cell(t, "%" PRIu32 " VMs", p->opts.vms);
}

static void point_row(struct table *t, const struct overcommit_args *a,
		      const struct overcommit_point *p, const struct overcommit_point *first)
{
	const struct stats_estimate mean = overcommit_mean(p, a->replicates),
				    rel = overcommit_relative(p, first, a->replicates);
	const struct sums s = mean_sums(p, a->replicates);
	char buf[OUT_TEXT];

	point_name(t, p);
	table_cell(t, "%s", rate(buf, mean.value));
	if (a->replicates > 1)
		table_cell(t, "%.1f%%", mean.value > 0 ? 50 * (mean.hi - mean.lo) / mean.value : 0);
	table_cell(t, "%.4f", rel.value);
	if (a->replicates > 1)
		table_cell(t, "%.4f..%.4f", rel.lo, rel.hi);
	percent(t, s.idle / p->opts.pcpus);
	percent(t, s.spun / p->opts.pcpus);
	percent(t, s.steal / vcpus(p));
	table_cell(t, "%s", rate(buf, s.halt_exits));
	table_cell(t, "%s", rate(buf, s.pause_exits));
	table_cell(t, "%s", rate(buf, s.hypercalls));
	table_cell(t, "%s", rate(buf, s.irq_exits));
	table_cell(t, "%s", rate(buf, s.kicks));
	table_cell(t, "%s", rate(buf, s.yield_attempted));
	table_cell(t, "%s", rate(buf, s.yield_successful));
	table_cell(t, "%s", rate(buf, s.preemptions));
}

static void headings(struct table *t, bool intervals)
{
	table_cell(t, "point");
	table_cell(t, "ops/s of a VM");
	if (intervals)
		table_cell(t, "+-");
	table_cell(t, "relative");
	if (intervals)
		table_cell(t, "95%%");
	table_cell(t, "idle");
	table_cell(t, "spinning");
	table_cell(t, "steal");
	table_cell(t, "halts/s");
	table_cell(t, "pauses/s");
	table_cell(t, "hypercalls/s");
	table_cell(t, "irqs/s");
	table_cell(t, "kicks/s");
	table_cell(t, "yields/s");
	table_cell(t, "done/s");
	table_cell(t, "preempted/s");
}

static void print_setting(const struct overcommit_args *a)
{
	const struct overcommit_opts *o = &a->o;

	printf("%s in VMs of %" PRIu32 " vCPUs on %" PRIu32 " pCPUs", a->workload, o->vcpus,
	       o->pcpus);
	if (a->beside)
		printf(", beside one: %s", a->beside);
	printf("; lock %s, ple %s", o->lock, o->ple ? o->ple : "none");
	printf(", priced as %s\n", profile_machine(o->profile));
	printf("%" PRIu64 " ms of virtual time after %" PRIu64 " ms, replicates: %" PRIu32
	       "; operations are %s\n\n",
	       o->measured_ns / 1000000, o->warm_up_ns / 1000000, a->replicates,
	       o->workload->operation);
}

static int print_text(const struct overcommit_args *a, const struct overcommit_point *p, size_t n)
{
	struct table *t = table_create(a->replicates > 1 ? "lrrrlrrrrrrrrrrr" : "lrrrrrrrrrrrrr");
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	print_setting(a);
	headings(t, a->replicates > 1);
	for (size_t i = 0; i < n; i++)
		point_row(t, a, &p[i], &p[0]);
	err = table_print(t, stdout);
	table_free(t);
	printf("\nidle, spinning: of all pCPUs' time; steal: of all vCPUs' time; events: of all "
	       "VMs "
	       "together.\n");
	return err;
}

/* ---- perf lock contention ---- */

static void contention_headings(struct table *t)
{
	table_cell(t, " contended");
	table_cell(t, "total wait");
	table_cell(t, "max wait");
	table_cell(t, "avg wait");
	table_cell(t, "type");
	table_cell(t, "caller");
	table_cell(t, "lock");
	table_cell(t, "acquired");
	table_cell(t, "avg hold");
	table_cell(t, "halted");
}

static void contention_row(struct table *t, const struct overcommit_class *c, uint64_t hz)
{
	const struct smp_lock_stats *s = &c->stats;
	double contended = (double)s->contended, acquired = (double)s->acquired;
	char buf[OUT_TEXT];

	table_cell(t, " %" PRIu64, s->contended);
	table_cell(t, "%s", out_time(buf, (double)s->wait, hz));
	table_cell(t, "%s", out_time(buf, (double)s->longest_wait, hz));
	table_cell(t, "%s", out_time(buf, (double)s->wait / contended, hz));
	table_cell(t, "%s", c->sleeps ? "mutex" : "spinlock");
	table_cell(t, "%s", c->caller);
	table_cell(t, "%s", c->name);
	table_cell(t, "%" PRIu64, s->acquired);
	table_cell(t, "%s", acquired > 0 ? out_time(buf, (double)s->hold / acquired, hz) : "");
	table_cell(t, "%" PRIu64, s->slowpath);
}

/* Of the first replicate: longest waits of several have no mean. */
static int print_contention(const struct overcommit_args *a, const struct overcommit_point *p,
			    size_t n)
{
	int err = 0;

	print_setting(a);
	for (size_t i = 0; !err && i < n; i++) {
		const struct overcommit_result *r = &p[i].r[0];
		struct table *t = table_create("rrrrlllrrr");

		if (!t)
			return KVMSIM_ENOMEM;
		printf("%s%" PRIu32 " VMs:\n", i ? "\n" : "", p[i].opts.vms);
		contention_headings(t);
		for (uint32_t k = 0; k < r->n_classes; k++)
			if (r->class[k].stats.contended)
				contention_row(t, &r->class[k], profile_hz(a->o.profile));
		err = table_print(t, stdout);
		table_free(t);
	}
	return err;
}

/* ---- for programs ---- */

static void print_csv(const struct overcommit_args *a, const struct overcommit_point *p, size_t n)
{
	struct csv_out c = {.to = stdout};

	csv_text(&c, "overcommit");
	csv_text(&c, "vms");
	csv_text(&c, "replicate");
	csv_text(&c, "operations_per_second");
	csv_text(&c, "relative");
	csv_text(&c, "idle");
#define X(name) csv_text(&c, #name);
	EVENTS(X)
#undef X
	csv_end_row(&c);
	for (size_t i = 0; i < n * a->replicates; i++) {
		const struct overcommit_point *at = &p[i / a->replicates];
		uint32_t k = (uint32_t)(i % a->replicates);
		const struct sums s = sums_of(at, k);
		double base = overcommit_rate(&p[0], k);

		csv_field(&c, "%.6g", vcpus(at) / at->opts.pcpus);
		csv_field(&c, "%" PRIu32, at->opts.vms);
		csv_field(&c, "%" PRIu32, k);
		csv_field(&c, "%.6f", overcommit_rate(at, k));
		csv_field(&c, "%.6f", base > 0 ? overcommit_rate(at, k) / base : 0);
		csv_field(&c, "%.6f", s.idle);
#define X(name) csv_field(&c, "%.6f", s.name);
		EVENTS(X)
#undef X
		csv_end_row(&c);
	}
}

static json_t *estimate_json(const struct stats_estimate *e)
{
	json_t *j = json_object();

	json_put(j, "mean", json_real(e->value));
	json_put(j, "lo", json_real(e->lo));
	json_put(j, "hi", json_real(e->hi));
	return j;
}

static json_t *sums_json(const struct sums *s)
{
	json_t *j = json_object();

#define X(name) json_put(j, #name, json_real(s->name));
	EVENTS(X)
#undef X
	json_put(j, "idle", json_real(s->idle));
	return j;
}

static json_t *locks_json(const struct overcommit_result *r)
{
	json_t *j = json_array();

	for (uint32_t i = 0; i < r->n_classes; i++) {
		const struct overcommit_class *c = &r->class[i];
		json_t *l = json_object();

		json_put(l, "lock", json_string(c->name));
		json_put(l, "caller", json_string(c->caller));
		json_put(l, "acquired", json_u64(c->stats.acquired));
		json_put(l, "contended", json_u64(c->stats.contended));
		json_put(l, "halted", json_u64(c->stats.slowpath));
		json_put(l, "kicks", json_u64(c->stats.kicks));
		json_put(l, "wait_cycles", json_u64(c->stats.wait));
		json_put(l, "longest_wait_cycles", json_u64(c->stats.longest_wait));
		json_put(l, "hold_cycles", json_u64(c->stats.hold));
		json_put(l, "longest_hold_cycles", json_u64(c->stats.longest_hold));
		json_array_append_new(j, l);
	}
	return j;
}

static json_t *named_json(const uint64_t *v, size_t n, const char *const *names)
{
	json_t *j = json_object();

	for (size_t i = 0; i < n; i++)
		if (v[i])
			json_put(j, names[i], json_u64(v[i]));
	return j;
}

static json_t *point_json(const struct overcommit_args *a, const struct overcommit_point *p,
			  const struct overcommit_point *first)
{
	const struct stats_estimate mean = overcommit_mean(p, a->replicates),
				    rel = overcommit_relative(p, first, a->replicates);
	const struct sums s = mean_sums(p, a->replicates);
	const struct overcommit_result *r = &p->r[0];
	json_t *j = json_object(), *rates = json_array();

	json_put(j, "overcommit", json_real(vcpus(p) / p->opts.pcpus));
	json_put(j, "vms", json_u64(p->opts.vms));
	json_put(j, "operations_per_second", estimate_json(&mean));
	json_put(j, "relative", estimate_json(&rel));
	for (uint32_t i = 0; i < a->replicates; i++)
		json_array_append_new(rates, json_real(overcommit_rate(p, i)));
	json_put(j, "replicates", rates);
	json_put(j, "per_second", sums_json(&s));
	json_put(j, "locks", locks_json(r));
	json_put(j, "counts", named_json(r->counts, N_COUNTS, model_vocabulary.counts));
	json_put(j, "count_cycles", named_json(r->count_cycles, N_COUNTS, model_vocabulary.counts));
	json_put(j, "waited_cycles", named_json(r->waits, N_WAITS, model_vocabulary.waits));
	json_put(j, "activity_cycles",
		 named_json(r->activities, N_ACTIVITIES, model_vocabulary.activities));
	json_put(j, "events", json_u64(r->events));
	return j;
}

static json_t *report_json(const struct overcommit_args *a, const struct overcommit_point *p,
			   size_t n)
{
	const struct overcommit_opts *o = &a->o;
	json_t *j = json_object(), *points = json_array();

	json_put(j, "workload", json_string(a->workload));
	json_put(j, "beside", a->beside ? json_string(a->beside) : json_null());
	json_put(j, "operation", json_string(o->workload->operation));
	json_put(j, "lock", json_string(o->lock));
	json_put(j, "ple", o->ple ? json_string(o->ple) : json_null());
	json_put(j, "vcpus", json_u64(o->vcpus));
	json_put(j, "pcpus", json_u64(o->pcpus));
	json_put(j, "profile", json_string(profile_name(o->profile)));
	json_put(j, "hz", json_u64(profile_hz(o->profile)));
	json_put(j, "measured_ms", json_u64(o->measured_ns / 1000000));
	json_put(j, "warm_up_ms", json_u64(o->warm_up_ns / 1000000));
	for (size_t i = 0; i < n; i++)
		json_array_append_new(points, point_json(a, &p[i], &p[0]));
	json_put(j, "points", points);
	return j;
}

int overcommit_report(const struct overcommit_args *a, const struct overcommit_point *p, size_t n)
{
	if (a->json)
		return json_print(report_json(a, p, n), stdout);
	if (a->contention)
		return print_contention(a, p, n);
	if (!a->csv)
		return print_text(a, p, n);
	print_csv(a, p, n);
	return 0;
}
