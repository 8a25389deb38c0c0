/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_DAT_STREAM_H
#define KVMSIM_TRACES_HOST_DAT_STREAM_H

#include "traces/host/dat_file.h"

/* The records of one CPU's part of a buffer, one after the other, as the kernel's ring buffer holds
 * them: pages, each with a time, the length of its data, and records with the time since the one
 * before. */
struct dat_stream {
	const struct dat_file *f;
	uint32_t cpu;
	bool packed;
	uint32_t page_size;
	unsigned commit_bytes; /* of the page's head */
	/* What is left as stored: pages, or chunks of pages. */
	uint64_t offset, left;
	uint64_t chunks;
	bool opened; /* the number of chunks was read */
	/* Unpacked pages, of which those from @next on were not read. */
	uint8_t *pages, *raw;
	size_t size, room, next, raw_room;
	/* The page that is read. */
	const uint8_t *at, *end;
	/* The record: its time as the buffer's clock told it, its data. */
	uint64_t ts;
	const uint8_t *data;
	size_t len;
	uint64_t lost;	  /* events before it; UINT64_MAX: not said how many; 0: none */
	uint64_t damaged; /* pages and chunks that could not be read */
};

/* @commit_bytes: 4 or 8, from header_page. Nothing is allocated before the first record. */
void dat_stream_init(struct dat_stream *s, const struct dat_file *f, const struct dat_buffer *b,
		     const struct dat_area *a, unsigned commit_bytes);
void dat_stream_free(struct dat_stream *s);
/* 1: there is a record, valid until the next call; 0: the end; KVMSIM_ENOMEM. */
int dat_stream_next(struct dat_stream *s);

#endif
