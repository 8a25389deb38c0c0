// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/counts.h"
#include "model/host/cache.h"
#include "model/params.h"
#include "model/sim/ledger.h"
#include "model/sim/profile.h"
#include "model/sim/rng.h"
#include "model/sim/sim.h"
#include "tests/unit/harness.h"

/* The reference string and its 12 faults with three frames under LRU: A. Silberschatz, P. Galvin
 * and G. Gagne, Operating System Concepts, "LRU Page Replacement". */
static void textbook_lru(void)
{
	const uint64_t refs[] = {7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1};
	struct cache_level l;
	int misses = 0;

	CU_ASSERT_EQUAL_FATAL(cache_level_init(&l, 3, 3), 0);
	for (size_t i = 0; i < sizeof(refs) / sizeof(*refs); i++)
		misses += !cache_level_access(&l, 0, refs[i] + 1);
	CU_ASSERT_EQUAL(misses, 12);
	cache_level_free(&l);
}

/* Under LRU a cycle over one line more than a set holds never hits, one that fits always does. */
static void cycles_over_a_set(void)
{
	struct cache_level l;
	int hits = 0;

	CU_ASSERT_EQUAL_FATAL(cache_level_init(&l, 64, 8), 0);
	CU_ASSERT_EQUAL(l.sets, 8);
	for (int i = 0; i < 90; i++)
		hits += cache_level_access(&l, 3, i % 9 + 1);
	CU_ASSERT_EQUAL(hits, 0);
	for (int i = 0; i < 80; i++)
		hits += cache_level_access(&l, 4 + 8 * i, i % 8 + 1);
	CU_ASSERT_EQUAL(hits, 72);
	cache_level_invalidate(&l, 4, 5);
	CU_ASSERT_FALSE(cache_level_access(&l, 4, 5));
	CU_ASSERT_TRUE(cache_level_access(&l, 4, 6));
	cache_level_clear(&l);
	CU_ASSERT_FALSE(cache_level_access(&l, 4, 6));
	cache_level_free(&l);
	CU_ASSERT_EQUAL(cache_level_init(&l, 65, 8), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(cache_level_init(&l, 8, 0), KVMSIM_EINVAL);
}

/* Independent uniform references to F lines hit a cache of C with probability C / F. */
static void uniform_references_hit_c_over_f(void)
{
	struct cache_level l;
	struct rng r;
	int hits = 0;

	rng_init(&r, 1, 0, "cache");
	CU_ASSERT_EQUAL_FATAL(cache_level_init(&l, 64, 64), 0);
	for (int i = 0; i < 101000; i++) {
		bool hit = cache_level_access(&l, 0, rng_below(&r, 256) + 1);

		hits += i >= 1000 && hit;
	}
	CU_ASSERT_DOUBLE_EQUAL(hits / 100000.0, 0.25, 0.007); /* five standard errors */
	cache_level_free(&l);
}

/* A level that takes whole frames at once does what one does that is given their lines one by one:
 * random frames, single lines, invalidations and clears. 12 sets are no power of two. */
static void frames_are_their_lines(void)
{
	const uint32_t sets[] = {16, 12}, lines = 4;
	struct cache_level by_frame, by_line;
	struct rng r;

	rng_init(&r, 1, 0, "frames");
	for (int s = 0; s < 2; s++) {
		uint64_t entered = 0, hits = 0, wrong = 0;

		CU_ASSERT_EQUAL_FATAL(cache_level_init(&by_frame, sets[s] * 3, 3), 0);
		CU_ASSERT_EQUAL_FATAL(cache_level_use_frames(&by_frame, 2), 0);
		CU_ASSERT_EQUAL_FATAL(cache_level_init(&by_line, sets[s] * 3, 3), 0);
		for (int i = 0; i < 200000; i++) {
			uint64_t frame = rng_below(&r, 40), set = frame * lines, tag = set + 1;
			uint64_t hash = frame << 32 | frame;
			uint32_t what = rng_below(&r, 100), line = rng_below(&r, lines);
			bool is_new;

			if (what < 3) {
				cache_level_clear(&by_frame);
				cache_level_clear(&by_line);
			} else if (what < 6) {
				cache_level_invalidate(&by_frame, set + line, tag + line);
				cache_level_invalidate(&by_line, set + line, tag + line);
			} else if (what < 50) {
				cache_level_frame_is_new(&by_frame, hash);
				bool hit = cache_level_access(&by_line, set + line, tag + line);

				wrong += cache_level_access(&by_frame, set + line, tag + line) !=
					 hit;
				hits += hit;
			} else {
				is_new = cache_level_frame_is_new(&by_frame, hash);
				if (is_new)
					cache_level_enter_frame(&by_frame, set, tag);
				entered += is_new;
				for (uint32_t k = 0; k < lines; k++) {
					bool hit = cache_level_access(&by_line, set + k, tag + k);

					wrong += (is_new ? false
							 : cache_level_access(&by_frame, set + k,
									      tag + k)) != hit;
				}
			}
		}
		CU_ASSERT_EQUAL(wrong, 0);
		CU_ASSERT_TRUE(entered > 10000);
		CU_ASSERT_TRUE(hits > 10000);
		cache_level_free(&by_frame);
		cache_level_free(&by_line);
	}
	CU_ASSERT_EQUAL_FATAL(cache_level_init(&by_line, 30, 3), 0);
	CU_ASSERT_EQUAL(cache_level_use_frames(&by_line, 2), 0); /* 10 sets: no groups of 4 */
	CU_ASSERT_FALSE(cache_level_frame_is_new(&by_line, 1));
	cache_level_free(&by_line);
}

#define PROFILE(params)                                                                            \
	"[machine]\nname = test\nunit = cycles\nsource = test\n"                                   \
	"[price]\nl2_miss = 10\nllc_miss = 100\ndtlb_miss = 1000\n[param]\n" params

#define SMALL                                                                                      \
	PROFILE("l2_bytes = 512\nl2_ways = 8\nllc_bytes = 4096\nllc_ways = 64\n"                   \
		"dtlb_entries = 2\ndtlb_ways = 2\n")
#define FRAME 4096ull

/* A scene: one or two tasks that run a script over one cache. */
struct scene {
	struct sim *sim;
	struct profile *profile;
	struct cache *cache;
	void (*script)(struct scene *s, struct task *t);
	int64_t last; /* cycles that the last look() saw */
};

static int run_script(struct task *t, void *arg)
{
	struct scene *s = arg;

	s->last = task_now(t);
	s->script(s, t);
	return 0;
}

/* Cycles charged since the last look. */
static uint64_t look(struct scene *s, struct task *t)
{
	uint64_t d = task_now(t) - s->last;

	s->last = task_now(t);
	return d;
}

static void play(const char *profile, void (*first)(struct scene *, struct task *),
		 void (*second)(struct scene *, struct task *))
{
	struct scene s = {.script = first}, other;
	struct sim_opts so = {.vocabulary = &model_vocabulary};
	struct task_opts to = {.name = "a", .fn = run_script, .arg = &s};
	struct task *t;

	CU_ASSERT_EQUAL_FATAL(profile_parse(profile, strlen(profile), "test", &model_vocabulary,
					    model_params, NULL, &s.profile),
			      0);
	so.profile = s.profile;
	CU_ASSERT_EQUAL_FATAL(sim_create(&so, &s.sim), 0);
	CU_ASSERT_EQUAL_FATAL(cache_create(s.profile, NULL, &s.cache), 0);
	other = s;
	other.script = second;
	CU_ASSERT_EQUAL_FATAL(task_create(s.sim, &to, &t), 0);
	to.arg = &other;
	to.start = 1000000;
	if (second)
		CU_ASSERT_EQUAL_FATAL(task_create(s.sim, &to, &t), 0);
	CU_ASSERT_EQUAL(sim_run(s.sim, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(sim_check_ledger(s.sim), 0);
	sim_destroy(s.sim);
	cache_destroy(s.cache);
	profile_free(s.profile);
}

static void touch_twice(struct scene *s, struct task *t)
{
	CU_ASSERT_EQUAL(cache_touch(t, s->cache, FRAME, 8, false), 0);
	CU_ASSERT_EQUAL(look(s, t), 1110);
	CU_ASSERT_EQUAL(cache_touch(t, s->cache, FRAME + 56, 8, true), 0);
	CU_ASSERT_EQUAL(look(s, t), 0);
	/* two lines, in two pages */
	CU_ASSERT_EQUAL(cache_touch(t, s->cache, 3 * FRAME - 4, 8, false), 0);
	CU_ASSERT_EQUAL(look(s, t), 2220);
	/* the data TLB of two pages has lost the first, the caches have not */
	CU_ASSERT_EQUAL(cache_touch(t, s->cache, FRAME, 8, false), 0);
	CU_ASSERT_EQUAL(look(s, t), 1000);
	CU_ASSERT_EQUAL(cache_touch(t, s->cache, FRAME, 0, false), 0);
	CU_ASSERT_EQUAL(look(s, t), 0);
	CU_ASSERT_EQUAL(cache_touch(t, NULL, 9 * FRAME, 8, false), 0);
	CU_ASSERT_EQUAL(look(s, t), 0);
	/* what was prefetched is there when it is touched */
	CU_ASSERT_EQUAL(cache_prefetch(t, s->cache, 9 * FRAME, 8), 0);
	CU_ASSERT_EQUAL(look(s, t), 0);
	CU_ASSERT_EQUAL(cache_touch(t, s->cache, 9 * FRAME, 8, false), 0);
	CU_ASSERT_EQUAL(look(s, t), 0);
	CU_ASSERT_EQUAL(cache_prefetch(t, NULL, 9 * FRAME, 8), 0);
}

static void misses_are_charged(void)
{
	play(SMALL, touch_twice, NULL);
}

/* The private cache is one set of 8: ten lines fit only the last level, of one set of 64. */
static void overflow_private(struct scene *s, struct task *t)
{
	for (uint64_t i = 0; i < 10; i++)
		cache_touch(t, s->cache, i * 64, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 1000 + 10 * 110);
	for (uint64_t i = 0; i < 10; i++)
		cache_touch(t, s->cache, i * 64, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 10 * 10);
	/* 54 new lines fill the last level beside these ten; one more loses the oldest */
	CU_ASSERT_EQUAL(sync(t), 0);
	CU_ASSERT_EQUAL(cache_pollute(t, s->cache, 54), 0);
	CU_ASSERT_EQUAL(look(s, t), 0);
	cache_touch(t, s->cache, 0, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 10);
	CU_ASSERT_EQUAL(sync(t), 0);
	cache_pollute(t, s->cache, 1);
	cache_touch(t, s->cache, 64, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 110);
	CU_ASSERT_EQUAL(sync(t), 0);
	cache_pollute(t, s->cache, 1000000000000);
	cache_touch(t, s->cache, 0, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 110);
}

static void levels_and_pollution(void)
{
	play(SMALL, overflow_private, NULL);
}

static void warm(struct scene *s, struct task *t)
{
	cache_touch(t, s->cache, FRAME, 8, false);
	cache_touch(t, s->cache, FRAME, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 1110);
	CU_ASSERT_EQUAL(task_block_until(t, WAIT_idle, 2000000), 0);
	look(s, t);
	cache_touch(t, s->cache, FRAME, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 10); /* the other task's write took the line away */
}

static void write_elsewhere(struct scene *s, struct task *t)
{
	cache_touch(t, s->cache, FRAME, 8, true);
	CU_ASSERT_EQUAL(look(s, t), 1010); /* the last level is shared, TLB and L2 are not */
}

static void private_caches_are_coherent(void)
{
	play(SMALL, warm, write_elsewhere);
}

static void warm_placed(struct scene *s, struct task *t)
{
	CU_ASSERT_EQUAL(cache_place(s->cache, t, 3), 0);
	CU_ASSERT_EQUAL(cache_place(s->cache, t, 3), 0);
	CU_ASSERT_EQUAL(cache_place(s->cache, t, 4), KVMSIM_EINVAL);
	cache_touch(t, s->cache, FRAME, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 1110);
}

static void same_pcpu(struct scene *s, struct task *t)
{
	CU_ASSERT_EQUAL(cache_place(s->cache, t, 3), 0);
	cache_touch(t, s->cache, FRAME, 8, true);
	CU_ASSERT_EQUAL(look(s, t), 0);
}

static void tasks_share_a_placed_pcpu(void)
{
	play(SMALL, warm_placed, same_pcpu);
}

static void enter(struct scene *s, struct task *t)
{
	cache_touch(t, s->cache, FRAME, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 1100); /* no private cache */
	CU_ASSERT_EQUAL(sync(t), 0);
	CU_ASSERT_EQUAL(cache_vm_entry(t, s->cache), 0);
	cache_touch(t, s->cache, FRAME, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 1000); /* flushed TLB; 63 lines of pollution leave room */
	CU_ASSERT_EQUAL(sync(t), 0);
	cache_vm_entry(t, s->cache);
	cache_vm_entry(t, s->cache);
	cache_touch(t, s->cache, FRAME, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 1100);
	CU_ASSERT_EQUAL(cache_vm_entry(t, NULL), 0);
}

static void vm_entry_pollutes_and_flushes(void)
{
	play(PROFILE("llc_bytes = 4096\nllc_ways = 64\ndtlb_entries = 16\ndtlb_flush_on_entry = 1\n"
		     "guest_pollution = 63\n"),
	     enter, NULL);
}

static void stream(struct scene *s, struct task *t)
{
	/* 64 lines of a frame in order: the first is missed, the others were fetched ahead */
	for (uint64_t i = 0; i < 64; i++)
		cache_touch(t, s->cache, FRAME + 64 * i, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 100);
	/* no stream goes over into the next frame, none runs backwards or by twos */
	cache_touch(t, s->cache, 2 * FRAME, 8, false);
	cache_touch(t, s->cache, 3 * FRAME + 128, 8, false);
	cache_touch(t, s->cache, 3 * FRAME + 64, 8, false);
	cache_touch(t, s->cache, 3 * FRAME + 192, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 400);
	/* two frames are followed: a third makes the oldest be forgotten */
	cache_touch(t, s->cache, 2 * FRAME + 64, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 0);
	cache_touch(t, s->cache, 4 * FRAME, 8, false);
	cache_touch(t, s->cache, 3 * FRAME + 256, 8, false);
	CU_ASSERT_EQUAL(look(s, t), 200);
}

static void prefetcher_follows_streams(void)
{
	play(PROFILE("llc_bytes = 65536\nllc_ways = 16\nprefetch_streams = 2\n"), stream, NULL);
}

static void bad_sizes_are_refused(void)
{
	const char *bad[] = {PROFILE("l2_bytes = 640\nl2_ways = 7\n"),
			     PROFILE("llc_bytes = 64\nllc_ways = 16\n"),
			     PROFILE("dtlb_entries = 6\n"), PROFILE("line_bytes = 48\n")};
	struct cache *c;
	struct profile *p;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CU_ASSERT_EQUAL_FATAL(profile_parse(bad[i], strlen(bad[i]), "bad",
						    &model_vocabulary, model_params, NULL, &p),
				      0);
		CU_ASSERT_EQUAL(cache_create(p, NULL, &c), KVMSIM_EINVAL);
		CU_ASSERT_PTR_NULL(c);
		profile_free(p);
	}
	CU_ASSERT_EQUAL_FATAL(profile_parse(PROFILE(""), strlen(PROFILE("")), "none",
					    &model_vocabulary, model_params, NULL, &p),
			      0);
	CU_ASSERT_EQUAL(cache_create(p, NULL, &c), 0);
	CU_ASSERT_PTR_NULL(c);
	profile_free(p);
}

static CU_TestInfo tests[] = {{"textbook_lru", textbook_lru},
			      {"cycles_over_a_set", cycles_over_a_set},
			      {"uniform_references_hit_c_over_f", uniform_references_hit_c_over_f},
			      {"frames_are_their_lines", frames_are_their_lines},
			      {"misses_are_charged", misses_are_charged},
			      {"levels_and_pollution", levels_and_pollution},
			      {"private_caches_are_coherent", private_caches_are_coherent},
			      {"tasks_share_a_placed_pcpu", tasks_share_a_placed_pcpu},
			      {"vm_entry_pollutes_and_flushes", vm_entry_pollutes_and_flushes},
			      {"prefetcher_follows_streams", prefetcher_follows_streams},
			      {"bad_sizes_are_refused", bad_sizes_are_refused},
			      CU_TEST_INFO_NULL};
TEST_MAIN("test_cache", tests)
