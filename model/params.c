// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/params.h"

#define KIB 1024ull
#define GIB (1024ull * 1024 * 1024)

const struct profile_param model_params[] = {
	{"ipi_latency", 0, 0, 1ull << 40,
	 "units of time from sending an IPI to its arrival; 0: no run-ahead"},
	{"cores", 0, 0, 4096, "cores of the machine; 0: one for each task"},
	{"smt_permille", 1000, 1000, 10000,
	 "time of the same work on a core whose other thread is busy, permille of alone"},
	{"memory_load_permille", 0, 0, 1000,
	 "what each further busy CPU adds to a guest's TLB walk and miss, permille of them"},
	{"line_transfer", 0, 0, 1ull << 40,
	 "units of time in which a contended lock's cache line comes from another core"},
	{"queue_transfers", 0, 0, 100,
	 "such transfers in a lock's hand-over when more than one waits; 0: log2 of the CPUs"},
	{"tlbi_broadcast", 0, 0, 1ull << 40,
	 "units of time that a TLB invalidation broadcast by the CPU takes, one after another"},
	{"line_bytes", 64, 16, 4 * KIB, "cache line"},
	{"l2_bytes", 0, 0, GIB, "private cache of a pCPU; 0: none"},
	{"l2_ways", 8, 1, 1024, "associativity of the private cache"},
	{"refill_permille", 0, 0, 1000,
	 "private cache lines that 1000 instructions of a guest touch, of a set as large as the "
	 "cache; 0: vCPUs that share a CPU don't evict each other's"},
	{"guarded_permille", 0, 0, 1000,
	 "lines of what a guest's lock guards that 1000 instructions with it touch, if another CPU "
	 "held it before; 0: none"},
	{"llc_bytes", 0, 0, 64 * GIB, "last-level cache, shared by all pCPUs; 0: none"},
	{"llc_ways", 16, 1, 1024, "associativity of the last-level cache"},
	{"dtlb_entries", 0, 0, 1024 * KIB, "entries of the host's data TLB; 0: none"},
	{"dtlb_ways", 4, 1, 1024, "associativity of the data TLB"},
	{"dtlb_page_bytes", 4 * KIB, 4 * KIB, GIB, "page that a data TLB entry maps"},
	{"dtlb_flush_on_entry", 0, 0, 1, "whether a VM entry empties the host's data TLB"},
	{"prefetch_streams", 0, 0, 64, "streams that the hardware prefetcher follows; 0: none"},
	{"guest_pollution", 0, 0, 1ull << 32,
	 "cache lines that guest and unmodelled kernel code evict at each VM entry"},
	{0},
};
