// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/memstress_scene.h"

/*
 * The guest: its page tables, and the loop that each vCPU runs. In 6.1 a turn is a division for the
 * write fraction, an address, the access and the loop's end; later draws of a generator are there
 * instead. As instructions both are about a dozen.
 */
#define INSNS_PER_PAGE 12
#define CODE	       0x1000ull
#define PORT_UCALL     0x1000
#define TABLE_ENTRY    0x07ull /* P RW US */
#define LEAF	       0x03ull /* P RW, as the selftest's tables have: A and D are the CPU's */
#define LARGE	       0x80ull /* PS */
#define ENTRIES	       512ull
#define ADDRESS_MASK   0xffffffffff000ull

/* ---- page tables ---- */

/* Tables of 4K pages, the test memory's and the code's, and what leads to them. */
uint64_t memstress_low_pages(uint64_t pages)
{
	uint64_t pt = pages / ENTRIES + 3, pd = pt / ENTRIES + 3, pdpt = pd / ENTRIES + 2;

	return (MEMSTRESS_CR3 >> 12) + pt + pd + pdpt + 1;
}

/* The table below entry @index of @table, made at *@next if it is not there. */
static uint64_t table_below(struct memstress *m, uint64_t table, uint64_t index, uint64_t *next)
{
	uint64_t entry = kvm_read_guest_u64(m->kvm, table + index * 8);

	if (!entry) {
		entry = *next | TABLE_ENTRY;
		*next += 4096;
		kvm_write_guest_u64(m->kvm, table + index * 8, entry);
	}
	return entry & ADDRESS_MASK;
}

/* @shift: log2 of what a leaf maps. */
static void map(struct memstress *m, uint64_t gva, uint64_t gpa, uint64_t n, unsigned shift,
		uint64_t *next)
{
	uint64_t table = 0, leaf = shift > 12 ? LEAF | LARGE : LEAF;

	for (uint64_t i = 0; i < n; i++, gva += 1ull << shift, gpa += 1ull << shift) {
		uint64_t index = gva >> shift & (ENTRIES - 1);

		if (!i || !index) {
			table = MEMSTRESS_CR3;
			for (unsigned s = 39; s > shift; s -= 9)
				table = table_below(m, table, gva >> s & (ENTRIES - 1), next);
		}
		kvm_write_guest_u64(m->kvm, table + index * 8, gpa | leaf);
	}
}

void memstress_tables(struct memstress *m)
{
	uint64_t next = MEMSTRESS_CR3 + 4096;

	map(m, CODE, CODE, 1, 12, &next);
	if (m->o->guest_level > 1)
		map(m, MEMSTRESS_GVA, m->gpa, m->pages / ENTRIES, 21, &next);
	else
		map(m, MEMSTRESS_GVA, m->gpa, m->pages, 12, &next);
}

/* ---- the loop ---- */

/* Park and Miller's minimal standard generator with the multiplier 48271 (Communications of the
 * ACM 36(7), 1993), which the selftests' guests use. */
static uint32_t draw(struct memstress_vcpu *v)
{
	v->random = (uint32_t)((uint64_t)v->random * 48271 % INT32_MAX);
	return v->random;
}

static bool writes(struct memstress_vcpu *v, uint64_t turn, bool populating)
{
	const struct memstress_opts *o = v->m->o;

	if (populating)
		return true;
	if (o->write_fraction)
		return turn % o->write_fraction == 0;
	return draw(v) % 100 < o->write_percent;
}

static int access_page(struct memstress_vcpu *v, uint64_t gva, bool write)
{
	const struct memstress_opts *o = v->m->o;
	uint64_t value;
	int r;

	do {
		r = vcpu_fetch(v->vcpu, CODE);
		if (!r && write)
			r = vcpu_write(v->vcpu, gva, 8, 0x0123456789abcdef);
		else if (!r)
			r = vcpu_read(v->vcpu, gva, 8, &value);
		if (o->interrupted && *o->interrupted)
			return KVMSIM_EINTR;
	} while (r == VCPU_RESTART);
	return r;
}

/* Over the vCPU's memory once, then the ucall that tells userspace. */
static int pass(struct memstress_vcpu *v, bool populating)
{
	const struct memstress_opts *o = v->m->o;
	int r = 0;

	for (uint64_t i = 0; i < v->pages && !r; i++) {
		uint64_t page = o->random_access && !populating ? draw(v) % v->pages : i;

		r = vcpu_gap(v->vcpu, INSNS_PER_PAGE);
		r = r ? r : access_page(v, v->gva + page * 4096, writes(v, i, populating));
	}
	if (r)
		return r;
	do {
		r = vcpu_fetch(v->vcpu, CODE);
		r = r ? r : vcpu_out(v->vcpu, PORT_UCALL);
	} while (r == VCPU_RESTART);
	return r == VCPU_USERSPACE ? 0 : r;
}

int memstress_vcpu_thread(struct task *t, void *arg)
{
	struct memstress_vcpu *v = arg;
	struct memstress *m = v->m;
	int r = sync(t);

	vcpu_bind(v->vcpu, t);
	vcpu_set_cr3(v->vcpu, MEMSTRESS_CR3);
	while (!r && m->iteration != MEMSTRESS_QUIT) {
		int32_t current = m->iteration;

		r = pass(v, current == 0);
		r = r ? r : sync(t);
		if (r)
			break;
		if (++m->done == m->o->vcpus)
			task_wake(m->main, task_now(t));
		/* while logging is switched off it goes on without being asked */
		while (!r && m->iteration == current && current >= 0)
			r = task_block(t, WAIT_idle);
	}
	return r;
}
