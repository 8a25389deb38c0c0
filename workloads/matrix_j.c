// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/matrix_scene.h"

/*
 * Case J: the VMM gives memory below the guest back and protects it. MMU notifiers unmap it, reads
 * find the zero page, stores copy it.
 *
 * Case J_mid: in the middle of a mapping, with protections that meet and grow. Case J_absent:
 * memory that the host has not touched, with every kind of log. Case J_huge: with transparent huge
 * pages, the huge zero page among them.
 */

enum j_what {
	J_END,
	/* the key and the list of the loops that follow: of n pages (0: the slot), from first on */
	J_SEQUENTIAL,
	J_EVEN,
	J_NO_PAGES,
	J_ROUND, /* what the key says; 0: nothing */
	/* phases: loops over the list, */
	J_WRITE,
	J_READ,
	J_INC,
	/* what the VMM does to n pages (0: all) from first on, */
	J_DONTNEED,
	J_RO,
	J_RW,
	/* ioctls on the slot, */
	J_LOG_ON,
	J_LOG_OFF,
	J_GET,
	J_CLEAR,
	/* and the dirty rings */
	J_COLLECT,
	J_RESET,
};

struct j_step {
	enum j_what what;
	uint64_t n, first;
	const char *phase;
};

static const struct j_step j_steps[] = {
	{J_SEQUENTIAL, 0, 0, NULL},
	{J_WRITE, 0, 0, "populate_write"},
	{J_SEQUENTIAL, 64, 0, NULL},
	{J_DONTNEED, 64, 0, "madvise_dontneed64"},
	{J_READ, 0, 0, "read64_zero_page"},
	{J_WRITE, 0, 0, "write64_cow"},
	{J_WRITE, 0, 0, "write64_again"},
	{J_RO, 64, 0, "mprotect_ro64"},
	{J_READ, 0, 0, "read64_ro"},
	{J_RW, 64, 0, "mprotect_rw64"},
	{J_WRITE, 0, 0, "write64_after_rw"},
	{J_ROUND, 1, 0, NULL},
	{J_SEQUENTIAL, 1, 1, NULL},
	{J_DONTNEED, 1, 1, "madvise_dontneed1"},
	{J_WRITE, 0, 0, "write1_fresh"},
	{J_ROUND, 2, 0, NULL},
	{J_SEQUENTIAL, 1, 2, NULL},
	{J_DONTNEED, 1, 2, "madvise_dontneed1"},
	{J_WRITE, 0, 0, "write1_fresh"},
	{J_ROUND, 0, 0, NULL},
	{J_SEQUENTIAL, 0, 0, NULL},
	{J_DONTNEED, 0, 0, "madvise_dontneed_all"},
	{J_WRITE, 0, 0, "write_all_fresh"},
	{J_LOG_ON, 0, 0, "enable_log"},
	{J_DONTNEED, 64, 0, "madvise_dontneed64_logged"},
	{J_SEQUENTIAL, 64, 0, NULL},
	{J_READ, 0, 0, "read64_zero_page_logged"},
	{J_GET, 0, 0, "get_after_read_zero"},
	{J_WRITE, 0, 0, "write64_cow_logged"},
	{J_GET, 0, 0, "get_after_write"},
	{0},
};

static const struct j_step j_mid_steps[] = {
	{J_SEQUENTIAL, 0, 0, NULL},
	{J_WRITE, 0, 0, "populate_write"},
	{J_RO, 50, 100, "ro_inside"},
	{J_SEQUENTIAL, 40, 105, NULL},
	{J_READ, 0, 0, "read_ro"},
	{J_RO, 50, 150, "ro_next"},
	{J_RO, 10, 90, "ro_before"},
	{J_SEQUENTIAL, 110, 90, NULL},
	{J_READ, 0, 0, "read_ro"},
	{J_DONTNEED, 200, 80, "dontneed_over"},
	{J_SEQUENTIAL, 6, 84, NULL},
	{J_WRITE, 0, 0, "write_fresh"},
	{J_SEQUENTIAL, 16, 100, NULL},
	{J_READ, 0, 0, "read_ro_zero"},
	{J_RW, 20, 120, "rw_inside"},
	{J_SEQUENTIAL, 20, 120, NULL},
	{J_WRITE, 0, 0, "write_rw"},
	{J_SEQUENTIAL, 40, 100, NULL},
	{J_READ, 0, 0, "read_mixed"},
	{J_RW, 0, 0, "rw_all"},
	{J_SEQUENTIAL, 0, 0, NULL},
	{J_WRITE, 0, 0, "write_all"},
	{J_WRITE, 0, 0, "write_all_again"},
	{J_DONTNEED, 7, 300, "dontneed_nothing"},
	{J_DONTNEED, 7, 300, "dontneed_nothing2"},
	{J_SEQUENTIAL, 16, 296, NULL},
	{J_READ, 0, 0, "read_zero"},
	{J_RO, 7, 300, "ro_zero"},
	{J_READ, 0, 0, "read_zero_ro"},
	{J_RW, 7, 300, "rw_zero"},
	{J_INC, 0, 0, "inc_zero"},
	{J_EVEN, 100, 0, NULL},
	{J_WRITE, 0, 0, "write_even"},
	{J_RO, 30, 570, "ro_end"},
	{J_RW, 30, 570, "rw_end"},
	{J_SEQUENTIAL, 0, 0, NULL},
	{J_READ, 0, 0, "read_all"},
	{J_LOG_ON, 0, 0, "enable_log"},
	{J_SEQUENTIAL, 32, 200, NULL},
	{J_RO, 32, 200, "ro_logged"},
	{J_READ, 0, 0, "read_ro_logged"},
	{J_RW, 32, 200, "rw_logged"},
	{J_READ, 0, 0, "read_rw_logged"},
	{J_GET, 0, 0, "get_read_rw"},
	{J_DONTNEED, 10, 210, "dontneed_logged"},
	{J_WRITE, 0, 0, "write_logged"},
	{J_GET, 0, 0, "get_logged"},
	{J_DONTNEED, 8, 200, "dontneed_dirty"},
	{J_GET, 0, 0, "get_none"},
	{J_READ, 0, 0, "read_after"},
	{J_WRITE, 0, 0, "write_after"},
	{J_GET, 0, 0, "get_after"},
	{J_NO_PAGES, 0, 0, NULL},
	{J_LOG_OFF, 0, 0, "disable_log"},
	{J_SEQUENTIAL, 32, 200, NULL},
	{J_WRITE, 0, 0, "write_unlogged"},
	{0},
};

static const struct j_step absent_unlogged_steps[] = {
	{J_EVEN, 64, 0, NULL},	      {J_READ, 0, 0, "read_even"},
	{J_SEQUENTIAL, 128, 0, NULL}, {J_WRITE, 0, 0, "write_first"},
	{J_SEQUENTIAL, 0, 0, NULL},   {J_READ, 0, 0, "read_all"},
	{J_WRITE, 0, 0, "write_all"}, {0},
};

static const struct j_step absent_logged_steps[] = {
	{J_EVEN, 100, 0, NULL},
	{J_READ, 0, 0, "read_even_logged"},
	{J_GET, 0, 0, "get_read"},
	{J_WRITE, 0, 0, "write_even_logged"},
	{J_GET, 0, 0, "get_write"},
	{J_SEQUENTIAL, 200, 30, NULL},
	{J_WRITE, 0, 0, "write_first_logged"},
	{J_GET, 0, 0, "get_first"},
	{J_INC, 0, 0, "inc_logged"},
	{J_GET, 0, 0, "get_inc"},
	{J_DONTNEED, 0, 0, "dontneed_all"},
	{J_GET, 0, 0, "get_dontneed"},
	{J_INC, 0, 0, "inc_absent_logged"},
	{J_GET, 0, 0, "get_inc_absent"},
	{0},
};

static const struct j_step absent_manual_steps[] = {
	{J_SEQUENTIAL, 0, 0, NULL},
	{J_LOG_ON, 0, 0, "enable_log"},
	{J_EVEN, 90, 0, NULL},
	{J_READ, 0, 0, "read_even_manual"},
	{J_GET, 0, 0, "get_1"},
	{J_WRITE, 0, 0, "write_even_manual"},
	{J_GET, 0, 0, "get_2"},
	{J_CLEAR, 0, 0, "clear_2"},
	{J_DONTNEED, 0, 0, "dontneed_manual"},
	{J_READ, 0, 0, "read_even_again"},
	{J_GET, 0, 0, "get_3"},
	{J_WRITE, 0, 0, "write_even_again"},
	{J_GET, 0, 0, "get_4"},
	{0},
};

static const struct j_step absent_ring_steps[] = {
	{J_SEQUENTIAL, 0, 0, NULL},
	{J_LOG_ON, 0, 0, "enable_log"},
	{J_EVEN, 90, 0, NULL},
	{J_READ, 0, 0, "read_even_ring"},
	{J_COLLECT, 0, 0, "collect_1"},
	{J_WRITE, 0, 0, "write_even_ring"},
	{J_RESET, 0, 0, "reset_2"},
	{J_DONTNEED, 0, 0, "dontneed_ring"},
	{J_READ, 0, 0, "read_even_ring2"},
	{J_WRITE, 0, 0, "write_even_ring2"},
	{J_RESET, 0, 0, "reset_3"},
	{0},
};

static const struct j_step huge_present_steps[] = {
	{J_SEQUENTIAL, 0, 0, NULL},
	{J_WRITE, 0, 0, "populate_write"},
	{J_DONTNEED, 64, 0, "dontneed64"},
	{J_SEQUENTIAL, 80, 0, NULL},
	{J_READ, 0, 0, "read80"},
	{J_WRITE, 0, 0, "write80"},
	{J_DONTNEED, 512, 512, "dontneed_block"},
	{J_SEQUENTIAL, 16, 600, NULL},
	{J_READ, 0, 0, "read_zero"},
	{J_WRITE, 0, 0, "write_zero"},
	{J_WRITE, 0, 0, "write_zero_again"},
	{J_DONTNEED, 512, 512, "dontneed_block2"},
	{J_WRITE, 0, 0, "write_fresh"},
	{J_RO, 10, 600, "ro_inside"},
	{J_SEQUENTIAL, 30, 590, NULL},
	{J_READ, 0, 0, "read_ro"},
	{J_RW, 10, 600, "rw_inside"},
	{J_WRITE, 0, 0, "write_rw"},
	{J_DONTNEED, 0, 0, "dontneed_all"},
	{J_RO, 0, 0, "ro_all"},
	{J_EVEN, 32, 0, NULL},
	{J_READ, 0, 0, "read_ro_zero"},
	{J_RW, 0, 0, "rw_all"},
	{J_READ, 0, 0, "read_rw_zero"},
	{J_WRITE, 0, 0, "write_rw_zero"},
	{0},
};

static const struct j_step huge_absent_steps[] = {
	{J_EVEN, 32, 0, NULL},
	{J_READ, 0, 0, "read_absent"},
	{J_WRITE, 0, 0, "write_absent"},
	{J_READ, 0, 0, "read_again"},
	{J_SEQUENTIAL, 0, 0, NULL},
	{J_WRITE, 0, 0, "write_all"},
	{J_DONTNEED, 0, 0, "dontneed_all"},
	{J_WRITE, 0, 0, "write_all_fresh"},
	{J_LOG_ON, 0, 0, "enable_log"},
	{J_EVEN, 16, 0, NULL},
	{J_READ, 0, 0, "read_logged"},
	{J_DONTNEED, 0, 0, "dontneed_logged"},
	{J_READ, 0, 0, "read_zero_logged"},
	{J_GET, 0, 0, "get_read"},
	{J_WRITE, 0, 0, "write_logged"},
	{J_GET, 0, 0, "get_write"},
	{J_NO_PAGES, 0, 0, NULL},
	{J_LOG_OFF, 0, 0, "disable_log"},
	{J_EVEN, 32, 0, NULL},
	{J_WRITE, 0, 0, "write_unlogged"},
	{0},
};

static const struct j_step huge_absent_logged_steps[] = {
	{J_EVEN, 20, 0, NULL},
	{J_READ, 0, 0, "read_absent_logged"},
	{J_GET, 0, 0, "get_1"},
	{J_WRITE, 0, 0, "write_absent_logged"},
	{J_GET, 0, 0, "get_2"},
	{J_SEQUENTIAL, 20, 30, NULL},
	{J_WRITE, 0, 0, "write_more"},
	{J_GET, 0, 0, "get_3"},
	{0},
};

static int change_host(struct matrix *m, const struct j_step *s)
{
	uint64_t n = s->n ? s->n : m->o->slot_pages - s->first;
	int err;

	if (s->first >= m->o->slot_pages || n > m->o->slot_pages - s->first)
		return kvmsim_err(m->o->errors, KVMSIM_EUNSUPPORTED,
				  "case %s, phase %s: the slot's %llu pages are too few",
				  m->o->test_case, s->phase, (unsigned long long)m->o->slot_pages);
	mx_begin(m, s->phase);
	if (s->what == J_DONTNEED)
		err = host_madvise_dontneed(m->t, m->kvm, MX_SLOT, s->first, n);
	else
		err = host_mprotect(m->t, m->kvm, MX_SLOT, s->first, n, s->what == J_RW);
	return err ? err : mx_end(m, NULL, 0);
}

static int step(struct matrix *m, const struct j_step *s, uint64_t *listed)
{
	uint64_t n = s->n ? s->n : m->o->slot_pages;

	switch (s->what) {
	case J_SEQUENTIAL:
	case J_EVEN:
	case J_NO_PAGES:
		mx_key(m,
		       s->what == J_EVEN	 ? MATRIX_EVEN
		       : s->what == J_SEQUENTIAL ? MATRIX_SEQUENTIAL
						 : MATRIX_NO_PATTERN,
		       (int64_t)n, m->round);
		m->first_page = s->first;
		*listed = n;
		return 0;
	case J_ROUND:
		mx_key(m, m->pattern, m->nr_dirty, s->n ? (int64_t)s->n : MATRIX_NONE);
		return 0;
	case J_WRITE:
		return mx_loop(m, s->phase, MX_CODE_WRITE, *listed);
	case J_READ:
		return mx_loop(m, s->phase, MX_CODE_READ, *listed);
	case J_INC:
		return mx_loop(m, s->phase, MX_CODE_INC, *listed);
	case J_LOG_ON:
	case J_LOG_OFF:
		return mx_log(m, s->phase, s->what == J_LOG_ON);
	case J_GET:
		return mx_get(m, s->phase);
	case J_CLEAR:
		return mx_clear(m, s->phase, m->o->slot_pages);
	case J_COLLECT:
		return mx_rings(m, s->phase, MX_COLLECT);
	case J_RESET:
		return mx_rings(m, s->phase, MX_COLLECT | MX_RESET);
	default:
		return change_host(m, s);
	}
}

static int run(struct matrix *m, const struct j_step *s)
{
	uint64_t listed = 0;
	int err = 0;

	m->first_page = 0;
	for (; s->what && !err; s++)
		err = step(m, s, &listed);
	return err;
}

static int j(struct matrix *m)
{
	return run(m, j_steps);
}

static int j_mid(struct matrix *m)
{
	return run(m, j_mid_steps);
}

static int absent_unlogged(struct matrix *m)
{
	return run(m, absent_unlogged_steps);
}

static int absent_logged(struct matrix *m)
{
	return run(m, absent_logged_steps);
}

static int absent_manual(struct matrix *m)
{
	return run(m, absent_manual_steps);
}

static int absent_ring(struct matrix *m)
{
	return run(m, absent_ring_steps);
}

static int huge_present(struct matrix *m)
{
	return run(m, huge_present_steps);
}

static int huge_absent(struct matrix *m)
{
	return run(m, huge_absent_steps);
}

static int huge_absent_logged(struct matrix *m)
{
	return run(m, huge_absent_logged_steps);
}

static int vm(struct matrix *m, const char *dirty, uint32_t flags, int (*body)(struct matrix *m))
{
	m->dirty = dirty;
	m->host_anonymous = true;
	return mx_vm(m, flags, body);
}

int mx_case_j(struct matrix *m)
{
	return vm(m, NULL, 0, j);
}

int mx_case_j_mid(struct matrix *m)
{
	return vm(m, NULL, 0, j_mid);
}

int mx_case_j_absent(struct matrix *m)
{
	int err;

	m->host_absent = true;
	err = vm(m, NULL, 0, absent_unlogged);
	err = err ? err : vm(m, NULL, KVM_MEM_LOG_DIRTY_PAGES, absent_logged);
	err = err ? err : vm(m, "manual", 0, absent_manual);
	return err ? err : vm(m, "ring,size=1024", 0, absent_ring);
}

int mx_case_j_huge(struct matrix *m)
{
	int err;

	m->host_level = 2;
	err = vm(m, NULL, 0, huge_present);
	m->host_absent = true;
	err = err ? err : vm(m, NULL, 0, huge_absent);
	return err ? err : vm(m, NULL, KVM_MEM_LOG_DIRTY_PAGES, huge_absent_logged);
}
