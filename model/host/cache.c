// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/counts.h"
#include "model/host/cache.h"
#include "model/sim/profile.h"

#define FRAME_SHIFT    12 /* lines keep their place within a 4 KiB frame; frames are random */
#define FRAME_MASK     ((1ull << FRAME_SHIFT) - 1)
#define POLLUTION_BASE (1ull << 63) /* addresses that no structure of the model has */

#define MAX_STREAMS 64

#define STREAM_PLACES 256

struct stream {
	uint64_t frame, line; /* the line touched last in the frame */
	uint8_t place;
};

struct pcpu {
	struct cache_level l2, dtlb;
	struct stream stream[MAX_STREAMS]; /* a ring, from .first_stream on most recently used
					    * first; no frame is twice in it */
	uint32_t first_stream;
	uint8_t at_place[STREAM_PLACES]; /* streams whose frames hash to each: mostly none */
};

struct cache {
	struct cache_level llc;
	struct pcpu **cpu; /* [n_cpus], NULL until first used */
	uint32_t *placed;  /* [n_placed] by task id: pCPU + 1, 0: not placed yet */
	uint32_t n_cpus, n_placed;
	uint32_t line_shift, page_shift;
	uint64_t l2_lines, dtlb_entries;
	uint32_t l2_ways, dtlb_ways;
	uint32_t n_streams;
	bool flush_on_entry;
	uint64_t guest_pollution, pollution_next;
	const struct task *last; /* whose pCPU was asked for last */
	struct pcpu *last_cpu;
};

static uint32_t log2_floor(uint64_t n)
{
	return 63 - __builtin_clzll(n);
}

static int level_from_params(const struct profile *p, struct cache_level *l, const char *what,
			     uint64_t entries, uint32_t ways, const struct kvmsim_errsink *errors)
{
	int err = entries ? cache_level_init(l, entries, ways) : 0;

	if (err == KVMSIM_EINVAL)
		return kvmsim_err(errors, KVMSIM_EINVAL,
				  "%s: %s of %llu entries is no whole number of sets of %u ways",
				  profile_name(p), what, (unsigned long long)entries, ways);
	return err;
}

int cache_create(const struct profile *p, const struct kvmsim_errsink *errors, struct cache **out)
{
	uint64_t line = profile_param(p, "line_bytes");
	uint64_t page = profile_param(p, "dtlb_page_bytes");
	struct cache_level probe = {0};
	struct cache *c;
	int err;

	*out = NULL;
	if (!line || line & (line - 1) || !page || page & (page - 1))
		return kvmsim_err(errors, KVMSIM_EINVAL,
				  "%s: line_bytes and dtlb_page_bytes are powers of two",
				  profile_name(p));
	c = calloc(1, sizeof(*c));
	if (!c)
		return KVMSIM_ENOMEM;
	c->line_shift = log2_floor(line);
	c->page_shift = log2_floor(page);
	c->l2_lines = profile_param(p, "l2_bytes") >> c->line_shift;
	c->l2_ways = profile_param(p, "l2_ways");
	c->dtlb_entries = profile_param(p, "dtlb_entries");
	c->dtlb_ways = profile_param(p, "dtlb_ways");
	c->flush_on_entry = profile_param(p, "dtlb_flush_on_entry");
	c->n_streams = profile_param(p, "prefetch_streams");
	c->guest_pollution = profile_param(p, "guest_pollution");
	c->pollution_next = POLLUTION_BASE;
	if (c->n_streams > MAX_STREAMS) {
		free(c);
		return kvmsim_err(errors, KVMSIM_EINVAL, "%s: prefetch_streams is at most %d",
				  profile_name(p), MAX_STREAMS);
	}
	uint64_t llc_lines = profile_param(p, "llc_bytes") >> c->line_shift;

	if (!c->l2_lines && !llc_lines && !c->dtlb_entries) {
		free(c);
		return 0;
	}
	/* The private levels are made per pCPU later: find a bad size now. */
	err = level_from_params(p, &probe, "the private cache", c->l2_lines, c->l2_ways, errors);
	cache_level_free(&probe);
	if (!err)
		err = level_from_params(p, &probe, "the data TLB", c->dtlb_entries, c->dtlb_ways,
					errors);
	cache_level_free(&probe);
	if (!err)
		err = level_from_params(p, &c->llc, "the last-level cache", llc_lines,
					profile_param(p, "llc_ways"), errors);
	if (!err && llc_lines)
		err = cache_level_use_frames(&c->llc, FRAME_SHIFT - c->line_shift);
	if (err) {
		cache_destroy(c);
		return err;
	}
	*out = c;
	return 0;
}

static void pcpu_free(struct pcpu *cpu)
{
	if (!cpu)
		return;
	cache_level_free(&cpu->l2);
	cache_level_free(&cpu->dtlb);
	free(cpu);
}

void cache_destroy(struct cache *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->n_cpus; i++)
		pcpu_free(c->cpu[i]);
	free(c->cpu);
	free(c->placed);
	cache_level_free(&c->llc);
	free(c);
}

static int pcpu_make(struct cache *c, uint32_t n)
{
	if (n >= c->n_cpus) {
		struct pcpu **grown = realloc(c->cpu, (n + 1) * sizeof(*grown));

		if (!grown)
			return KVMSIM_ENOMEM;
		memset(grown + c->n_cpus, 0, (n + 1 - c->n_cpus) * sizeof(*grown));
		c->cpu = grown;
		c->n_cpus = n + 1;
	}
	if (c->cpu[n])
		return 0;
	struct pcpu *cpu = calloc(1, sizeof(*cpu));
	int err = cpu ? 0 : KVMSIM_ENOMEM;

	if (cpu)
		cpu->at_place[0] = c->n_streams; /* none has a frame yet */
	if (!err && c->l2_lines)
		err = cache_level_init(&cpu->l2, c->l2_lines, c->l2_ways);
	if (!err && c->l2_lines)
		err = cache_level_use_frames(&cpu->l2, FRAME_SHIFT - c->line_shift);
	if (!err && c->dtlb_entries)
		err = cache_level_init(&cpu->dtlb, c->dtlb_entries, c->dtlb_ways);
	if (err) {
		pcpu_free(cpu);
		return err;
	}
	c->cpu[n] = cpu;
	return 0;
}

int cache_place(struct cache *c, const struct task *t, uint32_t cpu)
{
	uint32_t id = task_id(t);

	if (id < c->n_placed && c->placed[id])
		return c->placed[id] == cpu + 1 ? 0 : KVMSIM_EINVAL;
	if (id >= c->n_placed) {
		uint32_t *grown = realloc(c->placed, (id + 1) * sizeof(*grown));

		if (!grown)
			return KVMSIM_ENOMEM;
		memset(grown + c->n_placed, 0, (id + 1 - c->n_placed) * sizeof(*grown));
		c->placed = grown;
		c->n_placed = id + 1;
	}
	int err = pcpu_make(c, cpu);

	if (!err)
		c->placed[id] = cpu + 1;
	return err;
}

/* The task's pCPU, made at its first use, is the last one asked for. */
static int find_pcpu(struct cache *c, const struct task *t)
{
	uint32_t id = task_id(t);

	if (id >= c->n_placed || !c->placed[id]) {
		int err = cache_place(c, t, id);

		if (err)
			return err;
	}
	c->last_cpu = c->cpu[c->placed[id] - 1];
	c->last = t;
	return 0;
}

static inline int pcpu_of(struct cache *c, const struct task *t, struct pcpu **out)
{
	int err = c->last == t ? 0 : find_pcpu(c, t);

	*out = c->last_cpu;
	return err;
}

/* A random place for the frame of @addr: the finaliser of MurmurHash3 (A. Appleby) over its
 * number. */
static uint64_t frame_hash(uint64_t addr)
{
	uint64_t h = addr >> FRAME_SHIFT;

	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 33;
}

/* A set for the line at @addr, as if its frame, of hash @h, lay there; a frame's lines are in
 * order. */
static uint64_t line_set(const struct cache *c, uint64_t h, uint64_t addr)
{
	return (h << FRAME_SHIFT | (addr & FRAME_MASK)) >> c->line_shift;
}

/* Whether the prefetcher has fetched line @first ahead; remembers @last as its frame's last. @hash:
 * the frame's. */
static bool stream_touch(const struct cache *c, struct pcpu *cpu, uint64_t hash, uint64_t first,
			 uint64_t last)
{
	const struct stream now = {first >> (FRAME_SHIFT - c->line_shift), last, hash >> 56};
	const uint32_t n = c->n_streams;
	struct stream *ring = cpu->stream;
	/* The analyser does not know that a task which has its place has its pCPU. */
	uint32_t at = cpu->first_stream, i = 0; // NOLINT(clang-analyzer-core.NullDereference)
	bool ahead = false;

	if (!n)
		return false;
	if (cpu->at_place[now.place])
		for (; i < n && ring[at].frame != now.frame; i++)
			at = at + 1 < n ? at + 1 : 0;
	if (cpu->at_place[now.place] && i < n) {
		ahead = ring[at].line + 1 == first;
		for (; i; i--) {
			uint32_t before = at ? at - 1 : n - 1;

			ring[at] = ring[before];
			at = before;
		}
	} else {
		at = at ? at - 1 : n - 1; /* the least recent gives way */
		cpu->at_place[ring[at].place]--;
		cpu->at_place[now.place]++;
	}
	cpu->first_stream = at;
	ring[at] = now;
	return ahead;
}

/* What the running task has to wait for. */
struct misses {
	uint32_t l2, llc, dtlb;
};

/* The lines from that of @addr to that of @last, which lie in one frame. */
static void touch_lines(struct cache *c, struct pcpu *cpu, uint64_t addr, uint64_t last, bool write,
			struct misses *m)
{
	const uint64_t hash = frame_hash(addr), set = line_set(c, hash, addr);
	const uint64_t line = addr >> c->line_shift;
	const uint32_t n = (uint32_t)((last >> c->line_shift) - line) + 1;
	struct cache_level *l2 = c->l2_lines ? &cpu->l2 : NULL, *llc = c->llc.sets ? &c->llc : NULL;
	bool l2_new = !l2 || cache_level_frame_is_new(l2, hash),
	     llc_new = !llc || cache_level_frame_is_new(llc, hash);
	bool ahead = stream_touch(c, cpu, hash, line, line + n - 1);

	if (l2_new && llc_new && n == 1u << (FRAME_SHIFT - c->line_shift)) {
		uint32_t waited = c->n_streams ? !ahead : n;

		if (l2) {
			cache_level_enter_frame(l2, set, line + 1);
			m->l2 += waited;
		}
		if (llc) {
			cache_level_enter_frame(llc, set, line + 1);
			m->llc += waited;
		}
	} else {
		for (uint32_t i = 0; i < n; i++) {
			if (l2 && cache_level_access(l2, set + i, line + i + 1))
				continue;
			bool far = llc && !cache_level_access(llc, set + i, line + i + 1);

			if (ahead || (i && c->n_streams))
				continue;
			m->l2 += l2 != NULL;
			m->llc += far;
		}
	}
	for (uint32_t i = 0; write && l2 && i < c->n_cpus; i++)
		for (uint32_t k = 0; c->cpu[i] && c->cpu[i] != cpu && k < n; k++)
			cache_level_invalidate(&c->cpu[i]->l2, set + k, line + k + 1);
}

static int touch(struct task *t, struct cache *c, uint64_t addr, uint32_t bytes, bool write,
		 struct misses *m)
{
	struct pcpu *cpu;
	int err;

	err = sync(t);
	if (!err)
		err = pcpu_of(c, t, &cpu);
	if (err)
		return err;
	task_assert_first(t, "the caches");
	uint64_t last = addr + bytes - 1;

	if (c->dtlb_entries)
		for (uint64_t p = addr >> c->page_shift; p <= last >> c->page_shift; p++)
			m->dtlb += !cache_level_access(&cpu->dtlb, p, p + 1);
	for (; (addr ^ last) >> FRAME_SHIFT; addr = (addr | FRAME_MASK) + 1)
		touch_lines(c, cpu, addr, addr | FRAME_MASK, write, m);
	touch_lines(c, cpu, addr, last, write, m);
	return 0;
}

int cache_touch(struct task *t, struct cache *c, uint64_t addr, uint32_t bytes, bool write)
{
	struct misses m = {0};
	int err = c && bytes ? touch(t, c, addr, bytes, write, &m) : 0;

	if (m.dtlb)
		charge(t, COUNT_dtlb_miss, m.dtlb);
	if (m.l2)
		charge(t, COUNT_l2_miss, m.l2);
	if (m.llc)
		charge(t, COUNT_llc_miss, m.llc);
	return err;
}

int cache_prefetch(struct task *t, struct cache *c, uint64_t addr, uint32_t bytes)
{
	struct misses m = {0};

	return c && bytes ? touch(t, c, addr, bytes, false, &m) : 0;
}

/* Streams @lines new lines through one level. Twice its capacity leaves nothing else in it. */
static void pollute_level(const struct cache *c, struct cache_level *l, uint64_t first,
			  uint64_t lines)
{
	if (!l->sets)
		return;
	if (lines >= 2ull * l->sets * l->ways) {
		cache_level_clear(l);
		return;
	}
	for (uint64_t i = 0; i < lines; i++) {
		uint64_t addr = first + (i << c->line_shift);

		cache_level_access(l, line_set(c, frame_hash(addr), addr),
				   (addr >> c->line_shift) + 1);
	}
}

int cache_pollute(struct task *t, struct cache *c, uint64_t lines)
{
	struct pcpu *cpu;
	int err;

	if (!c || !lines)
		return 0;
	task_assert_first(t, "the caches");
	err = pcpu_of(c, t, &cpu);
	if (err)
		return err;
	pollute_level(c, &cpu->l2, c->pollution_next, lines);
	pollute_level(c, &c->llc, c->pollution_next, lines);
	c->pollution_next += lines << c->line_shift;
	return 0;
}

int cache_vm_entry(struct task *t, struct cache *c)
{
	struct pcpu *cpu;
	int err;

	if (!c)
		return 0;
	err = pcpu_of(c, t, &cpu);
	if (err)
		return err;
	if (c->flush_on_entry && c->dtlb_entries)
		cache_level_clear(&cpu->dtlb);
	return cache_pollute(t, c, c->guest_pollution);
}
