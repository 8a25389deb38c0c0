// SPDX-License-Identifier: GPL-3.0-or-later
/* `kvmsim validate` for evidence: every row with its prediction, and the verdict. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/cli.h"
#include "analysis/cells.h"
#include "analysis/evidence_report.h"
#include "analysis/gain.h"
#include "analysis/output.h"
#include "analysis/timing_report.h"
#include "model/sim/profile.h"

/* What the program comes with, in the order of the years. */
static const char *const committed[] = {"threads_2010_2013.ini",
					"mmio_2011.ini",
					"kvm_pvm.ini",
					"eager_split_dirty_log_perf.ini",
					"dirty_logging_history.ini",
					"mmu_lock_arm64.ini",
					"mmu_lock_x86.ini"};
#define N_COMMITTED (sizeof(committed) / sizeof(*committed))
/* Runs of more vCPUs take minutes, unless the recipe says otherwise. */
#define QUICK_VCPUS  16
#define EVIDENCE_DIR "analysis/evidence"
/* The profile that the recipe names: a file beside it, or a built-in one. */
static int open_profile(const struct recipe *r, struct profile **out)
{
	size_t len = strlen(r->profile);
	char *path = NULL;
	int err;

	if (len > 4 && !strcmp(r->profile + len - 4, ".ini")) {
		path = evidence_beside(r->name, r->profile);
		if (!path)
			return KVMSIM_ENOMEM;
	}
	err = cli_profile(path ? path : r->profile, out);
	free(path);
	return err;
}

/* One file of evidence, predicted and judged. */
struct judged {
	struct recipe *recipe;
	struct profile *profile;
	struct evidence *evidence; /* or: */
	struct timing *timing;
	struct gain *gain;
	struct cells *cells;
	struct cells_judgement *cell_series;
	size_t n_cell_series;
	struct evidence_judgement judgement;
	struct timing_judgement *series;
	size_t n_series;
	bool pass;
};

static int judge_calls(const char *csv, struct judged *out)
{
	char *beside = csv ? NULL : evidence_beside(out->recipe->name, out->recipe->file);
	int err = KVMSIM_ENOMEM;

	if (csv || beside)
		err = evidence_load(csv ? csv : beside, out->recipe, &cli_errors, &out->evidence);
	err = err ? err : evidence_predict(out->evidence, out->profile, &cli_errors);
	err = err ? err : evidence_judge(out->evidence, &out->judgement);
	out->pass = out->judgement.pass;
	free(beside);
	return err;
}

static int judge_runs(const char *csv, uint64_t quick, struct judged *out)
{
	int err = timing_load(csv, out->recipe, &cli_errors, &out->timing);

	if (!quick)
		quick = out->recipe->quick ? out->recipe->quick : QUICK_VCPUS;
	err = err ? err : timing_predict(out->timing, out->profile, quick, &cli_errors);
	err = err ? err : timing_judge(out->timing, &out->series, &out->n_series);
	if (!err) {
		enum timing_verdict v = timing_verdict(out->series, out->n_series);

		out->pass = v == TIMING_PASS || v == TIMING_MISSED;
	}
	return err;
}

static int judge_gain(const char *csv, const char *recipe_path, struct judged *out)
{
	int err = gain_open(recipe_path, &cli_errors, &out->gain);

	err = err ? err : gain_load(out->gain, csv, &cli_errors);
	err = err ? err : gain_predict(out->gain, &cli_errors);
	out->pass = !err && out->gain->pass;
	return err;
}

/* Passes where it is as good as aimed at, or as the recipe says beforehand that it is not. */
static int judge_cells(const char *csv, const char *recipe_path, struct judged *out)
{
	int err = cells_load(recipe_path, csv, &cli_errors, &out->cells);

	err = err ? err : cells_predict(out->cells, (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
	err = err ? err : cells_judge(out->cells, &out->cell_series, &out->n_cell_series);
	out->pass = !err && cells_pass(out->cell_series, out->n_cell_series);
	return err;
}

static int judge_one(const char *csv, const char *recipe_path, uint64_t quick, struct judged *out)
{
	if (gain_is(recipe_path))
		return judge_gain(csv, recipe_path, out);
	if (cells_is(recipe_path))
		return judge_cells(csv, recipe_path, out);

	int err = recipe_open(recipe_path, &cli_errors, &out->recipe);

	if (err)
		return err;
	err = open_profile(out->recipe, &out->profile);
	err = err ? err : recipe_check_profile(out->recipe, out->profile, &cli_errors);
	if (err)
		return err;
	return *out->recipe->runs ? judge_runs(csv, quick, out) : judge_calls(csv, out);
}

static void judged_free(struct judged *j)
{
	if (j->profile)
		profile_free(j->profile);
	evidence_free(j->evidence);
	timing_free(j->timing);
	gain_free(j->gain);
	cells_free(j->cells);
	free(j->cell_series);
	free(j->series);
	recipe_free(j->recipe);
}

static int print_tables(const struct judged *j, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		if (i)
			printf("\n");
		err = j[i].gain	   ? gain_print(j[i].gain)
		      : j[i].cells ? cells_print(j[i].cells, j[i].cell_series, j[i].n_cell_series)
		      : j[i].timing
			      ? timing_print(j[i].timing, j[i].series, j[i].n_series, j[i].profile)
			      : evidence_print(j[i].evidence, &j[i].judgement, j[i].profile);
	}
	return err;
}

/* The kinds have different columns: the calls first. */
static void print_csvs(const struct judged *j, size_t n)
{
	bool heading = false;

	for (size_t i = 0; i < n; i++) {
		if (!j[i].evidence)
			continue;
		if (!heading)
			evidence_csv_heading();
		heading = true;
		evidence_csv(j[i].evidence);
	}
	for (size_t i = 0; i < n; i++)
		if (j[i].timing)
			timing_csv(j[i].timing);
	for (size_t i = 0; i < n; i++)
		if (j[i].gain)
			gain_csv(j[i].gain);
	for (size_t i = 0; i < n; i++)
		if (j[i].cells)
			cells_csv(j[i].cells);
}

static int print_files(const struct judged *j, size_t n, enum evidence_format format)
{
	json_t *files;

	if (format == EVIDENCE_TABLE)
		return print_tables(j, n);
	if (format == EVIDENCE_CSV) {
		print_csvs(j, n);
		return 0;
	}
	files = json_array();
	for (size_t i = 0; i < n; i++) {
		json_t *file =
			j[i].gain    ? gain_json(j[i].gain)
			: j[i].cells ? cells_json(j[i].cells, j[i].cell_series, j[i].n_cell_series)
			: j[i].timing
				? timing_json(j[i].timing, j[i].series, j[i].n_series, j[i].profile)
				: evidence_json(j[i].evidence, &j[i].judgement, j[i].profile);

		if (json_array_append_new(files, file)) {
			json_decref(files);
			return KVMSIM_ENOMEM;
		}
	}
	return json_print(files, stdout);
}

char *evidence_dir(void)
{
	char exe[4096];
	ssize_t n;
	char *dir = NULL;

	if (!access(EVIDENCE_DIR, R_OK))
		return strdup(EVIDENCE_DIR);
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	for (int up = 0; up < 3 && strrchr(exe, '/'); up++)
		*strrchr(exe, '/') = '\0';
	if (asprintf(&dir, "%s/" EVIDENCE_DIR, exe) < 0)
		return NULL;
	return dir;
}

int evidence_validate(const char *csv, const char *recipe, uint64_t quick,
		      enum evidence_format format)
{
	struct judged judged[N_COMMITTED] = {{0}};
	size_t n = recipe ? 1 : N_COMMITTED;
	char *dir = recipe ? NULL : evidence_dir();
	bool pass = true;
	int err = recipe || dir ? 0 : KVMSIM_ENOMEM;

	/* All of it before anything is printed: an interrupt leaves no half of an output. */
	for (size_t i = 0; i < n && !err; i++) {
		char *path = NULL;

		if (!recipe && asprintf(&path, "%s/%s", dir, committed[i]) < 0) {
			err = KVMSIM_ENOMEM;
			break;
		}
		err = judge_one(csv, recipe ? recipe : path, quick, &judged[i]);
		pass &= judged[i].pass;
		free(path);
	}
	err = err ? err : print_files(judged, n, format);
	for (size_t i = 0; i < n; i++)
		judged_free(&judged[i]);
	free(dir);
	if (err)
		return cli_file_exit_code(err);
	return pass ? EXIT_DONE : EXIT_GATE;
}
