/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_OUTFILE_H
#define KVMSIM_TRACES_OUTFILE_H

/*
 * A file that is there whole or not at all: written beside its place, and renamed over it when it
 * is finished. What is no regular file (a device, a FIFO) is written directly: a rename would put
 * a file in its place. A symbolic link is followed: its target is replaced.
 */
struct outfile {
	int fd;	    /* to write to; -1: not open */
	char *path; /* of the target, links resolved */
	char *tmp;  /* NULL when @path is written directly */
};

/* Steps of outfile_finish(). */
enum outfile_step { OUTFILE_DONE, OUTFILE_SYNC, OUTFILE_CLOSE, OUTFILE_RENAME };

/* 0, KVMSIM_ENOMEM, or KVMSIM_EIO with errno and *@what ("cannot create"). outfile_abort() also
 * after an error. */
int outfile_open(struct outfile *f, const char *path, const char **what);
/* To the disk and in its place. OUTFILE_DONE, or the step that failed, with errno; the temporary
 * file stays for outfile_abort() then. */
enum outfile_step outfile_finish(struct outfile *f);
/* Closes, removes a file that is not finished, frees. Also after outfile_finish(). */
void outfile_abort(struct outfile *f);

#endif
