// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * One run of QEMU with the plugin, and the trace out of what the plugin writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/child.h"
#include "analysis/cli.h"
#include "analysis/qemu_guest.h"
#include "analysis/record_qemu.h"
#include "analysis/run.h"
#include "traces/outfile.h"
#include "traces/trace.h"

int qemu_ask_version(struct qemu_recording *r, const char *run)
{
	char *argv[] = {(char *)r->qemu, "--version", NULL}, log[4096], words[256];
	const char *at;
	struct child c;
	unsigned major, minor;
	int status = 0, err;

	snprintf(log, sizeof(log), "%s/version", run);
	err = child_start(&c, argv, log, -1, &cli_errors);
	if (err)
		return err;
	err = child_wait(&c, child_clock() + 30, &status);
	child_end(&c);
	if (err == KVMSIM_EINTR)
		return err;
	qemu_guest_line(log, "QEMU emulator ", words, sizeof(words));
	at = strstr(words, "version ");
	if (err || status || !at || sscanf(at, "version %u.%u", &major, &minor) != 2)
		return kvmsim_err(&cli_errors, KVMSIM_EPARSE, "%s: --version says nothing of QEMU",
				  r->qemu);
	snprintf(r->version, sizeof(r->version), "%.*s", (int)strcspn(at + 8, " "), at + 8);
	r->api = major < 9 ? 1 : 3;
	if (major < 6 || (major == 9 && minor == 0))
		return kvmsim_err(
			&cli_errors, KVMSIM_EPARSE,
			"%s: QEMU %s; 6.0 to 8.2, or 9.1 and later, are known to load the "
			"plugin",
			r->qemu, r->version);
	return 0;
}

#define MAX_ARGS 48

/* QEMU's arguments, each malloc'd. */
struct qemu_args {
	char *argv[MAX_ARGS];
	unsigned n;
	bool failed;
};

static void arg(struct qemu_args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void arg(struct qemu_args *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (a->n + 1 >= MAX_ARGS || vasprintf(&a->argv[a->n], fmt, ap) < 0)
		a->failed = true;
	else
		a->n++;
	va_end(ap);
}

/* Words with spaces between, each an argument. */
static void args(struct qemu_args *a, const char *words)
{
	while (*words) {
		int n = strcspn(words, " ");

		arg(a, "%.*s", n, words);
		words += n + (words[n] == ' ');
	}
}

static void free_args(struct qemu_args *a)
{
	for (unsigned i = 0; i < a->n; i++)
		free(a->argv[i]);
}

static void qemu_arguments(struct qemu_args *a, const struct qemu_recording *r, const char *run)
{
	const struct qemu_scenario *s = r->scenario;
	bool vesa = s->screen && s->disk && r->depth == 16;

	memset(a, 0, sizeof(*a));
	arg(a, "%s", r->qemu);
	args(a, s->vcpus ? "-accel tcg,thread=single" : "-accel tcg");
	args(a, "-machine q35 -nodefaults -no-user-config -display none -no-reboot "
		"-seed 1 -rtc base=2020-01-01T00:00:00,clock=vm");
	/* a kernel that knows it is a guest would spin on a lock in another way */
	arg(a, "-cpu");
	arg(a, "max,la57=off%s", s->locks ? ",-hypervisor" : "");
	arg(a, "-smp");
	arg(a, "%u", s->vcpus ? s->vcpus : 1);
	args(a, "-m");
	arg(a, "%" PRIu64, r->memory_mib);
	if (s->shift >= 0) {
		args(a, "-icount");
		arg(a, "shift=%d,sleep=off", s->shift);
	}
	args(a, "-kernel");
	arg(a, "%s/vmlinuz", r->image);
	args(a, "-initrd");
	arg(a, "%s/initrd", run);
	args(a, "-append");
	/* iomem: the guest maps video RAM that a driver holds, to show where it is */
	arg(a,
	    "console=ttyS0 quiet nokaslr mitigations=off panic=-1 random.trust_cpu=on "
	    "iomem=relaxed%s"
	    "%s%s kvmsim.tests=%s kvmsim.depth=%" PRIu64 " kvmsim.seconds=%" PRIu64,
	    s->disk ? " kvmsim.root=/dev/vda" : "", vesa ? " vga=0x317" : "",
	    s->vcpus ? " idle=halt" : "", r->tests, r->depth, r->seconds);
	args(a, "-serial");
	arg(a, "file:%s/console.log", run);
	args(a, "-plugin");
	arg(a, "%s/plugin%u.so,fd=3,epoch=%" PRIu64 ",ram=%" PRIu64 "%s", run, r->api, r->epoch_len,
	    r->memory_mib << 8,
	    s->devices ? ",devices=1"
	    : s->locks ? ",locks=1"
		       : "");
	if (s->disk) {
		args(a, "-drive");
		arg(a, "if=none,id=root,file=%s/root.img,format=raw,readonly=on", r->image);
		args(a, "-device virtio-blk-pci,drive=root");
	}
	if (s->screen)
		args(a, "-vga std");
	if (r->nic) { /* no way out but to a program that says each byte again */
		args(a, "-netdev");
		arg(a, "user,id=net,restrict=on,guestfwd=tcp:10.0.2.100:7-cmd:cat");
		args(a, "-device");
		arg(a, "%s,netdev=net,romfile=", r->nic->device);
	}
}

/* ---- the recording ---- */

static void drop(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)err;
	snprintf(ctx, 512, "%s", msg);
}

/* The trace out of the stream; the importer's own words only where the stream had no fault. */
static int import(const struct qemu_recording *r, struct qemu_stream *s)
{
	char source[256], kernel[512], workload[1024], words[512] = "", clock[64] = "no icount";
	struct kvmsim_errsink quiet = {drop, words};
	struct import_opts o = {
		.ram_pages = s->ram_pages,
		.vram_gfn = s->vram_gfn,
		.vram_pages = s->vram_pages,
		.no_vram = !s->vram_pages,
		.epoch_len = s->epoch_len,
		.source = source,
		.kernel = kernel,
		.workload = workload,
		.interrupted = &run_interrupted,
	};
	struct import_stats st;
	FILE *in = qemu_stream_file(s);
	int err;

	if (r->scenario->shift >= 0)
		snprintf(clock, sizeof(clock), "-icount shift=%d,sleep=off", r->scenario->shift);
	snprintf(source, sizeof(source), "kvmsim record qemu: QEMU %s TCG, plugin interface %u, %s",
		 r->version, r->api, clock);
	snprintf(kernel, sizeof(kernel), "Linux %s (%s)", s->kernel, r->about);
	snprintf(workload, sizeof(workload), "%s%s%s: %s", r->scenario->name, r->nic ? " " : "",
		 r->nic ? r->nic->name : "", r->tests);
	if (!in)
		return kvmsim_err(&cli_errors, KVMSIM_ENOMEM, "record qemu: out of memory");
	err = import_guest_probe(in, "the recorder", &o, r->out, &quiet, &st);
	fclose(in);
	if (err && err != KVMSIM_EINTR && !s->err)
		return kvmsim_err(&cli_errors, err, "%s", words);
	if (!err && st.unknown + st.damaged)
		cli_warn("%s: %" PRIu64 " of the recorder's lines were left out", r->out,
			 st.unknown + st.damaged);
	return err;
}

/* The table of locks. */
static int print_locks(const struct qemu_recording *r, struct qemu_stream *s)
{
	const char *tests[QEMU_MAX_PHASES], *what;
	struct outfile file = {.fd = -1};
	FILE *f = NULL;
	int err;

	while ((err = qemu_stream_next(s)) > 0)
		;
	if (err)
		return err;
	for (unsigned i = 0; i < QEMU_MAX_PHASES; i++)
		tests[i] = s->phases[i].name;
	err = outfile_open(&file, r->out, &what);
	if (!err) {
		what = "cannot write";
		f = fdopen(dup(file.fd), "w");
		err = f ? qemu_locks_print(s->locks, tests, s->n_phases, f) : KVMSIM_EIO;
	}
	if (f && fclose(f) && !err)
		err = KVMSIM_EIO;
	if (!err && outfile_finish(&file) != OUTFILE_DONE)
		err = KVMSIM_EIO;
	if (err == KVMSIM_ENOMEM)
		kvmsim_err(&cli_errors, err, "record qemu: out of memory");
	else if (err)
		kvmsim_err(&cli_errors, err, "%s: %s: %s", r->out, what, strerror(errno));
	outfile_abort(&file);
	return err;
}

/* Why the stream is of no use, with what QEMU and the guest's console said last. */
static int complain(const struct qemu_recording *r, const struct qemu_stream *s, const char *run,
		    const char *cache)
{
	char from[4096], kept[4096], words[256];

	if (s->err == KVMSIM_EINTR)
		return KVMSIM_EINTR;
	snprintf(from, sizeof(from), "%s/qemu.log", run);
	qemu_guest_line(from, "", words, sizeof(words));
	snprintf(from, sizeof(from), "%s/console.log", run);
	snprintf(kept, sizeof(kept), "%s/console.log", cache);
	if (s->err == KVMSIM_EIO)
		return kvmsim_err(&cli_errors, KVMSIM_EIO, "%s: %s", r->text, s->why);
	if (rename(from, kept))
		return kvmsim_err(&cli_errors, KVMSIM_EPARSE, "record qemu: %s%s%s", s->why,
				  words[0] ? "; QEMU: " : "", words);
	return kvmsim_err(&cli_errors, KVMSIM_EPARSE,
			  "record qemu: %s%s%s; the guest's console: %s", s->why,
			  words[0] ? "; QEMU: " : "", words, kept);
}

static int follow(struct qemu_recording *r, struct qemu_stream *s, struct child *qemu,
		  double deadline)
{
	int status = 0, err = qemu_stream_begin(s);

	if (!err)
		err = r->scenario->locks ? print_locks(r, s) : import(r, s);
	if (!err)
		child_wait(qemu, deadline, &status);
	return err;
}

int qemu_run(struct qemu_recording *r, const char *run, const char *cache, double deadline)
{
	struct qemu_stream *s = malloc(sizeof(*s));
	struct qemu_args a;
	struct qemu_locks locks = {0};
	struct child qemu = {0};
	FILE *text;
	char log[4096];
	int fds[2] = {-1, -1}, err = 0;

	if (!s)
		return kvmsim_err(&cli_errors, KVMSIM_ENOMEM, "record qemu: out of memory");
	text = r->text ? fopen(r->text, "w") : NULL;
	snprintf(log, sizeof(log), "%s/qemu.log", run);
	qemu_arguments(&a, r, run);
	if (a.failed)
		err = kvmsim_err(&cli_errors, KVMSIM_ENOMEM, "record qemu: out of memory");
	else if (r->text && !text)
		err = kvmsim_err(&cli_errors, KVMSIM_EIO, "%s: cannot create: %s", r->text,
				 strerror(errno));
	else if (pipe2(fds, O_CLOEXEC))
		err = kvmsim_err(&cli_errors, KVMSIM_EIO, "record qemu: no pipe: %s",
				 strerror(errno));
	if (!err)
		err = child_start(&qemu, a.argv, log, fds[1], &cli_errors);
	if (fds[1] >= 0)
		close(fds[1]);
	if (!err) {
		qemu_stream_init(s, fds[0], text, deadline);
		s->locks = r->scenario->locks ? &locks : NULL;
		err = follow(r, s, &qemu, deadline);
		child_end(&qemu);
		if (s->err)
			err = complain(r, s, run, cache);
		else if (!err)
			err = qemu_note(r, s, &cli_errors);
		qemu_stream_free(s);
		qemu_locks_free(&locks);
	}
	if (fds[0] >= 0)
		close(fds[0]);
	if (text)
		fclose(text);
	free_args(&a);
	free(s);
	return err;
}
