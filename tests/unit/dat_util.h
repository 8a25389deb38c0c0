/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_DAT_UTIL_H
#define KVMSIM_TESTS_DAT_UTIL_H

#include "traces/host/dat.h"

/* A trace.dat as libtracecmd and libtraceevent read it: the same records, by other code. */
struct oracle_record {
	uint64_t time_ns;
	int64_t cpu, tid, lost; /* lost: before it; -1: not said how many; 0: none */
	uint64_t end;		/* of its page in the file; only where the file is not packed */
	char name[48], comm[24];
	enum host_context context;
	uint64_t have; /* what fields of it can be compared */
	uint64_t v[HOST_N_FIELDS];
};
struct oracle {
	struct oracle_record *r;
	size_t n;
};
/* All buffers' records, by time; false: libtracecmd cannot read the file. */
bool oracle_read(const char *path, struct oracle *out);
void oracle_free(struct oracle *o);

/* What host_read_dat() says of a file. */
struct dat_seen {
	struct oracle_record *r;
	size_t n, room;
	int64_t lost; /* before the next record */
	uint64_t losses;
	char said[1024]; /* all messages */
	struct host_result result;
	int rc;
};
void dat_see(const char *path, struct dat_seen *s);
void dat_see_fd(int fd, struct dat_seen *s);
/* A file's bytes, to be freed; and what is said of bytes as a file (false: no memory). */
uint8_t *dat_whole(const char *path, size_t *len);
bool dat_see_bytes(const uint8_t *bytes, size_t len, struct dat_seen *s);
void dat_seen_free(struct dat_seen *s);

#endif
