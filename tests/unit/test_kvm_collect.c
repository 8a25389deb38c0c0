// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * How `record kvm` judges what a KVM reported: here by a KVM of the test's own, which says what it
 * is told to and lets the guest go on meanwhile. What must and may be reported is counted by hand.
 */
#include "workloads/kvm/collect.h"

#include <errno.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>

#include "tests/unit/harness.h"

#define EQ CU_ASSERT_EQUAL

/* ---- a KVM ---- */

#define PAGES 200
#define WORDS 4

static struct machine m;
static struct machine_counters counters[2];

static struct fake {
	uint64_t clock, step;		      /* each look at the clock takes a step */
	uint64_t dirty[2][WORDS];	      /* what GET says, by slot */
	struct machine_counters after_get[2]; /* where the vCPUs are after the first GET */
	struct {
		uint32_t slot, n;
		uint64_t first, word;
	} clear[8];
	unsigned n_clear;
	int reset[8]; /* what each reset says, negative: an error */
	unsigned n_reset;
} kvm;

uint64_t machine_tsc(void)
{
	return kvm.clock += kvm.step;
}

int machine_ioctl(const struct machine *of, int fd, unsigned long request, void *arg,
		  const char *what)
{
	(void)fd;
	if (request == KVM_GET_DIRTY_LOG) {
		const struct kvm_dirty_log *log = arg;

		CU_ASSERT_STRING_EQUAL(what, "KVM_GET_DIRTY_LOG");
		memcpy(log->dirty_bitmap, kvm.dirty[log->slot],
		       (of->opts->slots[log->slot].npages + 63) / 64 * 8);
		memcpy(counters, kvm.after_get, sizeof(counters));
		return 0;
	}
	if (request == KVM_CLEAR_DIRTY_LOG && kvm.n_clear < 8) {
		const struct kvm_clear_dirty_log *log = arg;
		const uint64_t *word = log->dirty_bitmap;

		kvm.clock += 100 * log->num_pages;
		kvm.clear[kvm.n_clear].slot = log->slot;
		kvm.clear[kvm.n_clear].n = log->num_pages;
		kvm.clear[kvm.n_clear].first = log->first_page;
		kvm.clear[kvm.n_clear++].word = word[0];
		return 0;
	}
	CU_FAIL("no such ioctl");
	return KVMSIM_EIO;
}

/* Resets are asked for without machine_ioctl(). */
int ioctl(int fd, unsigned long request, ...)
{
	int n = kvm.n_reset < 8 ? kvm.reset[kvm.n_reset++] : 0;

	(void)fd;
	EQ(request, KVM_RESET_DIRTY_RINGS);
	if (n >= 0)
		return n;
	errno = -n;
	return -1;
}

/* ---- a guest ---- */

#define FIRST	 0x200ull /* slot 0 */
#define SECOND	 0x400ull /* slot 1 */
#define AT(page) ((page) << PAGE_SHIFT | 0x123)

static uint64_t accesses[2][8] = {
	{AT(FIRST + 0) | ACCESS_READ, AT(FIRST + 1), AT(FIRST + 2) | ACCESS_RMW,
	 AT(FIRST + 3) | ACCESS_READ, AT(FIRST + 4), AT(FIRST + 5), AT(FIRST + 6), AT(FIRST + 199)},
	{AT(SECOND + 0), AT(SECOND + 70), AT(SECOND + 7), AT(SECOND + 8), AT(SECOND + 9),
	 AT(FIRST + 64), AT(0x300), AT(SECOND + 10)},
};
static struct stream streams[2] = {{.access = accesses[0], .n = 8},
				   {.access = accesses[1], .n = 8}};
static const struct kvm_player_slot slots[2] = {{FIRST, PAGES, true}, {SECOND, 100, true}};
static struct kvm_player_opts opts;
static struct collector c;
static char message[256];

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	strncpy(message, msg, sizeof(message) - 1);
}
static const struct kvmsim_errsink errors = {keep, NULL};

static void begin(enum kvm_protocol protocol, uint64_t chunk)
{
	memset(&kvm, 0, sizeof(kvm));
	memset(counters, 0, sizeof(counters));
	memset(&m, 0, sizeof(m));
	memset(message, 0, sizeof(message));
	opts = (struct kvm_player_opts){.slots = slots,
					.n_slots = 2,
					.n_vcpus = 2,
					.protocol = protocol,
					.clear_chunk = chunk,
					.ring_entries = 8,
					.errors = &errors};
	m.opts = &opts;
	m.vm = -1;
	for (int i = 0; i < 2; i++)
		m.vcpus[i].counters = &counters[i];
	CU_ASSERT_EQUAL_FATAL(collector_open(&c, &m, streams), 0);
}

static void at(struct machine_counters *of, uint64_t begun0, uint64_t done0, uint64_t begun1,
	       uint64_t done1)
{
	of[0] = (struct machine_counters){.begun = begun0, .done = done0};
	of[1] = (struct machine_counters){.begun = begun1, .done = done1};
}

static void says(unsigned slot, size_t n, const unsigned *pages)
{
	memset(kvm.dirty[slot], 0, sizeof(kvm.dirty[slot]));
	for (size_t i = 0; i < n; i++)
		kvm.dirty[slot][pages[i] / 64] |= 1ull << (pages[i] % 64);
}
#define SAYS(slot, ...)                                                                            \
	says(slot, sizeof((unsigned[]){__VA_ARGS__}) / sizeof(unsigned), (unsigned[]){__VA_ARGS__})

static void reported(const struct kvm_slot_report *r, uint64_t nr_dirty, uint64_t must,
		     uint64_t missing, uint64_t maybe, uint64_t beside)
{
	EQ(r->nr_dirty, nr_dirty);
	EQ(r->must, must);
	EQ(r->missing, missing);
	EQ(r->maybe, maybe);
	EQ(r->beside, beside);
}

static struct kvm_round round_of(void)
{
	struct kvm_round r = {0};

	EQ(collect(&c, &r), 0);
	EQ(r.n_slots, 2);
	collect_end(&c);
	return r;
}

/* ---- what must and may be reported ---- */

/*
 * vCPU 0 has done its first three accesses and begun the fourth when the first call begins, and is
 * in the sixth when it returns: pages 1 and 2 must be reported, a store and a read-modify-write;
 * 0 and 3, which were read, and 4 and 5 may be. The second call comes after the seventh: 6, begun
 * after the first had returned, must be; 5, under way then, and 3 and 4 may be.
 */
static void bounds(void)
{
	begin(KVM_PROTOCOL_GET, 0);
	at(counters, 4, 3, 1, 1);
	at(kvm.after_get, 6, 5, 3, 1);
	SAYS(0, 0, 1, 3, 5, 6, 130);
	SAYS(1, 0, 70, 99);
	struct kvm_round r = round_of();

	/* not 2; 6 and 130 are nobody's */
	reported(&r.slots[0], 6, 2, 1, 3, 2);
	EQ(r.slots[0].slot, 0);
	EQ(r.slots[0].reported[2], 1ull << 2);
	/* 0 must be; 70, which was begun meanwhile, may be */
	reported(&r.slots[1], 3, 1, 0, 1, 1);

	at(counters, 7, 7, 4, 4);
	at(kvm.after_get, 8, 8, 7, 6);
	SAYS(0, 2, 4, 199, 64);
	SAYS(1, 7);
	r = round_of();
	/* 6 is missing; 2 has been done before the first call; 4, 199 and 64 may be */
	reported(&r.slots[0], 4, 1, 1, 3, 1);
	/* 8 must be, 7 and 70 had been begun: they may, as 9 */
	reported(&r.slots[1], 1, 1, 1, 1, 0);

	/* Done since, but begun before the second had returned: nothing must be. */
	at(counters, 8, 8, 7, 7);
	at(kvm.after_get, 8, 8, 7, 7);
	SAYS(0, 64);
	SAYS(1, 9);
	r = round_of();
	reported(&r.slots[0], 1, 0, 0, 1, 0);
	reported(&r.slots[1], 1, 0, 0, 1, 0);

	/* Then nobody has done anything. */
	r = round_of();
	reported(&r.slots[0], 1, 0, 0, 0, 1);
	reported(&r.slots[1], 1, 0, 0, 0, 1);
	collector_close(&c);
}

/* ---- the ioctls ---- */

static void chunks(void)
{
	begin(KVM_PROTOCOL_MANUAL, 64);
	kvm.step = 7;
	SAYS(0, 1, 63, 130, 199);
	SAYS(1, 70);
	struct kvm_round r = round_of();

	EQ(kvm.n_clear, 4);
	EQ(kvm.clear[0].first, 0);
	EQ(kvm.clear[0].n, 64);
	EQ(kvm.clear[0].word, 1ull << 63 | 2);
	EQ(kvm.clear[1].first, 128);
	EQ(kvm.clear[1].word, 4);
	EQ(kvm.clear[2].first, 192);
	EQ(kvm.clear[2].n, 8);
	EQ(kvm.clear[2].word, 1ull << 7);
	EQ(kvm.clear[3].slot, 1);
	EQ(kvm.clear[3].first, 64);
	EQ(kvm.clear[3].n, 36);
	EQ(r.slots[0].clear_calls, 3);
	EQ(r.slots[0].get_cycles, 7);
	EQ(r.slots[0].clear_longest, 6400 + 7);
	EQ(r.slots[0].clear_cycles, 6400 + 6400 + 800 + 3 * 7);
	EQ(r.slots[1].clear_calls, 1);
	collector_close(&c);

	begin(KVM_PROTOCOL_MANUAL_ALL_SET, 0);
	SAYS(0, 130);
	r = round_of();
	EQ(kvm.n_clear, 1);
	EQ(kvm.clear[0].n, PAGES);
	EQ(r.slots[1].clear_calls, 0);
	collector_close(&c);
}

static struct kvm_dirty_gfn ring[2][8];

static void push(unsigned vcpu, unsigned i, uint32_t slot, uint64_t offset)
{
	ring[vcpu][i % 8] = (struct kvm_dirty_gfn){
		.flags = KVM_DIRTY_GFN_F_DIRTY, .slot = slot, .offset = offset};
}

static void begin_rings(void)
{
	begin(KVM_PROTOCOL_RING, 0);
	memset(ring, 0, sizeof(ring));
	m.vcpus[0].ring = ring[0];
	m.vcpus[1].ring = ring[1];
}

/* Two exits with a full ring and a collection: all of it is the round's, and the next round's is
 * its own. A reset that a signal cuts short is asked for again. */
static void rings(void)
{
	struct kvm_round r = {0};

	begin_rings();
	at(kvm.after_get, 0, 0, 0, 0);
	push(0, 0, 0, 1);
	push(0, 1, 0, 2);
	push(1, 0, 1, 70);
	kvm.reset[0] = -EINTR;
	kvm.reset[1] = 2;
	kvm.reset[2] = 1;
	EQ(collect_full_ring(&c), 0);
	EQ(kvm.n_reset, 3);
	EQ(ring[0][0].flags, KVM_DIRTY_GFN_F_RESET);
	EQ(ring[0][1].flags, KVM_DIRTY_GFN_F_RESET);
	EQ(ring[1][0].flags, KVM_DIRTY_GFN_F_RESET);
	EQ(ring[0][2].flags, 0);
	EQ(collect_full_ring(&c), 0); /* empty: no reset */
	EQ(kvm.n_reset, 3);
	push(0, 2, 0, 199);
	kvm.reset[3] = 1;
	at(counters, 3, 3, 2, 2);
	EQ(collect(&c, &r), 0);
	EQ(r.ring_full, 2);
	EQ(r.ring_entries, 4);
	EQ(r.ring_resets, 4);
	reported(&r.slots[0], 3, 2, 0, 0, 1);
	reported(&r.slots[1], 1, 2, 1, 0, 0);
	collect_end(&c);
	for (unsigned i = 3; i < 9; i++) /* to the ring's end and on from its begin */
		push(0, i, 0, 4);
	kvm.reset[4] = 6;
	EQ(collect(&c, &r), 0);
	EQ(r.ring_full, 0);
	EQ(r.ring_entries, 6);
	EQ(r.ring_resets, 1);
	reported(&r.slots[0], 1, 0, 0, 0, 1);
	reported(&r.slots[1], 0, 0, 0, 0, 0);
	collect_end(&c);
	collector_close(&c);
}

static void bad_rings(void)
{
	begin_rings();
	push(1, 0, 1, 100);
	EQ(collect_full_ring(&c), KVMSIM_EIO);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "page 100 of slot 1"));
	collector_close(&c);
	begin_rings();
	push(1, 0, 2, 0);
	EQ(collect_full_ring(&c), KVMSIM_EIO);
	collector_close(&c);
	begin_rings();
	push(0, 0, 0, 0);
	push(0, 1, 0, 1);
	kvm.reset[0] = 1; /* and then none */
	EQ(collect_full_ring(&c), KVMSIM_EIO);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "reset 1 entries, expected 2"));
	collector_close(&c);
	begin_rings();
	push(0, 0, 0, 0);
	kvm.reset[0] = -EBADF;
	EQ(collect_full_ring(&c), KVMSIM_EIO);
	collector_close(&c);
}

static CU_TestInfo tests[] = {{"bounds", bounds},
			      {"chunks", chunks},
			      {"rings", rings},
			      {"bad_rings", bad_rings},
			      CU_TEST_INFO_NULL};
TEST_MAIN("kvm_collect", tests)
