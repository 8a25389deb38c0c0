/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_PARAMS_H
#define KVMSIM_PARAMS_H

#include "model/sim/profile.h"

/* The params that a profile may set: what of a machine is no price. Ended by a NULL name. */
extern const struct profile_param model_params[];

#endif
