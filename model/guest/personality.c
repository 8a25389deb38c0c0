// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/personality.h"

#include <string.h>

static const struct cpu_personality personalities[] = {
	{
		.name = "tcg",
		.summary = "QEMU's emulated SVM: flushes its TLB at every entry and exit",
		.rmw_reads_first = true,
		.nested_pt_writes = true,
		.tlb_entries = 4096,
	},
	{
		/* Second-level data TLB of 2,048 entries: AMD, Software Optimization Guide for
		 * Family 17h models 30h and later, 2.6. */
		.name = "amd",
		.summary = "AMD with SVM: the TLB is tagged by ASID and survives exits",
		.tlb_survives_exit = true,
		.decode_assists = true,
		.nested_pt_writes = true,
		.tlb_entries = 2048,
	},
};

const struct cpu_personality *personality_at(size_t i)
{
	return i < sizeof(personalities) / sizeof(personalities[0]) ? &personalities[i] : NULL;
}

const struct cpu_personality *personality_find(const char *name)
{
	const struct cpu_personality *p;

	if (!name)
		return &personalities[0];
	for (size_t i = 0; (p = personality_at(i)); i++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}
