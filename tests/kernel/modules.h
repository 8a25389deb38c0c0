/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_MODULES_H
#define KVMSIM_KERNEL_MODULES_H

#include <stdbool.h>

/*
 * kvm as the kernel has it: modules in /modules/FROM, loaded anew for each MMU with its
 * parameters; or built in, with the parameters that the command line gave it, which are the
 * words in @argv of this process.
 */
void modules_init(int argc, char **argv);
/* Loads what kvm's modules need besides each other, in order: the lines of /modules/stock/needs. */
void modules_load_needs(void);
/* False: kvm is built in, and has other parameters. */
bool modules_load_kvm(const char *from, const char *kvm_params, const char *amd_params);
void modules_unload_kvm(void);

#endif
