// SPDX-License-Identifier: GPL-3.0-or-later
/* Runs the vCPUs of a player through their accesses, in this thread or in theirs. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "workloads/kvm/player_priv.h"

#define TIMEOUT_S 60u

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void player_start_clock(struct player *p)
{
	uint32_t s = p->opts->timeout_s ? p->opts->timeout_s : TIMEOUT_S;

	p->deadline_ns = now_ns() + s * 1000000000ull;
}

int player_may_go_on(const struct player *p)
{
	if (p->opts->interrupted && *p->opts->interrupted)
		return KVMSIM_EINTR;
	if (now_ns() > p->deadline_ns)
		return kvmsim_err(p->opts->errors, KVMSIM_EIO,
				  "round %" PRIu64 " takes more than %u s: given up",
				  p->result->rounds + 1,
				  p->opts->timeout_s ? p->opts->timeout_s : TIMEOUT_S);
	return 0;
}

/* ---- a vCPU's round ---- */

static bool stopped(struct player *p)
{
	pthread_mutex_lock(&p->lock);
	bool stop = p->stop;

	pthread_mutex_unlock(&p->lock);
	return stop;
}

static int run_list(struct player *p, uint32_t vcpu)
{
	for (;;) {
		int r = machine_enter(p->m, vcpu);

		if (r < 0 || r == MACHINE_DONE)
			return r == MACHINE_DONE ? 0 : r;
		if (r == MACHINE_RING_FULL)
			r = collect_full_ring(&p->collector);
		else if (p->n_threads)
			r = stopped(p) ? KVMSIM_ECANCELED : 0;
		else
			r = player_may_go_on(p);
		if (r)
			return r;
	}
}

int player_run_accesses(struct player *p, uint32_t vcpu, const uint64_t *access, size_t n)
{
	int err = 0;

	for (size_t at = 0; !err && at < n; at += LIST_ACCESS) {
		size_t some = n - at < LIST_ACCESS ? n - at : LIST_ACCESS;

		memcpy(p->m->vcpus[vcpu].list, access + at, some * sizeof(*access));
		err = machine_load(p->m, vcpu, (uint32_t)some);
		err = err ? err : run_list(p, vcpu);
	}
	return err;
}

int player_run_vcpu(struct player_vcpu *v)
{
	const struct stream *s = &v->p->streams[v->id];
	uint64_t start = machine_tsc();
	int err = player_run_accesses(v->p, v->id, s->access, s->n);

	v->cycles = machine_tsc() - start;
	return err;
}

static void *vcpu_thread(void *arg)
{
	struct player_vcpu *v = arg;
	struct player *p = v->p;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		if (v->ran == v->go) {
			pthread_cond_wait(&p->told, &p->lock);
			continue;
		}
		pthread_mutex_unlock(&p->lock);
		int err = player_run_vcpu(v);

		pthread_mutex_lock(&p->lock);
		v->ran++;
		if (err && !p->err)
			p->err = err;
		pthread_cond_signal(&p->came);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* ---- threads, as the one that collects sees them ---- */

int player_start_threads(struct player *p)
{
	for (uint32_t i = 0; i < p->opts->n_vcpus; i++) {
		int err = pthread_create(&p->vcpus[i].thread, NULL, vcpu_thread, &p->vcpus[i]);

		if (err)
			return kvmsim_err(p->opts->errors, KVMSIM_EIO, "a vCPU's thread: %s",
					  strerror(err));
		p->n_threads++;
	}
	return 0;
}

/* A signal may come just before a vCPU enters KVM_RUN, and then is as if it had not. */
void player_stop_threads(struct player *p)
{
	const struct timespec some = {.tv_nsec = 20000000};

	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->told);
	pthread_mutex_unlock(&p->lock);
	for (uint32_t i = 0; i < p->n_threads; i++) {
		while (pthread_tryjoin_np(p->vcpus[i].thread, NULL) == EBUSY) {
			pthread_kill(p->vcpus[i].thread, SIGALRM);
			nanosleep(&some, NULL);
		}
	}
	p->n_threads = 0;
}

void player_tell_threads(struct player *p)
{
	pthread_mutex_lock(&p->lock);
	for (uint32_t i = 0; i < p->n_threads; i++)
		p->vcpus[i].go++;
	pthread_cond_broadcast(&p->told);
	pthread_mutex_unlock(&p->lock);
}

int player_wait_threads(struct player *p, uint64_t us)
{
	uint64_t until = us ? now_ns() + us * 1000 : UINT64_MAX;
	int err = 0;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		bool all = true;

		for (uint32_t i = 0; i < p->n_threads; i++)
			all &= p->vcpus[i].ran == p->vcpus[i].go;
		err = p->err ? p->err : player_may_go_on(p);
		uint64_t now = now_ns(), tick = now + 50000000;

		if (err || all || now >= until) {
			err = err ? err : all;
			break;
		}
		tick = tick < until ? tick : until;
		const struct timespec t = {.tv_sec = (time_t)(tick / 1000000000u),
					   .tv_nsec = (long)(tick % 1000000000u)};

		pthread_cond_clockwait(&p->came, &p->lock, CLOCK_MONOTONIC, &t);
	}
	pthread_mutex_unlock(&p->lock);
	return err;
}
