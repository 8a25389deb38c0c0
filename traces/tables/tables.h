/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_TABLES_TABLES_H
#define KVMSIM_TRACES_TABLES_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sim/error.h"
#include "traces/host/text_format.h"

/*
 * The tables and logs that tools print about KVM, from whatever text they were pasted into:
 * kvm_stat, perf kvm stat, perf lock contention, dirty_log_perf_test, QEMU's info migrate and info
 * dirty_rate, the rounds of a pre-copy, CSV by a map of names. One file per format, each a struct
 * text_format whose state is the struct tables.
 *
 * Numbers with a fraction are decimal: value / 10^digits, as printed. Times are ns.
 */

struct decimal {
	int64_t value;
	uint8_t digits; /* behind the point, at most 9 */
	bool there;
};
/* A number that may be missing. */
struct number {
	uint64_t value;
	bool there;
};

enum kvm_stat_layout { KVM_STAT_TOTAL_PERCENT_RATE, KVM_STAT_TOTAL_CURRENT };

struct kvm_stat_row {
	char *name, *parent; /* parent NULL: a top row */
	uint64_t total;
	struct decimal percent;
	struct number rate;
};
struct kvm_stat_table {
	enum kvm_stat_layout layout;
	char *scope; /* "all", "pid N (name)" */
	struct kvm_stat_row *row;
	size_t n_rows;
	struct number total, total_rate; /* of the row Total */
};

struct perf_kvm_row {
	char *name;
	struct number code, samples; /* code: of an exit that the tool does not know */
	struct decimal samples_pct, time_pct, min_us, max_us, avg_us, dev_pct;
};
struct perf_kvm_table {
	char *scope, *wall_clock; /* "all", "pid N"; wall_clock may be NULL */
	struct perf_kvm_row *row;
	size_t n_rows;
	struct number vcpu; /* the only one that is counted */
	struct number total_samples, lost;
	struct decimal total_time_us;
};

struct dirty_log_run {
	char *label; /* NULL: none */
	bool range;  /* the layout that prints the memory as a range */
	struct number iterations, populate_ns, enable_ns, disable_ns, get_total_ns, clear_total_ns;
	uint64_t *dirty_ns, *get_ns, *clear_ns;
	size_t n_dirty, n_get, n_clear;
};

enum migrate_layout { MIGRATE_LINES, MIGRATE_FOLDED, MIGRATE_FOLDED_ALL };
/* The fields of info migrate, by the names that kvmsim prints. A value that no run can have (above
 * the total and near 2^64) is kept as it is; migration_impossible() names it. */

#define MIGRATE_FIELDS(F)                                                                          \
	F(total_ms)                                                                                \
	F(setup_ms)                                                                                \
	F(downtime_ms)                                                                             \
	F(expected_downtime_ms)                                                                    \
	F(page_kib)                                                                                \
	F(total_kib)                                                                               \
	F(transferred_kib)                                                                         \
	F(remaining_kib)                                                                           \
	F(normal_pages)                                                                            \
	F(zero_pages)                                                                              \
	F(pages_per_second)                                                                        \
	F(dirty_syncs)                                                                             \
	F(dirty_pages_rate)
struct migration_status {
	enum migrate_layout layout;
	char *status;
	struct decimal throughput_mbps;
#define F(name) struct number name;
	MIGRATE_FIELDS(F)
#undef F
};
struct migrate_field {
	const char *name;
	size_t offset; /* of its struct number */
};
extern const struct migrate_field migrate_fields[];
extern const size_t n_migrate_fields;
bool migration_impossible(const struct migration_status *m, const struct number *field);

struct vcpu_rate {
	uint64_t vcpu, mb_s;
};
struct dirty_rate {
	char *status, *mode;
	struct number start_ms, period_s, rate_mb_s,
		sample_pages; /* sample_pages: of page-sampling */
	struct vcpu_rate *vcpu;
	size_t n_vcpus;
};

struct precopy_round {
	uint64_t iter, total_mib, curr_mib, overhead_ms, est_downtime_ms;
	struct decimal bw_mib_s, transfer_s, elapsed_s;
	uint64_t cut, unread; /* that follow up to the next whole one: cut short, not readable */
};

/* Whether rounds behind @r were lost: more than the one that a log may end inside of. */
static inline bool precopy_unread(const struct precopy_round *r)
{
	return r->unread || r->cut > 1;
}

struct contended_lock {
	uint64_t contended, total_ns, max_ns, avg_ns; /* UINT64_MAX: the column is not printed */
	uint64_t stack_lines;
	/* offset or address NULL, as the layout has it; type and name when they are not printed.
	 * offset and address begin with 0x and have no leading zeros. */
	char *type, *name, *offset, *address;
};

/* A CSV by named columns: a cell per column of the map, row by row. */
struct csv_table {
	char **name; /* n_columns, as the map names them */
	char **cell; /* n_rows x n_columns */
	size_t n_columns, n_rows;
};

struct tables {
	struct kvm_stat_table *kvm_stat;
	struct perf_kvm_table *perf_kvm;
	struct dirty_log_run *run;
	struct migration_status *migration;
	struct dirty_rate *dirty_rate;
	struct precopy_round *round;
	struct contended_lock *lock;
	struct csv_table csv;
	size_t n_kvm_stat, n_perf_kvm, n_runs, n_migrations, n_dirty_rates, n_rounds, n_locks;
	struct tables_scratch *scratch; /* what a format is in the middle of; tables.c */
};

int tables_init(struct tables *t); /* KVMSIM_ENOMEM */
void tables_free(struct tables *t);
/* A CSV is looked for among the lines, with the names of @map, which outlives @t. NULL: none is. */
void tables_use_csv(struct tables *t, const struct csv_map *map);

/* "gfn=page,value=cycles": the column `page` of the file is called gfn. A CSV begins with a line
 * that names all of these columns. KVMSIM_EINVAL (told to the sink), KVMSIM_ENOMEM. */
struct csv_map;
int csv_map_parse(const char *text, const struct kvmsim_errsink *errors, struct csv_map **out);
void csv_map_free(struct csv_map *m);

/* The formats, in the order in which the engine asks them. */
extern const struct text_format *const table_formats[];
extern const size_t n_table_formats;

#endif
