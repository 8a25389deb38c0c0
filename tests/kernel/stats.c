// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/stats.h"

#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/kernel/vmm.h"

#define DATA_BYTES_MAX 8192u

/* The VM's comes first, then the vCPUs', which all have the same statistics in the same places. */
static void open_next(struct stats *s, int owner)
{
	struct kvm_stats_header head;
	int fd = ioctl(owner, KVM_GET_STATS_FD, NULL);
	if (fd < 0)
		die_errno("KVM_GET_STATS_FD");
	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		die_errno("the statistics' header");

	size_t desc_bytes = sizeof(struct kvm_stats_desc) + head.name_size;
	size_t all_bytes = desc_bytes * head.num_desc;
	char *descs = malloc(all_bytes);
	if (!descs)
		die_errno("out of memory");
	if (pread(fd, descs, all_bytes, head.desc_offset) != (ssize_t)all_bytes)
		die_errno("the statistics' descriptors");

	size_t end = 0;
	for (uint32_t i = 0; i < head.num_desc; i++) {
		const struct kvm_stats_desc *d = (const void *)(descs + i * desc_bytes);
		size_t stop = d->offset + d->size * sizeof(uint64_t);
		end = stop > end ? stop : end;
		if (d->size != 1 || s->n_fds > 1)
			continue;
		if (s->n == STATS_MAX)
			die("more than %d statistics", STATS_MAX);
		struct stat *st = &s->stat[s->n++];
		snprintf(st->name, sizeof(st->name), "%s", d->name);
		st->gauge = (d->flags & KVM_STATS_TYPE_MASK) != KVM_STATS_TYPE_CUMULATIVE;
		st->of_vcpus = s->n_fds == 1;
		st->offset = d->offset;
	}
	free(descs);
	if (end > DATA_BYTES_MAX)
		die("the statistics take %zu bytes", end);
	s->fds[s->n_fds].fd = fd;
	s->fds[s->n_fds].data_offset = head.data_offset;
	s->fds[s->n_fds++].data_bytes = end;
}

void stats_open(struct stats *s, const struct guest *g)
{
	memset(s, 0, sizeof(*s));
	open_next(s, g->vm);
	for (unsigned i = 0; i < g->opts.vcpus; i++)
		open_next(s, g->vcpu[i]);
}

void stats_names(const struct stats *s, FILE *to)
{
	for (size_t i = 0; i < s->n; i++)
		fprintf(to, "HAS stat:%s\n", s->stat[i].name);
}

void stats_close(struct stats *s)
{
	for (unsigned i = 0; i < s->n_fds; i++)
		close(s->fds[i].fd);
}

void stats_read(const struct stats *s, uint64_t values[STATS_MAX])
{
	static char data[1 + GUEST_MAX_VCPUS][DATA_BYTES_MAX];
	for (unsigned i = 0; i < s->n_fds; i++)
		if (pread(s->fds[i].fd, data[i], s->fds[i].data_bytes, s->fds[i].data_offset) !=
		    (ssize_t)s->fds[i].data_bytes)
			die_errno("the statistics' values");
	for (size_t i = 0; i < s->n; i++) {
		unsigned first = s->stat[i].of_vcpus, end = first ? s->n_fds : 1;
		values[i] = 0;
		for (unsigned from = first; from < end; from++) {
			uint64_t value;
			memcpy(&value, data[from] + s->stat[i].offset, sizeof(value));
			values[i] += value;
		}
	}
}
