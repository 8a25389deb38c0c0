/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_CHILD_H
#define KVMSIM_ANALYSIS_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "model/sim/error.h"

/*
 * Programs that this one runs: each in a process group of its own, which ends with it, at a
 * deadline and at SIGINT or SIGTERM (run_interrupted). Nothing of it outlives kvmsim. Its standard
 * input is empty.
 */
struct child {
	pid_t pid; /* 0: none */
	const char *name;
	int grace; /* seconds that it may take to end after SIGTERM; 5 by child_start() */
};

/* Where @program is, by PATH and Debian's folders for administrators; malloc'd. NULL: nowhere. */
char *child_find(const char *program);

/* Runs @argv, ended by NULL; argv[0] is looked for as child_find() does and stays valid while it
 * runs. Standard output and error go to the file @log, which is new. @fd, if not negative, is its
 * descriptor 3. KVMSIM_ENOENT: no such program; KVMSIM_EIO with errno's words. */
int child_start(struct child *c, char *const *argv, const char *log, int fd,
		const struct kvmsim_errsink *errors);
/* Seconds of a clock that never goes back. */
double child_clock(void);
/* Waits until it ends: *@status as waitpid() says. KVMSIM_EINTR, KVMSIM_ECHILD (still there at
 * @deadline, in child_clock()'s time): then it goes on. */
int child_wait(struct child *c, double deadline, int *status);
/* Ends its process group: SIGTERM, after its seconds of grace SIGKILL. Nothing if there is none. */
void child_end(struct child *c);

#endif
