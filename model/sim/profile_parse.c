// SPDX-License-Identifier: GPL-2.0-or-later
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/sim/profile_priv.h"

/*
 * libinih hands over (section, key, value), but in Debian's build neither the line's number nor
 * lines of any length. So it reads through next_line(), which counts them and looks at each.
 */
#define MAX_FRACTION 6

enum key_kind { KEY_PRICE, KEY_SIGMA, KEY_SOURCE, KEY_GROUP, N_KEY_KINDS };

struct parse {
	const char *at; /* rest of the text */
	const char *name;
	unsigned line;
	struct profile *profile;
	const struct kvmsim_errsink *errors;
	/* The first error; everything after it is skipped. Told at the end, since libinih goes on
	 * after a line that it cannot read and says so only then. */
	int err;
	unsigned err_line;
	char msg[512];
	/* What has been given, to refuse it twice. */
	unsigned *seen[N_KEY_KINDS]; /* [count] -> line */
	unsigned *seen_param, *seen_pair;
	unsigned seen_machine[4];
};

static int fail(struct parse *ps, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(struct parse *ps, const char *fmt, ...)
{
	va_list ap;

	if (ps->err)
		return 0;
	va_start(ap, fmt);
	vsnprintf(ps->msg, sizeof(ps->msg), fmt, ap);
	va_end(ap);
	ps->err = KVMSIM_EPARSE;
	ps->err_line = ps->line;
	return 0; /* what a handler returns to libinih on an error */
}

static int no_memory(struct parse *ps)
{
	ps->err = KVMSIM_ENOMEM;
	return 0;
}

/* ini_reader: fgets() over the text, without the indentation (which libinih would take for the
 * continuation of a value). */
static char *next_line(char *buf, int size, void *stream)
{
	struct parse *ps = stream;
	const char *end;
	size_t len;

	if (!*ps->at || ps->err)
		return NULL;
	ps->line++;
	end = strchr(ps->at, '\n');
	end = end ? end + 1 : ps->at + strlen(ps->at);
	while (*ps->at == ' ' || *ps->at == '\t')
		ps->at++;
	len = (size_t)(end - ps->at);
	if (len >= (size_t)size) {
		fail(ps, "line of more than %d bytes", size - 1);
		return NULL;
	}
	memcpy(buf, ps->at, len);
	buf[len] = '\0';
	ps->at = end;
	return buf;
}

/* Whether this is the first time: else an error. */
static bool once(struct parse *ps, unsigned *seen, const char *key)
{
	if (*seen) {
		fail(ps, "%s was given in line %u already", key, *seen);
		return false;
	}
	*seen = ps->line;
	return true;
}

/* An unsigned decimal integer that takes up all of @text up to @end; false when it is none. */
static bool integer(const char *text, const char *end, uint64_t *out)
{
	uint64_t n = 0;

	if (text == end)
		return false;
	for (; text < end; text++) {
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(n, 10u, &n) ||
		    __builtin_add_overflow(n, (unsigned)(*text - '0'), &n))
			return false;
	}
	*out = n;
	return true;
}

/* A decimal with up to 6 digits after the point, rounded to 1 / 65536. */
static bool fixed_point(struct parse *ps, const char *text, uint64_t max, uint64_t *out)
{
	const char *end = text + strlen(text), *point = strchr(text, '.');
	uint64_t whole, fraction = 0, scale = 1;
	unsigned __int128 value;

	if (*text == '-')
		return fail(ps, "%s is negative", text);
	if (!integer(text, point ? point : end, &whole))
		return fail(ps, "%s is no decimal number, or too large", text);
	if (point) {
		if (end - point - 1 > MAX_FRACTION)
			return fail(ps, "%s has more than %d digits after the point", text,
				    MAX_FRACTION);
		if (!integer(point + 1, end, &fraction))
			return fail(ps, "%s is no decimal number", text);
		for (const char *c = point + 1; c < end; c++)
			scale *= 10;
	}
	value = ((unsigned __int128)whole << PRICE_SHIFT) +
		((fraction << PRICE_SHIFT) + scale / 2) / scale;
	if (value > max)
		return fail(ps, "%s is too large", text);
	*out = (uint64_t)value;
	return true;
}

static bool find_count(struct parse *ps, const char *key, size_t len, uint16_t *out)
{
	const struct sim_vocabulary *v = ps->profile->vocabulary;

	for (uint16_t i = 0; i < v->n_counts; i++) {
		if (strlen(v->counts[i]) == len && !memcmp(v->counts[i], key, len)) {
			*out = i;
			return true;
		}
	}
	fail(ps, "there is no count %.*s", (int)len, key);
	return false;
}

static int set_string(struct parse *ps, char **to, const char *value)
{
	*to = strdup(value);
	return *to ? 1 : no_memory(ps);
}

static int on_machine(struct parse *ps, const char *key, const char *value)
{
	static const char *const keys[] = {"name", "unit", "hz", "source"};
	struct profile *p = ps->profile;
	unsigned i = 0;

	while (i < 4 && strcmp(keys[i], key))
		i++;
	if (i == 4)
		return fail(ps, "[machine] has no %s; it has name, unit, hz and source", key);
	if (!once(ps, &ps->seen_machine[i], key))
		return 0;
	switch (i) {
	case 0:
		return set_string(ps, &p->machine, value);
	case 1:
		if (strcmp(value, "cycles") && strcmp(value, "instructions"))
			return fail(ps, "unit is cycles or instructions, not %s", value);
		return set_string(ps, &p->unit, value);
	case 2:
		if (!integer(value, value + strlen(value), &p->hz))
			return fail(ps, "hz = %s is no whole number, or too large", value);
		return 1;
	default:
		return set_string(ps, &p->machine_source, value);
	}
}

static int on_count(struct parse *ps, enum key_kind kind, const char *key, const char *value)
{
	struct profile *p = ps->profile;
	uint16_t count;

	if (!find_count(ps, key, strlen(key), &count) || !once(ps, &ps->seen[kind][count], key))
		return 0;
	switch (kind) {
	case KEY_PRICE:
		return fixed_point(ps, value, UINT64_MAX, &p->price[count]);
	case KEY_SIGMA:
		return fixed_point(ps, value, UINT64_MAX, &p->sigma[count]);
	default:
		return set_string(ps, &p->source[count], value);
	}
}

static int on_covariance(struct parse *ps, const char *key, const char *value)
{
	const char *comma = strchr(key, ',');
	bool negative = *value == '-';
	uint16_t a, b;
	uint64_t magnitude = 0;

	if (!comma)
		return fail(ps, "a covariance is of two counts: A,B = VALUE");
	if (!find_count(ps, key, (size_t)(comma - key), &a) ||
	    !find_count(ps, comma + 1, strlen(comma + 1), &b))
		return 0;
	if (!once(ps,
		  &ps->seen_pair[(a < b ? a : b) * ps->profile->vocabulary->n_counts +
				 (a < b ? b : a)],
		  key))
		return 0;
	if (!fixed_point(ps, value + negative, INT64_MAX, &magnitude))
		return 0;
	if (a == b && negative && magnitude)
		return fail(ps, "the covariance of %s with itself is negative", key);
	profile_set_covariance(ps->profile, a, b,
			       negative ? -(int64_t)magnitude : (int64_t)magnitude);
	return 1;
}

static int on_group(struct parse *ps, const char *key, const char *value)
{
	size_t members = 0;

	for (uint16_t i = 0; i < ps->profile->vocabulary->n_counts; i++) {
		const char *other = ps->profile->group[i];

		if (other && !strcmp(other, key))
			return fail(ps, "group %s was given already", key);
	}
	for (;;) {
		size_t len;
		uint16_t count;

		value += strspn(value, " \t");
		len = strcspn(value, " \t");
		if (!len)
			break;
		if (!find_count(ps, value, len, &count) ||
		    !once(ps, &ps->seen[KEY_GROUP][count], ps->profile->vocabulary->counts[count]))
			return 0;
		if (!set_string(ps, &ps->profile->group[count], key))
			return 0;
		value += len;
		members++;
	}
	return members ? 1 : fail(ps, "group %s is empty", key);
}

static int on_param(struct parse *ps, const char *key, const char *value)
{
	struct profile *p = ps->profile;
	size_t i = 0;
	uint64_t n;

	while (i < p->n_params && strcmp(p->params[i].name, key))
		i++;
	if (i == p->n_params)
		return fail(ps, "there is no param %s", key);
	if (!once(ps, &ps->seen_param[i], key))
		return 0;
	if (!integer(value, value + strlen(value), &n) || n < p->params[i].min ||
	    n > p->params[i].max)
		return fail(ps, "%s = %s is no whole number from %llu to %llu", key, value,
			    (unsigned long long)p->params[i].min,
			    (unsigned long long)p->params[i].max);
	p->param[i] = n;
	return 1;
}

static int on_key(void *user, const char *section, const char *key, const char *value)
{
	struct parse *ps = user;

	if (ps->err)
		return 0;
	if (!strcmp(section, "machine"))
		return on_machine(ps, key, value);
	if (!strcmp(section, "price"))
		return on_count(ps, KEY_PRICE, key, value);
	if (!strcmp(section, "sigma"))
		return on_count(ps, KEY_SIGMA, key, value);
	if (!strcmp(section, "source"))
		return on_count(ps, KEY_SOURCE, key, value);
	if (!strcmp(section, "covariance"))
		return on_covariance(ps, key, value);
	if (!strcmp(section, "group"))
		return on_group(ps, key, value);
	if (!strcmp(section, "param"))
		return on_param(ps, key, value);
	if (!*section)
		return fail(ps, "%s stands before any [section]", key);
	return fail(ps, "unknown section [%s]", section);
}

static bool seen_alloc(struct parse *ps)
{
	size_t n = ps->profile->vocabulary->n_counts;
	bool ok = true;

	for (int k = 0; k < N_KEY_KINDS; k++) {
		ps->seen[k] = calloc(n, sizeof(unsigned));
		ok = ok && ps->seen[k];
	}
	ps->seen_param = calloc(ps->profile->n_params + 1, sizeof(unsigned));
	ps->seen_pair = calloc(n * n, sizeof(unsigned));
	return ok && ps->seen_param && ps->seen_pair;
}

static void seen_free(struct parse *ps)
{
	for (int k = 0; k < N_KEY_KINDS; k++)
		free(ps->seen[k]);
	free(ps->seen_param);
	free(ps->seen_pair);
}

int profile_parse(const char *text, size_t len, const char *name,
		  const struct sim_vocabulary *vocabulary, const struct profile_param *params,
		  const struct kvmsim_errsink *errors, struct profile **out)
{
	struct parse ps = {.name = name, .errors = errors};
	char *copy = malloc(len + 1);
	int r;

	*out = NULL;
	ps.profile = profile_new(vocabulary, params);
	if (!copy || !ps.profile || !seen_alloc(&ps)) {
		ps.err = KVMSIM_ENOMEM;
		goto out;
	}
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (strlen(copy) < len) {
		for (const char *c = copy; c; c = strchr(c + 1, '\n'))
			ps.line++;
		fail(&ps, "a NUL byte: this is no text");
		goto out;
	}
	ps.profile->checksum = 0xcbf29ce484222325u; /* FNV-1a */
	for (size_t i = 0; i < len; i++)
		ps.profile->checksum =
			(ps.profile->checksum ^ (unsigned char)text[i]) * 0x100000001b3u;
	ps.profile->name = strdup(name);
	if (!ps.profile->name) {
		ps.err = KVMSIM_ENOMEM;
		goto out;
	}
	ps.at = copy;
	r = ini_parse_stream(next_line, &ps, on_key, &ps);
	if (r < 0 && !ps.err) {
		ps.err = KVMSIM_ENOMEM;
	} else if (r > 0 && (!ps.err || (unsigned)r < ps.err_line)) { /* the first bad line */
		ps.err = 0;
		ps.line = (unsigned)r;
		fail(&ps, "neither [section] nor key = value");
	}
out:
	free(copy);
	seen_free(&ps);
	if (ps.err) {
		if (ps.err == KVMSIM_EPARSE)
			kvmsim_err(errors, ps.err, "%s:%u: %s", name, ps.err_line, ps.msg);
		profile_free(ps.profile);
		return ps.err;
	}
	*out = ps.profile;
	return 0;
}
