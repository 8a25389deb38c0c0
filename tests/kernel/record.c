// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/phase.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/kernel/events.h"
#include "tests/kernel/guest_modes.h"
#include "tests/kernel/record_ops.h"
#include "tests/kernel/vmm.h"

#define EAGER_SPLIT "/sys/module/kvm/parameters/eager_page_split"

/* With -icount shift=0 one tick of the TSC is one instruction. */
uint64_t read_tsc(void)
{
	uint32_t low, high;
	__asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

void recorder_run(struct recorder *r, unsigned vcpu, const char *phase)
{
	phase_begin(r, phase);
	uint64_t start = read_tsc();
	guest_run(&r->guest, vcpu);
	phase_end(r, read_tsc() - start);
}

static void run_phase(struct recorder *r, const char *phase)
{
	recorder_run(r, 0, phase);
}

struct thread {
	pthread_t id;
	struct guest *guest;
	unsigned vcpu;
};

static void *run_thread(void *arg)
{
	struct thread *t = arg;
	guest_run(t->guest, t->vcpu);
	return NULL;
}

/* All vCPUs: one after the other, or each in a new thread. */
static void run_all_phase(struct recorder *r, const char *phase, bool threads)
{
	struct thread t[GUEST_MAX_VCPUS];
	unsigned n = r->guest.opts.vcpus;
	phase_begin(r, phase);
	uint64_t start = read_tsc();
	for (unsigned i = 0; i < n; i++) {
		t[i] = (struct thread){.guest = &r->guest, .vcpu = i};
		if (!threads)
			guest_run(&r->guest, i);
		else if (pthread_create(&t[i].id, NULL, run_thread, &t[i]))
			die("no thread for vCPU %u", i);
	}
	for (unsigned i = 0; threads && i < n; i++)
		pthread_join(t[i].id, NULL);
	phase_end(r, read_tsc() - start);
}

static void get_dirty_log(struct recorder *r, const char *phase)
{
	uint64_t words = (r->opts.slot_pages + 63) / 64, n = 0;
	memset(r->bitmap, 0xaa, words * sizeof(r->bitmap[0])); /* every word must be overwritten */
	phase_begin(r, phase);
	uint64_t start = read_tsc();
	guest_get_dirty_log(&r->guest, r->bitmap);
	phase_end(r, read_tsc() - start);
	for (uint64_t i = 0; i < words; i++)
		n += (uint64_t)__builtin_popcountll(r->bitmap[i]);
	phase_result(r, "res:ndirty", n);
}

static void clear_dirty_log(struct recorder *r, const char *phase, uint64_t chunk)
{
	uint64_t slot = r->opts.slot_pages;
	if (chunk == PROGRAM_ALL)
		chunk = (slot + 63) / 64 * 64;
	phase_begin(r, phase);
	uint64_t start = read_tsc();
	guest_clear_dirty_log(&r->guest, chunk, r->bitmap);
	phase_end(r, read_tsc() - start);
	phase_result(r, "res:nioctl", (slot + chunk - 1) / chunk);
}

static void put_ring_results(struct recorder *r, enum statement_op op)
{
	const struct guest *g = &r->guest;
	if (op == OP_WRITE_FULL || op == OP_WRITE_RESETS)
		phase_result(r, "res:ring_full_exits", g->full);
	if (op == OP_WRITE_RESETS)
		phase_result(r, "res:collected_in_full", g->collected);
	if (op == OP_COLLECT || op == OP_RESET)
		phase_result(r, "res:collected", g->collected);
	if (op == OP_WRITE_RESETS || op == OP_RESET || op == OP_RESET_HARVESTED)
		phase_result(r, "res:reset_returned", g->reset);
}

static void empty_rings(struct recorder *r, const struct statement *s)
{
	phase_begin(r, s->phase);
	guest_ring_mark(&r->guest);
	uint64_t start = read_tsc();
	if (s->op != OP_RESET_HARVESTED)
		guest_collect_rings(&r->guest);
	if (s->op != OP_COLLECT)
		guest_reset_rings(&r->guest);
	phase_end(r, read_tsc() - start);
	put_ring_results(r, s->op);
}

static void end_vm(struct recorder *r)
{
	if (!r->has_guest)
		return;
	if (r->tracing)
		stats_close(&r->stats);
	guest_destroy(&r->guest);
	r->has_guest = false;
}

static void *no_thread(void *arg)
{
	return arg;
}

/* The stack of a thread that ended is the next one's, with the huge page of its top split already.
 * One such stack is what the matrix's VMM had before its first two threads, by the MMU notifiers
 * that its first phase with threads shows. */
static void leave_a_stack(void)
{
	pthread_t id;
	if (pthread_create(&id, NULL, no_thread, NULL) || pthread_join(id, NULL))
		die("no thread");
}

void recorder_new_vm(struct recorder *r, const struct statement *s)
{
	struct guest_opts opts = {
		.slot_pages = r->opts.slot_pages,
		.kind = r->opts.kind,
		.pte = r->opts.pte,
		.readonly = s->readonly,
		.kernel = s->kernel,
		.kernel_all = s->kernel_all,
		.ro_ptes = s->ro_ptes,
		.nx_ptes = s->nx_ptes,
		.clean = s->clean,
		.logged = s->logged,
		.manual = s->manual,
		.ring = s->ring,
		.vcpus = s->vcpus,
		.huge = s->huge,
		.absent = s->absent,
	};
	end_vm(r);
	if (access(EAGER_SPLIT, F_OK) == 0) /* since 5.18 */
		write_text(EAGER_SPLIT, s->lazy_split ? "N" : "Y");
	guest_create(&r->guest, &opts);
	if (r->tracing)
		stats_open(&r->stats, &r->guest);
	r->has_guest = true;
	if (s->vcpus > 1)
		leave_a_stack();
	r->pattern = PATTERN_NONE;
	r->nr_dirty = -1;
	r->round = -1;
}

/* @offset is added to each page. */
static void choose_pages(struct recorder *r, enum pattern pattern, uint64_t number, uint64_t offset)
{
	if (number == PROGRAM_ALL)
		number = r->opts.slot_pages;
	r->pattern = pattern;
	r->nr_dirty = (int64_t)number;
	r->n_pages = pattern == PATTERN_NONE ? 0 : number;
	if (r->n_pages > r->opts.slot_pages)
		die("%" PRIu64 " pages of a slot of %" PRIu64, number, r->opts.slot_pages);
	pattern_pages(pattern, r->n_pages, r->opts.slot_pages, r->pages);
	for (uint64_t i = 0; i < r->n_pages; i++) {
		r->pages[i] += (uint32_t)offset;
		if (r->pages[i] >= r->opts.slot_pages)
			die("page %u of a slot of %" PRIu64, r->pages[i], r->opts.slot_pages);
	}
}

static void change_host(struct recorder *r, const struct statement *s)
{
	uint64_t first = s->number[0], n = s->number[1];
	if (first >= r->opts.slot_pages)
		die("phase %s: no such page", s->phase);
	if (n == PROGRAM_ALL)
		n = r->opts.slot_pages - first;
	if (n == 0 || n > r->opts.slot_pages - first)
		die("phase %s: no such pages", s->phase);
	phase_begin(r, s->phase);
	uint64_t start = read_tsc();
	if (s->op == OP_DONTNEED)
		guest_dontneed(&r->guest, first, n);
	else
		guest_protect(&r->guest, first, n, s->op == OP_PROTECT_RW);
	phase_end(r, read_tsc() - start);
}

static void access_pages(struct recorder *r, const struct statement *s, enum guest_loop loop)
{
	if (r->n_pages == 0)
		die("phase %s: no pages", s->phase); /* LOOP would run 2^64 times */
	if (r->guest.opts.vcpus == 1) {
		guest_load(&r->guest, 0, loop, r->pages, r->n_pages);
		run_phase(r, s->phase);
		return;
	}
	uint64_t each = r->n_pages / r->guest.opts.vcpus;
	if (r->pattern != PATTERN_HALVES || each == 0)
		die("phase %s: several vCPUs need halves of several pages", s->phase);
	for (unsigned i = 0; i < r->guest.opts.vcpus; i++)
		guest_load(&r->guest, i, loop, r->pages + i * each, each);
	run_all_phase(r, s->phase, s->op == OP_WRITE_THREADS);
}

/* A change of the guest's registers or tables. */
static void change_guest(struct recorder *r, const struct statement *s)
{
	struct guest *g = &r->guest;
	if (s->op == OP_SREGS) {
		phase_begin(r, s->phase);
		uint64_t start = read_tsc();
		guest_set_sregs(g, s->text);
		phase_end(r, read_tsc() - start);
		return;
	}
	if (s->op == OP_MOV)
		guest_load_mov(g, s->text);
	else if (s->op == OP_CR3)
		guest_load_cr3(g, s->text);
	else if (r->n_pages == 0)
		die("phase %s: no pages", s->phase);
	else if (s->op == OP_INVLPG)
		guest_load_invlpg(g, r->pages, r->n_pages);
	else
		guest_load_stores(g, s->op == OP_STORE_PDES, s->text, r->pages, r->n_pages);
	run_phase(r, s->phase);
}

static void execute(struct recorder *r, const struct statement *s)
{
	uint64_t start;
	switch (s->op) {
	case OP_VM:
		recorder_new_vm(r, s);
		break;
	case OP_SETUP:
		guest_load_setup(&r->guest);
		run_phase(r, "setup");
		break;
	case OP_PAGES:
		choose_pages(r, s->pattern[0], s->n_numbers ? s->number[0] : 0,
			     s->n_numbers > 1 ? s->number[1] : 0);
		if (!s->n_numbers)
			r->nr_dirty = -1;
		break;
	case OP_UNKEYED:
		r->pattern = PATTERN_NONE;
		r->nr_dirty = -1;
		break;
	case OP_ROUND:
		r->round = s->n_numbers ? (int)s->number[0] : -1;
		break;
	case OP_WRITE:
	case OP_WRITE_THREADS:
		access_pages(r, s, GUEST_WRITE);
		break;
	case OP_WRITE_FULL:
	case OP_WRITE_RESETS:
		guest_ring_mark(&r->guest);
		access_pages(r, s, GUEST_WRITE);
		put_ring_results(r, s->op);
		break;
	case OP_COLLECT:
	case OP_RESET:
	case OP_RESET_HARVESTED:
		empty_rings(r, s);
		break;
	case OP_READ:
		access_pages(r, s, GUEST_READ);
		break;
	case OP_INC:
		access_pages(r, s, GUEST_INC);
		break;
	case OP_GET:
		get_dirty_log(r, s->phase);
		break;
	case OP_CLEAR:
		clear_dirty_log(r, s->phase, s->number[0]);
		break;
	case OP_LOG_ON:
	case OP_LOG_OFF:
		phase_begin(r, s->phase);
		start = read_tsc();
		guest_log(&r->guest, s->op == OP_LOG_ON);
		phase_end(r, read_tsc() - start);
		break;
	case OP_DONTNEED:
	case OP_PROTECT_RO:
	case OP_PROTECT_RW:
		change_host(r, s);
		break;
	case OP_NULL:
		phase_begin(r, s->phase);
		start = read_tsc();
		phase_end(r, read_tsc() - start);
		break;
	case OP_CHECK_EXTENSION:
		phase_begin(r, s->phase);
		start = read_tsc();
		guest_check_extension(&r->guest);
		phase_end(r, read_tsc() - start);
		break;
	case OP_EMPTY:
		guest_load_empty(&r->guest);
		run_phase(r, s->phase);
		break;
	case OP_MOV:
	case OP_SREGS:
	case OP_CR3:
	case OP_STORE_PTES:
	case OP_STORE_PDES:
	case OP_INVLPG:
		change_guest(r, s);
		break;
	case OP_SWEEP:
	case OP_REPEAT:
	case OP_END:
		break; /* run_program() */
	}
}

/* The statements between @first and the block's end, @rounds times; returns the end's index. */
static size_t run_rounds(struct recorder *r, size_t first, unsigned rounds)
{
	const struct program *p = r->opts.program;
	size_t end = first;
	while (p->statement[end].op != OP_END)
		end++;
	for (r->round = 1; r->round <= (int)rounds; r->round++)
		for (size_t i = first; i < end; i++)
			execute(r, &p->statement[i]);
	r->round = -1;
	return end;
}

static size_t run_sweep(struct recorder *r, size_t at)
{
	const struct statement *s = &r->opts.program->statement[at];
	size_t end = at;
	r->pooled = true;
	for (unsigned p = 0; p < s->n_patterns; p++)
		for (unsigned k = 0; k < s->n_numbers; k++) {
			if (s->number[k] != PROGRAM_ALL && s->number[k] > r->opts.slot_pages)
				continue;
			choose_pages(r, s->pattern[p], s->number[k], 0);
			end = run_rounds(r, at + 1, s->rounds);
		}
	r->pooled = false;
	if (end == at) /* every number was larger than the slot */
		end = run_rounds(r, at + 1, 0);
	return end;
}

static void run_program(struct recorder *r)
{
	const struct program *p = r->opts.program;
	if (r->opts.ops)
		record_ops(r);
	for (size_t i = 0; i < p->n; i++) {
		const struct statement *s = &p->statement[i];
		if (s->op == OP_SWEEP)
			i = run_sweep(r, i);
		else if (s->op == OP_REPEAT)
			i = run_rounds(r, i + 1, s->rounds);
		else
			execute(r, s);
	}
	end_vm(r);
}

static struct recorder *recorder_new(const struct record_opts *opts, bool tracing)
{
	struct recorder *r = calloc(1, sizeof(*r));
	if (!r)
		die_errno("out of memory");
	r->opts = *opts;
	r->tracing = tracing;
	return r;
}

void record_events(const struct record_opts *opts)
{
	struct recorder *r = recorder_new(opts, true);
	events_open();
	run_program(r);
	events_close();
	free(r);
}

void record_text(const struct record_opts *opts)
{
	struct recorder *r = recorder_new(opts, false);
	r->text = true;
	events_open();
	phase_text_begin(r);
	run_program(r);
	phase_text_end(r);
	events_close();
	free(r);
}

void record_names(const struct record_opts *opts)
{
	static const struct statement vm = {.op = OP_VM, .vcpus = 1};
	struct recorder *r = recorder_new(opts, true);
	events_open();
	recorder_new_vm(r, &vm);
	events_names(opts->rows);
	stats_names(&r->stats, opts->rows);
	end_vm(r);
	events_close();
	free(r);
}

void record_insns(const struct record_opts *opts, unsigned times)
{
	struct recorder *r = recorder_new(opts, false);
	for (unsigned i = 0; i < times; i++)
		run_program(r);
	phase_insns(r);
	free(r);
}
