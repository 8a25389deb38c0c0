// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/qemu_guest.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/child.h"
#include "analysis/run.h"

#define QEMU_FILE(symbol, name, path)                                                              \
	extern const char qemu_file_##symbol[], qemu_file_##symbol##_end[];
#include "analysis/qemu_files.def"
#undef QEMU_FILE

static const struct {
	const char *name, *begin, *end;
} files[] = {
#define QEMU_FILE(symbol, name, path) {name, qemu_file_##symbol, qemu_file_##symbol##_end},
#include "analysis/qemu_files.def"
#undef QEMU_FILE
};

static char *join(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *join(const char *fmt, ...)
{
	char *s;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return s;
}

static int no_memory(const struct kvmsim_errsink *errors)
{
	return kvmsim_err(errors, KVMSIM_ENOMEM, "record qemu: out of memory");
}

/* ---- what must be there ---- */

int qemu_guest_tools(const char *qemu, bool image, const struct kvmsim_errsink *errors)
{
	const struct {
		const char *program, *package;
		bool image;
	} tools[] = {
		{qemu, "qemu-system-x86", false},   {"cpio", "cpio", false},
		{"mmdebstrap", "mmdebstrap", true}, {"mke2fs", "e2fsprogs", true},
		{"xz", "xz-utils", true},	    {"dpkg-deb", "dpkg", true},
	};
	char missing[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		bool wanted = tools[i].program && (image || !tools[i].image);
		char *path = wanted ? child_find(tools[i].program) : NULL;

		if (wanted && !path)
			used += snprintf(missing + used, sizeof(missing) - used, "%s%s (%s)",
					 used ? ", " : "", tools[i].program, tools[i].package);
		free(path);
		if (used >= sizeof(missing))
			break;
	}
	if (!missing[0])
		return 0;
	return kvmsim_err(errors, KVMSIM_ENOENT,
			  "record qemu: missing here: %s; scripts/setup.sh guest installs it",
			  missing);
}

/* ---- files and folders ---- */

static int make_folders(char *path)
{
	for (char *p = path + 1;; p++) {
		char was = *p;

		if (was && was != '/')
			continue;
		*p = 0;
		if (mkdir(path, 0777) && errno != EEXIST)
			return -1;
		*p = was;
		if (!was)
			return 0;
	}
}

int qemu_guest_cache(const struct kvmsim_errsink *errors, char **out)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	/* the specification: a path that is not absolute is to be passed over */
	if (xdg && xdg[0] == '/')
		*out = join("%s/kvmsim/qemu", xdg);
	else if (home && home[0] == '/')
		*out = join("%s/.cache/kvmsim/qemu", home);
	else
		return kvmsim_err(
			errors, KVMSIM_EIO,
			"record qemu: neither XDG_CACHE_HOME nor HOME says where the guest "
			"can be kept");
	if (!*out)
		return no_memory(errors);
	if (!make_folders(*out))
		return 0;
	kvmsim_err(errors, KVMSIM_EIO, "%s: cannot be made: %s", *out, strerror(errno));
	free(*out);
	*out = NULL;
	return KVMSIM_EIO;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

void qemu_guest_remove(const char *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int unpack(const char *dir, const struct kvmsim_errsink *errors)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char *path = join("%s/%s", dir, files[i].name);
		size_t len = files[i].end - files[i].begin;
		FILE *f = path ? fopen(path, "wbx") : NULL;
		bool written = f && fwrite(files[i].begin, 1, len, f) == len;

		if (f)
			written = !fclose(f) && written;
		if (!written || chmod(path, 0755))
			kvmsim_err(errors, KVMSIM_EIO, "%s/%s: cannot be written: %s", dir,
				   files[i].name, strerror(errno));
		free(path);
		if (!written)
			return KVMSIM_EIO;
	}
	return 0;
}

int qemu_guest_unpack(const char *cache, const struct kvmsim_errsink *errors, char **out)
{
	int err;

	*out = join("%s/run.XXXXXX", cache);
	if (!*out)
		return no_memory(errors);
	if (!mkdtemp(*out)) {
		err = kvmsim_err(errors, KVMSIM_EIO, "%s: nothing can be written there: %s", cache,
				 strerror(errno));
	} else {
		err = unpack(*out, errors);
		if (err)
			qemu_guest_remove(*out);
	}
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}

void qemu_guest_line(const char *file, const char *with, char *to, size_t size)
{
	char line[512];
	size_t n = strlen(with);
	FILE *f = fopen(file, "r");

	*to = 0;
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\r\n")] = 0;
		if (strncmp(line, with, n) != 0 || !line[n])
			continue;
		snprintf(to, size, "%s", line + n);
		if (n)
			break;
	}
	if (f)
		fclose(f);
}

/* ---- the image ---- */

/* FNV-1a, 64 bits. */
static uint64_t hash(const char *s, const char *end)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; s < end; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3;
	return h;
}

char *qemu_guest_path(const char *cache)
{
	return join("%s/guest-%016" PRIx64, cache,
		    hash(qemu_file_guest_sh, qemu_file_guest_sh_end));
}

bool qemu_guest_there(const char *dir)
{
	char *about = join("%s/about", dir); /* the script's last act */
	bool there = about && !access(about, R_OK);

	free(about);
	return there;
}

/* What it built so far, guest.sh removes when it is told to end. */
#define CLEAN_S 60

/* Runs guest.sh with arguments that end in NULL. */
static int script(char **argv, const char *log, const char *what, double deadline,
		  const struct kvmsim_errsink *errors)
{
	struct child c;
	int status, err;
	char words[256];

	err = child_start(&c, argv, log, -1, errors);
	if (err)
		return err;
	c.grace = CLEAN_S;
	err = child_wait(&c, deadline, &status);
	child_end(&c);
	if (err == KVMSIM_ECHILD)
		return kvmsim_err(errors, KVMSIM_EPARSE, "record qemu: %s was not done in time",
				  what);
	if (err || status == 0)
		return err;
	qemu_guest_line(log, "E: ", words, sizeof(words));
	if (!words[0])
		qemu_guest_line(log, "", words, sizeof(words));
	return kvmsim_err(errors, KVMSIM_EPARSE, "record qemu: %s failed: %s", what, words);
}

static int wait_for_lock(int fd)
{
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return KVMSIM_EIO;
		if (run_interrupted)
			return KVMSIM_EINTR;
		usleep(200000);
	}
	return 0;
}

int qemu_guest_build(const char *cache, const char *run, const char *dir, double deadline,
		     const struct kvmsim_errsink *errors)
{
	char *lock = join("%s/lock", cache), *guest = join("%s/guest.sh", run),
	     *made = join("%s/image", run), *log = join("%s/build.log", cache);
	char *argv[] = {"sh", guest, "image", made, NULL};
	int fd = lock ? open(lock, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1, err = 0;

	if (!lock || !guest || !made || !log)
		err = no_memory(errors);
	else if (fd < 0 || mkdir(made, 0777))
		err = kvmsim_err(errors, KVMSIM_EIO, "%s: cannot be written to: %s", cache,
				 strerror(errno));
	if (!err)
		err = wait_for_lock(fd); /* one at a time */
	if (!err)
		err = script(argv, log, "building the guest", deadline, errors);
	if (!err) {
		qemu_guest_remove(dir);
		if (rename(made, dir))
			err = kvmsim_err(errors, KVMSIM_EIO, "%s: cannot be put there: %s", dir,
					 strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	free(lock);
	free(guest);
	free(made);
	free(log);
	return err;
}

int qemu_guest_initrd(const char *run, const char *dir, const char *modules,
		      const char *script_name, double deadline, const struct kvmsim_errsink *errors)
{
	char *guest = join("%s/guest.sh", run), *out = join("%s/initrd", run),
	     *log = join("%s/initrd.log", run), *init = join("%s/init", run),
	     *tell = join("%s/tell", run), *from = join("%s/%s", run, script_name),
	     *to = join("%s/scenario.sh", run);
	char *argv[] = {"sh", guest, "initrd", (char *)dir, out, (char *)modules,
			init, tell,  to,       NULL};
	int err = 0;

	if (!guest || !out || !log || !init || !tell || !from || !to)
		err = no_memory(errors);
	else if (rename(from, to))
		err = kvmsim_err(errors, KVMSIM_EIO, "%s: %s", from, strerror(errno));
	if (!err)
		err = script(argv, log, "making the initrd", deadline, errors);
	free(guest);
	free(out);
	free(log);
	free(init);
	free(tell);
	free(from);
	free(to);
	return err;
}
