// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/out_stream.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int out_stream_open(struct out_stream *s, const char *path, const struct kvmsim_errsink *errors)
{
	const char *what = "cannot create";
	int err, fd;

	*s = (struct out_stream){.path = path, .standard = !strcmp(path, "-")};
	s->file.fd = -1;
	if (s->standard) {
		s->to = stdout;
		return 0;
	}
	err = outfile_open(&s->file, path, &what);
	if (!err) {
		/* the stream's own, since the file's is closed by outfile_finish() */
		fd = dup(s->file.fd);
		s->to = fd < 0 ? NULL : fdopen(fd, "w");
		if (!s->to && fd >= 0)
			close(fd);
		err = s->to ? 0 : KVMSIM_EIO;
	}
	if (err) {
		kvmsim_err(errors, err, "%s: %s: %s", path, what, strerror(errno));
		out_stream_abort(s);
	}
	return err;
}

int out_stream_finish(struct out_stream *s, const struct kvmsim_errsink *errors)
{
	bool bad;

	if (s->standard)
		return 0;
	errno = 0;
	bad = ferror(s->to);
	bad |= fclose(s->to) != 0;
	s->to = NULL;
	if (bad || outfile_finish(&s->file) != OUTFILE_DONE)
		return kvmsim_err(errors, KVMSIM_EIO, "%s: cannot write: %s", s->path,
				  strerror(errno ? errno : EIO));
	return 0;
}

void out_stream_abort(struct out_stream *s)
{
	if (s->standard)
		return;
	if (s->to)
		fclose(s->to);
	s->to = NULL;
	outfile_abort(&s->file);
}
