// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kvm_stat (tools/kvm/kvm_stat): the screen, with or without percentages, and what `-1` prints,
 * which has no heading at all.
 */
#include <stdlib.h>
#include <string.h>

#include "traces/tables/scan.h"
#include "traces/tables/scratch.h"

enum { MOST_CHILDREN = 1024 };
enum what { NOTHING, TITLE, FILTER, HEADING, ROW, TOTAL };

struct parsed {
	struct text_look look;
	enum what what;
	enum kvm_stat_layout layout; /* of a heading, or a row without one */
	struct host_text name, scope;
	size_t indent;
	bool repair; /* the name's bracket is missing */
	struct kvm_stat_row row;
};

/* Counters of debugfs that kernels have had, for `kvm_stat -1 -d`, which has no heading. Those that
 * begin with kvm_ are events. */
static const char *const counters[] = {
	"blocking",
	"directed_yield_attempted",
	"directed_yield_successful",
	"efer_reload",
	"exits",
	"fpu_reload",
	"guest_mode",
	"halt_attempted_poll",
	"halt_exits",
	"halt_poll_fail_ns",
	"halt_poll_invalid",
	"halt_poll_success_ns",
	"halt_successful_poll",
	"halt_wait_ns",
	"halt_wakeup",
	"host_state_reload",
	"hypercalls",
	"insn_emulation",
	"insn_emulation_fail",
	"invlpg",
	"io_exits",
	"irq_exits",
	"irq_injections",
	"irq_window",
	"l1d_flush",
	"largepages",
	"lpages",
	"max_mmu_page_hash_collisions",
	"max_mmu_rmap_size",
	"mmio_exits",
	"mmu_cache_miss",
	"mmu_flooded",
	"mmu_pde_zapped",
	"mmu_pte_updated",
	"mmu_pte_write",
	"mmu_recycled",
	"mmu_shadow_zapped",
	"mmu_unsync",
	"nested_run",
	"nmi_injections",
	"nmi_window",
	"notify_window_exits",
	"nx_lpage_splits",
	"pages_1g",
	"pages_2m",
	"pages_4k",
	"pf_emulate",
	"pf_fast",
	"pf_fixed",
	"pf_guest",
	"pf_mmio_spte_created",
	"pf_spurious",
	"pf_taken",
	"preemption_other",
	"preemption_reported",
	"remote_tlb_flush",
	"remote_tlb_flush_requests",
	"req_event",
	"request_irq",
	"signal_exits",
	"tlb_flush",
	"hvc_exit_stat",
	"wfe_exit_stat",
	"wfi_exit_stat",
	"mmio_exit_kernel",
	"mmio_exit_user",
};

static bool counter(struct host_text w)
{
	if (text_begins(w, "kvm_"))
		return true;
	for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		if (text_is(w, counters[i]))
			return true;
	return false;
}

/* "kvm_exit(HLT)": letters, and no number. */
static bool is_name(struct host_text w, void *out)
{
	char c = *w.at;

	if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '_')
		return false;
	for (size_t i = 0; i < w.len; i++)
		if (strchr("=;,:'\"?!<>[]{}", w.at[i]))
			return false;
	if (out)
		*(struct host_text *)out = w;
	return true;
}

/* Cut, so far a name that a prose's word is not taken for. */
static bool telling(struct host_text w)
{
	return memchr(w.at, '_', w.len) || memchr(w.at, '(', w.len) || counter(w);
}

static struct parsed title(struct host_text line)
{
	struct parsed p = {.look = text_found(TEXT_WHOLE, TEXT_HEADING), .what = TITLE};
	uint64_t pid;

	p.scope = text_of("all");
	line = text_trim(line);
	if (eat(&line, "- pid")) {
		struct host_text scope = {line.at - 3, line.len + 3};

		eat_blanks(&line);
		if (!eat_u64(&line, &pid))
			p.look.match = TEXT_CUT;
		else
			p.scope = scope;
	} else if (line.len && !text_is(line, "- summary")) {
		p.look.match = TEXT_NO;
	}
	return p;
}

static bool cut_of(struct host_text w, const char *word)
{
	return w.len < strlen(word) && !memcmp(w.at, word, w.len);
}

/* Column headings. */
static bool heading(struct scan *s, struct parsed *p)
{
	bool guests = s->n > 1 && text_is(s->w[0], "Guest") && text_is(s->w[1], "Name");
	bool percent = false, rate = false, total = false, foreign = false;

	if (!guests && !text_is(s->w[0], "Event"))
		return false;
	for (size_t i = guests ? 2 : 1; i < s->n; i++) {
		if (text_is(s->w[i], "%Total"))
			percent = true;
		else if (text_is(s->w[i], "CurAvg/s") || text_is(s->w[i], "Current"))
			rate = true;
		else if (text_is(s->w[i], "Total"))
			total = true;
		else if (i + 1 == s->n &&
			 (cut_of(s->w[i], "%Total") || cut_of(s->w[i], "CurAvg/s") ||
			  cut_of(s->w[i], "Current") || cut_of(s->w[i], "Total")))
			break; /* wrapped inside of it */
		else if (!scan_foreign(s->w[i]))
			return false;
		else
			foreign = true;
	}
	p->what = HEADING;
	p->layout = percent ? KVM_STAT_TOTAL_PERCENT_RATE : KVM_STAT_TOTAL_CURRENT;
	p->look = text_found(rate && total ? TEXT_WHOLE : TEXT_CUT, TEXT_HEADING);
	p->look.damaged = foreign && rate && total;
	return true;
}

/* The line ends where @got says: cut, if what was there until then is enough to know a row. */
static void ended(struct parsed *p, enum scan_got got, bool known)
{
	if ((got == SCAN_END || got == SCAN_PARTIAL) && known)
		p->look = text_found(TEXT_CUT, TEXT_ROW);
	else
		p->look = text_no();
}

static void total_row(struct scan *s, struct parsed *p, bool near)
{
	enum scan_got got;

	p->what = TOTAL;
	s->at = 1;
	got = scan_take(s, is_u64, &p->row.total);
	if (got != SCAN_GOT) {
		ended(p, got, near);
		return;
	}
	/* nothing came since: the rate is left blank */
	got = scan_take(s, is_u64, &p->row.rate.value);
	p->row.rate.there = got == SCAN_GOT;
	if (got != SCAN_GOT && got != SCAN_END) {
		ended(p, got, near);
		return;
	}
	p->look = text_found(got == SCAN_GOT ? TEXT_WHOLE : TEXT_MORE, TEXT_ROW);
	scan_rest(s, &p->look);
}

/* "kvm_exit(HLT" lacks its bracket, "kvm_exit(HLT)x" has something behind it. */
static void bracket(struct parsed *p)
{
	const char *close = memchr(p->name.at, ')', p->name.len);

	if (!memchr(p->name.at, '(', p->name.len) || p->name.at[p->name.len - 1] == ')')
		return;
	p->look.damaged = true;
	p->repair = !close;
	if (close)
		p->name.len = (size_t)(close - p->name.at) + 1;
}

static void row(const struct tables_scratch *t, struct scan *s, struct parsed *p, size_t tail)
{
	bool percent = p->layout == KVM_STAT_TOTAL_PERCENT_RATE, near = t->kvm_stat.near;
	enum scan_got got = is_name(s->w[0], &p->name) ? SCAN_GOT : SCAN_BAD;
	bool known = got == SCAN_GOT && near && telling(p->name);

	if (got == SCAN_GOT && text_is(p->name, "Total") && percent) {
		total_row(s, p, near);
		return;
	}
	p->what = ROW;
	s->at = 1;
	if (got == SCAN_GOT)
		got = scan_take(s, is_u64, &p->row.total);
	if (got == SCAN_GOT && percent) {
		known |= near;
		got = scan_take(s, is_decimal, &p->row.percent);
	}
	if (got == SCAN_GOT) {
		known = true;
		got = scan_take(s, is_u64, &p->row.rate.value);
		p->row.rate.there = got == SCAN_GOT;
	}
	/* versions to 4.17 leave a rate of zero blank: the line is padded */
	if (got == SCAN_END && percent && p->row.percent.there && tail >= 3) {
		p->look = text_found(TEXT_MORE, TEXT_ROW);
	} else if (got != SCAN_GOT) {
		ended(p, got, known && (near || percent));
		return;
	} else {
		p->look = text_found(TEXT_WHOLE, TEXT_ROW);
	}
	bracket(p);
	scan_rest(s, &p->look);
	if (p->look.note && !near)
		p->look = text_no();
}

/* What `-1` prints: a name in 42 columns, two numbers in 10 each. */
static void bare_row(const struct tables_scratch *t, struct scan *s, struct parsed *p)
{
	uint64_t a, b;

	if (s->n != 3 || !is_name(s->w[0], NULL) || !counter(s->w[0]) || !is_u64(s->w[1], &a) ||
	    !is_u64(s->w[2], &b))
		return;
	p->layout = KVM_STAT_TOTAL_CURRENT;
	row(t, s, p, 0);
}

static struct parsed parse(const struct tables *tables, const char *line, size_t len)
{
	const struct tables_scratch *t = tables->scratch;
	struct host_text text = {line, len};
	struct parsed p = {.look = text_no(), .name = {line, 0}};
	size_t tail = len - text_trim(text).len - (size_t)(text_trim(text).at - line);
	struct scan s;

	text = text_trim(text);
	if (eat(&text, "kvm statistics"))
		return title(text);
	scan_line(&s, line, len);
	if (!s.n || heading(&s, &p))
		return p;
	if (t->kvm_stat.open && text_begins(text, "regex filter:")) {
		p.what = FILTER;
		p.look = text_found(TEXT_WHOLE, TEXT_HEADING);
		return p;
	}
	if (!t->kvm_stat.open || !t->kvm_stat.headed) {
		bare_row(t, &s, &p);
		p.indent = (size_t)(s.w[0].at - line);
		return p;
	}
	p.layout = tables->kvm_stat[tables->n_kvm_stat - 1].layout;
	row(t, &s, &p, tail);
	p.indent = (size_t)(s.w[0].at - line);
	return p;
}

static struct text_look look(const void *state, const char *line, size_t len)
{
	return parse(state, line, len).look;
}

static int new_table(struct tables *t, enum kvm_stat_layout layout, bool headed)
{
	struct kvm_stat_table *k;

	if (tables_grow(&t->kvm_stat, t->n_kvm_stat, sizeof(*t->kvm_stat)))
		return KVMSIM_ENOMEM;
	k = &t->kvm_stat[t->n_kvm_stat++];
	k->layout = layout;
	k->scope = t->scratch->kvm_stat.scope;
	t->scratch->kvm_stat.scope = NULL;
	if (!k->scope)
		k->scope = tables_copy(text_of("all"));
	t->scratch->kvm_stat.open = true;
	t->scratch->kvm_stat.headed = headed;
	t->scratch->kvm_stat.parent = SIZE_MAX;
	return k->scope ? 0 : KVMSIM_ENOMEM;
}

/* The row above that @p is part of. With percentages that is told by the name, since quoting may
 * take the indentation away; without, rows like kvm_exit(HLT) are rows of their own. */
static const struct kvm_stat_row *parent(const struct tables_scratch *t,
					 const struct kvm_stat_table *k, const struct parsed *p)
{
	const char *bracket = memchr(p->name.at, '(', p->name.len);
	struct host_text stem = {p->name.at, bracket ? (size_t)(bracket - p->name.at) : 0};

	if (t->kvm_stat.parent == SIZE_MAX)
		return NULL;
	if (k->layout == KVM_STAT_TOTAL_PERCENT_RATE && bracket)
		for (size_t i = k->n_rows; i-- && k->n_rows - i < MOST_CHILDREN;)
			if (!k->row[i].parent && text_is(stem, k->row[i].name))
				return &k->row[i];
	return p->indent > t->kvm_stat.indent ? &k->row[t->kvm_stat.parent] : NULL;
}

static int take_row(struct tables *t, const struct parsed *p)
{
	struct tables_scratch *s = t->scratch;
	struct kvm_stat_table *k;
	const struct kvm_stat_row *above;
	struct kvm_stat_row *r;

	if (!s->kvm_stat.open && new_table(t, p->layout, false))
		return KVMSIM_ENOMEM;
	k = &t->kvm_stat[t->n_kvm_stat - 1];
	/* the first row once more: `-1` ran again */
	if (p->layout == KVM_STAT_TOTAL_CURRENT && k->n_rows && text_is(p->name, k->row[0].name)) {
		if (new_table(t, p->layout, s->kvm_stat.headed))
			return KVMSIM_ENOMEM;
		k = &t->kvm_stat[t->n_kvm_stat - 1];
	}
	if (tables_grow(&k->row, k->n_rows, sizeof(*k->row)))
		return KVMSIM_ENOMEM;
	r = &k->row[k->n_rows++];
	*r = p->row;
	r->name = malloc(p->name.len + 2);
	if (!r->name)
		return KVMSIM_ENOMEM;
	memcpy(r->name, p->name.at, p->name.len);
	strcpy(r->name + p->name.len, p->repair ? ")" : "");
	above = parent(s, k, p);
	if (!above) {
		if (s->kvm_stat.parent == SIZE_MAX)
			s->kvm_stat.indent = p->indent;
		s->kvm_stat.parent = k->n_rows - 1;
		return 0;
	}
	r->parent = tables_copy(text_of(above->name));
	return r->parent ? 0 : KVMSIM_ENOMEM;
}

static int take(void *state, const char *line, size_t len, const struct text_look *l,
		uint64_t number)
{
	struct tables *t = state;
	struct tables_scratch *s = t->scratch;
	struct parsed p = parse(t, line, len);
	struct kvm_stat_table *k;

	(void)l;
	(void)number;
	s->kvm_stat.near = true;
	switch (p.what) {
	case TITLE:
		s->kvm_stat.open = false;
		free(s->kvm_stat.scope);
		s->kvm_stat.scope = tables_copy(p.scope);
		return s->kvm_stat.scope ? 0 : KVMSIM_ENOMEM;
	case HEADING:
		return new_table(t, p.layout, true);
	case ROW:
		return take_row(t, &p);
	case TOTAL:
		k = &t->kvm_stat[t->n_kvm_stat - 1];
		k->total = (struct number){p.row.total, true};
		k->total_rate = p.row.rate;
		s->kvm_stat.open = s->kvm_stat.near = false;
		return 0;
	default:
		return 0;
	}
}

static void gap(void *state, bool blank)
{
	struct tables *t = state;

	if (blank)
		return;
	t->scratch->kvm_stat.near = false;
	if (!t->scratch->kvm_stat.headed)
		t->scratch->kvm_stat.open = false;
}

const struct text_format kvm_stat_format = {
	.kind = HOST_KIND_KVM_STAT, .look = look, .take = take, .gap = gap};
