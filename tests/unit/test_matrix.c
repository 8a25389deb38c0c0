// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/matrix_timer.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"
#include "workloads/matrix_scene.h"

static char message[256];

static void keep_message(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(message, sizeof(message), "%s", msg);
}
static const struct kvmsim_errsink sink = {keep_message, NULL};

/* ---- patterns: from the reference's definitions, worked out with arbitrary precision ---- */

static void patterns(void)
{
	static const uint32_t random8[] = {3245, 1983, 1630, 3347, 3773, 2198, 557, 547};
	static const uint32_t even7[] = {0, 73, 146, 219, 292, 365, 438};
	uint32_t p[64], sum = 0;

	CU_ASSERT_EQUAL(matrix_pages(MATRIX_RANDOM, 4096, 8, p), 0);
	CU_ASSERT_EQUAL(memcmp(p, random8, sizeof(random8)), 0);
	CU_ASSERT_EQUAL(matrix_pages(MATRIX_RANDOM, 512, 64, p), 0);
	for (int i = 0; i < 64; i++)
		sum += p[i];
	CU_ASSERT_EQUAL(p[0], 418);
	CU_ASSERT_EQUAL(p[63], 317);
	CU_ASSERT_EQUAL(sum, 16675);
	CU_ASSERT_EQUAL(matrix_pages(MATRIX_EVEN, 512, 7, p), 0);
	CU_ASSERT_EQUAL(memcmp(p, even7, sizeof(even7)), 0);
	CU_ASSERT_EQUAL(matrix_pages(MATRIX_SEQUENTIAL, 64, 64, p), 0);
	CU_ASSERT_EQUAL(p[63], 63);
	CU_ASSERT_EQUAL(matrix_pages(MATRIX_CLUSTERED16, 512, 40, p), 0);
	CU_ASSERT_EQUAL(p[15], 15);
	CU_ASSERT_EQUAL(p[16], 160);
	CU_ASSERT_EQUAL(p[31], 175);
	CU_ASSERT_EQUAL(p[32], 336);
	CU_ASSERT_EQUAL(matrix_pages(MATRIX_EVEN, 8, 9, p), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(matrix_pages(MATRIX_NO_PATTERN, 8, 1, p), KVMSIM_EINVAL);
}

static void pattern_names(void)
{
	for (int p = 0; p < N_MATRIX_PATTERNS; p++)
		CU_ASSERT_EQUAL(matrix_pattern_find(matrix_pattern_name((enum matrix_pattern)p)),
				p);
	CU_ASSERT_EQUAL(matrix_pattern_find("roundabout"), -1);
}

/* ---- the reference's names of events ---- */

static struct mx_counters counters;

/* The only kind's name of one event, counted once. */
static const char *kind_of(struct kvm_trace_event e)
{
	static struct matrix_quantity q[4];

	memset(&counters, 0, sizeof(counters));
	counters.on = true;
	mx_count_event(&counters, &e);
	if (mx_event_quantities(&counters, q, 4) < 1)
		return "none";
	return q[0].name;
}

static void event_names(void)
{
	static const struct {
		struct kvm_trace_event e;
		const char *name;
	} all[] = {
		{{.id = TRACE_kvm_entry}, "ev:kvm_entry"},
		{{.id = TRACE_kvm_exit, .code = EXIT_PF}, "ev:kvm_exit[PF]"},
		{{.id = TRACE_kvm_exit, .code = EXIT_CR3_WRITE}, "ev:kvm_exit[write_cr3]"},
		{{.id = TRACE_kvm_exit, .code = 0x72}, "ev:kvm_exit[0x72]"},
		{{.id = TRACE_kvm_page_fault, .code = PFERR_PRESENT | PFERR_WRITE},
		 "ev:kvm_page_fault[ec=0x3]"},
		{{.id = TRACE_kvm_page_fault, .code = PFERR_GUEST_FINAL | PFERR_FETCH | PFERR_USER},
		 "ev:kvm_page_fault[ec=GPA_FINAL|0x14]"},
		{{.id = TRACE_kvm_page_fault, .code = PFERR_GUEST_PAGE | PFERR_WRITE | PFERR_USER},
		 "ev:kvm_page_fault[ec=GUEST_PT|0x6]"},
		{{.id = TRACE_kvm_mmu_get_page, .level = 4, .created = true},
		 "ev:kvm_mmu_get_page[l4,gpte,new]"},
		{{.id = TRACE_kvm_mmu_get_page, .level = 1, .direct = true},
		 "ev:kvm_mmu_get_page[l1,direct,existing]"},
		{{.id = TRACE_kvm_mmu_set_spte, .level = 1, .writable = true},
		 "ev:kvm_mmu_set_spte[l1,w]"},
		{{.id = TRACE_kvm_mmu_set_spte, .level = 1}, "ev:kvm_mmu_set_spte[l1,ro]"},
		{{.id = TRACE_kvm_mmu_spte_requested, .level = 2}, "ev:kvm_mmu_spte_requested[l2]"},
		{{.id = TRACE_kvm_mmu_sync_page, .level = 1, .unsync = true},
		 "ev:kvm_mmu_sync_page[l1,gpte,unsync]"},
		{{.id = TRACE_kvm_mmu_prepare_zap_page, .level = 2},
		 "ev:kvm_mmu_prepare_zap_page[l2,gpte]"},
		{{.id = TRACE_fast_page_fault, .code = RET_PF_INVALID},
		 "ev:fast_page_fault[INVALID]"},
		{{.id = TRACE_kvm_userspace_exit, .code = KVM_EXIT_MMIO},
		 "ev:kvm_userspace_exit[MMIO]"},
		{{.id = TRACE_kvm_mmu_pagetable_walk, .code = PFERR_FETCH},
		 "ev:kvm_mmu_pagetable_walk[0x10]"},
		{{.id = TRACE_kvm_mmu_paging_element, .level = 3}, "ev:kvm_mmu_paging_element[l3]"},
		{{.id = TRACE_check_mmio_spte}, "ev:check_mmio_spte[stale]"},
		{{.id = TRACE_kvm_mmio, .code = 2}, "ev:kvm_mmio[write]"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		CU_ASSERT_STRING_EQUAL(kind_of(all[i].e), all[i].name);
}

static void event_totals(void)
{
	const struct kvm_trace_event l1 = {.id = TRACE_kvm_mmu_paging_element, .level = 1};
	const struct kvm_trace_event l2 = {.id = TRACE_kvm_mmu_paging_element, .level = 2};
	struct matrix_quantity q[4];

	memset(&counters, 0, sizeof(counters));
	mx_count_event(&counters, &l1); /* outside a phase */
	counters.on = true;
	mx_count_event(&counters, &l2);
	mx_count_event(&counters, &l1);
	mx_count_event(&counters, &l2);
	CU_ASSERT_EQUAL(mx_event_quantities(&counters, q, 4), 3);
	CU_ASSERT_EQUAL(q[0].value, 2);
	CU_ASSERT_STRING_EQUAL(q[0].name, "ev:kvm_mmu_paging_element[l2]");
	CU_ASSERT_EQUAL(q[1].value, 1);
	CU_ASSERT_STRING_EQUAL(q[2].name, "ev:kvm_mmu_paging_element");
	CU_ASSERT_EQUAL(q[2].value, 3);
	CU_ASSERT_EQUAL(mx_event_quantities(&counters, q, 2), KVMSIM_ENOMEM);
}

/* ---- runs ---- */

struct seen {
	char phases[512]; /* names in order, with occurrences */
	int64_t pages_4k; /* gauge after the last phase */
	int64_t ndirty;	  /* of the last phase that has it */
};

static int on_phase(void *ctx, const struct matrix_phase *p)
{
	struct seen *s = ctx;
	size_t n = strlen(s->phases);

	snprintf(s->phases + n, sizeof(s->phases) - n, "%s/%u ", p->name, p->occurrence);
	for (size_t i = 0; i < p->n_quantities; i++) {
		if (!strcmp(p->quantities[i].name, "stat:pages_4k"))
			s->pages_4k = (int64_t)p->quantities[i].abs_after;
		if (!strcmp(p->quantities[i].name, "res:ndirty"))
			s->ndirty = p->quantities[i].value;
	}
	return 0;
}

static int run(struct matrix_opts o, struct seen *s)
{
	struct profile *profile;
	int err = cli_profile("tcg-icount", &profile);

	memset(s, 0, sizeof(*s));
	o.profile = profile;
	o.check = true;
	o.phase = on_phase;
	o.ctx = s;
	o.errors = &sink;
	err = err ? err : matrix_run(&o);
	profile_free(profile);
	return err;
}

/* With the model's checkers on, on every MMU and policy: sptes, rmaps, TLBs, stores. */
static void runs_pass_the_checkers(void)
{
	static const char *const policies[] = {"mask", "rmap-slot", "walk"};
	static const struct matrix_round rounds[] = {{MATRIX_CLUSTERED16, 40, 1},
						     {MATRIX_RANDOM, 33, 1}};

	for (int mmu = 0; mmu < N_MMU_KINDS; mmu++) {
		for (int p = 0; p < 3; p++) {
			struct matrix_opts o = {.test_case = "B",
						.mmu = (enum mmu_kind)mmu,
						.dirty = policies[p],
						.slot_pages = 600,
						.pte = mmu == MMU_SHADOW_FLAT32 ? MATRIX_PTE_NONE
										: MATRIX_PTE_4K,
						.rounds = rounds,
						.n_rounds = 2};
			struct seen s;

			if (mmu == MMU_TDP && p == 2) { /* no shadow pages to walk */
				CU_ASSERT_EQUAL(run(o, &s), KVMSIM_EUNSUPPORTED);
				continue;
			}
			CU_ASSERT_EQUAL(run(o, &s), 0);
			CU_ASSERT_EQUAL(s.ndirty, 600);
			CU_ASSERT_STRING_EQUAL(
				s.phases,
				"setup/1 populate_write/1 enable_log/1 get_empty_after_enable/1 "
				"dirty_all/1 get_all/1 write/1 get_dirty_log/1 write/1 "
				"get_dirty_log/1 disable_log/1 write_after_disable/1 "
				"enable_log_2/1 dirty_all_2/1 get_all_2/1 read_all_after_get/1 ");
		}
	}
}

static void occurrences_over_vms(void)
{
	const struct matrix_opts o = {
		.test_case = "A", .mmu = MMU_SHADOW_LONG64, .slot_pages = 64, .pte = MATRIX_PTE_2M};
	struct seen s;

	CU_ASSERT_EQUAL(run(o, &s), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(s.phases, "setup/1 populate_write/1"));
	CU_ASSERT_PTR_NOT_NULL(strstr(s.phases, "setup/6 populate_read_logged/1"));
	CU_ASSERT_EQUAL(s.pages_4k,
			64 + 24); /* the test pages; code, and 16 list pages in groups */
}

static void what_does_not_fit(void)
{
	const struct matrix_round many = {MATRIX_EVEN, 100, 1};
	struct matrix_opts o = {.test_case = "Z", .slot_pages = 64, .pte = MATRIX_PTE_2M};
	struct seen s;

	CU_ASSERT_EQUAL(run(o, &s), KVMSIM_ENOENT);
	CU_ASSERT_STRING_EQUAL(message, "no case 'Z' in the matrix");
	o.test_case = "B";
	o.mmu = MMU_SHADOW_FLAT32;
	CU_ASSERT_EQUAL(run(o, &s), KVMSIM_EUNSUPPORTED);
	CU_ASSERT_STRING_EQUAL(message, "case B: the guest of npt0-flat32 has no page tables");
	o.mmu = MMU_TDP_RMAP;
	o.pte = MATRIX_PTE_NONE;
	CU_ASSERT_EQUAL(run(o, &s), KVMSIM_EUNSUPPORTED);
	o.pte = MATRIX_PTE_4K;
	o.slot_pages = 64 * 512;
	CU_ASSERT_EQUAL(run(o, &s), KVMSIM_EUNSUPPORTED);
	CU_ASSERT_STRING_EQUAL(message, "case B: a slot of 32768 pages does not fit this guest");
	o.slot_pages = 20000;
	CU_ASSERT_EQUAL(run(o, &s), KVMSIM_EUNSUPPORTED);
	CU_ASSERT_STRING_EQUAL(message, "case B, phase populate_write: 20000 pages, the guest's "
					"list holds 16384");
	o.slot_pages = 64;
	o.rounds = &many;
	o.n_rounds = 1;
	CU_ASSERT_EQUAL(run(o, &s), KVMSIM_EUNSUPPORTED);
	CU_ASSERT_STRING_EQUAL(message, "case B, phase write: no even pattern of 100 pages in a "
					"slot of 64");
}

/* ---- what the host's timer adds ---- */

static double of_phase(void *ctx, const char *quantity)
{
	const double *interrupts = ctx;

	if (!strcmp(quantity, "ev:kvm_exit[intr]"))
		return *interrupts;
	return !strcmp(quantity, "stat:preemption_other") ? 2 : 0;
}

/* The model's own interrupts, IPIs, have a rule: fewer than those are judged, not explained away.
 */
static void interrupts_of_the_model(void)
{
	struct matrix_row row = {.quantity = "ev:kvm_exit"};
	const struct matrix_file f = {.rows = &row, .n_rows = 1};
	struct matrix_timer t;
	double interrupts = 3;

	matrix_timer_file(&f, &t);
	matrix_timer_phase(&t, of_phase, &interrupts, 1);
	CU_ASSERT_TRUE(matrix_timer_alone(&t, "ev:kvm_exit[intr]"));
	CU_ASSERT_EQUAL(matrix_timer_adds(&t, "ev:kvm_exit"), 2);
	CU_ASSERT_EQUAL(matrix_timer_adds(&t, "ev:kvm_exit[npf]"), 0);
	CU_ASSERT_EQUAL(matrix_timer_adds(&t, "stat:host_state_reload"), 2);
	matrix_timer_phase(&t, of_phase, &interrupts, 3);
	CU_ASSERT_FALSE(matrix_timer_alone(&t, "ev:kvm_exit[intr]"));
	CU_ASSERT_EQUAL(matrix_timer_adds(&t, "stat:exits"), 0);
	matrix_timer_phase(&t, of_phase, &interrupts, 4);
	CU_ASSERT_FALSE(matrix_timer_alone(&t, "ev:kvm_exit[intr]"));
	CU_ASSERT_EQUAL(matrix_timer_adds(&t, "stat:exits"), 0);
	CU_ASSERT_TRUE(matrix_timer_alone(&t, "stat:preemption_other"));
	CU_ASSERT_EQUAL(matrix_timer_unrecorded(&t, "ev:kvm_exit[intr]"), -1);
	CU_ASSERT_STRING_EQUAL(
		matrix_timer_name((size_t)matrix_timer_unrecorded(&t, "ev:kvm_entry")),
		"ev:kvm_entry");
}

static CU_TestInfo tests[] = {{"patterns", patterns},
			      {"pattern_names", pattern_names},
			      {"event_names", event_names},
			      {"event_totals", event_totals},
			      {"runs_pass_the_checkers", runs_pass_the_checkers},
			      {"occurrences_over_vms", occurrences_over_vms},
			      {"what_does_not_fit", what_does_not_fit},
			      {"interrupts_of_the_model", interrupts_of_the_model},
			      CU_TEST_INFO_NULL};
TEST_MAIN("matrix", tests)
