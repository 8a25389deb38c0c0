// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/info_kvt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/cli.h"
#include "analysis/info_registers.h"
#include "analysis/output.h"
#include "analysis/trace_info.h"

#define ANY_MARK UINT64_MAX

static const char *const unseen_words[] = {
	"loads",
	"guest virtual addresses",
	"stores after the first to a page in an epoch",
	"device DMA",
	"page walks' accessed and dirty bits",
	"a clock common to the vCPUs",
	"stores",
	"accesses without a fault",
};
#define N_UNSEEN (sizeof(unseen_words) / sizeof(unseen_words[0]))

static const char *clock_name(enum trace_clock clock)
{
	switch (clock) {
	case TRACE_CLOCK_INSN:
		return "guest instructions";
	case TRACE_CLOCK_NS:
		return "nanoseconds";
	default:
		return "TSC cycles";
	}
}

/* The marks of the phases, in the order in which they first come; at most @max of them. */
static size_t marks_of(const struct trace_info *info, uint64_t *marks, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < info->n_epochs; i++) {
		size_t k = 0;

		while (k < n && marks[k] != info->epochs[i]->mark)
			k++;
		if (k == n && n < max)
			marks[n++] = info->epochs[i]->mark;
	}
	return n;
}

#define MAX_MARKS 256 /* a mark is one byte */

static size_t full_epochs(const struct trace_info *info)
{
	size_t n = 0;

	for (size_t i = 0; i < info->n_epochs; i++)
		n += info->epochs[i]->full;
	return n;
}

/* ---- for people ---- */

static void line(const char *label, const char *words)
{
	if (words && *words)
		printf("%-13s %s\n", label, words);
}

static void print_metadata(const char *path, const struct trace_meta *m,
			   const struct trace_stats *st, const struct trace_info *info)
{
	char a[OUT_TEXT], b[OUT_TEXT], c[OUT_TEXT];
	const char *separator = "";

	line("Trace", path);
	printf("%-13s version %" PRIu32 "%s\n", "Format", m->version,
	       st->torn ? ", torn: only what was written before" : "");
	line("Source", m->source);
	line("Kernel", m->kernel);
	line("Workload", m->workload);
	printf("%-13s %s", "Clock", clock_name(m->clock));
	if (m->clock_hz)
		printf(", %s per second", out_u64(a, m->clock_hz));
	putchar('\n');
	if (m->epoch_len)
		printf("%-13s %s %s\n", "Epoch", out_u64(a, m->epoch_len), clock_name(m->clock));
	printf("%-13s ", "Not recorded");
	for (size_t i = 0; i < N_UNSEEN; i++) {
		if (!(m->unseen & 1u << i))
			continue;
		printf("%s%s", separator, unseen_words[i]);
		separator = "; ";
	}
	printf("%s\n", m->unseen ? "" : "nothing stated");
	printf("%-13s %" PRIu32 "\n", "vCPUs", m->n_vcpus);
	printf("%-13s %s in %s blocks, %s bytes\n", "Ops", out_u64(a, st->ops),
	       out_u64(b, st->blocks), out_u64(c, st->bytes));
	printf("%-13s %s\n", m->clock == TRACE_CLOCK_INSN ? "Instructions" : "Elapsed",
	       out_u64(a, info->instructions));
	printf("%-13s %s, of them full %s\n", "Epochs", out_u64(a, info->n_epochs),
	       out_u64(b, full_epochs(info)));
	if (info->outside)
		printf("%-13s %s stores\n", "Outside slots", out_u64(a, info->outside));
}

static int finish_table(struct table *t)
{
	int err;

	putchar('\n');
	err = table_print(t, stdout);
	table_free(t);
	return err;
}

static int print_slots(const struct trace_meta *m)
{
	struct table *t = table_create("lrr");
	char buf[OUT_TEXT];

	if (!t || !m->n_slots) {
		table_free(t);
		return t ? 0 : KVMSIM_ENOMEM;
	}
	table_cell(t, "Slot");
	table_cell(t, "first gfn");
	table_cell(t, "pages");
	for (uint32_t s = 0; s < m->n_slots; s++) {
		table_cell(t, "%s", m->slots[s].name);
		table_cell(t, "0x%" PRIx64, m->slots[s].base_gfn);
		table_cell(t, "%s", out_u64(buf, m->slots[s].npages));
	}
	return finish_table(t);
}

static int print_ops(const struct trace_info *info)
{
	struct table *t = table_create("lr");
	char buf[OUT_TEXT];

	if (!t)
		return KVMSIM_ENOMEM;
	table_cell(t, "Op");
	table_cell(t, "number");
	for (int k = 0; k < OP_LAST; k++) {
		if (!info->ops[k])
			continue;
		table_cell(t, "%s", guest_op_name(k));
		table_cell(t, "%s", out_u64(buf, info->ops[k]));
	}
	return finish_table(t);
}

static int print_range(struct table *t, const struct trace_meta *m, const struct trace_info *info,
		       uint64_t mark)
{
	for (uint32_t s = 0; s < m->n_slots; s++) {
		struct info_range r;
		char buf[OUT_TEXT];
		int err = trace_info_range(info, s, mark, &r);

		if (err)
			return err;
		if (mark == ANY_MARK)
			table_cell(t, "all");
		else
			table_cell(t, "%" PRIu64, mark);
		table_cell(t, "%s", m->slots[s].name);
		table_cell(t, "%s", out_u64(buf, r.n));
		if (r.n) {
			table_cell(t, "%s", out_u64(buf, r.min));
			table_cell(t, "%s%s", out_u64(buf, r.median2 / 2),
				   r.median2 % 2 ? ".5" : "");
			table_cell(t, "%s", out_u64(buf, r.max));
		}
		table_end_row(t);
	}
	return 0;
}

static int print_ranges(const struct trace_meta *m, const struct trace_info *info)
{
	static const char *const heading[] = {"Mark",	   "slot",   "full epochs",
					      "min pages", "median", "max"};
	uint64_t marks[MAX_MARKS];
	size_t n = marks_of(info, marks, MAX_MARKS);
	struct table *t;
	int err = 0;

	if (!info->has_pages || !m->n_slots || !n)
		return 0;
	t = table_create("llrrrr");
	if (!t)
		return KVMSIM_ENOMEM;
	for (int i = 0; i < 6; i++)
		table_cell(t, "%s", heading[i]);
	for (size_t i = 0; !err && i < n; i++)
		err = print_range(t, m, info, marks[i]);
	if (!err && n > 1)
		err = print_range(t, m, info, ANY_MARK);
	if (err) {
		table_free(t);
		return err;
	}
	return finish_table(t);
}

static int print_epochs(const struct trace_meta *m, const struct trace_info *info)
{
	char align[4 + TRACE_MAX_SLOTS] = "rrl", buf[OUT_TEXT];
	struct table *t;

	memset(align + 3, 'r', m->n_slots);
	t = table_create(align);
	if (!t)
		return KVMSIM_ENOMEM;
	table_cell(t, "Epoch");
	table_cell(t, "mark");
	table_cell(t, "length");
	for (uint32_t s = 0; s < m->n_slots; s++)
		table_cell(t, "%s pages", m->slots[s].name);
	for (size_t i = 0; i < info->n_epochs; i++) {
		const struct info_epoch *e = info->epochs[i];

		table_cell(t, "%s", out_u64(buf, e->number));
		table_cell(t, "%" PRIu64, e->mark);
		table_cell(t, "%s", e->full ? "full" : "cut");
		for (uint32_t s = 0; info->has_pages && s < m->n_slots; s++)
			table_cell(t, "%s", out_u64(buf, e->pages[s]));
		table_end_row(t);
	}
	return finish_table(t);
}

static int print_text(const char *path, const struct trace_meta *m, const struct trace_stats *st,
		      const struct trace_info *info, bool epochs, uint64_t per)
{
	int err;

	print_metadata(path, m, st, info);
	err = print_slots(m);
	if (!err)
		err = print_ops(info);
	if (!err)
		err = info_registers_print(info, per);
	if (!err)
		err = print_ranges(m, info);
	if (!err && epochs)
		err = print_epochs(m, info);
	return err;
}

/* ---- for programs ---- */

static json_t *slots_json(const struct trace_meta *m)
{
	json_t *a = json_array();

	for (uint32_t s = 0; s < m->n_slots; s++) {
		json_t *o = json_object();

		json_object_set_new(o, "name", json_string(m->slots[s].name));
		json_object_set_new(o, "base_gfn", json_u64(m->slots[s].base_gfn));
		json_object_set_new(o, "npages", json_u64(m->slots[s].npages));
		json_array_append_new(a, o);
	}
	return a;
}

static int ranges_json(const struct trace_meta *m, const struct trace_info *info, json_t *a)
{
	uint64_t marks[MAX_MARKS];
	size_t n = marks_of(info, marks, MAX_MARKS);

	for (size_t i = 0; i < n; i++) {
		for (uint32_t s = 0; info->has_pages && s < m->n_slots; s++) {
			struct info_range r;
			int err = trace_info_range(info, s, marks[i], &r);
			json_t *o = json_object();

			if (err) {
				json_decref(o);
				return err;
			}
			json_object_set_new(o, "mark", json_u64(marks[i]));
			json_object_set_new(o, "slot", json_string(m->slots[s].name));
			json_object_set_new(o, "full_epochs", json_u64(r.n));
			if (r.n) {
				json_object_set_new(o, "min", json_u64(r.min));
				json_object_set_new(o, "median", json_real(r.median2 / 2.0));
				json_object_set_new(o, "max", json_u64(r.max));
			}
			json_array_append_new(a, o);
		}
	}
	return 0;
}

static json_t *epochs_json(const struct trace_meta *m, const struct trace_info *info)
{
	json_t *a = json_array();

	for (size_t i = 0; i < info->n_epochs; i++) {
		const struct info_epoch *e = info->epochs[i];
		json_t *o = json_object(), *pages = json_array();

		json_object_set_new(o, "number", json_u64(e->number));
		json_object_set_new(o, "mark", json_u64(e->mark));
		json_object_set_new(o, "full", json_boolean(e->full));
		for (uint32_t s = 0; info->has_pages && s < m->n_slots; s++)
			json_array_append_new(pages, json_u64(e->pages[s]));
		json_object_set_new(o, "pages", pages);
		json_array_append_new(a, o);
	}
	return a;
}

/* NULL: no memory. */
static json_t *info_json(const char *path, const struct trace_meta *m, const struct trace_stats *st,
			 const struct trace_info *info, bool epochs, uint64_t per)
{
	json_t *o = json_object(), *unseen = json_array(), *ops = json_object(),
	       *ranges = json_array(), *file = json_string(path);
	int err = ranges_json(m, info, ranges);

	/* a path need not be UTF-8, a JSON text must be */
	json_object_set_new(o, "trace", file ? file : json_null());
	json_object_set_new(o, "version", json_u64(m->version));
	json_object_set_new(o, "torn", json_boolean(st->torn));
	json_object_set_new(o, "source", json_string(m->source));
	json_object_set_new(o, "kernel", json_string(m->kernel));
	json_object_set_new(o, "workload", json_string(m->workload));
	json_object_set_new(o, "clock", json_string(clock_name(m->clock)));
	json_object_set_new(o, "clock_hz", json_u64(m->clock_hz));
	json_object_set_new(o, "epoch_len", json_u64(m->epoch_len));
	for (size_t i = 0; i < N_UNSEEN; i++)
		if (m->unseen & 1u << i)
			json_array_append_new(unseen, json_string(unseen_words[i]));
	json_object_set_new(o, "not_recorded", unseen);
	json_object_set_new(o, "vcpus", json_u64(m->n_vcpus));
	json_object_set_new(o, "slots", slots_json(m));
	json_object_set_new(o, "blocks", json_u64(st->blocks));
	json_object_set_new(o, "block_bytes", json_u64(st->bytes));
	for (int k = 0; k < OP_LAST; k++)
		if (info->ops[k])
			json_object_set_new(ops, guest_op_name(k), json_u64(info->ops[k]));
	json_object_set_new(o, "ops", ops);
	json_object_set_new(o, "registers", info_registers_json(info, per));
	json_object_set_new(o, m->clock == TRACE_CLOCK_INSN ? "instructions" : "elapsed",
			    json_u64(info->instructions));
	json_object_set_new(o, "stores_outside_slots", json_u64(info->outside));
	json_object_set_new(o, "epochs", json_u64(info->n_epochs));
	json_object_set_new(o, "full_epochs", json_u64(full_epochs(info)));
	json_object_set_new(o, "pages_per_epoch", ranges);
	if (epochs)
		json_object_set_new(o, "epoch_list", epochs_json(m, info));
	if (err) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static int print_json(const char *path, const struct trace_meta *m, const struct trace_stats *st,
		      const struct trace_info *info, bool epochs, uint64_t per)
{
	json_t *o = info_json(path, m, st, info, epochs, per);

	return o ? json_print(o, stdout) : KVMSIM_ENOMEM;
}

/* A pipe's rest into a file of no name in its place, so that it can be read twice. 0, KVMSIM_EIO.
 */
static int stdin_to_file(void)
{
	FILE *file;
	char buf[BUFSIZ];
	ssize_t n;
	int err = 0;

	if (lseek(STDIN_FILENO, 0, SEEK_CUR) >= 0)
		return 0;
	file = tmpfile();
	if (!file)
		return kvmsim_err(&cli_errors, KVMSIM_EIO,
				  "no temporary file for standard input: %s", strerror(errno));
	while (!err && (n = read(STDIN_FILENO, buf, sizeof(buf))) != 0)
		err = n < 0 || fwrite(buf, 1, (size_t)n, file) != (size_t)n;
	err |= fflush(file) != 0 || fseek(file, 0, SEEK_SET) ||
	       dup2(fileno(file), STDIN_FILENO) < 0;
	if (err)
		kvmsim_err(&cli_errors, KVMSIM_EIO, "standard input: %s", strerror(errno));
	fclose(file);
	return err ? KVMSIM_EIO : 0;
}

/* The trace alone, or with the host's events in it. */
static int print(const char *path, const struct info_args *a, struct info_host_args *host,
		 struct trace_reader *r, const struct trace_info *info)
{
	struct trace_stats st = trace_stats(r);
	const struct trace_meta *m = trace_meta(r);
	bool events = trace_event_rows(r) > 0;
	int err, code;

	if (a->json && events) {
		host->native = info_json(path, m, &st, info, a->epochs, a->per);
		err = host->native ? 0 : KVMSIM_ENOMEM;
	} else {
		err = (a->json ? print_json : print_text)(path, m, &st, info, a->epochs, a->per);
	}
	if (err)
		kvmsim_err(&cli_errors, err, "%s", kvmsim_strerror(err));
	if (err || !events)
		return cli_exit_code(err);
	if (!a->json)
		putchar('\n');
	code = info_host(path, host);
	json_decref(host->native);
	host->native = NULL;
	return code;
}

int info_kvt(const char *path, const struct info_args *a, struct info_host_args *host)
{
	struct trace_info info = {.n_epochs = 0};
	struct trace_reader *r;
	off_t begin = 0;
	int err, code;

	if (!strcmp(path, "-")) {
		if (stdin_to_file())
			return EXIT_IO;
		begin = lseek(STDIN_FILENO, 0, SEEK_CUR);
	}
	err = trace_open(path, &cli_errors, &r);
	if (err)
		return cli_input_exit_code(err);
	err = trace_info_read(r, path, &cli_errors, &info);
	if (!strcmp(path, "-"))
		lseek(STDIN_FILENO, begin, SEEK_SET);
	code = err ? cli_input_exit_code(err) : print(path, a, host, r, &info);
	trace_info_free(&info);
	trace_close(r);
	return code;
}
