/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SIM_RNG_H
#define KVMSIM_SIM_RNG_H

#include <stdint.h>

/*
 * Named random streams. A stream is derived from (seed, replicate, name) alone, so two policies
 * that draw the guest's choices from the stream "guest" see the same guest: common random numbers.
 * Integer arithmetic only: the same numbers on every machine.
 */
struct rng {
	uint64_t s[4]; /* xoshiro256**, D. Blackman and S. Vigna, 2018 */
};

void rng_init(struct rng *r, uint64_t seed, uint32_t replicate, const char *name);
uint64_t rng_u64(struct rng *r);
/* Uniform in [0, n), n > 0, without modulo bias (D. Lemire, 2019). */
uint64_t rng_below(struct rng *r, uint64_t n);

#endif
