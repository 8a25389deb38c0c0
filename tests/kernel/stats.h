/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_STATS_H
#define KVMSIM_KERNEL_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/kernel/guest.h"

/*
 * KVM_GET_STATS_FD of a VM and its vCPUs, these added up: every statistic that is one number
 * (histograms are left out). Formats: Documentation/virt/kvm/api.rst, 4.134.
 */
#define STATS_MAX 160
struct stats {
	size_t n;
	struct stat {
		char name[64];
		bool gauge;    /* an instant or a peak value, not a running sum */
		bool of_vcpus; /* the sum of theirs, not the VM's own */
		size_t offset; /* in that descriptor's data block */
	} stat[STATS_MAX];
	struct {
		int fd;
		int64_t data_offset;
		size_t data_bytes;
	} fds[1 + GUEST_MAX_VCPUS]; /* the VM's, then each vCPU's */
	unsigned n_fds;
};

void stats_open(struct stats *s, const struct guest *g);
/* A line "HAS stat:NAME" for each. */
void stats_names(const struct stats *s, FILE *to);
void stats_close(struct stats *s);
/* Reads all values, in the order of @s->stat. */
void stats_read(const struct stats *s, uint64_t values[STATS_MAX]);

#endif
