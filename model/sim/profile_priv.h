/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SIM_PROFILE_PRIV_H
#define KVMSIM_SIM_PROFILE_PRIV_H

#include "model/sim/profile.h"

/* What profile.c (the data) and profile_parse.c (the text) share. */
struct profile {
	const struct sim_vocabulary *vocabulary;
	const struct profile_param *params;
	size_t n_params;
	price_t *price, *sigma; /* [count] */
	int64_t *covariance;	/* lower triangle */
	char **source, **group; /* [count], NULL where not given */
	uint64_t *param;	/* [param] */
	char *name, *machine, *unit, *machine_source;
	uint64_t hz, checksum;
};

/* All prices 0, params at their defaults. NULL when memory ran out. */
struct profile *profile_new(const struct sim_vocabulary *v, const struct profile_param *params);
void profile_set_covariance(struct profile *p, uint16_t a, uint16_t b, int64_t value);

#endif
