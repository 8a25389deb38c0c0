/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_MODULES_H
#define KVMSIM_KERNEL_MODULES_H

#include <stdbool.h>

/*
 * kvm's modules, in /modules/FROM, are loaded anew for each MMU with its parameters. Where @argv of
 * this process has the word kvm, what follows are the parameters of this boot: kvm is built in and
 * has them, or is loaded with them, once.
 */
void modules_init(int argc, char **argv);
/* Whether it has: a kernel of somebody's own. */
bool modules_fixed(void);
/* Loads what kvm's modules need besides each other, in order: the lines of /modules/stock/needs. */
void modules_load_needs(void);
/* False: this boot has other parameters. */
bool modules_load_kvm(const char *from, const char *kvm_params, const char *amd_params);
void modules_unload_kvm(void);

#endif
