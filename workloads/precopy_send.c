// SPDX-License-Identifier: GPL-3.0-or-later
/* The migration thread's bitmaps, and the link. */
#include <string.h>

#include "model/counts.h"
#include "workloads/precopy_scene.h"

uint64_t precopy_words(const struct precopy_slot *s)
{
	return (s->npages + 63) / 64;
}

/* ---- collecting ---- */

/* Adds what m->bitmap has to what is to be sent of the slot. Returns the pages that were not. */
static long merge(struct precopy *m, uint32_t slot)
{
	struct precopy_memory *mem = &m->memory[slot];
	uint64_t words = precopy_words(&m->o->slots[slot]);
	long found = 0;

	for (uint64_t i = 0; i < words; i++) {
		uint64_t new = m->bitmap[i] & ~mem->pending[i];

		found += __builtin_popcountll(new);
		mem->pending[i] |= new;
		mem->fresh[i] &= ~new;
	}
	if (m->o->clear_chunk)
		memcpy(mem->unclear, m->bitmap, words * sizeof(*m->bitmap));
	return found;
}

long precopy_collect(struct precopy *m)
{
	long found = 0;

	for (uint32_t i = 0; i < m->o->n_slots; i++) {
		long n;

		if (!m->o->slots[i].logged)
			continue;
		n = m->o->clear_chunk ? kvm_get_dirty_log(m->thread, m->kvm, i, m->bitmap)
				      : kvm_collect_dirty_log(m->thread, m->kvm, i, m->bitmap);
		if (n < 0)
			return n;
		found += merge(m, i);
	}
	m->pending += (uint64_t)found;
	m->collections++;
	return found;
}

/* ---- sending ---- */

/* The next word with a page to be sent, from the cursor on and around. There is one. */
static void find(struct precopy *m)
{
	for (;;) {
		const struct precopy_slot *s = &m->o->slots[m->at_slot];
		const uint64_t *pending = m->memory[m->at_slot].pending;
		uint64_t words = s->logged ? precopy_words(s) : 0;

		for (uint64_t i = m->at_page / 64; i < words; i++) {
			if (pending[i]) {
				m->at_page = i * 64;
				return;
			}
		}
		m->at_page = 0;
		m->at_slot = (m->at_slot + 1) % m->o->n_slots;
	}
}

/* What was got of the chunk that has the cursor is cleared, before its pages are read. */
static int clear_chunk(struct precopy *m)
{
	const struct precopy_slot *s = &m->o->slots[m->at_slot];
	uint64_t *unclear = m->memory[m->at_slot].unclear;
	uint64_t first = m->at_page - m->at_page % m->o->clear_chunk, any = 0;
	uint64_t n = s->npages - first < m->o->clear_chunk ? s->npages - first : m->o->clear_chunk;
	int r;

	for (uint64_t i = first / 64; i < (first + n + 63) / 64; i++)
		any |= unclear[i];
	if (!any)
		return 0;
	r = kvm_clear_dirty_log(m->thread, m->kvm, m->at_slot, first, n, unclear + first / 64);
	memset(unclear + first / 64, 0, (n + 63) / 64 * sizeof(*unclear));
	return r;
}

/* Zero pages lie evenly among the slot's. */
static uint64_t zero_pages(const struct precopy *m, uint64_t word, uint64_t first)
{
	uint64_t percent = m->o->zero_percent, n = 0;

	for (; word; word &= word - 1) {
		uint64_t page = first + (uint64_t)__builtin_ctzll(word);

		n += (page + 1) * percent / 100 != page * percent / 100;
	}
	return n;
}

/* The thread's own work, beside which the link sends. */
static void work(struct precopy *m, uint64_t pages)
{
	unsigned __int128 ns = (unsigned __int128)pages * m->o->page_ns * m->hz;

	if (m->o->page_ns)
		charge_cycles(m->thread, COUNT_send_page, pages, (cycles_t)(ns / 1000000000));
	else
		charge(m->thread, COUNT_send_page, pages);
}

/* The link is busy with @bytes more; from @from on if it is free;
 * returns when it has sent them. */
static int transmit(struct precopy *m, cycles_t from, uint64_t bytes)
{
	unsigned __int128 time = (unsigned __int128)bytes * m->hz + m->link_rest;
	int r = 0;

	if (m->link_free < from)
		m->link_free = from;
	m->link_free += (cycles_t)(time / m->o->bandwidth);
	m->link_rest = (uint64_t)(time % m->o->bandwidth);
	while (r >= 0 && task_now(m->thread) < m->link_free)
		r = task_block_until(m->thread, WAIT_idle, m->link_free);
	return r < 0 ? r : 0;
}

int precopy_send(struct precopy *m)
{
	struct precopy_memory *mem;
	cycles_t from = task_now(m->thread), read;
	uint64_t word, at, pages, zero, bytes;
	int r;

	find(m);
	r = m->o->clear_chunk ? clear_chunk(m) : 0;
	if (r)
		return r;
	mem = &m->memory[m->at_slot];
	at = m->at_page / 64;
	word = mem->pending[at];
	pages = (uint64_t)__builtin_popcountll(word);
	zero = zero_pages(m, word & mem->fresh[at], m->at_page);
	bytes = (pages - zero) * PRECOPY_PAGE_BYTES + zero * PRECOPY_ZERO_BYTES;
	read = task_now(m->thread);
	mem->pending[at] = 0;
	mem->fresh[at] &= ~word;
	m->at_page += 64;
	m->pending -= pages;
	m->round.pages += pages;
	m->round.zero_pages += zero;
	m->round.bytes += bytes;
	work(m, pages);
	r = transmit(m, read, bytes);
	m->bytes += bytes;
	m->sending += task_now(m->thread) - from;
	return r;
}
