// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/host.h"

#include <string.h>

static const struct {
	const char *name;
	uint8_t len;
	uint8_t id;
} names[] = {
#define HOST_EVENT(n) {#n, sizeof(#n) - 1, HOST_##n},
#define HOST_REST(n)  {#n, sizeof(#n) - 1, HOST_KVM_REST},
#include "traces/host/events.def"
};

enum host_event_id host_event_find(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].len == len && !memcmp(names[i].name, name, len))
			return names[i].id;
	return len > 4 && !memcmp(name, "kvm_", 4) ? HOST_UNKNOWN_KVM : HOST_OTHER;
}

const char *host_event_name(enum host_event_id id)
{
	static const char *const of[HOST_N_EVENTS] = {
#define HOST_EVENT(n) [HOST_##n] = #n,
#define HOST_REST(n)
#include "traces/host/events.def"
	};

	return id < HOST_N_EVENTS ? of[id] : NULL;
}

const char *host_field_name(enum host_field f)
{
	static const char *const of[HOST_N_FIELDS] = {
#define F(name) #name,
		HOST_FIELDS(F)
#undef F
	};

	return f < HOST_N_FIELDS ? of[f] : NULL;
}

const char *host_kind_name(enum host_kind k)
{
	static const char *const of[HOST_N_KINDS] = {
		[HOST_KIND_TRACE_TEXT] = "kvm-trace-text",
		[HOST_KIND_KVM_STAT] = "kvm-stat-table",
		[HOST_KIND_PERF_KVM_STAT] = "perf-kvm-stat-table",
		[HOST_KIND_DIRTY_LOG_PERF] = "dirty-log-perf-test",
		[HOST_KIND_QEMU_MONITOR] = "qemu-monitor",
		[HOST_KIND_PRECOPY] = "precopy-log",
		[HOST_KIND_LOCK_CONTENTION] = "lock-contention",
		[HOST_KIND_CSV] = "csv",
		[HOST_KIND_TRACE_DAT] = "trace-dat",
		[HOST_KIND_NATIVE] = "native",
	};

	return of[k];
}
