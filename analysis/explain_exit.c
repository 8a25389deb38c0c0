// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/output.h"

/* Exits: what they are, what KVM does, what their infos say. */

static const struct {
	const char *name, *says, *kvm;
} exits[] = {
	{"EPT_VIOLATION", "An access that the nested (EPT) tables do not allow.",
	 "handle_ept_violation(): a page fault by the qualification and the guest-physical "
	 "address."},
	{"EPT_MISCONFIG", "An EPT entry has a value that no entry may have.",
	 "KVM makes such entries on purpose, for devices: handle_ept_misconfig() emulates the "
	 "access."},
	{"NPF", "A nested page fault: an access that the nested tables do not allow.",
	 "npf_interception(): a page fault by EXITINFO1 and the guest-physical address in "
	 "EXITINFO2."},
	{"EXCEPTION_NMI", "The guest took an exception that the host asked for, or an NMI came.",
	 "A #PF here is shadow paging's (handle_exception_nmi()); most others go back to the "
	 "guest."},
	{"PF EXCP", "A page fault of the guest, which the host asked for: shadow paging.",
	 "kvm_handle_page_fault(): the shadow page tables are filled, or the guest gets the "
	 "fault."},
	{"EXTERNAL_INTERRUPT", "An interrupt of the host came while the guest ran.",
	 "The host handles it, and the guest goes on."},
	{"INTERRUPT", "An interrupt of the host came while the guest ran.",
	 "The host handles it, and the guest goes on."},
	{"HLT", "The guest halted: it waits for an interrupt.",
	 "The vCPU polls for a while and is then put to sleep until it is woken."},
	{"IO_INSTRUCTION", "The guest used an I/O port.",
	 "An emulated device's, mostly in user space."},
	{"IO", "The guest used an I/O port.", "An emulated device's, mostly in user space."},
	{"CPUID", "The guest asked for the processor's features.",
	 "Answered from the table that the VMM gave."},
	{"MSR_READ", "The guest read a model-specific register.", "kvm_get_msr(), or user space."},
	{"MSR_WRITE", "The guest wrote a model-specific register.",
	 "kvm_set_msr(): often the timer's deadline or the APIC's command."},
	{"MSR", "The guest used a model-specific register.",
	 "By EXITINFO1 a read (0) or a write (1)."},
	{"CR_ACCESS", "The guest moved to or from a control register.",
	 "Under shadow paging every load of CR3 comes here: roots are switched and synced."},
	{"INVLPG", "The guest dropped one page's translation.",
	 "Shadow paging: the spte is zapped or synced (kvm_mmu_invlpg())."},
	{"PAUSE_INSTRUCTION", "The guest spins: so many PAUSEs in a row.",
	 "kvm_vcpu_on_spin(): yields to another vCPU of the VM."},
	{"PAUSE", "The guest spins: so many PAUSEs in a row.",
	 "kvm_vcpu_on_spin(): yields to another vCPU of the VM."},
	{"APIC_ACCESS", "The guest accessed its local APIC's page.",
	 "Emulated, or accelerated by APICv."},
	{"VMCALL", "A hypercall.",
	 "kvm_emulate_hypercall(): by its number, a kick of another vCPU, say."},
	{"HYPERCALL", "A hypercall.",
	 "kvm_emulate_hypercall(): by its number, a kick of another vCPU, say."},
	{"PREEMPTION_TIMER", "The VMX preemption timer ran out.",
	 "The guest's own APIC timer is due."},
	{"INTERRUPT_WINDOW", "The guest can take interrupts again.", "One that waits is injected."},
	{"VINTR", "The guest can take interrupts again.", "One that waits is injected."},
	{"PML_FULL", "The log of dirty pages of this processor is full (512 entries).",
	 "It is flushed to the dirty bitmap or ring (kvmsim: policy pml)."},
	{"TRIPLE_FAULT", "A fault while a double fault was delivered.",
	 "The VM is reset or ended."},
	{"SHUTDOWN", "A fault while a double fault was delivered.", "The VM is reset or ended."},
	{"WBINVD", "The guest flushed the caches.",
	 "Nothing, without a device that is passed through."},
	{"XSETBV", "The guest set an extended control register.", "Checked and set."},
	{"VMREAD", "A nested hypervisor read a field of its VMCS.",
	 "Answered from vmcs12 (shadow VMCS spares it)."},
	{"VMWRITE", "A nested hypervisor wrote a field of its VMCS.",
	 "Put into vmcs12 (shadow VMCS spares it)."},
	{"VMRESUME", "A nested hypervisor enters its guest again.",
	 "vmcs12 and vmcs01 become vmcs02."},
	{"VMRUN", "A nested hypervisor enters its guest.", "Its VMCB becomes the one that runs."},
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

/* The number that @isa has for @name; false: none. */
static bool number_of(const char *name, enum exit_isa isa, uint32_t *number)
{
	for (uint32_t i = 0; i < 0x800; i++) {
		struct host_text t = exit_reason_name(isa, i);

		if (t.len == strlen(name) && !memcmp(t.at, name, t.len)) {
			*number = i;
			return true;
		}
	}
	return false;
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
/* Intel 25.9.2, table 25-17; AMD 15.20 has the same layout in EXITINTINFO. */
static void interruption(json_t *f, uint64_t i)
{
	static const char *const types[] = {"an external interrupt",
					    "reserved",
					    "an NMI",
					    "a hardware exception",
					    "a software interrupt",
					    "a privileged software exception",
					    "a software exception",
					    "another event"};

	if (!(i >> 31 & 1)) {
		part(f, i, 31, 31, "valid", "no interruption");
		return;
	}
	part(f, i, 7, 0, "vector", (i & 0xff) == 14 && (i >> 8 & 7) == 3 ? "#PF" : "its number");
	part(f, i, 10, 8, "type", types[i >> 8 & 7]);
	part(f, i, 11, 11, "error code", i >> 11 & 1 ? "there is one" : "there is none");
}

/* What info1 is, by exit; the fields of it go to @o. */
static void put_infos(json_t *o, const char *name, enum exit_isa isa,
		      const struct explain_infos *in)
{
	json_t *fields = json_array(), *code = NULL;
	char hex[OUT_TEXT];

	if (in->has_info1 && !strcmp(name, "EPT_VIOLATION"))
		code = explain_error_code(in->info1, EXPLAIN_EPT);
	else if (in->has_info1 && !strcmp(name, "NPF"))
		code = explain_error_code(in->info1, EXPLAIN_NPF);
	else if (in->has_info1 && !strcmp(name, "PF EXCP"))
		code = explain_error_code(in->info1, EXPLAIN_PF);
	else if (in->has_info1 && !strcmp(name, "IO_INSTRUCTION"))
		vmx_io(fields, in->info1);
	else if (in->has_info1 && !strcmp(name, "IO"))
		svm_io(fields, in->info1);
	else if (in->has_info1 && !strcmp(name, "CR_ACCESS"))
		cr_access(fields, in->info1);
	else if (in->has_info1 && !strcmp(name, "APIC_ACCESS"))
		part(fields, in->info1, 11, 0, "offset", "in the APIC's page");
	if (in->has_info2 && (!strcmp(name, "NPF") || !strcmp(name, "PF EXCP"))) {
		snprintf(hex, sizeof(hex), "0x%" PRIx64, in->info2);
		json_put(o, name[0] == 'N' ? "gpa" : "gva", json_string(hex));
	}
	if (in->has_intr_info && (in->intr_info || !strcmp(name, "EXCEPTION_NMI")))
		interruption(fields, in->intr_info);
	else if (in->has_info2 && isa == EXIT_ISA_VMX && !strcmp(name, "EXCEPTION_NMI"))
		interruption(fields, in->info2); /* kernels before 5.10 print it as the second */
	if (code) {
		json_put(o, "error_code", code);
	} else if (in->has_info1 && !json_array_size(fields) && in->info1) {
		part(fields, in->info1, 63, 0, "info1", "not decoded for this exit");
	}
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
	bool is_vmx = isa != EXIT_ISA_SVM && number_of(name, EXIT_ISA_VMX, &vmx);
	bool is_svm = isa != EXIT_ISA_VMX && number_of(name, EXIT_ISA_SVM, &svm);
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
	for (size_t i = 0; i < N_EXITS; i++) {
		if (strcmp(exits[i].name, name) != 0)
			continue;
		json_put(o, "says", json_string(exits[i].says));
		json_put(o, "kvm", json_string(exits[i].kvm));
		break;
	}
	return o;
}
