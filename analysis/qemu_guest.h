/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_QEMU_GUEST_H
#define KVMSIM_ANALYSIS_QEMU_GUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "model/sim/error.h"

/*
 * The guest that `record qemu` boots: a folder with root.img, vmlinuz, modules/, busybox and about
 * (one line), built from Debian's packages by workloads/qemu/guest.sh and kept in the user's cache,
 * $XDG_CACHE_HOME/kvmsim/qemu (or ~/.cache). It is there whole or not at all, and built once: when
 * the script changes, its folder has another name.
 */

/* Complains in one line of what is missing, with the packages that have it. @qemu may be
 * NULL: only a guest is built. @image: also what building needs. 0 or KVMSIM_ENOENT. */
int qemu_guest_tools(const char *qemu, bool image, const struct kvmsim_errsink *errors);

/* The cache's folder, made; malloc'd in *@out. KVMSIM_EIO, KVMSIM_ENOMEM. */
int qemu_guest_cache(const struct kvmsim_errsink *errors, char **out);
/* The image's folder in @cache; malloc'd. NULL without memory. */
char *qemu_guest_path(const char *cache);
/* Whether @dir holds a whole guest. */
bool qemu_guest_there(const char *dir);

/* Builds the guest with the files of @run (qemu_guest_unpack()) into @dir, in place of what is
 * there. Needs the network; ends at @deadline (child_clock()). KVMSIM_EPARSE: it cannot be built,
 * the reason; KVMSIM_EIO, KVMSIM_EINTR (no message), KVMSIM_ENOMEM. */
int qemu_guest_build(const char *cache, const char *run, const char *dir, double deadline,
		     const struct kvmsim_errsink *errors);
/* Makes RUN/initrd of a guest: @modules (words) and @script (a file of @run). Errors as above. */
int qemu_guest_initrd(const char *run, const char *dir, const char *modules, const char *script,
		      double deadline, const struct kvmsim_errsink *errors);

/* A new folder in @cache with the program's own files; malloc'd in *@out. */
int qemu_guest_unpack(const char *cache, const struct kvmsim_errsink *errors, char **out);
/* Removes a folder with all in it, if it is there. */
void qemu_guest_remove(const char *dir);

/* The line of @file that begins with @with, without that and the newline ("": its last line that is
 * not empty), into @to; "" if there is none. */
void qemu_guest_line(const char *file, const char *with, char *to, size_t size);

#endif
