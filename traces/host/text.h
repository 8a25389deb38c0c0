/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_TEXT_H
#define KVMSIM_TRACES_HOST_TEXT_H

#include "traces/host/host.h"
#include "traces/host/source.h"

/* Reads the text of @source, from its first line on. Errors and refusals: host_read()'s. */
int host_read_text(struct source *source, const char *name, const struct host_opts *opts,
		   const struct host_sink *sink, const struct kvmsim_errsink *errors,
		   struct host_result *result);

#endif
