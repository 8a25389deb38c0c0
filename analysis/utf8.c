// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/utf8.h"

#include <stdint.h>
#include <string.h>

size_t utf8_char(const unsigned char *at, size_t len)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = !len		  ? 0
		   : at[0] < 0x80 ? 1
		   : at[0] < 0xc2 ? 0
		   : at[0] < 0xe0 ? 2
		   : at[0] < 0xf0 ? 3
		   : at[0] < 0xf5 ? 4
				  : 0;
	uint32_t c;

	if (n < 2)
		return n;
	if (len < n)
		return 0;
	c = at[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (at[i] & 0x3fu);
	}
	return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

char *utf8_clean(char *to, size_t room, const char *at, size_t len, bool controls)
{
	size_t n = 0;

	while (len) {
		const unsigned char *c = (const unsigned char *)at;
		size_t have = utf8_char(c, len);
		bool bad = !have || !*c || (!controls && (*c < 0x20 || *c == 0x7f));
		size_t need = bad ? 3 : have;

		if (n + need + 1 > room)
			break;
		memcpy(to + n, bad ? "\xef\xbf\xbd" : at, need);
		n += need;
		have = have ? have : 1;
		at += have;
		len -= have;
	}
	to[n] = '\0';
	return to;
}
