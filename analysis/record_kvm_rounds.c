// SPDX-License-Identifier: GPL-3.0-or-later
/* What `record kvm` keeps of its rounds: samples for the medians, all of it as JSON. */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/output.h"
#include "analysis/record_kvm.h"

/* ---- taking rounds ---- */

/* The reported pages, as in a scenario's rounds: "1 5 7-9". NULL: no memory. */
static char *page_list(const uint64_t *map, uint64_t npages)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (uint64_t i = 0; i < npages; i++) {
		uint64_t first = i;

		if (!(map[i / 64] >> (i % 64) & 1))
			continue;
		while (i + 1 < npages && map[(i + 1) / 64] >> ((i + 1) % 64) & 1)
			i++;
		fprintf(f, ftell(f) ? " %" PRIu64 : "%" PRIu64, first);
		if (i > first)
			fprintf(f, "-%" PRIu64, i);
	}
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

static json_t *tally_json(const struct kvm_tally *t)
{
	json_t *o = json_object();

	for (size_t i = 0; i < t->n; i++) {
		if (t->value[i])
			json_put(o, t->name[i], json_u64(t->value[i]));
	}
	return o;
}

static json_t *report_json(const struct record_kvm *k, const struct kvm_slot_report *s)
{
	char *pages = page_list(s->reported, k->slots[s->slot].npages);
	json_t *o = json_object();

	json_put(o, "slot", json_string(k->slots[s->slot].name));
	json_put(o, "nr_dirty", json_u64(s->nr_dirty));
	json_put(o, "pages", json_string(pages));
	json_put(o, "must", json_u64(s->must));
	json_put(o, "missing", json_u64(s->missing));
	json_put(o, "maybe", json_u64(s->maybe));
	json_put(o, "beside", json_u64(s->beside));
	if (k->player->protocol != KVM_PROTOCOL_RING)
		json_put(o, "get_cycles", json_u64(s->get_cycles));
	if (k->player->protocol == KVM_PROTOCOL_MANUAL ||
	    k->player->protocol == KVM_PROTOCOL_MANUAL_ALL_SET) {
		json_put(o, "clear_calls", json_u64(s->clear_calls));
		json_put(o, "clear_cycles", json_u64(s->clear_cycles));
		json_put(o, "clear_longest_cycles", json_u64(s->clear_longest));
	}
	free(pages);
	return o;
}

static json_t *ring_json(const struct kvm_round *r)
{
	json_t *o = json_object();

	json_put(o, "entries", json_u64(r->ring_entries));
	json_put(o, "full", json_u64(r->ring_full));
	json_put(o, "resets", json_u64(r->ring_resets));
	json_put(o, "collect_cycles", json_u64(r->ring_collect_cycles));
	json_put(o, "reset_cycles", json_u64(r->ring_reset_cycles));
	return o;
}

static json_t *round_json(const struct record_kvm *k, const struct kvm_round *r)
{
	json_t *o = json_object(), *slots = json_array();

	json_put(o, "round", json_u64(r->number));
	json_put(o, "accesses", json_u64(r->accesses));
	json_put(o, "run_cycles", json_u64(r->run_cycles));
	for (uint32_t i = 0; i < r->n_slots; i++)
		json_array_append_new(slots, report_json(k, &r->slots[i]));
	json_put(o, "slots", slots);
	if (k->player->protocol == KVM_PROTOCOL_RING)
		json_put(o, "ring", ring_json(r));
	if (k->player->stats) {
		json_put(o, "stats_run", tally_json(&r->stats_run));
		json_put(o, "stats_collect", tally_json(&r->stats_collect));
	}
	if (k->player->events) {
		json_put(o, "events_run", tally_json(&r->events_run));
		json_put(o, "events_collect", tally_json(&r->events_collect));
	}
	return o;
}

static int add_sample(struct record_kvm *k, const struct record_sample *s)
{
	if (k->n == k->room) {
		size_t room = k->room ? 2 * k->room : 256;
		struct record_sample *grown = realloc(k->samples, room * sizeof(*grown));

		if (!grown)
			return KVMSIM_ENOMEM;
		k->samples = grown;
		k->room = room;
	}
	k->samples[k->n++] = *s;
	return 0;
}

int record_kvm_round(struct record_kvm *k, const struct kvm_round *r)
{
	bool ring = k->player->protocol == KVM_PROTOCOL_RING;
	struct record_sample all = {
		.slot = RECORD_ALL_SLOTS,
		.collect = (double)r->ring_collect_cycles,
		.reset = (double)r->ring_reset_cycles,
		.per_access = r->accesses ? (double)r->run_cycles / (double)r->accesses : 0,
	};
	int err = 0;

	if (k->format == RECORD_JSON) {
		if (!k->rounds)
			k->rounds = json_array();
		if (json_array_append_new(k->rounds, round_json(k, r)))
			return KVMSIM_ENOMEM;
	}
	if (!r->number)
		return 0; /* the set-up's */
	k->n_rounds++;
	k->ring_full += r->ring_full;
	for (uint32_t i = 0; !err && i < r->n_slots; i++) {
		const struct kvm_slot_report *s = &r->slots[i];
		struct record_sample one = {
			.slot = s->slot,
			.nr_dirty = s->nr_dirty,
			.get = (double)s->get_cycles,
			.clear = (double)s->clear_cycles,
			.clear_longest = (double)s->clear_longest,
			.clear_calls = s->clear_calls,
			.per_access = all.per_access,
		};

		k->must += s->must;
		k->missing += s->missing;
		k->maybe += s->maybe;
		k->beside += s->beside;
		all.nr_dirty += s->nr_dirty;
		if (!ring)
			err = add_sample(k, &one);
	}
	if (!err && ring)
		err = add_sample(k, &all);
	return err;
}

void record_kvm_free(struct record_kvm *k)
{
	free(k->samples);
	json_decref(k->rounds);
	k->samples = NULL;
	k->rounds = NULL;
}

/* ---- all of it ---- */

int record_kvm_json(struct record_kvm *k, const struct kvm_player_result *result, FILE *to)
{
	const struct kvm_player_opts *o = k->player;
	json_t *all = json_object(), *slots = json_array();
	char *setup = record_kvm_setup(k, NULL);

	json_put(all, "recorder", json_string("kvm"));
	json_put(all, "setup", json_string(setup));
	free(setup);
	if (k->source)
		json_put(all, "source", json_string(k->source));
	json_put(all, "protocol", json_string(kvm_protocol_name(o->protocol)));
	json_put(all, "clear_chunk_pages", json_u64(o->clear_chunk));
	json_put(all, "ring_entries", json_u64(o->ring_entries));
	json_put(all, "thp", json_boolean(o->thp));
	json_put(all, "guest_pte", json_string(o->guest_2m ? "2m" : "4k"));
	json_put(all, "absent", json_boolean(o->absent));
	json_put(all, "warm", json_boolean(o->warm));
	json_put(all, "every_us", json_u64(o->every_us));
	json_put(all, "vcpus", json_u64(o->n_vcpus));
	for (uint32_t i = 0; i < o->n_slots; i++) {
		json_t *s = json_object();

		json_put(s, "name", json_string(k->slots[i].name));
		json_put(s, "base_gfn", json_u64(k->slots[i].base_gfn));
		json_put(s, "npages", json_u64(k->slots[i].npages));
		json_put(s, "logged", json_boolean(k->slots[i].logged));
		json_put(s, "enable_cycles", json_u64(result->enable_cycles[i]));
		json_array_append_new(slots, s);
	}
	json_put(all, "slots", slots);
	json_put(all, "accesses", json_u64(result->accesses));
	json_put(all, "skipped_ops", json_u64(result->skipped));
	json_put(all, "rounds", k->rounds);
	k->rounds = NULL;
	return json_print(all, to);
}
