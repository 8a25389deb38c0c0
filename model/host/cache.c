// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/counts.h"
#include "model/host/cache.h"
#include "model/sim/profile.h"

#define FRAME_SHIFT    12 /* lines keep their place within a 4 KiB frame; frames are random */
#define POLLUTION_BASE (1ull << 63) /* addresses that no structure of the model has */

#define MAX_STREAMS 64

struct stream {
	uint64_t frame, line; /* the line touched last in the frame */
};

struct pcpu {
	struct cache_level l2, dtlb;
	struct stream stream[MAX_STREAMS]; /* most recently used first */
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
};

/* ---- one level ---- */

int cache_level_init(struct cache_level *l, uint64_t entries, uint32_t ways)
{
	if (!ways || !entries || entries % ways || entries / ways > UINT32_MAX)
		return KVMSIM_EINVAL;
	l->sets = entries / ways;
	l->ways = ways;
	l->now = 0;
	l->tag = calloc(entries, sizeof(*l->tag));
	l->round = calloc(l->sets, sizeof(*l->round));
	if (l->tag && l->round)
		return 0;
	cache_level_free(l);
	return KVMSIM_ENOMEM;
}

void cache_level_free(struct cache_level *l)
{
	free(l->tag);
	free(l->round);
	*l = (struct cache_level){0};
}

/* The ways of a set, emptied if the level was cleared since they were used last. */
static uint64_t *ways_of(struct cache_level *l, uint64_t set)
{
	uint32_t i = set % l->sets;
	uint64_t *way = l->tag + (size_t)i * l->ways;

	if (l->round[i] != l->now) {
		memset(way, 0, l->ways * sizeof(*way));
		l->round[i] = l->now;
	}
	return way;
}

bool cache_level_access(struct cache_level *l, uint64_t set, uint64_t tag)
{
	uint64_t *way = ways_of(l, set);
	uint32_t i = 0;

	while (i < l->ways - 1 && way[i] != tag)
		i++;
	bool hit = way[i] == tag;

	memmove(way + 1, way, i * sizeof(*way));
	way[0] = tag;
	return hit;
}

void cache_level_invalidate(struct cache_level *l, uint64_t set, uint64_t tag)
{
	uint64_t *way = ways_of(l, set);

	for (uint32_t i = 0; i < l->ways; i++) {
		if (way[i] != tag)
			continue;
		memmove(way + i, way + i + 1, (l->ways - 1 - i) * sizeof(*way));
		way[l->ways - 1] = 0;
		return;
	}
}

void cache_level_clear(struct cache_level *l)
{
	if (++l->now) /* sets are emptied when they are used next */
		return;
	memset(l->tag, 0, (size_t)l->sets * l->ways * sizeof(*l->tag));
	memset(l->round, 0, l->sets * sizeof(*l->round));
}

/* ---- the whole ---- */

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

	if (!err && c->l2_lines)
		err = cache_level_init(&cpu->l2, c->l2_lines, c->l2_ways);
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

/* The task's pCPU; 0 or an error at its first use. */
static int pcpu_of(struct cache *c, const struct task *t, struct pcpu **out)
{
	uint32_t id = task_id(t);

	if (id >= c->n_placed || !c->placed[id]) {
		int err = cache_place(c, t, id);

		if (err)
			return err;
	}
	*out = c->cpu[c->placed[id] - 1];
	return 0;
}

/* A set for the line at @addr, as if its frame lay at a random place: the finaliser of MurmurHash3
 * (A. Appleby) over the frame number, with the place within the frame kept. */
static uint64_t line_set(const struct cache *c, uint64_t addr)
{
	uint64_t h = addr >> FRAME_SHIFT;

	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ull;
	h ^= h >> 33;
	h = h << FRAME_SHIFT | (addr & ((1u << FRAME_SHIFT) - 1));
	return h >> c->line_shift;
}

/* Whether the prefetcher has fetched @line ahead; remembers it as its frame's last. */
static bool stream_touch(const struct cache *c, struct pcpu *cpu, uint64_t line)
{
	uint64_t frame = line >> (FRAME_SHIFT - c->line_shift);
	struct stream *s = cpu->stream;
	uint32_t i = 0;

	if (!c->n_streams)
		return false;
	while (i < c->n_streams - 1 && s[i].frame != frame)
		i++;
	bool ahead = s[i].frame == frame && s[i].line + 1 == line;

	memmove(s + 1, s, i * sizeof(*s));
	s[0] = (struct stream){frame, line};
	return ahead;
}

/* What the running task has to wait for. */
struct misses {
	uint32_t l2, llc, dtlb;
};

static void touch_line(struct cache *c, struct pcpu *cpu, uint64_t addr, bool write,
		       struct misses *m)
{
	uint64_t tag = (addr >> c->line_shift) + 1, set = line_set(c, addr);
	bool hit = c->l2_lines && cache_level_access(&cpu->l2, set, tag);

	if (write && c->l2_lines) {
		for (uint32_t i = 0; i < c->n_cpus; i++)
			if (c->cpu[i] && c->cpu[i] != cpu)
				cache_level_invalidate(&c->cpu[i]->l2, set, tag);
	}
	bool ahead = stream_touch(c, cpu, addr >> c->line_shift);

	if (hit)
		return;
	bool far = c->llc.sets && !cache_level_access(&c->llc, set, tag);

	if (ahead)
		return;
	m->l2 += c->l2_lines > 0;
	m->llc += far;
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
	uint64_t last = addr + bytes - 1;

	if (c->dtlb_entries)
		for (uint64_t p = addr >> c->page_shift; p <= last >> c->page_shift; p++)
			m->dtlb += !cache_level_access(&cpu->dtlb, p, p + 1);
	for (uint64_t l = addr >> c->line_shift; l <= last >> c->line_shift; l++)
		touch_line(c, cpu, l << c->line_shift, write, m);
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

		cache_level_access(l, line_set(c, addr), (addr >> c->line_shift) + 1);
	}
}

int cache_pollute(struct task *t, struct cache *c, uint64_t lines)
{
	struct pcpu *cpu;
	int err;

	if (!c || !lines)
		return 0;
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
