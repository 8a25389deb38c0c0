// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <string.h>

#include "model/counts.h"
#include "model/guest/run.h"
#include "model/host/ipi.h"
#include "model/mmu/mmu.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

/* What another task can see is touched only when the task is first in the total order: a touch
 * without sync() ends the run. */
#define EQ CU_ASSERT_EQUAL

struct touch {
	const char *what; /* part of the message */
	void (*fn)(struct scene *s, struct task *t, struct task *other);
};

static void itself(struct scene *s, struct task *t, struct task *other)
{
	(void)s;
	(void)other;
	task_assert_first(t, "a thing of the test's");
}

static void wakes(struct scene *s, struct task *t, struct task *other)
{
	(void)s;
	task_wake(other, task_now(t));
}

static void posts(struct scene *s, struct task *t, struct task *other)
{
	(void)s;
	task_post(t, other, task_now(t), IPI_MESSAGE + 1, 0, NULL);
}

static void interrupts(struct scene *s, struct task *t, struct task *other)
{
	(void)s;
	ipi_send(t, other);
}

static void receives(struct scene *s, struct task *t, struct task *other)
{
	(void)s;
	(void)other;
	(void)ipi_receive(t);
}

static void loads(struct scene *s, struct task *t, struct task *other)
{
	(void)other;
	(void)gmem_load(t, s->kvm, SCENE_LIST, 8);
}

static void stores(struct scene *s, struct task *t, struct task *other)
{
	(void)t;
	(void)other;
	guest_store(s->vcpu[0], SCENE_LIST, 8, 1);
}

static const struct touch touches[] = {
	{"a thing of the test's", itself},  {"another task's wake-ups", wakes},
	{"another task's messages", posts}, {"another task's messages", interrupts},
	{"its own messages", receives},	    {"guest memory", loads},
	{"guest memory", stores},
};
#define N_TOUCHES (sizeof(touches) / sizeof(touches[0]))

struct plan {
	const struct touch *touch;
	bool synced;
};

/* An event at each moment, so that no time passes without another's coming first. */
static int ticker(struct task *t, void *arg)
{
	int r = 0;

	(void)arg;
	while (r >= 0)
		r = task_block_until(t, WAIT_idle, task_now(t) + 1);
	return r;
}

static int touch_ahead(struct scene *s, struct task *t)
{
	const struct plan *p = s->arg;
	const struct task_opts o = {
		.name = "ticker", .fn = ticker, .start = task_now(t), .daemon = true};
	struct task *other;

	EQ(task_create(s->sim, &o, &other), 0);
	charge(t, COUNT_insn, 10);
	CU_ASSERT_FALSE(task_is_first(t));
	if (p->synced) {
		EQ(sync(t), 0);
		CU_ASSERT_TRUE(task_is_first(t));
	}
	p->touch->fn(s, t, other);
	return 0;
}

static int run_plan(const struct touch *touch, bool synced, bool check)
{
	struct scene_opts o = {.pte = SCENE_FLAT, .slot_pages = 8, .check = check};
	struct plan p = {touch, synced};
	struct scene s;
	int r = scene_open(&s, &o);

	EQ(r, 0);
	s.arg = &p;
	r = scene_run(&s, touch_ahead);
	scene_close(&s);
	return r;
}

static void caught_when_ahead(void)
{
	for (size_t i = 0; i < N_TOUCHES; i++) {
		EQ(run_plan(&touches[i], false, true), KVMSIM_ECHECK);
		CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, touches[i].what));
		CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "task vmm at "));
	}
}

static void fine_when_synced(void)
{
	for (size_t i = 0; i < N_TOUCHES; i++) {
		EQ(run_plan(&touches[i], true, true), 0);
		EQ(run_plan(&touches[i], true, false), 0);
	}
}

/* Woken for this very moment, another task comes after who woke it, whose moment it still is. */
static int wake_two(struct scene *s, struct task *t)
{
	struct task_opts o = {.name = "ticker",
			      .fn = ticker,
			      .start = task_now(t) + 5,
			      .priority = -1,
			      .daemon = true};
	struct task *a, *b;

	EQ(task_create(s->sim, &o, &a), 0);
	EQ(task_create(s->sim, &o, &b), 0);
	charge(t, COUNT_insn, 10);
	EQ(sync(t), 0);
	task_wake(a, task_now(t));
	task_wake(b, task_now(t));
	task_assert_first(t, "a thing of the test's");
	return 0;
}

static void a_moment_is_whole(void)
{
	struct scene_opts o = {.pte = SCENE_FLAT, .slot_pages = 8, .check = true};

	EQ(scene(&o, wake_two), 0);
}

static CU_TestInfo tests[] = {
	{"caught_when_ahead", caught_when_ahead},
	{"fine_when_synced", fine_when_synced},
	{"a_moment_is_whole", a_moment_is_whole},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("first", tests)
