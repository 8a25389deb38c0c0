// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/exit_reasons.h"
#include "traces/host/steps.h"

/* Records as "name=value name=value": trace-cmd report -R, and what it cannot parse. */

static const struct raw_field {
	uint8_t event, field;
	const char *name;
} raw_fields[] = {
#define FIELD(event, name, field) {HOST_##event, HOST_F_##field, name},
#include "traces/host/dat_fields.def"
};

/* Whether a field is printed as hex without 0x: as the kernel's own text of the event does. */
static bool bare_hex(enum host_event_id id, enum host_field f)
{
	switch (f) {
	case HOST_F_rip:
	case HOST_F_address:
	case HOST_F_gpa:
	case HOST_F_gva:
	case HOST_F_gfn:
	case HOST_F_pfn:
	case HOST_F_spte:
	case HOST_F_sptep:
	case HOST_F_access:
		return true;
	case HOST_F_error_code:
		return id != HOST_kvm_inj_exception;
	case HOST_F_old:
	case HOST_F_new:
		return id == HOST_kvm_tdp_mmu_spte_changed || id == HOST_fast_page_fault;
	case HOST_F_gen:
		return id == HOST_mark_mmio_spte || id == HOST_check_mmio_spte;
	case HOST_F_nr:
		return id == HOST_kvm_msr;
	default:
		return false;
	}
}

static enum host_field field_of(const struct host_event *e, const char *name, const char *eq)
{
	for (size_t i = 0; i < sizeof(raw_fields) / sizeof(*raw_fields); i++)
		if (raw_fields[i].event == e->id && equals(name, eq, raw_fields[i].name))
			return raw_fields[i].field;
	return equals(name, eq, "vcpu_id") || equals(name, eq, "vcpu") ? HOST_F_vcpu
								       : HOST_N_FIELDS;
}

static void one_field(const char *name, const char *eq, const char *stop, bool decimal,
		      struct host_event *e)
{
	enum host_field f = field_of(e, name, eq);
	const char *p = eq + 1, *q;
	bool minus = p < stop && *p == '-', fits;
	uint64_t v;

	if (f == HOST_N_FIELDS)
		return;
	p += minus;
	if (begins(p, stop, "0x"))
		q = read_hex(p += 2, stop, &v, &fits);
	else if (!decimal && bare_hex(e->id, f))
		q = read_hex(p, stop, &v, &fits);
	else
		q = read_dec(p, stop, &v, &fits);
	if (q > p && fits && (q == stop || !is(*q, CHAR_NAME)))
		host_set(e, f, minus ? -v : v);
}

static void name_reason(struct host_event *e)
{
	uint64_t reason = e->v[HOST_F_reason];

	if (!host_has(e, HOST_F_reason))
		return;
	if (e->id == HOST_kvm_userspace_exit)
		e->reason = userspace_exit_name(reason);
	else if (host_has(e, HOST_F_isa))
		e->reason = exit_reason_name(e->v[HOST_F_isa] == 1   ? EXIT_ISA_VMX
					     : e->v[HOST_F_isa] == 2 ? EXIT_ISA_SVM
								     : EXIT_ISA_UNKNOWN,
					     reason);
}

struct matched grammar_raw(const char *p, const char *end, bool decimal, struct host_event *e)
{
	struct matched m = {.how = MATCH_BAD, .rest = p};

	for (p = skip_blanks(p, end); p < end; p = skip_blanks(p, end)) {
		const char *eq = skip(p, end, CHAR_NAME), *stop = to_blank(p, end);

		if (eq > p && eq < end && *eq == '=') {
			m.how = MATCH_WHOLE;
			one_field(p, eq, stop, decimal, e);
		} else if (m.how == MATCH_BAD) {
			return m; /* else a value with blanks in it: ARRAY[0b, 00] */
		}
		p = stop;
	}
	m.rest = end;
	if (m.how == MATCH_WHOLE)
		name_reason(e);
	return m;
}
