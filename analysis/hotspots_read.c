// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "analysis/host_progress.h"
#include "analysis/hotspots.h"
#include "analysis/run.h"

int hotspots_read(const char *path, const struct hot_opts *opts,
		  const struct kvmsim_errsink *errors, struct hotspots *out,
		  struct host_result *result)
{
	struct host_progress progress;
	const struct host_opts ho = {.interrupted = &run_interrupted,
				     .progress = host_progress_begin(&progress),
				     .progress_ctx = &progress};
	struct host_sink sink;
	struct hot_reading *r = hotspots_begin(opts, out, &sink);
	int err = r ? 0 : KVMSIM_ENOMEM;

	memset(result, 0, sizeof(*result));
	err = err ? err : host_read(path, &ho, &sink, errors, result);
	host_progress_end(&progress);
	err = err ? err : hotspots_end(r);
	out->counts = result->counts;
	hotspots_abort(r);
	return err;
}
