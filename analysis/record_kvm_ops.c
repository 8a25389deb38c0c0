// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/record_kvm_ops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "analysis/output.h"
#include "analysis/record_kvm.h"
#include "workloads/ops_program.h"
#include "workloads/scenario_file.h"

struct rows {
	const struct kvm_ops_opts *opts;
	const char *mmu;
	char mode[64];
	struct csv_out csv;
};

/* ---- what this machine's KVM is to the model ---- */

static bool parameter(const char *module, const char *name, bool without)
{
	char path[96];
	FILE *f;
	int c;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	f = fopen(path, "re");
	if (!f)
		return without;
	c = fgetc(f);
	fclose(f);
	return c == 'Y' || c == '1';
}

static bool nested_paging(void)
{
	const char *module = record_kvm_module();

	if (!strcmp(module, "kvm_amd"))
		return parameter(module, "npt", true);
	return !strcmp(module, "kvm_intel") && parameter(module, "ept", true);
}

/* The kernel of the model's that is nearest to this one. */
static const char *kernel(bool tdp)
{
	unsigned major = 0, minor = 0;
	struct utsname u;

	uname(&u);
	sscanf(u.release, "%u.%u", &major, &minor);
	minor += major > 6 ? 100 : 0;
	if (major < 6 || minor < 12)
		return "6.1";
	return tdp || minor < 14 ? "6.13" : "6.18";
}

static void describe(struct rows *r)
{
	bool nested = nested_paging(), tdp = nested && parameter("kvm", "tdp_mmu", false);

	r->mmu = tdp ? "npt1-tdp1" : nested ? "npt1-tdp0" : "npt0-long64";
	snprintf(r->mode, sizeof(r->mode), "cpl3+%s+%s", kernel(tdp),
		 parameter("kvm", "mmio_caching", true) ? "mmio-gen" : "vcpu-cache");
}

/* ---- rows ---- */

static void optional(struct csv_out *c, int64_t v)
{
	if (v < 0)
		csv_text(c, "");
	else
		csv_field(c, "%" PRId64, v);
}

static void row(struct rows *r, const struct kvm_ops_phase *p, const char *kind, const char *name,
		int64_t value, const char *unit, const uint64_t *after)
{
	struct csv_out *c = &r->csv;
	char note[64] = "";
	int used = 0;

	if (after)
		used = snprintf(note, sizeof(note), "abs_after=%" PRIu64, *after);
	if (p->occurrence > 1)
		snprintf(note + used, sizeof(note) - (size_t)used, "%soccurrence=%u",
			 used ? ";" : "", p->occurrence);
	csv_text(c, r->opts->program->name);
	csv_text(c, r->mmu);
	csv_text(c, r->mode);
	csv_field(c, "%" PRIu64, r->opts->slot_pages);
	csv_text(c, r->opts->guest_2m ? "2m" : "4k");
	csv_text(c, "-");
	optional(c, p->nr_dirty);
	optional(c, p->round);
	csv_text(c, p->name);
	csv_field(c, "%s:%s", kind, name);
	csv_field(c, "%" PRId64, value);
	csv_text(c, unit);
	csv_text(c, note);
	csv_end_row(c);
}

static int phase(void *ctx, const struct kvm_ops_phase *p)
{
	struct rows *r = ctx;

	for (size_t i = 0; i < p->n; i++) {
		if (p->change[i] || (p->gauge[i] && p->after[i]))
			row(r, p, "stat", p->stat[i], p->change[i], "delta",
			    p->gauge[i] ? &p->after[i] : NULL);
	}
	if (p->result)
		row(r, p, "res", p->result, (int64_t)p->value, "count", NULL);
	return 0;
}

static void headings(struct csv_out *c)
{
	static const char *const columns[] = {
		"case",	 "mmu",	  "kvm_mode", "slot_pages", "guest_pte", "pattern", "nr_dirty",
		"round", "phase", "quantity", "value",	    "unit",	 "note"};

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		csv_text(c, columns[i]);
	csv_end_row(c);
}

static int read_program(const char *path, const struct kvmsim_errsink *errors,
			struct ops_program *out)
{
	char error[256], *text;
	size_t len;
	int err = scenario_read_file(path, errors, &text, &len);

	if (err)
		return err;
	if (ops_parse(out, text, path, error, sizeof(error)))
		err = kvmsim_err(errors, KVMSIM_EPARSE, "%s", error);
	free(text);
	return err;
}

int record_kvm_ops(const char *path, const struct kvm_ops_opts *opts, FILE *to)
{
	struct ops_program *program = calloc(1, sizeof(*program));
	struct kvm_ops_opts o = *opts;
	struct rows r = {.opts = &o, .csv = {.to = to}};
	int err;

	if (!program)
		return KVMSIM_ENOMEM;
	o.program = program;
	o.phase = phase;
	o.ctx = &r;
	describe(&r);
	err = read_program(path, opts->errors, program);
	if (!err) {
		headings(&r.csv);
		err = kvm_ops_play(&o);
	}
	free(program);
	return err;
}
