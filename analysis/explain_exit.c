// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/output.h"

/* Exits: what they are, what KVM does, what their infos say. */

static const struct {
	const char *name, *says, *kvm, *model; /* model NULL: nothing does */
} exits[] = {
#define EXIT(name, says, kvm, model) {name, says, kvm, model},
#include "analysis/explain_exits.def"
};
#define N_EXITS (sizeof(exits) / sizeof(*exits))

/* What other tools and the manual call the exits that KVM has its own words for. */
static const struct {
	const char *other, *name;
} aliases[] = {
	{"EXCP_PF", "PF EXCP"}, {"EXCP14", "PF EXCP"}, {"EXCEPTION_14", "PF EXCP"},
	{"INTR", "INTERRUPT"},	{"IOIO", "IO"},	       {"VMMCALL", "HYPERCALL"},
};

static const char *kernel_name(const char *name)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++)
		if (!strcmp(aliases[i].other, name))
			return aliases[i].name;
	return name;
}

/* "*" at one end of @pattern stands for anything. */
static bool fits(const char *pattern, const char *name)
{
	size_t n = strlen(pattern), len = strlen(name);

	if (pattern[0] == '*')
		return len >= n - 1 && !strcmp(name + len - (n - 1), pattern + 1);
	if (pattern[n - 1] == '*')
		return !strncmp(name, pattern, n - 1);
	return !strcmp(name, pattern);
}

/* ---- infos ---- */

static void part(json_t *fields, uint64_t v, unsigned high, unsigned low, const char *name,
		 const char *meaning)
{
	char bits[OUT_TEXT];

	snprintf(bits, sizeof(bits), high == low ? "%u" : "%u:%u", high, low);
	explain_field(fields, bits, name, v >> low & ((2ull << (high - low)) - 1), meaning);
}

/* Intel table 28-5 */
static void vmx_io(json_t *f, uint64_t q)
{
	part(f, q, 2, 0, "size",
	     (q & 7) == 0   ? "one byte"
	     : (q & 7) == 1 ? "two bytes"
			    : "four bytes");
	part(f, q, 3, 3, "direction", q >> 3 & 1 ? "IN" : "OUT");
	part(f, q, 4, 4, "string", q >> 4 & 1 ? "INS or OUTS" : "no string instruction");
	part(f, q, 5, 5, "REP", q >> 5 & 1 ? "with REP" : "without REP");
	part(f, q, 31, 16, "port", "the port's number");
}
/* AMD 15.10.2 */
static void svm_io(json_t *f, uint64_t q)
{
	part(f, q, 0, 0, "TYPE", q & 1 ? "IN" : "OUT");
	part(f, q, 2, 2, "STR", q >> 2 & 1 ? "INS or OUTS" : "no string instruction");
	part(f, q, 3, 3, "REP", q >> 3 & 1 ? "with REP" : "without REP");
	part(f, q, 6, 4, "SZ", q >> 4 & 1 ? "one byte" : q >> 5 & 1 ? "two bytes" : "four bytes");
	part(f, q, 31, 16, "PORT", "the port's number");
}
/* Intel table 28-3 */
static void cr_access(json_t *f, uint64_t q)
{
	static const char *const types[] = {"MOV to CR", "MOV from CR", "CLTS", "LMSW"};

	part(f, q, 3, 0, "register", "the number of the control register");
	part(f, q, 5, 4, "access", types[q >> 4 & 3]);
	part(f, q, 11, 8, "operand", "the number of the general register");
}
/* Intel table 28-4 */
static void dr_access(json_t *f, uint64_t q)
{
	part(f, q, 2, 0, "register", "the number of the debug register");
	part(f, q, 4, 4, "direction", q >> 4 & 1 ? "MOV from DR" : "MOV to DR");
	part(f, q, 11, 8, "operand", "the number of the general register");
}
/* Intel table 28-2 */
static void task_switch(json_t *f, uint64_t q)
{
	static const char *const sources[] = {"CALL", "IRET", "JMP", "a task gate in the IDT"};

	part(f, q, 15, 0, "selector", "of the new task's TSS");
	part(f, q, 31, 30, "source", sources[q >> 30 & 3]);
}
/* Intel table 28-6 */
static void apic_access(json_t *f, uint64_t q)
{
	static const char *const types[16] = {
		"a load",
		"a store",
		"an instruction fetch",
		"while an event was delivered",
		[10] = "by its guest-physical address, while an event was delivered",
		[15] = "by its guest-physical address",
	};
	const char *t = types[q >> 12 & 15];

	part(f, q, 11, 0, "offset", "in the APIC's page");
	part(f, q, 15, 12, "type", t ? t : "no such type in the manual");
}
/* AMD 15.29.9.2 */
static void avic_access(json_t *f, uint64_t q)
{
	part(f, q, 11, 4, "offset", "of the register, in units of 16 bytes");
	part(f, q, 32, 32, "direction", q >> 32 & 1 ? "a store" : "a load");
}
/* AMD 15.8.1: with decode assists; without them there is nothing here. */
static void svm_cr(json_t *f, uint64_t q)
{
	part(f, q, 63, 63, "MOV", q >> 63 ? "MOV to or from CR" : "no MOV, or not decoded");
	part(f, q, 3, 0, "operand", "the number of the general register");
}
static void svm_msr(json_t *f, uint64_t q)
{
	part(f, q, 0, 0, "direction", q & 1 ? "WRMSR" : "RDMSR");
}
static void apic_write(json_t *f, uint64_t q)
{
	part(f, q, 11, 0, "offset", "in the APIC's page");
}
static void eoi_induced(json_t *f, uint64_t q)
{
	part(f, q, 7, 0, "vector", "of the interrupt that ended");
}
static void linear_address(json_t *f, uint64_t q)
{
	part(f, q, 63, 0, "linear address", "whose translation is dropped");
}

/* Exits whose first info (VMX: exit qualification, SVM: EXITINFO1) has a layout. */
static const struct {
	const char *name;
	enum exit_isa isa; /* unknown: of both */
	void (*put)(json_t *f, uint64_t info1);
} layouts[] = {
	{"IO_INSTRUCTION", EXIT_ISA_VMX, vmx_io},
	{"IO", EXIT_ISA_SVM, svm_io},
	{"CR_ACCESS", EXIT_ISA_VMX, cr_access},
	{"READ_CR*", EXIT_ISA_SVM, svm_cr},
	{"WRITE_CR*", EXIT_ISA_SVM, svm_cr},
	{"DR_ACCESS", EXIT_ISA_VMX, dr_access},
	{"MSR", EXIT_ISA_SVM, svm_msr},
	{"TASK_SWITCH", EXIT_ISA_VMX, task_switch},
	{"APIC_ACCESS", EXIT_ISA_VMX, apic_access},
	{"APIC_WRITE", EXIT_ISA_VMX, apic_write},
	{"EOI_INDUCED", EXIT_ISA_VMX, eoi_induced},
	{"AVIC_UNACCELERATED_ACCESS", EXIT_ISA_SVM, avic_access},
	{"INVLPG", EXIT_ISA_UNKNOWN, linear_address},
};

/* Intel 25.9.2, "Format of the VM-Exit Interruption-Information Field"; AMD 15.7.2 has the same
 * layout in EXITINTINFO. */
static bool interruption(json_t *f, uint64_t i)
{
	static const char *const types[] = {"an external interrupt",
					    "reserved",
					    "an NMI",
					    "a hardware exception",
					    "a software interrupt",
					    "a privileged software exception",
					    "a software exception",
					    "another event"};
	static const char *const exceptions[] = {
		"#DE", "#DB", "NMI", "#BP", "#OF", "#BR", "#UD", "#NM", "#DF", NULL,  "#TS",
		"#NP", "#SS", "#GP", "#PF", NULL,  "#MF", "#AC", "#MC", "#XM", "#VE", "#CP"};
	unsigned vector = i & 0xff, type = i >> 8 & 7;
	const char *name = "its number";

	if (!(i >> 31 & 1)) {
		part(f, i, 31, 31, "valid", "no interruption");
		return false;
	}
	if (type >= 2 && type != 4 && vector < sizeof(exceptions) / sizeof(*exceptions))
		name = exceptions[vector] ? exceptions[vector] : "no such exception";
	part(f, i, 7, 0, "vector", name);
	part(f, i, 10, 8, "type", types[type]);
	part(f, i, 11, 11, "error code", i >> 11 & 1 ? "there is one" : "there is none");
	return type == 3 && vector == 14;
}

/* Intel 25.9.1, "Format of Exit Reason": beside the basic reason. */
static void vmx_flags(json_t *f, uint32_t reason)
{
	static const struct {
		unsigned bit;
		const char *name, *meaning;
	} flags[] = {
		{26, "bus lock", "the guest had locked the bus"},
		{27, "enclave", "the guest was in an SGX enclave"},
		{28, "pending MTF", "an exit for a single step was due"},
		{29, "VMX root", "the processor was in VMX root operation"},
		{31, "entry failure", "the VM entry failed: the guest did not run"},
	};
	uint32_t known = 0xffff;

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		known |= 1u << flags[i].bit;
		if (reason >> flags[i].bit & 1)
			part(f, reason, flags[i].bit, flags[i].bit, flags[i].name,
			     flags[i].meaning);
	}
	for (unsigned b = 16; b < 32; b++)
		if (reason >> b & 1 && !(known >> b & 1))
			part(f, reason, b, b, "?", "no such bit in the manual");
}

static void put_address(json_t *o, const char *key, uint64_t value)
{
	char hex[OUT_TEXT];

	snprintf(hex, sizeof(hex), "0x%" PRIx64, value);
	json_put(o, key, json_string(hex));
}

/* What the infos of @name say goes to @o. */
static void put_infos(json_t *o, const char *name, enum exit_isa isa,
		      const struct explain_infos *in)
{
	bool exception = !strcmp(name, "EXCEPTION_NMI"), decoded = false;
	json_t *fields = json_array(), *code = NULL;

	if (isa == EXIT_ISA_VMX)
		vmx_flags(fields, in->reason);
	if (in->has_info1 && !strcmp(name, "EPT_VIOLATION"))
		code = explain_error_code(in->info1, EXPLAIN_EPT);
	else if (in->has_info1 && !strcmp(name, "NPF"))
		code = explain_error_code(in->info1, EXPLAIN_NPF);
	else if (in->has_info1 && !strcmp(name, "PF EXCP"))
		code = explain_error_code(in->info1, EXPLAIN_PF);
	for (size_t i = 0; in->has_info1 && !code && i < sizeof(layouts) / sizeof(*layouts); i++) {
		if (!fits(layouts[i].name, name) ||
		    (layouts[i].isa && isa && layouts[i].isa != isa))
			continue;
		layouts[i].put(fields, in->info1);
		decoded = true;
		break;
	}
	if (in->has_info2 && !strcmp(name, "NPF"))
		put_address(o, "gpa", in->info2);
	if (in->has_info2 && !strcmp(name, "PF EXCP"))
		put_address(o, "gva", in->info2);
	/* Kernels before 5.10 print the interruption as the second info. */
	if ((in->has_intr_info && (in->intr_info || exception)) ||
	    (!in->has_intr_info && in->has_info2 && exception)) {
		bool pf = interruption(fields, in->has_intr_info ? in->intr_info : in->info2);

		if (pf && exception && in->has_error_code)
			code = explain_error_code(in->error_code, EXPLAIN_PF);
		if (pf && exception && in->has_info1)
			put_address(o, "gva", in->info1);
		decoded |= exception;
	}
	if (in->has_info1 && !code && !decoded && in->info1)
		part(fields, in->info1, 63, 0, "info1", "not decoded for this exit");
	if (code)
		json_put(o, "error_code", code);
	if (json_array_size(fields))
		json_put(o, "fields", fields);
	else
		json_decref(fields);
}

json_t *explain_exit(const char *given, enum exit_isa isa, const struct explain_infos *infos,
		     bool *found)
{
	const char *name = kernel_name(given);
	char as[OUT_TEXT * 2] = "";
	uint32_t vmx = 0, svm = 0;
	bool is_vmx = isa != EXIT_ISA_SVM && exit_reason_number(EXIT_ISA_VMX, name, &vmx);
	bool is_svm = isa != EXIT_ISA_VMX && exit_reason_number(EXIT_ISA_SVM, name, &svm);
	json_t *o = explain_new("exit", given);

	*found = is_vmx || is_svm;
	if (is_vmx && is_svm)
		snprintf(as, sizeof(as), "VMX exit reason %" PRIu32 "; SVM exit code 0x%" PRIx32,
			 vmx, svm);
	else if (is_vmx)
		snprintf(as, sizeof(as), "VMX exit reason %" PRIu32, vmx);
	else
		snprintf(as, sizeof(as), "SVM exit code 0x%" PRIx32, svm);
	json_put(o, "as", json_string(as));
	put_infos(o, name,
		  is_vmx == is_svm ? EXIT_ISA_UNKNOWN
		  : is_vmx	   ? EXIT_ISA_VMX
				   : EXIT_ISA_SVM,
		  infos);
	for (size_t i = 0; *found && i < N_EXITS; i++) {
		if (!fits(exits[i].name, name))
			continue;
		json_put(o, "says", json_string(exits[i].says));
		json_put(o, "kvm", json_string(exits[i].kvm));
		json_put(o, "kvmsim",
			 json_string(exits[i].model ? exits[i].model : "not modelled"));
		break;
	}
	return o;
}
