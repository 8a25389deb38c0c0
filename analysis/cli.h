/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_CLI_H
#define KVMSIM_ANALYSIS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sim/error.h"

/*
 * What every verb of the command shares: the table of verbs, messages, exit codes, profiles.
 *
 * A verb is one function in cmd_VERB.c: it parses argv with getopt_long (argv[0] is the verb),
 * prints its result on stdout, and returns an exit code. Messages go to stderr as
 * "kvmsim: MESSAGE", one line each.
 */

enum exit_code {
	EXIT_DONE = 0,
	EXIT_GATE = 1, /* --fail-if, --strict, validate out of bounds */
	EXIT_USAGE = 2,
	EXIT_INPUT = 3,		/* unusable input */
	EXIT_IO = 4,		/* disk full, store */
	EXIT_INTERRUPTED = 130, /* SIGINT, SIGTERM */
};

struct verb {
	const char *name;
	const char *summary; /* one line */
	const char *usage;   /* printed by --help after "Usage: kvmsim "; several lines */
	int (*run)(const struct verb *verb, int argc, char **argv);
};
extern const struct verb verb_list, verb_info, verb_replay, verb_compare, verb_import, verb_store,
	verb_calibrate, verb_validate, verb_record, verb_memstress, verb_converge, verb_hotspots,
	verb_export, verb_explain, verb_overcommit, verb_sweep;
/* What `record` can record: "record NAME", listed in cmd_record.c. */
extern const struct verb recorder_kvm, recorder_qemu, recorder_tracefs;

/* The program's version, as --version prints it and the store keeps it. */
extern const char kvmsim_version[];

/* Writes "kvmsim: MESSAGE" to stderr, control characters of the message as \xNN. */
extern const struct kvmsim_errsink cli_errors;

/* EXIT_* for an enum kvmsim_error (0 or positive: EXIT_DONE). */
int cli_exit_code(int err);
/* The same for what only reads: a file that cannot be opened or read, or whose content cannot be
 * run, is unusable input. */
int cli_input_exit_code(int err);
/* The same for a run, whose policy, kernel, MMU and CPU are options: a pair that cannot work is a
 * usage error, in every verb. */
int cli_run_exit_code(int err);
/* The same where every name and value is from a file: a wrong one is no usage error. */
int cli_file_exit_code(int err);

/* A usage error: message and a hint at --help; returns EXIT_USAGE. */
int cli_usage(const struct verb *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints the verb's help on stdout; returns EXIT_DONE. */
int cli_help(const struct verb *verb);

/* Warnings are counted by text and printed once, at the end, on stderr. */
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The program's last act: prints the warnings, flushes stdout. Returns @code, or EXIT_IO with a
 * message when @code was EXIT_DONE and stdout could not be written. */
int cli_finish(int code);

/* From now on SIGINT and SIGTERM only set run_interrupted (run.h), so that a verb that looks at it
 * can leave nothing half-written; so does a second one, since timeout(1) sends two, and a third
 * kills. Verbs that never look don't call this. */
void cli_catch_signals(void);

/* Whole numbers with range, for options: true, or a usage message printed and false. */
bool cli_u64(const struct verb *verb, const char *option, const char *text, unsigned long long min,
	     unsigned long long max, unsigned long long *out);

/* "64M", "1G": a whole number above 0 with k, M, G or T, powers of 1024, or none, up to @most
 * bytes. True, or a usage message printed, which says what is @expected, and false. */
bool cli_bytes(const struct verb *verb, const char *option, const char *text, uint64_t most,
	       const char *expected, uint64_t *out);

/* Reads a whole file; *out is malloc'd and NUL-terminated. KVMSIM_EIO, KVMSIM_ENOMEM. */
int cli_read_file(const char *path, char **out, size_t *len);

struct profile;
/* A built-in profile by name ("tcg-icount") or a file by path (it has a '/' or ends in ".ini").
 * KVMSIM_ENOENT with the names that exist. */
int cli_profile(const char *name, struct profile **out);
/* Names of the built-in profiles, ended by NULL. */
extern const char *const cli_profile_names[];

#endif
