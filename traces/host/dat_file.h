/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_DAT_FILE_H
#define KVMSIM_TRACES_HOST_DAT_FILE_H

#include "traces/host/host.h"

/* The parts of a trace.dat, each checked against the file's size. What is inside them is still
 * anybody's. */

enum dat_packing { DAT_PLAIN, DAT_ZSTD, DAT_ZLIB, DAT_UNKNOWN };

/* One CPU's part of a buffer. */
struct dat_area {
	uint32_t cpu;
	uint64_t offset, size; /* size: as stored */
};
struct dat_buffer {
	char *name, *clock; /* "" of the main one; clock NULL: not said (version 6) */
	uint64_t offset;
	uint32_t page_size;
	bool packed;
	struct dat_area *cpu;
	uint32_t n_cpus;
};
struct dat_blob {
	uint8_t *at; /* len bytes and a NUL */
	size_t len;
};

struct dat_file {
	int fd;
	uint64_t size;
	const char *name;
	const struct kvmsim_errsink *errors;
	struct host_dat head;
	enum dat_packing packing;
	uint64_t body;	 /* behind the head */
	uint32_t n_cpus; /* of the recorded machine, as far as said */
	/* The sections' contents: header_page and header_event; formats of ftrace's own events;
	 * of all others, by system; the names of tasks. at NULL: not there. */
	struct dat_blob headers, ftrace, formats, cmdlines;
	struct dat_buffer *buffer; /* the main one first */
	unsigned n_buffers;
	char clock[32];	      /* "" unknown */
	bool clock_behind;    /* version 6: the clock's text is behind the CPUs' table */
	uint32_t mult, shift; /* of a TSC clock to ns; mult 0: none */
	int64_t offset_ns;    /* to add to each time */
	bool of_guest;	      /* a guest's file that knows its host's clock */
	bool met_packed;      /* version 7: a section is packed */
	bool latency;	      /* holds a latency tracer's text instead of data */
	bool cut;	      /* the tables tell of more data than there are */
	bool lost_tables;     /* the last tables are missing: CPUs' parts were found by looking */
};

/* What the first bytes of a file tell; @body: 0 where they end within the head. false: no
 * trace.dat. */
bool dat_head(const uint8_t *head, size_t len, struct host_dat *out, uint64_t *body);
/* @fd must be seekable and stay open. KVMSIM_EPARSE with @refusal set where nothing can be read,
 * KVMSIM_EVERSION, KVMSIM_EIO, KVMSIM_ENOMEM. dat_close() in every case. */
int dat_open(struct dat_file *f, int fd, const char *name, const struct kvmsim_errsink *errors,
	     enum host_refusal *refusal);
void dat_close(struct dat_file *f);

/* ---- for dat_file*.c and dat_stream.c ---- */

/* Whether all of @len bytes at @offset could be read. */
bool dat_get(const struct dat_file *f, uint64_t offset, void *buf, size_t len);
/* A number of 1, 2, 4 or 8 bytes in the file's order. */
uint64_t dat_number(const struct dat_file *f, const void *at, unsigned bytes);
/* Whether @size bytes came out. */
bool dat_unpack(enum dat_packing packing, const uint8_t *in, size_t len, uint8_t *out, size_t size);
/* One option of @len bytes. KVMSIM_ENOMEM. */
int dat_option(struct dat_file *f, unsigned id, const uint8_t *data, size_t len);
/* @clock: trace_clock's text, the one in use in brackets. */
void dat_clock(struct dat_file *f, const char *text, size_t len);
/* A buffer behind those that are there. NULL: no memory. @name is copied, @clock may be NULL. */
struct dat_buffer *dat_add_buffer(struct dat_file *f, const char *name, const char *clock,
				  uint32_t n_cpus);
/* Fills the file from version 7's sections: 0, or KVMSIM_ENOMEM. */
int dat_read_v7(struct dat_file *f);
/* The same from version 6. */
int dat_read_v6(struct dat_file *f);

#define DAT_META_MAX	(1u << 28) /* bytes of one section, unpacked */
#define DAT_MAX_CPUS	65536
#define DAT_MAX_BUFFERS 1024
#define DAT_MAX_PAGE	(1u << 24)

enum dat_option_id {
	DAT_DONE,
	DAT_DATE,
	DAT_CPUSTAT,
	DAT_BUFFER,
	DAT_TRACECLOCK,
	DAT_UNAME,
	DAT_HOOK,
	DAT_OFFSET,
	DAT_CPUCOUNT,
	DAT_VERSION,
	DAT_PROCMAPS,
	DAT_TRACEID,
	DAT_TIME_SHIFT,
	DAT_GUEST,
	DAT_TSC2NSEC,
	DAT_STRINGS,
	DAT_HEADER_INFO,
	DAT_FTRACE_EVENTS,
	DAT_EVENT_FORMATS,
	DAT_KALLSYMS,
	DAT_PRINTK,
	DAT_CMDLINES,
	DAT_BUFFER_TEXT,
};

#endif
