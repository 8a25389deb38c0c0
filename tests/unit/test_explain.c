// SPDX-License-Identifier: GPL-3.0-or-later
#ifdef __x86_64__
#include <asm/svm.h>
#include <asm/vmx.h>
#endif
#include <ctype.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/explain.h"
#include "tests/unit/harness.h"
#include "traces/host/exit_reasons.h"

/*
 * Expected: names and bits by Intel's manual, volume 3, 4.7 and table 28-7, AMD's, volume
 * 2, 15.25.6; of sptes by the masks of Linux 6.1's arch/x86/kvm/mmu/spte.h, put together by hand.
 */

static bool has_text(const json_t *o, const char *key, const char *part)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s && strstr(s, part);
}

/* The value of the field at @bits; NULL: no such field. */
static const char *at_bits(const json_t *o, const char *bits, const char *name)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(o, "fields"), i, f)
	{
		if (strcmp(json_string_value(json_object_get(f, "bits")), bits) != 0)
			continue;
		if (strcmp(json_string_value(json_object_get(f, "name")), name) != 0)
			continue;
		return json_string_value(json_object_get(f, "value"));
	}
	return NULL;
}

static bool field_is(const json_t *o, const char *bits, const char *name, const char *value)
{
	const char *v = at_bits(o, bits, name);

	return v && !strcmp(v, value);
}

/* Each bit alone has its name; those that the manual does not have are named "?". */
static void names(enum explain_form form, const char *const by_bit[64])
{
	for (unsigned b = 0; b < 64; b++) {
		json_t *o = explain_error_code(1ull << b, form);
		char bits[8];

		snprintf(bits, sizeof(bits), "%u", b);
		CU_ASSERT(field_is(o, bits, by_bit[b] ? by_bit[b] : "?", "0x1"));
		json_decref(o);
	}
}

static void bit_names(void)
{
	static const char *const pf[64] = {"P",	 "W/R", "U/S",	      "RSVD",	   "I/D",
					   "PK", "SS",	[15] = "SGX", [31] = "RMP"};
	static const char *const npf[64] = {"P",
					    "W/R",
					    "U/S",
					    "RSVD",
					    "I/D",
					    "PK",
					    "SS",
					    [15] = "SGX",
					    [31] = "RMP",
					    [32] = "final",
					    "table",
					    "ENC",
					    "SIZEM",
					    "VMPL",
					    "SSS",
					    [48] = "implicit",
					    [49] = "private"};
	static const char *const ept[64] = {"data read",
					    "data write",
					    "instruction fetch",
					    "readable",
					    "writable",
					    "executable",
					    "user-executable",
					    "linear address valid",
					    "final",
					    "user page",
					    "writable page",
					    "no-execute page",
					    "NMI unblocking",
					    "shadow stack",
					    "supervisor shadow stack",
					    "guest-paging verification",
					    "asynchronous"};

	names(EXPLAIN_PF, pf);
	names(EXPLAIN_NPF, npf);
	names(EXPLAIN_EPT, ept);
}

/* What 4.7 says of the bits of a page-fault error code. */
static bool pf_possible(uint64_t c)
{
	bool p = c & 1, w = c & 2, rsvd = c & 8, fetch = c & 0x10, pk = c & 0x20, ss = c & 0x40;
	bool sgx = c & 0x8000;

	if (rsvd && !p)
		return false; /* "reserved bits are not checked in ... entry whose P flag is 0" */
	if (w && fetch)
		return false;
	if (pk && (!p || fetch || rsvd))
		return false;
	if (ss && fetch)
		return false;
	return !sgx || (p && !rsvd);
}

static void impossible_codes(void)
{
	unsigned wrong = 0;

	for (uint64_t i = 0; i < 256; i++) {
		uint64_t code = (i & 0x7f) | (i & 0x80) << 8;
		json_t *o = explain_error_code(code, EXPLAIN_PF);

		wrong += pf_possible(code) != !json_object_get(o, "impossible");
		json_decref(o);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	for (uint64_t code = 0; code < 512; code++) {
		bool r = code & 1, w = code & 2, x = code & 4, er = code & 8, ew = code & 16;
		bool linear = code & 128, final = code & 256;
		json_t *o = explain_error_code(code, EXPLAIN_EPT);

		wrong += (!(r || w || x) || (w && x) || (ew && !er) || (final && !linear)) !=
			 !!json_object_get(o, "impossible");
		json_decref(o);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	for (uint64_t half = 0; half < 4; half++) {
		json_t *o = explain_error_code(half << 32 | 7, EXPLAIN_NPF);

		CU_ASSERT_EQUAL(!json_object_get(o, "impossible"), half == 1 || half == 2);
		json_decref(o);
	}
}

static void guessed_forms(void)
{
	static const struct {
		uint64_t code;
		const char *as;
	} codes[] = {
		{0x181, "exit qualification"}, {0x82, "exit qualification"},
		{0x100000004, "EXITINFO1"},    {0x200000006, "EXITINFO1"},
		{0x3, "page-fault error"},     {0x8001, "page-fault error"},
		{0, "page-fault error"},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		json_t *o = explain_error_code(codes[i].code, EXPLAIN_GUESS);

		CU_ASSERT(has_text(o, "as", codes[i].as));
		json_decref(o);
	}
}

static void exits(void)
{
	/* intr_info: valid, error code, hardware exception, vector 14; qualification: CR2 */
	struct explain_infos pf = {.has_info1 = true,
				   .has_intr_info = true,
				   .has_error_code = true,
				   .info1 = 0x7fff0010,
				   .intr_info = 0x80000b0e,
				   .error_code = 0x6};
	struct explain_infos apic = {.has_info1 = true, .info1 = 0x1300};
	struct explain_infos dr = {.has_info1 = true, .info1 = 0x617};
	struct explain_infos none = {0};
	bool found;
	json_t *o = explain_exit("EXCEPTION_NMI", EXIT_ISA_VMX, &pf, &found);

	CU_ASSERT(found && has_text(o, "gva", "0x7fff0010"));
	CU_ASSERT(field_is(o, "7:0", "vector", "0xe"));
	CU_ASSERT(has_text(json_object_get(o, "error_code"), "says", "Nothing was mapped"));
	json_decref(o);
	o = explain_exit("APIC_ACCESS", EXIT_ISA_VMX, &apic, &found); /* a store to the ICR */
	CU_ASSERT(field_is(o, "11:0", "offset", "0x300") && field_is(o, "15:12", "type", "0x1"));
	json_decref(o);
	o = explain_exit("DR_ACCESS", EXIT_ISA_VMX, &dr, &found); /* RSI from DR7 */
	CU_ASSERT(field_is(o, "2:0", "register", "0x7") && field_is(o, "4", "direction", "0x1"));
	CU_ASSERT(field_is(o, "11:8", "operand", "0x6"));
	json_decref(o);
	o = explain_exit("NPF", EXIT_ISA_VMX, &none, &found);
	CU_ASSERT(!found);
	json_decref(o);
	o = explain_exit("EXCP_PF", EXIT_ISA_SVM, &none, &found); /* AMD: 40h + 14 */
	CU_ASSERT(found && has_text(o, "as", "0x4e"));
	json_decref(o);
}

static void sptes(void)
{
	static const struct {
		uint64_t spte;
		enum explain_form form;
		unsigned level;
		const char *as, *says;
		bool possible;
	} of[] = {
		/* R W X, WB, A, D, present, host- and MMU-writable */
		{0x06000000012abb37, EXPLAIN_GUESS, 1, "EPT", "Maps a page, writable", true},
		{0x06000000012ab935, EXPLAIN_GUESS, 1, "EPT", "whose W was taken", true},
		{0x06000000012ab9b5, EXPLAIN_GUESS, 2, "EPT", "whose W was taken", true},
		{0x06000000012abbb7, EXPLAIN_GUESS, 2, "EPT", "a large page, writable", true},
		{0x02000000012ab935, EXPLAIN_GUESS, 1, "EPT", "the host may write", true},
		{0x00000000012ab935, EXPLAIN_GUESS, 1, "EPT", "so has the host it", true},
		{0x04000000012ab935, EXPLAIN_GUESS, 1, "EPT", "", false}, /* MMU- alone */
		/* W without R */
		{0x06000000012abb36, EXPLAIN_EPT, 1, "EPT", "", false},
		/* without A and D, access-tracked: R and X saved in 54 and 56 */
		{0x07500000012ab830, EXPLAIN_GUESS, 1, "EPT", "access tracking", true},
		/* tables: make_nonleaf_spte() */
		{0x00000000012ab907, EXPLAIN_GUESS, 2, "EPT", "a table of the next", true},
		{0x00000000012ab827, EXPLAIN_GUESS, 2, "common", "a table of the next", true},
		/* P W U A D, host- and MMU-writable, present; with NX */
		{0x80000000012abe67, EXPLAIN_GUESS, 1, "common", "Maps a page, writable", true},
		{0x00000000012abe25, EXPLAIN_GUESS, 1, "common", "whose W was taken", true},
		{0x00000000012aba25, EXPLAIN_GUESS, 1, "common", "the host may write", true},
		{0x00000000012abee7, EXPLAIN_GUESS, 4, "common", "", false}, /* large, level 4 */
		/* MMIO: generation 5 in bits 10:3, gfn fee00 */
		{0x000800fee0002f, EXPLAIN_PF, 1, "common", "No entry", false},
		{0x00080000fee0002f, EXPLAIN_GUESS, 1, "common", "An MMIO spte", true},
		{0x00000000fee0002e, EXPLAIN_GUESS, 1, "EPT", "An MMIO spte", true},
		{0x5a0, EXPLAIN_GUESS, 1, "", "REMOVED_SPTE", true},
		{0, EXPLAIN_GUESS, 1, "", "Maps nothing", true},
		{0x8000000000000000, EXPLAIN_EPT, 1, "", "Maps nothing", true},
		{0x00000000012ab005, EXPLAIN_EPT, 1, "EPT", "No entry", false},
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		json_t *o = explain_spte(of[i].spte, of[i].form, of[i].level);
		bool fine = has_text(o, "as", of[i].as) && has_text(o, "says", of[i].says) &&
			    !json_object_get(o, "odd") == of[i].possible;

		CU_ASSERT(fine);
		if (!fine)
			json_dumpf(o, stdout, JSON_INDENT(1));
		json_decref(o);
	}
}

static void mmio_generation(void)
{
	/* bits 7:0 of it in 10:3, 18:8 in 62:52 */
	json_t *o = explain_spte(0x7ffull << 52 | 0xfee00000 | 0x5 << 3 | 6, EXPLAIN_GUESS, 0);

	CU_ASSERT(field_is(o, "62:52, 10:3", "generation", "0x7ff05"));
	CU_ASSERT(field_is(o, "51:12", "gfn", "0xfee00"));
	json_decref(o);
}

static int collect(void *ctx, json_t *o)
{
	return json_array_append_new(ctx, o) ? KVMSIM_ENOMEM : 0;
}

static json_t *events(const char *text, int *err)
{
	static const struct kvmsim_errsink none = {NULL, NULL};
	char path[] = "/tmp/test_explain.XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	json_t *list = json_array();

	CU_ASSERT_FATAL(f != NULL);
	fputs(text, f);
	fclose(f);
	*err = explain_events(path, &none, collect, list);
	remove(path);
	return list;
}

static const char *code_of(const json_t *list, size_t i, const char *key)
{
	const json_t *o = json_object_get(json_array_get(list, i), "error_code");
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* The code of a page fault is of the form that the same thread's exit has, until its next entry.
 * The threads 7 and 71 have one place to be remembered at. */
static void forms_by_exits(void)
{
	int err;
	json_t *o = events(
		"a-7 [001] 1.000001: kvm_exit: reason EPT_VIOLATION rip 0x1 info 1 0\n"
		"b-71 [002] 1.000002: kvm_page_fault: address 1000 error_code 1\n"
		"a-7 [001] 1.000003: kvm_page_fault: address 1000 error_code 1\n"
		"a-7 [001] 1.000004: kvm_entry: vcpu 0\n"
		"a-7 [001] 1.000005: kvm_page_fault: address 1000 error_code 1\n"
		"a-7 [001] 1.000006: kvm_exit: reason npf rip 0x1 info 200000007 2000\n"
		"a-7 [001] 1.000007: kvm_page_fault: address 2000 error_code 7\n"
		"a-7 [001] 1.000008: kvm_exit: reason npf rip 0x1 info 200000007 2000\n"
		"a-7 [001] 1.000009: kvm_page_fault: address 2000 error_code 5\n"
		"a-7 [001] 1.000010: kvm_exit: reason EXCEPTION_NMI rip 0x1 info 2000 80000b0e\n"
		"a-7 [001] 1.000011: kvm_page_fault: address 2000 error_code 8005\n",
		&err);

	CU_ASSERT_EQUAL(err, 0);
	CU_ASSERT_EQUAL(json_array_size(o), 11);
	CU_ASSERT(strstr(code_of(o, 1, "as"), "by its bits") != NULL);
	CU_ASSERT_STRING_EQUAL(code_of(o, 2, "as"), "exit qualification of an EPT violation");
	CU_ASSERT(strstr(code_of(o, 4, "as"), "by its bits") != NULL);
	CU_ASSERT_STRING_EQUAL(code_of(o, 6, "value"), "0x200000007");
	CU_ASSERT_STRING_EQUAL(code_of(o, 6, "as"), "EXITINFO1 of a nested page fault");
	CU_ASSERT_STRING_EQUAL(code_of(o, 8, "value"), "0x5"); /* another fault than the exit's */
	CU_ASSERT_STRING_EQUAL(code_of(o, 10, "as"), "page-fault error code");
	json_decref(o);
	o = events("a-7 [001] 1.000001: kvm_mmu_paging_element: pte 12ab867 level 2\n", &err);
	CU_ASSERT(!err && !json_object_get(json_array_get(o, 0), "spte"));
	json_decref(o);
	o = events("nothing of the sort\n", &err);
	CU_ASSERT_EQUAL(err, KVMSIM_EPARSE);
	json_decref(o);
}

static int stop(void *ctx, json_t *o)
{
	(void)ctx;
	json_decref(o);
	return KVMSIM_EIO;
}

static void stopped(void)
{
	static const struct kvmsim_errsink none = {NULL, NULL};
	char path[] = "/tmp/test_explain.XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	CU_ASSERT_FATAL(f != NULL);
	fputs("a-7 [001] 1.000001: kvm_entry: vcpu 0\n", f);
	fclose(f);
	CU_ASSERT_EQUAL(explain_events(path, &none, stop, NULL), KVMSIM_EIO);
	remove(path);
}

/* The kernel's own tables, from the headers that it gives to programs: every exit that they have is
 * here by that number, and is told under that name. */
#ifdef __x86_64__
struct header_exit {
	uint64_t reason;
	const char *name;
};
static const struct header_exit vmx_header[] = {VMX_EXIT_REASONS};
static const struct header_exit svm_header[] = {SVM_EXIT_REASONS};

static void as_the_header(enum exit_isa isa, const struct header_exit *e)
{
	struct host_text name = exit_reason_name(isa, (uint32_t)e->reason);
	uint32_t number = 0;
	const struct explain_infos none = {0};
	bool found = false;
	char upper[64];
	json_t *o;
	size_t n = strlen(e->name);

	CU_ASSERT_FATAL(n < sizeof(upper));
	for (size_t i = 0; i <= n; i++)
		upper[i] = (char)toupper((unsigned char)e->name[i]);
	if (name.len != n || memcmp(name.at, upper, n) != 0)
		printf("%s: here 0x%llx is %.*s\n", upper, (unsigned long long)e->reason,
		       (int)name.len, name.len ? name.at : "");
	CU_ASSERT(name.len == n && !memcmp(name.at, upper, n));
	CU_ASSERT(exit_reason_number(isa, upper, &number) && number == (uint32_t)e->reason);
	o = explain_exit(upper, isa, &none, &found);
	CU_ASSERT(found);
	CU_ASSERT_PTR_NOT_NULL(o);
	json_decref(o);
}

static void exits_of_the_header(void)
{
	for (size_t i = 0; i < sizeof(vmx_header) / sizeof(*vmx_header); i++)
		as_the_header(EXIT_ISA_VMX, &vmx_header[i]);
	for (size_t i = 0; i < sizeof(svm_header) / sizeof(*svm_header); i++)
		as_the_header(EXIT_ISA_SVM, &svm_header[i]);
}
#else
static void exits_of_the_header(void)
{
	test_skip("the headers of this machine have no exits of VMX and SVM");
}
#endif

static void userspace_exits_of_the_header(void)
{
#define E(name)                                                                                    \
	{                                                                                          \
		KVM_EXIT_##name, "KVM_EXIT_" #name                                                 \
	}
	static const struct {
		uint32_t number;
		const char *name;
	} of[] = {E(UNKNOWN),
		  E(EXCEPTION),
		  E(IO),
		  E(HYPERCALL),
		  E(DEBUG),
		  E(HLT),
		  E(MMIO),
		  E(IRQ_WINDOW_OPEN),
		  E(SHUTDOWN),
		  E(FAIL_ENTRY),
		  E(INTR),
		  E(SET_TPR),
		  E(TPR_ACCESS),
		  E(NMI),
		  E(INTERNAL_ERROR),
		  E(SYSTEM_EVENT),
		  E(IOAPIC_EOI),
		  E(HYPERV),
		  E(X86_RDMSR),
		  E(X86_WRMSR),
		  E(DIRTY_RING_FULL),
		  E(AP_RESET_HOLD),
		  E(X86_BUS_LOCK),
		  E(XEN)};
#undef E
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct host_text name = userspace_exit_name(of[i].number);

		CU_ASSERT(name.len == strlen(of[i].name) && !memcmp(name.at, of[i].name, name.len));
	}
}

static CU_TestInfo tests[] = {
	{"names of bits", bit_names},
	{"codes that no processor makes", impossible_codes},
	{"guessed forms", guessed_forms},
	{"exits and their infos", exits},
	{"sptes", sptes},
	{"an MMIO spte's generation", mmio_generation},
	{"forms by exits", forms_by_exits},
	{"exits as the kernel's headers have them", exits_of_the_header},
	{"exits to user space, too", userspace_exits_of_the_header},
	{"stopped by who takes the events", stopped},
	CU_TEST_INFO_NULL,
};

TEST_MAIN("explain", tests)
