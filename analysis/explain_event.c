// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/explain.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/output.h"
#include "analysis/run.h"
#include "traces/host/host.h"

/* Events of a trace, one by one. */

#define NAME_BYTES 64

static json_t *fields_of(const struct host_event *e)
{
	json_t *fields = json_array();

	for (int f = 0; f < HOST_N_FIELDS; f++)
		if (host_has(e, f))
			explain_field(fields, "", host_field_name(f), e->v[f], "");
	return fields;
}

/* Its reason's name as the kernel's tables have it: upper case, without EXIT_. */
static void reason_of(const struct host_event *e, char name[NAME_BYTES])
{
	struct host_text t = e->reason;
	size_t n = 0;

	if (t.len > 5 && !memcmp(t.at, "EXIT_", 5)) {
		t.at += 5;
		t.len -= 5;
	}
	for (; n < t.len && n < NAME_BYTES - 1; n++)
		name[n] = (char)toupper((unsigned char)t.at[n]);
	name[n] = '\0';
	if (!n && host_has(e, HOST_F_reason))
		snprintf(name, NAME_BYTES, "0x%" PRIx64, e->v[HOST_F_reason]);
	if (!strcmp(name, "0X400") || !strcmp(name, "0x400"))
		strcpy(name, "NPF");
}

static json_t *exit_of(const struct host_event *e)
{
	enum exit_isa isa =
		host_has(e, HOST_F_isa) ? (enum exit_isa)e->v[HOST_F_isa] : EXIT_ISA_UNKNOWN;
	struct explain_infos in = {.has_info1 = host_has(e, HOST_F_info1),
				   .has_info2 = host_has(e, HOST_F_info2),
				   .has_intr_info = host_has(e, HOST_F_intr_info)};
	char name[NAME_BYTES];
	json_t *o;
	bool found;

	if (in.has_info1)
		in.info1 = e->v[HOST_F_info1];
	if (in.has_info2)
		in.info2 = e->v[HOST_F_info2];
	if (in.has_intr_info)
		in.intr_info = e->v[HOST_F_intr_info];
	reason_of(e, name);
	o = explain_exit(name, isa, &in, &found);
	if (!found) {
		json_put(o, "as", json_string("an exit that no kernel has a name for"));
		json_object_del(o, "error_code");
	}
	return o;
}

static int on_event(void *ctx, const struct host_event *e)
{
	char name[NAME_BYTES];
	json_t *o, *list = ctx;

	snprintf(name, sizeof(name), "%.*s",
		 (int)(e->name.len < NAME_BYTES ? e->name.len : NAME_BYTES - 1), e->name.at);
	o = explain_new(name, "");
	if (e->line)
		json_put(o, "line", json_u64(e->line));
	json_put(o, "fields", fields_of(e));
	if (e->id == HOST_kvm_exit || e->id == HOST_kvm_nested_vmexit)
		json_put(o, "exit", exit_of(e));
	if (e->id == HOST_kvm_page_fault && host_has(e, HOST_F_error_code))
		json_put(o, "error_code",
			 explain_error_code(e->v[HOST_F_error_code], EXPLAIN_GUESS));
	if (e->id == HOST_kvm_mmu_walker_error && host_has(e, HOST_F_error_code))
		json_put(o, "error_code", explain_error_code(e->v[HOST_F_error_code], EXPLAIN_PF));
	if (e->id == HOST_kvm_userspace_exit && host_has(e, HOST_F_reason)) {
		struct host_text t = userspace_exit_name((uint32_t)e->v[HOST_F_reason]);

		if (t.len)
			json_put(o, "says", json_stringn(t.at, t.len));
	}
	if (e->role_unreliable)
		json_put(o, "says",
			 json_string("The role is decoded by a plugin's stale layout: only gfn and "
				     "level hold."));
	if (e->id == HOST_UNKNOWN_KVM)
		json_put(o, "says", json_string("No mainline kernel has an event of this name."));
	return json_array_append_new(list, o) ? KVMSIM_ENOMEM : 0;
}

int explain_events(const char *path, const struct kvmsim_errsink *errors, json_t *list)
{
	const struct host_opts opts = {.interrupted = &run_interrupted};
	const struct host_sink sink = {.ctx = list, .event = on_event};
	struct host_result result = {.refusal = HOST_FINE};
	int err = host_read(path, &opts, &sink, errors, &result);

	if (!err && !json_array_size(list))
		err = kvmsim_err(errors, KVMSIM_EPARSE, "%s: no record of an event", path);
	return err;
}
