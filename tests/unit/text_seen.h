/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_TEXT_SEEN_H
#define KVMSIM_TESTS_TEXT_SEEN_H

#include "traces/host/host.h"

/* What host_read() makes of a text, as text: for tests that compare with what a person wrote. */
struct text_seen {
	char out[16384]; /* a line per call of the sink, see text_see() */
	size_t len;
	uint64_t events;
	enum host_context last_context; /* of the last record */
	int ret;
	struct host_result result;
	char error[512]; /* the last message */
};

/*
 * Reads @len bytes. A record: "comm|tid|tgid|cpu|time_ns.decimals|flags|name|reason|field=hex ..."
 * with "-" for what it does not have, then " damaged", " stale". "loss cpu count chunks[ header]",
 * "elision", "cpus n", "empty n".
 */
void text_see(struct text_seen *s, const char *text, size_t len);

#endif
