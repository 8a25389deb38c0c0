/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_CHARS_H
#define KVMSIM_TRACES_HOST_CHARS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Characters of trace text, by one table; the C library's depend on the locale. */
enum {
	CHAR_DIGIT = 1,
	CHAR_HEX = 2,
	CHAR_NAME = 4, /* letters, digits, _ */
	CHAR_BLANK = 8,
	CHAR_FLAG = 16, /* of the latency columns */
	CHAR_UPPER = 32,
};
extern const uint8_t char_class[256];

static inline bool is(char c, int class)
{
	return char_class[(uint8_t)c] & class;
}
static inline const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && is(*p, CHAR_BLANK))
		p++;
	return p;
}
static inline const char *skip(const char *p, const char *end, int class)
{
	while (p < end && is(*p, class))
		p++;
	return p;
}
static inline const char *to_blank(const char *p, const char *end)
{
	while (p < end && !is(*p, CHAR_BLANK))
		p++;
	return p;
}
static inline bool begins(const char *p, const char *end, const char *s)
{
	size_t n = strlen(s);

	return (size_t)(end - p) >= n && !memcmp(p, s, n);
}
static inline bool equals(const char *p, const char *end, const char *s)
{
	return (size_t)(end - p) == strlen(s) && begins(p, end, s);
}

/* Digits at @p: their end; *@out is the number, *@fits false when it has more than 64 bits. */
static inline const char *read_dec(const char *p, const char *end, uint64_t *out, bool *fits)
{
	uint64_t v = 0;
	const char *from = p;

	*fits = true;
	for (; p < end && (uint8_t)(*p - '0') < 10; p++) {
		if (p - from >= 19 &&
		    (v > UINT64_MAX / 10 || v * 10 > UINT64_MAX - (uint8_t)(*p - '0')))
			*fits = false;
		v = v * 10 + (uint8_t)(*p - '0');
	}
	*out = v;
	return p;
}
extern const uint8_t hex_value[256]; /* 255: no digit */
static inline const char *read_hex(const char *p, const char *end, uint64_t *out, bool *fits)
{
	uint64_t v = 0;

	*fits = true;
	for (; p < end && hex_value[(uint8_t)*p] < 16; p++) {
		*fits &= !(v >> 60);
		v = v << 4 | hex_value[(uint8_t)*p];
	}
	*out = v;
	return p;
}

#endif
