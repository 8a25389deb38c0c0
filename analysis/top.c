// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/top.h"

#include <stdlib.h>
#include <string.h>

#include "model/sim/error.h"

int top_init(struct top *t, size_t size, size_t room, int (*order)(const void *, const void *))
{
	*t = (struct top){.size = size, .room = room, .order = order};
	t->items = calloc(room, size);
	return t->items ? 0 : KVMSIM_ENOMEM;
}

void top_free(struct top *t)
{
	free(t->items);
	t->items = NULL;
	t->n = 0;
}

void top_offer(struct top *t, const void *item)
{
	size_t at = t->n;

	while (at && t->order(item, t->items + (at - 1) * t->size) < 0)
		at--;
	if (at == t->room)
		return;
	if (t->n < t->room)
		t->n++;
	memmove(t->items + (at + 1) * t->size, t->items + at * t->size, (t->n - 1 - at) * t->size);
	memcpy(t->items + at * t->size, item, t->size);
}

const void *top_item(const struct top *t, size_t i)
{
	return t->items + i * t->size;
}
