// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/sim/error.h"

#include <stdarg.h>
#include <stdio.h>

int kvmsim_err(const struct kvmsim_errsink *sink, enum kvmsim_error err, const char *fmt, ...)
{
	char msg[1024];
	va_list ap;

	if (!sink || !sink->emit)
		return err;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	sink->emit(sink->ctx, err, msg);
	return err;
}

const char *kvmsim_strerror(int err)
{
	static const char *const text[] = {
		[-KVMSIM_OK] = "no error",
		[-KVMSIM_ENOMEM] = "out of memory",
		[-KVMSIM_EINVAL] = "invalid argument",
		[-KVMSIM_EPARSE] = "input does not follow its format",
		[-KVMSIM_EIO] = "input/output error",
		[-KVMSIM_ETORN] = "trace ends inside a block",
		[-KVMSIM_EVERSION] = "written by a newer version",
		[-KVMSIM_EUNSUPPORTED] = "not supported",
		[-KVMSIM_ECANCELED] = "cancelled",
		[-KVMSIM_ENOENT] = "not found",
		[-KVMSIM_EDEADLOCK] = "deadlock",
		[-KVMSIM_EINTR] = "interrupted",
		[-KVMSIM_ECHECK] = "a consistency check failed",
		[-KVMSIM_ECHILD] = "a worker process died",
		[-KVMSIM_ELIVELOCK] = "livelock",
	};

	if (err > 0 || -err >= (int)(sizeof(text) / sizeof(text[0])))
		return "unknown error";
	return text[-err];
}
