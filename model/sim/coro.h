/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SIM_CORO_H
#define KVMSIM_SIM_CORO_H

#include <stddef.h>

/*
 * The one place that knows how a stackful coroutine is made and switched: Boost.Context's fcontext
 * (assembly with a C interface), stacks from mmap with a guard page below, kept in a pool, and the
 * fiber calls that the address sanitizer needs.
 */
struct coro_stack {
	void *map; /* guard page, then the stack */
	size_t map_bytes;
	struct coro_stack *next; /* in the pool */
};

/* Runs on the coroutine's own stack at the first switch to it. Must end in coro_exit(). */
typedef void (*coro_fn)(void *arg);

struct coro {
	void *ctx; /* where it stands, while it does not run */
	coro_fn fn;
	void *arg;
	struct coro_stack *stack;
	/* What the address sanitizer has to be told: */
	void *fake_stack;
	const void *bottom;
	size_t bytes;
};

struct coro_pool {
	struct coro_stack *free;
	unsigned made; /* stacks mapped so far; spreads their tops over cache sets */
};

/* Makes @c ready to run @fn(@arg). @stack_bytes is rounded up to pages. KVMSIM_ENOMEM. */
int coro_create(struct coro_pool *pool, struct coro *c, size_t stack_bytes, coro_fn fn, void *arg);
/* Leaves @from (the running coroutine, or a plain thread with a zeroed struct coro) for @to.
 * Returns when something switches back to @from. */
void coro_switch(struct coro *from, struct coro *to);
/* The same for the last time: @from's stack goes back to the pool. */
void coro_exit(struct coro_pool *pool, struct coro *from, struct coro *to)
	__attribute__((noreturn));
/* Unmaps the pool's stacks. No coroutine made from it may be alive. */
void coro_pool_free(struct coro_pool *pool);

#endif
