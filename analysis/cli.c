// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/run.h"

const char kvmsim_version[] = "0.1.0";

/* A message on one line. It may quote a file or an argument: control characters, which a terminal
 * would obey, are shown as \xNN. */
static void say(const char *prefix, const char *msg)
{
	char *line = malloc(4 * strlen(msg) + 1), *to = line;

	/* in one piece, so that those of several programs stay apart */
	for (; line && *msg; msg++) {
		unsigned char c = (unsigned char)*msg;

		if (c < 0x20 || c == 0x7f)
			to += sprintf(to, "\\x%02x", c);
		else
			*to++ = *msg;
	}
	if (line)
		*to = '\0';
	fprintf(stderr, "kvmsim: %s%s\n", prefix, line ? line : "out of memory");
	free(line);
}

static void emit(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	say("", msg);
}

const struct kvmsim_errsink cli_errors = {emit, NULL};

int cli_exit_code(int err)
{
	switch (err) {
	case KVMSIM_EINVAL:
	case KVMSIM_ENOENT:
	case KVMSIM_EUNSUPPORTED:
		return EXIT_USAGE;
	case KVMSIM_EPARSE:
	case KVMSIM_ETORN:
	case KVMSIM_EVERSION:
		return EXIT_INPUT;
	case KVMSIM_EIO:
	case KVMSIM_ENOMEM:
	case KVMSIM_ECHILD:
		return EXIT_IO;
	case KVMSIM_EINTR:
		return EXIT_INTERRUPTED;
	case KVMSIM_ECANCELED:
	case KVMSIM_EDEADLOCK:
	case KVMSIM_ELIVELOCK:
	case KVMSIM_ECHECK:
		return EXIT_GATE;
	default:
		return err < 0 ? EXIT_INPUT : EXIT_DONE;
	}
}

int cli_input_exit_code(int err)
{
	return err == KVMSIM_EIO || err == KVMSIM_EUNSUPPORTED ? EXIT_INPUT : cli_exit_code(err);
}

int cli_run_exit_code(int err)
{
	return err == KVMSIM_EUNSUPPORTED ? EXIT_USAGE : cli_input_exit_code(err);
}

int cli_file_exit_code(int err)
{
	return err == KVMSIM_EINVAL || err == KVMSIM_ENOENT ? EXIT_INPUT : cli_input_exit_code(err);
}

int cli_usage(const struct verb *verb, const char *fmt, ...)
{
	char prefix[32], text[1024];
	va_list ap;
	size_t used;

	snprintf(prefix, sizeof(prefix), "%s: ", verb->name);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	used = strlen(text);
	snprintf(text + used, sizeof(text) - used, " (see kvmsim %s --help)", verb->name);
	say(prefix, text);
	return EXIT_USAGE;
}

int cli_help(const struct verb *verb)
{
	printf("Usage: kvmsim %s\n", verb->usage);
	return EXIT_DONE;
}

/* ---- warnings ---- */

static struct warning {
	char *text;
	unsigned long n;
} * warnings;
static size_t n_warnings;

void cli_warn(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < n_warnings; i++) {
		if (!strcmp(warnings[i].text, text)) {
			warnings[i].n++;
			return;
		}
	}
	struct warning *grown = realloc(warnings, (n_warnings + 1) * sizeof(*grown));

	if (!grown)
		return;
	warnings = grown;
	warnings[n_warnings].text = strdup(text);
	warnings[n_warnings].n = 1;
	if (warnings[n_warnings].text)
		n_warnings++;
}

int cli_finish(int code)
{
	for (size_t i = 0; i < n_warnings; i++) {
		char times[32] = "", *text;

		if (warnings[i].n > 1)
			snprintf(times, sizeof(times), " (%lu times)", warnings[i].n);
		if (asprintf(&text, "%s%s", warnings[i].text, times) >= 0) {
			say("warning: ", text);
			free(text);
		}
		free(warnings[i].text);
	}
	free(warnings);
	warnings = NULL;
	n_warnings = 0;
	/* An error that an earlier write met is kept in the stream, its errno is not. */
	int had_error = ferror(stdout);

	errno = 0;
	if (fflush(stdout) || had_error) {
		fprintf(stderr, "kvmsim: standard output: %s\n",
			errno ? strerror(errno) : "write error");
		return code == EXIT_DONE ? EXIT_IO : code;
	}
	return code;
}

/* ---- signals ---- */

volatile int run_interrupted;

static void interrupted(int sig)
{
	if (run_interrupted) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
	}
	(void)sig;
	run_interrupted = 1;
}

void cli_catch_signals(void)
{
	struct sigaction sa = {.sa_handler = interrupted};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

/* ---- arguments and files ---- */

bool cli_u64(const struct verb *verb, const char *option, const char *text, unsigned long long min,
	     unsigned long long max, unsigned long long *out)
{
	unsigned long long value = 0;
	char *end = NULL;

	errno = 0;
	if (*text >= '0' && *text <= '9')
		value = strtoull(text, &end, 10);
	if (!end || *end || errno || value < min || value > max) {
		cli_usage(verb, "%s %s: expected a whole number from %llu to %llu", option, text,
			  min, max);
		return false;
	}
	*out = value;
	return true;
}

bool cli_bytes(const struct verb *verb, const char *option, const char *text, uint64_t most,
	       const char *expected, uint64_t *out)
{
	static const char suffixes[] = "kmgt";
	char *end;
	unsigned long long n = strtoull(text, &end, 10);
	const char *suffix = *end ? strchr(suffixes, *end | 0x20) : NULL;
	unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;

	if (*text < '0' || *text > '9' || (*end && (!suffix || end[1])) || !n ||
	    n > most >> shift) {
		cli_usage(verb, "%s %s: %s", option, text, expected);
		return false;
	}
	*out = n << shift;
	return true;
}

int cli_read_file(const char *path, char **out, size_t *len)
{
	FILE *f = fopen(path, "rb");
	size_t room = 65536, used = 0, got;
	char *text = NULL;
	int err = 0;

	if (!f)
		return kvmsim_err(&cli_errors, KVMSIM_EIO, "%s: %s", path, strerror(errno));
	do {
		char *grown = realloc(text, room *= 2);

		if (!grown) {
			err = kvmsim_err(&cli_errors, KVMSIM_ENOMEM, "%s: out of memory", path);
			goto out;
		}
		text = grown;
		got = fread(text + used, 1, room - used - 1, f);
		used += got;
	} while (got);
	if (ferror(f)) {
		err = kvmsim_err(&cli_errors, KVMSIM_EIO, "%s: %s", path, strerror(errno));
		goto out;
	}
	text[used] = '\0';
	*out = text;
	*len = used;
	text = NULL;
out:
	free(text);
	fclose(f);
	return err;
}
