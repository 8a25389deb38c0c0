// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "analysis/record_qemu.h"

#define DISK "virtio_pci virtio_blk crc32c_generic ext4"

const struct qemu_scenario qemu_scenarios[] = {
	{
		.name = "x11perf",
		.what = "an X server drawing: tests of x11perf, each with -repeat 1 (its own "
			"calibration is in it)",
		.script = "x11perf.sh",
		.tests = "rect100,scroll500,ftext,putimage500,shmput500,copywinwin100",
		.modules = DISK,
		/* 250 MIPS: x11perf calibrates itself by time, some seconds of it before each test
		 */
		.shift = 2,
		.disk = true,
		.screen = true,
	},
	{
		.name = "find",
		.what = "find / -xdev over a root file system, with nothing cached before (cold) "
			"or "
			"after such a run (warm)",
		.script = "find.sh",
		.tests = "cold,cold,cold,warm,warm",
		.modules = DISK,
		.disk = true,
	},
	{
		.name = "compile",
		.what = "gcc compiling six small libraries of C from a disk, all of them in each "
			"phase, at its level of optimisation",
		.script = "compile.sh",
		.tests = "O0,O2,O2",
		.modules = DISK,
		.disk = true,
	},
	{
		.name = "dbench",
		.what = "dbench on a tmpfs, so many clients in each phase",
		.script = "dbench.sh",
		.tests = "4",
		.modules = DISK,
		.shift = -1, /* QEMU 7.2 has no turns for all of several vCPUs under icount */
		.vcpus = 4,
		.seconds = 60,
		.disk = true,
		.locks = true,
	},
	{
		.name = "tcp_rr",
		.what = "transactions of one byte each way over TCP, with a host that answers at "
			"once",
		.script = "tcp_rr.sh",
		.tests = "1000,1000",
		.modules = "",
		.shift = -1, /* the host is in the loop: a clock that leaps would time out */
		.net = true,
		.devices = true,
	},
	{
		.name = "pages",
		.what = "the recorder's own test: stores to pages that the guest names before",
		.script = "pages.sh",
		.tests = "64",
		.modules = "",
		.shift = 5, /* a boot waits by time */
		.screen = true,
	},
	{0},
};

static const struct qemu_nic nics[] = {
	{"e1000", "e1000", "e1000"},
	{"virtio", "virtio-net-pci,disable-legacy=on", "virtio_pci virtio_net"},
	{"virtio-legacy", "virtio-net-pci,disable-modern=on,disable-legacy=off,vectors=0",
	 "virtio_pci virtio_net"},
};

const struct qemu_nic *qemu_nic_find(const char *name)
{
	for (size_t i = 0; i < sizeof(nics) / sizeof(nics[0]); i++)
		if (!strcmp(nics[i].name, name))
			return &nics[i];
	return NULL;
}

static const char *const x11perf_tests[] = {
#include "analysis/x11perf_tests.def"
};

static bool known(const struct qemu_scenario *s, const char *word, size_t n)
{
	if (!strcmp(s->name, "find"))
		return n == 4 && (!strncmp(word, "cold", 4) || !strncmp(word, "warm", 4));
	if (!strcmp(s->name, "compile"))
		return n == 2 && word[0] == 'O' && strchr("0123sg", word[1]);
	if (!strcmp(s->name, "tcp_rr"))
		return strspn(word, "0123456789") == n && n <= 7 && atoi(word) >= 1 &&
		       atoi(word) <= 1000000;
	if (!strcmp(s->name, "dbench"))
		return strspn(word, "0123456789") == n && n <= 2 && atoi(word) >= 1 &&
		       atoi(word) <= 64;
	if (!strcmp(s->name, "pages"))
		return strspn(word, "0123456789") == n && atoi(word) >= 1 && atoi(word) <= 512;
	for (size_t i = 0; i < sizeof(x11perf_tests) / sizeof(x11perf_tests[0]); i++) {
		if (!strncmp(x11perf_tests[i], word, n) && !x11perf_tests[i][n])
			return true;
	}
	return false;
}

const char *qemu_scenario_refuses(const struct qemu_scenario *scenario, const char *tests)
{
	unsigned words = 0;

	for (const char *word = tests;; word++) {
		size_t n = strcspn(word, ",");

		if (!n || n >= sizeof(((struct qemu_phase *)0)->name) || !known(scenario, word, n))
			return !strcmp(scenario->name, "find")
				       ? "expected cold and warm, with commas"
			       : !strcmp(scenario->name, "compile")
				       ? "expected levels of optimisation, O0 to O3, Os and Og, "
					 "with commas"
			       : !strcmp(scenario->name, "dbench")
				       ? "expected numbers of clients from 1 to 64, with commas"
			       : !strcmp(scenario->name, "tcp_rr")
				       ? "expected numbers of transactions from 1 to 1000000, with "
					 "commas"
			       : !strcmp(scenario->name, "pages")
				       ? "expected a number from 1 to 512"
				       : "expected names of x11perf's tests (x11perf -help), "
					 "without their dash, with commas";
		words++;
		word += n;
		if (!*word)
			break;
	}
	if (words >= QEMU_MAX_PHASES)
		return "expected at most 63 of them";
	return "";
}
