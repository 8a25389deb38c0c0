// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Requests and responses of one byte over TCP, as netperf's TCP_RR makes: the guest's side of each
 * transaction as its driver works, register by register, then the wait for the other side. How
 * often a transaction sends and how many pages are stored to is from recorded guests (Linux 6.1
 * under QEMU, 2,000 transactions each: traces/recorded/tcp_rr-*.md). How often it is interrupted
 * depends on how soon the answer comes: 1.11 times where it comes with the interrupt of what was
 * sent (7.56 accesses of an e1000), up to twice where that is over by then (12).
 *
 * A transaction's sends and interrupts are its whole number and, by chance, one more.
 */
#include <inttypes.h>

#include "model/sim/rng.h"
#include "workloads/scenario.h"

enum { NIC, TRANSACTIONS, WIRE, SENDS, INTERRUPTS, STORES, PAGES, DEVICE };
enum { NIC_E1000, NIC_VIRTIO, NIC_VIRTIO_LEGACY };

static const char *const nics[] = {"e1000", "virtio", "virtio-legacy", NULL};
static const struct workload_param params[] = {
	[NIC] = {"nic", 0, 0, 2, "network device: e1000, virtio or virtio-legacy"},
	[TRANSACTIONS] = {"transactions", 1000, 1, 1 << 20, "in a round, of all vCPUs"},
	[WIRE] = {"wire", 0, 0, 1 << 30,
		  "waiting per transaction, in guest instructions' time, of the interval"},
	[SENDS] = {"sends", 1005, 0, 8000, "sends per 1,000 transactions"},
	[INTERRUPTS] = {"interrupts", 1110, 0, 8000, "interrupts per 1,000 transactions"},
	[STORES] = {"stores", 8, 0, 4096, "stores to memory per transaction, page after page"},
	[PAGES] = {"pages", 113, 1, (1ull << 31) - 1,
		   "of the slot that are stored to, at its start"},
	[DEVICE] = {"device", 0xfebc0, 1, (1ull << 40) - 64, "gfn of the device's registers"},
	{.name = NULL},
};

/* Intel 8254x software developer's manual: offsets of registers. */
#define E1000_STATUS 0x0008
#define E1000_ICR    0x00c0
#define E1000_IMS    0x00d0
#define E1000_IMC    0x00d8
#define E1000_RDT    0x2818
#define E1000_TDT    0x3818
/* QEMU's virtio-pci: its notify region is the device's fourth page, 4 bytes per queue, where the
 * second one sends; legacy devices have ports instead, by the virtio 0.9.5 specification. */
#define VIRTIO_NOTIFY_TX   0x3004
#define VIRTIO_PORT_NOTIFY (0xc040 + 16)
#define VIRTIO_PORT_ISR	   (0xc040 + 19)
#define DEVICE_PAGES	   4

static int check(const struct scenario *s, const struct kvmsim_errsink *errors)
{
	uint64_t n = s->param[TRANSACTIONS], device = s->param[DEVICE];
	uint64_t per = s->param[STORES] + 2 + s->param[SENDS] / 1000 +
		       6 * (s->param[INTERRUPTS] / 1000 + 1);

	for (uint32_t i = 0; i < s->n_slots; i++) {
		const struct scenario_slot *slot = &s->slots[i];

		if (device < slot->base_gfn + slot->npages &&
		    slot->base_gfn < device + DEVICE_PAGES)
			return kvmsim_err(errors, KVMSIM_EPARSE,
					  "%s: slot %s has the device's page 0x%" PRIx64, s->name,
					  slot->name, device);
	}
	if (s->param[PAGES] > s->slots[s->target].npages)
		return kvmsim_err(errors, KVMSIM_EPARSE,
				  "%s: slot %s has fewer pages than %" PRIu64, s->name,
				  s->slots[s->target].name, s->param[PAGES]);
	/* Of each vCPU, which all have the same interval. */
	n = (n + s->n_vcpus - 1) / s->n_vcpus;
	if (n * s->param[WIRE] > s->interval)
		return kvmsim_err(errors, KVMSIM_EPARSE,
				  "%s: %" PRIu64 " transactions wait %" PRIu64
				  " instructions, longer than the interval of %" PRIu64,
				  s->name, n, n * s->param[WIRE], s->interval);
	return scenario_check_round(s, n * per, errors);
}

/* As often as @permille says, by chance. */
static uint64_t times(uint64_t permille, struct rng *rng)
{
	return permille / 1000 + (rng_below(rng, 1000) < permille % 1000);
}

static void device(const struct scenario *s, struct round_ops *out, enum guest_op_kind kind,
		   uint64_t offset, uint16_t len)
{
	round_device(out, kind, (s->param[DEVICE] << 12) + offset, len);
}

static void send(const struct scenario *s, struct round_ops *out)
{
	switch (s->param[NIC]) {
	case NIC_E1000:
		device(s, out, OP_MMIO_WRITE, E1000_TDT, 4);
		break;
	case NIC_VIRTIO:
		device(s, out, OP_MMIO_WRITE, VIRTIO_NOTIFY_TX, 2);
		break;
	default:
		round_device(out, OP_PIO, VIRTIO_PORT_NOTIFY, 2);
	}
}

/* Its cause, which clears it; interrupts off while the rings are polled, then on again. STATUS is
 * read to have a write arrive. virtio has its messages' cause in memory, legacy devices in a port.
 */
static void interrupt(const struct scenario *s, bool received, struct round_ops *out)
{
	if (s->param[NIC] == NIC_E1000) {
		device(s, out, OP_MMIO_READ, E1000_ICR, 4);
		device(s, out, OP_MMIO_WRITE, E1000_IMC, 4);
		device(s, out, OP_MMIO_READ, E1000_STATUS, 4);
		if (received)
			device(s, out, OP_MMIO_WRITE, E1000_RDT, 4);
		device(s, out, OP_MMIO_WRITE, E1000_IMS, 4);
		device(s, out, OP_MMIO_READ, E1000_STATUS, 4);
	} else if (s->param[NIC] == NIC_VIRTIO_LEGACY) {
		round_device(out, OP_PIO, VIRTIO_PORT_ISR, 1);
	}
}

static void transact(const struct scenario *s, uint64_t page, struct rng *rng,
		     struct round_ops *out)
{
	uint64_t sends = times(s->param[SENDS], rng);
	uint64_t interrupts = times(s->param[INTERRUPTS], rng);

	for (uint64_t i = 0; i < s->param[STORES]; i++)
		round_access(out, OP_WRITE, (page + i) % s->param[PAGES] << 12, 8);
	for (uint64_t i = 0; i < sends; i++)
		send(s, out);
	if (s->param[WIRE])
		round_wait(out, (uint32_t)s->param[WIRE]);
	/* what came is given back to the device as often as something is sent: a packet each way */
	for (uint64_t i = 0; i < interrupts; i++)
		interrupt(s, i < sends, out);
}

static void transactions(const struct scenario *s, uint32_t vcpu, uint64_t round, struct rng *rng,
			 struct rng *common, struct round_ops *out)
{
	uint64_t n =
		s->param[TRANSACTIONS] / s->n_vcpus + (vcpu < s->param[TRANSACTIONS] % s->n_vcpus);

	(void)common;
	for (uint64_t i = 0; i < n; i++)
		transact(s, (round * n + i) * s->param[STORES], rng, out);
}

const struct workload workload_tcp_rr = {
	.name = "tcp_rr",
	.summary = "requests and responses over a network device, by its registers",
	.params = params,
	.words = nics,
	.check = check,
	.round = transactions,
};
