// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/converge_rounds.h"
#include "traces/tables/tables.h"

static double value(struct decimal d)
{
	return d.there ? (double)d.value / pow(10, d.digits) : 0;
}

/* ---- values that no run can have ---- */

static int complain(struct rounds_result *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static int complain(struct rounds_result *r, const char *fmt, ...)
{
	char **more = realloc(r->errors, (r->n_errors + 1) * sizeof(*more));
	char *text;
	va_list ap;
	int n;

	if (!more)
		return KVMSIM_ENOMEM;
	r->errors = more;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return KVMSIM_ENOMEM;
	r->errors[r->n_errors++] = text;
	return 0;
}

/* Times and rates are printed with two decimals: what they can be off by. */
static bool agrees(const struct precopy_round *x)
{
	double t = value(x->transfer_s), b = value(x->bw_mib_s);

	return (double)x->curr_mib + 1 >= (t - 0.005) * (b - 0.005) &&
	       (double)x->curr_mib - 1 <= (t + 0.005) * (b + 0.005);
}

static int check_rounds(const struct tables *t, struct rounds_result *r)
{
	const struct precopy_round *first = &t->round[0];
	int err = 0;

	for (size_t i = 0; !err && i < t->n_rounds; i++) {
		const struct precopy_round *x = &t->round[i], *before = i ? x - 1 : NULL;

		if (!first->iter && x->curr_mib > first->curr_mib)
			err = complain(r,
				       "round %" PRIu64 ": curr %" PRIu64
				       " MiB is more than the %" PRIu64
				       " MiB of memory that round 0 sent",
				       x->iter, x->curr_mib, first->curr_mib);
		/* each is rounded for itself */
		if (!err && before && x->iter == before->iter + 1 &&
		    x->total_mib + 1 < before->total_mib + x->curr_mib)
			err = complain(r,
				       "round %" PRIu64 ": total %" PRIu64
				       " MiB is less than total and curr together, %" PRIu64 " MiB",
				       x->iter, x->total_mib, before->total_mib + x->curr_mib);
		if (!err && x->curr_mib && !agrees(x))
			err = complain(r,
				       "round %" PRIu64 ": curr %" PRIu64
				       " MiB is not bw by transfer, %.0f MiB",
				       x->iter, x->curr_mib,
				       value(x->bw_mib_s) * value(x->transfer_s));
	}
	return err;
}

static bool derived_remaining(const struct migration_status *m, uint64_t *kib)
{
	uint64_t pages, done;

	if (!m->total_kib.there || !m->zero_pages.there || !m->normal_pages.there ||
	    !m->page_kib.there ||
	    __builtin_add_overflow(m->zero_pages.value, m->normal_pages.value, &pages) ||
	    __builtin_mul_overflow(pages, m->page_kib.value, &done) || done > m->total_kib.value)
		return false;
	*kib = m->total_kib.value - done;
	return true;
}

static int check_migration(const struct migration_status *m, struct rounds_result *r)
{
	uint64_t kib;
	int err = 0;

	for (size_t i = 0; !err && i < n_migrate_fields; i++) {
		const struct number *n =
			(const struct number *)((const char *)m + migrate_fields[i].offset);

		if (!migration_impossible(m, n))
			continue;
		if (n == &m->remaining_kib && derived_remaining(m, &kib))
			err = complain(r,
				       "%s: %" PRIu64 " is below zero, counted in 64 bits; total "
				       "less zero and normal pages is %" PRIu64 " KiB",
				       migrate_fields[i].name, n->value, kib);
		else
			err = complain(r, "%s: %" PRIu64 " is below zero, counted in 64 bits",
				       migrate_fields[i].name, n->value);
	}
	return err;
}

/* ---- the guest ---- */

bool rounds_dirtied(const struct tables *t, size_t i, double *mib, double *rate)
{
	double time;

	if (i + 1 >= t->n_rounds || t->round[i + 1].iter != t->round[i].iter + 1)
		return false;
	time = value(t->round[i].transfer_s);
	if (time <= 0)
		return false;
	*mib = (double)t->round[i + 1].curr_mib;
	*rate = *mib / time;
	return true;
}

static void fit_rounds(const struct tables *t, struct rounds_fit *f)
{
	double dirtied = 0, time = 0, sent = 0, sending = 0, highest = 0;

	for (size_t i = 0; i < t->n_rounds; i++) {
		double s = value(t->round[i].transfer_s), mib, rate;

		sent += (double)t->round[i].curr_mib;
		sending += s;
		if (!rounds_dirtied(t, i, &mib, &rate))
			continue;
		f->shortest = f->n ? fmin(f->shortest, s) : s;
		f->longest = fmax(f->longest, s);
		f->least = f->n ? fmin(f->least, mib) : mib;
		f->most = fmax(f->most, mib);
		highest = fmax(highest, rate);
		dirtied += mib;
		time += s;
		f->n++;
	}
	if (!t->round[0].iter)
		f->memory = (double)t->round[0].curr_mib;
	f->left = (double)t->round[t->n_rounds - 1].curr_mib;
	f->bandwidth = sending > 0 ? sent / sending : 0;
	f->has_rate = f->n;
	/* the amounts differ by less than half of what the times do */
	f->saturated = f->n > 1 && f->longest > 1.05 * f->shortest && f->least > 0 &&
		       f->most / f->least - 1 < (f->longest / f->shortest - 1) / 2;
	f->rate = f->saturated ? highest : f->n ? dirtied / time : 0;
	if (!f->saturated)
		f->most = f->memory > 0 ? f->memory : INFINITY;
}

static bool possible(const struct migration_status *m, const struct number *n)
{
	return n->there && !migration_impossible(m, n);
}

static void fit_migration(const struct migration_status *m, struct rounds_fit *f)
{
	uint64_t kib;

	if (possible(m, &m->total_kib))
		f->memory = (double)m->total_kib.value / 1024;
	if (possible(m, &m->remaining_kib))
		f->left = (double)m->remaining_kib.value / 1024;
	else if (derived_remaining(m, &kib))
		f->left = (double)kib / 1024;
	else
		f->left = f->memory;
	f->most = f->memory > 0 ? f->memory : INFINITY;
	f->bandwidth = value(m->throughput_mbps) * 1e6 / 8 / (1 << 20);
	if (possible(m, &m->dirty_pages_rate) && m->page_kib.there) {
		f->has_rate = true;
		f->rate = (double)m->dirty_pages_rate.value * (double)m->page_kib.value / 1024;
	}
}

/* ---- rounds to come ---- */

/* Dirtying goes by whole pages: below one there is nothing but none. */
#define PAGE_MIB (4096.0 / (1 << 20))

/* A guest that dirties at @rate (INFINITY: all at once) up to @most in a round. */
static struct rounds_way go(double left, double rate, double most, const struct rounds_goal *goal)
{
	struct rounds_way w = {.left = left};

	while (w.left > goal->downtime * goal->bandwidth && w.rounds < goal->max_rounds) {
		double time = w.left / goal->bandwidth;

		w.sent_s += time;
		w.left = time > 0 ? fmin(rate * time, most) : 0;
		if (w.left > 0)
			w.left = fmax(w.left, PAGE_MIB);
		w.rounds++;
	}
	w.stop_s = w.left / goal->bandwidth;
	w.converges = w.left <= goal->downtime * goal->bandwidth;
	return w;
}

static double begin(const struct rounds_result *r)
{
	return r->migration || r->fit.memory <= 0 ? r->fit.left : r->fit.memory;
}

/* The rate that the prediction counts with. */
static double rate_of(const struct rounds_fit *f)
{
	return f->saturated ? INFINITY : f->rate;
}

static double bandwidth_for(const struct rounds_result *r, double rate)
{
	struct rounds_goal goal = r->goal;
	double low = 0, high = fmax(begin(r), isinf(r->fit.most) ? 0 : r->fit.most) / goal.downtime;

	for (int i = 0; i < 100; i++) {
		goal.bandwidth = (low + high) / 2;
		if (go(begin(r), rate, r->fit.most, &goal).converges)
			high = goal.bandwidth;
		else
			low = goal.bandwidth;
	}
	return high;
}

static void find_needs(struct rounds_result *r)
{
	const struct rounds_fit *f = &r->fit;
	struct rounds_needs *n = &r->needs;
	double low = 0, high = f->saturated ? r->goal.bandwidth : f->rate;

	n->downtime = r->way.stop_s;
	if (r->goal.downtime > 0) {
		n->bandwidth = bandwidth_for(r, rate_of(f));
		n->least_bandwidth = f->saturated ? bandwidth_for(r, f->rate) : n->bandwidth;
	}
	for (int i = 0; i < 100; i++) {
		double rate = (low + high) / 2;

		if (go(begin(r), rate, f->most, &r->goal).converges)
			low = rate;
		else
			high = rate;
	}
	/* none does where one page is too much: the search ends where nothing is dirtied */
	n->limit = go(begin(r), low, f->most, &r->goal).converges ? low : 0;
	/* of a rate that is known as a least only, a throttle that it needs too */
	if (f->saturated && go(begin(r), f->rate, f->most, &r->goal).converges)
		return;
	for (unsigned p = 1; p < 100 && !n->throttle; p++)
		if (go(begin(r), f->rate * (100 - p) / 100, f->most, &r->goal).converges)
			n->throttle = p;
}

int rounds_judge(const struct tables *t, const struct rounds_goal *goal, struct rounds_result *r)
{
	const struct migration_status *m = NULL;
	int err = 0;

	*r = (struct rounds_result){.goal = *goal};
	if (t->n_rounds) {
		fit_rounds(t, &r->fit);
		err = check_rounds(t, r);
	} else if (t->n_migrations) {
		r->migration = true;
		m = &t->migration[t->n_migrations - 1];
		r->status = m->status;
		fit_migration(m, &r->fit);
		for (size_t i = 0; !err && i < t->n_migrations; i++)
			err = check_migration(&t->migration[i], r);
	} else {
		return KVMSIM_ENOENT;
	}
	if (err) {
		rounds_result_free(r);
		return err;
	}
	if (r->goal.bandwidth <= 0)
		r->goal.bandwidth = r->fit.bandwidth;
	r->known = r->goal.bandwidth > 0 &&
		   (r->fit.has_rate || begin(r) <= r->goal.bandwidth * r->goal.downtime);
	if (!r->known)
		return 0;
	r->way = go(begin(r), rate_of(&r->fit), r->fit.most, &r->goal);
	/* of a guest whose later rounds could not be read nothing good is said */
	if (r->way.converges && !r->migration && precopy_unread(&t->round[t->n_rounds - 1])) {
		r->known = false;
		r->unread = true;
	}
	if (!r->way.converges)
		find_needs(r);
	return 0;
}

void rounds_result_free(struct rounds_result *r)
{
	for (size_t i = 0; i < r->n_errors; i++)
		free(r->errors[i]);
	free(r->errors);
	*r = (struct rounds_result){0};
}
