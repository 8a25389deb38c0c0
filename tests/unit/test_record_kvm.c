// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A real KVM's dirty log against the model's, page for page, round by round: of a recording that is
 * kept, and, where there is a /dev/kvm, of guests that run now.
 */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/model_play.h"
#include "traces/trace.h"
#include "workloads/scenario.h"

#define EQ	   CU_ASSERT_EQUAL
#define SLOT_PAGES 4096u
#define WORDS	   (SLOT_PAGES / 64)
#define MAX_ROUNDS 64

static char message[256];

static void keep_message(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(message, sizeof(message), "%s", msg);
}
static const struct kvmsim_errsink errors = {keep_message, NULL};

static void say(const char *what, int err)
{
	if (err)
		printf("%s: error %d: %s\n", what, err, message);
	EQ(err, 0);
}

/* What was reported, round by round, of the one slot. */
struct report {
	uint64_t n, map[MAX_ROUNDS][WORDS];
	uint64_t must, missing, maybe, beside, full;
	bool by_time; /* the machine says how many: those above are added to the last */
};

static int keep_round(void *ctx, const struct kvm_round *r)
{
	struct report *to = ctx;
	const struct kvm_slot_report *s = &r->slots[0];
	uint64_t at = r->number < MAX_ROUNDS ? r->number : MAX_ROUNDS - 1;

	if (at != r->number && !to->by_time)
		return KVMSIM_EINVAL;
	for (unsigned w = 0; w < WORDS; w++)
		to->map[at][w] |= s->reported[w];
	to->n = at + 1;
	if (!r->number)
		return 0;
	to->must += s->must;
	to->missing += s->missing;
	to->maybe += s->maybe;
	to->beside += s->beside;
	to->full += r->ring_full;
	return 0;
}

static void same(const char *what, const struct report *real, const struct report *model)
{
	EQ(real->n, model->n);
	for (uint64_t r = 0; r < real->n && r < model->n; r++) {
		unsigned differ = 0;

		for (unsigned w = 0; w < WORDS; w++)
			differ +=
				(unsigned)__builtin_popcountll(real->map[r][w] ^ model->map[r][w]);
		if (differ)
			printf("%s, round %llu: %u pages differ\n", what, (unsigned long long)r,
			       differ);
		EQ(differ, 0);
	}
}

/* ---- the kept recording ---- */

#define RECORDED "traces/recorded/"

static bool flag(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	return s;
}

static uint64_t number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	CU_ASSERT_TRUE_FATAL(json_is_integer(v));
	return (uint64_t)json_integer_value(v);
}

/* "1 5 7-9" */
static void read_pages(const char *list, uint64_t *map)
{
	while (*list) {
		char *end;
		uint64_t first = strtoull(list, &end, 10);
		uint64_t last = *end == '-' ? strtoull(end + 1, &end, 10) : first;

		CU_ASSERT_FATAL(end != list && first <= last && last < SLOT_PAGES);
		for (uint64_t p = first; p <= last; p++)
			map[p / 64] |= 1ull << (p % 64);
		list = *end ? end + 1 : end;
	}
}

static void read_report(const json_t *recording, struct report *r)
{
	const json_t *rounds = json_object_get(recording, "rounds");

	r->n = json_array_size(rounds);
	CU_ASSERT_FATAL(r->n > 1 && r->n <= MAX_ROUNDS);
	for (uint64_t i = 0; i < r->n; i++) {
		const json_t *round = json_array_get(rounds, i);
		const json_t *slot = json_array_get(json_object_get(round, "slots"), 0);

		EQ(number(round, "round"), i);
		read_pages(text(slot, "pages"), r->map[i]);
	}
}

static void options_of(const json_t *recording, struct kvm_player_opts *o)
{
	const char *protocol = text(recording, "protocol");

	while (o->protocol < N_KVM_PROTOCOLS && strcmp(kvm_protocol_name(o->protocol), protocol))
		o->protocol++;
	CU_ASSERT_FATAL(o->protocol < N_KVM_PROTOCOLS);
	o->clear_chunk = number(recording, "clear_chunk_pages");
	o->ring_entries = (uint32_t)number(recording, "ring_entries");
	o->thp = flag(recording, "thp");
	o->guest_2m = !strcmp(text(recording, "guest_pte"), "2m");
	o->absent = flag(recording, "absent");
	o->warm = flag(recording, "warm");
}

static void one_recording(const char *name)
{
	static struct report real, model;
	struct kvm_player_slot slot = {.logged = true};
	struct op_source source;
	struct kvm_player_opts o = {.slots = &slot,
				    .n_slots = 1,
				    .n_vcpus = 1,
				    .sources = &source,
				    .round = keep_round,
				    .ctx = &model,
				    .errors = &errors};
	struct trace_reader *trace;
	char path[256];

	memset(&real, 0, sizeof(real));
	memset(&model, 0, sizeof(model));
	snprintf(path, sizeof(path), RECORDED "%s", name);
	json_t *recording = json_load_file(path, 0, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(recording);
	CU_ASSERT_FATAL(trace_open(RECORDED "kvm.kvt", &errors, &trace) == 0);
	EQ(trace_meta(trace)->n_vcpus, 1);
	slot.base_gfn = trace_meta(trace)->slots[0].base_gfn;
	slot.npages = trace_meta(trace)->slots[0].npages;
	EQ(slot.npages, SLOT_PAGES);
	CU_ASSERT_FATAL(trace_source(trace, 0, &source) == 0);
	options_of(recording, &o);
	read_report(recording, &real);
	say(name, model_play(&o));
	same(name, &real, &model);
	json_decref(recording);
	trace_close(trace);
}

static void test_recorded(void)
{
	DIR *dir = opendir(RECORDED);
	unsigned n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	for (const struct dirent *e; (e = readdir(dir));) {
		if (strncmp(e->d_name, "kvm-", 4) || !strstr(e->d_name, ".json"))
			continue;
		one_recording(e->d_name);
		n++;
	}
	closedir(dir);
	CU_ASSERT_TRUE(n >= 10);
}

/* ---- guests that run now ---- */

static bool kvm_here(struct kvm_offer *offer)
{
	message[0] = '\0';
	if (kvm_player_offer(&errors, offer) || !offer->runs) {
		test_skip(message[0] ? message : "this machine's KVM does not run the guest");
		return false;
	}
	return true;
}

static const char *const SCENARIO = "[scenario]\nworkload = migration\nslots = ram:0x200:4096\n"
				    "rounds = %u\ninterval = 100000\nloads = %u\nvcpus = %u\n"
				    "pages_min = 30\npages_max = 900\n";

struct live {
	struct scenario *scenario;
	struct op_source source[2];
	struct kvm_player_slot slot;
	struct kvm_player_opts o;
};

static void live_open(struct live *l, unsigned rounds, unsigned loads, unsigned vcpus)
{
	char ini[512];
	int n = snprintf(ini, sizeof(ini), SCENARIO, rounds, loads, vcpus);

	memset(l, 0, sizeof(*l));
	CU_ASSERT_FATAL(scenario_parse(ini, (size_t)n, "test", &errors, &l->scenario) == 0);
	for (uint32_t v = 0; v < vcpus; v++)
		CU_ASSERT_FATAL(scenario_source(l->scenario, v, 7, 0, &l->source[v]) == 0);
	l->slot = (struct kvm_player_slot){.base_gfn = 0x200, .npages = SLOT_PAGES, .logged = true};
	l->o = (struct kvm_player_opts){.slots = &l->slot,
					.n_slots = 1,
					.n_vcpus = vcpus,
					.sources = l->source,
					.timeout_s = 30,
					.round = keep_round,
					.errors = &errors};
}

static void live_close(struct live *l)
{
	for (uint32_t v = 0; v < l->o.n_vcpus; v++)
		scenario_source_free(&l->source[v]);
	scenario_free(l->scenario);
}

static const struct protocol {
	const char *name;
	enum kvm_protocol protocol;
	uint64_t chunk;
	uint32_t ring;
} protocols[] = {
	{"get", KVM_PROTOCOL_GET, 0, 0},
	{"manual", KVM_PROTOCOL_MANUAL, 64, 0},
	{"manual-all-set", KVM_PROTOCOL_MANUAL_ALL_SET, 1024, 0},
	{"ring", KVM_PROTOCOL_RING, 0, 512},
};
#define N_PROTOCOLS (sizeof(protocols) / sizeof(protocols[0]))

/* Whether this KVM has it; else a note of it is printed. */
static bool offered(const struct kvm_offer *offer, const struct protocol *p)
{
	bool has = p->protocol == KVM_PROTOCOL_GET ||
		   (p->protocol == KVM_PROTOCOL_MANUAL && offer->manual) ||
		   (p->protocol == KVM_PROTOCOL_MANUAL_ALL_SET && offer->all_set) ||
		   (p->protocol == KVM_PROTOCOL_RING && offer->ring_entries >= p->ring);

	if (!has)
		printf("record_kvm: this KVM has no %s\n", p->name);
	return has;
}

static void set_protocol(struct kvm_player_opts *o, const struct protocol *p)
{
	o->protocol = p->protocol;
	o->clear_chunk = p->chunk;
	o->ring_entries = p->ring;
}

/* The same on both, of streams that are made again. */
static void both(const struct protocol *p, unsigned vcpus, bool warm)
{
	static struct report real, model;
	struct kvm_player_result result;
	struct live l;
	char what[64];

	memset(&real, 0, sizeof(real));
	memset(&model, 0, sizeof(model));
	snprintf(what, sizeof(what), "%s, %u vCPUs%s", p->name, vcpus, warm ? ", warm" : "");
	for (int on_model = 0; on_model < 2; on_model++) {
		live_open(&l, 12, 2, vcpus);
		set_protocol(&l.o, p);
		l.o.warm = warm;
		l.o.ctx = on_model ? &model : &real;
		say(what, on_model ? model_play(&l.o) : kvm_play(&l.o, &result));
		live_close(&l);
	}
	same(what, &real, &model);
	EQ(result.rounds, 12);
	EQ(real.missing, 0);
	EQ(real.beside, 0);
	CU_ASSERT_TRUE(real.must > 1000);
	/* a page that is mapped already is not dirty for being read */
	CU_ASSERT_EQUAL(real.maybe == 0, warm);
}

static void test_live(void)
{
	struct kvm_offer offer;

	if (!kvm_here(&offer))
		return;
	for (unsigned i = 0; i < N_PROTOCOLS; i++) {
		if (!offered(&offer, &protocols[i]))
			continue;
		both(&protocols[i], 1, true);
		both(&protocols[i], 2, false);
	}
}

/* A page that the host does not have and the guest reads is the zero page, which no spte grants
 * stores to: reading it is no store. Where the host has huge pages, a store brings 512 pages, which
 * the guest may read writable. */
static void one_absent(const struct protocol *p, bool thp, bool guest_2m)
{
	static struct report real, model;
	struct kvm_player_result result;
	struct live l;
	char what[64];

	memset(&real, 0, sizeof(real));
	memset(&model, 0, sizeof(model));
	snprintf(what, sizeof(what), "absent, %s%s%s", p->name, thp ? ", thp" : "",
		 guest_2m ? ", 2M guest PTEs" : "");
	for (int on_model = 0; on_model < 2; on_model++) {
		live_open(&l, 12, 2, 1);
		set_protocol(&l.o, p);
		l.o.absent = true;
		l.o.thp = thp;
		l.o.guest_2m = guest_2m;
		l.o.ctx = on_model ? &model : &real;
		say(what, on_model ? model_play(&l.o) : kvm_play(&l.o, &result));
		live_close(&l);
	}
	same(what, &real, &model);
	CU_ASSERT_TRUE(real.must > 1000);
	EQ(real.missing, 0);
	EQ(real.beside, 0);
	CU_ASSERT_EQUAL(real.maybe != 0, thp);
}

static void test_absent(void)
{
	struct kvm_offer offer;

	if (!kvm_here(&offer))
		return;
	for (unsigned i = 0; i < N_PROTOCOLS; i++) {
		if (!offered(&offer, &protocols[i]))
			continue;
		one_absent(&protocols[i], false, false);
		one_absent(&protocols[i], true, true);
	}
	one_absent(&protocols[0], true, false);
	one_absent(&protocols[0], false, true);
}

static void one_beside(const struct protocol *p, bool thp)
{
	static struct report real;
	struct kvm_player_result result;
	uint64_t reported[WORDS] = {0}, stored[WORDS] = {0};
	struct live l;

	memset(&real, 0, sizeof(real));
	live_open(&l, 40, 3, 2);
	set_protocol(&l.o, p);
	l.o.warm = real.by_time = true;
	l.o.thp = l.o.guest_2m = thp;
	l.o.every_us = 2000;
	l.o.ctx = &real;
	say(p->name, kvm_play(&l.o, &result));
	live_close(&l);
	EQ(real.missing, 0);
	EQ(real.beside, 0);
	CU_ASSERT_TRUE(real.n >= 2);
	for (uint64_t r = 1; r < real.n; r++)
		for (unsigned w = 0; w < WORDS; w++)
			reported[w] |= real.map[r][w];
	/* By the scenario itself: with 4K pages that are mapped, nothing but stores is reported. */
	live_open(&l, 40, 3, 2);
	for (unsigned v = 0; v < 2; v++) {
		const struct guest_op *ops;
		long n;

		while ((n = l.source[v].next(l.source[v].ctx, &ops)) > 0) {
			for (long i = 0; i < n; i++) {
				uint64_t page = (ops[i].arg >> 12) - 0x200;

				if (ops[i].kind == OP_WRITE)
					stored[page / 64] |= 1ull << (page % 64);
			}
		}
	}
	live_close(&l);
	for (unsigned w = 0; w < WORDS; w++) {
		EQ(stored[w] & ~reported[w], 0);
		if (!thp)
			EQ(reported[w] & ~stored[w], 0);
	}
}

static void test_beside(void)
{
	struct kvm_offer offer;

	if (!kvm_here(&offer))
		return;
	for (unsigned i = 0; i < N_PROTOCOLS; i++) {
		if (offered(&offer, &protocols[i]))
			one_beside(&protocols[i], false);
	}
	one_beside(&protocols[0], true);
}

static void test_ring_full(void)
{
	static struct report real;
	static const struct protocol small = {"ring", KVM_PROTOCOL_RING, 0, 256};
	struct kvm_player_result result;
	struct kvm_offer offer;
	struct live l;

	if (!kvm_here(&offer))
		return;
	if (!offered(&offer, &small)) {
		test_skip("this KVM has no dirty ring");
		return;
	}
	memset(&real, 0, sizeof(real));
	live_open(&l, 12, 0, 1);
	set_protocol(&l.o, &small);
	l.o.ctx = &real;
	say("a small ring", kvm_play(&l.o, &result));
	live_close(&l);
	EQ(real.missing, 0);
	EQ(real.beside, 0);
	/* Each exit empties a ring of 256 entries, and more than 256 pages were reported. */
	CU_ASSERT_TRUE(real.full > 0);
	CU_ASSERT_TRUE(real.full <= real.must / 100);
}

static int interrupt_at_3(void *ctx, const struct kvm_round *r)
{
	volatile int *interrupted = ctx;

	*interrupted = r->number == 3;
	return 0;
}

static void test_interrupted(void)
{
	volatile int interrupted = 0;
	struct kvm_player_result result;
	struct kvm_offer offer;
	struct live l;

	if (!kvm_here(&offer))
		return;
	for (unsigned vcpus = 1; vcpus <= 2; vcpus++) {
		live_open(&l, 12, 0, vcpus);
		interrupted = 0;
		l.o.round = interrupt_at_3;
		l.o.ctx = (void *)&interrupted;
		l.o.interrupted = &interrupted;
		EQ(kvm_play(&l.o, &result), KVMSIM_EINTR);
		EQ(result.rounds, 3);
		live_close(&l);
	}
}

static CU_TestInfo tests[] = {
	{"the recorded dirty log is the model's", test_recorded},
	{"a dirty log recorded now is the model's", test_live},
	{"memory that the host does not have yet", test_absent},
	{"collected beside running guests", test_beside},
	{"a ring that gets full", test_ring_full},
	{"an interrupt ends it", test_interrupted},
	CU_TEST_INFO_NULL,
};

TEST_MAIN("record_kvm", tests)
