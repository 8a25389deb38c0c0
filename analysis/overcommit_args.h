/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_OVERCOMMIT_ARGS_H
#define KVMSIM_ANALYSIS_OVERCOMMIT_ARGS_H

#include <getopt.h>

#include "analysis/cli.h"
#include "workloads/overcommit.h"

/* The options of `kvmsim overcommit` and `kvmsim sweep`: one machine, what runs in it, how it is
 * measured. */
#define OVERCOMMIT_MAX_POINTS 64

struct overcommit_args {
	const struct verb *verb;
	struct overcommit_opts o; /* but vms, locks, profile, interrupted */
	const char *workload, *beside, *profile, *locks_path;
	uint32_t replicates; /* before parsing: the default; 0: 1 */
	uint32_t workers;
	/* Numbers of VMs, or of times the pCPUs are there in vCPUs. */
	uint32_t point[OVERCOMMIT_MAX_POINTS], n_points;
	bool points_are_vms;
	bool json, csv, contention, help;
	/* A verb's own options: getopt's, from OVERCOMMIT_OWN on, ended by a NULL name; EXIT_DONE
	 * or EXIT_USAGE. May be NULL. */
	const struct option *own;
	int (*parse_own)(struct overcommit_args *a, int opt, const char *option);
	void *own_ctx;
	/* Filled by overcommit_args_load(): */
	struct lock_set locks;
	struct profile *loaded;
};
#define OVERCOMMIT_OWN 1000

/* Of the verbs' --help: the options that are the same in both. */
#define OVERCOMMIT_HELP_MACHINE                                                                    \
	"  --vcpus N                of each VM (default 32)\n"                                     \
	"  --pcpus N                of the host (default 32)\n"                                    \
	"  --llc N                  pCPUs that share a last-level cache (default: all)\n"          \
	"  --pin                    vCPU i on pCPU i, modulo their number\n"
#define OVERCOMMIT_HELP_GUEST                                                                      \
	"  --time MS                virtual time that is measured (default 100)\n"                 \
	"  --warm-up MS             before that (default 20)\n"                                    \
	"  --apicv                  interrupts reach a running vCPU without an exit\n"             \
	"  --pv-ipi                 interrupts to many vCPUs are one hypercall\n"                  \
	"  --kick-yields            a kick's hypercall yields to its target\n"                     \
	"  --steal-time             guests know which vCPUs are preempted\n"                       \
	"  --halt-poll NS           how long a halting vCPU polls at most (default 0)\n"           \
	"  --guest-hz N             the guests' tick (default 1000; 0: none)\n"                    \
	"  --locks FILE             a table of kvmsim record qemu --scenario dbench\n"             \
	"  --profile PROFILE        built-in profile, or a file (PATH.ini)\n"

/* EXIT_DONE, or EXIT_USAGE, its message printed. With --help the rest is not looked at. */
int overcommit_args_parse(struct overcommit_args *a, int argc, char **argv);
/* Reads the profile, and the locks where a workload takes them. EXIT_DONE or what went wrong. */
int overcommit_args_load(struct overcommit_args *a);
void overcommit_args_free(struct overcommit_args *a);
/* "1..4", "1,2,8": whole numbers from @min to @max. EXIT_DONE or EXIT_USAGE. */
int overcommit_list(const struct verb *verb, const char *option, const char *text, uint32_t min,
		    uint32_t max, uint32_t *out, uint32_t *n);
/* The VMs at a point of @factor times as many vCPUs as pCPUs. EXIT_DONE, or EXIT_USAGE with a
 * message that names @option. */
int overcommit_vms(const struct verb *verb, const char *option, const struct overcommit_opts *o,
		   uint32_t factor, uint32_t *vms);

#endif
