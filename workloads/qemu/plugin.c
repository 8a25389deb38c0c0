// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plugin for QEMU's TCG: the first store to each page in each epoch of a guest with one vCPU, as
 * lines (tracker.h) on a file descriptor that it inherits; with devices=1 accesses of devices, too;
 * with locks=1 the kernel's spin locks instead (locks.h), of a guest whose vCPUs run by turns.
 * Arguments: fd=N, epoch=INSTRUCTIONS, ram=PAGES, devices=0|1, locks=0|1.
 *
 * It sees what instructions store through the CPU's memory accesses. It does not see devices' DMA,
 * accessed and dirty bits that page walks set, and what the CPU stores on exceptions and
 * interrupts. Time is the number of guest instructions: those of a block are added as it begins,
 * and a store's place in its block is taken off again. A block that an exception leaves early was
 * counted whole.
 */
#include "workloads/qemu/qemu_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/qemu/locks.h"
#include "workloads/qemu/plugin_locks.h"
#include "workloads/qemu/tracker.h"

#define PAGE_SHIFT 12

int qemu_plugin_version = KVMSIM_QEMU_API;

static struct tracker tracker;
static struct locks locks;

#if KVMSIM_QEMU_API == 1
static uint64_t insns;

static bool counter_open(void)
{
	return true;
}
static void count(struct qemu_plugin_tb *tb, size_t n)
{
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_INLINE_ADD_U64, &insns, n);
}
static uint64_t counted(unsigned vcpu)
{
	(void)vcpu;
	return insns;
}
#else
static qemu_plugin_u64 insns;

static bool counter_open(void)
{
	insns.score = qemu_plugin_scoreboard_new(sizeof(uint64_t));
	return insns.score;
}
static void count(struct qemu_plugin_tb *tb, size_t n)
{
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_INLINE_ADD_U64, insns, n);
}
static uint64_t counted(unsigned vcpu)
{
	return qemu_plugin_u64_get(insns, vcpu);
}
#endif

/* The page of a store to memory; false: of a load, or a device's register. */
static bool stored_page(qemu_plugin_meminfo_t info, uint64_t vaddr, uint64_t *page)
{
	struct qemu_plugin_hwaddr *addr;

	if (!qemu_plugin_mem_is_store(info))
		return false;
	addr = qemu_plugin_get_hwaddr(info, vaddr);
	if (!addr || qemu_plugin_hwaddr_is_io(addr))
		return false;
	*page = qemu_plugin_hwaddr_phys_addr(addr) >> PAGE_SHIFT;
	return true;
}

/* Whether it was a device that was accessed: then it is written down. */
static bool device_accessed(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr,
			    uint64_t time)
{
	struct qemu_plugin_hwaddr *addr = qemu_plugin_get_hwaddr(info, vaddr);

	if (!addr || !qemu_plugin_hwaddr_is_io(addr))
		return false;
	tracker_device(&tracker, vcpu, time, qemu_plugin_mem_is_store(info),
		       qemu_plugin_hwaddr_phys_addr(addr), qemu_plugin_hwaddr_device_name(addr));
	return true;
}

/* @data: instructions of the block from this one on, which were counted before it. */
static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	uint64_t page;

	if (!tracker.phase || (tracker.devices &&
			       device_accessed(vcpu, info, vaddr, counted(vcpu) - (uintptr_t)data)))
		return;
	if (stored_page(info, vaddr, &page))
		tracker_store(&tracker, vcpu, counted(vcpu) - (uintptr_t)data, page);
}

static void on_tagged(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	uint64_t page;

	(void)vcpu;
	(void)data;
	if (stored_page(info, vaddr, &page))
		tracker_tagged(&tracker, page);
}

/* A no-op with a byte of the guest's words. It is the last but one of its block (tell.c: a return
 * follows), so the block's end is its time to an instruction. */
static void on_byte(unsigned vcpu, void *data)
{
	uint64_t now = tracker.locks ? locks_time(&locks) : counted(vcpu);

	tracker_byte(&tracker, now, (uintptr_t)data);
}

/* tell.c: nopl 0x4d4100BB(%rax), B the byte; movb %cl, 0x4d41(%rax) is the tagged store. */
static bool is_byte(const uint8_t *c, size_t n)
{
	return n == 7 && c[0] == 0x0f && c[1] == 0x1f && c[2] == 0x80 && c[4] == 0 &&
	       c[5] == 0x41 && c[6] == 0x4d;
}
static bool is_tagged(const uint8_t *c, size_t n)
{
	return n == 6 && c[0] == 0x88 && c[1] == 0x88 && c[2] == 0x41 && c[3] == 0x4d &&
	       c[4] == 0 && c[5] == 0;
}

/* IN, OUT, INS and OUTS, after prefixes. */
static bool is_port_io(const uint8_t *c, size_t n)
{
	size_t i = 0;

	while (i < n && (c[i] == 0x66 || c[i] == 0xf2 || c[i] == 0xf3 || (c[i] & 0xf0) == 0x40))
		i++;
	return i < n && ((c[i] >= 0xe4 && c[i] <= 0xe7) || (c[i] >= 0xec && c[i] <= 0xef) ||
			 (c[i] >= 0x6c && c[i] <= 0x6f));
}

/* @data: its address, as far as 64 bits of a pointer go. */
static void on_port_io(unsigned vcpu, void *data)
{
	tracker_port(&tracker, vcpu, counted(vcpu), (uintptr_t)data);
}

static void find_words(struct qemu_plugin_insn *insn, const uint8_t *code, size_t len)
{
	if (is_byte(code, len))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_byte, QEMU_CB_NO_REGS,
						       (void *)(uintptr_t)code[3]);
	if (is_tagged(code, len))
		qemu_plugin_register_vcpu_mem_cb(insn, on_tagged, QEMU_CB_NO_REGS, QEMU_MEM_STORES,
						 NULL);
}

static int accesses(bool loads)
{
	if (loads)
		return QEMU_MEM_RW;
	return QEMU_MEM_STORES;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);

	(void)id;
	if (tracker.locks)
		plugin_locks_translate(&locks, tb);
	else
		count(tb, n);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t code[16] = {0};
		size_t len = qemu_insn_bytes(insn, code, sizeof(code));

		if (!tracker.locks)
			qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_CB_NO_REGS,
							 accesses(tracker.devices),
							 (void *)(uintptr_t)(n - i));
		if (tracker.devices && is_port_io(code, len))
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, on_port_io, QEMU_CB_NO_REGS,
				(void *)(uintptr_t)qemu_plugin_insn_vaddr(insn));
		find_words(insn, code, len);
	}
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	tracker_close(&tracker);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	unsigned long long fd = 0, epoch = 0, ram = 0, devices = 0, with_locks = 0;
	FILE *out;

	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!sscanf(argv[i], "fd=%llu", &fd) && !sscanf(argv[i], "epoch=%llu", &epoch) &&
		    !sscanf(argv[i], "ram=%llu", &ram) &&
		    !sscanf(argv[i], "devices=%llu", &devices) &&
		    !sscanf(argv[i], "locks=%llu", &with_locks)) {
			fprintf(stderr, "kvmsim plugin: unknown argument %s\n", argv[i]);
			return 1;
		}
	}
	if (!fd || !epoch || !ram) {
		fprintf(stderr, "kvmsim plugin: fd, epoch and ram are needed\n");
		return 1;
	}
	out = fdopen(fd, "w");
	if (!out || !counter_open() || !tracker_open(&tracker, out, epoch, ram)) {
		fprintf(stderr,
			"kvmsim plugin: descriptor %llu cannot be written to, or no memory\n", fd);
		return 1;
	}
	tracker.devices = devices;
	if (with_locks) {
		locks_open(&locks, out);
		tracker.locks = &locks;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
	return 0;
}
