/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_UTF8_H
#define KVMSIM_ANALYSIS_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Somebody else's bytes as UTF-8: what is none (also overlong forms, surrogates, beyond U+10FFFF)
 * becomes U+FFFD, a byte at a time; so do NUL and, unless @controls, other control characters.
 * Writes a NUL-terminated text of at most @room bytes with it, cut between two characters. Returns
 * @to.
 */
char *utf8_clean(char *to, size_t room, const char *at, size_t len, bool controls);
/* How many bytes the character at @at has, of @len there are; 0: none is there. */
size_t utf8_char(const unsigned char *at, size_t len);

#endif
