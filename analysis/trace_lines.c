// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/trace_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/mmu/trace.h"

/* ---- where fields stand ---- */

/* A shadow page, as every event about one prints it. */
#define PAGE_LINE(more)                                                                            \
	("sp gen {gen} gfn {gfn} l{level} {gpte_bytes}-byte q{quadrant}{direct} "                  \
	 "{access}{invalid} "                                                                      \
	 "{nx}nxe {ad}ad root {roots} {unsync}" more)

/* {field}: read by that field's rule; {}: whatever stands there; all else as it is. */
static const char *const formats[N_KVM_TRACE] = {
	[TRACE_kvm_entry] = "vcpu {vcpu}, rip {rip}{}",
	[TRACE_kvm_exit] = "vcpu {vcpu} reason {reason} rip {rip} info1 {}",
	[TRACE_kvm_page_fault] = "vcpu {vcpu} rip {rip} address {addr} error_code {error}",
	[TRACE_kvm_pml_full] = "vcpu {vcpu}{}",
	[TRACE_kvm_pio] = "pio_write at {code} {}",
	[TRACE_kvm_userspace_exit] = "reason {} ({code})",
	[TRACE_kvm_fpu] = "{loaded}",
	[TRACE_kvm_emulate_insn] = "{}:{rip}:{}",
	[TRACE_kvm_mmio] = "mmio {kind} len {len} gpa {addr} val {}",
	[TRACE_vcpu_match_mmio] = "gva {addr} gpa {} {write} {by_gpa}",
	[TRACE_kvm_cr] = "cr_write {code} = {}",
	[TRACE_kvm_msr] = "msr_write {} = {code}",
	[TRACE_kvm_mmu_pagetable_walk] = "addr {addr} pferr {error} {}",
	[TRACE_kvm_mmu_paging_element] = "pte {gpte} level {level}",
	[TRACE_kvm_mmu_set_accessed_bit] = "gpa {addr}",
	[TRACE_kvm_mmu_set_dirty_bit] = "gpa {addr}",
	[TRACE_kvm_mmu_walker_error] = "pferr {error} {}",
	[TRACE_kvm_mmu_get_page] = PAGE_LINE(" {created}"),
	[TRACE_kvm_mmu_sync_page] = PAGE_LINE(""),
	[TRACE_kvm_mmu_unsync_page] = PAGE_LINE(""),
	[TRACE_kvm_mmu_prepare_zap_page] = PAGE_LINE(""),
	[TRACE_kvm_mmu_spte_requested] = "gfn {gfn} pfn {} level {level}",
	[TRACE_kvm_mmu_set_spte] = "gfn {gfn} spte {spte} ({}) level {level} at {index}",
	[TRACE_fast_page_fault] =
		("vcpu {vcpu} gva {addr} error_code {error} sptep {} old {old_spte} "
		 "new {spte} spurious {spurious} fixed {fixed}"),
	[TRACE_kvm_mmu_zap_all_fast] = "kvm-mmu-valid-gen {gen} used_pages {used_pages}",
	[TRACE_mark_mmio_spte] = "sptep:{} gfn {gfn} access {access} gen {mmio_gen}",
	[TRACE_handle_mmio_page_fault] = "addr:{addr} gfn {gfn} access {access}",
	[TRACE_check_mmio_spte] = "spte {mmio_spte} kvm_gen {} valid {valid}",
	[TRACE_kvm_mmu_split_huge_page] = "gfn {gfn} spte {spte} level {level} errno {code}",
	[TRACE_kvm_tdp_mmu_spte_changed] = ("as id {} gfn {gfn} level {level} old_spte {old_spte} "
					    "new_spte {spte}"),
	[TRACE_kvm_dirty_ring_push] =
		"ring {vcpu}: dirty {dirty} reset {reset} slot {slot} offset {offset} (used {})",
	[TRACE_kvm_dirty_ring_exit] = "vcpu {vcpu}",
	[TRACE_kvm_dirty_ring_reset] = "ring {vcpu}: dirty {dirty} reset {reset} (used {})",
};

/* An event that is not above is told by its name only. */
static const char *format_of(enum kvm_trace_id id)
{
	if (id == N_KVM_TRACE)
		return "";
	return formats[id] ? formats[id] : "{}";
}

/* ---- how fields read ---- */

struct word {
	const char *text;
	uint64_t value;
};

static const struct word exit_words[] = {{"PF excp", EXIT_PF},
					 {"interrupt", EXIT_INTR},
					 {"io", EXIT_IOIO},
					 {"hlt", EXIT_HLT},
					 {"invlpg", EXIT_INVLPG},
					 {"npf", EXIT_NPF},
					 {"write_cr0", EXIT_CR0_WRITE},
					 {"cr0_sel_write", EXIT_CR0_SEL_WRITE},
					 {"write_cr3", EXIT_CR3_WRITE},
					 {"write_cr4", EXIT_CR4_WRITE},
					 {"msr", EXIT_MSR},
					 {NULL, 0}};
static const struct word access_words[] = {{"---", 0}, {"--x", 1}, {"w--", 2},
					   {"w-x", 3}, {"-u-", 4}, {"-ux", 5},
					   {"wu-", 6}, {"wux", 7}, {NULL, 0}};
static const struct word direct_words[] = {{" direct", 1}, {"", 0}, {NULL, 0}};
static const struct word invalid_words[] = {{" invalid", 1}, {"", 0}, {NULL, 0}};
static const struct word negated_words[] = {{"!", 0}, {"", 1}, {NULL, 0}};
static const struct word unsync_words[] = {{"unsync", 1}, {"sync", 0}, {NULL, 0}};
static const struct word created_words[] = {{"new", 1}, {"existing", 0}, {NULL, 0}};
static const struct word loaded_words[] = {{"load", 1}, {"unload", 0}, {NULL, 0}};
static const struct word write_words[] = {{"Write", 1}, {"Read", 0}, {NULL, 0}};
static const struct word by_gpa_words[] = {{"GPA", 1}, {"GVA", 0}, {NULL, 0}};
static const struct word mmio_words[] = {
	{"unsatisfied-read", 0}, {"read", 1}, {"write", 2}, {NULL, 0}};

static const char *const field_names[N_LINE_FIELDS] = {
#define X(n) #n,
	TRACE_LINE_FIELDS(X)
#undef X
};

const char *trace_line_field_name(enum trace_line_field f)
{
	return field_names[f];
}

static const struct word *words_of(enum kvm_trace_id id, enum trace_line_field f)
{
	switch (f) {
	case LINE_reason:
		return exit_words;
	case LINE_access:
		/* an mmio spte's is a number */
		return id == TRACE_mark_mmio_spte || id == TRACE_handle_mmio_page_fault
			       ? NULL
			       : access_words;
	case LINE_direct:
		return direct_words;
	case LINE_invalid:
		return invalid_words;
	case LINE_nx:
	case LINE_ad:
		return negated_words;
	case LINE_unsync:
		return unsync_words;
	case LINE_created:
		return created_words;
	case LINE_loaded:
		return loaded_words;
	case LINE_kind:
		return mmio_words;
	case LINE_write:
		return write_words;
	case LINE_by_gpa:
		return by_gpa_words;
	default:
		return NULL;
	}
}

static bool decimal(enum kvm_trace_id id, enum trace_line_field f)
{
	switch (f) {
	case LINE_vcpu:
	case LINE_level:
	case LINE_gen:
	case LINE_gpte_bytes:
	case LINE_quadrant:
	case LINE_roots:
	case LINE_spurious:
	case LINE_fixed:
	case LINE_valid:
	case LINE_len:
	case LINE_slot:
		return true;
	case LINE_code:
		return id == TRACE_kvm_userspace_exit || id == TRACE_kvm_mmu_split_huge_page;
	default:
		return false;
	}
}

/* What is compared of an spte: all of one that maps nothing, as an mmio spte does; of others not
 * the host's frame. */
static uint64_t spte_bits(uint64_t spte)
{
	const uint64_t mmu_present = 1ull << 11, frame = 0x000ffffffffff000ull;

	return spte & mmu_present ? spte & ~frame : spte;
}

/* "P|W|U|RSVD|F", or nothing. */
static uint64_t parse_flags(const char **p)
{
	static const struct word flags[] = {{"P", PFERR_PRESENT}, {"W", PFERR_WRITE},
					    {"U", PFERR_USER},	  {"RSVD", PFERR_RSVD},
					    {"F", PFERR_FETCH},	  {NULL, 0}};
	uint64_t value = 0;

	for (;;) {
		const struct word *w = flags;
		size_t n = strcspn(*p, "| ");

		while (w->text && (strlen(w->text) != n || strncmp(w->text, *p, n)))
			w++;
		if (!w->text)
			return value;
		value |= w->value;
		*p += n;
		if (**p != '|')
			return value;
		(*p)++;
	}
}

static bool parse_word(const struct word *words, const char **p, uint64_t *value)
{
	for (const struct word *w = words; w->text; w++) {
		size_t n = strlen(w->text);

		if (!strncmp(*p, w->text, n)) {
			*p += n;
			*value = w->value;
			return true;
		}
	}
	return false;
}

static bool parse_field(enum kvm_trace_id id, enum trace_line_field f, const char **p,
			uint64_t *value)
{
	const struct word *words = words_of(id, f);
	char *end;

	if (words)
		return parse_word(words, p, value);
	if (id == TRACE_fast_page_fault && f == LINE_error) {
		*value = parse_flags(p);
		return true;
	}
	if (!strchr("-0123456789abcdefABCDEF", **p) || !**p)
		return false;
	*value = decimal(id, f) ? (uint64_t)strtoll(*p, &end, 10) : strtoull(*p, &end, 16);
	if (end == *p)
		return false;
	*p = end;
	if (f == LINE_spte || f == LINE_old_spte)
		*value = spte_bits(*value);
	if (f == LINE_index) /* of the address: where in the table */
		*value = (*value & 0xfff) / sizeof(uint64_t);
	return true;
}

/* ---- a line of the kernel's ---- */

/* One piece of a format: a field, N_LINE_FIELDS for {}, or text (@len characters at @text). */
struct piece {
	enum trace_line_field field;
	const char *text;
	size_t len; /* of text; 0: a field */
};

static bool next_piece(const char **format, struct piece *out)
{
	const char *p = *format;

	if (!*p)
		return false;
	*out = (struct piece){.field = N_LINE_FIELDS, .text = p};
	if (*p != '{') {
		out->len = strcspn(p, "{");
		*format = p + out->len;
		return true;
	}
	p++;
	for (int f = 0; f < N_LINE_FIELDS; f++) {
		size_t n = strlen(field_names[f]);

		if (!strncmp(p, field_names[f], n) && p[n] == '}')
			out->field = (enum trace_line_field)f;
	}
	*format = strchr(p, '}') + 1;
	return true;
}

uint64_t trace_line_fields(enum kvm_trace_id id)
{
	const char *format = format_of(id);
	uint64_t mask = 0;
	struct piece piece;

	while (next_piece(&format, &piece)) {
		if (piece.field != N_LINE_FIELDS)
			mask |= 1ull << piece.field;
	}
	return mask;
}

/* Up to where the next piece of text stands, or to the end. */
static void skip(const char *format, const char **p)
{
	size_t n = strcspn(format, "{");

	while (**p && (!n || strncmp(*p, format, n)))
		(*p)++;
}

bool trace_line_parse(enum kvm_trace_id id, const char *text, struct trace_line *out,
		      const char **at, char expected[TRACE_LINE_PIECE])
{
	const char *format = format_of(id), *p = text;
	struct piece piece;

	while (next_piece(&format, &piece)) {
		bool ok = true;

		*at = p;
		if (piece.len)
			ok = !strncmp(p, piece.text, piece.len);
		else if (piece.field == N_LINE_FIELDS)
			skip(format, &p);
		else
			ok = parse_field(id, piece.field, &p, &out->field[piece.field]);
		p += ok ? piece.len : 0;
		if (!ok) {
			if (piece.len)
				snprintf(expected, TRACE_LINE_PIECE, "'%.*s'", (int)piece.len,
					 piece.text);
			else
				snprintf(expected, TRACE_LINE_PIECE, "the field %s",
					 field_names[piece.field]);
			return false;
		}
	}
	*at = p;
	snprintf(expected, TRACE_LINE_PIECE, "the end of the line");
	return !p[strspn(p, " ")];
}

enum kvm_trace_id trace_line_find(const char *name, size_t len)
{
	int id = 0;

	while (id < N_KVM_TRACE && (strlen(kvm_trace_name((enum kvm_trace_id)id)) != len ||
				    strncmp(kvm_trace_name((enum kvm_trace_id)id), name, len)))
		id++;
	return (enum kvm_trace_id)id;
}

/* ---- an event of the model's ---- */

static uint64_t value_of(const struct kvm_trace_event *e, enum trace_line_field f)
{
	switch (f) {
	case LINE_vcpu:
		return e->vcpu;
	case LINE_rip:
		return e->rip;
	case LINE_addr:
		return e->addr;
	case LINE_error:
		return e->id == TRACE_fast_page_fault ? e->error_code & 0x1f : e->code;
	case LINE_reason:
	case LINE_code:
	case LINE_kind:
	case LINE_loaded:
		return e->code;
	case LINE_gfn:
		return e->gfn;
	case LINE_level:
		return e->level;
	case LINE_spte:
		return spte_bits(e->spte);
	case LINE_old_spte:
		return spte_bits(e->old_spte);
	case LINE_mmio_spte:
	case LINE_gpte:
		return e->spte;
	case LINE_index:
		return e->index;
	case LINE_gen:
	case LINE_mmio_gen:
		return e->gen;
	case LINE_gpte_bytes:
		return e->gpte_bytes;
	case LINE_quadrant:
		return e->quadrant;
	case LINE_direct:
	case LINE_by_gpa:
		return e->direct;
	case LINE_access:
		return e->access;
	case LINE_invalid:
		return e->invalid;
	case LINE_nx:
		return e->efer_nx;
	case LINE_ad:
		return !e->ad_disabled;
	case LINE_roots:
		return e->root_count;
	case LINE_unsync:
		return e->unsync;
	case LINE_created:
		return e->created;
	case LINE_spurious:
		return e->code == RET_PF_SPURIOUS;
	case LINE_fixed:
		return e->code == RET_PF_FIXED;
	case LINE_valid:
		return e->valid;
	case LINE_write:
		return e->writable;
	case LINE_len:
		return e->len;
	case LINE_dirty:
		return e->ring_dirty;
	case LINE_reset:
		return e->ring_reset;
	case LINE_slot:
		return e->slot;
	case LINE_offset:
		return e->offset;
	case LINE_used_pages:
		return e->used_pages;
	default:
		return 0;
	}
}

void trace_line_of(const struct kvm_trace_event *e, struct trace_line *out)
{
	uint64_t has = trace_line_fields(e->id);

	memset(out, 0, sizeof(*out));
	out->id = e->id;
	out->thread = e->task;
	for (int f = 0; f < N_LINE_FIELDS; f++) {
		if (has & 1ull << f)
			out->field[f] = value_of(e, (enum trace_line_field)f);
	}
}

/* ---- two of them ---- */

bool trace_line_equal(const struct trace_line *a, const struct trace_line *b,
		      enum trace_line_field *field)
{
	*field = N_LINE_FIELDS;
	if (a->id != b->id || a->id == N_KVM_TRACE)
		return false;
	for (int f = 0; f < N_LINE_FIELDS; f++) {
		if (a->field[f] != b->field[f] && !((a->hidden | b->hidden) >> f & 1)) {
			*field = (enum trace_line_field)f;
			return false;
		}
	}
	return true;
}

static const char *word_for(const struct word *words, uint64_t value)
{
	for (; words && words->text; words++) {
		if (words->value == value)
			return words->text;
	}
	return NULL;
}

const char *trace_line_text(const struct trace_line *l, char buf[TRACE_LINE_TEXT])
{
	const char *format = format_of(l->id);
	size_t n = 0;
	struct piece piece;

	n += (size_t)snprintf(buf, TRACE_LINE_TEXT, "%s",
			      l->id < N_KVM_TRACE ? kvm_trace_name(l->id) : l->unknown);
	while (next_piece(&format, &piece) && n < TRACE_LINE_TEXT) {
		enum trace_line_field f = piece.field;
		const char *word;

		if (f == N_LINE_FIELDS || l->hidden >> f & 1)
			continue;
		word = word_for(words_of(l->id, f), l->field[f]);
		if (word && *word)
			n += (size_t)snprintf(buf + n, TRACE_LINE_TEXT - n, " %s=%s",
					      field_names[f], word + (*word == ' '));
		else
			n += (size_t)snprintf(buf + n, TRACE_LINE_TEXT - n,
					      decimal(l->id, f) ? " %s=%lld" : " %s=%llx",
					      field_names[f], (unsigned long long)l->field[f]);
	}
	return buf;
}
