// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/bench/bench.h"
#include "traces/host/host.h"
#include "traces/import_host.h"

/*
 * How fast a host's events come out of ftrace's text, of a trace.dat and of a .kvt. The text and
 * the trace.dat are recorded ones, over and over until they are long enough.
 */
#define TEXT	  "tests/golden/trace-I.txt.gz"
#define DAT	  "traces/recorded/dat-exits-v6.dat"
#define TIMES	  200u	/* 34 MB of text */
#define DAT_TIMES 2000u /* 24 MB */

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

/* A file of zlib's or a plain one, whole. */
static uint8_t *whole(const char *path, size_t *len)
{
	size_t room = 1u << 22;
	uint8_t *bytes = need(malloc(room));
	gzFile f = gzopen(path, "rb");
	int n = f ? gzread(f, bytes, (unsigned)room) : -1;

	if (n <= 0 || (size_t)n == room)
		abort();
	gzclose(f);
	*len = (size_t)n;
	return bytes;
}

/* The lines from the first event on, TIMES times. */
static void write_text(FILE *to)
{
	size_t len;
	uint8_t *text = whole(TEXT, &len), *first = need(memchr(text, '\n', len));

	first++;
	for (unsigned i = 0; i < TIMES; i++)
		fwrite(first, 1, len - (size_t)(first - text), to);
	free(text);
}

/*
 * Version 6 (trace-cmd.dat.v6(5)): before "options" the number of CPUs; behind "flyrecord" each
 * CPU's place and size in the file; then their pages, which begin with the time of their first
 * record. Here DAT_TIMES as many, each time a second later.
 */
static void write_dat(FILE *to)
{
	static const char before[] = "options  ", behind[] = "flyrecord";
	size_t len;
	uint8_t *dat = whole(DAT, &len), *mark = need(memmem(dat, len, before, sizeof(before))),
		*table = need(memmem(dat, len, behind, sizeof(behind)));
	uint64_t at, size, time, end;
	uint32_t n_cpus, page;

	memcpy(&n_cpus, mark - sizeof(n_cpus), sizeof(n_cpus));
	table += sizeof(behind);
	/* behind the version's "6", the byte order and the size of a long */
	memcpy(&page, dat + 10 + 2 + 1 + 1, sizeof(page));
	memcpy(&end, table, sizeof(end));
	fwrite(dat, 1, (size_t)(table - dat), to);
	for (uint32_t i = 0; i < n_cpus; i++) {
		memcpy(&size, table + 16 * i + 8, sizeof(size));
		size *= DAT_TIMES;
		fwrite(&end, 1, sizeof(end), to);
		fwrite(&size, 1, sizeof(size), to);
		end += size;
	}
	memcpy(&at, table, sizeof(at));
	fwrite(table + 16 * n_cpus, 1, (size_t)(dat + at - table) - 16 * n_cpus, to);
	for (uint32_t i = 0; i < n_cpus; i++) {
		memcpy(&at, table + 16 * i, sizeof(at));
		memcpy(&size, table + 16 * i + 8, sizeof(size));
		for (uint32_t k = 0; k < DAT_TIMES; k++)
			for (uint8_t *p = dat + at; p < dat + at + size; p += page) {
				memcpy(&time, p, sizeof(time));
				time += k ? 1000000000u : 0;
				memcpy(p, &time, sizeof(time));
				fwrite(p, 1, page, to);
			}
	}
	free(dat);
}

static uint64_t fields; /* what was read, so that it is read */

static int count(void *ctx, const struct host_event *e)
{
	(void)ctx;
	fields += e->have;
	return 0;
}

static uint64_t read_events(void *path)
{
	const struct host_opts opts = {.tables = NULL};
	const struct host_sink sink = {.event = count};
	struct host_result result;

	if (host_read(path, &opts, &sink, NULL, &result))
		abort();
	return result.counts.records;
}

static void measure(const char *name, char *path, const char *bound)
{
	bench_run(name, "events", read_events, path, bound);
}

static char *file(const char *end, void (*write)(FILE *to))
{
	static char paths[3][40];
	static unsigned n;
	char *path = paths[n++];
	int fd;
	FILE *f;

	snprintf(path, sizeof(paths[0]), "/tmp/kvmsim-bench-XXXXXX%s", end);
	fd = mkstemps(path, (int)strlen(end));
	f = fd < 0 ? NULL : fdopen(fd, "wb");
	need(f);
	if (write)
		write(f);
	if (fclose(f))
		abort();
	return path;
}

int main(void)
{
	static const struct import_host_opts plain;
	char *text = file(".txt", write_text), *dat = file(".dat", write_dat),
	     *native = file(".kvt", NULL);
	struct import_host_file from = {.path = text};
	struct import_host_stats st;

	if (import_host(&from, 1, &plain, native, NULL, &st))
		abort();
	measure("events: ftrace text", text,
		"its fields' names and numbers: 100 bytes of text each");
	measure("events: trace.dat", dat, "a record's fields, found by their format");
	measure("events: .kvt", native, "columns unpacked and put together to events of 544 bytes");
	unlink(text);
	unlink(dat);
	unlink(native);
	return 0;
}
