// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "analysis/facts_priv.h"
#include "analysis/output.h"

/* Shadow pages, MMIO, rings; and files that are refused. */

static json_t *sp_json(const struct facts_sp *p)
{
	/* as the kernel prints a role's access */
	static const char *const access[] = {"---", "--x", "w--", "w-x",
					     "-u-", "-ux", "wu-", "wux"};
	json_t *o = json_object();

#define FIELD(name, value) json_put(o, #name, p->have >> HOST_F_##name & 1 ? (value) : json_null())
#define ROLE(name, value)                                                                          \
	json_put(o, #name, p->reliable && p->have >> HOST_F_##name & 1 ? (value) : json_null())
	FIELD(gfn, facts_hex_json(p->gfn));
	FIELD(level, json_u64(p->level));
	json_put(o, "new", p->have >> HOST_F_created & 1 ? json_boolean(p->created) : json_null());
	FIELD(root_count, json_u64(p->root_count));
	FIELD(unsync, json_boolean(p->unsync));
	json_put(o, "role_reliable", json_boolean(p->reliable));
	ROLE(direct, json_boolean(p->direct));
	ROLE(access, json_string(access[p->access & 7]));
	ROLE(quadrant, json_u64(p->quadrant));
	ROLE(gpte_bytes, json_u64(p->gpte_bytes));
#undef FIELD
#undef ROLE
	return o;
}

static json_t *walker_json(const struct facts_walker *w)
{
	/* PFERR_* by bit, as the kernel prints them */
	static const char *const names[] = {"P", "W", "U", "RSVD", "F"};
	json_t *o = json_object(), *flags = json_array();
	uint64_t rest = w->pferr >> 5 << 5;

	for (unsigned bit = 0; bit < 5; bit++)
		if (w->pferr >> bit & 1)
			json_array_append_new(flags, json_string(names[bit]));
	if (rest)
		json_array_append_new(flags, facts_hex_json(rest));
	json_put(o, "pferr", facts_hex_json(w->pferr));
	json_put(o, "flags", flags);
	return o;
}

static json_t *ple_json(const struct facts_ple *p)
{
	json_t *o = json_object();

	json_put(o, "vcpu", p->vcpu >= 0 ? json_integer(p->vcpu) : json_null());
	json_put(o, "old", p->has_old ? json_u64(p->old) : json_null());
	json_put(o, "new", p->has_new ? json_u64(p->new) : json_null());
	json_put(o, "direction", json_string(p->grow ? "grow" : "shrink"));
	return o;
}

static json_t *ring_json(const struct facts_ring *r)
{
	json_t *o = json_object(), *tids = json_array();

	for (const struct tally_item *i = r->reset_tids.items; i; i = i->hh.next)
		json_array_append_new(tids, json_u64(i->key));
	json_put(o, "vcpu", json_u64(r->vcpu));
	json_put(o, "pushes", json_u64(r->pushes));
	json_put(o, "max_used", r->used_seen ? json_u64(r->max_used) : json_null());
	json_put(o, "soft_full", r->pushes && !r->ret_seen ? json_null() : json_u64(r->soft_full));
	json_put(o, "exits", json_u64(r->exits));
	json_put(o, "resets", json_u64(r->resets));
	json_put(o, "reset_tids", r->resets && !r->tids_seen ? json_null() : json_incref(tids));
	json_put(o, "stall_ns", r->stalls ? json_u64(r->stall_ns) : json_null());
	json_decref(tids);
	return o;
}

static json_t *mmio_json(const struct facts *f)
{
	json_t *o = json_object(), *gpas = json_array();

	for (const struct tally_item *i = f->gpas.items; i; i = i->hh.next)
		json_array_append_new(gpas, facts_hex_json(i->key));
	json_put(o, "reads", json_u64(f->mmio[1]));
	json_put(o, "writes", json_u64(f->mmio[2]));
	json_put(o, "unsatisfied_reads", json_u64(f->mmio[0]));
	json_put(o, "round_trips", json_u64(f->round_trips));
	json_put(o, "open_reads", json_u64(f->open_reads));
	json_put(o, "accesses", json_u64(f->mmio[1] + f->mmio[2] + f->open_reads));
	json_put(o, "cache_hits", json_u64(f->records_of[HOST_vcpu_match_mmio]));
	facts_put_list(o, "gpas", gpas, f->gpas.truncated);
	return o;
}

void facts_mmu_json(json_t *o, const struct facts *f)
{
	json_t *sp = json_array(), *spte = json_object(), *walkers = json_array(),
	       *ple = json_array(), *rings = json_array();

	for (size_t i = 0; i < f->sp.n; i++)
		json_array_append_new(sp, sp_json((struct facts_sp *)f->sp.at + i));
	for (size_t i = 0; i < f->walker.n; i++)
		json_array_append_new(walkers,
				      walker_json((struct facts_walker *)f->walker.at + i));
	for (size_t i = 0; i < f->ple.n; i++)
		json_array_append_new(ple, ple_json((struct facts_ple *)f->ple.at + i));
	for (const struct facts_ring *r = f->rings; r; r = r->hh.next)
		json_array_append_new(rings, ring_json(r));
	json_put(spte, "shown", json_u64(f->records_of[HOST_kvm_tdp_mmu_spte_changed]));
	json_put(spte, "torn_down", json_u64(f->torn_down));
	json_put(spte, "implied", json_u64(f->implied));
	facts_put_list(o, "sp_pages", sp, f->sp.truncated);
	json_put(o, "spte", spte);
	json_put(o, "mmio", mmio_json(f));
	json_put(o, "misconfig_not_mmio", json_u64(f->misconfig_not_mmio));
	facts_put_list(o, "walker_errors", walkers, f->walker.truncated);
	facts_put_list(o, "dirty_rings", rings, f->rings_truncated);
	facts_put_list(o, "ple", ple, f->ple.truncated);
}

/* ---- */

json_t *facts_dat_json(const struct host_dat *d)
{
	json_t *o;

	if (!d->is_dat)
		return json_null();
	o = json_object();
	json_put(o, "version", json_u64(d->version));
	json_put(o, "endian", json_string(d->big_endian ? "big" : "little"));
	json_put(o, "long_size", json_u64(d->long_size));
	json_put(o, "page_size", json_u64(d->page_size));
	json_put(o, "compression",
		 *d->compression ? facts_text_json(d->compression, strlen(d->compression))
				 : json_null());
	return o;
}

json_t *facts_refusal_json(const char *path, const struct host_result *r)
{
	const char *why = host_refusal_name(r->refusal);
	json_t *o = json_object();

	json_put(o, "trace", facts_text_json(path, strlen(path)));
	json_put(o, "kind",
		 r->dat.is_dat ? json_string(host_kind_name(HOST_KIND_TRACE_DAT)) : json_null());
	json_put(o, "refuse", json_true());
	json_put(o, "error", json_string(why));
	json_put(o, "trace_dat", facts_dat_json(&r->dat));
	return o;
}
