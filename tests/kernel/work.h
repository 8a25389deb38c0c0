/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_WORK_H
#define KVMSIM_KERNEL_WORK_H

#include <stddef.h>
#include <stdint.h>

/*
 * What a kvm.ko with patches/count-the-work.patch says of its own work: a line per count in
 * debugfs, its name and the sum since the module was loaded. Another kvm.ko has none.
 */
#define WORK_MAX 96
struct work {
	size_t n;
	struct work_count {
		char name[40];
		uint64_t value;
	} count[WORK_MAX];
};

void work_read(struct work *w);

#endif
