// SPDX-License-Identifier: GPL-3.0-or-later
/* The plugin's lines on their way to the importer: whole, or not at all. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/child.h"
#include "analysis/qemu_stream.h"
#include "analysis/run.h"
#include "tests/unit/harness.h"

#define FIRST                                                                                      \
	"# probe epoch 1000 ram 256\n# ram 10 10\n# vram 13d080 fd000 16\n# guest kernel 6.1\n"
#define PHASE "# guest phase 1 rect100\n50 0 M 1 0\n60 0 S 5\n62 0 V fd000\n# epoch 1 1 1 full\n"
#define REST  "1050 0 S 6\n# epoch 1 1 0 cut\n1100 0 M 0 0\n"
#define LAST  "# guest done\n# end 3 7\n"

static struct qemu_stream s;
static char got[65536], *copy;

/* Reads all of @lines; returns the first error. What the importer would get is in @got. */
static int take(const char *lines)
{
	static size_t len;
	int fds[2], err;
	size_t n;
	FILE *text = open_memstream(&copy, &len), *in;

	CU_ASSERT_FATAL(text && !pipe(fds));
	CU_ASSERT_FATAL(write(fds[1], lines, strlen(lines)) == (ssize_t)strlen(lines));
	close(fds[1]);
	qemu_stream_init(&s, fds[0], text, child_clock() + 60);
	err = qemu_stream_begin(&s);
	got[0] = 0;
	if (!err) {
		in = qemu_stream_file(&s);
		CU_ASSERT_FATAL(in != NULL);
		n = fread(got, 1, sizeof(got) - 1, in);
		got[n] = 0;
		CU_ASSERT_EQUAL(!!ferror(in), !!s.err);
		fclose(in);
		err = s.err;
	}
	fclose(text);
	close(fds[0]);
	return err;
}

static void done(void)
{
	qemu_stream_free(&s);
	free(copy);
}

static void fails(const char *lines, const char *why)
{
	CU_ASSERT_EQUAL(take(lines), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(s.why, why));
	if (!strstr(s.why, why))
		printf("said '%s', not '%s'\n", s.why, why);
	done();
}

static void whole(void)
{
	const char *all = FIRST PHASE REST LAST;

	CU_ASSERT_EQUAL(take(all), 0);
	CU_ASSERT_STRING_EQUAL(got,
			       "50 0 M 1 0\n60 0 S 5\n62 0 V fd000\n1050 0 S 6\n1100 0 M 0 0\n");
	CU_ASSERT_STRING_EQUAL(copy, all);
	CU_ASSERT_EQUAL(s.epoch_len, 1000);
	CU_ASSERT_EQUAL(s.ram_pages, 256);
	CU_ASSERT_EQUAL(s.vram_gfn, 0xfd000);
	CU_ASSERT_EQUAL(s.vram_pages, 16);
	CU_ASSERT_STRING_EQUAL(s.kernel, "6.1");
	CU_ASSERT_EQUAL(s.n_phases, 2);
	CU_ASSERT_STRING_EQUAL(s.phases[1].name, "rect100");
	CU_ASSERT_EQUAL(s.phases[1].insns, 1050);
	CU_ASSERT_EQUAL(s.phases[1].epochs, 2);
	CU_ASSERT_EQUAL(s.phases[1].whole, 1);
	CU_ASSERT_EQUAL(s.phases[1].ram[0], 1);
	CU_ASSERT_EQUAL(s.phases[1].vram[0], 1);
	CU_ASSERT_EQUAL(s.stores, 3);
	CU_ASSERT_EQUAL(s.outside, 7);
	done();
}

/* Accesses of devices go to the importer, too, and are counted by register. */
static void devices(void)
{
	const char *accesses = "1060 0 w febc3 e1000-mmio+818\n1061 0 r febc0 e1000-mmio+c0\n"
			       "1062 0 w febc3 e1000-mmio+818\n1063 0 p ffffffff81000000\n";
	char all[1024];

	snprintf(all, sizeof(all), "%s%s1050 0 S 6\n%s%s%s", FIRST, PHASE, accesses,
		 "# epoch 1 1 0 cut\n1100 0 M 0 0\n# guest done\n", "# accesses 4 9\n# end 3 7\n");
	CU_ASSERT_EQUAL(take(all), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(got, accesses));
	CU_ASSERT_EQUAL(s.stores, 3);
	CU_ASSERT_EQUAL(s.accesses, 4);
	CU_ASSERT_EQUAL(s.apic, 9);
	CU_ASSERT_EQUAL_FATAL(s.n_registers, 3);
	CU_ASSERT_EQUAL(s.registers[0].kind, 'w');
	CU_ASSERT_STRING_EQUAL(s.registers[0].name, "febc3 e1000-mmio+818");
	CU_ASSERT_EQUAL(s.registers[0].n, 2);
	CU_ASSERT_EQUAL(s.registers[1].kind, 'r');
	CU_ASSERT_EQUAL(s.registers[2].kind, 'p');
	CU_ASSERT_STRING_EQUAL(s.registers[2].name, "ffffffff81000000");
	done();
}

static void many_epochs(void)
{
	char *lines = NULL;
	unsigned right = 0;
	size_t len;
	FILE *f = open_memstream(&lines, &len);

	fputs(FIRST "0 0 M 3 0\n", f);
	for (int i = 0; i < 1000; i++)
		fprintf(f, "%d 0 S %x\n# epoch 3 1 0 full\n", i * 1000, i);
	fputs("1000000 0 M 0 0\n# guest done\n# end 1000 0\n", f);
	fclose(f);
	/* a pipe holds it */
	CU_ASSERT(len < 65536);
	CU_ASSERT_EQUAL(take(lines), 0);
	CU_ASSERT_EQUAL(s.phases[3].whole, 1000);
	for (int i = 0; i < 1000 && s.phases[3].whole == 1000; i++)
		right += s.phases[3].ram[i] == 1 && s.phases[3].vram[i] == 0;
	CU_ASSERT_EQUAL(right, 1000);
	done();
	free(lines);
}

static void cut_short(void)
{
	static const char all[] = FIRST PHASE REST LAST;

	/* wherever it ends */
	for (size_t n = 0; n + 1 < sizeof(all); n++) {
		char *part = strndup(all, n);

		CU_ASSERT_NOT_EQUAL(take(part), 0);
		CU_ASSERT(s.why[0]);
		done();
		free(part);
	}
}

static void faults(void)
{
	fails(FIRST PHASE "1050 0 S 6\n# epoch 1 2 0 cut\n",
	      "counted 2 pages of RAM and 0 of video RAM "
	      "in this epoch, but 1 and 0 lines came");
	fails(FIRST PHASE REST "# guest done\n# end 4 0\n", "wrote 4 stores, but 3 lines came");
	fails(FIRST PHASE REST "# end 3 0\n", "the guest stopped before it was done");
	fails(FIRST PHASE "# guest done\n# end 2 0\n", "phase 1 was not over");
	fails(FIRST PHASE REST LAST "x", "is cut short");
	fails(FIRST PHASE "1060 0 r febc0 e1000-mmio+c0\n" REST "# accesses 2 0\n",
	      "wrote 2 accesses of devices, but 1 lines came");
	fails(FIRST PHASE "1060 0 r \n", "is strange");
	fails(FIRST PHASE REST LAST "1 0 S 1\n", "is strange: 1 0 S 1");
	fails(FIRST "# guest fail the X server does not start\n",
	      "the guest gave up: the X server does not start");
	fails(FIRST "# error no page\n", "no page");
	fails(FIRST LAST, "wrote 3 stores");
	fails(FIRST "# guest done\n# end 0 0\n", "began no phase");
	fails("1 0 M 1 0\n", "first lines are missing");
	fails(FIRST PHASE "1050 0 X 6\n", "is strange");
	fails(FIRST PHASE "# what\n", "is strange");
	fails(FIRST PHASE "hello\n", "is strange");
	fails(FIRST "1 0 M 64 0\n", "is strange");
	fails(FIRST "# guest phase 64 x\n", "began phase 64");
	fails(FIRST "# epoch 1 0 0 full\n", "is strange"); /* of no phase */
}

static void long_line(void)
{
	char *line = malloc(sizeof(FIRST) + 3000);

	strcpy(line, FIRST);
	memset(line + sizeof(FIRST) - 1, '1', 2999);
	line[sizeof(FIRST) + 2998] = 0;
	fails(line, "line 5 is too long");
	free(line);
}

/* Nothing comes: it ends at the deadline, and when it is interrupted. */
static void waits(void)
{
	int fds[2];

	CU_ASSERT_FATAL(!pipe(fds));
	qemu_stream_init(&s, fds[0], NULL, child_clock());
	CU_ASSERT_EQUAL(qemu_stream_begin(&s), KVMSIM_ECHILD);
	qemu_stream_init(&s, fds[0], NULL, child_clock() + 60);
	run_interrupted = 1;
	CU_ASSERT_EQUAL(qemu_stream_begin(&s), KVMSIM_EINTR);
	run_interrupted = 0;
	close(fds[0]);
	close(fds[1]);
}

static CU_TestInfo tests[] = {
	{"whole", whole},	  {"devices", devices}, {"many_epochs", many_epochs},
	{"cut_short", cut_short}, {"faults", faults},	{"long_line", long_line},
	{"waits", waits},	  CU_TEST_INFO_NULL};

TEST_MAIN("qemu_stream", tests)
