// SPDX-License-Identifier: GPL-3.0-or-later
/* What the exits of a host's trace were for. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "analysis/host_threads_priv.h"
#include "model/mmu/trace.h"

static size_t reason_skip(const struct host_text *r)
{
	return r->len > 5 && !strncasecmp(r->at, "EXIT_", 5) ? 5 : 0;
}

static bool reason_is(const struct host_event *e, const char *word)
{
	size_t skip = reason_skip(&e->reason), n = strlen(word);

	return e->reason.len - skip == n && !strncasecmp(e->reason.at + skip, word, n);
}

/* By name, or by number in either of the two architectures. */
static bool exit_is(const struct host_event *e, const char *word, uint64_t vmx, uint64_t svm)
{
	uint64_t isa = host_has(e, HOST_F_isa) ? e->v[HOST_F_isa] : 0;

	if (e->reason.len)
		return reason_is(e, word);
	if (!host_has(e, HOST_F_reason))
		return false;
	return (isa == 1 && e->v[HOST_F_reason] == vmx) || (isa == 2 && e->v[HOST_F_reason] == svm);
}

static bool exit_is_npf(const struct host_event *e)
{
	return reason_is(e, "NPF") || reason_is(e, "0x400") ||
	       (!e->reason.len && host_has(e, HOST_F_reason) && e->v[HOST_F_reason] == EXIT_NPF);
}

const char *host_reason(const struct host_event *e, char buf[HOST_REASON])
{
	size_t skip = reason_skip(&e->reason), n = 0;

	if (exit_is_npf(e))
		return strcpy(buf, "NPF");
	if (!e->reason.len) {
		snprintf(buf, HOST_REASON, "REASON_0x%" PRIx64,
			 host_has(e, HOST_F_reason) ? e->v[HOST_F_reason] : 0);
		return buf;
	}
	for (size_t i = skip; i < e->reason.len && n + 1 < HOST_REASON; i++)
		buf[n++] = (char)toupper((unsigned char)e->reason.at[i]);
	buf[n] = '\0';
	return buf;
}

const char *host_userspace_reason(int64_t n, char buf[HOST_REASON])
{
	/* KVM_EXIT_... of include/uapi/linux/kvm.h */
	static const char *const names[] = {
		"UNKNOWN",
		"EXCEPTION",
		"IO",
		"HYPERCALL",
		"DEBUG",
		"HLT",
		"MMIO",
		"IRQ_WINDOW_OPEN",
		"SHUTDOWN",
		"FAIL_ENTRY",
		"INTR",
		"SET_TPR",
		"TPR_ACCESS",
		"S390_SIEIC",
		"S390_RESET",
		"DCR",
		"NMI",
		"INTERNAL_ERROR",
		"OSI",
		"PAPR_HCALL",
		"S390_UCONTROL",
		"WATCHDOG",
		"S390_TSCH",
		"EPR",
		"SYSTEM_EVENT",
		"S390_STSI",
		"IOAPIC_EOI",
		"HYPERV",
		"ARM_NISV",
		"X86_RDMSR",
		"X86_WRMSR",
		"DIRTY_RING_FULL",
		"AP_RESET_HOLD",
		"X86_BUS_LOCK",
		"XEN",
		"RISCV_SBI",
		"RISCV_CSR",
		"NOTIFY",
		"LOONGARCH_IOCSR",
		"MEMORY_FAULT",
	};

	if (n >= 0 && n < (int64_t)(sizeof(names) / sizeof(names[0])))
		snprintf(buf, HOST_REASON, "%s", names[n]);
	else if (n == -EINTR)
		snprintf(buf, HOST_REASON, "signal");
	else
		snprintf(buf, HOST_REASON, n < 0 ? "error %" PRId64 : "exit %" PRId64,
			 n < 0 ? -n : n);
	return buf;
}

#define PF_VECTOR 0x0e

static bool interrupt_is_pf(const struct host_event *e, enum host_field f)
{
	return host_has(e, f) && (e->v[f] & 0xff) == PF_VECTOR && e->v[f] >> 31 & 1;
}

/* The guest's #PF, which under shadow paging is the MMU's. */
static bool exit_is_pf(const struct host_event *e)
{
	if (exit_is(e, "EXCEPTION_NMI", VMX_EXIT_EXCEPTION_NMI, UINT64_MAX))
		return interrupt_is_pf(e, HOST_F_info2) || interrupt_is_pf(e, HOST_F_intr_info);
	return exit_is(e, "PF excp", UINT64_MAX, EXIT_PF);
}

void host_note_exit(struct host_thread *th, const struct host_event *e)
{
	th->exited = true;
	th->page_fault = exit_is_pf(e);
	th->npf = exit_is_npf(e);
	th->ept = exit_is(e, "EPT_VIOLATION", VMX_EXIT_EPT_VIOLATION, UINT64_MAX);
	th->exit_rip = host_has(e, HOST_F_rip) ? e->v[HOST_F_rip] : 0;
	th->exit_info1 = host_has(e, HOST_F_info1) ? e->v[HOST_F_info1] : 0;
}

bool host_exit_halts(const struct host_event *e)
{
	return exit_is(e, "HLT", VMX_EXIT_HLT, EXIT_HLT);
}
