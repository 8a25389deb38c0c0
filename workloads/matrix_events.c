// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <string.h>

#include "workloads/matrix_scene.h"

/*
 * The reference names an event "kvm_exit" in total and "kvm_exit[PF]" by kind. This file is that
 * naming: for each event that has kinds, which of its fields tell them apart, and their words.
 */

struct word {
	uint64_t code;
	const char *text;
};

static const char *find_word(const struct word *w, uint64_t code)
{
	for (; w->text; w++) {
		if (w->code == code)
			return w->text;
	}
	return NULL;
}

static uint64_t sub_code(const struct kvm_trace_event *e)
{
	return e->code;
}

static uint64_t sub_level(const struct kvm_trace_event *e)
{
	return e->level;
}

/* level, and what the event says of the page or the spte */
#define SUB_DIRECT   0x10u
#define SUB_CREATED  0x20u
#define SUB_UNSYNC   0x40u
#define SUB_WRITABLE 0x80u

static uint64_t sub_page(const struct kvm_trace_event *e)
{
	return e->level | (e->direct ? SUB_DIRECT : 0) | (e->created ? SUB_CREATED : 0) |
	       (e->unsync ? SUB_UNSYNC : 0);
}

static uint64_t sub_spte(const struct kvm_trace_event *e)
{
	return e->level | (e->writable ? SUB_WRITABLE : 0);
}

/* level, and what the entry grants: before, after */
static uint64_t sub_change(const struct kvm_trace_event *e)
{
	return e->level | (uint64_t)e->was << 4 | (uint64_t)e->now << 6;
}

static uint64_t sub_valid(const struct kvm_trace_event *e)
{
	return e->valid;
}

#define ROOM 40 /* for a kind's words */

static void say_exit(char *out, uint64_t s)
{
	static const struct word words[] = {{EXIT_PF, "PF"},
					    {EXIT_INTR, "intr"},
					    {EXIT_IOIO, "ioio"},
					    {EXIT_HLT, "hlt"},
					    {EXIT_NPF, "npf"},
					    {EXIT_INVLPG, "invlpg"},
					    {EXIT_CR3_WRITE, "write_cr3"},
					    {EXIT_CR0_WRITE, "write_cr0"},
					    {EXIT_CR4_WRITE, "write_cr4"},
					    {EXIT_CR0_SEL_WRITE, "cr0_sel_write"},
					    {EXIT_MSR, "msr"},
					    {0, NULL}};
	const char *w = find_word(words, s);

	if (w)
		snprintf(out, ROOM, "%s", w);
	else
		snprintf(out, ROOM, "0x%x", (unsigned)s);
}

static void say_error_code(char *out, uint64_t s)
{
	snprintf(out, ROOM, "ec=%s%s0x%x", s & PFERR_GUEST_FINAL ? "GPA_FINAL|" : "",
		 s & PFERR_GUEST_PAGE ? "GUEST_PT|" : "", (unsigned)(s & 0xffff));
}

static void say_hex(char *out, uint64_t s)
{
	snprintf(out, ROOM, "0x%x", (unsigned)(s & 0xffff));
}

static void say_get_page(char *out, uint64_t s)
{
	snprintf(out, ROOM, "l%u,%s,%s%s", (unsigned)s & 0xf, s & SUB_DIRECT ? "direct" : "gpte",
		 s & SUB_CREATED ? "new" : "existing", s & SUB_UNSYNC ? ",unsync" : "");
}

static void say_page(char *out, uint64_t s)
{
	snprintf(out, ROOM, "l%u,%s%s", (unsigned)s & 0xf, s & SUB_DIRECT ? "direct" : "gpte",
		 s & SUB_UNSYNC ? ",unsync" : "");
}

static void say_spte(char *out, uint64_t s)
{
	snprintf(out, ROOM, "l%u,%s", (unsigned)s & 0xf, s & SUB_WRITABLE ? "w" : "ro");
}

static void say_change(char *out, uint64_t s)
{
	static const char *const words[] = {
		[SPTE_NOT_PRESENT] = "np", [SPTE_READ_ONLY] = "ro", [SPTE_WRITABLE] = "w"};

	snprintf(out, ROOM, "l%u,%s>%s", (unsigned)s & 0xf, words[s >> 4 & 3], words[s >> 6 & 3]);
}

static void say_level(char *out, uint64_t s)
{
	snprintf(out, ROOM, "l%u", (unsigned)s);
}

static void say_ret_pf(char *out, uint64_t s)
{
	static const struct word words[] = {{RET_PF_CONTINUE, "CONTINUE"},
					    {RET_PF_RETRY, "RETRY"},
					    {RET_PF_EMULATE, "EMULATE"},
					    {RET_PF_INVALID, "INVALID"},
					    {RET_PF_FIXED, "FIXED"},
					    {RET_PF_SPURIOUS, "SPURIOUS"},
					    {0, NULL}};
	const char *w = find_word(words, s);

	snprintf(out, ROOM, "%s", w ? w : "?");
}

static void say_user_exit(char *out, uint64_t s)
{
	static const struct word words[] = {{KVM_EXIT_IO, "IO"},
					    {KVM_EXIT_HLT, "HLT"},
					    {KVM_EXIT_MMIO, "MMIO"},
					    {KVM_EXIT_DIRTY_RING_FULL, "DIRTY_RING_FULL"},
					    {0, NULL}};
	const char *w = find_word(words, s);

	if (w)
		snprintf(out, ROOM, "%s", w);
	else
		snprintf(out, ROOM, "%u", (unsigned)s);
}

static void say_mmio(char *out, uint64_t s)
{
	static const struct word words[] = {
		{0, "unsat_read"}, {1, "read"}, {2, "write"}, {0, NULL}};
	const char *w = find_word(words, s);

	snprintf(out, ROOM, "%s", w ? w : "?");
}

static void say_cr(char *out, uint64_t s)
{
	snprintf(out, ROOM, "cr%u", (unsigned)s);
}

static uint64_t sub_split(const struct kvm_trace_event *e)
{
	return e->level | (e->code ? 0x10 : 0);
}

static void say_split(char *out, uint64_t s)
{
	snprintf(out, ROOM, "l%u%s", (unsigned)(s & 0xf), s & 0x10 ? ",err" : "");
}

static void say_valid(char *out, uint64_t s)
{
	snprintf(out, ROOM, "%s", s ? "valid" : "stale");
}

static uint64_t sub_match(const struct kvm_trace_event *e)
{
	return (e->writable ? 1 : 0) | (e->direct ? 2 : 0);
}

static void say_match(char *out, uint64_t s)
{
	snprintf(out, ROOM, "%s,%s", s & 1 ? "write" : "read", s & 2 ? "gpa" : "gva");
}

static const struct {
	uint64_t (*sub)(const struct kvm_trace_event *e);
	void (*say)(char *out, uint64_t sub);
} kinds[N_KVM_TRACE] = {
	[TRACE_kvm_exit] = {sub_code, say_exit},
	[TRACE_kvm_page_fault] = {sub_code, say_error_code},
	[TRACE_kvm_userspace_exit] = {sub_code, say_user_exit},
	[TRACE_kvm_mmio] = {sub_code, say_mmio},
	[TRACE_vcpu_match_mmio] = {sub_match, say_match},
	[TRACE_kvm_cr] = {sub_code, say_cr},
	[TRACE_kvm_mmu_pagetable_walk] = {sub_code, say_hex},
	[TRACE_kvm_mmu_walker_error] = {sub_code, say_hex},
	[TRACE_kvm_mmu_paging_element] = {sub_level, say_level},
	[TRACE_kvm_mmu_get_page] = {sub_page, say_get_page},
	[TRACE_kvm_mmu_sync_page] = {sub_page, say_page},
	[TRACE_kvm_mmu_unsync_page] = {sub_page, say_page},
	[TRACE_kvm_mmu_prepare_zap_page] = {sub_page, say_page},
	[TRACE_kvm_mmu_spte_requested] = {sub_level, say_level},
	[TRACE_kvm_mmu_set_spte] = {sub_spte, say_spte},
	[TRACE_fast_page_fault] = {sub_code, say_ret_pf},
	[TRACE_check_mmio_spte] = {sub_valid, say_valid},
	[TRACE_kvm_mmu_split_huge_page] = {sub_split, say_split},
	[TRACE_kvm_tdp_mmu_spte_changed] = {sub_change, say_change},
};

void mx_count_event(void *counters, const struct kvm_trace_event *e)
{
	struct mx_counters *c = counters;
	uint64_t sub;

	if (!c->on)
		return;
	if (c->trace)
		c->trace->event(c->trace->ctx, e);
	sub = kinds[e->id].sub ? kinds[e->id].sub(e) : 0;
	for (size_t i = 0; i < c->n; i++) {
		if (c->c[i].id == e->id && c->c[i].sub == sub) {
			c->c[i].n++;
			return;
		}
	}
	if (c->n == MX_MAX_COUNTERS) {
		c->overflow = true;
		return;
	}
	c->c[c->n++] = (struct mx_counter){.id = e->id, .sub = sub, .n = 1};
}

long mx_event_quantities(const struct mx_counters *c, struct matrix_quantity *out, size_t room)
{
	size_t n = 0;

	if (c->overflow)
		return KVMSIM_ENOMEM;
	for (int id = 0; id < N_KVM_TRACE; id++) {
		uint64_t total = 0;

		for (size_t i = 0; i < c->n; i++) {
			char kind[ROOM];

			if (c->c[i].id != (enum kvm_trace_id)id)
				continue;
			total += c->c[i].n;
			if (!kinds[id].say)
				continue;
			if (n == room)
				return KVMSIM_ENOMEM;
			kinds[id].say(kind, c->c[i].sub);
			out[n] = (struct matrix_quantity){.value = (int64_t)c->c[i].n};
			snprintf(out[n++].name, sizeof(out->name), "ev:%s[%s]",
				 kvm_trace_name((enum kvm_trace_id)id), kind);
		}
		if (!total)
			continue;
		if (n == room)
			return KVMSIM_ENOMEM;
		out[n] = (struct matrix_quantity){.value = (int64_t)total};
		snprintf(out[n++].name, sizeof(out->name), "ev:%s",
			 kvm_trace_name((enum kvm_trace_id)id));
	}
	return (long)n;
}
