// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/operations_report.h"

#include "analysis/output.h"
#include "model/counts.h"
#include "model/sim/profile.h"

static const struct {
	const char *name, *help;
} words[RUN_OPERATIONS] = {
#define X(name, help) [KVM_OP_##name] = {#name, help},
	KVM_OPERATIONS(X)
#undef X
		[RUN_OP_vcpus] = {"vcpus", "other vCPUs"},
	[RUN_OP_own] = {"own", "its own accesses"},
};

static void cell(struct table *t, cycles_t cycles)
{
	char number[OUT_TEXT];

	table_cell(t, "%s", cycles ? out_u64(number, cycles) : "");
}

/* Which vCPU, and who made it wait or exit. */
static void cell_who(struct table *t, const struct run_stall *s)
{
	if (s->wait == WAIT_lock)
		table_cell(t, "vcpu%u waited for a lock of %s", s->vcpu, s->by);
	else if (s->wait == WAIT_ipi)
		table_cell(t, "vcpu%u waited for an IPI to %s", s->vcpu, s->by);
	else if (*s->by)
		table_cell(t, "vcpu%u interrupted by %s", s->vcpu, s->by);
	else
		table_cell(t, "vcpu%u", s->vcpu);
}

/* From the stalls that an operation caused. */
static void cells_stalls(struct table *t, const struct run_operation *p, uint64_t hz)
{
	char number[OUT_TEXT], time[OUT_TEXT];

	if (!p->stalls)
		return;
	table_cell(t, "%s", out_u64(number, p->stalls));
	table_cell(t, "%s", out_u64(number, p->longest_stall.cycles));
	table_cell(t, "%s", out_time(time, (double)p->longest_stall.cycles, hz));
	cell(t, p->longest_stall.waited);
	cell_who(t, &p->longest_stall);
}

int operations_print(const struct run_opts *o, const struct run_result *r, FILE *to)
{
	static const char *const heads[] = {
		"operation",	    "calls",  "total",	       "(time)",	"longest call",
		"longest hold",	    "shared", "stalls caused", "longest stall", "(time)",
		"of which waiting", "who"};
	struct table *t = table_create("lrrlrrrrrlrl");
	uint64_t hz = profile_hz(o->profile);
	char number[OUT_TEXT], time[OUT_TEXT];

	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_cell(t, "%s", hz || heads[i][0] != '(' ? heads[i] : "");
	table_end_row(t);
	for (unsigned i = 0; i < RUN_OPERATIONS; i++) {
		const struct run_operation *p = &r->operations[i];

		if (!p->calls && !p->stalls)
			continue;
		table_cell(t, "%s", words[i].help);
		table_cell(t, "%s", p->calls ? out_u64(number, p->calls) : "");
		cell(t, p->total);
		table_cell(t, "%s", p->total ? out_time(time, (double)p->total, hz) : "");
		cell(t, p->longest);
		cell(t, p->hold);
		cell(t, p->hold_shared);
		cells_stalls(t, p, hz);
		table_end_row(t);
	}
	fprintf(to, "\nWhat held mmu_lock, and why vCPUs stood still (%s):\n",
		profile_unit(o->profile));
	int err = table_print(t, to);

	table_free(t);
	return err;
}

json_t *stall_json(const struct run_stall *s)
{
	json_t *j;

	if (!s->cycles && !*s->by)
		return json_null();
	j = json_object();
	json_put(j, "vcpu", json_u64(s->vcpu));
	json_put(j, "start", json_u64(s->start));
	json_put(j, "time", json_u64(s->cycles));
	json_put(j, "waited", json_u64(s->waited));
	json_put(j, "cause", json_string(words[s->cause].name));
	json_put(j, "wait",
		 s->wait == RUN_NO_WAIT ? json_null()
					: json_string(model_vocabulary.waits[s->wait]));
	json_put(j, "by", *s->by ? json_string(s->by) : json_null());
	json_put(j, "activity",
		 *s->by ? json_string(model_vocabulary.activities[s->activity]) : json_null());
	return j;
}

json_t *operations_json(const struct run_result *r)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < RUN_OPERATIONS; i++) {
		const struct run_operation *p = &r->operations[i];
		json_t *j;

		if (!p->calls && !p->stalls)
			continue;
		j = json_object();
		json_put(j, "operation", json_string(words[i].name));
		json_put(j, "calls", json_u64(p->calls));
		json_put(j, "total", json_u64(p->total));
		json_put(j, "longest", json_u64(p->longest));
		json_put(j, "longest_hold", json_u64(p->hold));
		json_put(j, "longest_shared_hold", json_u64(p->hold_shared));
		json_put(j, "stalls", json_u64(p->stalls));
		json_put(j, "stalled", json_u64(p->stalled));
		json_put(j, "longest_stall", stall_json(&p->longest_stall));
		json_array_append_new(a, j);
	}
	return a;
}
