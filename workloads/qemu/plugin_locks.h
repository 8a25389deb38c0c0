/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_QEMU_PLUGIN_LOCKS_H
#define KVMSIM_QEMU_PLUGIN_LOCKS_H

struct locks;
struct qemu_plugin_tb;

/* A block is translated: @l will hear when it runs, and of its stores that may be of locks. */
void plugin_locks_translate(struct locks *l, struct qemu_plugin_tb *tb);

#endif
