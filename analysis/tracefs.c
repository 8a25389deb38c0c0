// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX "kvmsim-"
/* A buffer that somebody still has open cannot be removed; who was killed closes it soon. */
#define TRIES	200
#define WAIT_US 50000

static bool switch_off(const char *instance, const char *file)
{
	char path[512];
	int fd;
	bool done;

	snprintf(path, sizeof(path), "%s/%s", instance, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write(fd, "0", 1) == 1;
	close(fd);
	return done;
}

static bool remove_instance(const char *instance, int tries)
{
	switch_off(instance, "tracing_on");
	switch_off(instance, "events/enable");
	while (rmdir(instance)) {
		if (errno == ENOENT)
			return true;
		if (errno != EBUSY || --tries <= 0)
			return false;
		usleep(WAIT_US);
	}
	return true;
}

void tracefs_drop_privileges(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	const uint32_t keep = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH | 1u << CAP_KILL;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_capget, &head, data))
		return;
	for (unsigned i = 0; i < 2; i++) {
		data[i].effective &= i ? 0 : keep;
		data[i].permitted &= i ? 0 : keep;
		data[i].inheritable = 0;
	}
	syscall(SYS_capset, &head, data);
}

/* The watchdog: it has the pipe's end as its descriptor 0, the lock as 1, and nothing else. */
static void watch(const char *instance)
{
	char done;
	ssize_t n;

	setsid();
	prctl(PR_SET_NAME, "kvmsim-watchdog");
	tracefs_drop_privileges();
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_IGN);
	do
		n = read(0, &done, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		remove_instance(instance, TRIES);
	_exit(0);
}

static int start_watchdog(struct tracefs *t, const struct kvmsim_errsink *errors)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		return kvmsim_err(errors, KVMSIM_EIO, "no pipe: %s", strerror(errno));
	fflush(NULL);
	t->watchdog = fork();
	if (!t->watchdog) {
		/* neither end may become 0 or 1 before it was copied */
		int in = fcntl(fd[0], F_DUPFD, 3), lock = fcntl(t->lock, F_DUPFD, 3);

		dup2(in, 0);
		dup2(lock, 1);
		close(2);
		close_range(3, ~0u, 0);
		watch(t->instance);
	}
	close(fd[0]);
	t->pipe = fd[1];
	if (t->watchdog < 0)
		return kvmsim_err(errors, KVMSIM_EIO, "no process for the watchdog: %s",
				  strerror(errno));
	return 0;
}

/* Instances of ours that nobody has locked. */
static void remove_stale(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d))) {
		char path[512];
		int fd;

		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) ||
		    snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) >= (int)sizeof(path))
			continue;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!flock(fd, LOCK_EX | LOCK_NB))
			remove_instance(path, 1);
		close(fd);
	}
	closedir(d);
}

static int find_root(struct tracefs *t, const struct kvmsim_errsink *errors)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

	for (unsigned i = 0; i < 2 && !t->root; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/instances", places[i]);
		if (!access(path, F_OK)) {
			t->root = strdup(places[i]);
			if (!t->root)
				return kvmsim_err(errors, KVMSIM_ENOMEM, "out of memory");
		} else if (errno == EACCES) {
			return kvmsim_err(errors, KVMSIM_EUNSUPPORTED,
					  "%s is not this user's to read: run it as root",
					  places[i]);
		}
	}
	if (!t->root)
		return kvmsim_err(errors, KVMSIM_EUNSUPPORTED,
				  "no tracefs at %s: as root, mount -t tracefs tracefs %s",
				  places[0], places[0]);
	return 0;
}

/* With the folder of instances locked: nobody takes an instance that is not locked yet for stale.
 */
static int make_instance(struct tracefs *t, const struct kvmsim_errsink *errors)
{
	char folder[512];
	int all, err = 0;

	snprintf(folder, sizeof(folder), "%s/instances", t->root);
	all = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (all < 0 || flock(all, LOCK_EX)) {
		err = kvmsim_err(errors, KVMSIM_EUNSUPPORTED, "%s: %s", folder, strerror(errno));
		goto out;
	}
	remove_stale(folder);
	if (asprintf(&t->instance, "%s/" PREFIX "%d", folder, (int)getpid()) < 0) {
		t->instance = NULL;
		err = kvmsim_err(errors, KVMSIM_ENOMEM, "out of memory");
		goto out;
	}
	if (mkdir(t->instance, 0700)) {
		err = errno == EACCES || errno == EPERM || errno == EROFS
			      ? kvmsim_err(errors, KVMSIM_EUNSUPPORTED,
					   "%s: no instance can be made: %s; run it as root",
					   folder, strerror(errno))
			      : kvmsim_err(errors, KVMSIM_EIO, "%s: %s", t->instance,
					   strerror(errno));
		free(t->instance);
		t->instance = NULL;
		goto out;
	}
	t->lock = open(t->instance, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->lock < 0 || flock(t->lock, LOCK_EX | LOCK_NB))
		err = kvmsim_err(errors, KVMSIM_EIO, "%s: %s", t->instance, strerror(errno));
out:
	if (all >= 0)
		close(all);
	return err;
}

int tracefs_open(struct tracefs *t, const struct kvmsim_errsink *errors)
{
	int err;

	*t = (struct tracefs){.lock = -1, .pipe = -1};
	err = find_root(t, errors);
	if (!err)
		err = make_instance(t, errors);
	if (!err)
		err = start_watchdog(t, errors);
	if (!err && tracefs_write(t, "tracing_on", "0"))
		err = kvmsim_err(errors, KVMSIM_EIO, "%s: tracing cannot be switched off: %s",
				 t->instance, strerror(errno));
	return err;
}

void tracefs_close(struct tracefs *t)
{
	if (t->instance)
		remove_instance(t->instance, TRIES);
	if (t->pipe >= 0) {
		/* a watchdog that is gone is none to tell */
		signal(SIGPIPE, SIG_IGN);
		if (write(t->pipe, "d", 1) < 0)
			errno = 0;
		close(t->pipe);
	}
	if (t->watchdog > 0)
		waitpid(t->watchdog, NULL, 0);
	if (t->lock >= 0)
		close(t->lock);
	free(t->instance);
	free(t->root);
	*t = (struct tracefs){.lock = -1, .pipe = -1};
}

char *tracefs_path(const struct tracefs *t, bool top, const char *file)
{
	char *path;

	return asprintf(&path, "%s/%s", top ? t->root : t->instance, file) < 0 ? NULL : path;
}

bool tracefs_has(const struct tracefs *t, const char *file)
{
	char *path = tracefs_path(t, false, file);
	bool has = path && !access(path, F_OK);

	free(path);
	return has;
}

int tracefs_write(const struct tracefs *t, const char *file, const char *text)
{
	char *path = tracefs_path(t, false, file);
	int fd = path ? open(path, O_WRONLY | O_TRUNC | O_CLOEXEC) : -1, err = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err = errno ? errno : EIO;
	if (fd >= 0 && close(fd) && !err)
		err = errno;
	free(path);
	return err;
}

char *tracefs_read(const struct tracefs *t, bool top, const char *file, size_t *len)
{
	char *path = tracefs_path(t, top, file), *text = NULL;
	FILE *f = path ? fopen(path, "re") : NULL;
	size_t room = 0;

	*len = 0;
	for (;;) {
		char *grown;
		size_t n;

		if (!f)
			break;
		if (room - *len < 4096) {
			room = room ? 2 * room : 8192;
			grown = realloc(text, room + 1);
			if (!grown)
				goto fail;
			text = grown;
		}
		n = fread(text + *len, 1, room - *len, f);
		*len += n;
		if (!n)
			break;
	}
	if (f && ferror(f))
		goto fail;
	if (f)
		fclose(f);
	free(path);
	if (text)
		text[*len] = 0;
	return text;
fail:
	fclose(f);
	free(text);
	free(path);
	return NULL;
}
