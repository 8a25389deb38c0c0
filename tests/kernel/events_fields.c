// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * How the fields of a tracepoint are written. Names of fields: arch/x86/kvm/trace.h and
 * arch/x86/kvm/mmu/mmutrace.h; exit codes: arch/x86/include/uapi/asm/svm.h; the spte's bits:
 * arch/x86/kvm/mmu/spte.h; the role's: union kvm_mmu_page_role.
 */
#include "tests/kernel/events.h"

#include <linux/kvm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROLE_LEVEL	 0xfu
#define ROLE_DIRECT	 0x80u
#define ROLE_MASK	 (ROLE_LEVEL | ROLE_DIRECT)
#define SPTE_WRITABLE	 0x2u
#define SPTE_MMU_PRESENT 0x800u /* clear in an MMIO spte and in an empty one */
#define SPTE_MASK	 (SPTE_WRITABLE | SPTE_MMU_PRESENT)
#define EC_LOW		 0xffffull
#define EC_GPA_FINAL	 (1ull << 32)
#define EC_GUEST_PT	 (1ull << 33)

#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

struct word {
	uint64_t value;
	const char *text;
};

/* The word of @value, or the value in @format. */
static void put_word(char *buf, size_t size, const struct word *words, size_t n, uint64_t value,
		     const char *prefix)
{
	for (size_t i = 0; i < n; i++)
		if (words[i].value == value) {
			snprintf(buf, size, "%s", words[i].text);
			return;
		}
	snprintf(buf, size, *prefix ? "%s%llx" : "%s%llu", prefix, (unsigned long long)value);
}

static void format_exit(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	static const struct word reasons[] = {
		{0x4e, "PF"},	     {0x60, "intr"},	  {0x7b, "ioio"},	   {0x78, "hlt"},
		{0x400, "npf"},	     {0x79, "invlpg"},	  {0x13, "write_cr3"},	   {0x72, "cpuid"},
		{0x10, "write_cr0"}, {0x14, "write_cr4"}, {0x65, "cr0_sel_write"}, {0x7c, "msr"},
	};
	put_word(buf, size, reasons, N_ELEMENTS(reasons), v[0], "0x");
}

static void format_page_fault(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	snprintf(buf, size, "ec=%s%s0x%llx", v[0] & EC_GPA_FINAL ? "GPA_FINAL|" : "",
		 v[0] & EC_GUEST_PT ? "GUEST_PT|" : "", (unsigned long long)(v[0] & EC_LOW));
}

static unsigned role_level(uint64_t role)
{
	return (unsigned)(role & ROLE_LEVEL);
}

static const char *role_kind(uint64_t role)
{
	return role & ROLE_DIRECT ? "direct" : "gpte";
}

static void format_get_page(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	snprintf(buf, size, "l%u,%s,%s%s", role_level(v[0]), role_kind(v[0]),
		 v[1] ? "new" : "existing", v[2] ? ",unsync" : "");
}

static void format_page(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	snprintf(buf, size, "l%u,%s%s", role_level(v[0]), role_kind(v[0]), v[1] ? ",unsync" : "");
}

static void format_set_spte(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	snprintf(buf, size, "l%u,%s", (unsigned)v[0], v[1] & SPTE_WRITABLE ? "w" : "ro");
}

static const char *spte_word(uint64_t spte)
{
	if (!(spte & SPTE_MMU_PRESENT))
		return "np";
	return spte & SPTE_WRITABLE ? "w" : "ro";
}

static void format_spte_changed(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	snprintf(buf, size, "l%u,%s>%s", (unsigned)v[0], spte_word(v[1]), spte_word(v[2]));
}

static void format_level(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	snprintf(buf, size, "l%u", (unsigned)v[0]);
}

static void format_split(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	snprintf(buf, size, "l%u%s", (unsigned)v[0], v[1] ? ",err" : "");
}

static void format_hex(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	snprintf(buf, size, "0x%llx", (unsigned long long)v[0]);
}

#define RET_PF_EMULATE	2u
#define RET_PF_INVALID	3u
#define RET_PF_SPURIOUS 5u
static unsigned ret_pf_more; /* numbers that came in between since 6.1 */

static void format_fast_fault(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	/* RET_PF_*, arch/x86/kvm/mmu/mmu_internal.h, as 6.1 numbers them */
	static const struct word results[] = {
		{0, "CONTINUE"}, {1, "RETRY"}, {2, "EMULATE"},
		{3, "INVALID"},	 {4, "FIXED"}, {5, "SPURIOUS"},
	};
	uint64_t ret = v[0];
	if (ret > RET_PF_EMULATE && ret < RET_PF_INVALID + ret_pf_more) {
		snprintf(buf, size, "WRITE_PROTECTED"); /* since 6.12 */
		return;
	}
	if (ret > RET_PF_EMULATE)
		ret -= ret_pf_more;
	put_word(buf, size, results, N_ELEMENTS(results), ret, "");
}

void event_detail_learn(const char *event, const char *format)
{
	static const char before[] = "REC->ret == ";
	const char *at = strstr(format, before);
	if (strcmp(event, "fast_page_fault") == 0 && at)
		ret_pf_more = (unsigned)strtoul(at + strlen(before), NULL, 10) - RET_PF_SPURIOUS;
}

static void format_check_mmio(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	snprintf(buf, size, "%s", v[0] == v[1] ? "valid" : "stale");
}

static void format_mmio(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	static const struct word types[] = {{0, "unsat_read"}, {1, "read"}, {2, "write"}};
	put_word(buf, size, types, N_ELEMENTS(types), v[0], "");
}

static void format_match_mmio(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	snprintf(buf, size, "%s,%s", v[0] ? "write" : "read", v[1] ? "gpa" : "gva");
}

static void format_userspace_exit(char *buf, size_t size, const uint64_t v[EVENT_FIELDS])
{
	static const struct word reasons[] = {
		{KVM_EXIT_IO, "IO"},
		{KVM_EXIT_HLT, "HLT"},
		{KVM_EXIT_MMIO, "MMIO"},
		{KVM_EXIT_SHUTDOWN, "SHUTDOWN"},
		{KVM_EXIT_INTERNAL_ERROR, "INTERNAL_ERROR"},
		{31, "DIRTY_RING_FULL"},
	};
	bool negative = (int32_t)v[1] < 0; /* the error, which replaces the reason */
	if (negative)
		snprintf(buf, size, "restart");
	else
		put_word(buf, size, reasons, N_ELEMENTS(reasons), v[0], "");
}

static const struct event_detail details[] = {
	{"kvm_exit", {{"exit_reason", UINT32_MAX}}, format_exit},
	{"kvm_page_fault",
	 {{"error_code", EC_LOW | EC_GPA_FINAL | EC_GUEST_PT}},
	 format_page_fault},
	{"kvm_mmu_get_page", {{"role", ROLE_MASK}, {"created", 1}, {"unsync", 1}}, format_get_page},
	{"kvm_mmu_prepare_zap_page", {{"role", ROLE_MASK}, {"unsync", 1}}, format_page},
	{"kvm_mmu_sync_page", {{"role", ROLE_MASK}, {"unsync", 1}}, format_page},
	{"kvm_mmu_unsync_page", {{"role", ROLE_MASK}, {"unsync", 1}}, format_page},
	{"kvm_mmu_set_spte", {{"level", 0xf}, {"spte", SPTE_WRITABLE}}, format_set_spte},
	{"kvm_tdp_mmu_spte_changed",
	 {{"level", 0xf}, {"old_spte", SPTE_MASK}, {"new_spte", SPTE_MASK}},
	 format_spte_changed},
	{"kvm_mmu_spte_requested", {{"level", 0xf}}, format_level},
	{"kvm_mmu_split_huge_page", {{"level", 0xf}, {"errno", UINT32_MAX}}, format_split},
	{"kvm_mmu_paging_element", {{"level", 0xf}}, format_level},
	{"kvm_mmu_pagetable_walk", {{"pferr", EC_LOW}}, format_hex},
	{"kvm_mmu_walker_error", {{"pferr", EC_LOW}}, format_hex},
	{"fast_page_fault", {{"ret", 0xff}}, format_fast_fault},
	{"check_mmio_spte", {{"kvm_gen", UINT64_MAX}, {"spte_gen", UINT64_MAX}}, format_check_mmio},
	{"kvm_mmio", {{"type", 0xff}}, format_mmio},
	{"vcpu_match_mmio", {{"write", 1}, {"gpa_match", 1}}, format_match_mmio},
	{"kvm_userspace_exit",
	 {{"reason", UINT32_MAX}, {"errno", UINT32_MAX}},
	 format_userspace_exit},
};

const struct event_detail *event_detail(const char *event)
{
	for (size_t i = 0; i < N_ELEMENTS(details); i++)
		if (strcmp(details[i].event, event) == 0)
			return &details[i];
	return NULL;
}
