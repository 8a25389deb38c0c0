// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/explain.h"

#include <inttypes.h>
#include <stdio.h>

#include "analysis/output.h"

/* Error codes of page faults, in their three forms. */

struct bit {
	unsigned bit;
	const char *name, *set, *clear; /* clear NULL: says nothing when it is clear */
};

/* Intel 4.7 "Page-Fault Exceptions", figure 4-12; AMD 8.4.2. */
static const struct bit pf_bits[] = {
	{0, "P", "the translation was there, its rights were not enough",
	 "no translation: an entry was not present"},
	{1, "W/R", "a store", "a load (or a fetch, where I/D is set)"},
};
static const struct bit pf_user[] = {{2, "U/S", "in user mode", "in supervisor mode"}};
/* AMD 15.25.6: nested walks count as user accesses. */
static const struct bit npf_user[] = {{2, "U/S",
				       "as in every nested walk, which counts as the user's",
				       "no nested walk makes such a code"}};
static const struct bit pf_more[] = {
	{3, "RSVD", "a reserved bit was set in an entry", NULL},
	{4, "I/D", "an instruction fetch", NULL},
	{5, "PK", "a protection key forbade it", NULL},
	{6, "SS", "a shadow-stack access", NULL},
	{15, "SGX", "SGX's access control forbade it", NULL},
	{31, "RMP", "the reverse map table of SEV-SNP forbade it", NULL},
};
/* AMD 15.25.6 "Nested Table Walk" and 15.36.10: beside those above. */
static const struct bit npf_bits[] = {
	{32, "final", "while the guest's final address was translated (PFERR_GUEST_FINAL_MASK)",
	 NULL},
	{33, "table", "while the guest's own page tables were walked (PFERR_GUEST_PAGE_MASK)",
	 NULL},
	{34, "ENC", "the guest's effective C-bit was set", NULL},
	{35, "SIZEM", "the sizes of page and RMP entry differ", NULL},
	{36, "VMPL", "the VM permission level forbade it", NULL},
	{37, "SSS", "a supervisor shadow-stack page was needed", NULL},
	{48, "implicit", "KVM's own mark: an implicit access (PFERR_IMPLICIT_ACCESS)", NULL},
	{49, "private", "KVM's own mark: an access of private memory (PFERR_PRIVATE_ACCESS)", NULL},
};
/* Intel 28.2.1, table 28-7. */
static const struct bit ept_bits[] = {
	{0, "data read", "a load", NULL},
	{1, "data write", "a store", NULL},
	{2, "instruction fetch", "an instruction fetch", NULL},
	{3, "readable", "the EPT entries allow loads", "the EPT entries do not allow loads"},
	{4, "writable", "the EPT entries allow stores", "the EPT entries do not allow stores"},
	{5, "executable", "the EPT entries allow fetches", "the EPT entries do not allow fetches"},
	{6, "user-executable", "the EPT entries allow fetches from user-mode addresses", NULL},
	{7, "linear address valid", "the guest linear address is known", NULL},
	{8, "final", "while the guest's final address was translated", NULL},
	{9, "user page", "the linear address is a user-mode one", NULL},
	{10, "writable page", "the guest's own tables allow stores", NULL},
	{11, "no-execute page", "the guest's own tables forbid fetches", NULL},
	{12, "NMI unblocking", "an IRET had unblocked NMIs", NULL},
	{13, "shadow stack", "a shadow-stack access", NULL},
	{14, "supervisor shadow stack", "the EPT entry allows a supervisor shadow stack", NULL},
	{15, "guest-paging verification", "guest-paging verification forbade it", NULL},
	{16, "asynchronous", "by no instruction (the processor's own tracing)", NULL},
};
static const struct bit ept_walk[] = {
	{8, "final", "while the guest's final address was translated",
	 "while the guest's own page tables were walked, or its A and D bits set"},
};
#define B(n) (1ull << (n))
/* What no processor makes: bits that are set and bits that are clear together. */
struct combination {
	uint64_t set, clear;
	const char *why;
};
/* Intel 4.7; AMD 8.4.2 */
static const struct combination pf_impossible[] = {
	{B(3), B(0),
	 "RSVD without P: reserved bits are checked in entries that are present (QEMU's "
	 "emulated processor has done otherwise)"},
	{B(4) | B(1), 0, "I/D with W/R: a fetch is no store"},
	{B(5), B(0), "PK without P: keys are those of mapped pages"},
	{B(5) | B(4), 0, "PK with I/D: keys do not guard fetches"},
	{B(5) | B(3), 0, "PK with RSVD: an entry with reserved bits has no key"},
	{B(6) | B(4), 0, "SS with I/D: a fetch is no shadow-stack access"},
	{B(15), B(0), "SGX without P: its check comes after that of the tables"},
	{B(15) | B(3), 0, "SGX with RSVD: its check comes after that of the tables"},
};
/* AMD 15.25.6: one of the two walks it was. */
static const struct combination npf_impossible[] = {
	{B(32) | B(33), 0, "final with table: a fault is in one of the two walks"},
	{0, B(32) | B(33),
	 "neither final nor table: the upper half is missing, which kernels before "
	 "6.1 do not print"},
	{0, B(2), "U/S clear: nested walks are the user's"},
};
/* Intel 28.2.1; what has bits 5:3 so would be an EPT misconfiguration (29.3.3.1). */
static const struct combination ept_impossible[] = {
	{0, B(0) | B(1) | B(2) | B(16), "no access at all"},
	{B(1) | B(2), 0, "a store and a fetch at once"},
	{B(4), B(3), "writable but not readable: such entries are misconfigured (EPT_MISCONFIG)"},
	{B(8), B(7), "bit 8 without bit 7: it says something of linear addresses only"},
	{B(9), B(7), "bit 9 without bit 7: it says something of linear addresses only"},
};
#define N(table) (sizeof(table) / sizeof(*(table)))

static void put_impossible(json_t *o, uint64_t code, const struct combination *c, size_t n)
{
	json_t *list = json_object_get(o, "impossible");

	for (size_t i = 0; i < n; i++) {
		if ((code & c[i].set) != c[i].set || code & c[i].clear)
			continue;
		if (!list) {
			list = json_array();
			json_put(o, "impossible", list);
		}
		json_array_append_new(list, json_string(c[i].why));
	}
}

void explain_text_field(json_t *fields, const char *bits, const char *name, const char *value,
			const char *meaning)
{
	json_t *f = json_object();

	json_put(f, "bits", json_string(bits));
	json_put(f, "name", json_string(name));
	json_put(f, "value", json_string(value));
	json_put(f, "meaning", json_string(meaning));
	json_array_append_new(fields, f);
}

void explain_field(json_t *fields, const char *bits, const char *name, uint64_t value,
		   const char *meaning)
{
	char hex[OUT_TEXT];

	snprintf(hex, sizeof(hex), "0x%" PRIx64, value);
	explain_text_field(fields, bits, name, hex, meaning);
}

json_t *explain_new(const char *what, const char *value)
{
	json_t *o = json_object();

	json_put(o, "what", json_string(what));
	json_put(o, "value", json_string(value));
	return o;
}

/* Appends what @code says by @table; returns the bits that the table has. */
static uint64_t by_table(json_t *fields, uint64_t code, const struct bit *table, size_t n)
{
	uint64_t known = 0;
	char bits[OUT_TEXT];

	for (size_t i = 0; i < n; i++) {
		const struct bit *b = &table[i];
		bool set = code >> b->bit & 1;

		known |= 1ull << b->bit;
		snprintf(bits, sizeof(bits), "%u", b->bit);
		if (set || b->clear)
			explain_field(fields, bits, b->name, set, set ? b->set : b->clear);
	}
	return known;
}

static void others(json_t *fields, uint64_t code, uint64_t known)
{
	for (unsigned b = 0; b < 64; b++) {
		char bits[OUT_TEXT];

		snprintf(bits, sizeof(bits), "%u", b);
		if (code >> b & 1 && !(known >> b & 1))
			explain_field(fields, bits, "?", 1, "no such bit in the manual");
	}
}

static bool bit(uint64_t code, unsigned b)
{
	return code >> b & 1;
}

/* ---- the three forms ---- */

static const char *pf_says(uint64_t code)
{
	if (bit(code, 3))
		return "An entry had a reserved bit set: under KVM an MMIO spte, else a damaged "
		       "table.";
	if (!bit(code, 0))
		return "Nothing was mapped there yet.";
	if (bit(code, 5))
		return "An access of data that the page's protection key forbids.";
	if (bit(code, 15))
		return "An access that SGX forbids; the tables allow it.";
	if (bit(code, 31))
		return "An access that the reverse map table forbids; the tables allow it.";
	if (bit(code, 4))
		return "A fetch from a page that may not be executed.";
	return bit(code, 1) ? "A store to a page that is mapped read-only."
			    : "A load that the page's rights forbid.";
}

/* What KVM does with a fault that is its own, and what of kvmsim does the same; @present: there was
 * a mapping, @store: for want of W. */
static void put_kvm(json_t *o, bool reserved, bool present, bool store)
{
	const char *kvm, *model;

	if (reserved) {
		kvm = "handle_mmio_page_fault(): the access goes to the emulator, without a search "
		      "of "
		      "slots.";
		model = "spte policies mmio-spte and mmio-gen";
	} else if (present && store) {
		kvm = "fast_page_fault() makes it writable again without mmu_lock where only dirty "
		      "logging took W away, and the page is reported dirty; else it is a shadowed "
		      "table, a read-only slot or a page to be copied.";
		model = "dirty policies that write-protect (mask, manual, ring ...)";
	} else if (present) {
		kvm = "Another vCPU has mapped it meanwhile (a spurious fault), or the access is "
		      "forbidden and the guest gets the fault.";
		model = "faults of any preset";
	} else {
		kvm = "The page is looked up in the memslots and mapped: one fault of kvm_stat's "
		      "pf_taken, pf_fixed where that succeeds; without a slot the access is a "
		      "device's.";
		model = "faults of any preset";
	}
	json_put(o, "kvm", json_string(kvm));
	json_put(o, "kvmsim", json_string(model));
}

static void put_said(json_t *o, const char *as, json_t *fields, const char *says)
{
	json_put(o, "as", json_string(as));
	json_put(o, "fields", fields);
	json_put(o, "says", json_string(says));
}

static void as_pf(json_t *o, uint64_t code, const char *as)
{
	json_t *fields = json_array();
	uint64_t known = by_table(fields, code, pf_bits, N(pf_bits));

	known |= by_table(fields, code, pf_user, N(pf_user));
	known |= by_table(fields, code, pf_more, N(pf_more));
	others(fields, code, known);
	put_said(o, as, fields, pf_says(code));
	put_impossible(o, code, pf_impossible, N(pf_impossible));
	put_kvm(o, bit(code, 3), bit(code, 0), bit(code, 1));
}

static void as_npf(json_t *o, uint64_t code, const char *as)
{
	json_t *fields = json_array();
	uint64_t known = by_table(fields, code, pf_bits, N(pf_bits));
	const char *says = pf_says(code);

	known |= by_table(fields, code, npf_user, N(npf_user));
	known |= by_table(fields, code, pf_more, N(pf_more));
	known |= by_table(fields, code, npf_bits, N(npf_bits));
	others(fields, code, known);
	if (bit(code, 33) && bit(code, 0) && !bit(code, 3))
		says = "The guest's walk of its own tables wrote to a table (A or D bits; every "
		       "such walk counts as a store) that is mapped read-only.";
	else if (bit(code, 33) && !bit(code, 0))
		says = "The page of one of the guest's own tables was not mapped.";
	put_said(o, as, fields, says);
	put_impossible(o, code, pf_impossible, N(pf_impossible));
	put_impossible(o, code, npf_impossible, N(npf_impossible));
	put_kvm(o, bit(code, 3), bit(code, 0), bit(code, 1));
}

static void as_ept(json_t *o, uint64_t code, const char *as)
{
	json_t *fields = json_array();
	bool present = code & 0x38, walk = bit(code, 7) && !bit(code, 8);
	const char *says;
	uint64_t known = by_table(fields, code, ept_bits, N(ept_bits));

	if (walk)
		by_table(fields, code, ept_walk, N(ept_walk));
	others(fields, code, known);
	if (!present)
		says = walk ? "The page of one of the guest's own tables was not mapped."
			    : "Nothing was mapped there yet.";
	else if (bit(code, 1) && !bit(code, 4))
		says = walk ? "The guest's walk of its own tables had to store (A or D bits) to a "
			      "table that is mapped read-only."
			    : "A store to a page that is mapped read-only.";
	else if (bit(code, 2) && !bit(code, 5))
		says = "A fetch from a page that may not be executed.";
	else if (bit(code, 0) && !bit(code, 3))
		says = "A load from a page that may not be read.";
	else
		says = "The entries allow what was asked for: they were changed meanwhile, or a "
		       "user-mode fetch has a bit of its own.";
	put_said(o, as, fields, says);
	put_impossible(o, code, ept_impossible, N(ept_impossible));
	put_kvm(o, false, present, bit(code, 1) && !bit(code, 4));
}

json_t *explain_error_code(uint64_t code, enum explain_form form)
{
	static const char
		guess_ept[] = "exit qualification of an EPT violation, as kvm_page_fault "
			      "prints on VMX (by bits 7 and 8; --pf and --npf take it otherwise)",
		guess_npf[] = "EXITINFO1 of a nested page fault, as kvm_page_fault prints on "
			      "SVM (by bits 32 and up)",
		guess_pf[] = "page-fault error code (by its bits; before 6.1 also the low half "
			     "of a nested fault's; --ept and --npf take it otherwise)";
	char value[OUT_TEXT];
	json_t *o;

	snprintf(value, sizeof(value), "0x%" PRIx64, code);
	o = explain_new("error_code", value);
	if (form == EXPLAIN_EPT)
		as_ept(o, code, "exit qualification of an EPT violation");
	else if (form == EXPLAIN_NPF)
		as_npf(o, code, "EXITINFO1 of a nested page fault");
	else if (form == EXPLAIN_PF)
		as_pf(o, code, "page-fault error code");
	else if (code >> 32)
		as_npf(o, code, guess_npf);
	else if (code & 0x780)
		as_ept(o, code, guess_ept);
	else
		as_pf(o, code, guess_pf);
	return o;
}
