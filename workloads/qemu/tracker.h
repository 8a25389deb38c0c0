/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_QEMU_TRACKER_H
#define KVMSIM_QEMU_TRACKER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct locks;

/*
 * What the QEMU plugin keeps of a guest and writes of it, apart from QEMU: the first store to each
 * page in each epoch, as lines for the guest probe's importer (traces/trace.h), and between them
 * lines that begin with "#", for whoever started QEMU:
 *
 *	# probe epoch LEN ram PAGES	the first line
 *	# ram PAGE GFN			where the plugin sees a page of RAM that the guest named
 *	# vram PAGE GFN PAGES		the same of video RAM
 *	# guest WORDS			any other words of the guest
 *	# epoch PHASE RAM VRAM full|cut	pages of an epoch that is over, counted apart from the lines
 *	# error WORDS			this recording is of no use
 *	# accesses LINES APIC		with devices: lines of accesses and port I/O; accesses of
 *					the local APIC, which KVM has in the kernel: no lines
 *	# end LINES OUTSIDE		the last line: store lines written, first stores elsewhere
 *
 * The guest speaks by no-ops with a byte in them (tell.c). Its words, each ended by a newline:
 * "mark K" begins phase K, 0 ends one; "ram GFN" and "vram GFN PAGES" (hexadecimal) name the page
 * that its next tagged store goes to. Pages are recorded in phases only, in one vCPU's time: guest
 * instructions. A page as the plugin sees it is its place in QEMU's RAM before QEMU 8.
 *
 * With devices there is a line for each access of a device in a phase, too, "TIME VCPU r|w GFN
 * NAME+OFFSET" (offset in the page), and "TIME VCPU p PC" for each instruction of port I/O, whose
 * port is in a register and not seen.
 *
 * With locks there are their lines (locks.h), and "symbol ADDR NAME" of the guest is heard; times
 *are sums over all vCPUs then.
 */
#define TRACKER_PAGES (1u << 22) /* that the plugin may see: 16 GiB */

enum tracker_place { TRACKER_NOWHERE, TRACKER_RAM, TRACKER_VRAM };

struct tracker {
	FILE *out;
	uint64_t epoch_len;
	uint32_t *stamp; /* by page: serial number of the epoch of its last store */
	uint32_t serial; /* of the open epoch, from 1 */
	unsigned phase;	 /* mark of the open phase; 0: none */
	uint64_t epoch_end;
	uint64_t ram_page, ram_pages;		  /* gfn 0 and up */
	uint64_t vram_page, vram_gfn, vram_pages; /* vram_pages 0: not told */
	bool ram_told, failed;
	uint64_t in_ram, in_vram; /* pages of the open epoch */
	uint64_t lines, outside;
	struct locks *locks;	 /* NULL: no lines of locks */
	bool devices;		 /* accesses of devices are written */
	uint64_t accesses, apic; /* lines of them; those of the local APIC, without */
	enum tracker_place told; /* that the next tagged store shows */
	uint64_t told_gfn, told_pages;
	char words[256];
	unsigned n_words; /* bytes of @words */
};

/* @out stays the caller's. False without memory. */
bool tracker_open(struct tracker *t, FILE *out, uint64_t epoch_len, uint64_t ram_pages);
/* One byte of the guest's words at instruction @time. */
void tracker_byte(struct tracker *t, uint64_t time, uint8_t byte);
/* The guest's tagged store. */
void tracker_tagged(struct tracker *t, uint64_t page);
/* A store to a page that is not known to have been stored to in this epoch. */
void tracker_first_store(struct tracker *t, unsigned vcpu, uint64_t time, uint64_t page);
/* An access of a device's register at @gpa, and an instruction of port I/O at guest address @pc, in
 * a phase; other times nothing is written. Blanks in @name are written as _, of a
 * name that QEMU made from an address only "anon" is written. */
void tracker_device(struct tracker *t, unsigned vcpu, uint64_t time, bool write, uint64_t gpa,
		    const char *name);
void tracker_port(struct tracker *t, unsigned vcpu, uint64_t time, uint64_t pc);
/* The last line; frees what tracker_open() took. */
void tracker_close(struct tracker *t);

/* Any store, in a phase. Times don't go back. */
static inline void tracker_store(struct tracker *t, unsigned vcpu, uint64_t time, uint64_t page)
{
	if (time >= t->epoch_end || page >= TRACKER_PAGES || t->stamp[page] != t->serial)
		tracker_first_store(t, vcpu, time, page);
}

#endif
