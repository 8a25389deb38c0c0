// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/counts.h"

#define X(name, help) #name,
static const char *const count_names[] = {KVMSIM_COUNTS(X)};
static const char *const activity_names[] = {KVMSIM_ACTIVITIES(X)};
static const char *const wait_names[] = {KVMSIM_WAITS(X)};
#undef X
#define X(name, help) help,
static const char *const count_helps[] = {KVMSIM_COUNTS(X)};
static const char *const activity_helps[] = {KVMSIM_ACTIVITIES(X)};
static const char *const wait_helps[] = {KVMSIM_WAITS(X)};
#undef X

const struct sim_vocabulary model_vocabulary = {
	.counts = count_names,
	.activities = activity_names,
	.waits = wait_names,
	.n_counts = N_COUNTS,
	.n_activities = N_ACTIVITIES,
	.n_waits = N_WAITS,
};

const char *model_count_help(uint16_t count)
{
	return count < N_COUNTS ? count_helps[count] : NULL;
}

const char *model_activity_help(uint16_t activity)
{
	return activity < N_ACTIVITIES ? activity_helps[activity] : NULL;
}

const char *model_wait_help(uint16_t wait)
{
	return wait < N_WAITS ? wait_helps[wait] : NULL;
}
