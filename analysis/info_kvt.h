/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_INFO_KVT_H
#define KVMSIM_ANALYSIS_INFO_KVT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/info_host.h"

struct info_args {
	bool epochs, json;
	uint64_t per; /* transactions; 0: not said */
};

/* What `kvmsim info` prints of a trace in the native format. Returns an exit code; messages go to
 * the command's sink. Where it holds a host's events, what they say follows, by @host; in JSON it
 * is their object, with the trace's own under "native". */
int info_kvt(const char *path, const struct info_args *a, struct info_host_args *host);

#endif
