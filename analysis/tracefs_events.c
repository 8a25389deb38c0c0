// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/tracefs_events.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALWAYS "kvm:kvm_entry,kvm:kvm_exit," /* they say which vCPU a thread is, and in what */

/* What each is for: mmu, which faults there are, what became of them, what was zapped; exits, why
 * the guest left and what userspace was asked for; locks, who waits; sched, who ran instead. */
static const struct {
	const char *name, *events;
} purposes[] = {
	{"mmu", ALWAYS "kvm:kvm_page_fault,kvmmmu:*,kvm:vcpu_match_mmio,kvm:kvm_mmio,"
		       "kvm:kvm_unmap_hva_range,kvm:kvm_dirty_ring_push,kvm:kvm_dirty_ring_reset,"
		       "kvm:kvm_dirty_ring_exit,kvm:kvm_pml_full"},
	{"exits", ALWAYS "kvm:kvm_userspace_exit,kvm:kvm_mmio,kvm:kvm_fast_mmio,kvm:kvm_pio,"
			 "kvm:kvm_msr,kvm:kvm_cpuid,kvm:kvm_hypercall,kvm:kvm_nested_vmexit,"
			 "kvm:kvm_vcpu_wakeup,kvm:kvm_halt_poll_ns,kvm:kvm_ple_window_update"},
	{"locks", "lock:contention_begin,lock:contention_end"},
	{"sched", "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,sched:sched_wakeup_new,"
		  "kvm:kvm_vcpu_wakeup"},
};
#define N_PURPOSES (sizeof(purposes) / sizeof(*purposes))
const char *const tracefs_purposes[] = {"mmu", "exits", "locks", "sched", NULL};

static int add(char ***list, size_t *n, const char *group, const char *name)
{
	char **grown = realloc(*list, (*n + 1) * sizeof(**list));

	if (!grown)
		return KVMSIM_ENOMEM;
	*list = grown;
	if (asprintf(&grown[*n], "%s/%s", group, name) < 0)
		return KVMSIM_ENOMEM;
	++*n;
	return 0;
}

/* All events of a group; how many, or KVMSIM_ENOMEM. */
static int add_group(const struct tracefs *t, const char *group, struct tracefs_events *out)
{
	char file[256];
	char *path;
	DIR *d;
	struct dirent *e;
	int n = 0;

	snprintf(file, sizeof(file), "events/%s", group);
	path = tracefs_path(t, false, file);
	d = path ? opendir(path) : NULL;
	free(path);
	if (!d)
		return 0;
	while (n >= 0 && (e = readdir(d))) {
		snprintf(file, sizeof(file), "events/%.100s/%.100s/format", group, e->d_name);
		if (*e->d_name != '.' && tracefs_has(t, file))
			n = add(&out->name, &out->n, group, e->d_name) ? KVMSIM_ENOMEM : n + 1;
	}
	closedir(d);
	return n;
}

/* @asked: every one of them must be there. */
static int add_list(const struct tracefs *t, const char *list, bool asked,
		    struct tracefs_events *out, const struct kvmsim_errsink *errors)
{
	char *copy = strdup(list), *next = copy;
	int err = copy ? 0 : KVMSIM_ENOMEM;

	for (char *group; !err && (group = strsep(&next, ","));) {
		char *name = strchr(group, ':'), file[256];
		int n;

		if (!name || name == group || !name[1] || strchr(group, '/') ||
		    strchr(group, '.')) {
			err = kvmsim_err(errors, KVMSIM_EINVAL,
					 "'%s': expected GROUP:NAME or GROUP:*", group);
			break;
		}
		*name++ = 0;
		snprintf(file, sizeof(file), "events/%.100s/%.100s/format", group, name);
		if (!strcmp(name, "*"))
			n = add_group(t, group, out);
		else if (tracefs_has(t, file))
			n = add(&out->name, &out->n, group, name) ? KVMSIM_ENOMEM : 1;
		else
			n = 0;
		if (n < 0)
			err = n;
		else if (!n && asked)
			err = kvmsim_err(errors, KVMSIM_ENOENT, "this kernel has no event %s:%s",
					 group, name);
		else if (!n)
			err = add(&out->lacking, &out->n_lacking, group, name);
	}
	free(copy);
	return err;
}

static const char *events_of(const char *purpose)
{
	for (size_t i = 0; i < N_PURPOSES; i++)
		if (!strcmp(purposes[i].name, purpose))
			return purposes[i].events;
	return NULL;
}

bool tracefs_purposes_known(const char *list, const struct kvmsim_errsink *errors)
{
	char *copy = strdup(list), *next = copy;
	bool known = copy;

	for (char *p; known && (p = strsep(&next, ","));) {
		known = events_of(p);
		if (!known)
			kvmsim_err(errors, KVMSIM_EINVAL,
				   "purpose '%s': expected mmu, exits, locks or sched", p);
	}
	free(copy);
	return known;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t once(char **name, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(name, n, sizeof(*name), by_name);
	for (size_t i = 0; i < n; i++) {
		if (kept && !strcmp(name[kept - 1], name[i]))
			free(name[i]);
		else
			name[kept++] = name[i];
	}
	return kept;
}

int tracefs_events_find(const struct tracefs *t, const char *which, const char *list,
			struct tracefs_events *out, const struct kvmsim_errsink *errors)
{
	char *copy = which ? strdup(which) : NULL, *next = copy;
	int err = which && !copy ? KVMSIM_ENOMEM : 0;

	*out = (struct tracefs_events){0};
	for (char *p; !err && (p = strsep(&next, ","));) {
		const char *events = events_of(p);

		err = events ? add_list(t, events, false, out, errors) : KVMSIM_EINVAL;
	}
	free(copy);
	if (!err && list)
		err = add_list(t, list, true, out, errors);
	out->n = once(out->name, out->n);
	out->n_lacking = once(out->lacking, out->n_lacking);
	if (!err && !out->n)
		err = kvmsim_err(errors, KVMSIM_ENOENT,
				 "this kernel has none of the events; is kvm loaded?");
	return err;
}

void tracefs_events_free(struct tracefs_events *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->name[i]);
	for (size_t i = 0; i < e->n_lacking; i++)
		free(e->lacking[i]);
	free(e->name);
	free(e->lacking);
	*e = (struct tracefs_events){0};
}
