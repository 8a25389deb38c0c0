/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_TABLES_MIGRATE_H
#define KVMSIM_TRACES_TABLES_MIGRATE_H

#include "traces/tables/scan.h"

/* What one line of `info migrate` says. */
#define F(name) MIGRATE_##name,
enum migrate_what_field { MIGRATE_FIELDS(F) MIGRATE_throughput, MIGRATE_status };
#undef F

enum migrate_what {
	MIGRATE_NOTHING,
	MIGRATE_GLOBALS,
	MIGRATE_STATUS,
	MIGRATE_VALUES,
	MIGRATE_KNOWN, /* nothing is taken from it */
};
enum { MIGRATE_MOST = 8 };

struct migrate_line {
	struct text_look look;
	enum migrate_what what;
	bool lines;  /* the layout of a field per line */
	bool folded; /* the others */
	bool all;    /* the Globals of the folded ones */
	struct host_text status;
	struct decimal throughput;
	unsigned n;
	struct {
		enum migrate_what_field field;
		uint64_t value;
	} got[MIGRATE_MOST];
};

/* @open: lines of a migration came before. */
struct migrate_line migrate_parse(const char *line, size_t len, bool open);

/* Of migrate_parse.c and migrate_folded.c: what the line is; a field that it holds (-1: of no
 * interest). */
void migrate_found(struct migrate_line *p, enum migrate_what what, enum text_match match);
void migrate_got(struct migrate_line *p, int field, uint64_t value);
/* Lines of the folded layouts: false, if it is none. */
bool migrate_group_line(struct migrate_line *p, struct host_text t, bool open);
bool migrate_throughput(struct migrate_line *p, struct host_text t);
/* A line that ends inside a group's title. */
bool migrate_cut_title(struct host_text t);

#endif
