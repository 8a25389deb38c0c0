/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_MOPS_ORACLE_H
#define KVMSIM_TESTS_MOPS_ORACLE_H

#include "tests/property/mops.h"

/*
 * What a real machine with the guest's tables might show: guest memory as a history of stores, and
 * walks over it. There is no shadow page, no spte and no TLB here. A translation may have been
 * cached since the last time that this vCPU flushed it, so an access may go by any value that each
 * entry on its way has had since then; a fault needs one that it has now.
 *
 * Time is the order in which things begin and end. An op has a moment of its own somewhere between
 * its begin and its end, so a load may return any value that no later one had replaced for good
 * before the load began.
 */
#define ORACLE_NEVER UINT64_MAX

struct oracle_store {
	uint64_t value, begin, end;
	uint8_t mask; /* bytes of the word */
	bool maybe;   /* it need not have happened */
	bool any;     /* what it stored cannot be told */
};

struct oracle_word {
	uint64_t gpa; /* of 8 bytes; 0: a free place of the table */
	struct oracle_store *store;
	size_t n, room;
};

/* An op that has begun and not ended. */
struct oracle_pending {
	bool busy, loads, stores;
	bool fetch;
	bool adds; /* value is added to what was there */
	uint64_t gva, value, begin;
	unsigned len;
};

struct oracle_vcpu {
	unsigned root;
	unsigned mode; /* MOPS_WP and so on */
	bool ended;
	uint64_t flushed;				   /* all of it */
	uint64_t page_flushed[MOPS_MAX_WINDOWS + 2][1024]; /* of windows, and of the tables' */
	struct oracle_pending op;
};

/* When something was or may have been so last. */
struct oracle_span {
	uint64_t from, to;
};

struct oracle_slot {
	uint64_t base, npages;			/* at home; what moves has another place, too */
	bool is_there, read_only;		/* as the VMM has it */
	unsigned place;				/* 0: at home, 1: moved */
	struct oracle_span there[2], absent[2]; /* at each place */
	struct oracle_span ram, rom;  /* what is stored there is memory's, or a device's */
	struct oracle_span protected; /* by the host */
	uint64_t logged;	      /* since when logging is on; ORACLE_NEVER: it is not */
	uint64_t *stored;	      /* per page: begin of the last store while logged */
	uint64_t *reported;	      /* per page: end of the last report */
};

struct oracle {
	const struct mops *m;
	uint64_t now;
	struct oracle_word *word;
	size_t n_words, room;
	struct oracle_vcpu vcpu[MOPS_MAX_VCPUS];
	struct oracle_slot slot[MOPS_SLOTS];
	struct { /* the VMM gives pages back */
		bool busy;
		uint64_t begin, gfn, npages;
	} zero;
	uint64_t ambiguous;
};

/* Where an access may go. */
#define ORACLE_MOST 48
struct oracle_targets {
	uint64_t gpa[ORACLE_MOST];
	unsigned n;
	bool fault; /* the guest's tables deny it */
	bool more;  /* than there is room for: anything goes */
};

/* ---- mops_memory.c ---- */
bool oracle_is_table(uint64_t gpa);
/* The word around @gpa, with what it holds at first; valid until the next call. */
struct oracle_word *oracle_word_at(struct oracle *o, uint64_t gpa);
/* What began last among the stores of byte @b that were over before @begin: what had ended by then
 * is gone. */
uint64_t oracle_replaced_until(const struct oracle_word *w, unsigned b, uint64_t begin);
void oracle_add_store(struct oracle_word *w, struct oracle_store s);
/* The same, and what nobody can see any more is forgotten. */
void oracle_store(struct oracle *o, uint64_t gpa, struct oracle_store s);
/* Where @gva may lead by tables as they have been since @from. */
void oracle_find_targets(struct oracle *o, unsigned v, uint64_t gva, bool write, uint64_t from,
			 struct oracle_targets *t);
/* The same for the op that is under way, by what may be cached. */
void oracle_targets_of(struct oracle *o, unsigned v, uint64_t gva, struct oracle_targets *t);

/* ---- mops_slots.c ---- */
bool oracle_init_slots(struct oracle *o);
void oracle_free_slots(struct oracle *o);
/* The address at home of what may be moved: memory is known by that. */
uint64_t oracle_home(uint64_t gpa);
/* What may have been at @gpa at some time since @begin, for a load or a store. */
bool oracle_may_be_memory(struct oracle *o, uint64_t gpa, bool store, uint64_t begin);
bool oracle_may_be_device(struct oracle *o, uint64_t gpa, bool store, uint64_t begin);
bool oracle_may_be_protected(struct oracle *o, uint64_t gpa, uint64_t begin);
/* It may be so from now on, or no longer. */
void oracle_begins(struct oracle *o, struct oracle_span *s);
void oracle_ends(struct oracle *o, struct oracle_span *s);
void oracle_note_dirty(struct oracle *o, uint64_t gpa, uint64_t begin);
void oracle_log(struct oracle *o, unsigned slot, bool on);
void oracle_reported(struct oracle *o, unsigned slot, const uint64_t *bitmap);
/* Pages that were stored to and not reported since. */
uint64_t oracle_lost(const struct oracle *o, unsigned slot, uint64_t *first);

/* ---- mops_oracle.c ---- */
bool oracle_init(struct oracle *o, const struct mops *m);
void oracle_free(struct oracle *o);

/* A load, store or fetch of vCPU @v begins. */
void oracle_begin(struct oracle *o, unsigned v, const struct mop *op);
/* How it ended: each says what is wrong with that, or NULL. */
const char *oracle_read_done(struct oracle *o, unsigned v, bool look, uint64_t value);
const char *oracle_write_done(struct oracle *o, unsigned v);
const char *oracle_faulted(struct oracle *o, unsigned v);
/* @stale: the model's kernel has MMIO sptes that are about a slot by now (mmio_refreshed). */
const char *oracle_device(struct oracle *o, unsigned v, bool stale);
const char *oracle_readonly(struct oracle *o, unsigned v);

/* MOV CR3 and INVLPG: from the begin of the op on nothing older may be used. */
uint64_t oracle_tick(struct oracle *o);
void oracle_flushed(struct oracle *o, unsigned v, uint64_t begin);
void oracle_page_flushed(struct oracle *o, unsigned v, uint64_t gva, uint64_t begin);

/* ---- the VMM ---- */
void oracle_zero_begin(struct oracle *o, uint64_t gfn, uint64_t npages);
void oracle_zero_end(struct oracle *o);

#endif
