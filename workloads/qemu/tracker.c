// SPDX-License-Identifier: GPL-2.0-or-later
#include "workloads/qemu/tracker.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/qemu/locks.h"

bool tracker_open(struct tracker *t, FILE *out, uint64_t epoch_len, uint64_t ram_pages)
{
	*t = (struct tracker){
		.out = out, .epoch_len = epoch_len, .ram_pages = ram_pages, .serial = 1};
	t->stamp = calloc(TRACKER_PAGES, sizeof(*t->stamp));
	if (!t->stamp)
		return false;
	fprintf(out, "# probe epoch %" PRIu64 " ram %" PRIu64 "\n", epoch_len, ram_pages);
	return true;
}

/* Said once: what follows is not to be trusted. */
static void fail(struct tracker *t, const char *words)
{
	if (!t->failed)
		fprintf(t->out, "# error %s\n", words);
	fflush(t->out);
	t->failed = true;
}

/* ---- epochs ---- */

static void end_epoch(struct tracker *t, bool full)
{
	fprintf(t->out, "# epoch %u %" PRIu64 " %" PRIu64 " %s\n", t->phase, t->in_ram, t->in_vram,
		full ? "full" : "cut");
	t->in_ram = 0;
	t->in_vram = 0;
	if (++t->serial == 0) { /* stamps of long ago would look new */
		memset(t->stamp, 0, TRACKER_PAGES * sizeof(*t->stamp));
		t->serial = 1;
	}
}

/* Ends the epochs that are over at @time: at its very end, too, unless @before. */
static void roll(struct tracker *t, uint64_t time, bool before)
{
	while (before ? time > t->epoch_end : time >= t->epoch_end) {
		end_epoch(t, true);
		t->epoch_end += t->epoch_len;
	}
}

static void mark(struct tracker *t, uint64_t time, unsigned k)
{
	if (!t->ram_told)
		fail(t, "the guest began a phase before it named a page of its RAM");
	if (t->locks) {
		if (k && !locks_ready(t->locks))
			fail(t, "the guest's kernel has none of the functions that take locks, "
				"wait for them and give them back");
		locks_phase(t->locks, k);
	}
	if (t->phase) {
		roll(t, time, true);
		end_epoch(t, time == t->epoch_end);
	}
	/* no host time: the same guest gives the same text */
	fprintf(t->out, "%" PRIu64 " 0 M %u 0\n", time, k);
	fflush(t->out);
	t->phase = k;
	t->epoch_end = time + t->epoch_len;
}

void tracker_first_store(struct tracker *t, unsigned vcpu, uint64_t time, uint64_t page)
{
	if (time >= t->epoch_end)
		roll(t, time, false);
	if (page >= TRACKER_PAGES) {
		t->outside++;
		return;
	}
	if (t->stamp[page] == t->serial)
		return;
	t->stamp[page] = t->serial;
	if (page - t->ram_page < t->ram_pages) {
		t->in_ram++;
		fprintf(t->out, "%" PRIu64 " %u S %" PRIx64 "\n", time, vcpu, page - t->ram_page);
	} else if (page - t->vram_page < t->vram_pages) {
		t->in_vram++;
		fprintf(t->out, "%" PRIu64 " %u V %" PRIx64 "\n", time, vcpu,
			page - t->vram_page + t->vram_gfn);
	} else {
		t->outside++;
		return;
	}
	t->lines++;
}

/* ---- devices ---- */

#define LOCAL_APIC_PAGE 0xfee00

void tracker_device(struct tracker *t, unsigned vcpu, uint64_t time, bool write, uint64_t gpa,
		    const char *name)
{
	if (!t->phase)
		return;
	if (gpa >> 12 == LOCAL_APIC_PAGE) {
		t->apic++;
		return;
	}
	fprintf(t->out, "%" PRIu64 " %u %c %" PRIx64 " ", time, vcpu, write ? 'w' : 'r', gpa >> 12);
	if (!strncmp(name, "anon", 4)) /* and the address of what has no name in QEMU */
		name = "anon";
	for (; *name; name++)
		fputc(*name > ' ' && *name <= '~' ? *name : '_', t->out);
	fprintf(t->out, "+%x\n", (unsigned)(gpa & 0xfff));
	t->accesses++;
}

void tracker_port(struct tracker *t, unsigned vcpu, uint64_t time, uint64_t pc)
{
	if (!t->phase)
		return;
	fprintf(t->out, "%" PRIu64 " %u p %" PRIx64 "\n", time, vcpu, pc);
	t->accesses++;
}

/* ---- the guest's words ---- */

static bool hex(const char **s, uint64_t *out)
{
	char *end;

	*out = strtoull(*s, &end, 16);
	if (end == *s)
		return false;
	*s = end;
	return true;
}

/* "ram GFN" or "vram GFN PAGES": kept until the tagged store. */
static bool parse_place(struct tracker *t, const char *s)
{
	bool vram = !strncmp(s, "vram ", 5);

	if (!vram && strncmp(s, "ram ", 4))
		return false;
	s += vram ? 5 : 4;
	if (!hex(&s, &t->told_gfn) || (vram && !hex(&s, &t->told_pages)) || *s)
		fail(t, "the guest named a page in words that are not known");
	else
		t->told = vram ? TRACKER_VRAM : TRACKER_RAM;
	return true;
}

/* "symbol ADDR NAME" */
static void take_symbol(struct tracker *t, const char *s)
{
	uint64_t addr;

	if (hex(&s, &addr) && *s == ' ')
		locks_symbol(t->locks, addr, s + 1);
}

static void take_words(struct tracker *t, uint64_t time)
{
	const char *s = t->words;

	if (t->locks && !strncmp(s, "symbol ", 7))
		take_symbol(t, s + 7);
	if (!strncmp(s, "mark ", 5))
		mark(t, time, strtoul(s + 5, NULL, 10));
	else if (!parse_place(t, s))
		fprintf(t->out, "# guest %s\n", s);
	fflush(t->out);
}

void tracker_byte(struct tracker *t, uint64_t time, uint8_t byte)
{
	if (byte == '\n') {
		t->words[t->n_words] = 0;
		t->n_words = 0;
		take_words(t, time);
	} else if (t->n_words + 1 < sizeof(t->words)) {
		t->words[t->n_words++] = byte < ' ' || byte > '~' ? '?' : byte;
	}
}

void tracker_tagged(struct tracker *t, uint64_t page)
{
	enum tracker_place told = t->told;

	t->told = TRACKER_NOWHERE;
	if (told == TRACKER_RAM) {
		/* one block of QEMU's memory holds all of it, below 4 GiB */
		t->ram_page = page - t->told_gfn;
		t->ram_told = true;
		fprintf(t->out, "# ram %" PRIx64 " %" PRIx64 "\n", page, t->told_gfn);
		if (t->told_gfn >= t->ram_pages || page < t->told_gfn)
			fail(t, "the guest named a page that is not in its RAM");
	} else if (told == TRACKER_VRAM) {
		t->vram_page = page;
		t->vram_gfn = t->told_gfn;
		t->vram_pages = t->told_pages;
		fprintf(t->out, "# vram %" PRIx64 " %" PRIx64 " %" PRIu64 "\n", page, t->told_gfn,
			t->told_pages);
	}
	fflush(t->out);
}

void tracker_close(struct tracker *t)
{
	if (t->devices)
		fprintf(t->out, "# accesses %" PRIu64 " %" PRIu64 "\n", t->accesses, t->apic);
	if (t->locks)
		locks_close(t->locks);
	fprintf(t->out, "# end %" PRIu64 " %" PRIu64 "\n", t->lines, t->outside);
	fflush(t->out);
	free(t->stamp);
	t->stamp = NULL;
}
