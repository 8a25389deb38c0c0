// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "traces/lines.h"
#include "traces/trace.h"

/*
 * One line is one op. Times are numbers of instructions; an op's gap is the time since the op
 * before it on the same vCPU, and the beginnings of epochs between two lines become ops themselves,
 * also of epochs without a store.
 */

/* Empty epochs before one line. More of the usual ones is a line that is damaged, not late: 2^20
 * epochs of 30 million instructions are hours at a thousand million per second. More of short ones
 * is an epoch that was chosen too short. */
#define MAX_EMPTY_EPOCHS (1u << 20)
#define DEFAULT_EPOCH	 30000000
#define BATCH		 256
#define PAGE_SHIFT	 12
#define NO_PHASE	 UINT64_MAX
/* Of times and epoch lengths: sums of two cannot wrap, and no recorder counts so far. */
#define MAX_TIME (1ull << 62)

struct vcpu_state {
	uint64_t now;		 /* of its last op, in the recorder's count */
	uint64_t epoch_end;	 /* when the open epoch is over */
	uint64_t epoch;		 /* number of the open epoch */
	uint64_t phase;		 /* serial number of the phase it has joined, NO_PHASE */
	uint64_t last_line_time; /* to tell lines out of order */
	bool cut;		 /* the epoch before was cut short: to be said by the next */
};

struct importer {
	const struct import_opts *opts;
	struct import_opts o; /* with the defaults put in */
	const char *name;
	const struct kvmsim_errsink *errors;
	struct trace_writer *w;
	struct import_stats *stats;
	struct vcpu_state vcpu[TRACE_MAX_VCPUS];
	uint32_t n_vcpus;		  /* seen */
	uint64_t mark;			  /* of the open phase; 0: none */
	uint64_t phase;			  /* serial number of the open or the last one */
	uint64_t first_epoch, next_epoch; /* of this phase; after the last one used by any vCPU */
	bool stores, accesses;		  /* a store, anything but marks was there */
	struct guest_op ops[BATCH];
	uint32_t ops_vcpu, n_ops;
};

/* What a line says. */
struct event {
	uint64_t time, value;
	uint32_t vcpu;
	uint8_t kind; /* enum guest_op_kind */
	uint8_t flags;
};

static int flush(struct importer *im)
{
	int ret = im->n_ops ? trace_write(im->w, im->ops_vcpu, im->ops, im->n_ops) : 0;

	im->n_ops = 0;
	return ret;
}

/* Adds an op at @time, not before the vCPU's last one. */
static int add(struct importer *im, uint32_t vcpu, uint64_t time, struct guest_op op)
{
	struct vcpu_state *v = &im->vcpu[vcpu];
	uint64_t gap = time - v->now;
	int ret = 0;

	if (im->ops_vcpu != vcpu)
		ret = flush(im);
	im->ops_vcpu = vcpu;
	v->now = time;
	do {
		struct guest_op none = {.kind = OP_NONE, .gap = UINT32_MAX};

		if (!ret && im->n_ops == BATCH)
			ret = flush(im);
		if (ret)
			return ret;
		if (gap <= UINT32_MAX) {
			op.gap = gap;
			im->ops[im->n_ops++] = op;
			return 0;
		}
		gap -= UINT32_MAX;
		im->ops[im->n_ops++] = none;
	} while (1);
}

static int begin_epoch(struct importer *im, uint32_t vcpu, uint64_t time, uint64_t number)
{
	struct vcpu_state *v = &im->vcpu[vcpu];
	struct guest_op op = {.kind = OP_EPOCH, .arg = number, .flags = v->cut ? OPF_PARTIAL : 0};

	v->cut = false;
	v->epoch = number;
	v->epoch_end = time + im->o.epoch_len;
	if (number >= im->next_epoch)
		im->next_epoch = number + 1;
	return add(im, vcpu, time, op);
}

/* Begins the epochs that begin up to @time: at it, too, unless @before. */
static int roll(struct importer *im, uint32_t vcpu, uint64_t time, bool before)
{
	struct vcpu_state *v = &im->vcpu[vcpu];
	int ret = 0;

	while (!ret && (before ? time > v->epoch_end : time >= v->epoch_end))
		ret = begin_epoch(im, vcpu, v->epoch_end, v->epoch + 1);
	return ret;
}

static bool too_far(const struct vcpu_state *v, uint64_t time, uint64_t epoch_len)
{
	return time > v->epoch_end && (time - v->epoch_end) / epoch_len >= MAX_EMPTY_EPOCHS;
}

/* The vCPU's first line in the open phase. Instructions before it in this phase are not known,
 * those since the phase before not wanted: its clock starts here. */
static int join(struct importer *im, uint32_t vcpu, uint64_t time)
{
	struct vcpu_state *v = &im->vcpu[vcpu];
	int ret;

	v->now = time;
	v->phase = im->phase;
	if (vcpu >= im->n_vcpus)
		im->n_vcpus = vcpu + 1;
	ret = add(im, vcpu, time, (struct guest_op){.kind = OP_MARK, .arg = im->mark});
	return ret ? ret : begin_epoch(im, vcpu, time, im->first_epoch);
}

static int end_phase(struct importer *im, const struct event *e)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < im->n_vcpus; i++) {
		struct vcpu_state *v = &im->vcpu[i];
		uint64_t start;

		if (v->phase != im->phase)
			continue;
		if (i == e->vcpu) {
			uint64_t time = e->time > v->now ? e->time : v->now;

			ret = roll(im, i, time, true);
			if (!ret && e->value == 0)
				ret = add(im, i, time, (struct guest_op){.kind = OP_MARK});
			start = v->epoch_end - im->o.epoch_len;
			v->cut = time - start != im->o.epoch_len;
		} else {
			/* when it passed the mark, in its own clock, was not recorded */
			if (e->value == 0)
				ret = add(im, i, v->now, (struct guest_op){.kind = OP_MARK});
			v->cut = true;
		}
		v->phase = NO_PHASE;
	}
	im->first_epoch = im->next_epoch;
	return ret;
}

static int take_mark(struct importer *im, const struct event *e)
{
	int ret = im->mark ? end_phase(im, e) : 0;

	im->mark = e->value;
	if (ret || !im->mark)
		return ret;
	im->phase++;
	return join(im, e->vcpu, e->time);
}

/* 0 or an error; *@damaged: the line cannot be true. */
static int take(struct importer *im, const struct event *e, bool *damaged)
{
	struct vcpu_state *v = &im->vcpu[e->vcpu];
	uint64_t time = e->time;
	bool far = v->phase == im->phase && im->mark && too_far(v, time, im->o.epoch_len);
	int ret = 0;

	*damaged = (e->kind == OP_MARK ? false : !im->mark) ||
		   (far && too_far(v, time, DEFAULT_EPOCH));
	if (*damaged)
		return 0;
	if (far)
		return kvmsim_err(
			im->errors, KVMSIM_EINVAL,
			"%s:%llu: %llu epochs of %llu instruction%s without a line before "
			"this one; at most %u are possible: choose longer epochs",
			im->name, (unsigned long long)im->stats->lines,
			(unsigned long long)((time - v->epoch_end) / im->o.epoch_len),
			(unsigned long long)im->o.epoch_len, im->o.epoch_len == 1 ? "" : "s",
			MAX_EMPTY_EPOCHS - 1);
	im->stats->events++;
	if (time < v->last_line_time)
		im->stats->out_of_order++;
	v->last_line_time = time;
	if (e->kind == OP_MARK)
		return take_mark(im, e);
	if (v->phase != im->phase)
		ret = join(im, e->vcpu, time);
	if (time < v->now)
		time = v->now;
	if (!ret)
		ret = roll(im, e->vcpu, time, false);
	im->stores |= e->kind == OP_WRITE;
	im->accesses = true;
	return ret ? ret
		   : add(im, e->vcpu, time,
			 (struct guest_op){.kind = e->kind, .flags = e->flags, .arg = e->value});
}

/* ---- one line ---- */

/* A number, then @end (0: the end of the line, and so on); *@s moves behind it. */
static bool number(const char **s, unsigned base, char end, uint64_t *out)
{
	const char *p = *s;
	uint64_t v = 0;
	unsigned d;

	do {
		char c = *p++;

		if (c >= '0' && c <= '9')
			d = c - '0';
		else if (c >= 'a' && c <= 'f')
			d = c - 'a' + 10;
		else
			return false;
		if (d >= base || v > (UINT64_MAX - d) / base)
			return false;
		v = v * base + d;
	} while (*p != end);
	*s = end ? p + 1 : p;
	*out = v;
	return true;
}

enum parsed { LINE_EVENT, LINE_UNKNOWN, LINE_DAMAGED };

static enum parsed parse_address(const char *s, struct event *e)
{
	const char *plus = strrchr(s, '+');
	uint64_t gfn, offset;

	if (!plus || !number(&s, 16, ' ', &gfn) || s >= plus)
		return LINE_DAMAGED;
	plus++;
	if (!number(&plus, 16, 0, &offset) || offset >= 1u << PAGE_SHIFT ||
	    gfn >> (64 - PAGE_SHIFT))
		return LINE_DAMAGED;
	e->value = gfn << PAGE_SHIFT | offset;
	return LINE_EVENT;
}

static enum parsed parse_store(const char *s, const struct import_opts *o, bool vram,
			       struct event *e)
{
	uint64_t base = vram ? o->vram_gfn : 0, pages = vram ? o->vram_pages : o->ram_pages, gfn;

	if ((vram && o->no_vram) || !number(&s, 16, 0, &gfn) || gfn < base || gfn - base >= pages)
		return LINE_DAMAGED;
	e->value = gfn << PAGE_SHIFT;
	e->kind = OP_WRITE;
	e->flags = vram ? OPF_VRAM : 0;
	return LINE_EVENT;
}

static enum parsed parse(const char *s, const struct import_opts *o, struct event *e)
{
	uint64_t vcpu, host_ns;
	char kind;

	*e = (struct event){0};
	if (!number(&s, 10, ' ', &e->time) || !number(&s, 10, ' ', &vcpu) || e->time > MAX_TIME ||
	    vcpu >= TRACE_MAX_VCPUS || !s[0] || s[1] != ' ')
		return LINE_DAMAGED;
	e->vcpu = vcpu;
	kind = *s;
	s += 2;
	switch (kind) {
	case 'S':
	case 'V':
		return parse_store(s, o, kind == 'V', e);
	case 'r':
	case 'w':
		e->kind = kind == 'r' ? OP_MMIO_READ : OP_MMIO_WRITE;
		return parse_address(s, e);
	case 'p':
		e->kind = OP_PIO;
		return number(&s, 16, 0, &e->value) ? LINE_EVENT : LINE_DAMAGED;
	case 'M':
		e->kind = OP_MARK;
		if (!number(&s, 10, ' ', &e->value) || !number(&s, 10, 0, &host_ns))
			return LINE_DAMAGED;
		return LINE_EVENT;
	default:
		return LINE_UNKNOWN;
	}
}

/* ---- the whole text ---- */

static int import_lines(struct importer *im, struct lines *l)
{
	struct import_stats *st = im->stats;
	const char *line;
	bool whole;
	int ret;

	while ((ret = lines_next(l, &line, &whole)) > 0) {
		enum parsed p;
		struct event e;
		bool damaged;

		st->lines++;
		if (im->opts->interrupted && *im->opts->interrupted)
			return KVMSIM_EINTR;
		p = whole ? parse(line, &im->o, &e) : LINE_DAMAGED;
		if (p == LINE_UNKNOWN) {
			st->unknown++;
			continue;
		}
		damaged = p == LINE_DAMAGED;
		if (!damaged) {
			ret = take(im, &e, &damaged);
			if (ret)
				return ret;
		}
		if (damaged && !st->damaged++)
			st->first_damaged = st->lines;
	}
	if (!ret && lines_damaged(l) && !st->damaged++)
		st->first_damaged = st->lines + 1;
	return ret ? ret : flush(im);
}

static int create(struct importer *im, const char *out_path, const struct kvmsim_errsink *errors)
{
	const struct import_opts *o = &im->o;
	struct trace_meta meta = {
		.n_slots = o->no_vram ? 1 : 2,
		.slots = {{0, o->ram_pages, "ram"}, {o->vram_gfn, o->vram_pages, "vram"}},
		.clock = TRACE_CLOCK_INSN,
		.epoch_len = o->epoch_len,
		.unseen = TRACE_NO_LOADS | TRACE_NO_GVA | TRACE_FIRST_STORES | TRACE_NO_DMA |
			  TRACE_NO_WALKS,
		.source = (char *)o->source, /* copied, not changed */
		.kernel = (char *)o->kernel,
		.workload = (char *)o->workload,
	};

	if (o->epoch_len > MAX_TIME)
		return kvmsim_err(errors, KVMSIM_EINVAL, "%s: an epoch of %llu instructions",
				  out_path, (unsigned long long)o->epoch_len);
	return trace_create(out_path, &meta, errors, &im->w);
}

int import_guest_probe(FILE *in, const char *name, const struct import_opts *opts,
		       const char *out_path, const struct kvmsim_errsink *errors,
		       struct import_stats *stats)
{
	struct importer *im = calloc(1, sizeof(*im));
	struct lines *l = NULL;
	int ret;

	memset(stats, 0, sizeof(*stats));
	if (!im)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", name);
	im->opts = opts;
	im->o = *opts;
	im->o.ram_pages = opts->ram_pages ? opts->ram_pages : 262144;
	im->o.vram_gfn = opts->vram_gfn ? opts->vram_gfn : 0xfd000;
	im->o.vram_pages = opts->vram_pages ? opts->vram_pages : 4096;
	im->o.epoch_len = opts->epoch_len ? opts->epoch_len : DEFAULT_EPOCH;
	im->name = name;
	im->errors = errors;
	im->stats = stats;
	for (uint32_t i = 0; i < TRACE_MAX_VCPUS; i++)
		im->vcpu[i].phase = NO_PHASE;
	ret = lines_open(in, name, errors, &l);
	if (!ret)
		ret = create(im, out_path, errors);
	if (!ret)
		ret = import_lines(im, l);
	if (!ret && !im->accesses)
		ret = kvmsim_err(
			errors, KVMSIM_EPARSE,
			"%s:%llu: nothing usable in %llu line%s (%llu unknown, %llu "
			"damaged): expected \"insn vcpu S|V gfn\" after \"insn vcpu M mark "
			"host_ns\"",
			name,
			(unsigned long long)(stats->first_damaged ? stats->first_damaged
								  : stats->lines),
			(unsigned long long)stats->lines, stats->lines == 1 ? "" : "s",
			(unsigned long long)stats->unknown, (unsigned long long)stats->damaged);
	if (!ret) {
		if (!im->stores)
			trace_unseen(im->w, TRACE_NO_STORES);
		if (im->n_vcpus > 1)
			trace_unseen(im->w, TRACE_ONE_CLOCK);
		ret = trace_finish(im->w, NULL);
	} else {
		trace_abort(im->w);
	}
	lines_close(l);
	free(im);
	return ret;
}
