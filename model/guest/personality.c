// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/personality.h"

#include <string.h>

static const struct cpu_personality personalities[] = {
	{
		.name = "tcg",
		.summary = "QEMU's emulated SVM: flushes its TLB at every entry and exit",
		.rmw_reads_first = true,
		.nested_ad = true,
		.nested_pt_writes = true,
		.pdpte_accessed = true,
		.rsvd_not_present = true,
		.phys_bits = 40,
		.tlb_entries = 4096,
	},
	{
		/* Second-level data TLB of 2,048 entries: AMD, Software Optimization Guide for
		 * Family 17h models 30h and later, 2.6. */
		.name = "amd",
		.summary = "AMD with SVM: the TLB is tagged by ASID and survives exits",
		.tlb_survives_exit = true,
		.decode_assists = true,
		.insn_bytes = true,
		.nested_ad = true,
		.nested_pt_writes = true,
		.phys_bits = 48,
		.tlb_entries = 2048,
	},
	{
		/* 52 bits of physical addresses and 3,072 entries (here the power of two below):
		 * AMD, Software Optimization Guide for the Zen4 Microarchitecture. */
		.name = "amd-zen4",
		.summary = "AMD's Zen 4: as amd, but no bit of an address is reserved",
		.tlb_survives_exit = true,
		.decode_assists = true,
		.insn_bytes = true,
		.nested_ad = true,
		.nested_pt_writes = true,
		.phys_bits = 52,
		.tlb_entries = 2048,
	},
	/* With A and D in EPT entries, Intel's CPUs treat each access of the guest's page tables as
	 * a write (SDM volume 3, "Accessed and Dirty Flags for EPT"). Second-level TLBs, of 4K
	 * pages, by the Optimization Reference Manual: Skylake 1,536 entries (here the power of two
	 * below), Haswell 1,024, Nehalem 512. */
	{
		.name = "intel",
		.summary = "Intel since Broadwell: EPT with A and D, page-modification log, VPID",
		.vmx = true,
		.tlb_survives_exit = true,
		.decode_assists = true,
		.nested_ad = true,
		.nested_pt_writes = true,
		.pml = true,
		.phys_bits = 46,
		.tlb_entries = 1024,
	},
	{
		.name = "intel-haswell",
		.summary = "Intel's Haswell: EPT with A and D, no page-modification log, VPID",
		.vmx = true,
		.tlb_survives_exit = true,
		.decode_assists = true,
		.nested_ad = true,
		.nested_pt_writes = true,
		.phys_bits = 46,
		.tlb_entries = 1024,
	},
	{
		.name = "intel-nehalem",
		.summary = "Intel's Nehalem: EPT without A and D, VPID",
		.vmx = true,
		.tlb_survives_exit = true,
		.decode_assists = true,
		.phys_bits = 40,
		.tlb_entries = 512,
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
