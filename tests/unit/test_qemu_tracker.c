// SPDX-License-Identifier: GPL-3.0-or-later
/* What the QEMU plugin writes of what it sees, without QEMU. Expected lines are by hand. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "workloads/qemu/tracker.h"

#define EPOCH 1000
#define RAM   256

static struct tracker t;
static char *text;
static size_t len;
static FILE *out;

static void begin(void)
{
	out = open_memstream(&text, &len);
	CU_ASSERT_FATAL(out && tracker_open(&t, out, EPOCH, RAM));
}

static void says(const char *expected)
{
	tracker_close(&t);
	fclose(out);
	CU_ASSERT_STRING_EQUAL(text, expected);
	if (strcmp(text, expected) != 0)
		printf("got:\n%s\nexpected:\n%s\n", text, expected);
	free(text);
}

static void hears(uint64_t time, const char *words)
{
	for (; *words; words++)
		tracker_byte(&t, time, *words);
}

/* RAM lies in QEMU as in the guest; video RAM, 16 pages, elsewhere. */
static void places(void)
{
	hears(1, "ram 10\n");
	tracker_tagged(&t, 0x10);
	hears(2, "vram fd000 10\n");
	tracker_tagged(&t, 0x13d080);
}
#define PLACES "# probe epoch 1000 ram 256\n# ram 10 10\n# vram 13d080 fd000 16\n"

static void first_stores(void)
{
	begin();
	places();
	hears(3, "kernel 6.1\n");
	tracker_tagged(&t, 0x20); /* nothing was announced */
	hears(50, "mark 1\n");
	tracker_store(&t, 0, 60, 5);
	tracker_store(&t, 0, 61, 5);	    /* again */
	tracker_store(&t, 0, 62, 0x13d080); /* the first page of video RAM, and the last */
	tracker_store(&t, 0, 63, 0x13d08f);
	tracker_store(&t, 0, 64, 0x13d090); /* behind it */
	tracker_store(&t, 0, 65, RAM);	    /* behind RAM */
	tracker_store(&t, 0, 66, 1ull << 40);
	tracker_store(&t, 0, 1049, RAM - 1); /* the epoch's last instruction */
	tracker_store(&t, 0, 1050, 5);	     /* and the next one's first */
	tracker_store(&t, 0, 3500, 5);	     /* two epochs further: one is empty */
	hears(3600, "mark 2\n");
	tracker_store(&t, 0, 3600, 5);
	hears(4600, "mark 0\n"); /* at the very end of its epoch */
	says(PLACES "# guest kernel 6.1\n"
		    "50 0 M 1 0\n60 0 S 5\n62 0 V fd000\n63 0 V fd00f\n1049 0 S ff\n"
		    "# epoch 1 2 2 full\n1050 0 S 5\n# epoch 1 1 0 full\n# epoch 1 0 0 full\n"
		    "3500 0 S 5\n# epoch 1 1 0 cut\n"
		    "3600 0 M 2 0\n3600 0 S 5\n# epoch 2 1 0 full\n4600 0 M 0 0\n# end 7 3\n");
}

/* Accesses of devices: in phases, but for the local APIC's, which are counted. */
static void devices(void)
{
	begin();
	t.devices = true;
	places();
	tracker_device(&t, 0, 40, true, 0xfebc3818, "e1000-mmio");
	tracker_port(&t, 0, 41, 0xffffffff81000000);
	hears(50, "mark 1\n");
	tracker_device(&t, 0, 60, true, 0xfebc3818, "e1000-mmio");
	tracker_device(&t, 0, 61, false, 0xfebc00c0, "e1000 mmio");
	tracker_device(&t, 0, 62, true, 0xfee000b0, "apic-msi");
	tracker_device(&t, 0, 63, false, 0xfee00190, "apic-msi");
	tracker_device(&t, 0, 64, false, 0xfed000f0, "anon2d101010");
	tracker_port(&t, 0, 65, 0xffffffff81000000);
	hears(70, "mark 0\n");
	tracker_device(&t, 0, 71, true, 0xfee000b0, "apic-msi");
	says(PLACES "50 0 M 1 0\n60 0 w febc3 e1000-mmio+818\n61 0 r febc0 e1000_mmio+c0\n"
		    "64 0 r fed00 anon+f0\n65 0 p ffffffff81000000\n# epoch 1 0 0 cut\n"
		    "70 0 M 0 0\n# accesses 4 2\n# end 0 0\n");
}

/* An older QEMU's place of RAM, not at 0: gfns are by what the guest said. */
static void ram_elsewhere(void)
{
	begin();
	hears(1, "ram 10\n");
	tracker_tagged(&t, 0x110);
	hears(2, "mark 1\n");
	tracker_store(&t, 0, 3, 0x100);
	tracker_store(&t, 0, 4, 0x1ff);
	tracker_store(&t, 0, 5, 0xff);
	tracker_store(&t, 0, 6, 0x200);
	hears(7, "mark 0\n");
	says("# probe epoch 1000 ram 256\n# ram 110 10\n2 0 M 1 0\n3 0 S 0\n4 0 S ff\n"
	     "# epoch 1 2 0 cut\n7 0 M 0 0\n# end 2 2\n");
}

/* After 2^32 epochs a page's stamp of long ago is not taken for today's. */
static void serials_wrap(void)
{
	begin();
	places();
	hears(10, "mark 1\n");
	tracker_store(&t, 0, 11, 7); /* epoch 1 of the first round */
	t.serial = UINT32_MAX;
	tracker_store(&t, 0, 12, 8);
	tracker_store(&t, 0, 1010, 7);
	tracker_store(&t, 0, 1011, 8);
	hears(1012, "mark 0\n");
	says(PLACES "10 0 M 1 0\n11 0 S 7\n12 0 S 8\n# epoch 1 2 0 full\n1010 0 S 7\n1011 0 S 8\n"
		    "# epoch 1 2 0 cut\n1012 0 M 0 0\n# end 4 0\n");
}

static void errors(void)
{
	begin();
	hears(1, "mark 1\n");
	hears(2, "mark 0\n");
	says("# probe epoch 1000 ram 256\n"
	     "# error the guest began a phase before it named a page of its RAM\n"
	     "1 0 M 1 0\n# epoch 1 0 0 cut\n2 0 M 0 0\n# end 0 0\n");
	begin();
	hears(1, "ram zz\n");
	hears(2, "vram 10\n"); /* the number of pages is missing; one error is enough */
	says("# probe epoch 1000 ram 256\n"
	     "# error the guest named a page in words that are not known\n# end 0 0\n");
	begin();
	hears(1, "ram 100\n"); /* behind its end */
	tracker_tagged(&t, 0x100);
	says("# probe epoch 1000 ram 256\n# ram 100 100\n"
	     "# error the guest named a page that is not in its RAM\n# end 0 0\n");
}

static void words(void)
{
	char expected[400] = "# probe epoch 1000 ram 256\n# guest ";

	begin();
	for (int i = 0; i < 300; i++)
		tracker_byte(&t, 1, 'x'); /* cut */
	hears(1, "\na\033\tb\n");
	memset(expected + strlen(expected), 'x', 255);
	strcat(expected, "\n# guest a??b\n# end 0 0\n");
	says(expected);
}

static CU_TestInfo tests[] = {{"first_stores", first_stores},
			      {"devices", devices},
			      {"ram_elsewhere", ram_elsewhere},
			      {"serials_wrap", serials_wrap},
			      {"errors", errors},
			      {"words", words},
			      CU_TEST_INFO_NULL};

TEST_MAIN("qemu_tracker", tests)
