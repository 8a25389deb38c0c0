// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/simple.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/sim/profile.h"

static const char *const counts[] = {"one", "third", "free"};
static const char *const activities[] = {"a", "b"};
static const char *const waits[] = {"cpu", "idle"};
const struct sim_vocabulary simple_vocabulary = {
	counts, activities, waits, N_SIMPLE_COUNTS, N_SIMPLE_ACTIVITIES, N_SIMPLE_WAITS};

char simple_message[1024];
int simple_messages;

static void emit(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(simple_message, sizeof(simple_message), "%s", msg);
	simple_messages++;
}

const struct kvmsim_errsink simple_errors = {emit, NULL};

static const char text[] = "[machine]\nunit = cycles\n[price]\none = 1\nthird = 0.333333\n";
static struct profile *profile;

struct sim *simple_sim(const struct sim_opts *opts)
{
	struct sim_opts o = opts ? *opts : (struct sim_opts){0};
	struct sim *s = NULL;

	simple_messages = 0;
	simple_message[0] = '\0';
	if (!o.vocabulary)
		o.vocabulary = &simple_vocabulary;
	if (!o.errors)
		o.errors = &simple_errors;
	if (!o.profile) {
		if (profile_parse(text, strlen(text), "simple", &simple_vocabulary, NULL,
				  &simple_errors, &profile))
			abort();
		o.profile = profile;
	}
	if (sim_create(&o, &s))
		abort();
	return s;
}

struct task *simple_task(struct sim *s, const char *name, task_fn fn, void *arg, cycles_t start)
{
	struct task_opts o = {.name = name, .fn = fn, .arg = arg, .start = start};
	struct task *t = NULL;

	if (task_create(s, &o, &t))
		abort();
	return t;
}

void simple_end(struct sim *s)
{
	sim_destroy(s);
	profile_free(profile);
	profile = NULL;
}
