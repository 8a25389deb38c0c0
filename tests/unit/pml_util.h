/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_PML_UTIL_H
#define KVMSIM_TESTS_PML_UTIL_H

#include "model/counts.h"
#include "tests/unit/vm_scene.h"

/* What the tests of the CPU's dirty log share. */

/* What was counted up to now, of all tasks. */
uint64_t pml_total(const struct scene *s, uint16_t count);
/* From here on STAT() and COUNT() count. */
void pml_mark(const struct scene *s);
extern uint64_t pml_stat_base[N_KVM_STATS], pml_count_base[N_COUNTS];
#define STAT(s, n)  (kvm_stat((s)->kvm, STAT_##n) - pml_stat_base[STAT_##n])
#define COUNT(s, n) (pml_total(s, COUNT_##n) - pml_count_base[COUNT_##n])

/* On both back ends, of a guest without page tables, which has nothing else to log. */
void pml_on_both(const char *dirty, uint64_t pages, int (*body)(struct scene *s, struct task *t));
/* Stores to pages @first to @last - 1, with no exit of the guest's own between or after. */
int pml_stores(struct scene *s, uint64_t first, uint64_t last);
/* Every page mapped and its store known, pml_mark(), then logging from a clean start. */
int pml_begin(struct scene *s, struct task *t);

#endif
