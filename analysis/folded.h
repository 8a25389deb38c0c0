/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_FOLDED_H
#define KVMSIM_ANALYSIS_FOLDED_H

#include <stddef.h>

/*
 * Folded stacks, as flamegraph.pl and speedscope read them: frames with ';' between, a blank, a
 * number. Makes a frame of a text that may be anything: UTF-8, no ';', no control characters.
 * Returns @to.
 */
char *folded_frame(char *to, size_t room, const char *text);

#endif
