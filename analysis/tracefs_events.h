/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_TRACEFS_EVENTS_H
#define KVMSIM_ANALYSIS_TRACEFS_EVENTS_H

#include "analysis/tracefs.h"

/* Tracepoints to record: "kvm/kvm_exit", each once, sorted. */
struct tracefs_events {
	char **name;
	size_t n;
	/* of a purpose, but this kernel has them not */
	char **lacking;
	size_t n_lacking;
};

/* The purposes, ended by NULL, and what each is for. */
extern const char *const tracefs_purposes[];

/* Adds those of @purposes ("mmu,exits"; NULL: none) and of @list ("GROUP:NAME" and "GROUP:*" with
 * commas; NULL: none) that the instance has. KVMSIM_EINVAL: no such purpose, or not GROUP:NAME;
 * KVMSIM_ENOENT: this kernel lacks one of @list, or all; KVMSIM_ENOMEM. */
int tracefs_events_find(const struct tracefs *t, const char *purposes, const char *list,
			struct tracefs_events *out, const struct kvmsim_errsink *errors);
void tracefs_events_free(struct tracefs_events *e);
/* Whether @purposes names purposes only; told to @errors. */
bool tracefs_purposes_known(const char *purposes, const struct kvmsim_errsink *errors);

#endif
