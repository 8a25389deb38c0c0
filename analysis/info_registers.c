// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/info_registers.h"

#include <inttypes.h>
#include <stdio.h>

#include "analysis/output.h"

static uint64_t accesses(const struct info_register *r)
{
	return r->reads + r->writes + r->ports;
}

static uint64_t all(const struct trace_info *info)
{
	return info->ops[OP_MMIO_READ] + info->ops[OP_MMIO_WRITE] + info->ops[OP_PIO];
}

static void row(struct table *t, const struct info_register *r, uint64_t per)
{
	char buf[OUT_TEXT];

	table_cell(t, "%s", r->reads ? out_u64(buf, r->reads) : "");
	table_cell(t, "%s", r->writes ? out_u64(buf, r->writes) : "");
	table_cell(t, "%s", r->ports ? out_u64(buf, r->ports) : "");
	if (per)
		table_cell(t, "%.3f", (double)accesses(r) / (double)per);
	table_end_row(t);
}

int info_registers_print(const struct trace_info *info, uint64_t per)
{
	const struct info_register sum = {.reads = info->ops[OP_MMIO_READ],
					  .writes = info->ops[OP_MMIO_WRITE],
					  .ports = info->ops[OP_PIO]};
	struct info_register rest = sum;
	struct table *t;
	int err;

	if (!all(info))
		return 0;
	t = table_create(per ? "lrrrr" : "lrrr");
	if (!t)
		return KVMSIM_ENOMEM;
	table_cell(t, "Register");
	table_cell(t, "reads");
	table_cell(t, "writes");
	table_cell(t, "port I/O");
	if (per)
		table_cell(t, "per one of %" PRIu64, per);
	table_end_row(t);
	for (size_t i = 0; i < info->n_registers; i++) {
		const struct info_register *r = &info->registers[i];

		if (per && accesses(r) * 200 < per)
			continue;
		rest.reads -= r->reads;
		rest.writes -= r->writes;
		rest.ports -= r->ports;
		table_cell(t, "%s0x%" PRIx64, r->ports ? "port " : "", r->at);
		row(t, r, per);
	}
	if (accesses(&rest)) {
		table_cell(t, "others");
		row(t, &rest, per);
	}
	table_cell(t, "all");
	row(t, &sum, per);
	putchar('\n');
	err = table_print(t, stdout);
	table_free(t);
	return err;
}

json_t *info_registers_json(const struct trace_info *info, uint64_t per)
{
	json_t *a = json_array();

	for (size_t i = 0; i < info->n_registers; i++) {
		const struct info_register *r = &info->registers[i];
		json_t *o = json_object();

		json_object_set_new(o, r->ports ? "port" : "gpa", json_u64(r->at));
		json_object_set_new(o, "reads", json_u64(r->reads));
		json_object_set_new(o, "writes", json_u64(r->writes));
		json_object_set_new(o, "port_io", json_u64(r->ports));
		if (per)
			json_object_set_new(o, "per", json_real((double)accesses(r) / (double)per));
		json_array_append_new(a, o);
	}
	return a;
}
