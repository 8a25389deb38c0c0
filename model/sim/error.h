/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SIM_ERROR_H
#define KVMSIM_SIM_ERROR_H

/*
 * Errors of the whole library.
 *
 * A function that can fail returns 0 (or a count >= 0) or one of these negative numbers. The words
 * for a person (file, line or offset, what was expected) go to the caller's error sink, once, at
 * the place that knows them best; callers above only pass the number on.
 */
enum kvmsim_error {
	KVMSIM_OK = 0,
	KVMSIM_ENOMEM = -1,	  /* an allocation failed */
	KVMSIM_EINVAL = -2,	  /* misuse: an argument out of its documented range */
	KVMSIM_EPARSE = -3,	  /* an input does not follow its format */
	KVMSIM_EIO = -4,	  /* read, write, flush or close failed; disk full */
	KVMSIM_ETORN = -5,	  /* a trace ends in the middle of a block */
	KVMSIM_EVERSION = -6,	  /* written by a newer version than this one reads */
	KVMSIM_EUNSUPPORTED = -7, /* a pair that cannot work, refused with the reason */
	KVMSIM_ECANCELED = -8,	  /* the simulation is being ended: a task unwinds with this */
	KVMSIM_ENOENT = -9,	  /* no policy, profile, slot or file of that name */
	KVMSIM_EDEADLOCK = -10,	  /* every task is blocked and nothing is pending */
	KVMSIM_EINTR = -11,	  /* SIGINT or SIGTERM */
	KVMSIM_ECHECK = -12,	  /* a checker caught the model: lost store, lock order, bad spte */
	KVMSIM_ECHILD = -13,	  /* a worker process ended without its result */
	KVMSIM_ELIVELOCK = -14,	  /* a vCPU restarts an instruction for ever (mmu/livelock.h) */
};

struct kvmsim_errsink {
	/* @msg is one line without a newline. NULL: messages are dropped. */
	void (*emit)(void *ctx, enum kvmsim_error err, const char *msg);
	void *ctx;
};

/* Formats a message to @sink (may be NULL) and returns @err, so that a caller can write
 * `return kvmsim_err(sink, KVMSIM_EPARSE, "%s:%d: ...", ...)`. */
int kvmsim_err(const struct kvmsim_errsink *sink, enum kvmsim_error err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A short constant English phrase for @err, never NULL. */
const char *kvmsim_strerror(int err);

#endif
