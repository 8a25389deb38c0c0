// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lines of QEMU's `info migrate` (migration/migration-hmp-cmds.c): a field per line (to 10.0),
 * and what both layouts have.
 */
#include <string.h>

#include "traces/tables/migrate.h"

void migrate_found(struct migrate_line *p, enum migrate_what what, enum text_match match)
{
	p->what = what;
	p->look = text_found(match, TEXT_ROW);
}

void migrate_got(struct migrate_line *p, int field, uint64_t value)
{
	if (field < 0 || p->n == MIGRATE_MOST)
		return;
	p->got[p->n].field = (enum migrate_what_field)field;
	p->got[p->n++].value = value;
}

/* "total time: 61207 ms": the words before the colon, the field or -1, and the unit. */
static const struct {
	const char *name;
	int field;
	const char *unit; /* "": none */
} lines[] = {
	{"total time", MIGRATE_total_ms, "ms"},
	{"expected downtime", MIGRATE_expected_downtime_ms, "ms"},
	{"downtime", MIGRATE_downtime_ms, "ms"},
	{"setup", MIGRATE_setup_ms, "ms"},
	{"transferred ram", MIGRATE_transferred_kib, "kbytes"},
	{"throughput", MIGRATE_throughput, "mbps"},
	{"remaining ram", MIGRATE_remaining_kib, "kbytes"},
	{"total ram", MIGRATE_total_kib, "kbytes"},
	{"duplicate", MIGRATE_zero_pages, "pages"},
	{"skipped", -1, "pages"},
	{"normal", MIGRATE_normal_pages, "pages"},
	{"normal bytes", -1, "kbytes"},
	{"dirty sync count", MIGRATE_dirty_syncs, ""},
	{"page size", MIGRATE_page_kib, "kbytes"},
	{"multifd bytes", -1, "kbytes"},
	{"pages-per-second", MIGRATE_pages_per_second, ""},
	{"dirty pages rate", MIGRATE_dirty_pages_rate, "pages"},
	{"postcopy request count", -1, ""},
	{"precopy ram", -1, "kbytes"},
	{"downtime ram", -1, "kbytes"},
	{"postcopy ram", -1, "kbytes"},
	{"Zero-copy-send fallbacks happened", -1, "times"},
	{"transferred disk", -1, "kbytes"},
	{"remaining disk", -1, "kbytes"},
	{"total disk", -1, "kbytes"},
	{"cache size", -1, "bytes"},
	{"xbzrle transferred", -1, "kbytes"},
	{"xbzrle pages", -1, "pages"},
	{"xbzrle cache miss", -1, "pages"},
	{"xbzrle cache miss rate", -1, ""},
	{"xbzrle encoding rate", -1, ""},
	{"xbzrle overflow", -1, ""},
	{"compression pages", -1, "pages"},
	{"compression busy", -1, ""},
	{"compression busy rate", -1, ""},
	{"compressed size", -1, "kbytes"},
	{"compression rate", -1, ""},
	{"cpu throttle percentage", -1, ""},
	{"dirty-limit throttle time", -1, "us"},
	{"dirty-limit ring full time", -1, "us"},
	{"postcopy blocktime", -1, ""},
	{"vfio device transferred", -1, "kbytes"},
	/* of the folded layouts */
	{"CPU Throttle (%)", -1, ""},
	{"Dirty-limit Throttle (us)", -1, ""},
	{"Dirty-limit Ring Full (us)", -1, ""},
	{"Postcopy Blocktime (ms)", -1, ""},
	{"Postcopy Latency (ns)", -1, ""},
	{"Postcopy non-vCPU Latencies (ns)", -1, ""},
};

/* Switches among the globals. */
static const char *const globals[] = {
	"store-global-state",		"only-migratable",
	"send-configuration",		"send-section-footer",
	"send-switchover-start",	"decompress-error-check",
	"clear-bitmap-shift",		"multifd-flush-after-each-section",
	"multifd-clean-tls-termination"};

static enum scan_got take_unit(struct scan *s, const char *unit)
{
	struct host_text w;

	if (s->at == s->n)
		return SCAN_END;
	w = s->w[s->at];
	if (scan_foreign(w) && s->at + 1 < s->n && text_is(s->w[s->at + 1], unit)) {
		s->foreign++;
		s->at += 2;
		return SCAN_GOT;
	}
	if (text_is(w, unit)) {
		s->at++;
		return SCAN_GOT;
	}
	return s->at + 1 == s->n && w.len < strlen(unit) && !memcmp(w.at, unit, w.len)
		       ? SCAN_PARTIAL
		       : SCAN_BAD;
}

static bool plain_line(struct migrate_line *p, struct host_text t)
{
	struct host_text name = {t.at, 0};
	struct decimal d = {0};
	struct scan s;
	enum scan_got end;
	uint64_t v = 0;
	size_t i;

	while (name.len < t.len && t.at[name.len] != ':')
		name.len++;
	if (name.len == t.len)
		return false;
	for (i = 0; i < sizeof(lines) / sizeof(*lines) && !text_is(name, lines[i].name); i++)
		;
	if (i == sizeof(lines) / sizeof(*lines))
		return false;
	migrate_found(p, MIGRATE_VALUES, TEXT_CUT);
	p->lines = lines[i].name[0] >= 'a' && lines[i].name[0] <= 'z';
	scan_line(&s, t.at + name.len + 1, t.len - name.len - 1);
	end = lines[i].field >= 0 && lines[i].field != MIGRATE_throughput
		      ? scan_take(&s, is_u64, &v)
		      : scan_take(&s, is_decimal, &d);
	if (end == SCAN_GOT && *lines[i].unit) {
		/* versions before 2.5 wrote ms out */
		if (s.at < s.n && text_is(s.w[s.at], "milliseconds") &&
		    !strcmp(lines[i].unit, "ms"))
			s.at++;
		else
			end = take_unit(&s, lines[i].unit);
	}
	if (end != SCAN_GOT) {
		if (end == SCAN_BAD)
			p->look = text_no();
		return true;
	}
	if (lines[i].field == MIGRATE_throughput)
		p->throughput = d;
	migrate_got(p, lines[i].field, v);
	p->look.match = TEXT_WHOLE;
	scan_rest(&s, &p->look);
	return true;
}

static bool global_line(struct migrate_line *p, struct host_text t)
{
	for (size_t i = 0; i < sizeof(globals) / sizeof(*globals); i++) {
		struct host_text rest = t;

		if (!eat(&rest, globals[i]) || !eat(&rest, ":"))
			continue;
		migrate_found(p, MIGRATE_KNOWN, text_trim(rest).len ? TEXT_WHOLE : TEXT_CUT);
		return true;
	}
	return false;
}

/* "Migration status: active", "Status: postcopy-paused (why)": not that of dirty_rate. */
static bool status(struct migrate_line *p, struct host_text t)
{
	static const char *const words[] = {"none",
					    "setup",
					    "cancelling",
					    "cancelled",
					    "active",
					    "postcopy-device",
					    "postcopy-active",
					    "postcopy-paused",
					    "completed",
					    "postcopy-recover",
					    "postcopy-recover-setup",
					    "failed",
					    "failing",
					    "colo",
					    "pre-switchover",
					    "device",
					    "wait-unplug"};
	size_t n = 0;

	if (eat(&t, "Migration status:"))
		p->lines = true;
	else if (eat(&t, "Status:"))
		p->folded = true;
	else
		return false;
	migrate_found(p, MIGRATE_STATUS, TEXT_CUT);
	eat_blanks(&t);
	if (!t.len && p->lines)
		return true;
	while (n < t.len && (unsigned char)t.at[n] > ' ')
		n++;
	p->status = (struct host_text){t.at, n};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (text_is(p->status, words[i]))
			p->look.match = TEXT_WHOLE;
	if (p->look.match == TEXT_CUT && (p->folded || text_trim(t).len != n))
		p->look = text_no();
	t = text_trim((struct host_text){t.at + n, t.len - n});
	if (!text_begins(t, "(")) {
		p->look.damaged = scan_foreign(t);
		p->look.note = t.len && !p->look.damaged;
	}
	return true;
}

/* A line that ends inside its name. */
static bool cut_name(struct host_text t)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (text_cut_of(t, lines[i].name))
			return true;
	return migrate_cut_title(t);
}

struct migrate_line migrate_parse(const char *line, size_t len, bool open)
{
	struct host_text t = text_trim((struct host_text){line, len});
	struct migrate_line p = {.look = text_no()};

	if (!t.len)
		return p;
	if (text_is(t, "globals:") || text_is(t, "Globals:")) {
		migrate_found(&p, MIGRATE_GLOBALS, TEXT_WHOLE);
		p.look.class = TEXT_HEADING;
		p.lines = *t.at == 'g';
		p.folded = p.all = !p.lines;
		return p;
	}
	if (status(&p, t) || migrate_throughput(&p, t) || global_line(&p, t))
		return p;
	p = (struct migrate_line){.look = text_no()};
	if (text_is(t, "RAM info:")) {
		migrate_found(&p, MIGRATE_KNOWN, TEXT_WHOLE);
		p.look.class = TEXT_HEADING;
		return p;
	}
	if (open && (text_begins(t, "capabilities:") || text_begins(t, "socket address: [") ||
		     text_begins(t, "Sockets: [") || text_is(t, "]") || text_begins(t, "tcp:") ||
		     text_begins(t, "unix:"))) {
		migrate_found(&p, MIGRATE_KNOWN, TEXT_WHOLE);
		return p;
	}
	if (!plain_line(&p, t) && !migrate_group_line(&p, t, open)) {
		p.look = text_no();
		if (open && cut_name(t))
			migrate_found(&p, MIGRATE_KNOWN, TEXT_CUT);
	}
	return p;
}
