// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/policy/policy.h"
#include "model/policy/preset.h"
#include "model/sim/rng.h"
#include "tests/property/mops.h"

static const char *const cpus[] = {"tcg", "amd", "intel", "intel-haswell", "intel-nehalem"};

static const char *const dirty_params[][2] = {
	{"manual", ",chunk=64"},
	{"manual", ",chunk=192,initially-all-set=1"},
	{"manual", ",chunk=64,pml=1"},
	{"ring", ",size=256,reaper=0"},
	{"ring", ",size=1024,reaper=0,pml=1"},
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void choose_dirty(struct mops *m, struct rng *r)
{
	const struct kvm_preset *p = preset_find(m->preset);
	bool tdp = p->tdp_mmu && m->paging == PAGING_TDP;
	const struct policy_desc *d;
	size_t i;

	do
		d = policy_at(rng_below(r, policy_count()));
	while (d->family != FAMILY_DIRTY || d->broken ||
	       (tdp && dirty_policy_find(d->name, strlen(d->name))->walks));
	snprintf(m->dirty, sizeof(m->dirty), "%s", d->name);
	i = rng_below(r, COUNT(dirty_params));
	if (!strcmp(d->name, dirty_params[i][0]))
		strcat(m->dirty, dirty_params[i][1]);
	else if (!strcmp(d->name, "ring"))
		strcat(m->dirty, ",reaper=0"); /* the checkers want nobody running */
	if (strstr(m->dirty, "pml"))
		strcpy(m->cpu, "intel");
}

/* What exits for what was a device before. From 3.11 to 3.16 an MMIO spte had a generation and what
 * a vCPU remembered had none ("KVM: x86: fix stale mmio cache bug", 3.17). The other way round,
 * which no kernel had, a vCPU remembers an MMIO spte that is about to be zapped for a slot that is
 * there. */
static bool stale_cache(const char *preset, const char *spte)
{
	bool generation = preset_find(preset)->mmio_cache_generation;

	return !strcmp(spte, "mmio-gen") ? !generation : !strcmp(spte, "mmio-spte") && generation;
}

static void choose_spte(struct mops *m, struct rng *r)
{
	const struct policy_desc *d;

	do
		d = policy_at(rng_below(r, policy_count()));
	while (d->family != FAMILY_SPTE || d->broken || stale_cache(m->preset, d->name));
	snprintf(m->spte, sizeof(m->spte), "%s%s", d->name,
		 rng_below(r, 6)   ? ""
		 : rng_below(r, 2) ? ",unsync=0"
				   : ",flood=0");
}

/* A sync of a table that was out of step makes up to 512 sptes writable, each of which counts as a
 * store, before the vCPU looks at its ring again, which keeps 64 entries for what happens between:
 * the kernel would warn and lose pages, and the model ends the run. So where pages are shadowed and
 * vCPUs have rings, no table goes out of step. */
static void keep_in_step(struct mops *m)
{
	if (m->paging == PAGING_SHADOW && !strncmp(m->dirty, "ring", 4) &&
	    !strstr(m->spte, "unsync=0"))
		strcat(m->spte, ",unsync=0");
}

static void choose_machine(struct mops *m, struct rng *r, const char *preset)
{
	const struct kvm_preset *p;
	size_t presets = 0;

	while (preset_at(presets))
		presets++;
	p = preset_at(rng_below(r, presets));
	p = preset ? preset_find(preset) : p;
	snprintf(m->preset, sizeof(m->preset), "%s", p->name);
	snprintf(m->cpu, sizeof(m->cpu), "%s", cpus[rng_below(r, COUNT(cpus))]);
	/* Shadow paging is where most can go wrong. */
	m->paging = p->tdp_mmu || !rng_below(r, 4) ? PAGING_TDP : PAGING_SHADOW;
	m->mode = rng_below(r, 5) ? GUEST_LONG64 : rng_below(r, 3) ? GUEST_PAE : GUEST_FLAT32;
	if (m->mode == GUEST_PAE && rng_below(r, 2))
		m->mode = GUEST_32BIT;
	m->memory = (enum mops_memory)rng_below(r, 3);
	m->host_level = p->huge_pages ? 1 + (unsigned)rng_below(r, 2) : 1;
	m->eager = rng_below(r, 2);
	m->cache = !rng_below(r, 8);
	m->n_vcpus = 1 + (unsigned)rng_below(r, MOPS_MAX_VCPUS);
	if (!rng_below(r, 3))
		m->n_vcpus = 1;
	m->n_pts = rng_below(r, 3) ? 6 : MOPS_MAX_PTS;
	m->n_windows = m->n_pts == 6 ? 6 : MOPS_MAX_WINDOWS;
	choose_dirty(m, r);
	choose_spte(m, r);
	/* Its nested walks make PDPTEs that KVM takes for invalid: see struct cpu_personality. */
	if (m->mode == GUEST_PAE && m->paging == PAGING_TDP && !strcmp(m->cpu, "tcg"))
		strcpy(m->cpu, "amd");
}

/* ---- what tables hold ---- */

static uint64_t hash(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static bool changes_mode(const struct mops *m)
{
	return m->mode != GUEST_FLAT32 && m->seed % 4 == 3;
}

/* The last two are where a slot may have moved. */
static const uint64_t base[] = {MOPS_DATA_GFN,	      MOPS_DATA_GFN + 512, MOPS_DATA2_GFN,
				MOPS_DATA2_GFN + 500, MOPS_MOVED_GFN,	   MOPS_MOVED_GFN + 500};

/* A few frames that everybody uses; mostly present and writable, as guests' pages are. */
static uint64_t page_entry(const struct mops *m, uint64_t draw)
{
	uint64_t gfn = base[draw % 4] + (draw >> 2) % 6, flags = MOPS_P | MOPS_W | MOPS_U;

	draw >>= 8;
	if (draw % 16 == 0)
		return 0;
	if (draw % 16 == 1)
		flags &= ~MOPS_W;
	if (draw >> 16 & 1 && draw % 16 < 3)
		flags &= ~MOPS_U;
	if (draw % 32 == 2 && !changes_mode(m)) /* a table, to look at; without CR0.WP to write */
		return (MOPS_TABLES_GFN + (draw >> 8) % 32) << 12 | MOPS_P | MOPS_U | MOPS_A;
	if (draw % 32 == 3)
		gfn = MOPS_DEVICE_GFN;
	else if ((draw >> 20) % 4 == 0 && gfn >= MOPS_DATA2_GFN)
		gfn += MOPS_MOVED_GFN - MOPS_DATA2_GFN;
	if (draw >> 8 & 1)
		flags |= MOPS_A;
	if (draw >> 9 & 1)
		flags |= MOPS_A | MOPS_D;
	if (changes_mode(m) && m->mode != GUEST_32BIT && (draw >> 22) % 8 == 0)
		flags |= MOPS_NX;
	return gfn << 12 | flags;
}

/* A window's entry of a page directory: a table of the pool, a large page, or nothing. */
static uint64_t window_entry(const struct mops *m, uint64_t draw)
{
	uint64_t flags = MOPS_P | MOPS_W | MOPS_U | MOPS_A;

	if (draw % 16 == 0)
		return 0;
	if (draw % 16 == 1)
		flags &= ~MOPS_W;
	/* Without CR0.WP what is stored in a large page that is read-only, and what is read beside
	 * it, take each other's table away again and again: a livelock, with the kernel's rules. */
	if (changes_mode(m))
		flags |= MOPS_W;
	if (draw % 16 < 5)
		/* the half of 4 MiB is a device */
		return (m->mode == GUEST_32BIT ? 1024 * (draw >> 4 & 1)
					       : MOPS_DATA_GFN + 512 * (draw >> 4 & 1))
			       << 12 |
		       flags | MOPS_PS | (draw >> 5 & 1 ? MOPS_D : 0);
	return MOPS_PT((draw >> 4) % m->n_pts) << 12 | flags;
}

static uint64_t link_to(uint64_t gfn)
{
	return gfn << 12 | MOPS_P | MOPS_W | MOPS_U | MOPS_A;
}

static unsigned root_of(uint64_t gfn)
{
	return (unsigned)((gfn - MOPS_TABLES_GFN) / 3);
}

uint64_t mops_first_entry(const struct mops *m, uint64_t gfn, unsigned i)
{
	uint64_t draw = hash(m->seed ^ hash(gfn << 9 | i));
	unsigned root, to;

	if (gfn == MOPS_PT_TABLES)
		return i < MOPS_TABLES ? link_to(MOPS_TABLES_GFN + i) | MOPS_D : 0;
	if (gfn >= MOPS_PT(0) && gfn < MOPS_PT(MOPS_MAX_PTS))
		return i % mops_window_entry(m, 1) == 0 &&
				       i / mops_window_entry(m, 1) < MOPS_WINDOW_PAGES
			       ? page_entry(m, draw)
			       : 0;
	if (gfn >= MOPS_TABLES_GFN + 3 * MOPS_ROOTS)
		return 0;
	root = root_of(gfn);
	to = draw % 3 ? root : (unsigned)(draw >> 8) % MOPS_ROOTS; /* its own, or shared */
	if (gfn == MOPS_PML4(root))
		return i ? 0 : link_to(MOPS_PDPT(to));
	if (gfn == MOPS_PDPT(root) && m->mode == GUEST_PAE) /* other bits are reserved */
		return i ? 0 : MOPS_PD(to) << 12 | MOPS_P;
	if (gfn == MOPS_PDPT(root))
		return i ? 0 : link_to(MOPS_PD(to));
	if (i == (MOPS_TABLES_GFN >> mops_bits(m)))
		return link_to(MOPS_PT_TABLES);
	if (i >= MOPS_WINDOW(0) && i < MOPS_WINDOW(m->n_windows))
		return window_entry(m, draw);
	return 0;
}

/* ---- ops ---- */

static uint32_t random_gap(struct rng *r)
{
	switch (rng_below(r, 8)) {
	case 0:
		return 0;
	case 1:
		return (uint32_t)rng_below(r, 8000);
	default:
		return (uint32_t)rng_below(r, 30);
	}
}

static uint64_t random_gva(const struct mops *m, struct rng *r)
{
	uint64_t page, offset = rng_below(r, 32) ? rng_below(r, 4) * 8 : 4092;

	if (m->mode != GUEST_FLAT32 && !rng_below(r, 24)) /* tables, to read */
		page = MOPS_TABLES_GFN + rng_below(r, 24);
	else if (m->mode != GUEST_FLAT32)
		page = (MOPS_WINDOW(rng_below(r, m->n_windows)) << mops_bits(m)) +
		       mops_window_entry(m, rng_below(r, m->n_windows > 6 ? 3 : MOPS_WINDOW_PAGES));
	else if (rng_below(r, 24))
		page = base[rng_below(r, COUNT(base))] + rng_below(r, rng_below(r, 4) ? 6 : 90);
	else
		page = MOPS_DEVICE_GFN;
	return page << 12 | offset;
}

/* An entry has one writer, so that of two halves nobody's is lost. */
static void choose_entry(const struct mops *m, struct rng *r, struct mop *op)
{
	uint64_t draw = rng_u64(r), gfn, value;
	unsigned i, root = (unsigned)rng_below(r, MOPS_ROOTS);

	/* Where there are many tables they come and go, until shadow pages are short. */
	switch (rng_below(r, m->n_pts == MOPS_MAX_PTS ? 6 : 12)) {
	case 0: /* a level that leads to tables; PDPTEs of PAE are loaded, and stay as they are */
		if (m->mode != GUEST_LONG64)
			goto page;
		gfn = rng_below(r, 2) ? MOPS_PML4(root) : MOPS_PDPT(root);
		if (root % m->n_vcpus != op->who)
			gfn = MOPS_PDPT(root = op->who % MOPS_ROOTS);
		if (root % m->n_vcpus != op->who)
			goto page;
		i = 0;
		value = gfn == MOPS_PML4(root) ? link_to(MOPS_PDPT(draw % MOPS_ROOTS))
					       : link_to(MOPS_PD(draw % MOPS_ROOTS));
		break;
	case 1:
	case 2:
		gfn = MOPS_PD(root);
		i = (unsigned)rng_below(r, m->n_windows);
		if (m->mode == GUEST_32BIT && i / 2 % m->n_vcpus != op->who) /* a word's */
			goto page;
		if (m->mode != GUEST_32BIT)
			i = i - i % m->n_vcpus + op->who;
		if (i >= m->n_windows)
			goto page;
		i += (unsigned)MOPS_WINDOW(0);
		value = window_entry(m, draw);
		break;
	default:
	page:
		gfn = MOPS_PT(rng_below(r, m->n_pts));
		i = (unsigned)rng_below(r, MOPS_WINDOW_PAGES);
		i -= i % m->n_vcpus;
		i += op->who;
		i %= MOPS_WINDOW_PAGES;
		if (i % m->n_vcpus != op->who)
			i = op->who;
		i = mops_window_entry(m, i);
		value = page_entry(m, draw);
	}
	op->a = MOPS_TABLES_WINDOW + ((gfn - MOPS_TABLES_GFN) << 12) + i * mops_entry_bytes(m);
	op->b = value;
	op->len = (uint16_t)mops_entry_bytes(m);
	switch (rng_below(r, 24)) {
	case 0:
	case 1: /* frames are below 4 GiB */
		op->len = 4;
		break;
	case 2: /* flags alone: read-only or gone */
		if (gfn < MOPS_PT(0))
			break;
		op->len = 1;
		op->b &= ~(MOPS_W | MOPS_D);
		break;
	case 3: /* what is no write of an entry, and changes nothing */
		if (m->mode == GUEST_32BIT)
			break;
		op->len = 2;
		op->a += 6;
		op->b = 0;
		break;
	default:
		break;
	}
}

/* The page whose entry was changed, as far as that can be told: of any window. */
static uint64_t page_of_entry(const struct mops *m, struct rng *r, const struct mop *op)
{
	return ((MOPS_WINDOW(rng_below(r, m->n_windows)) << mops_bits(m)) +
		(op->a & 0xfff) / mops_entry_bytes(m))
	       << 12;
}

static struct mop guest_op(const struct mops *m, struct rng *r, uint8_t who)
{
	static const uint8_t lens[] = {8, 8, 8, 4, 2, 1};
	struct mop op = {.who = who, .gap = random_gap(r), .len = lens[rng_below(r, COUNT(lens))]};
	bool pages = m->mode != GUEST_FLAT32;

	op.a = random_gva(m, r);
	if (changes_mode(m) && !rng_below(r, 50)) { /* mostly as an OS has it */
		op.kind = MOP_mode;
		op.a = rng_below(r, 2) ? MOPS_WP : 0;
		op.a |= rng_below(r, 3) ? 0 : MOPS_USER;
		/* few pages are the supervisor's */
		op.a |= rng_below(r, op.a & MOPS_USER ? 2 : 16) ? 0 : MOPS_SMAP;
		op.a |= rng_below(r, 4) ? 0 : MOPS_SMEP;
		op.a |= rng_below(r, 4) ? MOPS_NXE : 0;
		op.b = !rng_below(r, 4);
		return op;
	}
	switch (rng_below(r, 40)) {
	case 0:
		op.kind = MOP_out;
		return op;
	case 1:
		op.kind = rng_below(r, 4) ? MOP_out : MOP_hlt;
		return op;
	case 2:
		op.kind = MOP_fetch;
		return op;
	case 3:
	case 4:
		op.kind = MOP_invlpg;
		return op;
	case 5:
	case 6:
		op.kind = MOP_cr3;
		op.a = rng_below(r, MOPS_ROOTS);
		return op;
	case 7:
	case 8:
	case 9:
	case 10:
	case 11:
	case 12:
	case 13:
		if (!pages)
			break;
		op.kind = rng_below(r, 8) ? MOP_write : MOP_xchg;
		choose_entry(m, r, &op);
		if (!rng_below(r, 32)) { /* as no kernel writes its tables */
			op.kind = MOP_inc;
			op.b = 0;
		}
		return op;
	case 14:
	case 15:
		op.kind = rng_below(r, 2) ? MOP_xchg : MOP_inc;
		op.b = rng_u64(r);
		break;
	default:
		op.kind = rng_below(r, 2) ? MOP_read : MOP_write;
		op.b = rng_u64(r);
	}
	/* tables are written by choose_entry() alone */
	if (pages && op.a >> 12 >= MOPS_TABLES_GFN && op.a >> 12 < MOPS_TABLES_GFN + MOPS_TABLES)
		op.kind = MOP_read;
	return op;
}

static struct mop vmm_op(const struct mops *m, struct rng *r)
{
	struct mop op = {.who = MOPS_VMM, .a = rng_below(r, MOPS_SLOTS)};
	uint64_t pages;

	op.gap = (uint32_t)(rng_below(r, 2) ? rng_below(r, 500) : rng_below(r, 60000));
	switch (rng_below(r, 16)) {
	case 0:
	case 1:
		op.kind = MOP_log;
		op.b = rng_below(r, 2);
		break;
	case 2:
	case 3:
		op.kind = MOP_slot;
		op.a = 1 + rng_below(r, MOPS_SLOTS - 1);
		op.b = rng_below(r, 4) > 0; /* it is seldom gone for long */
		if (op.b && !rng_below(r, 3))
			op.b = 2;
		if (!rng_below(r, 4))
			op.kind = MOP_move;
		break;
	case 4:
	case 5:
	case 6:
		op.kind = rng_below(r, 3) ? MOP_dontneed : MOP_protect;
		op.a = 1 + rng_below(r, MOPS_SLOTS - 1);
		pages = op.a == MOPS_SLOT_DATA ? MOPS_DATA_PAGES : MOPS_DATA2_PAGES;
		op.b = rng_below(r, 2) * 512;
		op.len = (uint16_t)(1 + rng_below(r, rng_below(r, 2) ? 8 : pages - op.b));
		break;
	case 7:
		op.kind = MOP_limit;
		op.a = 64 + rng_below(r, 20);
		break;
	case 8:
		op.kind = strncmp(m->dirty, "ring", 4) ? MOP_get : MOP_reset;
		break;
	case 9:
	case 10:
		op.kind = MOP_check;
		break;
	default:
		op.kind = MOP_collect;
	}
	return op;
}

bool mops_make_with(uint64_t seed, const char *preset, const char *dirty, const char *spte,
		    struct mops *m)
{
	struct rng r;
	size_t guest, every;

	memset(m, 0, sizeof(*m));
	rng_init(&r, seed, 0, "machine");
	m->seed = seed;
	choose_machine(m, &r, preset);
	if (dirty)
		snprintf(m->dirty, sizeof(m->dirty), "%s", dirty);
	if (spte)
		snprintf(m->spte, sizeof(m->spte), "%s", spte);
	keep_in_step(m);
	guest = 400 + rng_below(&r, 2600);
	every = rng_below(&r, 6) ? 65 : 9; /* some VMMs are restless */
	m->n = guest + guest / (every - 1);
	m->op = calloc(m->n, sizeof(*m->op));
	if (!m->op)
		return false;
	for (size_t i = 0; i < m->n; i++)
		m->op[i] = i % every == every / 2
				   ? vmm_op(m, &r)
				   : guest_op(m, &r, (uint8_t)rng_below(&r, m->n_vcpus));
	/* A change of an entry that others may have cached is often followed by what makes it hold.
	 */
	for (size_t i = 0; i + 1 < m->n; i++) {
		const struct mop *op = &m->op[i];

		if (op->who == MOPS_VMM || op->who != m->op[i + 1].who || op->kind != MOP_write ||
		    op->a >> 12 < MOPS_TABLES_GFN || op->a >> 12 >= MOPS_TABLES_GFN + MOPS_TABLES ||
		    rng_below(&r, 2))
			continue;
		m->op[i + 1] = (struct mop){.who = op->who,
					    .kind = MOP_invlpg,
					    .a = page_of_entry(m, &r, op),
					    .gap = random_gap(&r)};
	}
	return true;
}

bool mops_make(uint64_t seed, struct mops *m)
{
	return mops_make_with(seed, NULL, NULL, NULL, m);
}

void mops_free(struct mops *m)
{
	free(m->op);
	memset(m, 0, sizeof(*m));
}
