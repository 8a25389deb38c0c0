// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The first process of the recorded kernel: mounts what it needs, loads kvm for each MMU of the
 * plan, runs the plan's page-list programs, writes the rows to QEMU's debug console, powers off.
 *
 * A plan is a text file of lines
 *
 *	mode NAME [PARAM=VALUE...]          modules of the MMUs that follow
 *	mmu NAME                            an entry of mmus[] below
 *	run PROGRAM SLOT_PAGES GUEST_PTE    /cases/PROGRAM.case, 4k|2m|4m|none
 *	trace PROGRAM SLOT_PAGES GUEST_PTE  the same, as the kernel's text of each event
 *	parallel SLOT_PAGES GUEST_PTE       parallel.h
 *	names                               the tracepoints and statistics that there are
 *
 * Each run is a process of its own, twice: with tracing for the counts, without for instructions.
 */
#include "tests/kernel/vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kernel/modules.h"
#include "tests/kernel/parallel.h"
#include "tests/kernel/record.h"

#define DEBUGCON_PORT 0xe9
#define INSNS_TIMES   3u
#define MODE_STOCK    "stock"
#define STATUS_LACKS  3 /* of a run's process: its program does not suit this kernel */

static const struct mmu {
	const char *name, *kvm_params, *amd_params;
	enum guest_kind guest;
} mmus[] = {
	{"npt0-long64", "", "npt=0", GUEST_LONG64},
	{"npt0-flat32", "", "npt=0", GUEST_FLAT32},
	{"npt0-pae", "", "npt=0", GUEST_PAE},
	{"npt0-32bit", "", "npt=0", GUEST_32BIT},
	{"npt1-tdp0", "tdp_mmu=0", "npt=1", GUEST_LONG64},
	{"npt1-tdp0-pae", "tdp_mmu=0", "npt=1", GUEST_PAE},
	{"npt1-tdp0-32bit", "tdp_mmu=0", "npt=1", GUEST_32BIT},
	{"npt1-tdp1", "", "npt=1", GUEST_LONG64},
	{"npt1-tdp1-pae", "", "npt=1", GUEST_PAE},
	{"npt1-tdp1-32bit", "", "npt=1", GUEST_32BIT},
};

static char doing[256]; /* "PLACE: ", or nothing */

void now_doing(const char *path, unsigned line, const char *phase)
{
	snprintf(doing, sizeof(doing), "%s:%u: %s%s%s", path, line, *phase ? "phase " : "", phase,
		 *phase ? ": " : "");
}

static void complain(const char *fmt, va_list args)
{
	fprintf(stderr, "vmm: %s", doing);
	vfprintf(stderr, fmt, args);
}

void die(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	complain(fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void lacks(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs("vmm: lacks: ", stderr);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(STATUS_LACKS);
}

void die_errno(const char *fmt, ...)
{
	va_list args;
	int err = errno;
	va_start(args, fmt);
	complain(fmt, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(err));
	exit(1);
}

long read_text(const char *path, char *buf, uint64_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	uint64_t used = 0;
	ssize_t n;
	while (used < size - 1 && (n = read(fd, buf + used, size - 1 - used)) > 0)
		used += (uint64_t)n;
	close(fd);
	buf[used] = '\0';
	return (long)used;
}

void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) < 0)
		die_errno("%s", path);
}

static ssize_t write_port(void *cookie, const char *buf, size_t size)
{
	(void)cookie;
	outsb(DEBUGCON_PORT, buf, size);
	return (ssize_t)size;
}

static FILE *open_rows(void)
{
	static const cookie_io_functions_t port = {.write = write_port};
	if (ioperm(DEBUGCON_PORT, 1, 1) < 0)
		die_errno("ioperm");
	FILE *rows = fopencookie(NULL, "w", port);
	if (!rows)
		die_errno("fopencookie");
	return rows;
}

static void mount_all(void)
{
	static const struct {
		const char *type, *where;
	} mounts[] = {
		{"devtmpfs", "/dev"},
		{"sysfs", "/sys"},
		{"proc", "/proc"},
		{"tracefs", "/sys/kernel/tracing"},
		{"debugfs", "/sys/kernel/debug"},
	};
	for (unsigned i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].where, 0755);
		/* EBUSY: the kernel did it */
		if (mount(mounts[i].type, mounts[i].where, mounts[i].type, 0, NULL) < 0 &&
		    errno != EBUSY)
			die_errno("mounting %s", mounts[i].where);
	}
}

/* Which modules, the column kvm_mode's word for them, and kvm.ko's parameters besides the MMU's. */
struct mode {
	bool patched;
	char name[32], params[96];
};

static void change_mode(struct mode *mode, const char *name, const char *params)
{
	if (!name || strlen(name) >= sizeof(mode->name))
		die("plan: expected mode NAME");
	if (params && strlen(params) >= sizeof(mode->params))
		die("plan: fewer parameters than '%s'", params);
	mode->patched = strcmp(name, MODE_STOCK) != 0;
	snprintf(mode->name, sizeof(mode->name), "%s", name);
	snprintf(mode->params, sizeof(mode->params), "%s", params ? params : "");
}

struct machine {
	const struct mmu *mmu; /* NULL: none yet */
	bool loaded;	       /* otherwise this boot is for other MMUs */
	struct mode mode;
};

static void change_mmu(struct machine *m, const char *name)
{
	const char *from = m->mode.patched ? "patched" : "stock";
	const struct mmu *wanted = NULL;
	char params[160];
	for (unsigned i = 0; i < sizeof(mmus) / sizeof(mmus[0]); i++)
		if (name && strcmp(name, mmus[i].name) == 0)
			wanted = &mmus[i];
	if (!wanted)
		die("plan: no MMU called '%s'", name ? name : "");
	if (m->mmu)
		modules_unload_kvm();
	snprintf(params, sizeof(params), "%s%s%s", wanted->kvm_params, *m->mode.params ? " " : "",
		 m->mode.params);
	m->loaded = modules_load_kvm(from, params, wanted->amd_params);
	m->mmu = wanted;
}

/* What is counted must not depend on when a timer's interrupt came: a walk that lets others have
 * the CPU begins anew at the root. */
static void take_the_cpu(void)
{
	const struct sched_param first = {.sched_priority = 1};
	write_text("/proc/sys/kernel/sched_rt_runtime_us", "-1");
	if (sched_setscheduler(0, SCHED_FIFO, &first) < 0)
		die_errno("sched_setscheduler");
}

/* In a process of its own. */
static void record(struct record_opts *opts, void (*how)(const struct record_opts *opts),
		   const char *what)
{
	pid_t child = fork();
	if (child == 0) {
		opts->rows = open_rows();
		if (strcmp(opts->mode, MODE_STOCK) != 0 || modules_fixed())
			take_the_cpu();
		how(opts);
		exit(fclose(opts->rows) == 0 ? 0 : 1);
	}
	int status;
	if (child < 0 || waitpid(child, &status, 0) < 0)
		die_errno("fork");
	if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_LACKS)
		return;
	if (status != 0)
		die("%s on %s ended with status %d", what, opts->mmu, status);
}

static void record_costs(const struct record_opts *opts)
{
	record_insns(opts, INSNS_TIMES);
}

/* False: there is no op program of that name. */
static bool read_ops(struct ops_program *ops, const char *name, uint64_t slot_pages, bool paging)
{
	static char text[32768], error[256];
	char path[64];
	snprintf(path, sizeof(path), "/cases/%s.ops", name);
	long bytes = read_text(path, text, sizeof(text));
	if (bytes < 0)
		return false;
	if (bytes == (long)sizeof(text) - 1)
		die("%s: longer than %zu bytes", path, sizeof(text) - 2);
	if (ops_parse(ops, text, path, error, sizeof(error)) ||
	    ops_check(ops, slot_pages, paging, error, sizeof(error)))
		die("%s", error);
	return true;
}

/* What is written of a program. */
enum wanted {
	WANT_COUNTS, /* and costs, of modules that don't count */
	WANT_COSTS,  /* and costs in any case */
	WANT_TEXT
};

/* @name: of the program; NULL: parallel. */
static void run(const struct machine *m, const char *name, enum wanted want, const char *slot_pages,
		const char *pte)
{
	const struct mmu *mmu = m->mmu;
	static struct program program;
	static struct ops_program ops;
	const char *what = name ? name : "parallel";
	char path[64];
	if (!mmu || !slot_pages || !pte)
		die("plan: expected mmu NAME, then run PROGRAM SLOT_PAGES GUEST_PTE, or parallel "
		    "SLOT_PAGES GUEST_PTE");

	if (!m->loaded)
		return;
	struct record_opts opts = {
		.program = &program,
		.mmu = mmu->name,
		.mode = m->mode.name,
		.slot_pages = strtoull(slot_pages, NULL, 10),
		.kind = mmu->guest,
		.pte = strcmp(pte, "4k") == 0					   ? GUEST_PTE_4K
		       : strcmp(pte, mmu->guest == GUEST_32BIT ? "4m" : "2m") == 0 ? GUEST_PTE_2M
										   : GUEST_PTE_NONE,
	};
	bool flat = mmu->guest == GUEST_FLAT32;
	if (flat != (opts.pte == GUEST_PTE_NONE) || opts.slot_pages == 0 ||
	    opts.slot_pages > GUEST_MAX_SLOT_PAGES)
		die("plan: cannot run %s on %s with %s pages, guest PTEs %s", what, mmu->name,
		    slot_pages, pte);
	if (name) {
		if (read_ops(&ops, name, opts.slot_pages, !flat)) {
			memset(&program, 0, sizeof(program));
			memcpy(program.case_name, ops.name, sizeof(ops.name));
			opts.ops = &ops;
		} else {
			snprintf(path, sizeof(path), "/cases/%s.case", name);
			program_read(&program, path);
		}
		if (want == WANT_TEXT) {
			record(&opts, record_text, what);
		} else {
			record(&opts, record_events, what);
			if (want == WANT_COSTS || !m->mode.patched) /* counting costs, too */
				record(&opts, record_costs, what);
		}
	} else {
		record(&opts, record_parallel, what);
	}
	printf("vmm: %s %s %s %s %s\n", m->mode.name, mmu->name, what, slot_pages, pte);
}

static void names(const struct machine *m)
{
	static const struct program program = {.case_name = "names"};
	struct record_opts opts = {.program = &program, .mode = m->mode.name, .slot_pages = 64};
	if (!m->mmu)
		die("plan: expected mmu NAME, then names");
	if (!m->loaded)
		return;
	opts.mmu = m->mmu->name;
	opts.kind = m->mmu->guest;
	opts.pte = opts.kind == GUEST_FLAT32 ? GUEST_PTE_NONE : GUEST_PTE_4K;
	record(&opts, record_names, "names");
}

/* The plan is read whole first: a child's exit() moves the file position that it shares. */
static void run_plan(const char *path)
{
	static char plan[8192];
	struct mode next = {.name = MODE_STOCK};
	struct machine m = {.mode = next};
	char *lines_save = NULL;
	long bytes = read_text(path, plan, sizeof(plan));
	if (bytes < 0 || bytes == (long)sizeof(plan) - 1)
		die("%s: missing, or longer than %zu bytes", path, sizeof(plan) - 2);
	for (char *line = strtok_r(plan, "\n", &lines_save); line;
	     line = strtok_r(NULL, "\n", &lines_save)) {
		char *save = NULL;
		line[strcspn(line, "#")] = '\0';
		const char *word = strtok_r(line, " \t", &save);
		if (!word)
			continue;
		const char *first = strtok_r(NULL, " \t", &save);
		if (strcmp(word, "mmu") == 0) {
			m.mode = next;
			change_mmu(&m, first);
		} else if (strcmp(word, "mode") == 0) {
			change_mode(&next, first, strtok_r(NULL, "", &save));
		} else if (strcmp(word, "run") == 0 || strcmp(word, "trace") == 0 ||
			   strcmp(word, "cost") == 0) {
			const char *slot_pages = strtok_r(NULL, " \t", &save);
			run(&m, first,
			    *word == 't'   ? WANT_TEXT
			    : *word == 'c' ? WANT_COSTS
					   : WANT_COUNTS,
			    slot_pages, strtok_r(NULL, " \t", &save));
		} else if (strcmp(word, "parallel") == 0) {
			run(&m, NULL, WANT_COUNTS, first, strtok_r(NULL, " 	", &save));
		} else if (strcmp(word, "names") == 0) {
			names(&m);
		} else {
			die("plan: expected mode, mmu, run, cost, trace, parallel or names, found "
			    "'%s'",
			    word);
		}
	}
}

static void power_off(void)
{
	if (getpid() != 1)
		return; /* a run's process inherits atexit() */
	fflush(NULL);
	sync();
	reboot(RB_POWER_OFF);
}

int main(int argc, char **argv)
{
	if (getpid() != 1) {
		fputs("vmm: I am the first process of a kernel that validate.sh boots\n", stderr);
		return 2;
	}
	/* A failure anywhere ends the kernel, too; what is missing then is the line "vmm: done". */
	atexit(power_off);
	setvbuf(stdout, NULL, _IOLBF, 0);
	mount_all();
	FILE *rows = open_rows();
	record_header(rows);
	fclose(rows);
	modules_init(argc, argv);
	modules_load_needs();
	run_plan("/plan");
	puts("vmm: done");
	return 0;
}
