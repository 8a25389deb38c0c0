/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_VMM_H
#define KVMSIM_KERNEL_VMM_H

#include <stdint.h>

/*
 * What the files of this small VMM share. It runs as the first process of a kernel that lives for
 * one recording, so it has one answer to any failure: say what it was and end. validate.sh then
 * shows the console and fails.
 */

/* Prints "vmm: MESSAGE" on stderr, and exits with 1; die_errno() adds what errno says. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void die_errno(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What their messages begin with from here on: the line of a program, and its phase, if it has one.
 */
void now_doing(const char *path, unsigned line, const char *phase);

/* Prints "vmm: lacks: MESSAGE": what this kernel has not, and this run's program needs. The run
 * ends, the plan goes on. */
_Noreturn void lacks(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A file of sysfs or tracefs: its text, at most @size - 1 bytes, NUL-terminated; or -1. */
long read_text(const char *path, char *buf, uint64_t size);
/* Writes @text to an existing file, or dies. */
void write_text(const char *path, const char *text);

#endif
