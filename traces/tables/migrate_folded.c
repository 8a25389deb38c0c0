// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lines of QEMU's `info migrate` that hold a group of fields (10.1), with sizes in units of
 * their own (10.2).
 */
#include <string.h>

#include "traces/tables/migrate.h"

/* "4 KiB", "8.13 GiB", "0 B" in KiB, to the nearest; a plain number is KiB already. */
static bool eat_size(struct host_text *t, uint64_t *kib)
{
	static const char units[] = "BKMGTPE";
	struct host_text rest = *t, plain;
	const char *unit = NULL;
	struct decimal d;
	uint64_t v;

	if (eat_u64(&rest, kib)) {
		plain = rest;
		eat_blanks(&rest);
		if (!rest.len || (*rest.at != '.' && !strchr(units, *rest.at))) {
			*t = plain;
			return true;
		}
		rest = *t;
	}
	if (!eat_decimal(&rest, &d))
		return false;
	eat_blanks(&rest);
	if (rest.len)
		unit = strchr(units, *rest.at);
	if (!unit || !*unit)
		return false;
	rest.at++;
	rest.len--;
	if (unit != units && !eat(&rest, "iB"))
		return false;
	/* twice the value, so that a half is seen */
	if (!decimal_scale(d, 2ull << (unit == units ? 0 : 10 * (unit - units - 1)), &v))
		return false;
	*kib = unit == units ? (v / 2 + 512) >> 10 : (v + 1) / 2;
	*t = rest;
	return true;
}

/* What a group's fields are called, with the fields; and the one that the group ends with at the
 * earliest. */
struct group {
	const char *title, *last;
	bool other; /* its fields are none of ours */
	struct {
		const char *name;
		int field;
	} f[MIGRATE_MOST];
};
static const struct group groups[] = {
	{"Time (ms):",
	 "total",
	 false,
	 {{"total", MIGRATE_total_ms},
	  {"setup", MIGRATE_setup_ms},
	  {"exp_down", MIGRATE_expected_downtime_ms},
	  {"down", MIGRATE_downtime_ms}}},
	{"Sizes (KB):",
	 "total",
	 false,
	 {{"psize", MIGRATE_page_kib},
	  {"pagesize", MIGRATE_page_kib},
	  {"total", MIGRATE_total_kib}}},
	{"Sizes (KiB):",
	 "total",
	 false,
	 {{"psize", MIGRATE_page_kib},
	  {"pagesize", MIGRATE_page_kib},
	  {"total", MIGRATE_total_kib}}},
	{"Sizes:",
	 "total",
	 false,
	 {{"psize", MIGRATE_page_kib},
	  {"pagesize", MIGRATE_page_kib},
	  {"total", MIGRATE_total_kib}}},
	{"Transfers (KiB):",
	 "remain",
	 false,
	 {{"transferred", MIGRATE_transferred_kib}, {"remain", MIGRATE_remaining_kib}}},
	{"Transfers:",
	 "remain",
	 false,
	 {{"transferred", MIGRATE_transferred_kib}, {"remain", MIGRATE_remaining_kib}}},
	{"Channels (KiB):",
	 "postcopy",
	 false,
	 {{"precopy", -1}, {"multifd", -1}, {"postcopy", -1}, {"vfio", -1}}},
	{"Channels:",
	 "postcopy",
	 false,
	 {{"precopy", -1}, {"multifd", -1}, {"postcopy", -1}, {"vfio", -1}}},
	{"Pages:",
	 "rate_per_sec",
	 false,
	 {{"normal", MIGRATE_normal_pages},
	  {"zero", MIGRATE_zero_pages},
	  {"rate_per_sec", MIGRATE_pages_per_second}}},
	{"Page Types:",
	 "zero",
	 false,
	 {{"normal", MIGRATE_normal_pages}, {"zero", MIGRATE_zero_pages}}},
	{"Page Rates (pps):",
	 "transfer",
	 false,
	 {{"transfer", MIGRATE_pages_per_second},
	  {"transfer_rate", MIGRATE_pages_per_second},
	  {"dirty", MIGRATE_dirty_pages_rate},
	  {"dirty_rate", MIGRATE_dirty_pages_rate}}},
	{"Others:",
	 "dirty_syncs",
	 false,
	 {{"dirty_syncs", MIGRATE_dirty_syncs},
	  {"dirty_pages_rate", MIGRATE_dirty_pages_rate},
	  {"postcopy_req", -1},
	  {"downtime_ram", -1},
	  {"downtime_bytes", -1},
	  {"zerocopy_fallbacks", -1}}},
	{"XBZRLE:", "miss", true, {{"size", -1}, {"transferred", -1}, {"pages", -1}, {"miss", -1}}},
	/* the lines that follow Sizes and XBZRLE have no title */
	{"",
	 "remain",
	 false,
	 {{"transferred", MIGRATE_transferred_kib}, {"remain", MIGRATE_remaining_kib}}},
	{"", "postcopy", false, {{"precopy", -1}, {"multifd", -1}, {"postcopy", -1}, {"vfio", -1}}},
	{"", "overflow", true, {{"miss_rate", -1}, {"encode_rate", -1}, {"overflow", -1}}},
};

/* "total=18233, setup=21": as far as it goes. */
static enum text_match group_fields(struct migrate_line *p, const struct group *g,
				    struct host_text t)
{
	bool last = false, first = true;

	while (t.len) {
		struct host_text name = {t.at, 0};
		uint64_t v;
		size_t i = 0;

		while (name.len < t.len && (unsigned char)t.at[name.len] > ' ' &&
		       t.at[name.len] != '=')
			name.len++;
		if (name.len == t.len) /* "dirty_pa": cut inside a name */
			return p->n || *g->title ? TEXT_CUT : TEXT_NO;
		if (t.at[name.len] != '=') {
			if (!scan_foreign(name) || p->look.damaged)
				return TEXT_NO;
			p->look.damaged = true; /* between two fields */
			t = (struct host_text){t.at + name.len, t.len - name.len};
			eat_blanks(&t);
			continue;
		}
		while (i < MIGRATE_MOST && g->f[i].name && !text_is(name, g->f[i].name))
			i++;
		/* without a title, by the first field */
		if (i == MIGRATE_MOST || !g->f[i].name || (first && i && !*g->title))
			return TEXT_NO;
		first = false;
		t = (struct host_text){t.at + name.len + 1, t.len - name.len - 1};
		eat_blanks(&t);
		if (!t.len)
			return TEXT_CUT;
		if (g->other || g->f[i].field < 0) {
			struct decimal d;
			struct host_text rest = t;

			if (!eat_size(&t, &v)) {
				if (!eat_decimal(&rest, &d))
					return TEXT_NO;
				t = rest;
			}
		} else if (!eat_size(&t, &v)) {
			return TEXT_CUT; /* "4.02 Gi" */
		}
		migrate_got(p, g->other ? -1 : g->f[i].field, v);
		if (!strcmp(g->f[i].name, g->last))
			last = true;
		eat_blanks(&t);
		if (!t.len)
			return last ? TEXT_WHOLE : TEXT_CUT;
		if (!eat(&t, ",")) {
			p->look.note = last && !scan_foreign(t);
			p->look.damaged |= last && scan_foreign(t);
			return last ? TEXT_WHOLE : TEXT_NO;
		}
		eat_blanks(&t);
	}
	/* a comma ends the line: so does QEMU's own, after Sizes and transferred */
	return last && (!strcmp(g->last, "remain") || text_begins(text_of(g->title), "Sizes"))
		       ? TEXT_WHOLE
		       : TEXT_CUT;
}

bool migrate_group_line(struct migrate_line *p, struct host_text t, bool open)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
		struct host_text rest = t;
		struct migrate_line q = {.folded = true};
		bool damaged;
		enum text_match m;

		if (!eat(&rest, groups[i].title) || (!*groups[i].title && !open))
			continue;
		eat_blanks(&rest);
		if (!rest.len && !open)
			continue;
		m = !rest.len ? TEXT_CUT : group_fields(&q, &groups[i], rest);
		if (m == TEXT_NO)
			continue;
		damaged = q.look.damaged && m == TEXT_WHOLE;
		q.look = (struct text_look){.match = m,
					    .class = TEXT_ROW,
					    .damaged = damaged,
					    .note = q.look.note && m == TEXT_WHOLE};
		q.what = MIGRATE_VALUES;
		*p = q;
		return true;
	}
	return false;
}

/* "Throughput (mbps): 3911.07" */
bool migrate_throughput(struct migrate_line *p, struct host_text t)
{
	if (!eat(&t, "Throughput (") && !eat(&t, "Bandwidth ("))
		return false;
	if (!eat(&t, "mbps):") && !eat(&t, "Mbps):"))
		return false;
	migrate_found(p, MIGRATE_VALUES, TEXT_CUT);
	p->folded = true;
	eat_blanks(&t);
	if (!t.len)
		return true;
	if (!eat_decimal(&t, &p->throughput)) {
		p->look = text_no();
		return true;
	}
	if (!t.len && p->throughput.digits < 2)
		return true; /* two decimals are printed */
	migrate_got(p, MIGRATE_throughput, 0);
	p->look.match = TEXT_WHOLE;
	t = text_trim(t);
	p->look.damaged = scan_foreign(t);
	p->look.note = t.len && !p->look.damaged;
	return true;
}

bool migrate_cut_title(struct host_text t)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		if (text_cut_of(t, groups[i].title))
			return true;
	return text_cut_of(t, "Throughput (mbps):") || text_cut_of(t, "Bandwidth (mbps):");
}
