// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/sim/evq.h"

#include <stdlib.h>

#include "model/sim/error.h"

#define EVQ_MIN_SIZE 2u /* the root must not be a leaf */

int evq_reserve(struct evq *q, uint32_t slots)
{
	struct evq_key *leaf;
	uint32_t *winner;
	uint32_t size = q->size ? q->size : EVQ_MIN_SIZE;

	if (slots > UINT32_MAX / 4)
		return KVMSIM_ENOMEM;
	while (size < slots)
		size *= 2;
	if (size == q->size)
		return 0;
	leaf = malloc(size * sizeof(*leaf));
	winner = malloc(2 * size * sizeof(*winner));
	if (!leaf || !winner) {
		free(leaf);
		free(winner);
		return KVMSIM_ENOMEM;
	}
	for (uint32_t i = 0; i < size; i++)
		leaf[i] = i < q->size ? q->leaf[i] : (struct evq_key){EVQ_NEVER, UINT64_MAX};
	winner[0] = 0; /* no node */
	for (uint32_t i = 0; i < size; i++)
		winner[size + i] = i;
	for (uint32_t i = size - 1; i; i--) {
		uint32_t a = winner[2 * i], b = winner[2 * i + 1];

		winner[i] = evq_before(leaf[b], leaf[a]) ? b : a;
	}
	evq_free(q);
	*q = (struct evq){leaf, winner, size};
	return 0;
}

void evq_free(struct evq *q)
{
	free(q->leaf);
	free(q->winner);
	*q = (struct evq){0};
}
