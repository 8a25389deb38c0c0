// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/property/mops_oracle.h"

#include <stdlib.h>
#include <string.h>

#define AD (MOPS_A | MOPS_D)

/* What may be seen of the guest, and whether what was seen may be. */

uint64_t oracle_tick(struct oracle *o)
{
	return ++o->now;
}

/* ---- ops ---- */

/* What the word will hold, whose only writer this is. */
static uint64_t merged(struct oracle *o, uint64_t gpa, unsigned len, uint64_t value)
{
	const struct oracle_word *w = oracle_word_at(o, gpa);
	uint64_t word = w->store[w->n - 1].value;

	memcpy((char *)&word + (gpa & 7), &value, len);
	return word;
}

void oracle_begin(struct oracle *o, unsigned v, const struct mop *op)
{
	struct oracle_pending *p = &o->vcpu[v].op;

	*p = (struct oracle_pending){.busy = true,
				     .loads = op->kind != MOP_write,
				     .fetch = op->kind == MOP_fetch,
				     .stores = op->kind == MOP_write || op->kind == MOP_xchg ||
					       op->kind == MOP_inc,
				     .adds = op->kind == MOP_inc,
				     .gva = op->a,
				     .value = op->b,
				     .len = op->kind == MOP_fetch ? 1 : op->len};
	if (p->stores && oracle_is_table(p->gva)) {
		/* what is added there is 0 */
		p->value = merged(o, p->gva, p->adds ? 0 : p->len, p->value);
		p->adds = false;
	}
	p->begin = oracle_tick(o);
}

/* @gpa: of the memory, wherever it is. */
static bool pending_byte(struct oracle *o, uint64_t gpa, uint8_t byte)
{
	struct oracle_targets t;

	if (o->zero.busy && (gpa >> 12) - o->zero.gfn < o->zero.npages && !byte)
		return true;
	for (unsigned v = 0; v < o->m->n_vcpus; v++) {
		const struct oracle_pending *p = &o->vcpu[v].op;

		if (!p->busy || !p->stores)
			continue;
		if (oracle_is_table(p->gva)) {
			if ((p->gva & ~7ull) == (gpa & ~7ull) &&
			    (uint8_t)(p->value >> 8 * (gpa & 7)) == byte)
				return true;
			continue;
		}
		for (unsigned b = 0; b < p->len; b++) {
			if ((!p->adds && (uint8_t)(p->value >> 8 * b) != byte) ||
			    ((p->gva + b) & 0xfff) != (gpa & 0xfff))
				continue;
			oracle_targets_of(o, v, p->gva + b, &t);
			for (unsigned i = 0; i < t.n; i++)
				if (oracle_home(t.gpa[i]) == gpa)
					return true;
		}
	}
	return false;
}

/* Whether a load that began at @begin may find @byte there. */
static bool may_hold(struct oracle *o, uint64_t gpa, uint8_t byte, uint64_t begin)
{
	struct oracle_word *w = oracle_word_at(o, gpa = oracle_home(gpa));
	unsigned b = gpa & 7;
	uint64_t until = oracle_replaced_until(w, b, begin);
	uint8_t dont_care = oracle_is_table(gpa) && !(b % mops_entry_bytes(o->m)) ? AD : 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct oracle_store *s = &w->store[i];

		if ((s->mask >> b & 1) && s->end >= until &&
		    (s->any || !((s->value >> 8 * b ^ byte) & 0xff & ~dont_care)))
			return true;
	}
	if (dont_care)
		for (unsigned ad = 0; ad < 4; ad++)
			if (pending_byte(o, gpa,
					 (uint8_t)((byte & ~AD) | (ad & 1 ? MOPS_A : 0) |
						   (ad & 2 ? MOPS_D : 0))))
				return true;
	return pending_byte(o, gpa, byte);
}

static const char *byte_wrong(struct oracle *o, unsigned v, uint64_t gva, uint8_t byte)
{
	uint64_t begin = o->vcpu[v].op.begin;
	struct oracle_targets t;
	bool memory = false;

	oracle_targets_of(o, v, gva, &t);
	o->ambiguous += t.n > 1;
	if (t.more)
		return NULL;
	for (unsigned i = 0; i < t.n; i++) {
		if (!oracle_may_be_memory(o, t.gpa[i], false, begin))
			continue;
		memory = true;
		if (may_hold(o, t.gpa[i], byte, begin))
			return NULL;
	}
	return memory ? "a load returned what the word never held, or no longer"
		      : "a load went through without a translation to memory";
}

/* The accesses of an instruction, page by page. */
static bool some_page(struct oracle *o, unsigned v,
		      bool (*fits)(struct oracle *, unsigned, uint64_t))
{
	const struct oracle_pending *p = &o->vcpu[v].op;

	return fits(o, v, p->gva) ||
	       (((p->gva + p->len - 1) ^ p->gva) >> 12 && fits(o, v, p->gva + p->len - 1));
}

static const char *ended(struct oracle *o, unsigned v, const char *why)
{
	oracle_tick(o);
	o->vcpu[v].op.busy = false;
	return why;
}

static bool goes_to_memory(struct oracle *o, unsigned v, uint64_t gva)
{
	struct oracle_targets t;

	oracle_targets_of(o, v, gva, &t);
	for (unsigned i = 0; i < t.n; i++)
		if (oracle_may_be_memory(o, t.gpa[i], false, o->vcpu[v].op.begin))
			return true;
	return t.more;
}

const char *oracle_read_done(struct oracle *o, unsigned v, bool look, uint64_t value)
{
	const struct oracle_pending *p = &o->vcpu[v].op;
	const char *why = NULL;

	if (!look && !goes_to_memory(o, v, p->gva))
		why = "a fetch went through without a translation to memory";
	for (unsigned b = 0; look && b < p->len && !why; b++)
		why = byte_wrong(o, v, p->gva + b, (uint8_t)(value >> 8 * b));
	return ended(o, v, why);
}

/* What is in @len bytes at @gpa when nothing else can be. */
static bool only_value(struct oracle *o, uint64_t gpa, unsigned len, uint64_t begin,
		       uint64_t *value)
{
	const struct oracle_word *w = oracle_word_at(o, gpa);
	const struct oracle_store *only = NULL;

	*value = 0;
	for (unsigned i = 0; i < len; i++, only = NULL) {
		unsigned b = (gpa & 7) + i;
		uint64_t until = oracle_replaced_until(w, b, begin);

		for (size_t k = 0; k < w->n; k++) {
			const struct oracle_store *s = &w->store[k];

			if (!(s->mask >> b & 1) || s->end < until)
				continue;
			if (only || s->any)
				return false;
			only = s;
		}
		if (!only) /* there is always the store that was last */
			return false;
		*value |= (only->value >> 8 * b & 0xff) << 8 * i;
	}
	return true;
}

/* What the op stores in @n bytes at @gpa from its byte @first on; false: it adds, to what cannot be
 * told. */
static bool value_at(struct oracle *o, const struct oracle_pending *p, uint64_t gpa, unsigned first,
		     unsigned n, uint64_t *value)
{
	uint64_t old = 0;
	bool known = true;

	if (p->adds) /* others may store meanwhile */
		known = n == p->len && o->m->n_vcpus == 1 && !o->zero.busy &&
			only_value(o, gpa, n, p->begin, &old);
	*value = (p->value + old) >> 8 * first << 8 * (gpa & 7);
	return known;
}

/* The bytes of the op that lie in the word of its byte @first, into each word that they may be
 * for. @maybe: they need not have been stored. */
static const char *store_part(struct oracle *o, unsigned v, unsigned first, unsigned n, bool maybe)
{
	const struct oracle_pending *p = &o->vcpu[v].op;
	struct oracle_targets t;
	unsigned memory = 0, device = 0;

	oracle_targets_of(o, v, p->gva + first, &t);
	o->ambiguous += t.n > 1;
	for (unsigned i = 0; i < t.n; i++) {
		memory += oracle_may_be_memory(o, t.gpa[i], true, p->begin);
		device += oracle_may_be_device(o, t.gpa[i], true, p->begin);
	}
	if (!memory && !t.more && !maybe)
		return "a store went through without a translation to memory";
	for (unsigned i = 0; i < t.n; i++) {
		struct oracle_store s = {.begin = p->begin,
					 .end = o->now,
					 .value = p->value,
					 .mask = 0xff,
					 .maybe = maybe || memory > 1 || device || t.more};

		if (!oracle_may_be_memory(o, t.gpa[i], true, p->begin))
			continue;
		if (memory == 1 && !maybe && !t.more)
			oracle_note_dirty(o, t.gpa[i], p->begin);
		if (!oracle_is_table(p->gva)) {
			s.mask = (uint8_t)(((1u << n) - 1) << (t.gpa[i] & 7));
			s.any = !value_at(o, p, t.gpa[i], first, n, &s.value) ||
				(maybe && p->adds); /* to what a device said */
		}
		oracle_store(o, t.gpa[i], s);
	}
	return NULL;
}

static const char *store_all(struct oracle *o, unsigned v, bool maybe)
{
	const struct oracle_pending *p = &o->vcpu[v].op;
	const char *why = NULL;

	oracle_tick(o);
	for (unsigned b = 0, n; b < p->len && !why; b += n) {
		n = 8 - ((p->gva + b) & 7);
		n = n < p->len - b ? n : p->len - b;
		why = store_part(o, v, b, n, maybe);
	}
	return why;
}

const char *oracle_write_done(struct oracle *o, unsigned v)
{
	return ended(o, v, store_all(o, v, false));
}

/* Of an instruction over two pages one may have been done when the other was not; and the store
 * that follows a device's register may have come when memory was there. */
static void half_done(struct oracle *o, unsigned v)
{
	const struct oracle_pending *p = &o->vcpu[v].op;

	if (p->stores && (p->loads || ((p->gva + p->len - 1) ^ p->gva) >> 12))
		(void)store_all(o, v, true);
}

static bool denied(struct oracle *o, unsigned v, uint64_t gva)
{
	const struct oracle_pending *p = &o->vcpu[v].op;
	struct oracle_targets t;

	oracle_find_targets(o, v, gva, p->stores, p->begin, &t);
	return t.fault;
}

const char *oracle_faulted(struct oracle *o, unsigned v)
{
	bool ok = some_page(o, v, denied);

	half_done(o, v);
	return ended(o, v, ok ? NULL : "a page fault for the guest, whose tables allow the access");
}

/* The same for an access that may load before it stores: that needs no W. */
static void targets_of_load(struct oracle *o, unsigned v, uint64_t gva, struct oracle_targets *t)
{
	struct oracle_pending *p = &o->vcpu[v].op;
	bool stores = p->stores;

	p->stores &= !p->loads;
	oracle_targets_of(o, v, gva, t);
	p->stores = stores;
}

static bool goes_to_device(struct oracle *o, unsigned v, uint64_t gva)
{
	const struct oracle_pending *p = &o->vcpu[v].op;
	struct oracle_targets t;

	targets_of_load(o, v, gva, &t);
	for (unsigned i = 0; i < t.n; i++)
		if (oracle_may_be_device(o, t.gpa[i], p->stores, p->begin))
			return true;
	return t.more;
}

const char *oracle_device(struct oracle *o, unsigned v, bool stale)
{
	bool ok = stale || some_page(o, v, goes_to_device);

	half_done(o, v);
	return ended(o, v, ok ? NULL : "an MMIO exit for an address where a slot is");
}

static bool goes_to_readonly(struct oracle *o, unsigned v, uint64_t gva)
{
	struct oracle_targets t;

	targets_of_load(o, v, gva, &t);
	for (unsigned i = 0; i < t.n; i++)
		if (oracle_may_be_protected(o, t.gpa[i], o->vcpu[v].op.begin))
			return true;
	return t.more;
}

const char *oracle_readonly(struct oracle *o, unsigned v)
{
	bool ok = some_page(o, v, goes_to_readonly);

	half_done(o, v);
	return ended(o, v, ok ? NULL : "EFAULT, and the VMM's memory is writable");
}

/* ---- the VMM ---- */

void oracle_zero_begin(struct oracle *o, uint64_t gfn, uint64_t npages)
{
	o->zero.begin = oracle_tick(o);
	o->zero.gfn = gfn;
	o->zero.npages = npages;
	o->zero.busy = true;
}

void oracle_zero_end(struct oracle *o)
{
	oracle_tick(o);
	for (size_t i = 0; i < o->room; i++)
		if (o->word[i].gpa && (o->word[i].gpa >> 12) - o->zero.gfn < o->zero.npages)
			oracle_add_store(&o->word[i], (struct oracle_store){.begin = o->zero.begin,
									    .end = o->now,
									    .mask = 0xff});
	o->zero.busy = false;
}

bool oracle_init(struct oracle *o, const struct mops *m)
{
	memset(o, 0, sizeof(*o));
	o->m = m;
	for (unsigned v = 0; v < m->n_vcpus; v++) {
		o->vcpu[v].root = v % MOPS_ROOTS;
		o->vcpu[v].mode = MOPS_WP;
	}
	return oracle_init_slots(o);
}

void oracle_free(struct oracle *o)
{
	for (size_t i = 0; i < o->room; i++)
		free(o->word[i].store);
	free(o->word);
	oracle_free_slots(o);
}
