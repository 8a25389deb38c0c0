// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "workloads/matrix_scene.h"

static const struct matrix_case {
	const char *name;
	int (*run)(struct matrix *m);
	bool tdp; /* what it does is modelled on the TDP MMU too */
} cases[] = {
	{"A", mx_case_a, true},
	{"B", mx_case_b, true},
	{"C_cap1", mx_case_c_cap1, true},
	{"C_cap3", mx_case_c_cap3, true},
	{"C_store1", mx_case_c_store1, true},
	{"C_store3", mx_case_c_store3, true},
	{"D", mx_case_d, true},
	{"D_256", mx_case_d_256, true},
	{"D_4096", mx_case_d_4096, true},
	{"D_mix", mx_case_d_mix, true},
	{"D_2vcpu", mx_case_d_2vcpu, true},
	{"E_caching0", mx_case_e_caching0, true},
	{"E_caching1", mx_case_e_caching1, true},
	{"F_2vcpu", mx_case_f_2vcpu, false},
	{"F_ad_2m", mx_case_f_ad_2m, false},
	{"F_ad_4k", mx_case_f_ad_4k, false},
	{"F_cr3_2sep", mx_case_f_cr3, false},
	{"F_cr3_2shared", mx_case_f_cr3, false},
	{"F_cr3_4sep", mx_case_f_cr3, false},
	{"F_cr3_4shared", mx_case_f_cr3, false},
	{"F_cr3_5sep", mx_case_f_cr3, false},
	{"F_cr3_5shared", mx_case_f_cr3, false},
	{"F_cr3_6sep", mx_case_f_cr3, false},
	{"F_cr3_6shared", mx_case_f_cr3, false},
	{"F_flood_2then1", mx_case_f_flood, false},
	{"F_flood_inc", mx_case_f_flood, false},
	{"F_flood_unused", mx_case_f_flood, false},
	{"F_flood_unused_read", mx_case_f_flood, false},
	{"F_flood_used", mx_case_f_flood, false},
	{"F_flood_used_read", mx_case_f_flood, false},
	{"F_flood_w1_off0", mx_case_f_flood, false},
	{"F_flood_w1_off1", mx_case_f_flood, false},
	{"F_flood_w4_off4", mx_case_f_flood, false},
	{"F_flood_xchg8", mx_case_f_flood, false},
	{"F_pde", mx_case_f_pde, false},
	{"F_pde1", mx_case_f_pde1, false},
	{"F_pde_inv_read", mx_case_f_pde_inv_read, false},
	{"F_pde_read", mx_case_f_pde_read, false},
	{"F_pml4", mx_case_f_pml4, false},
	{"F_ptebytes", mx_case_f_ptebytes, false},
	{"F_recycle", mx_case_f_recycle, false},
	{"F_remap", mx_case_f_remap, false},
	{"F_remap8", mx_case_f_remap8, false},
	{"F_remap8_inv", mx_case_f_remap8_inv, false},
	{"F_remap_inv", mx_case_f_remap_inv, false},
	{"F_rorw", mx_case_f_rorw, false},
	{"F_sync_2vcpu", mx_case_f_sync_2vcpu, false},
	{"F_sync_above", mx_case_f_sync_above, false},
	{"F_sync_alias", mx_case_f_sync_alias, false},
	{"F_sync_batch", mx_case_f_sync_batch, false},
	{"F_sync_directory", mx_case_f_sync_directory, false},
	{"F_sync_inc", mx_case_f_sync_inc, false},
	{"F_sync_kinds", mx_case_f_sync_kinds, false},
	{"F_sync_logged", mx_case_f_sync_logged, false},
	{"F_sync_mmio", mx_case_f_sync_mmio, false},
	{"F_sync_notifier", mx_case_f_sync_notifier, false},
	{"F_sync_recycle", mx_case_f_sync_recycle, false},
	{"F_sync_relink", mx_case_f_sync_relink, false},
	{"F_sync_roots", mx_case_f_sync_roots, false},
	{"F_sync_roots_mid", mx_case_f_sync_roots_mid, false},
	{"F_sync_selfmap", mx_case_f_sync_selfmap, false},
	{"F_sync_slots", mx_case_f_sync_slots, false},
	{"F_wpt", mx_case_f_wpt, false},
	{"G_eagerY", mx_case_g_eager_y, true},
	{"G_eagerN", mx_case_g_eager_n, true},
	{"G_mixY", mx_case_g_mix_y, true},
	{"G_mixN", mx_case_g_mix_n, true},
	{"H", mx_case_h, true},
	{"I", mx_case_i, true},
	{"J", mx_case_j, true},
	{"J_mid", mx_case_j_mid, true},
	{"J_absent", mx_case_j_absent, true},
	{"J_huge", mx_case_j_huge, true},
	{"P_quiet", mx_case_p_quiet, true},
	{"P_get", mx_case_p_get, true},
	{"P_clear", mx_case_p_clear, true},
	{"M_clean", mx_case_modes, true},
	{"M_cr3", mx_case_modes, true},
	{"M_cr4", mx_case_modes, true},
	{"M_even", mx_case_modes, true},
	{"M_nx", mx_case_modes, true},
	{"M_pdes", mx_case_modes, true},
	{"M_pg", mx_case_modes, true},
	{"M_ptes", mx_case_modes, true},
	{"M_ro", mx_case_modes, true},
	{"M_smap", mx_case_modes, true},
	{"M_smep", mx_case_modes, true},
	{"M_user", mx_case_modes, true},
	{"M_wp", mx_case_modes, true},
	{"N", mx_case_n, true},
};

static const struct matrix_case *find_case(const char *name)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (!strcmp(cases[i].name, name))
			return &cases[i];
	}
	return NULL;
}

bool matrix_has_case(const char *name)
{
	return find_case(name) != NULL;
}

bool matrix_case_on(const char *name, enum mmu_kind mmu)
{
	const struct matrix_case *c = find_case(name);

	return c && (c->tdp || mmu != MMU_TDP);
}

int matrix_mmu_find(const char *name, enum matrix_guest *guest)
{
	static const struct {
		const char *suffix;
		enum matrix_guest guest;
	} suffixes[] = {{"", MATRIX_GUEST_OF_MMU},
			{"-pae", MATRIX_GUEST_PAE},
			{"-32bit", MATRIX_GUEST_32BIT}};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		for (int k = 0; k < N_MMU_KINDS; k++) {
			const char *mmu = mmu_kind_name((enum mmu_kind)k);
			size_t len = strlen(mmu);

			*guest = suffixes[i].guest;
			/* a 32-bit guest that pages has shadow tables as a 64-bit one has */
			if (*guest && k == MMU_SHADOW_FLAT32)
				continue;
			if (*guest && k == MMU_SHADOW_LONG64)
				len = strlen("npt0");
			if (!strncmp(name, mmu, len) && !strcmp(name + len, suffixes[i].suffix))
				return k;
		}
	}
	return -1;
}

/* ---- patterns ---- */

static const char *const pattern_names[N_MATRIX_PATTERNS] = {
	[MATRIX_NO_PATTERN] = "-",
	[MATRIX_EVEN] = "even",
	[MATRIX_SEQUENTIAL] = "sequential",
	[MATRIX_RANDOM] = "random",
	[MATRIX_CLUSTERED16] = "clustered16",
	[MATRIX_HALVES] = "halves",
	[MATRIX_ROUNDROBIN] = "roundrobin",
	[MATRIX_W1] = "w1",
	[MATRIX_W4] = "w4",
	[MATRIX_W8] = "w8",
	[MATRIX_XCHG8] = "xchg8",
};

const char *matrix_pattern_name(enum matrix_pattern p)
{
	return pattern_names[p];
}

int matrix_pattern_find(const char *name)
{
	for (int p = 0; p < N_MATRIX_PATTERNS; p++) {
		if (!strcmp(pattern_names[p], name))
			return p;
	}
	return -1;
}

static int random_pages(uint64_t slot_pages, uint64_t n, uint32_t *pages)
{
	uint64_t x = 12345 + n;
	bool *taken = calloc(slot_pages, sizeof(*taken));

	if (!taken)
		return KVMSIM_ENOMEM;
	for (uint64_t i = 0; i < n;) {
		uint64_t page;

		x = x * 6364136223846793005ull + 1442695040888963407ull;
		page = (x >> 33) % slot_pages;
		if (!taken[page]) {
			taken[page] = true;
			pages[i++] = (uint32_t)page;
		}
	}
	free(taken);
	return 0;
}

int matrix_pages(enum matrix_pattern p, uint64_t slot_pages, uint64_t n, uint32_t *pages)
{
	uint64_t runs = (n + 15) / 16;

	if (n > slot_pages || slot_pages > UINT32_MAX)
		return KVMSIM_EINVAL;
	switch (p) {
	case MATRIX_EVEN:
		for (uint64_t i = 0; i < n; i++)
			pages[i] = (uint32_t)(i * slot_pages / n);
		return 0;
	case MATRIX_SEQUENTIAL:
	case MATRIX_HALVES:
		for (uint64_t i = 0; i < n; i++)
			pages[i] = (uint32_t)i;
		return 0;
	case MATRIX_RANDOM:
		return random_pages(slot_pages, n, pages);
	case MATRIX_CLUSTERED16:
		for (uint64_t i = 0; i < n; i++)
			pages[i] = (uint32_t)(i / 16 * slot_pages / runs / 16 * 16 + i % 16);
		return 0;
	default:
		return KVMSIM_EINVAL;
	}
}

/* ---- running ---- */

static int check_config(const struct matrix_opts *o)
{
	bool pages = o->pte != MATRIX_PTE_NONE;

	if (pages == (o->mmu == MMU_SHADOW_FLAT32))
		return kvmsim_err(o->errors, KVMSIM_EUNSUPPORTED,
				  "case %s: the guest of %s has %s page tables", o->test_case,
				  mmu_kind_name(o->mmu), pages ? "no" : "2M or 4K");
	if (!o->slot_pages || o->slot_pages > MX_MAX_SLOT_PAGES ||
	    (o->pte == MATRIX_PTE_4K && o->slot_pages > MX_MAX_CHUNKS * 512))
		return kvmsim_err(o->errors, KVMSIM_EUNSUPPORTED,
				  "case %s: a slot of %llu pages does not fit this guest",
				  o->test_case, (unsigned long long)o->slot_pages);
	return 0;
}

int matrix_run(const struct matrix_opts *opts)
{
	const struct matrix_case *c = find_case(opts->test_case);
	struct matrix *m;
	int err;

	if (!c && !opts->program)
		return kvmsim_err(opts->errors, KVMSIM_ENOENT, "no case '%s' in the matrix",
				  opts->test_case);
	err = check_config(opts);
	if (err)
		return err;
	m = calloc(1, sizeof(*m));
	if (m) {
		m->pages = malloc(MX_LIST_ENTRIES * sizeof(*m->pages));
		m->bitmap = calloc(
			(opts->slot_pages > MX_SLOT0_PAGES ? opts->slot_pages : MX_SLOT0_PAGES) /
					64 +
				1,
			sizeof(*m->bitmap));
	}
	if (!m || !m->pages || !m->bitmap) {
		err = kvmsim_err(opts->errors, KVMSIM_ENOMEM, "matrix: out of memory");
	} else {
		m->o = opts;
		m->counters.trace = opts->trace;
		err = opts->program ? mx_case_program(m) : c->run(m);
	}
	if (m) {
		free(m->pages);
		free(m->bitmap);
		free(m->seen);
	}
	free(m);
	return err;
}
