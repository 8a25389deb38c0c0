// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/import_input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "analysis/cli.h"
#include "analysis/run.h"

#define LOOK 4096

/* The first bytes of a pipe, which stay in it. 0: none could be had. */
static ssize_t look_into_pipe(int fd, unsigned char *buf)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int aside[2];
	ssize_t n;

	while (poll(&p, 1, -1) < 0)
		if (errno != EINTR || run_interrupted)
			return 0;
	if (pipe2(aside, O_CLOEXEC))
		return 0;
	n = tee(fd, aside[1], LOOK, 0);
	close(aside[1]);
	if (n > 0)
		n = read(aside[0], buf, LOOK);
	close(aside[0]);
	return n;
}

static size_t unpack(const unsigned char *in, size_t n, unsigned char *out)
{
	z_stream z = {
		.next_in = (unsigned char *)in, .avail_in = n, .next_out = out, .avail_out = LOOK};

	if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return 0;
	inflate(&z, Z_SYNC_FLUSH);
	inflateEnd(&z);
	return LOOK - z.avail_out;
}

/* "NUMBER VCPU K ", K one of the probe's kinds. */
static bool probe_line(const char *s, const char *end)
{
	for (int field = 0; field < 2; field++) {
		const char *start = s;

		while (s < end && *s >= '0' && *s <= '9')
			s++;
		if (s == start || s == end || *s++ != ' ')
			return false;
	}
	return end - s >= 2 && strchr("SVrwpM", *s) && *s && s[1] == ' ';
}

static bool looks_like_probe(const char *text, size_t n)
{
	const char *end = text + n;

	while (text < end) {
		const char *nl = memchr(text, '\n', end - text);

		if (probe_line(text, nl ? nl : end))
			return true;
		if (!nl)
			break;
		text = nl + 1;
	}
	return false;
}

int import_input_open(const char *path, struct import_input *in)
{
	unsigned char buf[LOOK], text[LOOK], *from = buf;
	struct stat st;
	ssize_t n = 0;

	*in = (struct import_input){.name = strcmp(path, "-") ? path : "standard input"};
	in->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC)
				   : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	if (in->fd < 0 && errno == EINTR && run_interrupted)
		return KVMSIM_EINTR;
	if (in->fd < 0 || fstat(in->fd, &st))
		return kvmsim_err(&cli_errors, KVMSIM_EIO, "%s: cannot open: %s", in->name,
				  strerror(errno));
	if (S_ISREG(st.st_mode))
		n = pread(in->fd, buf, LOOK, lseek(in->fd, 0, SEEK_CUR));
	else if (S_ISFIFO(st.st_mode))
		n = look_into_pipe(in->fd, buf);
	if (run_interrupted)
		return KVMSIM_EINTR;
	if (n > 2 && buf[0] == 0x1f && buf[1] == 0x8b) {
		n = unpack(buf, n, text);
		from = text;
	}
	in->probe = n > 0 && looks_like_probe((const char *)from, n);
	return 0;
}

int import_input_again(struct import_input *in, const char *path, const char **again)
{
	struct stat st;

	*again = path;
	if (!strcmp(path, "-") || (!fstat(in->fd, &st) && !S_ISFIFO(st.st_mode)))
		return 0;
	*again = "-";
	return dup2(in->fd, STDIN_FILENO) < 0
		       ? kvmsim_err(&cli_errors, KVMSIM_EIO, "%s: %s", in->name, strerror(errno))
		       : 0;
}

bool import_input_is(const struct import_input *in, const char *path)
{
	struct stat own, other;

	return !fstat(in->fd, &own) && S_ISREG(own.st_mode) && !stat(path, &other) &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

enum import_same import_input_same(const struct import_input *a, const struct import_input *b)
{
	unsigned char p[LOOK], q[LOOK];
	struct stat s, t;

	if (fstat(a->fd, &s) || fstat(b->fd, &t) || !S_ISREG(s.st_mode) || !S_ISREG(t.st_mode))
		return IMPORT_DIFFER;
	if (s.st_dev == t.st_dev && s.st_ino == t.st_ino)
		return IMPORT_SAME_FILE;
	if (s.st_size != t.st_size || !s.st_size)
		return IMPORT_DIFFER;
	for (off_t at = 0; at < s.st_size; at += LOOK) {
		ssize_t n = pread(a->fd, p, LOOK, at), m = pread(b->fd, q, LOOK, at);

		if (n <= 0 || n != m || memcmp(p, q, n) || run_interrupted)
			return IMPORT_DIFFER;
	}
	return IMPORT_SAME_BYTES;
}

void import_input_close(struct import_input *in)
{
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -1;
}
