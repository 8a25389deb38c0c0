// SPDX-License-Identifier: GPL-2.0-or-later
/* The records of QEMU's `info migrate`; -a of the folded layouts puts the globals behind. */
#include <stdlib.h>
#include <string.h>

#include "traces/tables/migrate.h"
#include "traces/tables/scratch.h"

const struct migrate_field migrate_fields[] = {
#define F(name) {#name, offsetof(struct migration_status, name)},
	MIGRATE_FIELDS(F)
#undef F
};
const size_t n_migrate_fields = sizeof(migrate_fields) / sizeof(*migrate_fields);

static struct text_look look(const void *state, const char *line, size_t len)
{
	const struct tables *t = state;

	return migrate_parse(line, len, t->scratch->migrate.open).look;
}

/* A record begins with its status, or with the globals that come before it; a field that it has
 * already, or one of another layout, begins a new one. */
static int record(struct tables *t, const struct migrate_line *p)
{
	struct tables_scratch *s = t->scratch;
	unsigned has = 0;

	for (unsigned i = 0; i < p->n; i++)
		has |= 1u << p->got[i].field;
	if (p->what == MIGRATE_STATUS)
		has |= 1u << MIGRATE_status;
	if (p->what == MIGRATE_GLOBALS && p->lines)
		s->migrate.open = false;
	if (s->migrate.open && !(s->migrate.seen & has) &&
	    ((!p->lines && !p->folded) || s->migrate.lines == p->lines)) {
		s->migrate.seen |= has;
		return 0;
	}
	if (tables_grow(&t->migration, t->n_migrations, sizeof(*t->migration)))
		return KVMSIM_ENOMEM;
	t->n_migrations++;
	s->migrate.open = true;
	s->migrate.lines = p->lines;
	s->migrate.seen = has;
	t->migration[t->n_migrations - 1].layout = p->lines ? MIGRATE_LINES : MIGRATE_FOLDED;
	return 0;
}

static struct number *field_of(struct migration_status *m, enum migrate_what_field f)
{
	return (struct number *)((char *)m + migrate_fields[f].offset);
}

static int take(void *state, const char *line, size_t len, const struct text_look *l,
		uint64_t number)
{
	struct tables *t = state;
	struct migrate_line p = migrate_parse(line, len, t->scratch->migrate.open);
	struct migration_status *m;
	int err;

	(void)l;
	(void)number;
	if (p.what == MIGRATE_KNOWN || (p.what == MIGRATE_VALUES && !p.n))
		return 0;
	/* globals alone are no migration: it begins with what follows */
	if (p.what == MIGRATE_GLOBALS && (p.lines || !t->scratch->migrate.open)) {
		t->scratch->migrate.open = false;
		t->scratch->migrate.global = p.all;
		return 0;
	}
	err = record(t, &p);
	if (err)
		return err;
	m = &t->migration[t->n_migrations - 1];
	if (p.all || (p.folded && t->scratch->migrate.global))
		m->layout = MIGRATE_FOLDED_ALL;
	t->scratch->migrate.global = false;
	if (p.what == MIGRATE_STATUS) {
		m->status = tables_copy(p.status);
		return m->status ? 0 : KVMSIM_ENOMEM;
	}
	for (unsigned i = 0; i < p.n; i++) {
		if (p.got[i].field == MIGRATE_throughput)
			m->throughput_mbps = p.throughput;
		else
			*field_of(m, p.got[i].field) = (struct number){p.got[i].value, true};
	}
	return 0;
}

static void gap(void *state, bool blank)
{
	struct tables *t = state;

	if (!blank)
		t->scratch->migrate.global = false;
}

/* 2^bits less something small: a difference that fell below zero, after a division by
 * 2^(64 - bits). */
static bool wrapped(uint64_t v, unsigned bits)
{
	return bits == 64 ? v >> 63
			  : v < 1ull << bits && v >= (1ull << bits) - (1ull << (bits - 10));
}

bool migration_impossible(const struct migration_status *m, const struct number *field)
{
	if (!field->there)
		return false;
	if (wrapped(field->value, 64))
		return true;
	if (m->total_kib.there && field->value <= m->total_kib.value)
		return false;
	if (field == &m->remaining_kib || field == &m->transferred_kib || field == &m->total_kib)
		return wrapped(field->value, 54); /* of bytes */
	if (field == &m->normal_pages || field == &m->zero_pages)
		return wrapped(field->value, 52);
	return false;
}

const struct text_format migrate_format = {
	.kind = HOST_KIND_QEMU_MONITOR, .look = look, .take = take, .gap = gap};
