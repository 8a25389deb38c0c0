/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_EVENT_H
#define KVMSIM_TRACES_HOST_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One record of a host's event tracing, whatever tool wrote it down: ftrace's text, perf script's,
 * a trace.dat, our own native format. Readers fill it, everything else reads it.
 *
 * An event has the head that all records have, and fields. All events share one set of fields, by
 * the kernel's names where it has one; `have` tells which of them this record has. A field that is
 * not there must not be read.
 */

/* The events of mainline kernels that something is made of; the rest of the kvm and kvmmmu systems
 * is HOST_KVM_REST, with its name (events.def lists both). */
enum host_event_id {
	HOST_OTHER,	  /* of another subsystem */
	HOST_UNKNOWN_KVM, /* kvm_..., of no mainline kernel */
	HOST_KVM_REST,	  /* of the kvm or kvmmmu system, without fields here */
#define HOST_EVENT(name) HOST_##name,
#define HOST_REST(name)
#include "traces/host/events.def"
	HOST_N_EVENTS
};

#define HOST_FIELDS(F)                                                                             \
	F(vcpu) /* as printed in this very record, by vcpu or vcpu_id */                           \
	F(rip)                                                                                     \
	F(reason) /* number of the exit's reason; in text only where it is printed as one */       \
	F(isa)	  /* of the reason: 1 VMX, 2 SVM, 0 unknown */                                     \
	F(info1)                                                                                   \
	F(info2)                                                                                   \
	F(intr_info)                                                                               \
	F(error_code) /* of kvm_exit and kvm_nested_vmexit that of the interrupt */                \
	F(requests)                                                                                \
	F(address) /* of kvm_page_fault, and of walks: GPA or GVA, see host.h */                   \
	F(gpa)                                                                                     \
	F(gva)                                                                                     \
	F(gfn)                                                                                     \
	F(pfn)                                                                                     \
	F(level)                                                                                   \
	F(spte)                                                                                    \
	F(sptep)                                                                                   \
	F(old) /* spte, ple_window */                                                              \
	F(new)                                                                                     \
	F(gen)                                                                                     \
	F(as_id)                                                                                   \
	F(access) /* bits of a role or an MMIO spte: 1 x, 2 w, 4 u (ACC_EXEC_MASK ...) */          \
	F(direct)                                                                                  \
	F(quadrant)                                                                                \
	F(gpte_bytes)                                                                              \
	F(root_count)                                                                              \
	F(unsync)                                                                                  \
	F(created) /* the shadow page is new */                                                    \
	F(flags)   /* of walker errors and lock contention, as printed */                          \
	F(type)	   /* kvm_mmio: 0 unsatisfied read, 1 read, 2 write; kvm_pio: 1 write */           \
	F(len)                                                                                     \
	F(val)                                                                                     \
	F(port)                                                                                    \
	F(count)                                                                                   \
	F(write)                                                                                   \
	F(fixed)    /* fast_page_fault: kernels to 5.9 */                                          \
	F(spurious) /* fast_page_fault */                                                          \
	F(ring)	    /* index of a dirty ring: its vCPU */                                          \
	F(dirty)                                                                                   \
	F(reset)                                                                                   \
	F(slot)                                                                                    \
	F(offset)                                                                                  \
	F(ret) /* a signed number as 64 bits */                                                    \
	F(used)                                                                                    \
	F(grow) /* ple_window: 1 grown, 0 shrunk */                                                \
	F(lock_addr)                                                                               \
	F(prev_pid)                                                                                \
	F(prev_state) /* the kernel's letter as its character */                                   \
	F(next_pid)                                                                                \
	F(pid) /* of wake-ups */                                                                   \
	F(target_cpu)                                                                              \
	F(ns) /* kvm_vcpu_wakeup, kvm_halt_poll_ns */                                              \
	F(waited)                                                                                  \
	F(nr) /* kvm_hypercall; ecx of kvm_msr; vector of interrupts */

enum host_field {
#define F(name) HOST_F_##name,
	HOST_FIELDS(F)
#undef F
		HOST_N_FIELDS
};

/* Bytes of somebody else's, without a NUL at the end. */
struct host_text {
	const char *at;
	size_t len;
};

#define HOST_NO_TIME UINT64_MAX

/* In what the record was written: the task's own code, or an interrupt that came to the task and
 * has nothing to do with it. From the latency flags' third letter or a trace.dat's common_flags;
 * perf's text has neither. Before 4.10 a task that had softirqs disabled counts as one, too. */
enum host_context {
	HOST_CONTEXT_UNKNOWN,
	HOST_CONTEXT_TASK,
	HOST_CONTEXT_SOFTIRQ,
	HOST_CONTEXT_HARDIRQ,
	HOST_CONTEXT_NMI,
	HOST_N_CONTEXTS
};

struct host_event {
	enum host_event_id id;
	uint64_t time_ns;	/* HOST_NO_TIME: there is no time column */
	int64_t tid, tgid, cpu; /* -1: there is no such column, or it says unknown */
	struct host_text comm;	/* len 0: none; "<...>" as printed */
	struct host_text name;	/* of the event, without its system */
	struct host_text
		reason; /* of an exit by name, as printed or as the kernel would; len 0: none */
	uint64_t have;	/* bit per enum host_field */
	uint64_t v[HOST_N_FIELDS];
	bool damaged;	      /* something foreign in it, or [FAILED TO PARSE] */
	bool role_unreliable; /* role and root count by a plugin's stale layout: created, level, gfn
				 hold */
	uint8_t time_decimals; /* 0: unknown */
	uint8_t flags_width;   /* latency flags: 0, 4 or 5 */
	uint8_t context;       /* enum host_context */
	uint64_t line;	       /* of the file, from 1; 0 in binary traces */
};

_Static_assert(HOST_N_FIELDS <= 64, "have has a bit for each field");

static inline bool host_has(const struct host_event *e, enum host_field f)
{
	return e->have >> f & 1;
}
static inline void host_set(struct host_event *e, enum host_field f, uint64_t value)
{
	e->v[f] = value;
	e->have |= 1ull << f;
}

/* The event of that name, or HOST_KVM_REST, HOST_UNKNOWN_KVM (kvm_...), HOST_OTHER. */
enum host_event_id host_event_find(const char *name, size_t len);
/* NULL for the three that are no event of their own. */
const char *host_event_name(enum host_event_id id);
/* "gfn" */
const char *host_field_name(enum host_field f);

#endif
