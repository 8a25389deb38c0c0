// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/tracefs_dat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "analysis/cli.h"
#include "traces/outfile.h"

/* Options of trace-cmd.dat.v6(5). */
enum { OPT_DONE, OPT_CPUSTAT = 2, OPT_CLOCK = 4, OPT_UNAME = 5, OPT_VERSION = 9 };

struct out {
	FILE *to;
	uint64_t at;
	bool failed;
	const struct tracefs *t;
};

static void put(struct out *o, const void *bytes, size_t len)
{
	o->failed |= fwrite(bytes, 1, len, o->to) != len;
	o->at += len;
}

/* In this machine's byte order, as the file's head says. */
static void put_number(struct out *o, uint64_t v, unsigned bytes)
{
	uint8_t raw[8];
	const uint16_t one = 1;
	bool little = *(const uint8_t *)&one;

	for (unsigned i = 0; i < bytes; i++)
		raw[little ? i : bytes - 1 - i] = v >> 8 * i;
	put(o, raw, bytes);
}

static void put_sized(struct out *o, const void *bytes, size_t len, unsigned size)
{
	put_number(o, len, size);
	put(o, bytes, len);
}

/* A file of tracefs with its length before it. */
static void put_file(struct out *o, bool top, const char *file)
{
	size_t len;
	char *text = tracefs_read(o->t, top, file, &len);

	o->failed |= !text;
	put_sized(o, text, text ? len : 0, 8);
	free(text);
}

static size_t system_length(const char *event)
{
	return strcspn(event, "/");
}

static bool same_system(const char *a, const char *b)
{
	size_t len = system_length(a);

	return len == system_length(b) && !strncmp(a, b, len);
}

static void put_formats(struct out *o, char *const *events, size_t n)
{
	uint32_t systems = 0;

	for (size_t i = 0; i < n; i++)
		systems += !i || !same_system(events[i], events[i - 1]);
	put_number(o, systems, 4);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && same_system(events[i], events[end]); end++)
			;
		put(o, events[i], system_length(events[i]));
		put(o, "", 1);
		put_number(o, end - i, 4);
		for (size_t k = i; k < end; k++) {
			char file[256];

			snprintf(file, sizeof(file), "events/%s/format", events[k]);
			put_file(o, false, file);
		}
	}
}

static void put_option(struct out *o, unsigned id, const char *text)
{
	put_number(o, id, 2);
	put_sized(o, text, strlen(text) + 1, 4);
}

static void put_options(struct out *o, const struct tracefs_cpu *cpus, unsigned n_cpus,
			const char *clock)
{
	struct utsname u;
	char text[300];

	put(o, "options  ", 10);
	put_option(o, OPT_CLOCK, clock);
	if (!uname(&u)) {
		snprintf(text, sizeof(text), "%s %s %s %s", u.sysname, u.nodename, u.release,
			 u.machine);
		put_option(o, OPT_UNAME, text);
	}
	snprintf(text, sizeof(text), "kvmsim %s", kvmsim_version);
	put_option(o, OPT_VERSION, text);
	for (unsigned i = 0; i < n_cpus; i++) {
		char *stats;

		if (asprintf(&stats, "CPU: %u\n%s", cpus[i].cpu,
			     cpus[i].stats ? cpus[i].stats : "") < 0) {
			o->failed = true;
			continue;
		}
		put_option(o, OPT_CPUSTAT, stats);
		free(stats);
	}
	put_number(o, OPT_DONE, 2);
}

static void put_pages(struct out *o, const struct tracefs_cpu *c)
{
	static uint8_t buf[65536];
	uint64_t at = 0;

	while (at < c->bytes && !o->failed) {
		size_t want = c->bytes - at < sizeof(buf) ? c->bytes - at : sizeof(buf);
		ssize_t n = pread(c->pages, buf, want, at);

		if (n <= 0) {
			o->failed = true;
			break;
		}
		put(o, buf, n);
		at += n;
	}
}

static void put_all(struct out *o, char *const *events, size_t n_events,
		    const struct tracefs_cpu *cpus, unsigned n_cpus, uint32_t page_size,
		    const char *clock)
{
	const uint16_t one = 1;
	uint64_t at;

	put(o, "\x17\x08\x44tracing6", 12);
	put_number(o, !*(const uint8_t *)&one, 1);
	put_number(o, sizeof(long), 1);
	put_number(o, page_size, 4);
	put(o, "header_page", 12);
	put_file(o, true, "events/header_page");
	put(o, "header_event", 13);
	put_file(o, true, "events/header_event");
	put_number(o, 0, 4); /* none of ftrace's own */
	put_formats(o, events, n_events);
	put_number(o, 0, 4); /* no kallsyms: no event recorded here has an address of code */
	put_number(o, 0, 4); /* no formats of trace_printk() */
	put_file(o, true, "saved_cmdlines");
	put_number(o, n_cpus, 4);
	put_options(o, cpus, n_cpus, clock);
	put(o, "flyrecord", 10);
	at = o->at + 16ull * n_cpus + 8 + strlen(clock);
	at = (at + page_size - 1) / page_size * page_size;
	for (unsigned i = 0; i < n_cpus; i++) {
		put_number(o, at, 8);
		put_number(o, cpus[i].bytes, 8);
		at += (cpus[i].bytes + page_size - 1) / page_size * page_size;
	}
	put_sized(o, clock, strlen(clock), 8);
	for (unsigned i = 0; i < n_cpus; i++) {
		while (o->at % page_size && !o->failed)
			put(o, "", 1);
		put_pages(o, &cpus[i]);
	}
}

int tracefs_dat_write(const char *path, const struct tracefs *t, char *const *events,
		      size_t n_events, const struct tracefs_cpu *cpus, unsigned n_cpus,
		      uint32_t page_size, const struct kvmsim_errsink *errors)
{
	struct outfile file;
	struct out o = {.t = t};
	const char *what = "";
	size_t len;
	char *clock = tracefs_read(t, false, "trace_clock", &len);
	int err = 0, copy;

	if (!clock)
		return kvmsim_err(errors, KVMSIM_EIO, "%s/trace_clock: %s", t->instance,
				  strerror(errno));
	clock[strcspn(clock, "\n")] = 0;
	if (outfile_open(&file, path, &what)) {
		err = kvmsim_err(errors, KVMSIM_EIO, "%s: %s: %s", path, what, strerror(errno));
		goto out;
	}
	copy = dup(file.fd);
	o.to = copy >= 0 ? fdopen(copy, "w") : NULL;
	if (!o.to) {
		err = kvmsim_err(errors, KVMSIM_EIO, "%s: %s", path, strerror(errno));
		goto out;
	}
	put_all(&o, events, n_events, cpus, n_cpus, page_size, clock);
	if (fclose(o.to) || o.failed || outfile_finish(&file) != OUTFILE_DONE)
		err = kvmsim_err(errors, KVMSIM_EIO, "%s: writing failed: %s", path,
				 strerror(errno));
out:
	outfile_abort(&file);
	free(clock);
	return err;
}
