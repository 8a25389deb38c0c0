// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/trace_info.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* One vCPU's stream, stopped at the beginning of an epoch or at its end. */
struct walk {
	struct op_source src;
	const struct guest_op *ops;
	long n, i;
	bool ended;
	uint64_t mark;
};

/* Of a slot's pages, which may be more than there is memory for: for each, the serial of the epoch
 * that stored to it last. */
#define CHUNK_PAGES 4096
struct chunk {
	uint64_t number;
	UT_hash_handle hh;
	uint32_t serial[CHUNK_PAGES];
};

struct counting {
	const struct trace_meta *meta;
	struct trace_info *info;
	struct chunk *seen[TRACE_MAX_SLOTS]; /* those with a page that was stored to */
	struct chunk *last[TRACE_MAX_SLOTS]; /* the one looked at last */
	uint32_t serial;		     /* 0: no epoch is open */
	struct info_epoch *epoch;
	int err;
};

/* The chunk of @page; NULL: no memory. */
static struct chunk *chunk_of(struct counting *c, uint32_t slot, uint64_t page)
{
	uint64_t number = page / CHUNK_PAGES;
	struct chunk *k = c->last[slot];

	if (k && k->number == number)
		return k;
	HASH_FIND(hh, c->seen[slot], &number, sizeof(number), k);
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return NULL;
		k->number = number;
		HASH_ADD(hh, c->seen[slot], number, sizeof(k->number), k);
		if (!k->hh.tbl) {
			free(k);
			return NULL;
		}
	}
	c->last[slot] = k;
	return k;
}

static void free_chunks(struct counting *c)
{
	struct chunk *k, *tmp;

	for (uint32_t s = 0; s < c->meta->n_slots; s++) {
		HASH_ITER(hh, c->seen[s], k, tmp)
		{
			/* The analyser takes the table to be freed with an element not the last. */
			HASH_DEL(c->seen[s], k); // NOLINT(clang-analyzer-unix.Malloc)
			free(k);
		}
	}
}

static void count_store(struct counting *c, uint64_t gpa)
{
	uint64_t gfn = gpa >> 12;

	for (uint32_t s = 0; s < c->meta->n_slots; s++) {
		uint64_t page = gfn - c->meta->slots[s].base_gfn;

		if (gfn < c->meta->slots[s].base_gfn || page >= c->meta->slots[s].npages)
			continue;
		struct chunk *k = c->epoch ? chunk_of(c, s, page) : NULL;

		if (c->epoch && !k)
			c->err = KVMSIM_ENOMEM;
		if (k && k->serial[page % CHUNK_PAGES] != c->serial) {
			k->serial[page % CHUNK_PAGES] = c->serial;
			c->epoch->pages[s]++;
		}
		return;
	}
	c->info->outside++;
}

static void count_access(struct trace_info *info, const struct guest_op *op)
{
	bool port = op->kind == OP_PIO;
	size_t i = 0;

	while (i < info->n_registers &&
	       (info->registers[i].at != op->arg || !info->registers[i].ports == port))
		i++;
	if (i == INFO_MAX_REGISTERS)
		return;
	if (i == info->n_registers)
		info->registers[info->n_registers++].at = op->arg;
	info->registers[i].reads += op->kind == OP_MMIO_READ;
	info->registers[i].writes += op->kind == OP_MMIO_WRITE;
	info->registers[i].ports += port;
}

static void count_op(struct counting *c, struct walk *w, const struct guest_op *op)
{
	c->info->ops[op->kind]++;
	c->info->instructions += op->gap;
	if (op->kind == OP_MARK)
		w->mark = op->arg;
	else if (op->kind == OP_MMIO_READ || op->kind == OP_MMIO_WRITE || op->kind == OP_PIO)
		count_access(c->info, op);
	else if ((op->kind == OP_WRITE || op->kind == OP_RMW) && c->info->has_pages)
		count_store(c, op->arg);
}

/* The op at which @w stands, NULL at the end; sets *@err. */
static const struct guest_op *peek(struct walk *w, int *err)
{
	if (w->i == w->n && !w->ended) {
		w->i = 0;
		w->n = w->src.next(w->src.ctx, &w->ops);
		if (w->n <= 0) {
			*err = w->n;
			w->n = 0;
			w->ended = true;
		}
	}
	return w->ended ? NULL : &w->ops[w->i];
}

/* Counts up to the next beginning of an epoch, which stays: it is returned. */
static const struct guest_op *advance(struct counting *c, struct walk *w, int *err)
{
	const struct guest_op *op;

	while ((op = peek(w, err)) && op->kind != OP_EPOCH) {
		count_op(c, w, op);
		w->i++;
	}
	return op;
}

static int open_epoch(struct counting *c, uint64_t number)
{
	struct trace_info *info = c->info;
	size_t n = info->n_epochs;

	if (n + 1 >= UINT32_MAX)
		return KVMSIM_ENOMEM;
	if (!(n & (n - 1))) {
		struct info_epoch **grown = realloc(info->epochs, (n ? 2 * n : 1) * sizeof(*grown));

		if (!grown)
			return KVMSIM_ENOMEM;
		info->epochs = grown;
	}
	c->epoch = calloc(1, sizeof(*c->epoch) + c->meta->n_slots * sizeof(c->epoch->pages[0]));
	if (!c->epoch)
		return KVMSIM_ENOMEM;
	info->epochs[info->n_epochs++] = c->epoch;
	c->serial = info->n_epochs;
	c->epoch->number = number;
	c->epoch->full = true;
	return 0;
}

/* The epoch @number on every vCPU that has it. */
static int read_epoch(struct counting *c, struct walk *walks, uint64_t number)
{
	int err = open_epoch(c, number);

	for (uint32_t v = 0; !err && v < c->meta->n_vcpus; v++) {
		const struct guest_op *op = peek(&walks[v], &err);

		if (err || !op || op->arg != number)
			continue;
		count_op(c, &walks[v], op);
		walks[v].i++;
		if (!c->epoch->mark)
			c->epoch->mark = walks[v].mark;
		op = advance(c, &walks[v], &err);
		if (!op || (op->flags & OPF_PARTIAL))
			c->epoch->full = false;
	}
	return err ? err : c->err;
}

static int read_all(struct counting *c, struct trace_reader *r, struct walk *walks)
{
	int err = 0;

	for (uint32_t v = 0; !err && v < c->meta->n_vcpus; v++) {
		err = trace_source(r, v, &walks[v].src);
		if (!err)
			advance(c, &walks[v], &err); /* what comes before the first epoch */
	}
	while (!err) {
		uint64_t number = UINT64_MAX;
		bool some = false;

		for (uint32_t v = 0; !err && v < c->meta->n_vcpus; v++) {
			const struct guest_op *op = peek(&walks[v], &err);

			if (op && (!some || op->arg < number))
				number = op->arg;
			some |= op != NULL;
		}
		if (!some || err)
			break;
		err = read_epoch(c, walks, number);
	}
	return err;
}

static int by_address(const void *a, const void *b)
{
	const struct info_register *x = a, *y = b;

	if (!x->ports != !y->ports)
		return x->ports ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

int trace_info_read(struct trace_reader *r, const char *name, const struct kvmsim_errsink *errors,
		    struct trace_info *info)
{
	struct counting c = {.meta = trace_meta(r), .info = info};
	struct walk *walks = calloc(c.meta->n_vcpus, sizeof(*walks));
	int err = walks ? 0 : KVMSIM_ENOMEM;

	memset(info, 0, sizeof(*info));
	info->has_pages = c.meta->unseen & TRACE_NO_GVA;
	if (!err)
		err = read_all(&c, r, walks);
	if (err == KVMSIM_ENOMEM)
		kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", name);
	qsort(info->registers, info->n_registers, sizeof(*info->registers), by_address);
	free_chunks(&c);
	free(walks);
	return err;
}

void trace_info_free(struct trace_info *info)
{
	for (size_t i = 0; i < info->n_epochs; i++)
		free(info->epochs[i]);
	free(info->epochs);
	memset(info, 0, sizeof(*info));
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int trace_info_range(const struct trace_info *info, uint32_t slot, uint64_t mark,
		     struct info_range *out)
{
	uint32_t *v = malloc((info->n_epochs + 1) * sizeof(*v));
	size_t n = 0;

	memset(out, 0, sizeof(*out));
	if (!v)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < info->n_epochs; i++) {
		const struct info_epoch *e = info->epochs[i];

		if (e->full && (mark == UINT64_MAX || e->mark == mark))
			v[n++] = e->pages[slot];
	}
	qsort(v, n, sizeof(*v), compare);
	if (n)
		*out = (struct info_range){.n = n,
					   .min = v[0],
					   .max = v[n - 1],
					   .median2 = (uint64_t)v[(n - 1) / 2] + v[n / 2]};
	free(v);
	return 0;
}

const char *guest_op_name(enum guest_op_kind kind)
{
	static const char *const name[OP_LAST] = {
		[OP_NONE] = "none",
		[OP_READ] = "read",
		[OP_WRITE] = "write",
		[OP_RMW] = "rmw",
		[OP_FETCH] = "fetch",
		[OP_MMIO_READ] = "mmio_read",
		[OP_MMIO_WRITE] = "mmio_write",
		[OP_PIO] = "pio",
		[OP_INVLPG] = "invlpg",
		[OP_CR3] = "cr3",
		[OP_HLT] = "hlt",
		[OP_EPOCH] = "epoch",
		[OP_MARK] = "mark",
	};

	return kind < OP_LAST ? name[kind] : "unknown";
}
