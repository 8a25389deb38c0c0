/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SIM_PROFILE_H
#define KVMSIM_SIM_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sim/error.h"
#include "model/sim/sim.h"

/*
 * A cost profile: what each count costs on one machine, in that machine's unit of time.
 *
 * It is a text file (INI) that the caller has read into memory:
 *
 *	[machine]	name, unit (cycles or instructions), hz, source
 *	[price]		COUNT = VALUE	price per count, decimal, up to 6 digits after the point
 *	[sigma]		COUNT = VALUE	standard error of that price, same unit
 *	[source]	COUNT = words	where it came from: fitted (on what), data sheet,
 *					assumed; of a price of 0: why it costs nothing of its own
 *	[covariance]	A,B = VALUE	of two prices, signed; either order, given once
 *	[group]		NAME = COUNT COUNT ...	what the data could not separate, priced as one
 *	[param]		NAME = INTEGER	everything that is no price: cache sizes, latencies
 *
 * Names of counts and params come from the vocabulary and from @params: an unknown key, a repeated
 * key, a negative price are errors with the line. So is a line of 200 bytes or more. Prices are
 * fixed point with 16 binary digits; a decimal is rounded to the nearest.
 */
#define PRICE_SHIFT 16
typedef uint64_t price_t; /* cycles << PRICE_SHIFT */

struct profile_param {
	const char *name;
	uint64_t def, min, max;
	const char *help;
};

struct profile;

/* Parses @text (@len bytes, need not end in NUL). @name is for messages ("core2-2010.ini").
 * @params is the table of known parameters, ended by a NULL name; it must outlive the profile.
 * Errors: KVMSIM_EPARSE with name and line, KVMSIM_ENOMEM. */
int profile_parse(const char *text, size_t len, const char *name,
		  const struct sim_vocabulary *vocabulary, const struct profile_param *params,
		  const struct kvmsim_errsink *errors, struct profile **out);
void profile_free(struct profile *p);
/* A deep copy, to be perturbed by profile_set_price() (a replicate draws its prices). */
int profile_copy(const struct profile *p, struct profile **out);

const char *profile_name(const struct profile *p);
const char *profile_machine(const struct profile *p);
const char *profile_machine_source(const struct profile *p); /* NULL if not stated */
const char *profile_unit(const struct profile *p);	     /* "cycles" or "instructions" */
uint64_t profile_hz(const struct profile *p);		     /* units per second; 0 if not stated */
price_t profile_price(const struct profile *p, uint16_t count);
/* All prices, [count]; valid as long as the profile. */
const price_t *profile_prices(const struct profile *p);
void profile_set_price(struct profile *p, uint16_t count, price_t price);
/* Standard error (fixed point) and covariance (units squared << PRICE_SHIFT, signed); 0 where the
 * file gives none. No double in model/: the caller converts. */
price_t profile_sigma(const struct profile *p, uint16_t count);
int64_t profile_covariance(const struct profile *p, uint16_t a, uint16_t b);
/* The name of the group that the count is priced in, NULL when it has its own price. */
const char *profile_group(const struct profile *p, uint16_t count);
const char *profile_source(const struct profile *p, uint16_t count); /* NULL if not stated */
/* Whether the profile says what the count costs. A price of 0 is meant when it has a source, a
 * standard error or a group; without any of them nothing is known of it. */
bool profile_has_price(const struct profile *p, uint16_t count);
/* The parameter of that name, its default when the file does not give it; 0 for a name that is not
 * in the table. */
uint64_t profile_param(const struct profile *p, const char *name);
/* FNV-1a of the text that was parsed: goes into the store with each run. */
uint64_t profile_checksum(const struct profile *p);

#endif
