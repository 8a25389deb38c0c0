// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/sim/error.h"

int outfile_open(struct outfile *f, const char *path, const char **what)
{
	static unsigned serial;
	char *real = realpath(path, NULL);
	struct stat st;

	*f = (struct outfile){.fd = -1, .path = real ? real : strdup(path)};
	if (!f->path)
		return KVMSIM_ENOMEM;
	if (!stat(f->path, &st) && !S_ISREG(st.st_mode)) {
		*what = "cannot write";
		f->fd = open(f->path, O_WRONLY | O_CLOEXEC);
		return f->fd < 0 ? KVMSIM_EIO : 0;
	}
	*what = "cannot create";
	do {
		free(f->tmp);
		if (asprintf(&f->tmp, "%s.%ld-%u.tmp", f->path, (long)getpid(), ++serial) < 0) {
			f->tmp = NULL;
			return KVMSIM_ENOMEM;
		}
		f->fd = open(f->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	} while (f->fd < 0 && errno == EEXIST);
	if (f->fd >= 0)
		return 0;
	/* Nothing was made that could be removed. */
	free(f->tmp);
	f->tmp = NULL;
	return KVMSIM_EIO;
}

/* After the rename: the directory's entry, too, survives a power cut. Some file systems cannot. */
static void sync_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	int fd;

	if (!slash)
		strcpy(dir, ".");
	else if (snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path + 1), path) >=
		 (int)sizeof(dir))
		return;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

enum outfile_step outfile_finish(struct outfile *f)
{
	int fd = f->fd;

	/* EINVAL, ENOTSUP: a device or a pipe, which has nothing to sync */
	if (fsync(fd) && (f->tmp || (errno != EINVAL && errno != ENOTSUP)))
		return OUTFILE_SYNC;
	f->fd = -1;
	if (close(fd))
		return OUTFILE_CLOSE;
	if (!f->tmp)
		return OUTFILE_DONE;
	if (rename(f->tmp, f->path))
		return OUTFILE_RENAME;
	free(f->tmp);
	f->tmp = NULL;
	sync_directory(f->path);
	return OUTFILE_DONE;
}

void outfile_abort(struct outfile *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->tmp)
		unlink(f->tmp);
	free(f->tmp);
	free(f->path);
	*f = (struct outfile){.fd = -1};
}
