/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_HOST_FEED_H
#define KVMSIM_TESTS_HOST_FEED_H

#include "traces/host/host.h"

/*
 * Feeds a sink with events written by hand, so that a test shows what it is about:
 *
 *	COMM TID CPU NS EVENT [FIELD=NUMBER | FIELD=LETTER | r=REASON | tgid=N | in=CONTEXT]...
 *	LOST CPU [EVENTS]		CPU -1: none is said
 *	...				an elision
 *
 * NS "-": no time. CONTEXT: task, softirq, hardirq, nmi. Lines end in '\n'. Returns what the sink
 *did, at the first that is not 0.
 */
int host_feed(const struct host_sink *sink, const char *text);

#endif
