// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/dat_util.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <trace-cmd.h>
#include <unistd.h>

/* The kernel's names (6.1, 6.18) of some fields in all events of those names. */
static const struct {
	const char *event, *name;
	enum host_field field;
} compared[] = {
	{"kvm_entry", "vcpu_id", HOST_F_vcpu},
	{"kvm_entry", "rip", HOST_F_rip},
	{"kvm_exit", "vcpu_id", HOST_F_vcpu},
	{"kvm_exit", "exit_reason", HOST_F_reason},
	{"kvm_exit", "guest_rip", HOST_F_rip},
	{"kvm_exit", "info1", HOST_F_info1},
	{"kvm_exit", "info2", HOST_F_info2},
	{"kvm_exit", "isa", HOST_F_isa},
	{"kvm_page_fault", "vcpu_id", HOST_F_vcpu},
	{"kvm_page_fault", "fault_address", HOST_F_address},
	{"kvm_page_fault", "error_code", HOST_F_error_code},
	{"kvm_mmio", "gpa", HOST_F_gpa},
	{"kvm_mmio", "val", HOST_F_val},
	{"kvm_mmio", "type", HOST_F_type},
	{"mark_mmio_spte", "gfn", HOST_F_gfn},
	{"mark_mmio_spte", "sptep", HOST_F_sptep},
	{"handle_mmio_page_fault", "addr", HOST_F_address},
	{"fast_page_fault", "old_spte", HOST_F_old},
	{"fast_page_fault", "new_spte", HOST_F_new},
	{"kvm_mmu_get_page", "gfn", HOST_F_gfn},
	{"kvm_mmu_get_page", "created", HOST_F_created},
	{"kvm_mmu_set_spte", "gfn", HOST_F_gfn},
	{"kvm_mmu_set_spte", "spte", HOST_F_spte},
	{"kvm_mmu_set_spte", "level", HOST_F_level},
	{"kvm_tdp_mmu_spte_changed", "old_spte", HOST_F_old},
	{"kvm_tdp_mmu_spte_changed", "new_spte", HOST_F_new},
	{"kvm_dirty_ring_push", "index", HOST_F_ring},
	{"kvm_dirty_ring_push", "offset", HOST_F_offset},
	{"contention_begin", "lock_addr", HOST_F_lock_addr},
	{"contention_begin", "flags", HOST_F_flags},
	{"contention_end", "ret", HOST_F_ret},
	{"sched_switch", "prev_pid", HOST_F_prev_pid},
	{"sched_switch", "next_pid", HOST_F_next_pid},
	{"sched_wakeup", "pid", HOST_F_pid},
	{"sched_wakeup", "target_cpu", HOST_F_target_cpu},
};

struct collecting {
	struct oracle *o;
	size_t room;
	bool failed;
};

static enum host_context context_of(int flags)
{
	if (flags & TRACE_FLAG_HARDIRQ)
		return HOST_CONTEXT_HARDIRQ;
	return flags & TRACE_FLAG_SOFTIRQ ? HOST_CONTEXT_SOFTIRQ : HOST_CONTEXT_TASK;
}

static int collect(struct tracecmd_input *handle, struct tep_record *record, int cpu, void *context)
{
	struct collecting *c = context;
	struct tep_handle *tep = tracecmd_get_tep(handle);
	struct tep_event *event = tep_find_event_by_record(tep, record);
	struct oracle_record *r;

	(void)cpu;
	if (c->o->n == c->room) {
		c->room = c->room ? 2 * c->room : 1024;
		r = realloc(c->o->r, c->room * sizeof(*r));
		if (!r) {
			c->failed = true;
			return -1;
		}
		c->o->r = r;
	}
	r = &c->o->r[c->o->n++];
	*r = (struct oracle_record){.time_ns = record->ts,
				    .cpu = record->cpu,
				    .tid = tep_data_pid(tep, record),
				    .context = context_of(tep_data_flags(tep, record)),
				    .lost = record->missed_events,
				    .end = (record->offset | 4095) + 1};
	snprintf(r->name, sizeof(r->name), "%s", event ? event->name : "?");
	snprintf(r->comm, sizeof(r->comm), "%s", tep_data_comm_from_pid(tep, r->tid));
	for (size_t i = 0; event && i < sizeof(compared) / sizeof(*compared); i++) {
		unsigned long long v;

		if (strcmp(event->name, compared[i].event) ||
		    tep_get_field_val(NULL, event, compared[i].name, record, &v, 0))
			continue;
		r->v[compared[i].field] = v;
		r->have |= 1ull << compared[i].field;
	}
	return 0;
}

#ifdef __SANITIZE_ADDRESS__ /* the libraries leak */
#include <sanitizer/lsan_interface.h>
#else
#define __lsan_disable()
#define __lsan_enable()
#endif

bool oracle_read(const char *path, struct oracle *out)
{
	struct collecting c = {.o = out};
	struct tracecmd_input *top, *handle[16];
	int n = 1;

	*out = (struct oracle){0};
	__lsan_disable();
	tracecmd_set_loglevel(TEP_LOG_NONE);
	tep_set_loglevel(TEP_LOG_NONE);
	top = tracecmd_open(path, TRACECMD_FL_LOAD_NO_PLUGINS);
	__lsan_enable();
	if (!top)
		return false;
	handle[0] = top;
	for (int i = 0; i < tracecmd_buffer_instances(top) && n < 16; i++)
		handle[n++] = tracecmd_buffer_instance_handle(top, i);
	tracecmd_iterate_events_multi(handle, n, collect, &c);
	while (n--)
		tracecmd_close(handle[n]);
	return !c.failed;
}

void oracle_free(struct oracle *o)
{
	free(o->r);
	*o = (struct oracle){0};
}

/* ---- ours ---- */

static int event(void *ctx, const struct host_event *e)
{
	struct dat_seen *s = ctx;
	struct oracle_record *r;

	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		r = realloc(s->r, s->room * sizeof(*r));
		if (!r)
			return KVMSIM_ENOMEM;
		s->r = r;
	}
	r = &s->r[s->n++];
	*r = (struct oracle_record){.time_ns = e->time_ns,
				    .cpu = e->cpu,
				    .tid = e->tid,
				    .lost = s->lost,
				    .have = e->have,
				    .context = e->context};
	s->lost = 0;
	snprintf(r->name, sizeof(r->name), "%.*s", (int)e->name.len, e->name.at);
	snprintf(r->comm, sizeof(r->comm), "%.*s", (int)e->comm.len, e->comm.at);
	for (unsigned i = 0; i < HOST_N_FIELDS; i++)
		r->v[i] = host_has(e, i) ? e->v[i] : 0;
	return 0;
}

static int loss(void *ctx, const struct host_loss *l)
{
	struct dat_seen *s = ctx;

	s->lost = l->count == UINT64_MAX ? -1 : (int64_t)l->count;
	s->losses++;
	return 0;
}

static void say(void *ctx, enum kvmsim_error err, const char *msg)
{
	struct dat_seen *s = ctx;
	size_t at = strlen(s->said);

	(void)err;
	snprintf(s->said + at, sizeof(s->said) - at, "%s\n", msg);
}

void dat_see(const char *path, struct dat_seen *s)
{
	const struct host_sink sink = {.ctx = s, .event = event, .loss = loss};
	const struct kvmsim_errsink errors = {.ctx = s, .emit = say};

	*s = (struct dat_seen){0};
	s->rc = host_read_dat(path, NULL, &sink, &errors, &s->result);
}

void dat_see_fd(int fd, struct dat_seen *s)
{
	const struct host_sink sink = {.ctx = s, .event = event, .loss = loss};
	const struct kvmsim_errsink errors = {.ctx = s, .emit = say};

	*s = (struct dat_seen){0};
	s->rc = host_read_dat_fd(fd, "file", NULL, 0, NULL, &sink, &errors, &s->result);
}

void dat_seen_free(struct dat_seen *s)
{
	free(s->r);
	*s = (struct dat_seen){0};
}

uint8_t *dat_whole(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = NULL;

	*len = 0;
	if (!f)
		return NULL;
	fseek(f, 0, SEEK_END);
	*len = ftell(f);
	rewind(f);
	bytes = malloc(*len + 1);
	if (bytes && fread(bytes, 1, *len, f) != *len)
		*len = 0;
	fclose(f);
	return bytes;
}

bool dat_see_bytes(const uint8_t *bytes, size_t len, struct dat_seen *s)
{
	int fd = memfd_create("dat", MFD_CLOEXEC);

	bool written = fd >= 0 && write(fd, bytes, len) == (ssize_t)len;

	if (written)
		dat_see_fd(fd, s);
	close(fd);
	return written;
}
