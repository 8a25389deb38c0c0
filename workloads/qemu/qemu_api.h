/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_QEMU_API_H
#define KVMSIM_QEMU_API_H

/*
 * What the plugin uses of QEMU's plugin interface, declared here because Debian ships no header of
 * it: by QEMU's own documentation of the interface. KVMSIM_QEMU_API is the version of the interface
 * that is asked for: 1 for QEMU 4.2 to 8.2, 3 for QEMU 9.1 and later (each QEMU takes a range).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef KVMSIM_QEMU_API
#error "KVMSIM_QEMU_API: 1 or 3"
#endif
#define QEMU_EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
typedef uint32_t qemu_plugin_meminfo_t;
typedef void (*qemu_tb_trans_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_mem_cb)(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data);
typedef void (*qemu_exec_cb)(unsigned vcpu, void *data);
typedef void (*qemu_atexit_cb)(qemu_plugin_id_t id, void *data);

enum { QEMU_CB_NO_REGS };
enum { QEMU_MEM_R = 1, QEMU_MEM_W, QEMU_MEM_RW };
enum { QEMU_INLINE_ADD_U64 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_tb_trans_cb cb);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_atexit_cb cb, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_mem_cb cb, int flags,
				      int rw, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_exec_cb cb,
					    int flags, void *data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_exec_cb cb, int flags,
					  void *data);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *addr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *addr);
const char *qemu_plugin_hwaddr_device_name(const struct qemu_plugin_hwaddr *addr);

#if KVMSIM_QEMU_API == 1
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *counter,
					      uint64_t n);

/* Asked for stores only, this version also brings loads; asked for loads, it brings the stores of
 * plain instructions without those of helpers. Both, and a look at each, is right. */
#define QEMU_MEM_STORES QEMU_MEM_RW
#else
struct qemu_plugin_scoreboard;
typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t len);
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
uint64_t qemu_plugin_u64_get(qemu_plugin_u64 entry, unsigned vcpu);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb, int op,
						       qemu_plugin_u64 entry, uint64_t n);
#define QEMU_MEM_STORES QEMU_MEM_W
#endif

/* An instruction's first bytes, as many as there is room for. Its length. */
static inline size_t qemu_insn_bytes(const struct qemu_plugin_insn *insn, uint8_t *to, size_t len)
{
	size_t n = qemu_plugin_insn_size(insn);

#if KVMSIM_QEMU_API == 1
	memcpy(to, qemu_plugin_insn_data(insn), n < len ? n : len);
#else
	qemu_plugin_insn_data(insn, to, len);
#endif
	return n;
}

/* What QEMU looks for. */
extern QEMU_EXPORT int qemu_plugin_version;
QEMU_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv);

#endif
