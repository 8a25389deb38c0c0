// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "workloads/matrix_modes.h"

#define PAGES_SEQUENTIAL(n)                                                                        \
	{                                                                                          \
		PAGES, NULL, NULL, MATRIX_SEQUENTIAL, n                                            \
	}

static const struct mx_mode_step steps_clean[] = {
	{VM, NULL, "clean", 0, 0},
	PAGES_SEQUENTIAL(40),
	{READ, "read_clean", NULL, 0, 0},
	{WRITE, "write_clean", NULL, 0, 0},
	{WRITE, "write_again", NULL, 0, 0},
	{VM, NULL, "clean", 0, 0},
	{PAGES, NULL, NULL, MATRIX_EVEN, 40},
	{WRITE, "write_even", NULL, 0, 0},
	{0},
};

static const struct mx_mode_step steps_cr3[] = {
	{VM, NULL, "", 0, 0},
	PAGES_SEQUENTIAL(40),
	{WRITE, "populate", NULL, 0, 0},
	{CR3, "cr3_same", NULL, 0, 0},
	{WRITE, "write_same", NULL, 0, 0},
	{CR3, "cr3_1", NULL, 0, 1},
	{WRITE, "write_root1", NULL, 0, 0},
	{CR3, "cr3_0", NULL, 0, 0},
	{WRITE, "write_root0", NULL, 0, 0},
	{CR3, "cr3_1_again", NULL, 0, 1},
	{WRITE, "write_root1_again", NULL, 0, 0},
	{MOV, "wp_off", "wp=0", 0, 0},
	{WRITE, "write_root1_nowp", NULL, 0, 0},
	{CR3, "cr3_0_nowp", NULL, 0, 0},
	{WRITE, "write_root0_nowp", NULL, 0, 0},
	{MOV, "wp_on", "wp=1", 0, 0},
	{WRITE, "write_root0_wp", NULL, 0, 0},
	{0},
};

static const struct mx_mode_step steps_cr4[] = {
	{VM, NULL, "", 0, 0},
	PAGES_SEQUENTIAL(40),
	{WRITE, "populate", NULL, 0, 0},
	{MOV, "pge_on", "pge=1", 0, 0},
	{WRITE, "write_pge", NULL, 0, 0},
	{MOV, "pge_off", "pge=0", 0, 0},
	{WRITE, "write_no_pge", NULL, 0, 0},
	{MOV, "pge_on_2", "pge=1,smep=0", 0, 0},
	{MOV, "wp_same", "wp=1", 0, 0},
	{WRITE, "write_same", NULL, 0, 0},
	{MOV, "pse_on", "pse=1", 0, 0},
	{WRITE, "write_pse", NULL, 0, 0},
	{MOV, "pse_off", "pse=0", 0, 0},
	{WRITE, "write_no_pse", NULL, 0, 0},
	{0},
};

static const struct mx_mode_step steps_even[] = {
	{VM, NULL, "", 0, 0},
	{PAGES, NULL, NULL, MATRIX_EVEN, 40},
	{WRITE, "populate", NULL, 0, 0},
	{STORE_PTES, "store_same", "same", 0, 0},
	{WRITE, "write_same", NULL, 0, 0},
	{INVLPG, "invlpg_same", NULL, 0, 0},
	{WRITE, "write_invlpg", NULL, 0, 0},
	{STORE_PTES, "store_ro", "ro", 0, 0},
	{INVLPG, "invlpg_ro", NULL, 0, 0},
	{READ, "read_ro", NULL, 0, 0},
	{STORE_PTES, "store_rw", "rw", 0, 0},
	{INVLPG, "invlpg_rw", NULL, 0, 0},
	{WRITE, "write_rw", NULL, 0, 0},
	{0},
};

static const struct mx_mode_step steps_nx[] = {
	{VM, NULL, "", 0, 0},
	PAGES_SEQUENTIAL(40),
	{WRITE, "populate", NULL, 0, 0},
	{MOV, "nxe_on", "nxe=1", 0, 0},
	{WRITE, "write_nxe", NULL, 0, 0},
	{MOV, "nxe_off", "nxe=0", 0, 0},
	{WRITE, "write_no_nxe", NULL, 0, 0},
	{VM, NULL, "nx-ptes", 0, 0},
	PAGES_SEQUENTIAL(40),
	{WRITE, "populate_nx", NULL, 0, 0},
	{READ, "read_nx", NULL, 0, 0},
	{MOV, "wp_off", "wp=0", 0, 0},
	{WRITE, "write_nx_nowp", NULL, 0, 0},
	{0},
};

static const struct mx_mode_step steps_pdes[] = {
	{VM, NULL, "", 0, 0},
	PAGES_SEQUENTIAL(24),
	{WRITE, "populate", NULL, 0, 0},
	PAGES_SEQUENTIAL(1),
	{STORE_PDES, "store_one", "same", 0, 0},
	PAGES_SEQUENTIAL(24),
	{WRITE, "write_one", NULL, 0, 0},
	PAGES_SEQUENTIAL(1),
	{STORE_PDES, "store_two", "same", 0, 0},
	{STORE_PDES, "store_two_more", "same", 0, 0},
	PAGES_SEQUENTIAL(24),
	{WRITE, "write_two", NULL, 0, 0},
	PAGES_SEQUENTIAL(3),
	{STORE_PDES, "store_flood", "same", 0, 0},
	PAGES_SEQUENTIAL(24),
	{WRITE, "write_flood", NULL, 0, 0},
	PAGES_SEQUENTIAL(1),
	{STORE_PDES, "store_ro", "ro", 0, 0},
	{INVLPG, "invlpg_ro", NULL, 0, 0},
	{READ, "read_ro", NULL, 0, 0},
	{STORE_PDES, "store_rw", "rw", 0, 0},
	{INVLPG, "invlpg_rw", NULL, 0, 0},
	{WRITE, "write_rw", NULL, 0, 0},
	{0},
};

static const struct mx_mode_step steps_pg[] = {
	{VM, NULL, "", 0, 0},
	PAGES_SEQUENTIAL(40),
	{WRITE, "populate", NULL, 0, 0},
	{MOV, "pg_off", "pg=0", 0, 0},
	{WRITE, "write_flat", NULL, 0, 0},
	{MOV, "pg_on", "pg=1", 0, 0},
	{WRITE, "write_paging", NULL, 0, 0},
	{MOV, "pg_off_2", "pg=0", 0, 0},
	{READ, "read_flat", NULL, 0, 0},
	{MOV, "pg_on_2", "pg=1", 0, 0},
	{READ, "read_paging", NULL, 0, 0},
	{0},
};

static const struct mx_mode_step steps_ptes[] = {
	{VM, NULL, "", 0, 0},
	PAGES_SEQUENTIAL(24),
	{WRITE, "populate", NULL, 0, 0},
	{STORE_PTES, "store_same", "same", 0, 0},
	{INVLPG, "invlpg_same", NULL, 0, 0},
	{WRITE, "write_same", NULL, 0, 0},
	{STORE_PTES, "store_ro", "ro", 0, 0},
	{INVLPG, "invlpg_ro", NULL, 0, 0},
	{READ, "read_ro", NULL, 0, 0},
	{STORE_PTES, "store_rw", "rw", 0, 0},
	{INVLPG, "invlpg_rw", NULL, 0, 0},
	{WRITE, "write_rw", NULL, 0, 0},
	{STORE_PTES, "store_swap", "swap", 0, 0},
	{INVLPG, "invlpg_swap", NULL, 0, 0},
	{WRITE, "write_swap", NULL, 0, 0},
	{STORE_PTES, "store_clean", "clean", 0, 0},
	{INVLPG, "invlpg_clean", NULL, 0, 0},
	{READ, "read_clean", NULL, 0, 0},
	{WRITE, "write_clean", NULL, 0, 0},
	{0},
};

static const struct mx_mode_step steps_ro[] = {
	{VM, NULL, "readonly", 0, 0},
	PAGES_SEQUENTIAL(40),
	{READ, "read_slot", NULL, 0, 0},
	{WRITE, "write_slot", NULL, 0, 0},
	{READ, "read_slot_again", NULL, 0, 0},
	{VM, NULL, "readonly", 0, 0},
	PAGES_SEQUENTIAL(40),
	{WRITE, "write_unmapped", NULL, 0, 0},
	{READ, "read_after_write", NULL, 0, 0},
	{PAGES, NULL, NULL, MATRIX_EVEN, 40},
	{READ, "read_even", NULL, 0, 0},
	{0},
};

static const struct mx_mode_step steps_smap[] = {
	{VM, NULL, "kernel-all", 0, 0},		PAGES_SEQUENTIAL(40),
	{WRITE, "populate", NULL, 0, 0},	{MOV, "smap_on", "smap=1", 0, 0},
	{WRITE, "write_smap", NULL, 0, 0},	{MOV, "wp_off", "wp=0", 0, 0},
	{WRITE, "write_smap_nowp", NULL, 0, 0}, {MOV, "both_off", "smap=0,smep=0", 0, 0},
	{WRITE, "write_nowp", NULL, 0, 0},	{MOV, "both_on", "smap=1,smep=1", 0, 0},
	{WRITE, "write_both_nowp", NULL, 0, 0}, {MOV, "wp_on", "wp=1", 0, 0},
	{WRITE, "write_both", NULL, 0, 0},	{0},
};

static const struct mx_mode_step steps_smep[] = {
	{VM, NULL, "kernel", 0, 0},
	PAGES_SEQUENTIAL(40),
	{WRITE, "populate", NULL, 0, 0},
	{MOV, "smep_on", "smep=1", 0, 0},
	{WRITE, "write_smep", NULL, 0, 0},
	{MOV, "wp_off", "wp=0", 0, 0},
	{WRITE, "write_smep_nowp", NULL, 0, 0},
	{MOV, "smep_off", "smep=0", 0, 0},
	{WRITE, "write_nowp", NULL, 0, 0},
	{MOV, "smep_on_nowp", "smep=1", 0, 0},
	{WRITE, "write_smep_nowp_2", NULL, 0, 0},
	{MOV, "wp_on", "wp=1", 0, 0},
	{WRITE, "write_smep_2", NULL, 0, 0},
	{VM, NULL, "kernel ro-ptes", 0, 0},
	PAGES_SEQUENTIAL(40),
	{READ, "read_ro", NULL, 0, 0},
	{MOV, "smep_on_ro", "smep=1", 0, 0},
	{MOV, "wp_off_ro", "wp=0", 0, 0},
	{WRITE, "write_ro_smep", NULL, 0, 0},
	{READ, "read_ro_smep", NULL, 0, 0},
	{0},
};

static const struct mx_mode_step steps_user[] = {
	{VM, NULL, "", 0, 0},
	PAGES_SEQUENTIAL(40),
	{WRITE, "populate", NULL, 0, 0},
	{SREGS, "to_user", "cpl=3", 0, 0},
	{WRITE, "write_user", NULL, 0, 0},
	{READ, "read_user", NULL, 0, 0},
	{STORE_PTES, "store_user", "same", 0, 0},
	{WRITE, "write_after_store", NULL, 0, 0},
	{SREGS, "user_smep", "smep=1,smap=1", 0, 0},
	{WRITE, "write_user_smep", NULL, 0, 0},
	{VM, NULL, "clean", 0, 0},
	{SREGS, "clean_user", "cpl=3", 0, 0},
	PAGES_SEQUENTIAL(40),
	{READ, "read_clean", NULL, 0, 0},
	{WRITE, "write_clean", NULL, 0, 0},
	{0},
};

static const struct mx_mode_step steps_wp[] = {
	{VM, NULL, "ro-ptes", 0, 0},
	PAGES_SEQUENTIAL(40),
	{READ, "read_ro", NULL, 0, 0},
	{MOV, "wp_off", "wp=0", 0, 0},
	{WRITE, "write_nowp", NULL, 0, 0},
	{WRITE, "write_nowp_again", NULL, 0, 0},
	{READ, "read_nowp", NULL, 0, 0},
	{MOV, "wp_on", "wp=1", 0, 0},
	{READ, "read_wp", NULL, 0, 0},
	{MOV, "wp_off", "wp=0", 0, 0},
	{WRITE, "write_nowp_2", NULL, 0, 0},
	{SREGS, "to_user", "cpl=3", 0, 0},
	{READ, "read_user", NULL, 0, 0},
	{SREGS, "to_kernel", "cpl=0", 0, 0},
	{WRITE, "write_kernel", NULL, 0, 0},
	{SREGS, "sregs_wp", "wp=1", 0, 0},
	{READ, "read_kernel", NULL, 0, 0},
	{VM, NULL, "ro-ptes logged", 0, 0},
	PAGES_SEQUENTIAL(40),
	{MOV, "wp_off_logged", "wp=0", 0, 0},
	{WRITE, "write_logged", NULL, 0, 0},
	{GET, "get_dirty_log", NULL, 0, 0},
	{WRITE, "write_logged_2", NULL, 0, 0},
	{GET, "get_dirty_log_2", NULL, 0, 0},
	{VM, NULL, "ro-ptes clean", 0, 0},
	PAGES_SEQUENTIAL(40),
	{MOV, "wp_off_clean", "wp=0", 0, 0},
	{WRITE, "write_clean", NULL, 0, 0},
	{READ, "read_clean", NULL, 0, 0},
	{MOV, "wp_on_clean", "wp=1", 0, 0},
	{READ, "read_clean_wp", NULL, 0, 0},
	{0},
};

const struct mx_mode_step *mx_mode_steps(const char *test_case)
{
	static const struct {
		const char *name;
		const struct mx_mode_step *steps;
	} scripts[] = {
		{"M_clean", steps_clean}, {"M_cr3", steps_cr3},	  {"M_cr4", steps_cr4},
		{"M_even", steps_even},	  {"M_ro", steps_ro},	  {"M_nx", steps_nx},
		{"M_pdes", steps_pdes},	  {"M_pg", steps_pg},	  {"M_ptes", steps_ptes},
		{"M_smap", steps_smap},	  {"M_smep", steps_smep}, {"M_user", steps_user},
		{"M_wp", steps_wp},
	};

	for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++)
		if (!strcmp(scripts[i].name, test_case))
			return scripts[i].steps;
	return NULL;
}
