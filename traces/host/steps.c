// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/steps.h"

static enum got lit(struct cursor *c, const struct step *s)
{
	const char *p = c->p, *end = c->end, *l = s->lit, *stop = l + s->len;

	for (; l < stop; l++) {
		if (*l == ' ') {
			if (p == end && l + 1 == stop)
				break;
			if (p == end)
				return CUT;
			if (!is(*p, CHAR_BLANK))
				return BAD;
			p = skip_blanks(p, end);
			continue;
		}
		if (p == end && c->tolerant && l + 1 == stop && (*l == ']' || *l == ')')) {
			c->foreign++;
			break;
		}
		if (p == end)
			return CUT;
		if (*p != *l)
			return BAD;
		p++;
	}
	c->p = p;
	return OK;
}

static enum got hex(struct cursor *c, const struct step *s)
{
	const char *p = c->p, *q;
	uint64_t v;
	bool fits;

	if (c->end - p >= 2 && p[0] == '0' && p[1] == 'x') {
		p += 2;
		if (p == c->end)
			return CUT;
	}
	q = read_hex(p, c->end, &v, &fits);
	if (q == p || !fits || !step_ends(c, q))
		return BAD;
	c->cut_number |= q == c->end && q - p < s->len;
	step_put(c, s, v);
	c->p = q;
	return OK;
}

static enum got dec(struct cursor *c, const struct step *s)
{
	const char *p = c->p, *q;
	bool minus = *p == '-', fits;
	uint64_t v;

	p += minus;
	q = read_dec(p, c->end, &v, &fits);
	if (q == p)
		return q == c->end ? CUT : BAD;
	if (!fits || !step_ends(c, q))
		return BAD;
	step_put(c, s, minus ? -v : v);
	c->p = q;
	return OK;
}

static inline bool word_ends(char ch)
{
	return is(ch, CHAR_BLANK) || ch == ')' || ch == ',' || ch == ']';
}

static const char *word_end(const struct cursor *c)
{
	const char *p = c->p;

	while (p < c->end && !word_ends(*p))
		p++;
	return p;
}

static enum got word(struct cursor *c)
{
	const char *p = word_end(c);

	if (p == c->p)
		return BAD;
	c->p = p;
	return OK;
}

static enum got reason(struct cursor *c)
{
	const char *from = c->p, *p = word_end(c), *to = p;
	struct host_event *e = c->e;
	uint64_t v;
	bool fits;

	if (to > from && to[-1] == ':')
		to--;
	if (to == from || !is(*from, CHAR_NAME))
		return BAD;
	e->reason = (struct host_text){from, to - from};
	if (is(*from, CHAR_DIGIT)) {
		bool x = begins(from, to, "0x");
		const char *q =
			x ? read_hex(from + 2, to, &v, &fits) : read_dec(from, to, &v, &fits);

		if (q != to || !fits)
			return BAD;
		host_set(e, HOST_F_reason, v);
	}
	c->p = p;
	p = skip_blanks(p, c->end);
	if (begins(p, c->end, "excp ") || equals(p, c->end, "excp")) { /* SVM's "PF excp" */
		c->p = p + strlen("excp");
		e->reason.len = c->p - from;
	} else if (begins(p, c->end, "FAILED_VMENTRY")) {
		c->p = p + strlen("FAILED_VMENTRY");
	} else if (begins(p, c->end, "0x")) { /* VMX's flags without a name: a bus lock, SGX */
		const char *q = read_hex(p + 2, c->end, &v, &fits);

		if (q > p + 2 && fits)
			c->p = q;
	} else if (p < c->end && *p == '(' && equals(from, to, "UNKNOWN")) {
		const char *q = read_dec(p + 1, c->end, &v, &fits);

		if (q < c->end && *q == ')' && q > p + 1 && fits) {
			host_set(e, HOST_F_reason, v);
			c->p = q + 1;
		}
	}
	return OK;
}

static enum got errno_word(struct cursor *c)
{
	const char *p = to_blank(c->p, c->end);

	c->e->reason = (struct host_text){c->p, p - c->p};
	c->p = p;
	return OK;
}

struct bit_name {
	const char *name;
	uint64_t bit;
};

static enum got bits(struct cursor *c, const struct step *s, const struct bit_name *names, size_t n)
{
	const char *p = c->p, *q;
	uint64_t v = 0;

	for (;;) {
		size_t i;

		for (q = p; q < c->end && !word_ends(*q) && *q != '|'; q++)
			;
		for (i = 0; i < n && !equals(p, q, names[i].name); i++)
			;
		if (i < n) {
			v |= names[i].bit;
		} else if (begins(p, q, "0x")) {
			uint64_t x;
			bool fits;

			if (read_hex(p + 2, q, &x, &fits) != q || !fits)
				return BAD;
			v |= x;
		} else {
			return q == c->end ? CUT : BAD;
		}
		if (q == c->end || *q != '|')
			break;
		p = q + 1;
	}
	step_put(c, s, v);
	c->p = q;
	return OK;
}

static const struct bit_name pferr[] = {{"P", 1}, {"W", 2}, {"U", 4}, {"RSVD", 8}, {"F", 16}};
static const struct bit_name lock[] = {{"SPIN", 1}, {"READ", 2},    {"WRITE", 4},
				       {"RT", 8},   {"PERCPU", 16}, {"MUTEX", 32}};

static enum got one(struct cursor *c, const struct step *s)
{
	const char *l = s->lit;
	bool cut = false;

	for (unsigned i = 0;; i++) {
		const char *stop = strchrnul(l, ',');
		size_t n = stop - l, have = c->end - c->p;

		if (have >= n && !memcmp(c->p, l, n) &&
		    (step_ends(c, c->p + n) || l[n - 1] == ':')) {
			step_put(c, s, i % s->len);
			c->p += n;
			return OK;
		}
		cut |= have < n && !memcmp(c->p, l, have);
		if (!*stop)
			return cut ? CUT : BAD;
		l = stop + 1;
	}
}

static bool access_word(const char *p, uint64_t *access)
{
	static const char letter[] = "wux";
	static const uint8_t bit[] = {2, 4, 1};

	*access = 0;
	for (int i = 0; i < 3; i++) {
		if (p[i] != letter[i] && p[i] != '-')
			return false;
		*access |= p[i] == '-' ? 0 : bit[i];
	}
	return true;
}

/* "direct", "!nxe": the words of a role, of the kernel's texts and the plugin's. */
static bool role_word(const char *p, const char *end)
{
	static const char *const words[] = {"direct", "invalid", "pae",	 "nxe",	 "wp",
					    "pge",    "ad",	 "smep", "smap", "smm"};

	p += p < end && *p == '!';
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (equals(p, end, words[i]))
			return true;
	return false;
}

static enum got role(struct cursor *c, const struct step *s)
{
	for (int words = 0; words < 10; words++) {
		const char *q;
		uint64_t access;

		c->p = skip_blanks(c->p, c->end);
		if (c->p == c->end)
			return CUT;
		if (!strncmp(s->lit, "root ", s->len) ? begins(c->p, c->end, "root")
						      : *c->p == *s->lit)
			return OK;
		q = to_blank(c->p, c->end);
		if (q - c->p == 3 && access_word(c->p, &access))
			host_set(c->e, HOST_F_access, access);
		else if (!role_word(c->p, q))
			return q == c->end ? CUT : BAD;
		else if (*c->p == 'd')
			host_set(c->e, HOST_F_direct, 1);
		c->p = q;
	}
	return BAD;
}

static enum got bytes(struct cursor *c, const struct step *s)
{
	const char *p = c->p;
	unsigned n = 0;

	while (c->end - p >= 2 && is(p[0], CHAR_HEX) && is(p[1], CHAR_HEX) &&
	       (p + 2 == c->end || is(p[2], CHAR_BLANK))) {
		p = skip_blanks(p + 2, c->end);
		n++;
	}
	if (c->end - p == 1 && is(*p, CHAR_HEX))
		return CUT;
	if (s->kind == STEP_BYTES1 && !n)
		return BAD;
	c->p = p;
	return OK;
}

static enum got upto(struct cursor *c, const struct step *s)
{
	const char *at = memmem(c->p, c->end - c->p, s->lit, s->len);

	if (!at)
		return CUT;
	c->p = at + s->len;
	return OK;
}

static enum got comm_pid(struct cursor *c, const struct step *s)
{
	for (const char *p = c->p; p < c->end && p - c->p <= 17; p++) {
		const char *q;
		uint64_t v;
		bool fits;

		if (*p != ':')
			continue;
		q = read_dec(p + 1, c->end, &v, &fits);
		if (q == p + 1 || !fits || (q < c->end && !is(*q, CHAR_BLANK)))
			continue;
		step_put(c, s, v);
		c->p = q;
		return OK;
	}
	return c->end - c->p <= 16 ? CUT : BAD;
}

static enum got other_step(struct cursor *c, const struct step *s)
{
	switch (s->kind) {
	case STEP_WORD:
		return word(c);
	case STEP_FIRST:
		step_put(c, s, (uint8_t)*c->p);
		c->p = to_blank(c->p, c->end);
		return OK;
	case STEP_REASON:
		return reason(c);
	case STEP_ERRNO_WORD:
		return errno_word(c);
	case STEP_PFERR:
		if (s->lit && begins(c->p, c->end, s->lit)) {
			step_put(c, s, 0);
			return OK;
		}
		return bits(c, s, pferr, sizeof(pferr) / sizeof(*pferr));
	case STEP_LOCKFLAGS:
		return bits(c, s, lock, sizeof(lock) / sizeof(*lock));
	case STEP_ONE:
		return one(c, s);
	case STEP_ROLE:
		return role(c, s);
	case STEP_BYTES:
	case STEP_BYTES1:
		return bytes(c, s);
	case STEP_UPTO:
		return upto(c, s);
	case STEP_COMM_PID:
		return comm_pid(c, s);
	default:
		c->p = c->end; /* STEP_REST */
		return OK;
	}
}

enum got step_take(struct cursor *c, const struct step *s)
{
	switch (s->kind) {
	case STEP_LIT:
		return lit(c, s);
	case STEP_HEX:
		return hex(c, s);
	case STEP_DEC:
		return dec(c, s);
	default:
		return other_step(c, s);
	}
}
