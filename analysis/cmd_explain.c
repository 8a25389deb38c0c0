// SPDX-License-Identifier: GPL-3.0-or-later
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/cli.h"
#include "analysis/explain.h"
#include "analysis/output.h"

static int explain_run(const struct verb *verb, int argc, char **argv);

const struct verb verb_explain = {
	.name = "explain",
	.summary = "an error code, an exit, an spte or an event in plain words",
	.usage = "explain error_code CODE [--pf|--ept|--npf] [--json]\n"
		 "       kvmsim explain exit NAME|NUMBER [INFO1 [INFO2]] [--vmx|--svm] [--json]\n"
		 "       kvmsim explain spte VALUE [--pf|--ept|--npf] [--json]\n"
		 "       kvmsim explain [event] LINE|- [--json]\n"
		 "Decodes numbers of KVM's events with the manuals' names, and says what KVM does "
		 "with them.\n"
		 "CODE is what kvm_page_fault prints, VALUE an entry of a shadow or nested page "
		 "table by 6.1's\n"
		 "layout; of their forms the likely one is taken. LINE is a line of a trace as "
		 "ftrace, trace-cmd\n"
		 "or perf prints it, or what it has from the event's name on; - reads all from "
		 "standard input.\n\n"
		 "  --pf    CODE is the processor's page-fault error code (shadow paging, the "
		 "guest's own)\n"
		 "  --ept   ... the exit qualification of an EPT violation\n"
		 "  --npf   ... EXITINFO1 of SVM's nested page fault\n"
		 "  --vmx, --svm\n"
		 "          the exit is of this kind (a NUMBER without either is VMX's below "
		 "0x400); of a CODE\n"
		 "          and a VALUE the same as --ept and --npf\n"
		 "  --json  for programs\n"
		 "  --help",
	.run = explain_run,
};

/* ---- for people ---- */

static void text(const json_t *o, const char *key, int indent)
{
	const char *s = json_string_value(json_object_get(o, key));
	char line[512];

	if (!s || !*s)
		return;
	snprintf(line, sizeof(line), "%*s%s", indent, "", s);
	out_wrapped(line, indent, stdout);
}

static void address(const json_t *o, const char *key, int indent)
{
	const char *s = json_string_value(json_object_get(o, key));

	if (s)
		printf("%*s%s %s\n", indent, "", key, s);
}

/* The list at @key, one line each behind @head. */
static void reasons(const json_t *o, const char *key, const char *head, int indent)
{
	const json_t *why;
	char line[512];
	size_t i;

	json_array_foreach(json_object_get(o, key), i, why)
	{
		snprintf(line, sizeof(line), "%*s%s%s.", indent, "", head, json_string_value(why));
		out_wrapped(line, indent, stdout);
	}
}

/* Parts of an explanation that are explanations. */
static const char *const parts[] = {"exit", "error_code", "spte", "old", "new"};

/* @label instead of what it is; NULL: that. */
static int show(const json_t *o, const char *label, int indent)
{
	const char *value = json_string_value(json_object_get(o, "value")), *as;
	char line[512];
	const json_t *fields = json_object_get(o, "fields"), *f;
	struct table *t = table_create("lllll");
	size_t i;
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	as = json_string_value(json_object_get(o, "as"));
	printf("%*s%s%s%s%s%s\n", indent, "",
	       label ? label : json_string_value(json_object_get(o, "what")),
	       value && *value ? " " : "", value ? value : "", as ? ": " : "", as ? as : "");
	json_array_foreach(fields, i, f)
	{
		const char *bits = json_string_value(json_object_get(f, "bits"));

		table_cell(t, "%*s", indent + 1, "");
		table_cell(t, "%s", bits && *bits ? bits : "");
		table_cell(t, "%s", json_string_value(json_object_get(f, "name")));
		table_cell(t, "%s", json_string_value(json_object_get(f, "value")));
		table_cell(t, "%s", json_string_value(json_object_get(f, "meaning")));
	}
	err = json_array_size(fields) ? table_print(t, stdout) : 0;
	table_free(t);
	address(o, "gpa", indent + 2);
	address(o, "gva", indent + 2);
	text(o, "says", indent + 2);
	reasons(o, "impossible", "Impossible: ", indent + 2);
	reasons(o, "odd", "Not so in Linux 6.1: ", indent + 2);
	text(o, "kvm", indent + 2);
	if (json_object_get(o, "kvmsim")) {
		snprintf(line, sizeof(line), "%*skvmsim: %s", indent + 2, "",
			 json_string_value(json_object_get(o, "kvmsim")));
		out_wrapped(line, indent + 2, stdout);
	}
	for (i = 0; !err && i < sizeof(parts) / sizeof(*parts); i++)
		if (json_object_get(o, parts[i]))
			err = show(json_object_get(o, parts[i]), parts[i], indent + 2);
	return err;
}

static int finish(json_t *o, bool json)
{
	int err = 0;

	if (json)
		err = json_print(o, stdout);
	else
		err = o ? show(o, NULL, 0) : KVMSIM_ENOMEM;
	if (!json)
		json_decref(o);
	if (err)
		kvmsim_err(&cli_errors, err, "%s", kvmsim_strerror(err));
	return cli_exit_code(err);
}

struct list {
	bool json, any;
};

/* Each event as it comes: a trace is as long as it likes. The JSON looks as json_print() would
 * print the whole list. */
static int put_event(void *ctx, json_t *o)
{
	struct list *list = ctx;
	int err = 0;
	char *whole;

	if (!list->json) {
		err = show(o, NULL, 0);
	} else {
		whole = json_dumps(o, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		fputs(list->any ? ",\n" : "[\n", stdout);
		for (const char *l = whole, *end; l && *l; l = end) {
			end = strchrnul(l, '\n');
			end += *end == '\n';
			printf("  %.*s", (int)(end - l), l);
		}
		err = whole ? 0 : KVMSIM_ENOMEM;
		free(whole);
	}
	json_decref(o);
	list->any = true;
	if (!err && ferror(stdout)) /* who closes the stream says so */
		return KVMSIM_EIO;
	return err;
}

/* ---- arguments ---- */

struct args {
	enum explain_form form;
	enum exit_isa isa;
	bool json;
};

/* Hexadecimal also without 0x, as kernels before 6.1 print codes, where @hex. */
static bool number(const char *s, bool hex, uint64_t *out)
{
	bool prefixed = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	char *end;

	errno = 0;
	*out = strtoull(s, &end, hex || prefixed ? 16 : 10);
	return isxdigit((unsigned char)*s) && !*end && !errno;
}

static int one_exit(const struct verb *verb, const struct args *a, int n, char **argv)
{
	struct explain_infos in = {.has_info1 = n > 2, .has_info2 = n > 3};
	enum exit_isa isa = a->isa;
	char name[64];
	uint64_t reason;
	bool found;
	json_t *o;
	size_t i, skip = strncasecmp(argv[1], "EXIT_", 5) ? 0 : 5;

	if ((n > 2 && !number(argv[2], true, &in.info1)) ||
	    (n > 3 && !number(argv[3], true, &in.info2)))
		return cli_usage(verb, "INFO1 and INFO2 are hexadecimal numbers");
	if (isdigit((unsigned char)argv[1][0]) && number(argv[1], false, &reason) &&
	    reason <= UINT32_MAX) {
		struct host_text t;

		if (isa == EXIT_ISA_UNKNOWN)
			isa = reason < 0x400 ? EXIT_ISA_VMX : EXIT_ISA_SVM;
		t = exit_reason_name(isa, (uint32_t)reason);
		if (!t.len && a->isa == EXIT_ISA_UNKNOWN && reason >> 16) { /* flags of VMX's */
			isa = EXIT_ISA_VMX;
			t = exit_reason_name(isa, (uint32_t)reason);
		}
		snprintf(name, sizeof(name), "%.*s", (int)t.len, t.len ? t.at : "");
		in.reason = (uint32_t)reason;
	} else {
		for (i = 0; argv[1][skip + i] && i < sizeof(name) - 1; i++)
			name[i] = (char)toupper((unsigned char)argv[1][skip + i]);
		name[i] = '\0';
	}
	o = explain_exit(name, isa, &in, &found);
	if (!found) {
		json_decref(o);
		return cli_usage(verb, "exit %s: no such exit%s", argv[1],
				 isa == EXIT_ISA_VMX   ? " of VMX (--svm?)"
				 : isa == EXIT_ISA_SVM ? " of SVM (--vmx?)"
						       : "");
	}
	return finish(o, a->json);
}

/* A refusal names a file that the user never saw. */
static const struct kvmsim_errsink no_errors = {NULL, NULL};

/* Explains what @words say behind @head, as a file. */
static int text_of_words(const char *head, int n, char **words, struct list *list)
{
	FILE *copy = tmpfile();
	char path[64];
	int err;

	if (!copy)
		return kvmsim_err(&cli_errors, KVMSIM_EIO, "no temporary file: %s",
				  strerror(errno));
	fputs(head, copy);
	for (int i = 0; i < n; i++)
		fprintf(copy, "%s%s", i ? " " : "", words[i]);
	fputc('\n', copy);
	if (fflush(copy)) {
		fclose(copy);
		return kvmsim_err(&cli_errors, KVMSIM_EIO, "temporary file: %s", strerror(errno));
	}
	rewind(copy);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(copy));
	err = explain_events(path, &no_errors, put_event, list);
	fclose(copy);
	return err;
}

/* "kvm_exit: reason ...", "kvm:kvm_exit: ..." */
static bool begins_with_event(const char *s)
{
	const char *colon = strchr(s, ':');
	enum host_event_id id;

	if (colon && (!strncmp(s, "kvm:", 4) || !strncmp(s, "kvmmmu:", 7)))
		return true;
	id = colon ? host_event_find(s, (size_t)(colon - s)) : HOST_OTHER;
	return id != HOST_OTHER && id != HOST_UNKNOWN_KVM;
}

static int lines(int n, char **words, bool json)
{
	struct list list = {.json = json};
	bool from_stdin = n == 1 && !strcmp(words[0], "-");
	int err;

	if (from_stdin)
		err = explain_events("-", &cli_errors, put_event, &list);
	else
		err = text_of_words("", n, words, &list);
	/* A record that lost its head: who, where and when say nothing here. */
	if (!from_stdin && err == KVMSIM_EPARSE && begins_with_event(words[0]))
		err = text_of_words("x-1 [000] 0.000000: ", n, words, &list);
	if (list.any && json)
		puts("\n]");
	if (ferror(stdout))
		return cli_exit_code(0); /* the end of the program says so */
	if (!from_stdin && err == KVMSIM_EPARSE)
		kvmsim_err(&cli_errors, err,
			   "explain: no record of an event: expected a line such as 'CPU-1 [003] "
			   "1.000001: kvm_entry: vcpu 0'");
	else if (err == KVMSIM_ENOMEM)
		kvmsim_err(&cli_errors, err, "%s", kvmsim_strerror(err));
	return err ? cli_input_exit_code(err) : cli_exit_code(0);
}

static int explain_run(const struct verb *verb, int argc, char **argv)
{
	static const struct option options[] = {
		{"pf", no_argument, NULL, 'p'},	  {"ept", no_argument, NULL, 'e'},
		{"npf", no_argument, NULL, 'n'},  {"vmx", no_argument, NULL, 'v'},
		{"svm", no_argument, NULL, 's'},  {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {0}};
	struct args a = {.form = EXPLAIN_GUESS};
	int c, n, forms = 0, isas = 0;
	uint64_t code;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		switch (c) {
		case 'h':
			return cli_help(verb);
		case 'p':
		case 'e':
		case 'n':
			a.form = c == 'p' ? EXPLAIN_PF : c == 'e' ? EXPLAIN_EPT : EXPLAIN_NPF;
			forms++;
			break;
		case 'v':
		case 's':
			a.isa = c == 'v' ? EXIT_ISA_VMX : EXIT_ISA_SVM;
			isas++;
			break;
		case 'j':
			a.json = true;
			break;
		default:
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		}
	}
	argv += optind;
	n = argc - optind;
	if (forms + isas > 1)
		return cli_usage(verb, "--pf, --ept, --npf, --vmx and --svm exclude each other");
	if (!n)
		return cli_usage(verb,
				 "error_code CODE, exit NAME, spte VALUE or a line of a trace is "
				 "expected");
	if (isas && strcmp(argv[0], "exit") != 0)
		a.form = a.isa == EXIT_ISA_VMX ? EXPLAIN_EPT : EXPLAIN_NPF;
	if (!strcmp(argv[0], "error_code")) {
		if (n != 2 || !number(argv[1], true, &code))
			return cli_usage(verb, "error_code: one number is expected, as 0x181");
		return finish(explain_error_code(code, a.form), a.json);
	}
	if (!strcmp(argv[0], "spte")) {
		if (n != 2 || !number(argv[1], true, &code))
			return cli_usage(verb,
					 "spte: one number is expected, as 0x6000000012abb77");
		return finish(explain_spte(code, a.form, 0), a.json);
	}
	if (forms)
		return cli_usage(verb, "--pf, --ept and --npf are for error_code and spte");
	if (!strcmp(argv[0], "exit")) {
		if (n < 2 || n > 4)
			return cli_usage(
				verb, "exit: a name or number and at most two infos are expected");
		return one_exit(verb, &a, n, argv);
	}
	if (isas)
		return cli_usage(verb,
				 "--vmx and --svm are not for lines, which say it themselves");
	if (!strcmp(argv[0], "event")) {
		argv++;
		if (!--n)
			return cli_usage(verb, "event: a name, or a line of a trace is expected");
		json_t *o = n == 1 ? explain_event_name(argv[0]) : NULL;

		if (o)
			return finish(o, a.json);
	}
	cli_catch_signals();
	return lines(n, argv, a.json);
}
