// SPDX-License-Identifier: GPL-3.0-or-later
/* What the running kernel's KVM offers. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "workloads/kvm/machine.h"

const char *kvm_protocol_name(enum kvm_protocol p)
{
	static const char *const names[N_KVM_PROTOCOLS] = {
		[KVM_PROTOCOL_GET] = "get",
		[KVM_PROTOCOL_MANUAL] = "manual",
		[KVM_PROTOCOL_MANUAL_ALL_SET] = "manual-all-set",
		[KVM_PROTOCOL_RING] = "ring",
	};

	return names[p];
}

static uint64_t shortest_ioctl(int kvm)
{
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < 101; i++) {
		uint64_t start = machine_tsc();

		ioctl(kvm, KVM_GET_API_VERSION, 0);
		uint64_t cycles = machine_tsc() - start;

		shortest = cycles < shortest ? cycles : shortest;
	}
	return shortest;
}

/* One page, one store. */
static bool guest_runs(const struct kvmsim_errsink *errors, uint64_t *tsc_khz)
{
	const struct kvm_player_slot slot = {.npages = 1};
	const struct kvm_player_opts opts = {
		.slots = &slot, .n_slots = 1, .n_vcpus = 1, .errors = errors};
	struct machine *m;
	int err = machine_open(&opts, &m), khz;

	if (err)
		return false;
	m->vcpus[0].list[0] = 0;
	err = machine_load(m, 0, 1);
	while (!err && (err = machine_enter(m, 0)) == MACHINE_SIGNAL)
		err = 0;
	khz = ioctl(m->vcpus[0].fd, KVM_GET_TSC_KHZ, 0);
	*tsc_khz = khz > 0 ? (uint64_t)khz : 0;
	err = err == MACHINE_DONE && m->vcpus[0].counters->done == 1 ? 0 : KVMSIM_ECHECK;
	machine_close(m);
	return !err;
}

int kvm_player_offer(const struct kvmsim_errsink *errors, struct kvm_offer *out)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC), n;

	memset(out, 0, sizeof(*out));
	if (kvm < 0)
		return kvmsim_err(errors, KVMSIM_EUNSUPPORTED, "/dev/kvm: %s", strerror(errno));
	out->api = ioctl(kvm, KVM_GET_API_VERSION, 0);
	n = ioctl(kvm, KVM_CHECK_EXTENSION, KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2);
	out->manual = n > 0 && n & KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE;
	out->all_set = n > 0 && n & KVM_DIRTY_LOG_INITIALLY_SET;
	n = ioctl(kvm, KVM_CHECK_EXTENSION, KVM_CAP_DIRTY_LOG_RING);
	out->ring_entries = n > 0 ? (uint32_t)n / sizeof(struct kvm_dirty_gfn) : 0;
	out->stats = ioctl(kvm, KVM_CHECK_EXTENSION, KVM_CAP_BINARY_STATS_FD) > 0;
	out->ioctl_cycles = shortest_ioctl(kvm);
	close(kvm);
	out->runs = guest_runs(errors, &out->tsc_khz);
	return 0;
}
