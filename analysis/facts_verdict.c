// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/facts_priv.h"

#include <string.h>

/* One word for a file: the first of the rules that holds, in their order of weight. */

#define RING_FULL_EXIT 31 /* KVM_EXIT_DIRTY_RING_FULL */
#define STORM_PER_S    100000
#define STORM_LEAST    3 /* exits; fewer are no rate */

bool facts_has(const struct host_facts *h, enum host_kind kind)
{
	for (unsigned i = 0; i < h->result->n_sections; i++)
		if (h->result->sections[i] == kind)
			return true;
	return false;
}

bool facts_has_trace(const struct host_facts *h)
{
	return facts_has(h, HOST_KIND_TRACE_TEXT) || facts_has(h, HOST_KIND_TRACE_DAT) ||
	       facts_has(h, HOST_KIND_NATIVE);
}

static bool ring_full(const struct facts *f)
{
	struct tally_item *left;
	uint64_t reason = RING_FULL_EXIT;

	HASH_FIND(hh, f->userspace.items, &reason, sizeof(reason), left);
	return left || f->records_of[HOST_kvm_dirty_ring_exit];
}

bool facts_too_lossy(const struct facts *f)
{
	return (f->has_header_loss ? f->header_lost : f->lost) > f->records;
}

static bool storm_in_trace(const struct facts *f)
{
	uint64_t n = f->records_of[HOST_kvm_userspace_exit], ns;

	if (n < STORM_LEAST || !f->timed_records)
		return false;
	ns = f->last_time - f->first_time;
	return ns && (unsigned __int128)n * 1000000000 > (unsigned __int128)ns * STORM_PER_S;
}

static bool storm_in_tables(const struct tables *t)
{
	/* of x86's tracepoints; arm64's and s390's debugfs */
	static const char *const names[] = {"kvm_userspace_exit", "mmio_exit_user",
					    "exit_userspace"};

	for (size_t i = 0; i < t->n_kvm_stat; i++) {
		const struct kvm_stat_table *k = &t->kvm_stat[i];

		for (size_t r = 0; r < k->n_rows; r++)
			for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
				if (!k->row[r].parent && !strcmp(k->row[r].name, names[n]) &&
				    k->row[r].rate.there && k->row[r].rate.value > STORM_PER_S)
					return true;
	}
	return false;
}

static bool accounting_error(const struct tables *t)
{
	for (size_t i = 0; i < t->n_migrations; i++) {
		const char *m = (const char *)&t->migration[i];

		for (size_t k = 0; k < n_migrate_fields; k++)
			if (migration_impossible(
				    &t->migration[i],
				    (const struct number *)(m + migrate_fields[k].offset)))
				return true;
	}
	return false;
}

/* NULL: the last round that could be read is within the goal, but later ones could not be. A log
 * may end inside of one. */
static const char *convergence(const struct host_facts *h)
{
	const struct precopy_round *last = &h->tables->round[h->tables->n_rounds - 1];

	if (last->est_downtime_ms > h->given.downtime_ms)
		return "does not converge";
	return precopy_unread(last) ? NULL : "converges";
}

/* ---- two runs of dirty_log_perf_test ---- */

struct balance {
	unsigned faster, slower;
};

static void weigh(struct balance *b, uint64_t first, uint64_t second)
{
	b->faster += second < first;
	b->slower += second > first;
}

static void weigh_lists(struct balance *b, const uint64_t *first, size_t n_first,
			const uint64_t *second, size_t n_second)
{
	size_t n = n_first < n_second ? n_first : n_second;
	uint64_t x = 0, y = 0;

	for (size_t i = 0; i < n; i++) {
		x += first[i];
		y += second[i];
	}
	weigh(b, x, y);
}

static const char *comparison(const struct tables *t)
{
	const struct dirty_log_run *a = t->run, *b = t->run + 1;
	struct balance sum = {0, 0};

	if (t->n_runs < 2)
		return NULL;
	weigh_lists(&sum, a->dirty_ns, a->n_dirty, b->dirty_ns, b->n_dirty);
	weigh_lists(&sum, a->clear_ns, a->n_clear, b->clear_ns, b->n_clear);
	if (a->disable_ns.there && b->disable_ns.there)
		weigh(&sum, a->disable_ns.value, b->disable_ns.value);
	if (sum.faster && sum.slower)
		return "mixed result";
	if (sum.faster)
		return "faster";
	return sum.slower ? "slower" : NULL;
}

const char *facts_verdict(const struct host_facts *h)
{
	const struct facts *f = h->facts;
	bool trace = facts_has_trace(h);

	if (trace && h->result->n_sections == 1 && !facts_usable(f))
		return "no usable events";
	if (trace && ring_full(f))
		return "dirty-ring stall";
	if (trace && facts_loop_next(f, NULL))
		return "no-progress loop";
	if (trace && f->stalled)
		return "progress stall";
	if (trace && facts_too_lossy(f))
		return "too lossy";
	if ((trace && storm_in_trace(f)) || storm_in_tables(h->tables))
		return "exit storm";
	if (accounting_error(h->tables))
		return "accounting error";
	if (h->tables->n_rounds && h->given.has_downtime)
		return convergence(h);
	return comparison(h->tables);
}
