/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_PARALLEL_H
#define KVMSIM_KERNEL_PARALLEL_H

#include "tests/kernel/record.h"

/*
 * Cases P_quiet, P_get and P_clear: two vCPUs that run at the same time, on two CPUs of the
 * recorded kernel, with random loads and stores (workloads/parallel.h). In P_quiet the log is got
 * while they rest, and all of the bitmap is in the rows, 32 pages in each. In the others it is
 * collected again and again while they run, by GET or by GET and CLEAR; the rows have the bits of
 * all collections together, and how many of them broke the bounds. opts.program is not used.
 */
void record_parallel(const struct record_opts *opts);

#endif
