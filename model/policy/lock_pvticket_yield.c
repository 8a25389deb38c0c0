// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/lock.h"

/*
 * As pvticket, on a host with the last patch of version 11 of that series, "kvm hypervisor: Add
 * directed yield in vcpu block path" (2013), which was dropped: before a vCPU that halts gives its
 * CPU to whoever is next there, the handler of pause-loop exits looks for a vCPU of the same guest
 * to give it to.
 */
const struct lock_policy lock_pvticket_yield = {
	.desc =
		{
			.name = "pvticket-yield",
			.family = FAMILY_LOCK,
			.summary =
				"pvticket on a host that makes a directed yield when a vCPU halts",
			.params = pvticket_params,
		},
	.fifo = true,
	.halt_yields = true,
	.vm_init = pvticket_vm_init,
	.vm_free = pvticket_vm_free,
	.init = ticket_init,
	.free = lock_free_state,
	.lock = pvticket_lock,
	.trylock = ticket_trylock,
	.unlock = pvticket_unlock,
};
