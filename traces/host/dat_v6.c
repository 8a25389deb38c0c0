// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "traces/host/dat_file.h"

/* Version 6: its parts follow each other, and each says how long it is, down to the CPUs' table. */

struct walk {
	struct dat_file *f;
	uint64_t at;
	bool cut; /* the file ended; nothing more is read */
};

static uint64_t take(struct walk *w, unsigned bytes)
{
	uint8_t raw[8];

	if (w->cut || !dat_get(w->f, w->at, raw, bytes)) {
		w->cut = true;
		return 0;
	}
	w->at += bytes;
	return dat_number(w->f, raw, bytes);
}

static void pass(struct walk *w, uint64_t bytes)
{
	if (w->cut || bytes > w->f->size - w->at)
		w->cut = true;
	else
		w->at += bytes;
}

static bool is(struct walk *w, const char *word, size_t len)
{
	char got[16];

	if (w->cut || !dat_get(w->f, w->at, got, len) || memcmp(got, word, len))
		return false;
	w->at += len;
	return true;
}

static void pass_string(struct walk *w)
{
	while (take(w, 1) && !w->cut)
		;
}

/* The bytes from @from to here; the file's end before was told by w->cut. */
static int keep(struct walk *w, uint64_t from, struct dat_blob *out)
{
	if (w->cut || w->at - from > DAT_META_MAX)
		return 0;
	out->len = w->at - from;
	out->at = malloc(out->len + 1);
	if (!out->at)
		return KVMSIM_ENOMEM;
	out->at[out->len] = 0;
	if (!dat_get(w->f, from, out->at, out->len)) {
		free(out->at);
		out->at = NULL;
		w->cut = true;
	}
	return 0;
}

static int formats(struct walk *w)
{
	uint64_t from = w->at;
	int rc;

	if (!is(w, "header_page", 12))
		w->cut = true;
	pass(w, take(w, 8));
	if (!is(w, "header_event", 13))
		w->cut = true;
	pass(w, take(w, 8));
	rc = keep(w, from, &w->f->headers);

	from = w->at;
	for (uint64_t n = take(w, 4); n && !w->cut; n--)
		pass(w, take(w, 8));
	rc = rc ? rc : keep(w, from, &w->f->ftrace);

	from = w->at;
	for (uint64_t systems = take(w, 4); systems && !w->cut; systems--) {
		pass_string(w);
		for (uint64_t n = take(w, 4); n && !w->cut; n--)
			pass(w, take(w, 8));
	}
	return rc ? rc : keep(w, from, &w->f->formats);
}

static int options(struct walk *w)
{
	int rc = 0;

	while (!rc && !w->cut) {
		unsigned id = take(w, 2);
		uint64_t len, from;
		struct dat_blob data = {0};

		if (!id)
			break;
		len = take(w, 4);
		from = w->at;
		pass(w, len);
		if (id == DAT_PROCMAPS || id == DAT_CPUSTAT) /* may be long; not needed */
			continue;
		rc = keep(w, from, &data);
		if (!rc && data.at)
			rc = dat_option(w->f, id, data.at, data.len);
		free(data.at);
	}
	return rc;
}

/* "flyrecord" and the table of a buffer's CPUs. */
static void table(struct walk *w, struct dat_buffer *b)
{
	for (uint32_t i = 0; i < b->n_cpus; i++) {
		b->cpu[i].cpu = i;
		b->cpu[i].offset = take(w, 8);
		b->cpu[i].size = take(w, 8);
	}
}

static void drop_buffer(struct dat_file *f, unsigned i)
{
	free(f->buffer[i].name);
	free(f->buffer[i].clock);
	free(f->buffer[i].cpu);
	memmove(f->buffer + i, f->buffer + i + 1, (f->n_buffers - i - 1) * sizeof(*f->buffer));
	f->n_buffers--;
}

/* The tables of the instances, which options told of. One whose table is cut off is left out. */
static int instances(struct dat_file *f)
{
	for (unsigned i = 1; i < f->n_buffers;) {
		struct dat_buffer *b = &f->buffer[i];
		struct walk w = {.f = f, .at = b->offset, .cut = b->offset > f->size};

		free(b->cpu);
		b->n_cpus = f->n_cpus;
		b->cpu = calloc(b->n_cpus ? b->n_cpus : 1, sizeof(*b->cpu));
		if (!b->cpu)
			return KVMSIM_ENOMEM;
		if (is(&w, "flyrecord", 10)) {
			table(&w, b);
			if (!w.cut) {
				i++;
				continue;
			}
		}
		f->lost_tables = true;
		drop_buffer(f, i);
	}
	return 0;
}

int dat_read_v6(struct dat_file *f)
{
	struct walk w = {.f = f, .at = f->body};
	struct dat_buffer *top;
	uint64_t from, len;
	uint32_t cpus;
	int rc = formats(&w);

	if (rc || w.cut)
		return rc;
	pass(&w, take(&w, 4)); /* kallsyms */
	pass(&w, take(&w, 4)); /* printk */
	from = w.at;
	pass(&w, take(&w, 8));
	rc = keep(&w, from, &f->cmdlines);
	cpus = take(&w, 4);
	f->n_cpus = cpus <= DAT_MAX_CPUS ? cpus : 0;
	if (rc || w.cut)
		return rc;
	top = dat_add_buffer(f, "", NULL, 0);
	if (!top)
		return KVMSIM_ENOMEM;
	if (is(&w, "options  ", 10)) {
		rc = options(&w);
		if (rc)
			return rc;
	}
	if (is(&w, "latency  ", 10)) {
		f->latency = true;
		drop_buffer(f, 0);
		return 0;
	}
	if (!is(&w, "flyrecord", 10)) {
		drop_buffer(f, 0);
		return 0;
	}
	top = &f->buffer[0];
	free(top->cpu);
	top->n_cpus = f->n_cpus;
	top->cpu = calloc(top->n_cpus ? top->n_cpus : 1, sizeof(*top->cpu));
	if (!top->cpu)
		return KVMSIM_ENOMEM;
	table(&w, top);
	if (w.cut) {
		while (f->n_buffers)
			drop_buffer(f, f->n_buffers - 1);
		return 0;
	}
	if (f->clock_behind) {
		char text[512];

		len = take(&w, 8);
		len = len < sizeof(text) ? len : sizeof(text);
		if (!w.cut && dat_get(f, w.at, text, len))
			dat_clock(f, text, len);
	}
	return instances(f);
}
