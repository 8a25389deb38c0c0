/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_OPS_PROGRAM_H
#define KVMSIM_WORKLOADS_OPS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An op program: what the VMM does to a VM and what its guest does, phase by phase, as a text that
 * the model runs as well as the recorder on a real kernel. docs/op-programs.md has the language.
 * This file knows neither of them: it reads the text, and unrolls its loops.
 */

enum ops_what {
	OPS_VM,	   /* a new VM */
	OPS_SETUP, /* phase `setup`: the guest reads its list pages */
	OPS_RUN,   /* phase: a vCPU does the accesses up to `end` */
	OPS_SLOT,  /* phase: a slot is made, changed, moved or deleted */
	OPS_LIMIT, /* phase: KVM_SET_NR_MMU_PAGES */
	OPS_GET,   /* phase: KVM_GET_DIRTY_LOG of a slot */
	OPS_SET,   /* the host stores 8 bytes in the guest's memory */
	OPS_COPY,  /* the host copies a page of the guest's memory */
	OPS_ROUND, /* what the phases' keys say from here on */
	OPS_NUMBER,
	OPS_FOR, /* a variable from first to last */
	OPS_END,
	OPS_ACCESS, /* in OPS_RUN */
};

#define OPS_PHASE_ROOM	40
#define OPS_ARG_ROOM	48
#define OPS_ARGS	3
#define OPS_PROGRAM_MAX 1000
#define OPS_PATH_ROOM	160
#define OPS_SLOTS	8u

#define OPS_UNROLLED_MAX 65536u /* statements, with every loop unrolled */

#define OPS_SLOT_LOG	   1u /* as KVM's flags */
#define OPS_SLOT_READ_ONLY 2u

struct ops_statement {
	enum ops_what what;
	unsigned line;
	char phase[OPS_PHASE_ROOM];
	char arg[OPS_ARGS][OPS_ARG_ROOM]; /* expressions: for ops_value() */
	unsigned n_args;
	unsigned vcpu;	 /* OPS_RUN */
	unsigned access; /* OPS_ACCESS: enum mx_op */
	unsigned vcpus;	 /* OPS_VM: 1 or 2 */
	bool logged;	 /* OPS_VM: slot 1 from the start */
	uint32_t flags;	 /* OPS_SLOT */
	char variable;	 /* OPS_FOR: 'a' to 'z' */
	size_t end;	 /* OPS_FOR, OPS_RUN: where their end is */
};
/* Arguments: OPS_SLOT: slot, gpa, pages (0 deletes); OPS_LIMIT: shadow pages; OPS_GET: slot;
 * OPS_SET: gpa, value; OPS_COPY: to, from; OPS_ROUND, OPS_NUMBER: the value, or none; OPS_FOR:
 * first, last; OPS_ACCESS: the address, the value. */

struct ops_program {
	char name[24];
	char path[OPS_PATH_ROOM]; /* for messages */
	size_t n;
	struct ops_statement statement[OPS_PROGRAM_MAX];
};

/* Reads @text, which came from @path (for messages). 0, or -1 with what is wrong in @error. */
int ops_parse(struct ops_program *p, const char *text, const char *path, char *error, size_t room);

/* Whether KVM and the guest take all that the program does, where slot 1 has @slot_pages pages and
 * the guest pages or does not; whoever plays one asks first. 0, or -1 with file, line and what is
 * wrong in @error. */
int ops_check(const struct ops_program *p, uint64_t slot_pages, bool paging, char *error,
	      size_t room);

/* What the names in expressions stand for. */
struct ops_values {
	uint64_t slot_pages; /* `all` */
	int64_t variable[26];
};

/* The value of an expression of a program that ops_parse() has read. */
uint64_t ops_value(const char *expression, const struct ops_values *v);
/* Whether it is one; variables may be those of which @known is true. */
bool ops_expression(const char *text, const bool known[26]);

/* Calls @each for every statement in order, loops unrolled; what is inside of OPS_RUN is passed
 * over. 0, or what @each returned first that is not 0. */
typedef int (*ops_each_fn)(void *ctx, const struct ops_statement *s, const struct ops_values *v);
int ops_walk(const struct ops_program *p, uint64_t slot_pages, ops_each_fn each, void *ctx);
/* The same for the accesses of @run. */
int ops_walk_run(const struct ops_program *p, const struct ops_statement *run,
		 const struct ops_values *v, ops_each_fn each, void *ctx);

#endif
