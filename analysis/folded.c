// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/folded.h"

#include <string.h>

#include "analysis/utf8.h"

char *folded_frame(char *to, size_t room, const char *text)
{
	utf8_clean(to, room, text, strlen(text), false);
	for (char *c = to; *c; c++)
		if (*c == ';')
			*c = ':';
	return to;
}
