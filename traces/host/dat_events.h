/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_DAT_EVENTS_H
#define KVMSIM_TRACES_HOST_DAT_EVENTS_H

#include "traces/host/dat_file.h"

/* The events of a trace.dat: what its formats say of where a record's fields are, looked up once
 * for each kind of event. */
struct dat_events;

/* Reads the file's formats and names of tasks. KVMSIM_ENOMEM; KVMSIM_EPARSE, told to the file's
 * sink: no format can be read. @commit_bytes: the length of a page's second word (4 or 8). */
int dat_events_open(const struct dat_file *f, struct dat_events **out, unsigned *commit_bytes);
void dat_events_free(struct dat_events *d);

/* One record of @len bytes as an event, but for its time and CPU, which are untouched. Texts are
 * valid until the next call. false: of no event that has a format, or too short for its head. */
bool dat_event(struct dat_events *d, const uint8_t *data, size_t len, struct host_event *e);

#endif
