/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RUN_ARGS_H
#define KVMSIM_ANALYSIS_RUN_ARGS_H

#include <getopt.h>

#include "analysis/cli.h"
#include "analysis/run.h"

/* The options that every verb has which makes runs, beside its own. */
struct run_args {
	const struct verb *verb;
	struct run_opts *run; /* what is given goes here; but for dirty, profile, shadow_pages */
	const char *dirty, *profile, *store;
	uint64_t shadow_lo, shadow_hi; /* equal unless @ranges */
	bool ranges;		       /* --shadow-pages may be LO-HI */
	bool lists;  /* --spte may be a list, and be given again, which makes it longer: a->sptes */
	char *sptes; /* owned by the verb; NULL: not given, or no lists */
	bool shadow_pages_given, json, csv, help;
	/* The verb's own: their `val` from RUN_ARG_OWN on, ended by {0}; short ones as for
	 * getopt(3), after a ':'. @parse takes one of them, with its name as a user writes it, its
	 * argument in optarg; false: message printed. */
	const struct option *own;
	const char *shorts;
	bool (*parse)(void *ctx, int opt, const char *name);
	void *ctx;
};
#define RUN_ARG_OWN 512

/* 0 or an exit code, its message printed: an option unknown, without its value or out of range; not
 * exactly one input; no policy or no profile. With --help the rest is not looked at. */
int run_args_parse(struct run_args *a, int argc, char **argv);

/* Whether there are these dirty policies, with these parameters, the spte and the
 * mmulock policy: 0 or an exit code, its message printed.
 */
int run_args_policies(const struct run_args *a, const char *const *policies, size_t n);

/* The same for an spte policy that is not in run->spte. */
int run_args_spte(const struct run_args *a, const char *spte);

/* Their lines of the verb's usage. */
#define RUN_ARGS_USAGE                                                                             \
	"  --kernel PRESET       era of the algorithms (default: the scenario's, 6.1-shadow)\n"    \
	"  --cpu NAME            what the guest runs on: tcg (default), or one whose TLB "         \
	"survives\n"                                                                               \
	"                        exits: amd, intel, ... (kvmsim list); all evidence is of tcg,\n"  \
	"                        whatever the profile\n"                                           \
	"  --spte NAME[,K=V...]  what is remembered of accesses to devices, and how guests' "      \
	"page\n"                                                                                   \
	"                        tables are followed (kvmsim list; default: the preset's)\n"       \
	"  --mmulock NAME        what protects the MMU: spin, rwlock, rwlock-tdp or "              \
	"rwlock-relax\n"                                                                           \
	"                        (default: the preset's)\n"                                        \
	"  --invalidations N     MMU notifiers' before: the sequence that faults compare begins "  \
	"there\n"                                                                                  \
	"  --interval N          guest instructions between collections, a multiple of the\n"      \
	"                        trace's epoch (default: one epoch)\n"                             \
	"  --slot NAME           memory slot to log, or all (default: the scenario's, all)\n"      \
	"  --long-mode           a 64-bit guest with 2M pages, one to one; without it the guest "  \
	"does\n"                                                                                   \
	"                        not page, and no slot may end above 4 GiB\n"                      \
	"  --nested              nested paging (EPT, NPT) where the era has shadow paging by "     \
	"default\n"                                                                                \
	"  --running             the vCPUs run on while logging is turned on and the log "         \
	"collected\n"                                                                              \
	"  --disable-after N     with --running: logging is turned off after N collections\n"      \
	"  --host-pages SIZE     of the memory behind every slot: 4k, 2m or 1g (default: the\n"    \
	"                        scenario's, 4k)\n"                                                \
	"  --host-memory KIND    what the host has of it before the guest comes: present "         \
	"(default),\n"                                                                             \
	"                        shared, anonymous\n"                                              \
	"  --eager-page-split Y|N large mappings are split when logging begins\n"                  \
	"                        (default: Y, where the era's kernel does it)\n"                   \
	"  --seed N              of every random draw (default 1)\n"                               \
	"  --store FILE          keep what is run in this results store\n"

#endif
