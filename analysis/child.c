// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/run.h"

#define POLL_S	0.05
#define GRACE_S 5

double child_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

char *child_find(const char *program)
{
	const char *path = getenv("PATH");
	char *all = NULL, *found = NULL, *next;

	if (strchr(program, '/'))
		return access(program, X_OK) ? NULL : strdup(program);
	if (asprintf(&all, "%s:/usr/sbin:/sbin", path ? path : "/usr/bin:/bin") < 0)
		return NULL;
	next = all;
	for (char *dir; !found && (dir = strsep(&next, ":"));) {
		if (asprintf(&found, "%s/%s", *dir ? dir : ".", program) < 0)
			found = NULL;
		if (found && access(found, X_OK)) {
			free(found);
			found = NULL;
		}
	}
	free(all);
	return found;
}

/* In the child: only what is safe between fork and exec. */
static void become(const char *program, char *const *argv, int log, int null, int fd, pid_t parent)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it was gone before that */
		_exit(127);
	dup2(null, 0);
	dup2(log, 1);
	dup2(log, 2);
	if (fd == 3)
		fcntl(fd, F_SETFD, 0);
	else if (fd >= 0)
		dup2(fd, 3);
	execv(program, argv);
	_exit(127);
}

int child_start(struct child *c, char *const *argv, const char *log, int fd,
		const struct kvmsim_errsink *errors)
{
	char *program = child_find(argv[0]);
	int log_fd = -1, null = -1, err = 0;
	pid_t parent = getpid();

	c->pid = 0;
	c->name = argv[0];
	c->grace = GRACE_S;
	if (!program)
		return kvmsim_err(errors, KVMSIM_ENOENT, "%s: no such program", argv[0]);
	log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (log_fd < 0 || null < 0) {
		err = kvmsim_err(errors, KVMSIM_EIO, "%s: cannot write: %s", log, strerror(errno));
	} else {
		fflush(NULL);
		c->pid = fork();
		if (c->pid == 0)
			become(program, argv, log_fd, null, fd, parent);
		if (c->pid < 0) {
			c->pid = 0;
			err = kvmsim_err(errors, KVMSIM_EIO, "%s: cannot be started: %s", argv[0],
					 strerror(errno));
		} else {
			setpgid(c->pid, c->pid); /* whoever is first */
		}
	}
	if (log_fd >= 0)
		close(log_fd);
	if (null >= 0)
		close(null);
	free(program);
	return err;
}

static bool gone(struct child *c, int *status)
{
	pid_t got = waitpid(c->pid, status, WNOHANG);

	if (got == 0 || (got < 0 && errno == EINTR))
		return false;
	c->pid = 0;
	return true;
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = POLL_S * 1e9}, NULL);
}

int child_wait(struct child *c, double deadline, int *status)
{
	while (!gone(c, status)) {
		if (run_interrupted)
			return KVMSIM_EINTR;
		if (child_clock() > deadline)
			return KVMSIM_ECHILD;
		nap();
	}
	return 0;
}

void child_end(struct child *c)
{
	double until = child_clock() + c->grace;
	pid_t group = c->pid;
	int status;

	if (!c->pid)
		return;
	kill(-group, SIGTERM);
	while (!gone(c, &status) && child_clock() < until)
		nap();
	kill(-group, SIGKILL); /* its children may still be there */
	if (c->pid)
		waitpid(c->pid, &status, 0);
	c->pid = 0;
}
