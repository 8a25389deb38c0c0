// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <linux/kvm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "workloads/kvm/tally.h"

#define DATA_MAX 4096u /* values of one file */

struct stats_file {
	int fd;
	uint32_t data_offset;
	size_t data_bytes;
	char *descriptors;
	size_t n;
	uint16_t index[TALLY_MAX]; /* of a file's statistic in vm_stats.name */
	uint16_t place[TALLY_MAX]; /* of its value in the data, in words */
};

static int broken(const struct vm_stats *s)
{
	return kvmsim_err(s->m->opts->errors, KVMSIM_EIO, "KVM_GET_STATS_FD: %s",
			  errno ? strerror(errno) : "not in the format of its documentation");
}

static int read_at(const struct vm_stats *s, int fd, void *to, size_t bytes, uint64_t offset)
{
	errno = 0;
	return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes ? 0 : broken(s);
}

static int find_name(struct vm_stats *s, const char *name)
{
	size_t i = 0;

	while (i < s->n && strcmp(s->name[i], name))
		i++;
	if (i == TALLY_MAX)
		return kvmsim_err(s->m->opts->errors, KVMSIM_EUNSUPPORTED,
				  "this KVM has more than %d statistics", TALLY_MAX);
	s->name[i] = name;
	s->n += i == s->n;
	return (int)i;
}

/* Histograms are left out. */
static int add_descriptor(struct vm_stats *s, struct stats_file *f, const struct kvm_stats_desc *d)
{
	bool gauge = (d->flags & KVM_STATS_TYPE_MASK) != KVM_STATS_TYPE_CUMULATIVE;
	int at;

	if (d->size != 1 || (gauge && !s->gauges))
		return 0;
	at = find_name(s, d->name);
	if (at < 0)
		return at;
	if (f->n == TALLY_MAX || d->offset + sizeof(uint64_t) > DATA_MAX)
		return broken(s);
	s->gauge[at] = gauge;
	f->index[f->n] = (uint16_t)at;
	f->place[f->n++] = (uint16_t)(d->offset / sizeof(uint64_t));
	if (d->offset + sizeof(uint64_t) > f->data_bytes)
		f->data_bytes = d->offset + sizeof(uint64_t);
	return 0;
}

static int open_file(struct vm_stats *s, struct stats_file *f, int owner)
{
	struct kvm_stats_header head;
	int err;

	f->fd = ioctl(owner, KVM_GET_STATS_FD, NULL);
	if (f->fd < 0)
		return kvmsim_err(s->m->opts->errors, KVMSIM_EUNSUPPORTED,
				  "this KVM has no statistics (KVM_GET_STATS_FD): %s",
				  strerror(errno));
	err = read_at(s, f->fd, &head, sizeof(head), 0);
	if (err)
		return err;
	size_t each = sizeof(struct kvm_stats_desc) + head.name_size;

	f->data_offset = head.data_offset;
	f->descriptors = malloc(each * head.num_desc + 1);
	if (!f->descriptors)
		return KVMSIM_ENOMEM;
	err = read_at(s, f->fd, f->descriptors, each * head.num_desc, head.desc_offset);
	for (uint32_t i = 0; !err && i < head.num_desc; i++)
		err = add_descriptor(s, f, (const void *)(f->descriptors + i * each));
	return err;
}

static int add_file(const struct vm_stats *s, const struct stats_file *f, uint64_t *sum)
{
	uint64_t data[DATA_MAX / sizeof(uint64_t)];
	int err = read_at(s, f->fd, data, f->data_bytes, f->data_offset);

	for (size_t i = 0; !err && i < f->n; i++)
		sum[f->index[i]] += data[f->place[i]];
	return err;
}

int vm_stats_open(struct vm_stats *s, const struct machine *m)
{
	uint32_t n = m->opts->n_vcpus;
	struct kvm_tally none;
	int err;

	s->m = m;
	s->files = calloc(1 + n, sizeof(*s->files));
	if (!s->files)
		return KVMSIM_ENOMEM;
	for (uint32_t i = 0; i <= n; i++)
		s->files[i].fd = -1;
	err = open_file(s, &s->files[0], m->vm);
	for (uint32_t i = 0; !err && i < n; i++)
		err = open_file(s, &s->files[1 + i], m->vcpus[i].fd);
	return err ? err : vm_stats_change(s, &none);
}

void vm_stats_close(struct vm_stats *s)
{
	for (uint32_t i = 0; s->files && i <= s->m->opts->n_vcpus; i++) {
		if (s->files[i].fd >= 0)
			close(s->files[i].fd);
		free(s->files[i].descriptors);
	}
	free(s->files);
	s->files = NULL;
}

int vm_stats_change(struct vm_stats *s, struct kvm_tally *out)
{
	uint64_t sum[TALLY_MAX] = {0};
	int err = 0;

	for (uint32_t i = 0; !err && i <= s->m->opts->n_vcpus; i++)
		err = add_file(s, &s->files[i], sum);
	for (size_t i = 0; !err && i < s->n; i++) {
		s->change[i] = sum[i] - s->last[i];
		s->last[i] = sum[i];
	}
	*out = (struct kvm_tally){.n = s->n, .name = s->name, .value = s->change};
	return err;
}
