/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_TRACE_UTIL_H
#define KVMSIM_TESTS_TRACE_UTIL_H

#include <stddef.h>
#include <stdint.h>

#include "traces/trace.h"

/* What the tests of traces/ share: a folder of their own, whole files, whole streams. */

struct messages {
	int n;
	enum kvmsim_error err; /* of the last one */
	char last[1024];
};
/* A sink that keeps the last message in @m. */
struct kvmsim_errsink keep_messages(struct messages *m);

/* "FOLDER/name" in a new folder of this process, in a static buffer of its own per call site's turn
 * (four turns). remove_temp() removes the folder and what is in it. */
const char *temp_path(const char *name);
void remove_temp(void);
/* Files in that folder. */
int temp_files(void);

/* A file of version 1, put together by hand from FORMAT.md (its checksums by a bitwise CRC-32), and
 * what its two vCPUs do. */
#define TINY_BYTES 269
extern const char tiny_hex[2 * TINY_BYTES + 1];
extern const struct guest_op tiny_ops0[3], tiny_ops1[5];

/* One slot of 1 GiB, "ram". */
struct trace_meta meta_of(uint32_t n_vcpus);
/* Opens @path, which must succeed. */
struct trace_reader *reopen(const char *path, const struct kvmsim_errsink *errors);

void put_file(const char *path, const void *data, size_t len);
/* malloc'd. */
uint8_t *get_file(const char *path, size_t *len);
/* Bytes of a hexadecimal text; returns how many. */
size_t unhex(const char *hex, uint8_t *out);

struct stream {
	struct guest_op *ops; /* malloc'd */
	size_t n;
	int error; /* 0, or what the source ended with */
};
/* Everything that @r has of @vcpu. */
struct stream read_stream(struct trace_reader *r, uint32_t vcpu);
/* The same, checked against @ops: true when equal and without an error. */
bool stream_is(struct trace_reader *r, uint32_t vcpu, const struct guest_op *ops, size_t n);

/* xorshift64*: the tests' own numbers. */
uint64_t test_random(uint64_t *state);
/* @n ops of every kind, from phases of narrow and of wide arguments and gaps. */
void random_ops(uint64_t *state, struct guest_op *ops, size_t n);

#endif
