// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/sim/rng.h"

/* splitmix64, S. Vigna 2015 (public domain): the seeding that xoshiro's authors recommend. */
static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

void rng_init(struct rng *r, uint64_t seed, uint32_t replicate, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u, state = seed; /* FNV-1a */

	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	/* Mix between the parts: near seeds and replicates must not meet after an xor or a sum. */
	state = splitmix64(&state) ^ replicate;
	state = splitmix64(&state) ^ hash;
	for (int i = 0; i < 4; i++)
		r->s[i] = splitmix64(&state);
}

uint64_t rng_u64(struct rng *r)
{
	uint64_t *s = r->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	unsigned __int128 m = (unsigned __int128)rng_u64(r) * n;

	if ((uint64_t)m < n) {
		uint64_t threshold = -n % n; /* 2^64 mod n: the draws that would be one too many */

		while ((uint64_t)m < threshold)
			m = (unsigned __int128)rng_u64(r) * n;
	}
	return (uint64_t)(m >> 64);
}
