// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/columns.h"

#include "traces/host/chars.h"

#define COMM_MAX 16 /* with the byte for its NUL, which some programs fill */
#define TASK_MAX 64 /* bytes in front of the CPU: 16 of comm, blanks, pid, tgid */

static const uint64_t power10[] = {1,	   10,	    100,      1000,	 10000,
				   100000, 1000000, 10000000, 100000000, 1000000000};

unsigned columns_flags(const char *p, const char *end)
{
	const char *q = p;

	if (p == end || is(*p, CHAR_DIGIT))
		return 0;
	q = skip(p, end, CHAR_FLAG);
	if (q < end && !is(*q, CHAR_BLANK))
		return 0;
	return q - p == 4 || q - p == 5 ? q - p : 0;
}

/* @n flags: irqs-off, need-resched, hardirq/softirq, depths; include/trace of any kernel has the
 * third as NMI within a hardirq (Z) or not (z), hardirq within a softirq (H) or not (h), softirq
 * (s). */
static void take_flags(struct host_event *e, const char *flags, unsigned n)
{
	e->flags_width = n;
	switch (flags[2]) {
	case 'Z':
	case 'z':
		e->context = HOST_CONTEXT_NMI;
		break;
	case 'H':
	case 'h':
		e->context = HOST_CONTEXT_HARDIRQ;
		break;
	case 's':
		e->context = HOST_CONTEXT_SOFTIRQ;
		break;
	case '.':
		e->context = HOST_CONTEXT_TASK;
		break;
	default:
		e->context = HOST_CONTEXT_UNKNOWN;
		break;
	}
}

/* "(+2641)": trace-cmd report --ts-diff. */
static const char *behind_diff(const char *p, const char *end)
{
	const char *q = skip_blanks(p, end), *r;
	uint64_t v;
	bool fits;

	if (end - q < 2 || *q != '(' || (q[1] != '+' && q[1] != '-'))
		return p;
	r = read_dec(q + 2, end, &v, &fits);
	return r > q + 2 && r < end && *r == ')' ? r + 1 : p;
}

const char *columns_time(struct host_event *e, const char *p, const char *end)
{
	uint64_t v, f;
	bool fits;
	const char *q = read_dec(p, end, &v, &fits), *r;

	if (q == p || !fits)
		return NULL;
	if (q == end)
		return end;
	if (*q == '.') {
		r = read_dec(q + 1, end, &f, &fits);
		if (r - q - 1 > 9 || v > UINT64_MAX / power10[9] - 1)
			return NULL;
		if (r == end)
			return end;
		if (*r != ':' || r - q - 1 < 3)
			return NULL;
		e->time_ns = v * power10[9] + f * power10[9 - (r - q - 1)];
		e->time_decimals = r - q - 1;
		return behind_diff(r + 1, end);
	}
	if (*q == 'u') {
		if (q + 1 == end)
			return end;
		if (q[1] != 's' || v > UINT64_MAX / 1000)
			return NULL;
		e->time_ns = v * 1000;
		e->time_decimals = 6;
		/* marks of a long time since the record before */
		for (q += 2; q < end && (*q == '+' || *q == '!' || *q == '#' || *q == '*' ||
					 *q == '@' || *q == '$' || is(*q, CHAR_BLANK));
		     q++)
			;
		if (q == end)
			return end;
		return *q == ':' ? q + 1 : NULL;
	}
	if (*q != ':' || q - p < 2)
		return NULL;
	e->time_ns = v; /* of a clock that does not count ns */
	e->time_decimals = 0;
	return q + 1;
}

/* "comm-123", "comm  123", "comm 12/123", "comm", with a tgid column behind. */
static bool task(struct host_event *e, const char *p, const char *end, bool *dash)
{
	const char *d, *b = end;
	uint64_t v;
	bool fits;

	e->tid = e->tgid = -1;
	e->comm = (struct host_text){p, 0};
	*dash = false;
	/* "trace.dat:  ": which of several files or buffers it is of */
	d = to_blank(p, end);
	if (d < end && d[-1] == ':' && end - d > 1)
		p = skip_blanks(d, end);
	while (b > p && is(b[-1], CHAR_BLANK))
		b--;
	if (b > p && b[-1] == ')') {
		const char *open = b - 1, *in;

		while (open > p && b - open < 14 && *open != '(')
			open--;
		if (*open == '(') {
			in = skip_blanks(open + 1, b - 1);
			d = read_dec(in, b - 1, &v, &fits);
			if (d > in && d == b - 1 && fits)
				e->tgid = v & INT64_MAX;
			else if (in == b - 1 || *in != '-')
				return false;
			b = open;
			while (b > p && is(b[-1], CHAR_BLANK))
				b--;
		}
	}
	if (b == p)
		return false;
	for (d = b; d > p && is(d[-1], CHAR_DIGIT); d--)
		;
	if (d == b || b - d > 10) { /* a comm alone */
		e->comm = (struct host_text){p, b - p};
		return true;
	}
	read_dec(d, b, &v, &fits);
	if (d == p) { /* a tid alone */
		e->tid = v;
		return true;
	}
	if (d[-1] == '-' && d - 1 > p) {
		*dash = true;
		e->tid = v;
		e->comm = (struct host_text){p, d - 1 - p};
		return true;
	}
	if (d[-1] == '/') {
		const char *t = d - 1;
		uint64_t pid;

		while (t > p && is(t[-1], CHAR_DIGIT))
			t--;
		if (t < d - 1 && (t == p || is(t[-1], CHAR_BLANK))) {
			read_dec(t, d - 1, &pid, &fits);
			e->tgid = pid;
			e->tid = v;
			d = t;
		}
	} else if (is(d[-1], CHAR_BLANK)) {
		e->tid = v;
	}
	if (e->tid < 0)
		d = b;
	while (d > p && is(d[-1], CHAR_BLANK))
		d--;
	e->comm = (struct host_text){p, d - p};
	return true;
}

/* Whether time or flags stand at @p, as they do behind the CPU, but not behind a [1] in a comm. */
static bool behind_cpu(const char *p, const char *end)
{
	const char *d = skip(p, end, CHAR_DIGIT);

	if (d > p)
		return d == end || *d == '.' || *d == ':' || *d == 'u';
	return columns_flags(p, end);
}

enum columns columns_bracket(struct host_event *e, const char *line, const char *end,
			     const char **name)
{
	const char *p = skip_blanks(line, end), *stop = end - p > TASK_MAX ? p + TASK_MAX : end;
	const char *q, *cpu_end, *other = NULL;
	uint64_t cpu;
	bool fits, dash;
	unsigned n;

	if (p == end)
		return COLUMNS_NO;
	for (q = p;; q++) {
		if (q == stop || (uint8_t)*q < 9) {
			if (!other)
				return COLUMNS_NO; /* and no text */
			q = other;
			cpu_end = read_dec(q + 1, end, &cpu, &fits);
			break;
		}
		if (*q != '[' || (q > p && !is(q[-1], CHAR_BLANK)))
			continue;
		cpu_end = read_dec(q + 1, end, &cpu, &fits);
		if (cpu_end == end && cpu_end > q + 1 && q > p && task(e, p, q, &dash) &&
		    e->tid >= 0)
			return COLUMNS_TASK;
		if (cpu_end > q + 1 && cpu_end < end && *cpu_end == ']' && cpu_end - q < 8 &&
		    (cpu_end + 1 == end || is(cpu_end[1], CHAR_BLANK))) {
			if (behind_cpu(skip_blanks(cpu_end + 1, end), end))
				break;
			if (!other && q > p)
				other = q;
		}
	}
	if (q > p && (!task(e, p, q, &dash) || e->comm.len > COMM_MAX))
		return COLUMNS_NO;
	e->cpu = cpu;
	q = skip_blanks(cpu_end + 1, end);
	if (q == end)
		return e->tid >= 0 ? COLUMNS_CUT : COLUMNS_NO;
	if (!is(*q, CHAR_DIGIT)) {
		n = columns_flags(q, end);
		if (n) {
			take_flags(e, q, n);
			q = skip_blanks(q + n, end);
		} else if (e->tid >= 0 && skip(q, end, CHAR_FLAG) == end && end - q < 4) {
			return COLUMNS_CUT;
		}
		if (q == end)
			return COLUMNS_CUT;
	}
	if (is(*q, CHAR_DIGIT)) {
		const char *t = columns_time(e, q, end);

		if (!t)
			return COLUMNS_NO;
		q = skip_blanks(t, end);
		if (q == end)
			return COLUMNS_CUT;
	} else if (e->tid < 0) {
		return COLUMNS_NO;
	}
	*name = q;
	return COLUMNS_ALL;
}

/* What stands in front of a time or a name: task, perhaps CPU with flags glued to it. */
static bool front(struct host_event *e, const char *p, const char *end, bool *sure)
{
	const char *b = end, *w;
	uint64_t cpu;
	bool fits, dash;

	while (b > p && is(b[-1], CHAR_BLANK))
		b--;
	for (w = b; w > p && !is(w[-1], CHAR_BLANK); w--)
		;
	if (w > p && is(*w, CHAR_DIGIT)) {
		const char *f = read_dec(w, b, &cpu, &fits);
		unsigned n = f - w <= 5 ? columns_flags(f, b) : 0;

		if (n && f + n == b) {
			if (!task(e, p, w, &dash) || !dash)
				return false;
			e->cpu = cpu;
			take_flags(e, f, n);
			*sure = true;
			return true;
		}
	}
	if (!task(e, p, b, &dash) || e->comm.len > COMM_MAX ||
	    memchr(e->comm.at, '[', e->comm.len) || memchr(e->comm.at, ']', e->comm.len))
		return false;
	/* flags, or a time that has lost its beginning: the rest of a line that was wrapped */
	if (e->tid < 0 && b > p && (columns_flags(e->comm.at, b) || b[-1] == ':'))
		return false;
	*sure = dash;
	return true;
}

/* A line of one to three words that ends in -123. */
static bool task_alone(const char *p, const char *end)
{
	const char *d = end;

	while (d > p && is(d[-1], CHAR_BLANK))
		d--;
	end = d;
	while (d > p && is(d[-1], CHAR_DIGIT))
		d--;
	return d < end && d - p > 1 && d[-1] == '-' && end - p <= 28;
}

/* "kvm:kvm_exit:" at @p, of a system that perf knows. */
static bool system_and_name(const char *p, const char *end)
{
	static const char *const systems[] = {"kvm",	    "kvmmmu",	"lock",	       "sched",
					      "irq",	    "timer",	"power",       "workqueue",
					      "rcu",	    "syscalls", "kmem",	       "tlb",
					      "exceptions", "msr",	"raw_syscalls"};
	const char *colon = skip(p, end, CHAR_NAME), *q;

	if (colon == end || *colon != ':')
		return false;
	q = skip(colon + 1, end, CHAR_NAME);
	if (q == colon + 1 || q == end || *q != ':')
		return false;
	for (size_t i = 0; i < sizeof(systems) / sizeof(*systems); i++)
		if (equals(p, colon, systems[i]))
			return true;
	return false;
}

/* perf script -F event,trace, or with the time as well. */
static enum columns alone(struct host_event *e, const char *p, const char *end, const char **name)
{
	const char *t;

	if (system_and_name(p, end)) {
		*name = p;
		return COLUMNS_ALL;
	}
	t = p < end && is(*p, CHAR_DIGIT) ? columns_time(e, p, end) : NULL;
	if (t && t < end && e->time_decimals && system_and_name(skip_blanks(t, end), end)) {
		*name = skip_blanks(t, end);
		return COLUMNS_ALL;
	}
	e->time_ns = HOST_NO_TIME;
	e->time_decimals = 0;
	return COLUMNS_NO;
}

enum columns columns_other(struct host_event *e, const char *line, const char *end,
			   const char **name, bool *sure)
{
	const char *p = skip_blanks(line, end), *w = p, *next;

	*sure = false;
	if (alone(e, p, end, name) == COLUMNS_ALL)
		return COLUMNS_ALL;
	for (unsigned words = 0; w < end && words < 10; words++, w = skip_blanks(next, end)) {
		const char *t;

		next = to_blank(w, end);
		if (!words)
			continue;
		if (is(*w, CHAR_DIGIT)) {
			t = columns_time(e, w, end);
			if (t == end && front(e, p, w, sure) && *sure)
				return COLUMNS_CUT;
			if (!t || t == end || !e->time_decimals) {
				e->time_ns = HOST_NO_TIME;
				e->time_decimals = 0;
				continue;
			}
			if (!front(e, p, w, sure))
				return COLUMNS_NO;
			*name = skip_blanks(t, end);
			return *name == end ? COLUMNS_CUT : COLUMNS_ALL;
		}
		if (next[-1] == ':') { /* an event's name, without a time in front */
			if (!front(e, p, w, sure) || (e->tid < 0 && !memchr(w, ':', next - 1 - w)))
				return COLUMNS_NO;
			*sure = false;
			*name = w;
			return COLUMNS_ALL;
		}
		if (next == end && begins(w, end, "kvm_") && skip(w, end, CHAR_NAME) == end &&
		    task_alone(p, w))
			return COLUMNS_TASK;
	}
	if (task_alone(p, end))
		return COLUMNS_TASK;
	return front(e, p, end, sure) && e->flags_width ? COLUMNS_CUT : COLUMNS_NO;
}
