// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The workload tcp_rr. Registers are those of Intel's 8254x manual in the order in which Linux's
 * e1000 uses them; numbers per transaction are those of a guest that was recorded apart from the
 * project's recorder (2,000 transactions: 7.56 accesses of an e1000, 3.33 of them reads; 1.005 of
 * virtio-net).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "workloads/scenario.h"

static char message[512];

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(message, sizeof(message), "%s", msg);
}

static const struct kvmsim_errsink sink = {keep, NULL};

#define HEAD "[scenario]\nworkload = tcp_rr\nslots = ram:0:1000\n"

static struct scenario *scenario(const char *keys)
{
	char text[1024];
	struct scenario *s = NULL;

	snprintf(text, sizeof(text), HEAD "%s", keys);
	message[0] = 0;
	scenario_parse(text, strlen(text), "s.ini", &sink, &s);
	return s;
}

static void refuse(const char *keys, const char *why)
{
	CU_ASSERT_PTR_NULL(scenario(keys));
	CU_ASSERT_STRING_EQUAL(message, why);
}

/* What a vCPU does, and its instructions. */
struct did {
	struct guest_op ops[4096];
	size_t n;
	uint64_t insns;
};

static struct did *stream(const char *keys, uint32_t vcpu)
{
	struct scenario *s = scenario(keys);
	struct did *d = calloc(1, sizeof(*d));
	const struct guest_op *ops;
	struct op_source src;
	long n;

	CU_ASSERT_FATAL(s && d && !scenario_source(s, vcpu, 1, 0, &src));
	while ((n = src.next(src.ctx, &ops)) > 0)
		for (long i = 0; i < n; i++) {
			d->insns += ops[i].gap;
			if (d->n < 4096)
				d->ops[d->n++] = ops[i];
		}
	CU_ASSERT_EQUAL(n, 0);
	scenario_source_free(&src);
	scenario_free(s);
	return d;
}

static void check_ops(const char *keys, const struct guest_op *expected, size_t n)
{
	struct did *d = stream(keys, 0);

	/* the epoch's begin before them, its end behind */
	CU_ASSERT_EQUAL_FATAL(d->n, n + 2);
	CU_ASSERT_EQUAL(d->ops[0].kind, OP_EPOCH);
	CU_ASSERT_EQUAL(d->ops[n + 1].kind, OP_MARK);
	for (size_t i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(d->ops[i + 1].kind, expected[i].kind);
		CU_ASSERT_EQUAL(d->ops[i + 1].arg, expected[i].arg);
	}
	CU_ASSERT_EQUAL(d->insns, 1000000);
	free(d);
}

#define ONE "rounds = 1\ninterval = 1000000\ntransactions = 1\nsends = 1000\ninterrupts = "

static void e1000(void)
{
	static const struct guest_op once[] = {
		{.kind = OP_WRITE, .arg = 0},
		{.kind = OP_WRITE, .arg = 4096},
		{.kind = OP_MMIO_WRITE, .arg = 0xfebc3818}, /* TDT */
		{.kind = OP_MMIO_READ, .arg = 0xfebc00c0},  /* ICR */
		{.kind = OP_MMIO_WRITE, .arg = 0xfebc00d8}, /* IMC */
		{.kind = OP_MMIO_READ, .arg = 0xfebc0008},  /* STATUS */
		{.kind = OP_MMIO_WRITE, .arg = 0xfebc2818}, /* RDT */
		{.kind = OP_MMIO_WRITE, .arg = 0xfebc00d0}, /* IMS */
		{.kind = OP_MMIO_READ, .arg = 0xfebc0008},  /* STATUS */
	};

	check_ops(ONE "1000\nstores = 2\n", once, 9);
}

static void virtio(void)
{
	static const struct guest_op doorbell[] = {{.kind = OP_MMIO_WRITE, .arg = 0xd0003004}};
	static const struct guest_op ports[] = {{.kind = OP_PIO, .arg = 0xc050},
						{.kind = OP_PIO, .arg = 0xc053}};

	check_ops(ONE "1000\nstores = 0\nnic = virtio\ndevice = 0xd0000\n", doorbell, 1);
	check_ops(ONE "1000\nstores = 0\nnic = virtio-legacy\n", ports, 2);
}

static void waits(void)
{
	struct did *d = stream(ONE "0\nstores = 1\nwire = 900000\n", 0);

	/* 100,000 instructions are left for the store, the send, the wait and the end */
	CU_ASSERT_EQUAL_FATAL(d->n, 5);
	CU_ASSERT_EQUAL(d->ops[1].gap, 25000);
	CU_ASSERT_EQUAL(d->ops[2].gap, 25000);
	CU_ASSERT_EQUAL(d->ops[3].kind, OP_NONE);
	CU_ASSERT_EQUAL(d->ops[3].gap, 925000);
	CU_ASSERT_EQUAL(d->ops[4].gap, 25000);
	CU_ASSERT_EQUAL(d->insns, 1000000);
	free(d);
}

static void per_transaction(const char *nic, double reads, double writes)
{
	char text[512];
	struct scenario *s;
	struct op_source src;
	const struct guest_op *ops;
	double n[OP_LAST] = {0};
	long got;

	snprintf(text, sizeof(text), "nic = %s\ntransactions = 2000\nrounds = 10\n", nic);
	s = scenario(text);
	CU_ASSERT_FATAL(s && !scenario_source(s, 0, 1, 0, &src));
	while ((got = src.next(src.ctx, &ops)) > 0)
		for (long i = 0; i < got; i++)
			n[ops[i].kind]++;
	/* sixth of a per cent: four standard deviations of 20,000 draws of one in nine, and over */
	CU_ASSERT_DOUBLE_EQUAL(n[OP_MMIO_READ] / 20000, reads, 0.03);
	CU_ASSERT_DOUBLE_EQUAL(n[OP_MMIO_WRITE] / 20000, writes, 0.03);
	scenario_source_free(&src);
	scenario_free(s);
}

static void as_recorded(void)
{
	per_transaction("e1000", 3.33, 4.23);
	per_transaction("virtio", 0, 1.005);
}

static void vcpus_share(void)
{
	const char *keys = "vcpus = 2\nrounds = 1\ntransactions = 5\nsends = 1000\ninterrupts = 0\n"
			   "stores = 1\n";

	for (uint32_t v = 0; v < 2; v++) {
		struct did *d = stream(keys, v);

		CU_ASSERT_EQUAL(d->n, 2 + 2 * (v ? 2 : 3));
		free(d);
	}
}

static void refuses(void)
{
	refuse("nic = ne2000\nrounds = 1\n",
	       "s.ini:4: nic = ne2000: expected one of e1000, virtio, virtio-legacy");
	refuse("rounds = 1\ndevice = 999\n", "s.ini: slot ram has the device's page 0x3e7");
	refuse("rounds = 1\npages = 1001\n", "s.ini: slot ram has fewer pages than 1001");
	refuse("rounds = 1\ninterval = 1000\ntransactions = 10\nwire = 101\n",
	       "s.ini: 10 transactions wait 1010 instructions, longer than the interval of 1000");
}

static CU_TestInfo tests[] = {{"e1000", e1000},
			      {"virtio", virtio},
			      {"waits", waits},
			      {"as_recorded", as_recorded},
			      {"vcpus_share", vcpus_share},
			      {"refuses", refuses},
			      CU_TEST_INFO_NULL};
TEST_MAIN("tcp_rr", tests)
