// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/calibrate.h"
#include "analysis/cli.h"
#include "analysis/matrix_cost.h"
#include "analysis/output.h"
#include "analysis/timing.h"
#include "model/params.h"
#include "traces/outfile.h"

static int calibrate_run(const struct verb *verb, int argc, char **argv);

#define MEMBERS_SHOWN 3

const struct verb verb_calibrate = {
	.name = "calibrate",
	.summary = "fit a cost profile to measured rows",
	.usage = "calibrate --recipe FILE.ini [--evidence FILE.csv] [-o PROFILE.ini]\n"
		 "Fits prices to the rows that the recipe names, by non-negative least squares of\n"
		 "measured time on predicted counts, and writes a profile with the prices, their\n"
		 "covariance and where each came from. Prints the fit.\n\n"
		 "  --recipe FILE.ini    which rows are fitted, by which numbers\n"
		 "  --evidence FILE.csv  the measured rows; the file that the recipe names\n"
		 "  -o, --output FILE    write the profile there; on standard output when not "
		 "given,\n"
		 "                       in place of the fit\n"
		 "  --help\n",
	.run = calibrate_run,
};

/* "fitted: nr_dirty 8 375 ..." without the path, so that the text is the same from any folder. */
static char *source_words(const struct recipe *r, const struct calibration *c)
{
	char *words;
	const char *slash = strrchr(r->name, '/');

	if (asprintf(&words, "fitted with %zu numbers on %zu rows of %s (%s)", c->n_fitted,
		     c->n_rows, r->file, slash ? slash + 1 : r->name) < 0)
		return NULL;
	return words;
}

/* Writes @text to @path: whole or not at all. */
static int write_profile(const char *path, const char *text)
{
	struct outfile out;
	const char *what = "cannot write";
	int err = outfile_open(&out, path, &what);
	ssize_t n;

	for (size_t left = strlen(text); !err && left; left -= (size_t)n, text += n) {
		n = write(out.fd, text, left);
		if (n < 0) {
			what = "writing failed";
			err = KVMSIM_EIO;
			break;
		}
	}
	if (!err && outfile_finish(&out) != OUTFILE_DONE) {
		what = "finishing failed";
		err = KVMSIM_EIO;
	}
	if (err == KVMSIM_EIO)
		kvmsim_err(&cli_errors, err, "%s: %s: %s", path, what, strerror(errno));
	outfile_abort(&out);
	return err;
}

static uint64_t thousandths(double price)
{
	return (uint64_t)llround(1000 * price);
}

/* "write_protect*109 rmap_spte*43 ...": the group's counts, as in the recipe. */
static const char *members(const struct recipe_group *g, char *words, size_t room)
{
	size_t used = 0;

	words[0] = '\0';
	for (size_t i = 0; i < g->n && i < MEMBERS_SHOWN && used < room; i++) {
		used += (size_t)snprintf(words + used, room - used, "%s%s", i ? " " : "",
					 model_vocabulary.counts[g->count[i]]);
		if (g->weight[i] != 1 && used < room)
			used += (size_t)snprintf(words + used, room - used, "*%g", g->weight[i]);
	}
	if (g->n > MEMBERS_SHOWN && used < room)
		snprintf(words + used, room - used, " ...");
	return words;
}

static int print_fit(const struct recipe *r, const struct calibration *c)
{
	struct table *t = table_create("lrrl");
	char words[256], price[OUT_TEXT];
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	printf("%zu numbers on %zu rows; root mean square of relative errors %.1f%%\n\n",
	       c->n_fitted, c->n_rows, 100 * sqrt(c->rss / c->n_rows));
	table_cell(t, "group");
	table_cell(t, "price, %s", r->machine_unit);
	table_cell(t, "+- (1 sd)");
	table_cell(t, "of: COUNT*WEIGHT costs the price WEIGHT times");
	for (size_t g = 0; g < r->n_groups; g++) {
		table_cell(t, "%s", r->group[g].name);
		table_cell(t, "%s.%03u", out_u64(price, thousandths(c->group[g]) / 1000),
			   (unsigned)(thousandths(c->group[g]) % 1000));
		if (c->group[g] > 0)
			table_cell(t, "%.3f", sqrt(c->group_cov[g * r->n_groups + g]));
		else
			table_cell(t, "at bound");
		table_cell(t, "%s", members(&r->group[g], words, sizeof(words)));
	}
	err = table_print(t, stdout);
	table_free(t);
	if (r->latent.n)
		printf("\nlatent %s = %llu, best of %zu values\n",
		       model_params[r->latent_param].name, (unsigned long long)c->latent,
		       r->latent.n);
	return err;
}

/* Rows that are GET_DIRTY_LOG calls. */
static int fit_calls(const struct recipe *r, const char *csv, struct calibration *c)
{
	char *beside = csv ? NULL : evidence_beside(r->name, r->file);
	struct evidence *e = NULL;
	int err = KVMSIM_ENOMEM;

	if (csv || beside)
		err = evidence_load(csv ? csv : beside, r, &cli_errors, &e);
	err = err ? err : calibrate(e, &cli_errors, c);
	evidence_free(e);
	free(beside);
	return err;
}

/* Rows that are runs of memstress. */
static int fit_runs(const struct recipe *r, const char *csv, struct calibration *c)
{
	struct timing *t = NULL;
	int err = timing_load(csv, r, &cli_errors, &t);

	err = err ? err : timing_calibrate(t, &cli_errors, c);
	timing_free(t);
	return err;
}

static int fit(const char *recipe_path, const char *csv, const char *output)
{
	struct recipe *r;
	struct calibration c = {0};
	char *source = NULL, *text = NULL;
	int err = recipe_open(recipe_path, &cli_errors, &r);

	if (err)
		return cli_input_exit_code(err);
	err = r->n_cases ? matrix_calibrate(csv, r, &cli_errors, &c)
	      : *r->runs ? fit_runs(r, csv, &c)
			 : fit_calls(r, csv, &c);
	/* Evidence that cannot carry the fit is an input that is no use. */
	int code = cli_file_exit_code(err);

	if (!err) {
		source = source_words(r, &c);
		/* A matrix's rows repeat to the instruction: what is left over is no spread. */
		text = source ? recipe_profile_text(r, c.price, r->n_cases ? NULL : c.cov, c.latent,
						    source)
			      : NULL;
		err = text ? 0 : KVMSIM_ENOMEM;
		if (!err && output)
			err = write_profile(output, text);
		if (!err && output)
			err = print_fit(r, &c);
		else if (!err)
			fputs(text, stdout);
		code = cli_exit_code(err);
	}
	calibration_free(&c);
	recipe_free(r);
	free(source);
	free(text);
	return code;
}

static int calibrate_run(const struct verb *verb, int argc, char **argv)
{
	enum { OPT_RECIPE = 256, OPT_EVIDENCE, OPT_HELP };
	static const struct option options[] = {{"recipe", required_argument, NULL, OPT_RECIPE},
						{"evidence", required_argument, NULL, OPT_EVIDENCE},
						{"output", required_argument, NULL, 'o'},
						{"help", no_argument, NULL, OPT_HELP},
						{0}};
	const char *recipe = NULL, *csv = NULL, *output = NULL;
	int opt;

	opterr = 0;
	optind = 1;
	while ((opt = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
		switch (opt) {
		case OPT_RECIPE:
			recipe = optarg;
			break;
		case OPT_EVIDENCE:
			csv = optarg;
			break;
		case 'o':
			output = optarg;
			break;
		case OPT_HELP:
			return cli_help(verb);
		case ':':
			return cli_usage(verb, "%s needs a value", argv[optind - 1]);
		default:
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		}
	}
	if (optind < argc)
		return cli_usage(verb, "unexpected argument '%s'", argv[optind]);
	if (!recipe)
		return cli_usage(verb, "--recipe FILE.ini is needed");
	cli_catch_signals();

	int code = fit(recipe, csv, output);

	if (code == EXIT_INTERRUPTED)
		kvmsim_err(&cli_errors, KVMSIM_EINTR, "interrupted; no profile was written");
	return code;
}
