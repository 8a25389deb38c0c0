// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernel/modules.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/kernel/vmm.h"

#define NEEDS_FILE "/modules/stock/needs"

static bool fixed, there;
static char fixed_params[128];

static void load(const char *from, const char *module, const char *params)
{
	char path[96];
	snprintf(path, sizeof(path), "/modules/%s/%s.ko", from, module);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || syscall(SYS_finit_module, fd, params, 0) < 0)
		die_errno("loading %s %s", path, params);
	close(fd);
}

static void unload(const char *module)
{
	if (syscall(SYS_delete_module, module, O_NONBLOCK) < 0)
		die_errno("unloading %s", module);
}

/* @words after @to, a space between them. */
static void append(char *to, size_t size, const char *words)
{
	size_t used = strlen(to);
	if (*words)
		snprintf(to + used, size - used, "%s%s", used ? " " : "", words);
}

void modules_init(int argc, char **argv)
{
	there = access("/sys/module/kvm", F_OK) == 0;
	int i = 1;
	while (i < argc && strcmp(argv[i], "kvm") != 0) /* words that the kernel does not know */
		i++;
	fixed = i < argc;
	while (++i < argc)
		append(fixed_params, sizeof(fixed_params), argv[i]);
	if (there && !fixed)
		die("kvm is built in, and I don't know with which parameters");
}

bool modules_fixed(void)
{
	return fixed;
}

void modules_load_needs(void)
{
	static char text[1024];
	char *save = NULL;
	if (read_text(NEEDS_FILE, text, sizeof(text)) < 0)
		die_errno(NEEDS_FILE);
	for (const char *name = strtok_r(text, "\n", &save); name;
	     name = strtok_r(NULL, "\n", &save))
		load("stock", name, "");
}

bool modules_load_kvm(const char *from, const char *kvm_params, const char *amd_params)
{
	char wanted[sizeof(fixed_params)] = "";
	append(wanted, sizeof(wanted), kvm_params);
	append(wanted, sizeof(wanted), amd_params);
	if (fixed && strcmp(wanted, fixed_params) != 0)
		return false;
	if (fixed && there)
		return true;
	load(from, "kvm", kvm_params);
	load(from, "kvm-amd", amd_params);
	there = true;
	return true;
}

void modules_unload_kvm(void)
{
	if (fixed)
		return;
	unload("kvm_amd");
	unload("kvm");
}
