// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "analysis/csv.h"
#include "analysis/matrix_file.h"

struct text_pool {
	UT_hash_handle hh;
	char text[];
};

enum column {
	COL_CASE,
	COL_MMU,
	COL_MODE,
	COL_SLOT_PAGES,
	COL_PTE,
	COL_PATTERN,
	COL_NR_DIRTY,
	COL_ROUND,
	COL_PHASE,
	COL_QUANTITY,
	COL_VALUE,
	COL_UNIT,
	COL_NOTE
};
static const char *const columns[] = {"case",	 "mmu",	     "kvm_mode", "slot_pages", "guest_pte",
				      "pattern", "nr_dirty", "round",	 "phase",      "quantity",
				      "value",	 "unit",     "note",	 NULL};

const char *matrix_file_text(struct matrix_file *f, const char *text)
{
	size_t len = strlen(text);
	struct text_pool *found;

	HASH_FIND(hh, f->pool, text, len, found);
	if (!found) {
		found = malloc(sizeof(*found) + len + 1);
		if (!found)
			return NULL;
		memcpy(found->text, text, len + 1);
		HASH_ADD_KEYPTR(hh, f->pool, found->text, len, found);
		if (!found->hh.tbl) {
			free(found);
			return NULL;
		}
	}
	return found->text;
}

/* ---- what the file's words mean to the model ---- */

/* kvm_mode "cpl3+KERNEL+SPTE": what `record kvm --program` recorded, of a guest at CPL3. */
static bool find_cpl3(struct matrix_file *f, struct matrix_config *c)
{
	const char *kernel = c->mode + 5, *plus = strchr(kernel, '+');
	char text[64];

	if (!plus || (size_t)(plus - kernel) >= sizeof(text))
		return true;
	memcpy(text, kernel, (size_t)(plus - kernel));
	text[plus - kernel] = '\0';
	c->kernel = matrix_file_text(f, text);
	c->spte = matrix_file_text(f, plus + 1);
	c->mmu_only = true;
	return c->kernel && c->spte;
}

/* kvm_mode: the unpatched modules, or what the patched ones do otherwise: an spte policy
 * ("mmio=vcpu-cache") or a parameter of the preset's ("flood=5"), else dirtylog_mode, whose 2 falls
 * back to 1 where there is no list of shadow pages to walk. */
static bool find_spte(struct matrix_file *f, struct matrix_config *c)
{
	static const char *const params[] = {"unsync=", "flood=", "prefetch="};
	char text[64];

	if (!strncmp(c->mode, "cpl3+", 5))
		return find_cpl3(f, c);
	if (!strncmp(c->mode, "mmio=", 5)) {
		c->spte = matrix_file_text(f, c->mode + 5);
		return c->spte;
	}
	for (size_t i = 0; i < sizeof(params) / sizeof(*params); i++) {
		if (strncmp(c->mode, params[i], strlen(params[i])) != 0)
			continue;
		snprintf(text, sizeof(text), "mmio-gen,%.40s", c->mode);
		c->spte = matrix_file_text(f, text);
		return c->spte;
	}
	return true;
}

static const char *find_dirty(const char *mode, int mmu)
{
	static const char *const modes[][2] = {
		{"stock", "mask"}, {"0", "mask"}, {"1", "rmap-slot"}, {"2", "walk"}};

	if (mmu == MMU_TDP && !strcmp(mode, "2"))
		mode = "1";
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (!strcmp(modes[i][0], mode))
			return modes[i][1];
	}
	return NULL;
}

static int find_pte(const char *name, enum matrix_guest guest)
{
	static const char *const names[] = {
		[MATRIX_PTE_NONE] = "none", [MATRIX_PTE_4K] = "4k", [MATRIX_PTE_2M] = "2m"};

	for (int p = 0; p < (guest == MATRIX_GUEST_32BIT ? MATRIX_PTE_2M : 3); p++) {
		if (!strcmp(names[p], name))
			return p;
	}
	return guest == MATRIX_GUEST_32BIT && !strcmp(name, "4m") ? MATRIX_PTE_2M : -1;
}

bool matrix_config_modelled(const struct matrix_config *c)
{
	return c->mmu_kind >= 0 &&
	       (c->program || matrix_case_on(c->test_case, (enum mmu_kind)c->mmu_kind));
}

static enum quantity_kind find_kind(const char *quantity)
{
	if (!strncmp(quantity, "ev:", 3))
		return QUANTITY_EVENT;
	if (!strncmp(quantity, "stat:", 5))
		return QUANTITY_STAT;
	if (!strncmp(quantity, "res:", 4))
		return QUANTITY_RESULT;
	if (!strncmp(quantity, "work:", 5))
		return QUANTITY_WORK;
	if (!strncmp(quantity, "insns_", 6))
		return QUANTITY_COST;
	return QUANTITY_OTHER;
}

/* ---- reading ---- */

static int grow(void **array, size_t n, size_t size)
{
	/* room for 1, 2, 4, 8, ... elements */
	if (n & (n - 1))
		return 0;
	void *grown = realloc(*array, (n ? 2 * n : 1) * size);

	if (!grown)
		return KVMSIM_ENOMEM;
	*array = grown;
	return 0;
}

static int config_of(struct matrix_file *f, const struct csv_row *row, size_t *index)
{
	struct matrix_config c = {.test_case = matrix_file_text(f, row->field[COL_CASE]),
				  .mmu = matrix_file_text(f, row->field[COL_MMU]),
				  .mode = matrix_file_text(f, row->field[COL_MODE]),
				  .pte = matrix_file_text(f, row->field[COL_PTE])};
	int err = csv_u64(row, COL_SLOT_PAGES, &c.slot_pages);

	if (err)
		return err;
	if (!c.test_case || !c.mmu || !c.mode || !c.pte)
		return KVMSIM_ENOMEM;
	/* rows of one configuration mostly stand together */
	for (size_t i = f->n_configs; i-- > 0;) {
		const struct matrix_config *o = &f->configs[i];

		if (o->test_case == c.test_case && o->mmu == c.mmu && o->mode == c.mode &&
		    o->pte == c.pte && o->slot_pages == c.slot_pages) {
			*index = i;
			return 0;
		}
	}
	err = grow((void **)&f->configs, f->n_configs, sizeof(c));
	if (err)
		return err;
	c.mmu_kind = matrix_mmu_find(c.mmu, &c.guest);
	if (!find_spte(f, &c))
		return KVMSIM_ENOMEM;
	c.dirty = c.spte ? "mask" : find_dirty(c.mode, c.mmu_kind);
	c.pte_kind = find_pte(c.pte, c.guest);
	*index = f->n_configs;
	f->configs[f->n_configs++] = c;
	return 0;
}

static int optional_number(const struct csv_row *row, size_t column, int64_t *out)
{
	*out = MATRIX_NONE;
	if (!*row->field[column])
		return 0;
	if (column == COL_ROUND && !strcmp(row->field[column], "all")) {
		*out = ROUND_ALL;
		return 0;
	}
	uint64_t v;
	int err = csv_u64(row, column, &v);

	if (!err && v > INT64_MAX)
		return csv_complain(row, "%s is too large", columns[column]);
	*out = (int64_t)v;
	return err;
}

/* "abs_after=24;occurrence=2": numbers that it knows, others are for people. */
static int read_note(const struct csv_row *row, struct matrix_row *out)
{
	const char *p = row->field[COL_NOTE];

	out->key.occurrence = 1;
	while (*p) {
		size_t len = strcspn(p, ";");
		unsigned long long v;
		char *end;

		if (!strncmp(p, "abs_after=", 10) || !strncmp(p, "occurrence=", 11)) {
			const char *digits = strchr(p, '=') + 1;

			v = strtoull(digits, &end, 10);
			if (end == digits || end != p + len || *digits == '-')
				return csv_complain(row, "note '%s': a number was expected after =",
						    row->field[COL_NOTE]);
			if (*p == 'o') {
				out->key.occurrence = v;
			} else {
				out->has_abs = true;
				out->abs_after = v;
			}
		}
		p += len + (p[len] == ';');
	}
	return 0;
}

static int read_value(const struct csv_row *row, struct matrix_row *out)
{
	int64_t whole;
	int err;

	if (out->kind == QUANTITY_COST || out->kind == QUANTITY_OTHER)
		return csv_double(row, COL_VALUE, &out->value);
	err = csv_i64(row, COL_VALUE, &whole);
	out->value = (double)whole;
	return err;
}

static int add_row(void *ctx, const struct csv_row *row)
{
	struct matrix_file *f = ctx;
	struct matrix_row r = {.line = row->line};
	int err = config_of(f, row, &r.config);

	r.key.phase = matrix_file_text(f, row->field[COL_PHASE]);
	r.key.pattern = matrix_file_text(f, row->field[COL_PATTERN]);
	r.quantity = matrix_file_text(f, row->field[COL_QUANTITY]);
	if (!r.key.phase || !r.key.pattern || !r.quantity)
		return KVMSIM_ENOMEM;
	if (!*r.key.phase || !*r.quantity)
		return csv_complain(row, "a phase and a quantity were expected");
	r.kind = find_kind(r.quantity);
	err = err ? err : optional_number(row, COL_NR_DIRTY, &r.key.nr_dirty);
	err = err ? err : optional_number(row, COL_ROUND, &r.key.round);
	err = err ? err : read_value(row, &r);
	err = err ? err : read_note(row, &r);
	err = err ? err : grow((void **)&f->rows, f->n_rows, sizeof(r));
	if (!err)
		f->rows[f->n_rows++] = r;
	return err;
}

/* ---- the rows together ---- */

#define COMPARE(x, y)                                                                              \
	do {                                                                                       \
		if ((x) != (y))                                                                    \
			return (x) < (y) ? -1 : 1;                                                 \
	} while (0)

/* Equal texts are one; which of two others comes first does not matter here. */
static int by_identity(const struct matrix_row *x, const struct matrix_row *y)
{
	COMPARE((uintptr_t)x->quantity, (uintptr_t)y->quantity);
	COMPARE(x->config, y->config);
	COMPARE((uintptr_t)x->key.phase, (uintptr_t)y->key.phase);
	COMPARE((uintptr_t)x->key.pattern, (uintptr_t)y->key.pattern);
	COMPARE(x->key.nr_dirty, y->key.nr_dirty);
	COMPARE(x->key.round, y->key.round);
	COMPARE(x->key.occurrence, y->key.occurrence);
	return 0;
}

static int by_identity_and_line(const void *a, const void *b)
{
	const struct matrix_row *x = *(const struct matrix_row *const *)a,
				*y = *(const struct matrix_row *const *)b;
	int order = by_identity(x, y);

	return order ? order : (x->line > y->line) - (x->line < y->line);
}

static void keep_first(const struct matrix_row **first, const struct matrix_row *row)
{
	if (row && (!*first || row->line < (*first)->line))
		*first = row;
}

/* No row is there twice: the second would be compared, or priced, once more. A quantity that has
 * its absolute value in one row has it in all: without, that value would pass uncompared. */
static int check_rows(const struct matrix_file *f, const struct kvmsim_errsink *errors)
{
	const struct matrix_row **rows = malloc((f->n_rows + 1) * sizeof(*rows)), *twice = NULL,
				*bare = NULL, *other = NULL;
	size_t end;
	int err = 0;

	if (!rows)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", f->path);
	for (size_t i = 0; i < f->n_rows; i++)
		rows[i] = &f->rows[i];
	qsort(rows, f->n_rows, sizeof(*rows), by_identity_and_line);
	for (size_t i = 0; i < f->n_rows; i = end) {
		const struct matrix_row *with = NULL, *without = NULL;

		for (end = i; end < f->n_rows && rows[end]->quantity == rows[i]->quantity; end++) {
			keep_first(rows[end]->has_abs ? &with : &without, rows[end]);
			if (end > i && !by_identity(rows[end - 1], rows[end])) {
				const struct matrix_row *before = twice;

				keep_first(&twice, rows[end]);
				other = twice == before ? other : rows[end - 1];
			}
		}
		if (with)
			keep_first(&bare, without);
	}
	if (twice)
		err = kvmsim_err(errors, KVMSIM_EPARSE,
				 "%s:%lu: %s: the same row as line %lu; each is expected once",
				 f->path, twice->line, twice->quantity, other->line);
	else if (bare)
		err = kvmsim_err(errors, KVMSIM_EPARSE,
				 "%s:%lu: %s: a note with abs_after= was expected, as its other "
				 "rows have",
				 f->path, bare->line, bare->quantity);
	free(rows);
	return err;
}

int matrix_file_load(const char *path, const struct kvmsim_errsink *errors,
		     struct matrix_file **out)
{
	struct matrix_file *f = calloc(1, sizeof(*f));
	int err;

	*out = NULL;
	if (!f)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", path);
	f->path = path;
	err = csv_read(path, columns, errors, add_row, f);
	err = err ? err : check_rows(f, errors);
	if (err) {
		matrix_file_free(f);
		return err;
	}
	*out = f;
	return 0;
}

void matrix_file_free(struct matrix_file *f)
{
	struct text_pool *t, *tmp;

	if (!f)
		return;
	HASH_ITER(hh, f->pool, t, tmp)
	{
		/* The analyser takes the table to be freed with an element that is not the last. */
		HASH_DEL(f->pool, t); // NOLINT(clang-analyzer-unix.Malloc)
		free(t);
	}
	matrix_programs_free(f);
	free(f->rows);
	free(f->configs);
	free(f);
}

/* ---- rounds ---- */

static int by_round(const void *a, const void *b)
{
	const struct matrix_round *x = a, *y = b;

	if (x->pattern != y->pattern)
		return x->pattern < y->pattern ? -1 : 1;
	if (x->nr_dirty != y->nr_dirty)
		return x->nr_dirty < y->nr_dirty ? -1 : 1;
	return (x->round > y->round) - (x->round < y->round);
}

int matrix_file_rounds(const struct matrix_file *f, size_t config, struct matrix_round **out,
		       size_t *n)
{
	struct matrix_round *rounds = NULL;
	size_t kept = 0;

	*n = 0;
	for (size_t i = 0; i < f->n_rows; i++) {
		const struct matrix_row *r = &f->rows[i];
		int pattern = matrix_pattern_find(r->key.pattern);
		struct matrix_round one = {.pattern = (enum matrix_pattern)pattern,
					   .nr_dirty = r->key.nr_dirty,
					   .round = r->key.round == ROUND_ALL ? 1 : r->key.round};

		if (r->config != config || one.round < 0 || r->key.nr_dirty < 0 || pattern < 0)
			continue;
		if (*n && !by_round(&rounds[*n - 1], &one))
			continue;
		if (grow((void **)&rounds, *n, sizeof(one))) {
			free(rounds);
			return KVMSIM_ENOMEM;
		}
		rounds[(*n)++] = one;
	}
	if (*n)
		qsort(rounds, *n, sizeof(*rounds), by_round);
	for (size_t i = 0; i < *n; i++) {
		if (!kept || by_round(&rounds[kept - 1], &rounds[i]))
			rounds[kept++] = rounds[i];
	}
	*n = kept;
	*out = rounds;
	return 0;
}
