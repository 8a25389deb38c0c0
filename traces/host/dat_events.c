// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/dat_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/host/dat_format.h"
#include "traces/host/exit_reasons.h"

#define MAX_FIELDS  16
#define PT_WRITABLE 2
#define PFERR_NAMED 0x1f  /* bits that the kernel prints by name: P, W, U, RSVD, F */
#define N_IDS	    65536 /* common_type is an unsigned short */

struct getter {
	struct dat_place from;
	enum host_field to;
};
/* How the recorded kernel packs the role of a shadow page. */
enum role { ROLE_NONE, ROLE_UNSURE, ROLE_8_BYTES, ROLE_4_BYTES };
struct kind {
	struct host_text name;
	enum host_event_id id;
	struct dat_place pid, flags; /* common_ */
	struct getter get[MAX_FIELDS];
	unsigned n;
	/* those whose value is not that of a field here */
	struct dat_place role, ret, retry;
	enum role packed;
	int64_t spurious, fixed; /* values of fast_page_fault's ret; -1: not known */
	char number[16];	 /* of an exit without a name */
};
struct task {
	int32_t pid;
	struct host_text name;
};

struct dat_events {
	const struct dat_file *f;
	struct dat_place type; /* common_type */
	struct host_text format[N_IDS];
	struct kind *kind[N_IDS]; /* made when the first of its records comes */
	struct task *task;	  /* by pid */
	size_t n_tasks;
	const struct task *last; /* that was looked up */
};

struct named {
	enum host_event_id event;
	const char *name;
	enum host_field to;
};
static const struct named fields[] = {
#define FIELD(event, name, to) {HOST_##event, name, HOST_F_##to},
#include "traces/host/dat_fields.def"
};

/* ---- opening ---- */

/* Formats one behind the other, each with its length before it; *at goes behind them. */
static void formats(struct dat_events *d, const struct dat_blob *b, size_t *at, uint64_t n)
{
	for (; n && b->len - *at >= 8; n--) {
		uint64_t len = dat_number(d->f, b->at + *at, 8);
		struct dat_format t;

		*at += 8;
		if (len > b->len - *at) {
			*at = b->len;
			return;
		}
		t = dat_format((const char *)b->at + *at, len);
		if (t.id >= 0 && t.id < N_IDS && !d->format[t.id].len) {
			d->format[t.id] = t.text;
			if (!d->type.bytes)
				d->type = dat_field(&t, "common_type");
		}
		*at += len;
	}
}

static void all_formats(struct dat_events *d)
{
	const struct dat_blob *b = &d->f->ftrace;
	size_t at = 4;

	if (b->at && b->len >= 4)
		formats(d, b, &at, dat_number(d->f, b->at, 4));
	b = &d->f->formats;
	at = 4;
	if (b->len < 4)
		return;
	for (uint64_t n = dat_number(d->f, b->at, 4); n; n--) {
		size_t len = strnlen((const char *)b->at + at, b->len - at); /* the system */

		if (b->len - at - len < 5)
			break;
		at += len + 5;
		formats(d, b, &at, dat_number(d->f, b->at + at - 4, 4));
	}
}

static int by_pid(const void *a, const void *b)
{
	const struct task *s = a, *t = b;

	if (s->pid != t->pid)
		return s->pid < t->pid ? -1 : 1;
	return s->name.at < t->name.at ? -1 : s->name.at > t->name.at;
}

/* "pid name" lines. */
static int tasks(struct dat_events *d)
{
	const struct dat_blob *b = &d->f->cmdlines;
	const char *line, *end, *stop = (const char *)b->at + b->len;
	size_t lines = 0;

	if (!b->at || b->len < 8)
		return 0;
	for (size_t i = 8; i < b->len; i++)
		lines += b->at[i] == '\n';
	d->task = calloc(lines + 1, sizeof(*d->task));
	if (!d->task)
		return KVMSIM_ENOMEM;
	for (line = (const char *)b->at + 8; (end = memchr(line, '\n', stop - line));
	     line = end + 1) {
		int64_t pid = 0;
		const char *p = line;

		for (; p < end && *p >= '0' && *p <= '9' && pid <= INT32_MAX; p++)
			pid = pid * 10 + *p - '0';
		if (p > line && p < end && *p == ' ' && pid <= INT32_MAX)
			d->task[d->n_tasks++] = (struct task){pid, {p + 1, (size_t)(end - p) - 1}};
	}
	qsort(d->task, d->n_tasks, sizeof(*d->task), by_pid);
	return 0;
}

/* The length of a page's second word, of the type long. */
static unsigned commit_length(const struct dat_file *f)
{
	const struct dat_blob *b = &f->headers;
	uint64_t len = b->len >= 20 ? dat_number(f, b->at + 12, 8) : 0;
	struct dat_format page;
	unsigned bytes = f->head.long_size;

	if (len && len <= b->len - 20) {
		page = dat_format((const char *)b->at + 20, len);
		bytes = dat_field(&page, "commit").bytes;
	}
	return bytes == 4 ? 4 : 8;
}

int dat_events_open(const struct dat_file *f, struct dat_events **out, unsigned *commit_bytes)
{
	struct dat_events *d = calloc(1, sizeof(*d));

	*out = d;
	if (!d)
		return kvmsim_err(f->errors, KVMSIM_ENOMEM, "%s: out of memory", f->name);
	d->f = f;
	*commit_bytes = commit_length(f);
	all_formats(d);
	if (tasks(d))
		return kvmsim_err(f->errors, KVMSIM_ENOMEM, "%s: out of memory", f->name);
	if (!d->type.bytes)
		return kvmsim_err(f->errors, KVMSIM_EPARSE,
				  "%s: not one format of an event can be read", f->name);
	return 0;
}

void dat_events_free(struct dat_events *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < N_IDS; i++)
		free(d->kind[i]);
	free(d->task);
	free(d);
}

/* ---- a kind of event ---- */

static bool prints(const struct dat_format *t, const char *word)
{
	return t->print.len && memmem(t->print.at, t->print.len, word, strlen(word));
}

/* A role's bits: level 0-3, size of entries 4, quadrant 5-6, direct 7, access 8-10, since 4.2.
 * Which way round bit 4 is, the expression's word for it tells (5.1, 5.18); before 5.1 it does not
 * tell whether there is padding between, as there was before 4.2. */
static enum role role_of(const struct dat_format *t)
{
	if (prints(t, "has_4_byte_gpte"))
		return ROLE_4_BYTES;
	return prints(t, "gpte_is_8_bytes") ? ROLE_8_BYTES : ROLE_UNSURE;
}

/* fast_page_fault since 5.10 has KVM's own number for what became of the fault. It differs between
 * kernels; "REC->ret == SPURIOUS, REC->ret == FIXED" tells. */
static void outcomes(const struct dat_format *t, struct kind *k)
{
	static const char what[] = "REC->ret == ";
	const char *p = t->print.at, *end = p ? p + t->print.len : NULL;
	int64_t *to[2] = {&k->spurious, &k->fixed};

	for (unsigned i = 0; i < 2 && p; i++) {
		p = memmem(p, end - p, what, sizeof(what) - 1);
		if (!p)
			break;
		p += sizeof(what) - 1;
		if (p < end && *p >= '0' && *p <= '9')
			*to[i] = *p - '0';
	}
}

static struct kind *describe(const struct host_text *text)
{
	struct dat_format t = dat_format(text->at, text->len);
	struct kind *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->name = t.name;
	k->id = host_event_find(k->name.at, k->name.len);
	k->pid = dat_field(&t, "common_pid");
	k->flags = dat_field(&t, "common_flags");
	k->spurious = k->fixed = -1;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		struct dat_place p;

		if (fields[i].event != k->id || k->n == MAX_FIELDS)
			continue;
		p = dat_field(&t, fields[i].name);
		if (p.bytes)
			k->get[k->n++] = (struct getter){p, fields[i].to};
	}
	if (k->id == HOST_KVM_REST || k->id == HOST_UNKNOWN_KVM) {
		/* the vCPU of a thread may be told by no other event */
		k->get[0] = (struct getter){dat_field(&t, "vcpu_id"), HOST_F_vcpu};
		k->n = k->get[0].from.bytes != 0;
	}
	switch (k->id) {
	case HOST_kvm_mmu_get_page:
	case HOST_kvm_mmu_sync_page:
	case HOST_kvm_mmu_unsync_page:
	case HOST_kvm_mmu_prepare_zap_page:
		k->role = dat_field(&t, "role");
		k->packed = role_of(&t);
		break;
	case HOST_fast_page_fault:
		k->ret = dat_field(&t, "ret");
		k->retry = dat_field(&t, "retry");
		outcomes(&t, k);
		break;
	default:
		break;
	}
	return k;
}

/* ---- a record ---- */

static bool get(const struct dat_events *d, struct dat_place p, const uint8_t *data, size_t len,
		uint64_t *out)
{
	if (!p.bytes || (size_t)p.offset + p.bytes > len)
		return false;
	*out = dat_number(d->f, data + p.offset, p.bytes);
	if (p.is_signed && p.bytes < 8 && *out >> (8 * p.bytes - 1) & 1)
		*out |= UINT64_MAX << 8 * p.bytes;
	return true;
}

/* As trace-cmd names those that it has no name of. */
static struct host_text task_name(struct dat_events *d, int32_t pid)
{
	static const char idle[] = "<idle>", unknown[] = "<...>";
	size_t low = 0, high = d->n_tasks;

	if (!pid)
		return (struct host_text){idle, sizeof(idle) - 1};
	if (d->last && d->last->pid == pid)
		return d->last->name;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (d->task[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == d->n_tasks || d->task[low].pid != pid)
		return (struct host_text){unknown, sizeof(unknown) - 1};
	d->last = &d->task[low];
	return d->last->name;
}

static void exit_reason(struct kind *k, struct host_event *e)
{
	uint32_t reason = e->v[HOST_F_reason];
	enum exit_isa isa = host_has(e, HOST_F_isa) ? e->v[HOST_F_isa] : EXIT_ISA_UNKNOWN;

	e->reason = exit_reason_name(isa, reason);
	if (e->reason.len)
		return;
	snprintf(k->number, sizeof(k->number), "0x%x", reason);
	e->reason = (struct host_text){k->number, strlen(k->number)};
}

/* An ioctl that ends with an error has no reason: the kernel prints the error in its place. */
static void userspace_exit(struct host_event *e)
{
	static const char restart[] = "restart", error[] = "error";
	int64_t ret = host_has(e, HOST_F_ret) ? (int64_t)e->v[HOST_F_ret] : 0;

	if (ret >= 0) {
		if (host_has(e, HOST_F_reason))
			e->reason = userspace_exit_name(e->v[HOST_F_reason]);
		return;
	}
	host_set(e, HOST_F_reason, -ret);
	e->reason = ret == -EINTR ? (struct host_text){restart, sizeof(restart) - 1}
				  : (struct host_text){error, sizeof(error) - 1};
}

static void shadow_page(const struct dat_events *d, const struct kind *k, const uint8_t *data,
			size_t len, struct host_event *e)
{
	uint64_t role;

	if (!get(d, k->role, data, len, &role))
		return;
	host_set(e, HOST_F_level, role & 15);
	if (k->packed == ROLE_UNSURE) {
		e->role_unreliable = true;
		return;
	}
	host_set(e, HOST_F_gpte_bytes, (k->packed == ROLE_4_BYTES) == (role >> 4 & 1) ? 4 : 8);
	host_set(e, HOST_F_quadrant, role >> 5 & 3);
	host_set(e, HOST_F_direct, role >> 7 & 1);
	host_set(e, HOST_F_access, role >> 8 & 7);
}

static void fast_fault(const struct dat_events *d, const struct kind *k, const uint8_t *data,
		       size_t len, struct host_event *e)
{
	uint64_t v;

	if (get(d, k->ret, data, len, &v)) {
		if (k->spurious >= 0)
			host_set(e, HOST_F_spurious, (int64_t)v == k->spurious);
		if (k->fixed >= 0)
			host_set(e, HOST_F_fixed, (int64_t)v == k->fixed);
	} else if (get(d, k->retry, data, len, &v) && host_has(e, HOST_F_old) &&
		   host_has(e, HOST_F_new)) {
		host_set(e, HOST_F_spurious, v && e->v[HOST_F_old] & PT_WRITABLE);
		host_set(e, HOST_F_fixed, v && e->v[HOST_F_new] & PT_WRITABLE);
	}
}

/* The letter that the kernel prints for a task's state: none of the bits means it was runnable. */
static uint64_t state_letter(uint64_t state)
{
	static const char letters[] = "SDTtXZPI";

	for (unsigned i = 0; i < sizeof(letters) - 1; i++)
		if (state >> i & 1)
			return letters[i];
	return 'R';
}

static void special(struct dat_events *d, struct kind *k, const uint8_t *data, size_t len,
		    struct host_event *e)
{
	switch (e->id) {
	case HOST_kvm_exit:
	case HOST_kvm_nested_vmexit:
	case HOST_kvm_nested_vmexit_inject:
		if (host_has(e, HOST_F_reason))
			exit_reason(k, e);
		break;
	case HOST_kvm_userspace_exit:
		userspace_exit(e);
		break;
	case HOST_kvm_mmu_get_page:
	case HOST_kvm_mmu_sync_page:
	case HOST_kvm_mmu_unsync_page:
	case HOST_kvm_mmu_prepare_zap_page:
		shadow_page(d, k, data, len, e);
		break;
	case HOST_fast_page_fault:
		fast_fault(d, k, data, len, e);
		break;
	case HOST_kvm_ple_window_update:
		if (host_has(e, HOST_F_new) && host_has(e, HOST_F_old))
			host_set(e, HOST_F_grow, e->v[HOST_F_new] > e->v[HOST_F_old]);
		break;
	case HOST_kvm_dirty_ring_push:
	case HOST_kvm_dirty_ring_reset:
		if (host_has(e, HOST_F_dirty) && host_has(e, HOST_F_reset))
			host_set(e, HOST_F_used,
				 (uint32_t)(e->v[HOST_F_dirty] - e->v[HOST_F_reset]));
		break;
	case HOST_kvm_mmu_walker_error:
		if (host_has(e, HOST_F_error_code))
			host_set(e, HOST_F_flags, e->v[HOST_F_error_code] & PFERR_NAMED);
		break;
	case HOST_sched_switch:
		if (host_has(e, HOST_F_prev_state))
			e->v[HOST_F_prev_state] = state_letter(e->v[HOST_F_prev_state]);
		break;
	default:
		break;
	}
}

/* common_flags: TRACE_FLAG_HARDIRQ, _SOFTIRQ and _NMI of the kernel. */
static enum host_context context_of(uint64_t flags)
{
	if (flags & 0x40)
		return HOST_CONTEXT_NMI;
	if (flags & 0x08)
		return HOST_CONTEXT_HARDIRQ;
	return flags & 0x10 ? HOST_CONTEXT_SOFTIRQ : HOST_CONTEXT_TASK;
}

bool dat_event(struct dat_events *d, const uint8_t *data, size_t len, struct host_event *e)
{
	uint64_t v;
	struct kind *k;

	if (!get(d, d->type, data, len, &v) || v >= N_IDS || !d->format[v].len)
		return false;
	if (!d->kind[v])
		d->kind[v] = describe(&d->format[v]);
	k = d->kind[v];
	if (!k || !get(d, k->pid, data, len, &v))
		return false;
	e->id = k->id;
	e->name = k->name;
	e->tid = (int32_t)v;
	e->tgid = -1;
	e->comm = task_name(d, e->tid);
	e->reason = (struct host_text){0};
	e->have = 0;
	e->damaged = e->role_unreliable = false;
	e->time_decimals = 9;
	e->flags_width = 0;
	e->context = get(d, k->flags, data, len, &v) ? context_of(v) : HOST_CONTEXT_UNKNOWN;
	e->line = 0;
	for (unsigned i = 0; i < k->n; i++)
		if (get(d, k->get[i].from, data, len, &v))
			host_set(e, k->get[i].to, v);
	special(d, k, data, len, e);
	return true;
}
