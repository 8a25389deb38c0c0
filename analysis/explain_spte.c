// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/explain.h"

#include <inttypes.h>
#include <stdio.h>

#include "analysis/output.h"

/*
 * Entries of shadow and nested page tables by Linux 6.1's mmu/spte.h. The processor's bits:
 * Intel 4.5 (tables of the common format, which AMD's nested ones have, too), 29.3.2 (EPT).
 */

#define B(n)	    (1ull << (n))
#define ADDRESS	    (B(52) - B(12))
#define MMU_PRESENT B(11)
#define REMOVED	    0x5a0ull /* the TDP MMU's entry that is being changed */
#define RWX	    (B(0) | B(1) | B(2))
#define LARGE	    B(7)

/* Of each bit what it says when it is set. */
struct spte_bit {
	unsigned bit;
	const char *name, *set;
};
static const struct spte_bit common[] = {
	{0, "P", "present"},
	{1, "W", "stores allowed"},
	{2, "U", "user-mode accesses allowed (nested: all are)"},
	{3, "PWT", "write-through"},
	{4, "PCD", "not cached"},
	{5, "A", "accessed"},
	{6, "D", "dirty"},
	{7, "PS", "a large page"},
	{8, "G", "global"},
	{9, "host-writable", "KVM's: the host's page may be written"},
	{10, "MMU-writable", "KVM's: W may be given back without mmu_lock"},
	{63, "NX", "no fetches"},
};
static const struct spte_bit ept[] = {
	{0, "R", "loads allowed"},
	{1, "W", "stores allowed"},
	{2, "X", "fetches allowed"},
	{6, "IPAT", "the guest's own memory type does not count"},
	{7, "large", "a large page"},
	{8, "A", "accessed"},
	{9, "D", "dirty"},
	{10, "XU", "fetches from user-mode addresses allowed"},
	{54, "saved R", "KVM's: loads are allowed once it is accessed"},
	{56, "saved X", "KVM's: fetches are allowed once it is accessed"},
	{57, "host-writable", "KVM's: the host's page may be written"},
	{58, "MMU-writable", "KVM's: W may be given back without mmu_lock"},
	{63, "suppress #VE", "an EPT violation is no exception of the guest's"},
};

static bool has(uint64_t spte, unsigned bit)
{
	return spte >> bit & 1;
}

static void put(json_t *fields, unsigned high, unsigned low, const char *name, uint64_t value,
		const char *meaning)
{
	char bits[OUT_TEXT];

	snprintf(bits, sizeof(bits), high == low ? "%u" : "%u:%u", high, low);
	explain_field(fields, bits, name, value, meaning);
}

static bool is_ept(uint64_t spte)
{
	if (!(spte & MMU_PRESENT)) /* MMIO: W and X without R is EPT's */
		return (spte & RWX) == (B(1) | B(2));
	if (spte & (B(58) | B(57) | B(56) | B(54) | B(53) | B(52)))
		return true;
	if (has(spte, 63) || has(spte, 5) != has(spte, 4))
		return false;
	/* write-back, or a table's entry, of which EPT's has A in bit 8 */
	return (spte >> 3 & 7) == 6 || has(spte, 8);
}

/* EPT: misconfigured; else present with a bit that is reserved, mostly 51, on processors whose
 * encryption takes that one the first that is free above their addresses. */
static bool is_mmio(uint64_t spte, bool is_e)
{
	return is_e ? (spte & RWX) == (B(1) | B(2)) : has(spte, 0) && spte & (B(52) - B(46));
}

/* What KVM remembers of a device's page, in an entry that every access faults on. */
static const char *mmio(json_t *fields, uint64_t spte, bool is_e)
{
	uint64_t gen = (spte >> 3 & 0xff) | (spte >> 52 & 0x7ff) << 8;
	uint64_t gfn = (spte & ADDRESS & (is_e ? ~0ull : ~B(51))) >> 12;

	if (is_e) {
		put(fields, 2, 0, "RWX", spte & RWX, "stores and fetches, no loads: misconfigured");
	} else {
		put(fields, 0, 0, "P", 1, "present");
		put(fields, 2, 1, "access", spte >> 1 & 3, "bit 0: stores allowed, 1: user mode");
		if (has(spte, 51))
			put(fields, 51, 51, "reserved", 1, "makes every access fault with RSVD");
	}
	put(fields, 51, 12, "gfn", gfn,
	    "of the device (on processors with L1TF its high bits are elsewhere)");
	explain_field(fields, "62:52, 10:3", "generation", gen,
		      "of the memslots: with another one the entry is stale");
	return "An MMIO spte: KVM remembers that no memslot has this page.";
}

static void by_bits(json_t *fields, uint64_t spte, bool is_e, bool pat)
{
	static const char *const types[] = {"uncacheable", "write-combining", "reserved",
					    "reserved",	   "write-through",   "write-protected",
					    "write-back",  "reserved"};
	static const char *const tracking[] = {"by A and D", "without A and D: by permissions",
					       "by write protection, though A and D exist",
					       "no such kind"};
	const struct spte_bit *table = is_e ? ept : common;
	size_t n = is_e ? sizeof(ept) / sizeof(*ept) : sizeof(common) / sizeof(*common);
	uint64_t known = ADDRESS | MMU_PRESENT | 3ull << 52;

	for (size_t i = 0; i < n; i++) {
		known |= B(table[i].bit);
		if (has(spte, table[i].bit))
			put(fields, table[i].bit, table[i].bit,
			    pat && table[i].bit == 7 ? "PAT" : table[i].name, 1,
			    pat && table[i].bit == 7 ? "memory type, third bit" : table[i].set);
	}
	if (is_e) {
		known |= 7ull << 3;
		put(fields, 5, 3, "memory type", spte >> 3 & 7, types[spte >> 3 & 7]);
	}
	put(fields, 11, 11, "MMU-present", 1, "KVM's: the entry maps something");
	put(fields, 51, 12, "frame", (spte & ADDRESS) >> 12, "the host's page or table");
	if (spte >> 52 & 3)
		put(fields, 53, 52, "tracking", spte >> 52 & 3, tracking[spte >> 52 & 3]);
	for (unsigned b = 0; b < 64; b++)
		if (has(spte, b) && !(known >> b & 1))
			put(fields, b, b, "?", 1, "no such bit in KVM's layout");
}

/* @mmu, @host: MMU-writable, host-writable */
static const char *mapping(uint64_t spte, bool is_e, unsigned level, bool mmu, bool host)
{
	bool large = spte & LARGE && level != 1;

	if (level != 1 && !large && has(spte, 1) && !mmu && !host)
		return "Points to a table of the next level.";
	if (is_e && !(spte & RWX))
		return "A page that was mapped, without rights until it is accessed (access "
		       "tracking).";
	if (has(spte, 1))
		return large ? "Maps a large page, writable." : "Maps a page, writable.";
	if (mmu)
		return "Maps a page whose W was taken, mostly by dirty logging: the next store "
		       "gets "
		       "it back on the fast path.";
	if (host)
		return "Maps a page read-only that the host may write: a shadowed table of the "
		       "guest's, or the guest's own tables forbid stores.";
	return "Maps a page read-only: so has the host it (a page to be copied, a read-only slot).";
}

json_t *explain_spte(uint64_t spte, enum explain_form form, unsigned level)
{
	bool is_e = form == EXPLAIN_EPT || (form == EXPLAIN_GUESS && is_ept(spte));
	bool mmu = has(spte, is_e ? 58 : 10), host = has(spte, is_e ? 57 : 9);
	json_t *fields = json_array(), *wrong = json_array(), *o;
	const char *says, *kvmsim = "tables of any preset";
	char text[OUT_TEXT];

	snprintf(text, sizeof(text), "0x%" PRIx64, spte);
	o = explain_new("spte", text);
	json_put(o, "as",
		 json_string(is_e   ? form ? "an EPT entry by Linux 6.1's layout"
					   : "an EPT entry by Linux 6.1's layout (by its bits)"
			     : form ? "an entry of the common format by Linux 6.1's layout"
				    : "an entry of the common format by Linux 6.1's layout (by "
				      "its bits: shadow paging, or SVM's nested)"));
	if (!spte || spte == B(63)) { /* 63: kernels that suppress #VE in all entries */
		says = "Maps nothing.";
	} else if (spte == REMOVED) {
		says = "The TDP MMU's mark of an entry that is being changed (REMOVED_SPTE): who "
		       "meets it tries again.";
		kvmsim = "preset 6.1-tdp";
	} else if (!(spte & MMU_PRESENT) && is_mmio(spte, is_e)) {
		says = mmio(fields, spte, is_e);
		kvmsim = "spte policies mmio-spte and mmio-gen";
	} else if (!(spte & MMU_PRESENT)) {
		says = "No entry of 6.1's: it has bits, but not KVM's own MMU-present.";
		json_array_append_new(wrong, json_string("neither present, nor MMIO, nor removed"));
	} else {
		by_bits(fields, spte, is_e, !is_e && level == 1);
		says = mapping(spte, is_e, level, mmu, host);
		if (mmu && !host)
			json_array_append_new(wrong,
					      json_string("MMU-writable, but not host-writable"));
		if (is_e && has(spte, 1) && !has(spte, 0))
			json_array_append_new(
				wrong, json_string("W without R: such entries are misconfigured"));
		if (has(spte, 1) && !mmu && (host || level == 1))
			json_array_append_new(wrong, json_string("W, but not MMU-writable"));
		if (level > 3 && spte & LARGE)
			json_array_append_new(wrong, json_string("a large page above level 3"));
	}
	if (json_array_size(fields))
		json_put(o, "fields", fields);
	else
		json_decref(fields);
	if (json_array_size(wrong))
		json_put(o, "odd", wrong);
	else
		json_decref(wrong);
	json_put(o, "says", json_string(says));
	json_put(o, "kvmsim", json_string(kvmsim));
	return o;
}
