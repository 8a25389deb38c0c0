// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/events.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/kernel/vmm.h"

#define TRACEFS "/sys/kernel/tracing/"
#define BUFFER_KB                                                                                  \
	"16384" /* the largest phase, 16,384 pages written with logging on, needs half             \
		 */

/* A page of the ring buffer, include/linux/ring_buffer.h and events/header_page: 8 bytes of time,
 * 8 of commit (bytes of data, and flags), then the records. */
#define RING_PAGE_BYTES	     4096u
#define RING_HEADER_BYTES    16u
#define COMMIT_BYTES_MASK    0xfffffull
#define COMMIT_MISSED_EVENTS (1ull << 31)
/* A record begins with a 32-bit word: type or length in words in the low five bits, time delta. */
#define RECORD_TYPE_MASK   31u
#define RECORD_DELTA_SHIFT 5
#define RECORD_PADDING	   29u
#define RECORD_TIME_EXTEND 30u
#define RECORD_TIME_STAMP  31u

#define TRACEPOINTS_MAX 160
#define TRACEPOINT_IDS	65536u /* common_type has 16 bits */

struct tracepoint {
	char name[48];
	const struct event_detail *detail;
	struct {
		unsigned offset, bytes;
	} field[EVENT_FIELDS];
};
static struct tracepoint tracepoints[TRACEPOINTS_MAX];
static unsigned n_tracepoints;
static uint8_t index_of_id[TRACEPOINT_IDS]; /* 0: not ours; else 1 + index */

/* One kind of record seen: a tracepoint with certain values of its fields. */
struct kind {
	unsigned tracepoint;
	uint64_t value[EVENT_FIELDS];
	uint64_t n;
};
static struct kind kinds[EVENTS_MAX];
static size_t n_kinds;

static int fd_on = -1, fd_raw = -1;

/* "field:u64 spte;	offset:16;	size:8;	signed:0;" False: another kernel's, without a field.
 */
static bool read_fields(struct tracepoint *tp, const char *format)
{
	for (unsigned f = 0; f < EVENT_FIELDS && tp->detail->field[f].name; f++) {
		char wanted[64];
		snprintf(wanted, sizeof(wanted), " %s;", tp->detail->field[f].name);
		const char *at = strstr(format, wanted);
		const char *offset = at ? strstr(at, "offset:") : NULL;
		const char *bytes = offset ? strstr(offset, "size:") : NULL;
		if (!bytes)
			return false;
		tp->field[f].offset = (unsigned)strtoul(offset + strlen("offset:"), NULL, 10);
		tp->field[f].bytes = (unsigned)strtoul(bytes + strlen("size:"), NULL, 10);
		if (tp->field[f].bytes > sizeof(uint64_t))
			die("tracepoint %s: field %s has %u bytes", tp->name,
			    tp->detail->field[f].name, tp->field[f].bytes);
	}
	return true;
}

static void open_group(const char *group)
{
	static char text[16384];
	char path[512];
	snprintf(path, sizeof(path), TRACEFS "events/%s", group);
	DIR *dir = opendir(path);
	if (!dir)
		die_errno("%s", path);
	const struct dirent *entry;
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), TRACEFS "events/%s/%s/id", group, entry->d_name);
		if (entry->d_name[0] == '.' || read_text(path, text, sizeof(text)) < 0)
			continue;
		if (n_tracepoints == TRACEPOINTS_MAX)
			die("more than %d tracepoints", TRACEPOINTS_MAX);
		struct tracepoint *tp = &tracepoints[n_tracepoints++];
		unsigned long id = strtoul(text, NULL, 10);
		if (id >= TRACEPOINT_IDS)
			die("tracepoint %s has id %lu", entry->d_name, id);
		index_of_id[id] = (uint8_t)n_tracepoints;
		snprintf(tp->name, sizeof(tp->name), "%.47s", entry->d_name);
		tp->detail = event_detail(tp->name);
		if (!tp->detail)
			continue;
		snprintf(path, sizeof(path), TRACEFS "events/%s/%s/format", group, entry->d_name);
		if (read_text(path, text, sizeof(text)) < 0)
			die_errno("%s", path);
		if (!read_fields(tp, text))
			tp->detail = NULL;
		else
			event_detail_learn(tp->name, text);
	}
	closedir(dir);
	snprintf(path, sizeof(path), TRACEFS "events/%s/enable", group);
	write_text(path, "1");
}

void events_open(void)
{
	write_text(TRACEFS "tracing_on", "0");
	write_text(TRACEFS "options/overwrite", "0"); /* full: drop the newest, and say so */
	write_text(TRACEFS "buffer_size_kb", BUFFER_KB);
	memset(index_of_id, 0, sizeof(index_of_id));
	n_tracepoints = 0;
	open_group("kvm");
	open_group("kvmmmu");
	fd_on = open(TRACEFS "tracing_on", O_WRONLY | O_CLOEXEC);
	fd_raw = open(TRACEFS "per_cpu/cpu0/trace_pipe_raw", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd_on < 0 || fd_raw < 0)
		die_errno("tracefs");
}

void events_names(FILE *to)
{
	for (unsigned i = 0; i < n_tracepoints; i++)
		fprintf(to, "HAS ev:%s%s\n", tracepoints[i].name,
			tracepoints[i].detail ? "[]" : "");
}

void events_close(void)
{
	close(fd_on);
	close(fd_raw);
	write_text(TRACEFS "events/kvm/enable", "0");
	write_text(TRACEFS "events/kvmmmu/enable", "0");
}

static void count_record(const uint8_t *record)
{
	uint16_t id;
	memcpy(&id, record, sizeof(id));
	if (index_of_id[id] == 0)
		return;
	struct kind kind = {.tracepoint = index_of_id[id] - 1u, .n = 1};
	const struct tracepoint *tp = &tracepoints[kind.tracepoint];
	for (unsigned f = 0; tp->detail && f < EVENT_FIELDS && tp->detail->field[f].name; f++) {
		memcpy(&kind.value[f], record + tp->field[f].offset, tp->field[f].bytes);
		kind.value[f] &= tp->detail->field[f].mask;
	}
	for (size_t i = 0; i < n_kinds; i++)
		if (kinds[i].tracepoint == kind.tracepoint &&
		    memcmp(kinds[i].value, kind.value, sizeof(kind.value)) == 0) {
			kinds[i].n++;
			return;
		}
	if (n_kinds == EVENTS_MAX)
		die("more than %d kinds of events in one phase", EVENTS_MAX);
	kinds[n_kinds++] = kind;
}

static void count_page(const uint8_t *page)
{
	uint64_t commit;
	memcpy(&commit, page + sizeof(uint64_t), sizeof(commit));
	if (commit & COMMIT_MISSED_EVENTS)
		die("the ring buffer lost events");
	const uint8_t *p = page + RING_HEADER_BYTES, *end = p + (commit & COMMIT_BYTES_MASK);
	while (p < end) {
		uint32_t word, length;
		memcpy(&word, p, sizeof(word));
		memcpy(&length, p + sizeof(word), sizeof(length)); /* where the type says so */
		switch (word & RECORD_TYPE_MASK) {
		case 0:
			count_record(p + sizeof(word) + sizeof(length));
			p += sizeof(word) + length;
			break;
		case RECORD_PADDING:
			if (word >> RECORD_DELTA_SHIFT == 0)
				return; /* the rest of the page is empty */
			p += sizeof(word) + length;
			break;
		case RECORD_TIME_EXTEND:
		case RECORD_TIME_STAMP:
			p += sizeof(word) + sizeof(length);
			break;
		default:
			count_record(p + sizeof(word));
			p += sizeof(word) + sizeof(word) * (word & RECORD_TYPE_MASK);
		}
	}
}

/* count_page() reads two words of a record before it knows its type: room for the second one. */
static void drain(void (*use)(const uint8_t *page))
{
	static uint8_t page[RING_PAGE_BYTES + sizeof(uint64_t)];
	ssize_t n;
	while ((n = read(fd_raw, page, RING_PAGE_BYTES)) > 0)
		if (use)
			use(page);
	if (n < 0 && errno != EAGAIN)
		die_errno("trace_pipe_raw");
}

void events_start(void)
{
	drain(NULL);
	if (pwrite(fd_on, "1", 1, 0) != 1)
		die_errno("tracing_on");
}

void events_stop(void)
{
	if (pwrite(fd_on, "0", 1, 0) != 1)
		die_errno("tracing_on");
}

static void add(struct event_count *counts, size_t *n, const char *name, uint64_t times)
{
	for (size_t i = 0; i < *n; i++)
		if (strcmp(counts[i].name, name) == 0) {
			counts[i].n += times;
			return;
		}
	if (*n == EVENTS_MAX)
		die("more than %d events in one phase", EVENTS_MAX);
	snprintf(counts[*n].name, sizeof(counts[*n].name), "%s", name);
	counts[(*n)++].n = times;
}

static void check_dropped(void)
{
	char text[1024];
	if (read_text(TRACEFS "per_cpu/cpu0/stats", text, sizeof(text)) < 0)
		die_errno("per_cpu/cpu0/stats");
	if (!strstr(text, "\noverrun: 0\n") || !strstr(text, "\ndropped events: 0\n"))
		die("the ring buffer lost events:\n%s", text);
}

size_t events_count(struct event_count counts[EVENTS_MAX])
{
	size_t n = 0;
	n_kinds = 0;
	drain(count_page);
	check_dropped();
	for (size_t i = 0; i < n_kinds; i++) {
		const struct tracepoint *tp = &tracepoints[kinds[i].tracepoint];
		add(counts, &n, tp->name, kinds[i].n);
		if (!tp->detail)
			continue;
		char fields[40], name[96];
		tp->detail->format(fields, sizeof(fields), kinds[i].value);
		snprintf(name, sizeof(name), "%s[%s]", tp->name, fields);
		add(counts, &n, name, kinds[i].n);
	}
	return n;
}

void events_mark(const char *text)
{
	write_text(TRACEFS "trace_marker", text);
}

void events_text(FILE *to)
{
	static char line[4096];
	FILE *trace = fopen(TRACEFS "trace", "re");
	if (!trace)
		die_errno("trace");
	check_dropped();
	while (fgets(line, sizeof(line), trace))
		if (line[0] != '#')
			fputs(line, to);
	if (ferror(trace) || fclose(trace))
		die_errno("trace");
}
