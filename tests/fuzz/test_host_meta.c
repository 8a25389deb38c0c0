// SPDX-License-Identifier: GPL-3.0-or-later
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "traces/host/host.h"
#include "traces/tables/rows.h"
#include "traces/tables/tables.h"

/*
 * The samples' texts, changed in ways of which it is known what they may do: what quotes or
 * prefixes every line changes nothing, prose between two lines is so many unknown lines, what a
 * terminal breaks or a file's end cuts off is missing or the same, and whatever else happens, no
 * line counts twice. For more, build the debug variant and give it a number of rounds:
 * test_host_meta ROUNDS.
 */

struct seen {
	char *out; /* a line per event, loss, elision, row of a table */
	size_t len;
	FILE *f;
	int ret;
	struct host_result r;
};
struct text {
	char *at;
	size_t len;
};

static int event(void *ctx, const struct host_event *e)
{
	FILE *f = ((struct seen *)ctx)->f;

	fprintf(f, "%.*s %lld %lld %lld %lld.%d %d %.*s %.*s", (int)e->comm.len, e->comm.at,
		(long long)e->tid, (long long)e->tgid, (long long)e->cpu, (long long)e->time_ns,
		e->time_decimals, e->flags_width, (int)e->name.len, e->name.at, (int)e->reason.len,
		e->reason.at);
	for (int i = 0; i < HOST_N_FIELDS; i++)
		if (host_has(e, i))
			fprintf(f, " %s=%llx", host_field_name(i), (unsigned long long)e->v[i]);
	fprintf(f, "%s\n", e->role_unreliable ? " stale" : "");
	return 0;
}

static int loss(void *ctx, const struct host_loss *l)
{
	fprintf(((struct seen *)ctx)->f, "loss %lld %lld %lld %d\n", (long long)l->cpu,
		(long long)l->count, (long long)l->chunks, l->header);
	return 0;
}

static int elision(void *ctx)
{
	fputs("elision\n", ((struct seen *)ctx)->f);
	return 0;
}

static int row(void *ctx, const char *text, size_t len)
{
	fprintf(((struct seen *)ctx)->f, "row %.*s\n", (int)len, text);
	return 0;
}

static void see(struct seen *s, struct text t)
{
	struct host_sink sink = {.ctx = s, .event = event, .loss = loss, .elision = elision};
	struct tables tables;
	struct host_opts opts = {.tables = &tables};
	int fd = memfd_create("text", MFD_CLOEXEC);
	char path[64];

	memset(s, 0, sizeof(*s));
	s->f = open_memstream(&s->out, &s->len);
	if (!s->f || fd < 0 || write(fd, t.at, t.len) != (ssize_t)t.len || tables_init(&tables))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	s->ret = host_read(path, &opts, &sink, NULL, &s->r);
	tables_put_rows(&tables, row, s);
	tables_free(&tables);
	fclose(s->f);
	close(fd);
}

static uint64_t rnd;

static uint64_t draw(uint64_t n)
{
	rnd ^= rnd << 13;
	rnd ^= rnd >> 7;
	rnd ^= rnd << 17;
	return rnd % n;
}

/* ---- changes ---- */

static struct text changed; /* room for three times the largest sample */

static void put(const char *p, size_t n)
{
	memcpy(changed.at + changed.len, p, n);
	changed.len += n;
}

/* Every line with @front, and with a CR if @cr; returns the lines of prose that were put between.
 */
static unsigned front(struct text t, const char *with, bool cr, const char *prose)
{
	unsigned n = 0;

	changed.len = 0;
	for (const char *p = t.at, *end = p + t.len; p < end;) {
		const char *nl = memchr(p, '\n', end - p), *stop = nl ? nl : end;

		put(with, strlen(with));
		put(p, stop - p);
		if (nl && cr && (stop == p || stop[-1] != '\r'))
			put("\r", 1);
		if (nl)
			put("\n", 1);
		if (nl && prose && !draw(5)) {
			put("\n", 1);
			put(prose, strlen(prose));
			put("\n\n", 2);
			n++;
		}
		p = nl ? nl + 1 : end;
	}
	return n;
}

/* As a terminal of @width columns. */
static void broken(struct text t, size_t width)
{
	size_t line = 0;

	changed.len = 0;
	for (size_t i = 0; i < t.len; i++) {
		if (line == width && t.at[i] != '\n' && t.at[i] != '\r') {
			put("\n", 1);
			line = 0;
		}
		put(t.at + i, 1);
		line = t.at[i] == '\n' ? 0 : line + 1;
	}
}

static void mutate(void)
{
	for (unsigned times = 1 + draw(6); changed.len > 2 && times; times--) {
		size_t at = draw(changed.len), n = draw(200);
		char *p = changed.at + at, *nl = memchr(p, '\n', changed.len - at);

		n = n < changed.len - at ? n : changed.len - at - 1;
		switch (draw(7)) {
		case 0:
			*p ^= 1u << draw(8);
			break;
		case 1:
			*p = "\n =>[]():0x,.|\r\tK7"[draw(18)];
			break;
		case 2:
			memmove(p, changed.at + draw(changed.len - n), n);
			break;
		case 3:
			if (!draw(4))
				changed.len = at;
			break;
		case 4:
			if (nl)
				*nl = ' ';
			break;
		default:
			memmove(p, p + n % 20, changed.len - at - n % 20);
			changed.len -= n % 20;
		}
	}
}

/* ---- what they may do ---- */

static const char *sample;

static void tell(const char *rule, bool good)
{
	CU_ASSERT(good);
	if (!good)
		printf("%s: %s:\n%.*s\n", sample, rule, (int)changed.len, changed.at);
}

static void same(const char *rule, const struct seen *a, unsigned prose)
{
	const struct host_counts *c = &a->r.counts, *d;
	struct seen b;

	see(&b, changed);
	d = &b.r.counts;
	tell(rule, !strcmp(a->out, b.out) && a->ret == b.ret &&
			   c->unknown_lines + prose == d->unknown_lines &&
			   c->damaged_lines == d->damaged_lines &&
			   c->dropped_lines == d->dropped_lines &&
			   c->rejoined_records == d->rejoined_records && c->rows == d->rows &&
			   c->records == d->records && c->stack_lines == d->stack_lines &&
			   c->loss_markers == d->loss_markers && c->elisions == d->elisions);
	free(b.out);
}

/* Every event that is there is one of the first text's. */
static void not_wrong(const char *rule, const struct seen *a)
{
	const char *at = a->out;
	struct seen b;
	bool good = true;

	see(&b, changed);
	for (const char *p = b.out; good && *p; p = strchr(p, '\n') + 1) {
		size_t n = strchr(p, '\n') + 1 - p;

		if (!strncmp(p, "row ", 4))
			break;
		while (*at && (strncmp(at, p, n) || (at > a->out && at[-1] != '\n')))
			at = strchr(at, '\n') + 1;
		good = *at;
	}
	tell(rule, good);
	free(b.out);
}

static void counted_once(void)
{
	const struct host_counts *c;
	uint64_t lines = 0;
	struct seen s;

	see(&s, changed);
	c = &s.r.counts;
	for (size_t i = 0; i < changed.len; i++)
		lines += changed.at[i] == '\n' || i + 1 == changed.len;
	if (!s.r.dat.is_dat && s.r.refusal != HOST_BINARY)
		tell("lines counted once",
		     c->lines == lines && c->records + c->rows + c->unknown_lines + c->elisions +
							  c->stack_traces + c->stack_lines +
							  c->loss_markers + c->dropped_lines <=
						  lines);
	free(s.out);
}

static bool has(struct text t, const char *s)
{
	return memmem(t.at, t.len, s, strlen(s));
}

static void rules(struct text t)
{
	bool coded = has(t, "=3D") || has(t, "=20"), quoted = has(t, "\n>") || *t.at == '>';
	struct seen a;

	see(&a, t);
	if (a.r.refusal == HOST_BINARY || a.r.dat.is_dat)
		goto out;
	front(t, "> ", false, NULL);
	same("quoted", &a, 0);
	front(t, ">> > ", true, NULL);
	same("quoted, with CR", &a, 0);
	front(t, "", true, NULL);
	same("with CR", &a, 0);
	/* a terminal does not break what has its prefix */
	if (!quoted && !coded && !has(t, "\n[") && !strstr(sample, "terminal-wraps")) {
		front(t, "[  812.440112] ", false, NULL);
		same("with a log's prefix", &a, 0);
	}
	if (!coded && !a.r.counts.rejoined_records)
		same("prose between", &a,
		     front(t, "", false, "does anybody know why the guest is so slow here?"));
	front(t, "", false, NULL);
	for (size_t n = t.len; n--;)
		if (n && t.at[n - 1] == '\n' && !strstr(sample, "terminal-wraps")) {
			changed.len = n;
			not_wrong("cut behind a line", &a);
		}
	/* scheduler's events are read by the names of their fields, of which any may be missing */
	if (!coded && !quoted && !a.r.counts.rejoined_records && has(t, " kvm_exit: ") &&
	    !has(t, "sched_") && !has(t, "FAILED"))
		for (size_t width = 64; width < 160; width += 7) {
			broken(t, width);
			not_wrong("broken by a terminal", &a);
		}
out:
	free(a.out);
}

static struct text *texts;
static glob_t names;
static unsigned rounds = 2000;

static void load(void)
{
	size_t largest = 0;

	if (texts)
		return;
	CU_ASSERT_FATAL(!glob("tests/golden/samples/*.txt", 0, NULL, &names));
	texts = calloc(names.gl_pathc, sizeof(*texts));
	for (size_t i = 0; i < names.gl_pathc; i++) {
		FILE *f = fopen(names.gl_pathv[i], "r");

		texts[i].at = malloc(1 << 17);
		CU_ASSERT_FATAL(f && texts[i].at);
		texts[i].len = fread(texts[i].at, 1, 1 << 17, f);
		fclose(f);
		largest = texts[i].len > largest ? texts[i].len : largest;
	}
	changed.at = malloc(64 * largest + 4096);
	CU_ASSERT_PTR_NOT_NULL_FATAL(changed.at);
}

static void test_rules(void)
{
	load();
	rnd = 88172645463325252;
	for (size_t i = 0; i < names.gl_pathc; i++) {
		sample = names.gl_pathv[i];
		if (texts[i].len)
			rules(texts[i]);
	}
}

static void test_mutations(void)
{
	load();
	rnd = 362436069362436069;
	for (unsigned i = 0; i < rounds; i++) {
		size_t n = draw(names.gl_pathc), m = draw(names.gl_pathc);

		sample = names.gl_pathv[n];
		if (draw(3))
			front(texts[n], draw(4) ? "" : "> ", !draw(4), NULL);
		else
			broken(texts[n], 40 + draw(100));
		if (!draw(3))
			put(texts[m].at, texts[m].len);
		mutate();
		counted_once();
	}
}

static CU_TestInfo tests[] = {
	{"what changes nothing", test_rules}, {"mutations", test_mutations}, CU_TEST_INFO_NULL};

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = strtoul(argv[1], NULL, 10);
	return test_main("host_meta", tests);
}
