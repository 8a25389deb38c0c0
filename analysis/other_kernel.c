// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/other_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/policy/preset.h"
#include "workloads/scenario_file.h"

struct kernel_names {
	char *text; /* lines, each ended by a NUL */
	const char **name;
	size_t n;
};

/* MAJOR.MINOR as a number of releases: 3.19, 4.20 and 5.19 were the last of theirs; of 2.6 the
 * third number counts, to 2.6.39. 0: no version. */
static unsigned long version_of(const char *text, const char **end)
{
	unsigned long major, minor;
	char *p;

	*end = text;
	if (*text < '0' || *text > '9')
		return 0;
	major = strtoul(text, &p, 10);
	if (*p != '.' || p[1] < '0' || p[1] > '9')
		return 0;
	minor = strtoul(p + 1, &p, 10);
	if (major == 2 && *p == '.') {
		major = 1;
		minor = strtoul(p + 1, &p, 10);
	}
	*end = p;
	return major * 20 + minor;
}

const char *other_kernel_preset(const char *release, bool tdp_mmu)
{
	const char *end, *best = NULL;
	unsigned long wanted = version_of(release, &end), least = 0, best_version = 0;
	const struct kvm_preset *k;

	if (!wanted)
		return NULL;
	for (size_t i = 0; (k = preset_at(i)); i++) {
		unsigned long v = version_of(k->name, &end);
		unsigned long distance = v > wanted ? v - wanted : wanted - v;
		bool released = !*end || !strcmp(end, "-shadow") || !strcmp(end, "-tdp");

		if (k->tdp_mmu != tdp_mmu || !released)
			continue;
		if (best && (distance > least || (distance == least && v > best_version)))
			continue;
		best = k->name;
		least = distance;
		best_version = v;
	}
	return best;
}

static bool known_form(const char *line)
{
	return !strncmp(line, "ev:", 3) || !strncmp(line, "stat:", 5);
}

int kernel_names_read(const char *path, const struct kvmsim_errsink *errors,
		      struct kernel_names **out)
{
	struct kernel_names *n = calloc(1, sizeof(*n));
	char *save = NULL;
	size_t len, lines = 0;
	int err;

	*out = NULL;
	if (!n)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", path);
	err = scenario_read_file(path, errors, &n->text, &len);
	for (size_t i = 0; !err && i < len; i++)
		lines += n->text[i] == '\n';
	n->name = err ? NULL : calloc(lines + 1, sizeof(*n->name));
	if (!err && !n->name) {
		err = KVMSIM_ENOMEM;
		kvmsim_err(errors, err, "%s: out of memory", path);
	}
	for (char *line = err ? NULL : strtok_r(n->text, "\n", &save); line && !err;
	     line = strtok_r(NULL, "\n", &save)) {
		if (!known_form(line))
			err = kvmsim_err(errors, KVMSIM_EPARSE,
					 "%s:%zu: expected ev:NAME or stat:NAME, found '%.60s'",
					 path, n->n + 1, line);
		n->name[n->n++] = line;
	}
	if (err)
		kernel_names_free(n);
	else
		*out = n;
	return err;
}

void kernel_names_free(struct kernel_names *n)
{
	if (!n)
		return;
	free(n->name);
	free(n->text);
	free(n);
}

bool kernel_names_have(const struct kernel_names *n, const char *quantity)
{
	size_t len = strcspn(quantity, "[");
	bool fields = quantity[len];

	if (!n || !known_form(quantity))
		return true;
	for (size_t i = 0; i < n->n; i++) {
		const char *name = n->name[i];

		if (!strncmp(name, quantity, len) &&
		    (!strcmp(name + len, "[]") || (!name[len] && !fields)))
			return true;
	}
	return false;
}
