// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/cli.h"
#include "analysis/evidence.h"
#include "analysis/matrix.h"
#include "analysis/matrix_cost.h"
#include "analysis/output.h"
#include "analysis/run.h"
#include "analysis/sequence.h"
#include "model/sim/profile.h"

/* Of rows that are runs of vCPUs, those that take seconds. */

struct options {
	const char *matrix;
	const char *cases, *mmus, *programs, *kernel;
	const char *profile;
	const char *evidence, *recipe;
	const char *has;
	uint64_t vcpus;	  /* 0: not given */
	uint64_t context; /* CONTEXT_UNSET: not given */
	bool check, json, csv, cost, first_divergence;
};
#define CONTEXT_UNSET UINT64_MAX

/* What --has names, or NULL without it. */
static int names_of(const struct options *o, struct kernel_names **out)
{
	*out = NULL;
	return o->has ? kernel_names_read(o->has, &cli_errors, out) : 0;
}

static int validate_events(struct matrix_file *f, const struct options *o,
			   const struct profile *profile)
{
	struct kernel_names *has;
	struct matrix_select sel = {.cases = o->cases,
				    .mmus = o->mmus,
				    .profile = profile,
				    .check = o->check,
				    .kernel = o->kernel,
				    .errors = &cli_errors};
	struct matrix_result r;
	int err = names_of(o, &has), code;

	if (err)
		return cli_input_exit_code(err);
	sel.has = has;
	err = matrix_validate(f, &sel, &r);
	code = r.pass ? EXIT_DONE : EXIT_GATE;
	if (!err)
		err = o->json ? json_print(matrix_json(&r), stdout) : matrix_print(&r, stdout);
	matrix_result_free(&r);
	kernel_names_free(has);
	return err ? cli_file_exit_code(err) : code;
}

/* The recipe of a matrix's costs that @path names; NULL: the one that the program comes with. */
static int cost_recipe(const char *path, struct recipe **out)
{
	char *dir = path ? NULL : evidence_dir(), *own = NULL;
	int err = path || dir ? 0 : KVMSIM_ENOMEM;

	*out = NULL;
	if (!err && !path && asprintf(&own, "%s/kernel/cost.ini", dir) < 0)
		err = KVMSIM_ENOMEM;
	err = err ? err : recipe_open(path ? path : own, &cli_errors, out);
	if (!err && !(*out)->n_cases)
		err = kvmsim_err(&cli_errors, KVMSIM_EPARSE,
				 "%s: --cost needs a recipe with [cases]", path);
	free(own);
	free(dir);
	return err;
}

static int validate_costs(struct matrix_file *f, const struct options *o,
			  const struct profile *profile)
{
	const struct matrix_select sel = {.cases = o->cases,
					  .mmus = o->mmus,
					  .profile = profile,
					  .check = o->check,
					  .errors = &cli_errors};
	struct cost_result r = {0};
	struct recipe *recipe;
	int err = cost_recipe(o->recipe, &recipe);
	int code;

	if (err) {
		recipe_free(recipe);
		return cli_input_exit_code(err);
	}
	err = matrix_cost(f, &sel, recipe, &r);
	code = r.pass ? EXIT_DONE : EXIT_GATE;
	if (!err)
		err = o->json ? json_print(cost_json(&r), stdout) : cost_print(&r, stdout);
	cost_result_free(&r);
	recipe_free(recipe);
	return err ? cli_file_exit_code(err) : code;
}

static const char *case_of(const struct matrix_config *c)
{
	return c->test_case;
}

static const char *mmu_of(const struct matrix_config *c)
{
	return c->mmu;
}

static bool has_name(const struct matrix_file *f, const char *item,
		     const char *(*name_of)(const struct matrix_config *))
{
	for (size_t i = 0; i < f->n_configs; i++)
		if (!strcmp(name_of(&f->configs[i]), item))
			return true;
	return false;
}

/* Whether the file has everything in @list; else a message with what it has, as far as it fits. */
static bool list_known(const struct matrix_file *f, const char *option, const char *list,
		       const char *(*name_of)(const struct matrix_config *))
{
	char names[4096] = "";

	for (size_t i = 0; i < f->n_configs; i++) {
		const char *name = name_of(&f->configs[i]);
		size_t used = strlen(names);

		if (!used || !matrix_selected(names, name))
			snprintf(names + used, sizeof(names) - used, "%s%s", used ? "," : "", name);
	}
	for (const char *p = list; p && *p;) {
		size_t n = strcspn(p, ",");
		char item[64];

		snprintf(item, sizeof(item), "%.*s", (int)n, p);
		if (!has_name(f, item, name_of)) {
			kvmsim_err(&cli_errors, KVMSIM_ENOENT, "%s %s: %s has %s", option, item,
				   f->path, names);
			return false;
		}
		p += n + (p[n] == ',');
	}
	return true;
}

static bool names_known(const struct matrix_file *f, const struct options *o)
{
	return list_known(f, "--case", o->cases, case_of) &&
	       list_known(f, "--mmu", o->mmus, mmu_of);
}

static int validate_matrix(const struct options *o)
{
	struct profile *profile = NULL;
	struct matrix_file *f = NULL;
	int err = cli_profile(o->profile ? o->profile : "tcg-icount", &profile);
	int code;

	if (err)
		return cli_input_exit_code(err);
	if (o->cost && strcmp(profile_unit(profile), "instructions")) {
		kvmsim_err(&cli_errors, KVMSIM_EINVAL,
			   "profile %s prices in %s, the matrix was measured in instructions",
			   profile_name(profile), profile_unit(profile));
		profile_free(profile);
		return EXIT_USAGE;
	}
	err = matrix_file_load(o->matrix, &cli_errors, &f);
	if (!err && o->programs)
		err = matrix_file_programs(f, o->programs, &cli_errors);
	code = err		    ? cli_input_exit_code(err)
	       : !names_known(f, o) ? EXIT_USAGE
	       : o->cost	    ? validate_costs(f, o, profile)
				    : validate_events(f, o, profile);
	matrix_file_free(f);
	profile_free(profile);
	return code;
}

/* One file more; the worse of its exit code and @code. */
static int validate_sequence(const char *path, const struct options *o,
			     const struct profile *profile, const struct kernel_names *has,
			     json_t *list, int code)
{
	const uint64_t context = o->context == CONTEXT_UNSET ? 5 : o->context;
	const struct sequence_opts so = {.programs = o->programs,
					 .kernel = o->kernel,
					 .has = has,
					 .profile = profile,
					 .errors = &cli_errors};
	struct sequence_result r;
	int err = sequence_compare(path, &so, &r);
	int own = err ? cli_file_exit_code(err) : r.first ? EXIT_GATE : EXIT_DONE;

	if (!err && o->json)
		json_array_append_new(list, sequence_json(&r, context));
	else if (!err)
		sequence_print(&r, context, stdout);
	sequence_free(&r);
	return own > code ? own : code;
}

static int validate_sequences(const struct options *o, char *const *paths, int n)
{
	struct profile *profile = NULL;
	json_t *list = json_array();
	struct kernel_names *has;
	int err = names_of(o, &has), code;

	err = err ? err : cli_profile("tcg-icount", &profile);
	code = err ? cli_input_exit_code(err) : EXIT_DONE;

	for (int i = 0; i < n && !err && code != EXIT_INTERRUPTED; i++)
		code = validate_sequence(paths[i], o, profile, has, list, code);
	if (!err && o->json && code != EXIT_INTERRUPTED) {
		err = json_print(list, stdout);
		code = err ? cli_file_exit_code(err) : code;
	} else {
		json_decref(list);
	}
	kernel_names_free(has);
	profile_free(profile);
	return code;
}

static int validate_evidence(const struct verb *verb, const struct options *o)
{
	if (o->cases || o->mmus || o->kernel || o->cost || o->check || o->profile || o->programs)
		return cli_usage(
			verb, "--case, --mmu, --kernel, --cost, --check and --profile are about a "
			      "--matrix FILE.csv");
	return evidence_validate(o->evidence, o->recipe, o->vcpus,
				 o->json  ? EVIDENCE_JSON
				 : o->csv ? EVIDENCE_CSV
					  : EVIDENCE_TABLE);
}

/* Whether --programs names a folder; else a message. */
static bool programs_there(const struct verb *verb, const char *dir)
{
	struct stat st;
	int err = stat(dir, &st) < 0 ? errno : !S_ISDIR(st.st_mode) ? ENOTDIR : 0;

	if (err)
		cli_usage(verb, "--programs %s: %s", dir, strerror(err));
	return !err;
}

static int parse_and_validate(const struct verb *verb, int argc, char **argv)
{
	static const struct option options[] = {{"matrix", required_argument, NULL, 'm'},
						{"case", required_argument, NULL, 'c'},
						{"mmu", required_argument, NULL, 'u'},
						{"programs", required_argument, NULL, 'g'},
						{"kernel", required_argument, NULL, 'n'},
						{"profile", required_argument, NULL, 'p'},
						{"cost", no_argument, NULL, 'C'},
						{"check", no_argument, NULL, 'k'},
						{"first-divergence", no_argument, NULL, 'd'},
						{"context", required_argument, NULL, 'x'},
						{"evidence", required_argument, NULL, 'e'},
						{"recipe", required_argument, NULL, 'r'},
						{"vcpus", required_argument, NULL, 'q'},
						{"has", required_argument, NULL, 'H'},
						{"json", no_argument, NULL, 'j'},
						{"csv", no_argument, NULL, 'v'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct options o = {.context = CONTEXT_UNSET};
	unsigned long long n;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			o.matrix = optarg;
			break;
		case 'c':
			o.cases = optarg;
			break;
		case 'u':
			o.mmus = optarg;
			break;
		case 'g':
			o.programs = optarg;
			break;
		case 'n':
			o.kernel = optarg;
			break;
		case 'p':
			o.profile = optarg;
			break;
		case 'H':
			o.has = optarg;
			break;
		case 'k':
			o.check = true;
			break;
		case 'd':
			o.first_divergence = true;
			break;
		case 'x':
			if (!cli_u64(verb, "--context", optarg, 0, 1000000, &n))
				return EXIT_USAGE;
			o.context = n;
			break;
		case 'C':
			o.cost = true;
			break;
		case 'e':
			o.evidence = optarg;
			break;
		case 'r':
			o.recipe = optarg;
			break;
		case 'q':
			if (!cli_u64(verb, "--vcpus", optarg, 1, 512, &n))
				return EXIT_USAGE;
			o.vcpus = n;
			break;
		case 'v':
			o.csv = true;
			break;
		case 'j':
			o.json = true;
			break;
		case 'h':
			return cli_help(verb);
		default:
			return cli_usage(verb, "bad option %s", argv[optind - 1]);
		}
	}
	if (o.programs && !programs_there(verb, o.programs))
		return EXIT_USAGE;
	if (o.has && !o.kernel)
		return cli_usage(verb, "--has is about another --kernel");
	if (o.kernel && !other_kernel_preset(o.kernel, false))
		return cli_usage(verb, "--kernel %s: a version was expected, as 6.12.3", o.kernel);
	if (o.first_divergence) {
		if (o.matrix || o.evidence || o.recipe || o.cases || o.mmus || o.profile ||
		    o.cost || o.check || o.csv || o.vcpus)
			return cli_usage(verb,
					 "--first-divergence goes with --context, --programs, "
					 "--kernel, --has and --json only");
		if (optind == argc)
			return cli_usage(verb, "--first-divergence needs a trace FILE");
		return validate_sequences(&o, argv + optind, argc - optind);
	}
	if (o.context != CONTEXT_UNSET)
		return cli_usage(verb, "--context is about --first-divergence");
	if (optind < argc)
		return cli_usage(verb, "unexpected argument '%s'", argv[optind]);
	if (o.json && o.csv)
		return cli_usage(verb, "--json and --csv: one of the two");
	if (o.evidence && !o.recipe)
		return cli_usage(verb, "--evidence needs a --recipe that says how to predict it");
	if (!o.matrix)
		return validate_evidence(verb, &o);
	if (o.evidence || o.csv || o.vcpus)
		return cli_usage(verb, "--matrix does not go with --evidence, --vcpus or --csv");
	if ((o.recipe || o.profile) && !o.cost)
		return cli_usage(verb, "--recipe and --profile are of --cost, beside --matrix");
	if (o.kernel && o.cost)
		return cli_usage(verb, "--cost is about 6.1: --kernel does not go with it");
	return validate_matrix(&o);
}

static int validate(const struct verb *verb, int argc, char **argv)
{
	int code;

	cli_catch_signals();
	code = parse_and_validate(verb, argc, argv);
	if (code == EXIT_INTERRUPTED)
		kvmsim_err(&cli_errors, KVMSIM_EINTR, "interrupted");
	return code;
}

const struct verb verb_validate = {
	.name = "validate",
	.summary = "hold the model against measurements of real kernels",
	.usage = "validate [--recipe FILE.ini [--evidence FILE.csv]] [--json|--csv]\n"
		 "       kvmsim validate --matrix FILE.csv [OPTION]...\n"
		 "       kvmsim validate --first-divergence [OPTION]... TRACE...\n"
		 "Without --matrix: predicts the measured GET_DIRTY_LOG times that the program "
		 "comes\n"
		 "with, or those of a recipe, and judges the rows that were not fitted.\n\n"
		 "  --recipe FILE.ini    how rows are predicted, which are fitted, the bounds\n"
		 "  --evidence FILE.csv  the measured rows; the file that the recipe names\n"
		 "  --vcpus N            where vCPUs are run, rows of at most N (default: the "
		 "recipe's,\n"
		 "                       or 16; all of 96 take a minute or two)\n"
		 "  --json, --csv        print JSON or CSV\n\n"
		 "With --matrix: runs the cases that a reference matrix of KVM's MMU names and "
		 "compares every\n"
		 "tracepoint count, statistic and ioctl result.\n\n"
		 "  --matrix FILE.csv  the reference: one row per measured quantity\n"
		 "  --case A,B         only these cases\n"
		 "  --mmu NAME,...     only these MMUs\n"
		 "  --programs DIR     cases that are not built in are op programs, DIR/CASE.ops\n"
		 "                     (default 6.1)\n"
		 "  --cost             compare costs instead (insns_min): counts times prices; "
		 "cases that\n"
		 "                     were not fitted are judged, and where walk and mask cross\n"
		 "  --profile P        with --cost: these prices (default tcg-icount)\n"
		 "  --recipe FILE.ini  with --cost: which cases are fitted (default: the recipe of "
		 "tcg-icount)\n"
		 "  --kernel RELEASE   another kernel than 6.1, as 6.12.3: the nearest presets\n"
		 "  --has FILE         with --kernel: the tracepoints and statistics that it has; "
		 "what\n"
		 "                     only the kernel or only the model counts is not compared\n"
		 "  --check            run the model's checkers too: shadow pages, TLBs, lost "
		 "stores\n"
		 "  --json             print JSON\n\n"
		 "With --first-divergence: runs the case of which each TRACE is a kernel's ftrace "
		 "text and compares\n"
		 "every event of its phases, in order. The name says what it is of, "
		 "CASE[PAGES]-MMU[-PTE].txt, or a\n"
		 "line CASE in it; gzip is seen through.\n\n"
		 "  --first-divergence  where the model and the kernel first differ, with both "
		 "contexts\n"
		 "  --context N         events before and after it (default 5)\n"
		 "  --kernel, --has     as above\n\n"
		 "Exit status 1: a bound is broken, nothing can be judged, a row or an event "
		 "differs, a row is not\n"
		 "modelled although its case and MMU are.",
	.run = validate,
};
