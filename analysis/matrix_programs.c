// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/matrix_file.h"
#include "workloads/ops_program.h"
#include "workloads/scenario_file.h"

/* One program, of any of the file's configurations. */
struct matrix_program {
	struct matrix_program *next;
	struct ops_program program;
};

static const struct ops_program *known(const struct matrix_file *f, const char *name)
{
	for (const struct matrix_program *p = f->programs; p; p = p->next) {
		if (!strcmp(p->program.name, name))
			return &p->program;
	}
	return NULL;
}

int matrix_program_read(const char *dir, const char *name, const struct kvmsim_errsink *errors,
			struct ops_program *out)
{
	char path[512], error[256], *text = NULL;
	size_t len;
	int err;

	snprintf(path, sizeof(path), "%s/%s.ops", dir, name);
	if (access(path, F_OK) < 0)
		return 0;
	err = scenario_read_file(path, errors, &text, &len);
	if (!err && ops_parse(out, text, path, error, sizeof(error)))
		err = kvmsim_err(errors, KVMSIM_EPARSE, "%s", error);
	if (!err && strcmp(out->name, name))
		err = kvmsim_err(errors, KVMSIM_EPARSE, "%s: its case is called %s", path,
				 out->name);
	free(text);
	return err ? err : 1;
}

/* *@out stays NULL when there is no such file. */
static int load(struct matrix_file *f, const char *dir, const char *name,
		const struct kvmsim_errsink *errors, const struct ops_program **out)
{
	struct matrix_program *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "case %s: out of memory", name);
	r = matrix_program_read(dir, name, errors, &p->program);
	if (r <= 0) {
		free(p);
		return r;
	}
	p->next = f->programs;
	f->programs = p;
	*out = &p->program;
	return 0;
}

int matrix_file_programs(struct matrix_file *f, const char *dir,
			 const struct kvmsim_errsink *errors)
{
	int err = 0;

	for (size_t i = 0; i < f->n_configs && !err; i++) {
		struct matrix_config *c = &f->configs[i];

		if (matrix_has_case(c->test_case))
			continue;
		c->looked_for = true;
		c->program = known(f, c->test_case);
		if (!c->program)
			err = load(f, dir, c->test_case, errors, &c->program);
	}
	return err;
}

void matrix_programs_free(struct matrix_file *f)
{
	while (f->programs) {
		struct matrix_program *next = f->programs->next;

		free(f->programs);
		f->programs = next;
	}
}
