/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_LOCK_FILE_H
#define KVMSIM_ANALYSIS_LOCK_FILE_H

#include "model/sim/error.h"
#include "workloads/lock_set.h"

/*
 * Tables of locks, as `kvmsim record qemu --scenario dbench` writes them (kvmsim-record(1)): the
 * rows `all`, `lock` and `locks` of the last phase. What timer interrupts took is left out: their
 * number is the recording's, not the guest's.
 */

/* Reads @path; NULL: the built-in recording, traces/recorded/dbench-locks.csv. Errors: those of
 * csv_read(), KVMSIM_EPARSE with a message. Free with lock_set_free() in any case. */
int lock_file_read(const char *path, const struct kvmsim_errsink *errors, struct lock_set *out);

#endif
