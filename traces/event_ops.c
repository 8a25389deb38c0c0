// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/event_ops.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PAGE_SHIFT 12
#define PAGE_MASK  ((1ull << PAGE_SHIFT) - 1)
#define APIC_GFN   0xfee00
#define MAX_GFN	   (1ull << 40)

/* Bits of an error code (SDM volume 3, 4.7; APM volume 2, 15.25.6), and of the exit qualification
 * of an EPT violation (SDM volume 3, table 28-7), which kvm_page_fault prints under EPT. */
#define CODE_WRITE	  (1u << 1)
#define CODE_FETCH	  (1u << 4)
#define EPT_FETCH	  (1u << 2)
#define VMX_EXCEPTION_NMI 0
#define VMX_HLT		  12
#define VMX_EPT_VIOLATION 48
#define SVM_EXCP_PF	  0x4e
#define SVM_HLT		  0x78
#define SVM_NPF		  0x400

enum exit_kind { EXIT_OTHER, EXIT_SHADOW_PF, EXIT_EPT, EXIT_NPF, EXIT_HLT };

struct fault {
	uint64_t address, time;
	uint32_t vcpu;
	uint8_t kind; /* OP_READ, OP_WRITE, OP_FETCH */
	bool virtual;
};

#define NO_VCPU UINT32_MAX

struct thread {
	int64_t tid;
	bool used, pending, reading;
	uint32_t vcpu;	     /* that its records printed last; NO_VCPU */
	enum exit_kind exit; /* its last kvm_exit */
	uint64_t info1;	     /* of that */
	bool exit_is_last;   /* no other record of it since */
	struct fault fault;
	uint64_t read_gpa, read_len; /* of an unsatisfied read */
};

struct event_ops {
	struct trace_writer *w;
	const struct kvmsim_errsink *errors;
	const struct trace_slot *slots;
	uint32_t n_slots;
	struct event_ops_stats stats;
	uint64_t first_time, now[TRACE_MAX_VCPUS];
	bool started[TRACE_MAX_VCPUS];
	struct thread *thread; /* a power of two, open addressing */
	size_t n_threads, cap;
};

static int no_memory(const struct kvmsim_errsink *errors)
{
	return kvmsim_err(errors, KVMSIM_ENOMEM, "out of memory");
}

int event_ops_new(struct trace_writer *w, const struct trace_slot *slots, uint32_t n,
		  const struct kvmsim_errsink *errors, struct event_ops **out)
{
	struct event_ops *o = calloc(1, sizeof(*o));

	*out = o;
	if (!o)
		return no_memory(errors);
	o->errors = errors;
	o->cap = 256;
	o->thread = calloc(o->cap, sizeof(*o->thread));
	o->w = w;
	o->slots = slots;
	o->n_slots = n;
	o->first_time = HOST_NO_TIME;
	o->stats.low_gfn = UINT64_MAX;
	if (o->thread)
		return 0;
	event_ops_free(o);
	*out = NULL;
	return no_memory(errors);
}

void event_ops_free(struct event_ops *o)
{
	if (!o)
		return;
	free(o->thread);
	free(o);
}

/* ---- threads by tid ---- */

static struct thread *slot_of(struct thread *table, size_t cap, int64_t tid)
{
	size_t h = (uint64_t)tid * 0x9e3779b97f4a7c15u >> 32 & (cap - 1);

	while (table[h].used && table[h].tid != tid)
		h = (h + 1) & (cap - 1);
	return &table[h];
}

static int grow(struct event_ops *o)
{
	struct thread *bigger = calloc(o->cap * 2, sizeof(*bigger));

	if (!bigger)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < o->cap; i++)
		if (o->thread[i].used)
			*slot_of(bigger, o->cap * 2, o->thread[i].tid) = o->thread[i];
	free(o->thread);
	o->thread = bigger;
	o->cap *= 2;
	return 0;
}

/* NULL: no memory. */
static struct thread *thread_of(struct event_ops *o, int64_t tid)
{
	struct thread *t = slot_of(o->thread, o->cap, tid);

	if (t->used)
		return t;
	if (2 * ++o->n_threads > o->cap) {
		if (grow(o))
			return NULL;
		t = slot_of(o->thread, o->cap, tid);
	}
	*t = (struct thread){.tid = tid, .used = true, .vcpu = NO_VCPU};
	return t;
}

/* ---- ops ---- */

static int add(struct event_ops *o, uint32_t vcpu, uint64_t time, struct guest_op op)
{
	uint64_t gap = 0;
	int ret = 0;

	if (time == HOST_NO_TIME) {
		o->stats.no_time = true;
	} else {
		if (!o->started[vcpu])
			o->now[vcpu] = o->first_time;
		o->started[vcpu] = true;
		if (time > o->now[vcpu]) {
			gap = time - o->now[vcpu];
			o->now[vcpu] = time;
		}
	}
	for (; !ret && gap > UINT32_MAX; gap -= UINT32_MAX)
		ret = trace_write(o->w, vcpu,
				  &(struct guest_op){.kind = OP_NONE, .gap = UINT32_MAX}, 1);
	op.gap = gap;
	o->stats.ops++;
	return ret ? ret : trace_write(o->w, vcpu, &op, 1);
}

static bool in_slots(const struct event_ops *o, uint64_t gfn)
{
	for (uint32_t i = 0; i < o->n_slots; i++)
		if (gfn >= o->slots[i].base_gfn && gfn - o->slots[i].base_gfn < o->slots[i].npages)
			return true;
	return !o->n_slots && gfn < MAX_GFN;
}

/* The fault is a plain one: an op, if everything is known of it. */
static int settle(struct event_ops *o, struct thread *t)
{
	const struct fault *f = &t->fault;
	uint64_t gfn = f->address >> PAGE_SHIFT;

	if (!t->pending)
		return 0;
	t->pending = false;
	if (f->vcpu >= TRACE_MAX_VCPUS) {
		o->stats.no_vcpu++;
	} else if (f->virtual) {
		o->stats.virtual ++;
	} else if (gfn == APIC_GFN) {
		o->stats.device++;
	} else if (!in_slots(o, gfn)) {
		o->stats.outside++;
	} else {
		o->stats.reads += f->kind == OP_READ;
		o->stats.writes += f->kind == OP_WRITE;
		o->stats.fetches += f->kind == OP_FETCH;
		if (gfn < o->stats.low_gfn)
			o->stats.low_gfn = gfn;
		if (gfn > o->stats.high_gfn)
			o->stats.high_gfn = gfn;
		return add(o, f->vcpu, f->time,
			   (struct guest_op){.kind = f->kind, .arg = f->address});
	}
	return 0;
}

static int access(struct event_ops *o, const struct thread *t, const struct host_event *e,
		  struct guest_op op)
{
	if (t->vcpu < TRACE_MAX_VCPUS)
		return add(o, t->vcpu, e->time_ns, op);
	o->stats.others_no_vcpu++;
	return 0;
}

/* ---- events ---- */

/* Upper or lower case, with or without EXIT_. */
static bool reason_is(const struct host_event *e, const char *name)
{
	struct host_text t = e->reason;

	if (t.len > 5 && !strncasecmp(t.at, "EXIT_", 5))
		t = (struct host_text){t.at + 5, t.len - 5};
	return t.len == strlen(name) && !strncasecmp(t.at, name, t.len);
}

static bool number_is(const struct host_event *e, uint64_t isa, uint64_t reason)
{
	return host_has(e, HOST_F_reason) && e->v[HOST_F_reason] == reason &&
	       (!host_has(e, HOST_F_isa) || !e->v[HOST_F_isa] || e->v[HOST_F_isa] == isa);
}

/* Vector 14 in the second information field: of the interrupted event (VMX). */
static bool vector_is_pf(const struct host_event *e)
{
	return host_has(e, HOST_F_info2) && (e->v[HOST_F_info2] & 0xff) == 14;
}

static enum exit_kind exit_kind(const struct host_event *e)
{
	if (reason_is(e, "EPT_VIOLATION") || (!e->reason.len && number_is(e, 1, VMX_EPT_VIOLATION)))
		return EXIT_EPT;
	if (reason_is(e, "NPF") || reason_is(e, "0x400") || number_is(e, 2, SVM_NPF))
		return EXIT_NPF;
	if (reason_is(e, "HLT") ||
	    (!e->reason.len && (number_is(e, 1, VMX_HLT) || number_is(e, 2, SVM_HLT))))
		return EXIT_HLT;
	if (reason_is(e, "PF excp") || (!e->reason.len && number_is(e, 2, SVM_EXCP_PF)))
		return EXIT_SHADOW_PF;
	if (reason_is(e, "EXCEPTION_NMI") && vector_is_pf(e))
		return EXIT_SHADOW_PF;
	return EXIT_OTHER;
}

static int take_exit(struct event_ops *o, struct thread *t, const struct host_event *e)
{
	t->exit = exit_kind(e);
	t->info1 = host_has(e, HOST_F_info1) ? e->v[HOST_F_info1] : 0;
	t->reading = false;
	return t->exit == EXIT_HLT ? access(o, t, e, (struct guest_op){.kind = OP_HLT}) : 0;
}

static void take_fault(struct thread *t, const struct host_event *e)
{
	uint64_t code = host_has(e, HOST_F_error_code) ? e->v[HOST_F_error_code] : 0;

	/* kernels before 6.1 print the low 32 bits of what the exit had */
	if (t->exit == EXIT_NPF && t->exit_is_last && code == (t->info1 & UINT32_MAX))
		code = t->info1;
	t->pending = true;
	t->fault = (struct fault){.address = e->v[HOST_F_address],
				  .time = e->time_ns,
				  .vcpu = t->vcpu,
				  .virtual = t->exit == EXIT_SHADOW_PF,
				  .kind = OP_READ};
	if (code & CODE_WRITE)
		t->fault.kind = OP_WRITE;
	else if (code & (t->exit == EXIT_EPT ? EPT_FETCH : CODE_FETCH))
		t->fault.kind = OP_FETCH;
}

/* The page of the spte that a fault at a guest-virtual address installs: the first one of its
 * thread. A large spte's gfn is that of its first page. */
static void take_spte(struct thread *t, const struct host_event *e)
{
	unsigned level = host_has(e, HOST_F_level) ? e->v[HOST_F_level] : 1;
	uint64_t below;

	if (!t->pending || !t->fault.virtual || !host_has(e, HOST_F_gfn) || level < 1 || level > 3)
		return;
	below = (1ull << (PAGE_SHIFT + 9 * (level - 1))) - 1;
	t->fault.address = (e->v[HOST_F_gfn] << PAGE_SHIFT & ~below) | (t->fault.address & below);
	t->fault.virtual = false;
}

static bool same_page(uint64_t a, uint64_t b)
{
	return a >> PAGE_SHIFT == b >> PAGE_SHIFT;
}

/* An access of a device at @gpa: the fault before it was for that. */
static void drop_fault(struct event_ops *o, struct thread *t, uint64_t gpa)
{
	if (!t->pending)
		return;
	/* a guest-virtual address of the same page has the same offset */
	if (t->fault.virtual ? (t->fault.address & PAGE_MASK) == (gpa & PAGE_MASK)
			     : same_page(t->fault.address, gpa)) {
		t->pending = false;
		o->stats.device++;
	}
}

static int take_mmio(struct event_ops *o, struct thread *t, const struct host_event *e)
{
	uint64_t gpa = e->v[HOST_F_gpa], len = host_has(e, HOST_F_len) ? e->v[HOST_F_len] : 0;
	/* kvm_fast_mmio is always a write */
	uint64_t type = host_has(e, HOST_F_type) ? e->v[HOST_F_type] : 2;
	struct guest_op op = {.arg = gpa, .len = len > UINT16_MAX ? 0 : len};
	bool answered = t->reading && type == 1 && t->read_gpa == gpa && t->read_len == len;
	int ret;

	drop_fault(o, t, gpa);
	ret = settle(o, t);
	t->reading = type == 0;
	t->read_gpa = gpa;
	t->read_len = len;
	if (ret || answered)
		return ret;
	op.kind = type == 2 ? OP_MMIO_WRITE : OP_MMIO_READ;
	return access(o, t, e, op);
}

static int take_pio(struct event_ops *o, struct thread *t, const struct host_event *e)
{
	uint64_t len = host_has(e, HOST_F_len) ? e->v[HOST_F_len] : 0;
	int ret = settle(o, t);

	return ret ? ret
		   : access(o, t, e,
			    (struct guest_op){.kind = OP_PIO,
					      .arg = e->v[HOST_F_port],
					      .len = len > UINT16_MAX ? 0 : len});
}

/* What happens between a fault and the next entry without being an access of its own. */
static bool within_fault(enum host_event_id id)
{
	switch (id) {
	case HOST_kvm_entry:
	case HOST_kvm_exit:
	case HOST_kvm_page_fault:
	case HOST_kvm_userspace_exit:
		return false;
	default:
		return true;
	}
}

int event_ops_add(struct event_ops *o, const struct host_event *e)
{
	struct thread *t;
	int ret = 0;

	if (o->first_time == HOST_NO_TIME)
		o->first_time = e->time_ns;
	if (e->id < HOST_kvm_entry)
		return 0;
	t = thread_of(o, e->tid);
	if (!t)
		return no_memory(o->errors);
	if (!within_fault(e->id) || e->tid < 0)
		ret = settle(o, t);
	if (e->tid < 0) /* whose it is only the record itself can tell */
		*t = (struct thread){.tid = e->tid, .used = true, .vcpu = NO_VCPU};
	if (host_has(e, HOST_F_vcpu) && e->v[HOST_F_vcpu] < NO_VCPU)
		t->vcpu = e->v[HOST_F_vcpu];
	if (ret)
		return ret;
	switch (e->id) {
	case HOST_kvm_exit:
		ret = take_exit(o, t, e);
		break;
	case HOST_kvm_page_fault:
		if (host_has(e, HOST_F_address))
			take_fault(t, e);
		break;
	case HOST_kvm_mmu_set_spte:
		take_spte(t, e);
		break;
	case HOST_kvm_mmio:
	case HOST_kvm_fast_mmio:
		if (host_has(e, HOST_F_gpa))
			ret = take_mmio(o, t, e);
		break;
	case HOST_vcpu_match_mmio:
		if (host_has(e, HOST_F_gpa))
			drop_fault(o, t, e->v[HOST_F_gpa]);
		break;
	case HOST_kvm_pio:
		if (host_has(e, HOST_F_port))
			ret = take_pio(o, t, e);
		break;
	default:
		break;
	}
	t->exit_is_last = e->id == HOST_kvm_exit;
	return ret;
}

int event_ops_end(struct event_ops *o, struct event_ops_stats *stats)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < o->cap; i++)
		if (o->thread[i].used)
			ret = settle(o, &o->thread[i]);
	*stats = o->stats;
	return ret;
}
