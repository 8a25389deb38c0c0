// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/counts.h"
#include "model/host/lock.h"
#include "model/sim/ledger.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

/* A profile in which only guest instructions and locks cost anything. */
static struct profile *prices(const char *lock)
{
	char text[128] = "[machine]\nunit = cycles\n[price]\ninsn = 1\nlock = ";
	struct profile *p = NULL;

	strcat(strcat(text, lock), "\n");
	CU_ASSERT_EQUAL_FATAL(profile_parse(text, strlen(text), "lock", &model_vocabulary, NULL,
					    &simple_errors, &p),
			      0);
	return p;
}

static struct sim *start(struct profile *p)
{
	return simple_sim(&(struct sim_opts){.vocabulary = &model_vocabulary, .profile = p});
}

/* What one task does with the lock, and what it saw. */
enum how { SPIN, READ, WRITE, MUTEX };
struct job {
	enum how how;
	cycles_t start, hold;
	cycles_t got; /* seen */
	bool contended_at_release;
};

static struct spinlock spin;
static struct rwlock rw;
static struct mutex mutex;
static const struct lock_class spin_class = {"spin", 3, LOCK_SPINLOCK},
			       rw_class = {"rw", 2, LOCK_RWLOCK},
			       mutex_class = {"mutex", 1, LOCK_MUTEX};

static void locks_init(void)
{
	spin_lock_init(&spin, &spin_class);
	rwlock_init(&rw, &rw_class);
	mutex_init(&mutex, &mutex_class);
}

static int work(struct task *t, void *arg)
{
	struct job *j = arg;
	int r = 0;

	switch (j->how) {
	case SPIN:
		r = spin_lock(t, &spin);
		break;
	case READ:
		r = read_lock(t, &rw);
		break;
	case WRITE:
		r = write_lock(t, &rw);
		break;
	case MUTEX:
		r = mutex_lock(t, &mutex);
		break;
	}
	if (r)
		return r;
	j->got = task_now(t);
	charge(t, COUNT_insn, j->hold);
	switch (j->how) {
	case SPIN:
		r = sync(t);
		j->contended_at_release = spin_is_contended(&spin);
		spin_unlock(t, &spin);
		break;
	case READ:
		read_unlock(t, &rw);
		break;
	case WRITE:
		write_unlock(t, &rw);
		break;
	case MUTEX:
		mutex_unlock(t, &mutex);
		break;
	}
	return r;
}

static struct sim *run(struct job *jobs, size_t n, struct profile *p)
{
	struct sim *s = start(p);

	locks_init();
	for (size_t i = 0; i < n; i++)
		simple_task(s, (const char[2]){(char)('a' + i)}, work, &jobs[i], jobs[i].start);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	return s;
}

/*
 * By hand, holds 10, 20, 30, 5, a lock costs 2 once it is held:
 *	a comes at 0, gets it at 0 (works from 2), releases at 12
 *	c comes at 3, d at 4, b at 5: c 12 (14..44), d 44 (46..51), b 51 (53..73)
 */
static void spinlock_is_first_come_first_served(void)
{
	struct profile *p = prices("2");
	struct job j[] = {
		{SPIN, 0, 10, 0, 0}, {SPIN, 5, 20, 0, 0}, {SPIN, 3, 30, 0, 0}, {SPIN, 4, 5, 0, 0}};
	struct sim *s = run(j, 4, p);
	struct lock_stats st = spin_lock_stats(&spin);

	CU_ASSERT_EQUAL(j[0].got, 2);
	CU_ASSERT_EQUAL(j[2].got, 14);
	CU_ASSERT_EQUAL(j[3].got, 46);
	CU_ASSERT_EQUAL(j[1].got, 53);
	CU_ASSERT_TRUE(j[0].contended_at_release);
	CU_ASSERT_FALSE(j[1].contended_at_release);
	CU_ASSERT_EQUAL(st.acquired, 4);
	CU_ASSERT_EQUAL(st.contended, 3);
	CU_ASSERT_EQUAL(st.wait, (12 - 3) + (44 - 4) + (51 - 5));
	CU_ASSERT_EQUAL(st.longest_wait, 46);
	CU_ASSERT_EQUAL(st.longest_hold, 32);
	CU_ASSERT_EQUAL(
		ledger_sum_wait(sim_ledger(s), LEDGER_ALL_TASKS, ACT_guest, WAIT_lock).cycles, 95);
	CU_ASSERT_EQUAL(
		ledger_sum_count(sim_ledger(s), LEDGER_ALL_TASKS, ACT_guest, COUNT_lock).cycles, 8);
	simple_end(s);
	profile_free(p);
}

/* The same for the mutex, where two come at one time: the task that was made first goes first. */
static void mutex_breaks_ties_by_task(void)
{
	struct profile *p = prices("0");
	struct job j[] = {{MUTEX, 0, 10, 0, 0},
			  {MUTEX, 3, 1, 0, 0},
			  {MUTEX, 3, 1, 0, 0},
			  {MUTEX, 10, 1, 0, 0}};
	struct sim *s = run(j, 4, p);
	struct lock_stats st = mutex_lock_stats(&mutex);

	CU_ASSERT_EQUAL(j[1].got, 10);
	CU_ASSERT_EQUAL(j[2].got, 11);
	CU_ASSERT_EQUAL(j[3].got, 12);
	CU_ASSERT_EQUAL(st.contended, 3);
	CU_ASSERT_EQUAL(st.wait, 7 + 8 + 2);
	CU_ASSERT_EQUAL(st.longest_hold, 10);
	CU_ASSERT_FALSE(mutex_is_contended(&mutex));
	simple_end(s);
	profile_free(p);
}

/*
 * Readers a (0..10) and b (2..12) share; writer c comes at 5 and waits for both, until 12;
 * readers d (6) and e (7) wait behind c although the lock is only read, and get it together at 32;
 * writer f (8) waits for both; reader g (9) is behind f.
 */
static void rwlock_is_fair(void)
{
	struct profile *p = prices("0");
	struct job j[] = {{READ, 0, 10, 0, 0}, {READ, 2, 10, 0, 0}, {WRITE, 5, 20, 0, 0},
			  {READ, 6, 3, 0, 0},  {READ, 7, 8, 0, 0},  {WRITE, 8, 4, 0, 0},
			  {READ, 9, 1, 0, 0}};
	struct sim *s = run(j, 7, p);
	struct lock_stats r = read_lock_stats(&rw), w = write_lock_stats(&rw);

	CU_ASSERT_EQUAL(j[0].got, 0);
	CU_ASSERT_EQUAL(j[1].got, 2);
	CU_ASSERT_EQUAL(j[2].got, 12);
	CU_ASSERT_EQUAL(j[3].got, 32);
	CU_ASSERT_EQUAL(j[4].got, 32);
	CU_ASSERT_EQUAL(j[5].got, 40);
	CU_ASSERT_EQUAL(j[6].got, 44);
	CU_ASSERT_EQUAL(r.acquired, 5);
	CU_ASSERT_EQUAL(r.contended, 3);
	CU_ASSERT_EQUAL(r.wait, 26 + 25 + 35);
	CU_ASSERT_EQUAL(r.longest_wait, 35);
	CU_ASSERT_EQUAL(r.longest_hold, 10);
	CU_ASSERT_EQUAL(w.acquired, 2);
	CU_ASSERT_EQUAL(w.contended, 2);
	CU_ASSERT_EQUAL(w.wait, 7 + 32);
	CU_ASSERT_EQUAL(w.longest_hold, 20);
	CU_ASSERT_FALSE(rwlock_is_contended(&rw));
	simple_end(s);
	profile_free(p);
}

static int tries[6];

static int holder(struct task *t, void *arg)
{
	(void)arg;
	if (write_lock(t, &rw) || spin_lock(t, &spin) || task_block_until(t, WAIT_idle, 20) < 0)
		return KVMSIM_ECANCELED;
	CU_ASSERT_TRUE(rwlock_is_held(t, &rw) && spin_is_held(t, &spin));
	CU_ASSERT_FALSE(mutex_is_held(t, &mutex));
	spin_unlock(t, &spin);
	write_unlock(t, &rw);
	CU_ASSERT_FALSE(rwlock_is_held(t, &rw) || spin_is_held(t, &spin));
	return 0;
}

static int trier(struct task *t, void *arg)
{
	(void)arg;
	tries[0] = spin_trylock(t, &spin);
	tries[1] = read_trylock(t, &rw);
	tries[2] = write_trylock(t, &rw);
	tries[3] = mutex_trylock(t, &mutex);
	if (task_block_until(t, WAIT_idle, 30) < 0)
		return KVMSIM_ECANCELED;
	tries[4] = read_trylock(t, &rw);
	tries[5] = spin_trylock(t, &spin);
	spin_unlock(t, &spin);
	read_unlock(t, &rw);
	mutex_unlock(t, &mutex);
	return 0;
}

static void trylock_does_not_wait(void)
{
	struct profile *p = prices("1");
	struct sim *s = start(p);

	locks_init();
	simple_task(s, "holder", holder, NULL, 0);
	simple_task(s, "trier", trier, NULL, 5);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(tries[0], 0);
	CU_ASSERT_EQUAL(tries[1], 0);
	CU_ASSERT_EQUAL(tries[2], 0);
	CU_ASSERT_EQUAL(tries[3], 1);
	CU_ASSERT_EQUAL(tries[4], 1);
	CU_ASSERT_EQUAL(tries[5], 1);
	CU_ASSERT_EQUAL(spin_lock_stats(&spin).acquired, 2);
	CU_ASSERT_EQUAL(spin_lock_stats(&spin).contended, 0);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	simple_end(s);
	profile_free(p);
}

static int wrong_order(struct task *t, void *arg)
{
	int r = read_lock(t, &rw); /* rank 2 */

	(void)arg;
	if (r)
		return r;
	r = mutex_lock(t, &mutex); /* rank 1 */
	CU_ASSERT_EQUAL(r, KVMSIM_ECHECK);
	CU_ASSERT_FALSE(mutex_is_held(t, &mutex));
	CU_ASSERT_EQUAL(mutex_lock_stats(&mutex).acquired, 0);
	read_unlock(t, &rw);
	return r;
}

static int takes_twice(struct task *t, void *arg)
{
	int r = read_lock(t, &rw);

	(void)arg;
	if (r)
		return r;
	r = write_lock(t, &rw);
	read_unlock(t, &rw);
	return r;
}

static int not_its_own(struct task *t, void *arg)
{
	(void)arg;
	spin_unlock(t, &spin);
	return 0; /* the run fails all the same */
}

static int reader_releases_write(struct task *t, void *arg)
{
	int r = read_lock(t, &rw);

	(void)arg;
	if (r)
		return r;
	write_unlock(t, &rw);
	CU_ASSERT_TRUE(rwlock_is_held(t, &rw));
	read_unlock(t, &rw);
	return 0;
}

static void violations_are_caught(void)
{
	static const struct {
		task_fn fn;
		const char *message;
	} cases[] = {
		{wrong_order, "task w at 4: lock order: takes mutex while holding rw"},
		{takes_twice, "task w at 4: takes again rw while holding rw"},
		{not_its_own, "task w at 3: not the owner, releases spin"},
		{reader_releases_write, "task w at 4: not the owner, releases rw"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct profile *p = prices("1");
		struct sim *s = start(p);

		locks_init();
		simple_task(s, "w", cases[i].fn, NULL, 3);
		CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), KVMSIM_ECHECK);
		CU_ASSERT_EQUAL(simple_messages, 1);
		CU_ASSERT_STRING_EQUAL(simple_message, cases[i].message);
		simple_end(s);
		profile_free(p);
	}
}

static int canceled, still_held;

static int waits_for_good(struct task *t, void *arg)
{
	struct rwlock *l = arg;
	int r = write_lock(t, l);

	if (r) {
		canceled += r == KVMSIM_ECANCELED;
		still_held += rwlock_is_held(t, l);
		return r;
	}
	r = task_block(t, WAIT_idle);
	write_unlock(t, l);
	return r;
}

static void cancelled_waiters_leave(void)
{
	struct profile *p = prices("1");
	struct sim *s = start(p);

	canceled = still_held = 0;
	locks_init();
	for (int i = 0; i < 5; i++)
		simple_task(s, "w", waits_for_good, &rw, 0);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), KVMSIM_EDEADLOCK);
	CU_ASSERT_STRING_EQUAL(simple_message,
			       "deadlock: nothing is pending and these tasks are blocked: "
			       "w (idle since 1), w (lock since 0), w (lock since 0), "
			       "w (lock since 0), w (lock since 0)");
	simple_end(s);
	CU_ASSERT_EQUAL(canceled, 4);
	CU_ASSERT_EQUAL(still_held, 0);
	CU_ASSERT_FALSE(rwlock_is_contended(&rw));
	CU_ASSERT_PTR_NULL(rw.q.writer);
	profile_free(p);
}

static struct task *line[3]; /* the holder and two who wait, in this order */

static int ends_the_run(struct task *t, void *arg)
{
	(void)arg;
	if (write_lock(t, &rw) || task_block_until(t, WAIT_idle, 10) < 0)
		return KVMSIM_ECANCELED;
	write_unlock(t, &rw);
	CU_ASSERT_PTR_EQUAL(rw.q.writer, line[1]);
	return KVMSIM_ECHECK;
}

/* Given the lock and cancelled before it ran: whoever is next has it when write_lock() returns. */
static int passes_on(struct task *t, void *arg)
{
	int r = write_lock(t, &rw);

	CU_ASSERT_EQUAL(r, KVMSIM_ECANCELED);
	CU_ASSERT_FALSE(rwlock_is_held(t, &rw));
	CU_ASSERT_PTR_EQUAL(rw.q.writer, arg ? line[2] : NULL);
	canceled++;
	return r;
}

static void a_cancelled_waiter_hands_over(void)
{
	struct profile *p = prices("0");
	struct sim *s = start(p);

	canceled = 0;
	locks_init();
	line[0] = simple_task(s, "holder", ends_the_run, NULL, 0);
	line[1] = simple_task(s, "first", passes_on, line, 1);
	line[2] = simple_task(s, "second", passes_on, NULL, 2);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), KVMSIM_ECHECK);
	simple_end(s);
	CU_ASSERT_EQUAL(canceled, 2);
	CU_ASSERT_FALSE(rwlock_is_contended(&rw));
	profile_free(p);
}

/* ---- who looks on ---- */

static struct lock_spell seen[8];
static unsigned n_seen;

static void see(void *ctx, const struct lock_spell *s)
{
	CU_ASSERT_PTR_EQUAL(ctx, &n_seen);
	if (n_seen < 8)
		seen[n_seen] = *s;
	n_seen++;
}

static void check_spell(unsigned i, const char *task, bool held, bool shared, cycles_t start,
			cycles_t cycles, const char *by)
{
	const struct lock_spell *s = &seen[i];

	CU_ASSERT_PTR_EQUAL(s->class, &rw_class);
	CU_ASSERT_STRING_EQUAL(task_name(s->task), task);
	CU_ASSERT_EQUAL(s->held, held);
	CU_ASSERT_EQUAL(s->shared, shared);
	CU_ASSERT_EQUAL(s->start, start);
	CU_ASSERT_EQUAL(s->cycles, cycles);
	CU_ASSERT_EQUAL(!s->by, !by);
	if (s->by && by)
		CU_ASSERT_STRING_EQUAL(task_name(s->by), by);
}

/* a reads from 0 to 10, b writes from 10 to 30 and has waited since 4, c reads from 30 to 31 and
 * has waited since 12. */
static void each_wait_and_hold_is_told(void)
{
	static const struct lock_watch watch = {.spell = see, .ctx = &n_seen};
	struct profile *p = prices("0");
	struct job j[] = {{READ, 0, 10, 0, 0}, {WRITE, 4, 20, 0, 0}, {READ, 12, 1, 0, 0}};
	struct sim *s = start(p);

	locks_init();
	lock_watch(&rw.q, &watch);
	n_seen = 0;
	for (size_t i = 0; i < 3; i++)
		simple_task(s, (const char[2]){(char)('a' + i)}, work, &j[i], j[i].start);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(n_seen, 5);
	check_spell(0, "a", true, true, 0, 10, NULL);
	check_spell(1, "b", false, false, 4, 6, "a");
	check_spell(2, "b", true, false, 10, 20, NULL);
	check_spell(3, "c", false, true, 12, 18, "b");
	check_spell(4, "c", true, true, 30, 1, NULL);
	CU_ASSERT_STRING_EQUAL(sim_task_name(s, 1), "b");
	CU_ASSERT_PTR_NULL(sim_task_name(s, 3));
	simple_end(s);
	profile_free(p);
}

static CU_TestInfo tests[] = {
	{"each_wait_and_hold_is_told", each_wait_and_hold_is_told},
	{"spinlock_is_first_come_first_served", spinlock_is_first_come_first_served},
	{"mutex_breaks_ties_by_task", mutex_breaks_ties_by_task},
	{"rwlock_is_fair", rwlock_is_fair},
	{"trylock_does_not_wait", trylock_does_not_wait},
	{"violations_are_caught", violations_are_caught},
	{"cancelled_waiters_leave", cancelled_waiters_leave},
	{"a_cancelled_waiter_hands_over", a_cancelled_waiter_hands_over},
	CU_TEST_INFO_NULL};
TEST_MAIN("lock", tests)
