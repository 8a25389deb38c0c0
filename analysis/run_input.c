// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/run_input.h"

#include <stdlib.h>
#include <string.h>

#include "model/policy/preset.h"
#include "traces/trace.h"
#include "workloads/scenario.h"

static int open_trace(const struct run_opts *o, struct run_input *in)
{
	int err = trace_open(o->trace, o->errors, &in->trace);

	if (err)
		return err;
	const struct trace_meta *m = trace_meta(in->trace);

	/* docs/host-traces.md says why, and what such a trace does answer */
	if (m->unseen & TRACE_ONLY_FAULTS)
		return kvmsim_err(
			o->errors, KVMSIM_EPARSE,
			"%s: cannot tell: of the guest's accesses only those were seen that "
			"left the guest; a page that is writable is stored to unseen, so "
			"what is dirty at a collection, and what a collection costs, is not "
			"in it (kvmsim info says what is)",
			o->trace);
	if (m->clock != TRACE_CLOCK_INSN)
		return kvmsim_err(o->errors, KVMSIM_EPARSE,
				  "%s: its clock is not guest instructions: it cannot be replayed",
				  o->trace);
	if (!(m->unseen & TRACE_NO_GVA))
		return kvmsim_err(o->errors, KVMSIM_EPARSE,
				  "%s: it holds guest-virtual addresses without the guest's page "
				  "tables: it cannot be replayed",
				  o->trace);
	if (!m->n_slots)
		return kvmsim_err(o->errors, KVMSIM_EPARSE, "%s: no memory slot", o->trace);
	if (m->unseen & TRACE_NO_STORES)
		return kvmsim_err(o->errors, KVMSIM_EPARSE,
				  "%s: cannot tell: stores to memory were not recorded, and the "
				  "dirty log reports nothing else",
				  o->trace);
	in->n_ops = trace_ops(in->trace);
	if (!in->n_ops)
		return kvmsim_err(o->errors, KVMSIM_EPARSE, "%s: cannot tell: %s", o->trace,
				  trace_stats(in->trace).torn ? "it is torn in its first block"
							      : "no op was recorded");
	in->n_vcpus = m->n_vcpus;
	in->n_slots = m->n_slots;
	for (uint32_t i = 0; i < m->n_slots; i++) {
		in->slots[i].base_gfn = m->slots[i].base_gfn;
		in->slots[i].npages = m->slots[i].npages;
		memcpy(in->slots[i].name, m->slots[i].name, sizeof(in->slots[i].name));
		in->slots[i].name[sizeof(in->slots[i].name) - 1] = '\0';
	}
	in->epoch_len = m->epoch_len;
	/* a pipe can be read only once */
	return strcmp(o->trace, "-") ? trace_checksum(o->trace, &in->checksum) : 0;
}

static int open_scenario(const struct run_opts *o, struct run_input *in)
{
	int err = scenario_open(o->scenario, o->errors, &in->scenario);

	if (err)
		return err;
	const struct scenario *s = in->scenario;

	in->n_vcpus = s->n_vcpus;
	in->n_slots = s->n_slots;
	for (uint32_t i = 0; i < s->n_slots; i++) {
		in->slots[i].base_gfn = s->slots[i].base_gfn;
		in->slots[i].npages = s->slots[i].npages;
		in->slots[i].host_level = s->slots[i].host_level;
		memcpy(in->slots[i].name, s->slots[i].name, sizeof(in->slots[i].name));
	}
	in->epoch_len = s->interval;
	in->checksum = s->checksum;
	if (!o->preset && s->preset[0])
		in->preset = s->preset;
	if (in->preset == s->preset && !preset_find(s->preset))
		return kvmsim_err(o->errors, KVMSIM_EPARSE,
				  "%s: preset = %s: no such kernel preset; kvmsim list has them",
				  o->scenario, s->preset);
	return 0;
}

static int open_sources(const struct run_opts *o, struct run_input *in)
{
	int err = 0;

	in->sources = calloc(in->n_vcpus, sizeof(*in->sources));
	if (!in->sources)
		return KVMSIM_ENOMEM;
	for (uint32_t v = 0; !err && v < in->n_vcpus; v++)
		err = in->trace ? trace_source(in->trace, v, &in->sources[v])
				: scenario_source(in->scenario, v, o->seed, o->replicate,
						  &in->sources[v]);
	return err;
}

static int choose_slots(const struct run_opts *o, struct run_input *in)
{
	const char *slot = o->slot;
	bool all = slot && !strcmp(slot, "all"), found = all;

	if (!slot && in->scenario && in->scenario->log >= 0)
		slot = in->slots[in->scenario->log].name;
	if (!slot)
		all = found = true;
	for (uint32_t i = 0; i < in->n_slots; i++) {
		if (o->host_level)
			in->slots[i].host_level = o->host_level;
		in->slots[i].logged = all || !strcmp(slot, in->slots[i].name);
		found |= in->slots[i].logged;
		uint64_t end = in->slots[i].base_gfn + in->slots[i].npages;

		if (end > (o->long_mode ? RUN_LONG_MODE_GFNS : 1ull << 20))
			return kvmsim_err(o->errors, KVMSIM_EPARSE, "%s: slot %s ends above %s",
					  in->name, in->slots[i].name,
					  o->long_mode ? "512 GiB"
						       : "4 GiB: such a guest cannot be replayed "
							 "without its page tables (--long-mode "
							 "makes some)");
	}
	if (!found) {
		char names[RUN_MAX_SLOTS * 18] = "";

		for (uint32_t i = 0; i < in->n_slots; i++) {
			strcat(names, i ? ", " : "");
			strcat(names, in->slots[i].name);
		}
		return kvmsim_err(o->errors, KVMSIM_ENOENT, "%s: no slot '%s'; there are %s",
				  in->name, slot, names);
	}
	return 0;
}

int run_input_open(const struct run_opts *o, struct run_input *in)
{
	int err;

	memset(in, 0, sizeof(*in));
	if (!o->trace == !o->scenario)
		return kvmsim_err(o->errors, KVMSIM_EINVAL,
				  "a run needs either a trace or a scenario");
	in->name = o->trace ? o->trace : o->scenario;
	in->preset = o->preset;
	err = o->trace ? open_trace(o, in) : open_scenario(o, in);
	err = err ? err : choose_slots(o, in);
	err = err ? err : open_sources(o, in);
	if (err)
		run_input_close(in);
	return err;
}

void run_input_endless(struct run_input *in)
{
	if (in->scenario && !in->scenario->workload->explicit_rounds)
		in->scenario->n_rounds = UINT64_MAX;
}

bool run_input_torn(const struct run_input *in)
{
	return in->trace && trace_stats(in->trace).torn;
}

void run_input_close(struct run_input *in)
{
	for (uint32_t v = 0; in->scenario && in->sources && v < in->n_vcpus; v++)
		scenario_source_free(&in->sources[v]);
	free(in->sources);
	trace_close(in->trace);
	scenario_free(in->scenario);
	in->sources = NULL;
	in->trace = NULL;
	in->scenario = NULL;
}
