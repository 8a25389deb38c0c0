// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/sim/evq.h"

#include <stdlib.h>

#include "model/sim/error.h"

int evq_reserve(struct evq *q, uint32_t slots)
{
	uint32_t size = q->size ? q->size : 1;
	struct evq_key *node;

	if (slots > UINT32_MAX / 4)
		return KVMSIM_ENOMEM;
	while (size < slots)
		size *= 2;
	if (size == q->size)
		return 0;
	node = malloc(2 * (size_t)size * sizeof(*node));
	if (!node)
		return KVMSIM_ENOMEM;
	node[0] = (struct evq_key){EVQ_NEVER, UINT64_MAX}; /* no node */
	for (uint32_t i = 0; i < size; i++)
		node[size + i] = i < q->size ? q->node[q->size + i] : node[0];
	for (uint32_t i = size - 1; i; i--) {
		struct evq_key a = node[2 * i], b = node[2 * i + 1];

		node[i] = evq_before(b, a) ? b : a;
	}
	free(q->node);
	q->node = node;
	q->size = size;
	return 0;
}

void evq_free(struct evq *q)
{
	free(q->node);
	*q = (struct evq){0};
}
