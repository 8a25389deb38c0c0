// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/sim/coro.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/sim/error.h"

#if defined(__SANITIZE_ADDRESS__)
#define CORO_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORO_ASAN 1
#endif
#endif
#ifndef CORO_ASAN
#define CORO_ASAN 0
#endif

#if CORO_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

/* Red zones around locals make frames several times as large. */
#define STACK_SCALE (CORO_ASAN ? 4 : 1)

/* Boost.Context has no C header; these are the two symbols of its assembly (fcontext.hpp). */
struct transfer {
	void *from;
	void *data;
};
struct transfer jump_fcontext(void *to, void *data);
void *make_fcontext(void *top, size_t bytes, void (*fn)(struct transfer));

/* What a switch carries to the other side. */
struct handover {
	struct coro *from, *to;
};

/* Tells the sanitizer that we have arrived, and notes where the one that we left stands. */
static void arrived(struct transfer tr)
{
	const struct handover *h = tr.data;

	h->from->ctx = tr.from;
#if CORO_ASAN
	const void *bottom;
	size_t bytes;

	__sanitizer_finish_switch_fiber(h->to->fake_stack, &bottom, &bytes);
	h->from->bottom = bottom;
	h->from->bytes = bytes;
#endif
}

static void entry(struct transfer tr)
{
	const struct coro *self = ((const struct handover *)tr.data)->to;

	arrived(tr);
	self->fn(self->arg);
	abort(); /* fn must end in coro_exit() */
}

static struct coro_stack *stack_get(struct coro_pool *pool, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct coro_stack *s;

	/* One page more than asked for: a spread top takes up to a page away. */
	bytes = ((bytes * STACK_SCALE + page - 1) & ~(page - 1)) + 2 * page;
	for (struct coro_stack **p = &pool->free; *p; p = &(*p)->next) {
		if ((*p)->map_bytes == bytes) {
			s = *p;
			*p = s->next;
#if CORO_ASAN
			__asan_unpoison_memory_region((char *)s->map + page, bytes - page);
#endif
			return s;
		}
	}
	s = malloc(sizeof(*s));
	if (!s)
		return NULL;
	s->map_bytes = bytes;
	s->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->map == MAP_FAILED || mprotect(s->map, page, PROT_NONE)) {
		if (s->map != MAP_FAILED)
			munmap(s->map, bytes);
		free(s);
		return NULL;
	}
	return s;
}

int coro_create(struct coro_pool *pool, struct coro *c, size_t stack_bytes, coro_fn fn, void *arg)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	*c = (struct coro){.fn = fn, .arg = arg};
	c->stack = stack_get(pool, stack_bytes);
	if (!c->stack)
		return KVMSIM_ENOMEM;

	/* Tops at one offset in the page would all live in one set of the L1 cache. */
	char *low = (char *)c->stack->map + page;
	char *top = (char *)c->stack->map + c->stack->map_bytes - pool->made++ * 192 % page;

	c->bottom = low;
	c->bytes = (size_t)(top - low);
	c->ctx = make_fcontext(top, c->bytes, entry);
	return 0;
}

void coro_switch(struct coro *from, struct coro *to)
{
	struct handover h = {from, to};

#if CORO_ASAN
	__sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->bytes);
#endif
	arrived(jump_fcontext(to->ctx, &h));
}

void coro_exit(struct coro_pool *pool, struct coro *from, struct coro *to)
{
	struct handover h = {from, to};

	/* Safe although we still stand on it: only coro_create() takes from the pool. */
	from->stack->next = pool->free;
	pool->free = from->stack;
	from->stack = NULL;
#if CORO_ASAN
	__sanitizer_start_switch_fiber(NULL, to->bottom, to->bytes);
#endif
	jump_fcontext(to->ctx, &h);
	__builtin_unreachable();
}

void coro_pool_free(struct coro_pool *pool)
{
	while (pool->free) {
		struct coro_stack *s = pool->free;

		pool->free = s->next;
#if CORO_ASAN
		__asan_unpoison_memory_region(s->map, s->map_bytes);
#endif
		munmap(s->map, s->map_bytes);
		free(s);
	}
}
