// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/work.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/kernel/vmm.h"

#define WORK_FILE "/sys/kernel/debug/kvm/work"

void work_read(struct work *w)
{
	static char text[8192];
	char *save = NULL;
	w->n = 0;
	if (read_text(WORK_FILE, text, sizeof(text)) < 0)
		return;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct work_count *c = &w->count[w->n];
		if (w->n++ == WORK_MAX)
			die("%s: more than %d counts", WORK_FILE, WORK_MAX);
		if (sscanf(line, "%39s %" SCNu64, c->name, &c->value) != 2)
			die("%s: expected a name and a number, found '%s'", WORK_FILE, line);
	}
}
