// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/made_events.h"

#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/trace_util.h"

struct trace_writer *made_trace;
const struct import_host_opts made_plain;

struct host_text made_text(const char *s)
{
	return (struct host_text){s, strlen(s)};
}

void made_begin(const char *path)
{
	struct trace_meta meta = meta_of(1);

	meta.version = TRACE_VERSION;
	CU_ASSERT_EQUAL_FATAL(trace_create(path, &meta, NULL, &made_trace), 0);
}

struct host_event made_event(enum host_event_id id, int64_t tid, uint64_t time)
{
	return (struct host_event){.id = id,
				   .name = made_text(host_event_name(id)),
				   .tid = tid,
				   .tgid = -1,
				   .cpu = 3,
				   .comm = made_text("vmm"),
				   .time_ns = time,
				   .time_decimals = 6};
}

void made_put(struct host_event e)
{
	CU_ASSERT_EQUAL_FATAL(trace_write_event(made_trace, &e), 0);
}

void made_entry(int64_t tid, uint64_t time, uint64_t vcpu)
{
	struct host_event e = made_event(HOST_kvm_entry, tid, time);

	host_set(&e, HOST_F_vcpu, vcpu);
	made_put(e);
}

void made_exit_for(int64_t tid, uint64_t time, const char *reason, uint64_t info1, uint64_t info2)
{
	struct host_event e = made_event(HOST_kvm_exit, tid, time);

	e.reason = made_text(reason);
	host_set(&e, HOST_F_info1, info1);
	host_set(&e, HOST_F_info2, info2);
	made_put(e);
}

void made_finish(void)
{
	CU_ASSERT_EQUAL_FATAL(trace_finish(made_trace, NULL), 0);
}
