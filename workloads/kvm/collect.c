// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/kvm/collect.h"

#include <errno.h>
#include <linux/kvm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static size_t words(const struct collector *c, uint32_t slot)
{
	return (c->opts->slots[slot].npages + 63) / 64;
}

static bool test_bit(const uint64_t *map, uint64_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static void set_bit(uint64_t *map, uint64_t i)
{
	map[i / 64] |= 1ull << (i % 64);
}

int collector_open(struct collector *c, struct machine *m, const struct stream *streams)
{
	int err = 0;

	memset(c, 0, sizeof(*c));
	c->m = m;
	c->opts = m->opts;
	c->streams = streams;
	pthread_mutex_init(&c->rings, NULL);
	for (uint32_t i = 0; !err && i < c->opts->n_slots; i++) {
		c->reported[i] = calloc(words(c, i), sizeof(uint64_t));
		c->must[i] = calloc(words(c, i), sizeof(uint64_t));
		c->may[i] = calloc(words(c, i), sizeof(uint64_t));
		if (!c->reported[i] || !c->must[i] || !c->may[i])
			err = KVMSIM_ENOMEM;
	}
	return err;
}

void collector_close(struct collector *c)
{
	for (uint32_t i = 0; i < KVM_PLAYER_MAX_SLOTS; i++) {
		free(c->reported[i]);
		free(c->must[i]);
		free(c->may[i]);
	}
	pthread_mutex_destroy(&c->rings);
}

/* ---- KVM_GET_DIRTY_LOG, KVM_CLEAR_DIRTY_LOG ---- */

static int get_log(struct collector *c, struct kvm_slot_report *r)
{
	struct kvm_dirty_log log = {.slot = r->slot, .dirty_bitmap = c->reported[r->slot]};
	uint64_t start = machine_tsc();
	int err = machine_ioctl(c->m, c->m->vm, KVM_GET_DIRTY_LOG, &log, "KVM_GET_DIRTY_LOG");

	r->get_cycles = machine_tsc() - start;
	return err;
}

static bool any_bit(const uint64_t *map, uint64_t first, uint64_t n)
{
	for (uint64_t i = first / 64; i < (first + n + 63) / 64; i++) {
		if (map[i])
			return true;
	}
	return false;
}

/* Chunks without a dirty page are left out. */
static int clear_log(struct collector *c, struct kvm_slot_report *r)
{
	uint64_t npages = c->opts->slots[r->slot].npages;
	uint64_t chunk = c->opts->clear_chunk ? c->opts->clear_chunk : npages;
	int err = 0;

	for (uint64_t first = 0; !err && first < npages; first += chunk) {
		uint64_t n = npages - first < chunk ? npages - first : chunk;
		struct kvm_clear_dirty_log log = {
			.slot = r->slot,
			.first_page = first,
			.num_pages = (uint32_t)n,
			.dirty_bitmap = c->reported[r->slot] + first / 64,
		};

		if (!any_bit(c->reported[r->slot], first, n))
			continue;
		uint64_t start = machine_tsc();

		err = machine_ioctl(c->m, c->m->vm, KVM_CLEAR_DIRTY_LOG, &log,
				    "KVM_CLEAR_DIRTY_LOG");
		uint64_t cycles = machine_tsc() - start;

		r->clear_calls++;
		r->clear_cycles += cycles;
		r->clear_longest = cycles > r->clear_longest ? cycles : r->clear_longest;
	}
	return err;
}

/* ---- rings ---- */

/* An entry's slot has the address space in its upper half: 0 but in system management mode. */
static int take_entries(struct collector *c, struct machine_vcpu *v, uint64_t *taken)
{
	for (;;) {
		struct kvm_dirty_gfn *e = &v->ring[v->ring_next % c->opts->ring_entries];

		if (!(__atomic_load_n(&e->flags, __ATOMIC_ACQUIRE) & KVM_DIRTY_GFN_F_DIRTY))
			return 0;
		if (e->slot >= c->opts->n_slots || e->offset >= c->opts->slots[e->slot].npages)
			return kvmsim_err(c->opts->errors, KVMSIM_EIO,
					  "the dirty ring names page %llu of slot %u, which there "
					  "is not",
					  (unsigned long long)e->offset, e->slot);
		set_bit(c->reported[e->slot], e->offset);
		__atomic_store_n(&e->flags, KVM_DIRTY_GFN_F_RESET, __ATOMIC_RELEASE);
		v->ring_next++;
		++*taken;
	}
}

/* A signal may end the ioctl before its time (6.18 does so); what is left is reset by the next. */
static int reset_entries(struct collector *c, uint64_t taken)
{
	uint64_t reset = 0;

	while (reset < taken) {
		int n = ioctl(c->m->vm, KVM_RESET_DIRTY_RINGS, 0);

		c->ring.ring_resets++;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return kvmsim_err(c->opts->errors, KVMSIM_EIO,
					  "KVM_RESET_DIRTY_RINGS reset %llu entries, expected "
					  "%llu: %s",
					  (unsigned long long)reset, (unsigned long long)taken,
					  n < 0 ? strerror(errno) : "no more");
		reset += (uint64_t)n;
	}
	return 0;
}

/* Under c->rings. */
static int take_rings(struct collector *c)
{
	uint64_t start = machine_tsc(), taken = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < c->opts->n_vcpus; i++)
		err = take_entries(c, &c->m->vcpus[i], &taken);
	c->ring.ring_collect_cycles += machine_tsc() - start;
	c->ring.ring_entries += taken;
	if (err || !taken)
		return err;
	start = machine_tsc();
	err = reset_entries(c, taken);
	c->ring.ring_reset_cycles += machine_tsc() - start;
	return err;
}

int collect_full_ring(struct collector *c)
{
	pthread_mutex_lock(&c->rings);
	c->ring.ring_full++;
	int err = take_rings(c);

	pthread_mutex_unlock(&c->rings);
	return err;
}

/* ---- what must and may be reported ---- */

static void mark(struct collector *c, uint64_t access, bool must)
{
	uint64_t gfn = (access & ~(ACCESS_READ | ACCESS_RMW)) >> PAGE_SHIFT;

	for (uint32_t i = 0; i < c->opts->n_slots; i++) {
		uint64_t page = gfn - c->opts->slots[i].base_gfn;

		if (page < c->opts->slots[i].npages) {
			set_bit(must ? c->must[i] : c->may[i], page);
			return;
		}
	}
}

static void mark_accesses(struct collector *c, const uint64_t *done, const uint64_t *begun)
{
	for (uint32_t v = 0; v < c->opts->n_vcpus; v++) {
		const struct stream *s = &c->streams[v];

		for (uint64_t i = c->done[v]; i < begun[v]; i++)
			mark(c, s->access[i - s->first], false);
		for (uint64_t i = c->begun[v]; i < done[v]; i++) {
			if (!(s->access[i - s->first] & ACCESS_READ))
				mark(c, s->access[i - s->first], true);
		}
		c->done[v] = done[v];
		c->begun[v] = begun[v];
	}
}

static void judge(const struct collector *c, struct kvm_slot_report *r)
{
	const uint64_t *got = c->reported[r->slot], *must = c->must[r->slot],
		       *may = c->may[r->slot];

	for (uint64_t i = 0; i < c->opts->slots[r->slot].npages; i++) {
		bool was = test_bit(got, i);

		r->nr_dirty += was;
		r->must += test_bit(must, i);
		r->missing += test_bit(must, i) && !was;
		r->maybe += was && test_bit(may, i) && !test_bit(must, i);
		r->beside += was && !test_bit(may, i) && !test_bit(must, i);
	}
}

static int by_bitmap(struct collector *c, struct kvm_slot_report *r)
{
	int err = get_log(c, r);

	if (!err && c->opts->protocol != KVM_PROTOCOL_GET)
		err = clear_log(c, r);
	return err;
}

static void now(const struct collector *c, uint64_t *done, uint64_t *begun)
{
	for (uint32_t v = 0; v < c->opts->n_vcpus; v++) {
		if (done)
			done[v] = c->m->vcpus[v].counters->done;
		if (begun)
			begun[v] = c->m->vcpus[v].counters->begun;
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void clear_marks(struct collector *c)
{
	for (uint32_t i = 0; i < c->opts->n_slots; i++) {
		memset(c->must[i], 0, words(c, i) * sizeof(uint64_t));
		memset(c->may[i], 0, words(c, i) * sizeof(uint64_t));
	}
}

/* What a full ring reported while the guest ran is in `reported` already. */
static int collect_ring(struct collector *c, struct kvm_round *r)
{
	struct kvm_round *ring = &c->ring;
	int err = take_rings(c);

	r->ring_entries = ring->ring_entries;
	r->ring_full = ring->ring_full;
	r->ring_resets = ring->ring_resets;
	r->ring_collect_cycles = ring->ring_collect_cycles;
	r->ring_reset_cycles = ring->ring_reset_cycles;
	memset(ring, 0, sizeof(*ring));
	return err;
}

int collect(struct collector *c, struct kvm_round *r)
{
	uint64_t done[KVM_PLAYER_MAX_VCPUS], begun[KVM_PLAYER_MAX_VCPUS];
	bool ring = c->opts->protocol == KVM_PROTOCOL_RING;
	int err = 0;

	r->n_slots = 0;
	r->slots = c->report;
	now(c, done, NULL);
	if (ring) {
		pthread_mutex_lock(&c->rings);
		err = collect_ring(c, r);
	}
	for (uint32_t i = 0; !err && i < c->opts->n_slots; i++) {
		if (!c->opts->slots[i].logged)
			continue;
		c->report[r->n_slots] =
			(struct kvm_slot_report){.slot = i, .reported = c->reported[i]};
		if (!ring)
			err = by_bitmap(c, &c->report[r->n_slots]);
		r->n_slots++;
	}
	now(c, NULL, begun);
	clear_marks(c);
	mark_accesses(c, done, begun);
	for (uint32_t i = 0; i < r->n_slots; i++)
		judge(c, &c->report[i]);
	return err;
}

void collect_end(struct collector *c)
{
	if (c->opts->protocol != KVM_PROTOCOL_RING)
		return; /* the next KVM_GET_DIRTY_LOG writes the bitmaps whole */
	for (uint32_t i = 0; i < c->opts->n_slots; i++)
		memset(c->reported[i], 0, words(c, i) * sizeof(uint64_t));
	pthread_mutex_unlock(&c->rings);
}
