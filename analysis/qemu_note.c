// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/record_qemu.h"
#include "traces/outfile.h"

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* "MIN / MEDIAN / MAX" of an array, which is sorted. */
static void print_spread(FILE *f, uint32_t *of, uint64_t n)
{
	uint64_t twice;

	if (!n) {
		fprintf(f, " |");
		return;
	}
	qsort(of, n, sizeof(*of), by_size);
	twice = (uint64_t)of[(n - 1) / 2] + of[n / 2];
	fprintf(f, " %" PRIu32 " / %" PRIu64 "%s / %" PRIu32 " |", of[0], twice / 2,
		twice % 2 ? ".5" : "", of[n - 1]);
}

static void print_phases(FILE *f, const struct qemu_stream *s)
{
	fprintf(f,
		"Pages are those of whole epochs: least / median / most.\n\n"
		"| phase | | million instructions | epochs, whole | RAM pages |%s\n"
		"| ---: | --- | ---: | ---: | ---: |%s\n",
		s->vram_pages ? " video RAM pages |" : "", s->vram_pages ? " ---: |" : "");
	for (unsigned k = 1; k < s->n_phases; k++) {
		const struct qemu_phase *p = &s->phases[k];

		fprintf(f, "| %u | %s | %" PRIu64 " | %" PRIu64 ", %" PRIu64 " |", k, p->name,
			p->insns / 1000000, p->epochs, p->whole);
		print_spread(f, p->ram, p->whole);
		if (s->vram_pages)
			print_spread(f, p->vram, p->whole);
		fputc('\n', f);
	}
}

/* Of scenarios whose tests are numbers of transactions: their sum. */
static uint64_t transactions(const char *tests)
{
	uint64_t n = 0;

	for (const char *word = tests; word; word = strchr(word, ',')) {
		word += *word == ',';
		n += strtoull(word, NULL, 10);
	}
	return n;
}

static int by_number(const void *a, const void *b)
{
	const struct qemu_register *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void print_registers(FILE *f, const struct qemu_recording *r, const struct qemu_stream *s)
{
	double n = (double)transactions(r->tests);
	struct qemu_register sorted[QEMU_MAX_REGISTERS];
	uint64_t in_lines = 0;
	unsigned shown = 0;

	memcpy(sorted, s->registers, sizeof(sorted));
	qsort(sorted, s->n_registers, sizeof(*sorted), by_number);
	fprintf(f,
		"\nAccesses of devices, per transaction; of %.0f transactions (%" PRIu64
		" accesses):\n\n"
		"| | page, device, offset; port I/O: the instruction | number | per transaction |\n"
		"| --- | --- | ---: | ---: |\n",
		n, s->accesses);
	for (; shown < s->n_registers && sorted[shown].n >= n / 200; shown++) {
		const struct qemu_register *reg = &sorted[shown];

		in_lines += reg->n;
		fprintf(f, "| %s | %s | %" PRIu64 " | %.3f |\n",
			reg->kind == 'r'   ? "read"
			: reg->kind == 'w' ? "write"
					   : "port",
			reg->name, reg->n, (double)reg->n / n);
	}
	if (s->accesses > in_lines)
		fprintf(f, "| | others, each of them rarer | %" PRIu64 " | %.3f |\n",
			s->accesses - in_lines, (double)(s->accesses - in_lines) / n);
	fprintf(f,
		"\n%" PRIu64 " accesses of the local APIC (%.3f per transaction) are not in the "
		"trace: KVM has it in the kernel.\n",
		s->apic, s->apic / n);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void print_note(FILE *f, const struct qemu_recording *r, const struct qemu_stream *s)
{
	uint64_t epochs = 0;
	char icount[64] = "no icount",
	     time[160] = "the guest's clock is the host's, which runs on while the guest's "
			 "instructions are slow";

	if (r->scenario->shift >= 0) {
		snprintf(icount, sizeof(icount), "`-icount shift=%d,sleep=off`",
			 r->scenario->shift);
		snprintf(time, sizeof(time),
			 "under icount an instruction is %d ns of guest time and the clock leaps "
			 "over waits for the host's disk",
			 1 << r->scenario->shift);
	}
	for (unsigned k = 1; k < s->n_phases; k++)
		epochs += s->phases[k].epochs;
	fprintf(f,
		"<!-- SPDX-License-Identifier: GPL-3.0-or-later -->\n"
		"# %s\n\n"
		"- **What**: %s. %u phase%s, %" PRIu64 " epochs of %" PRIu64
		" guest instructions, %" PRIu64 " first stores.\n",
		base_name(r->out), r->scenario->what, s->n_phases - 1, s->n_phases == 2 ? "" : "s",
		epochs, s->epoch_len, s->stores);
	fprintf(f,
		"- **Where**: %s, kernel %s; %" PRIu64 " MiB (one slot of %" PRIu64
		" pages), one vCPU, machine q35",
		r->about, s->kernel, r->memory_mib, s->ram_pages);
	if (s->inodes[0])
		fprintf(f, ", ext4 on virtio-blk, read only, %s inodes", s->inodes);
	if (r->nic)
		fprintf(f, ", -device %s on user-mode networking", r->nic->device);
	if (s->vram_pages)
		fprintf(f,
			", -vga std%s%s; its video RAM is a slot of %" PRIu64
			" pages at gfn 0x%" PRIx64,
			s->screen[0] ? ": " : "", s->screen, s->vram_pages, s->vram_gfn);
	fprintf(f,
		".\n- **How**: `%s`: QEMU %s under TCG (no KVM), %s, "
		"with a plugin "
		"(interface %u) that is called at every store and writes the first one to each "
		"page in "
		"each epoch%s. Its count of instructions is the clock. Epochs begin anew at each "
		"mark; "
		"what the guest did between the phases is not in the trace.\n"
		"- **What it cannot see**: loads; guest virtual addresses; stores after the first "
		"to a "
		"page in an epoch; device DMA (KVM's dirty log does not see it either); accessed "
		"and "
		"dirty bits set by page walks; the stores of interrupt and exception entry; %s. "
		"%" PRIu64 " first stores went to memory of neither slot and are left out.\n"
		"- **Time**: %s: two recordings are not the same.\n"
		"- **Check**: the plugin counts pages per epoch apart from its lines; the counts "
		"were "
		"those of the lines in every epoch.\n"
		"- **Licence**: the project's (GPL-3.0-or-later). It holds page numbers and "
		"instruction "
		"counts, no content of the guest's memory.\n\n",
		r->command, r->version, icount, r->api,
		r->scenario->devices ? ", and at every access of a device" : "",
		r->scenario->devices ? "which port is read or written" : "MMIO and port I/O",
		s->outside, time);
	print_phases(f, s);
	if (r->scenario->devices)
		print_registers(f, r, s);
}

static int write_whole(struct outfile *file, const char *text, size_t len, const char **what)
{
	*what = "cannot write";
	while (len) {
		ssize_t n = write(file->fd, text, len);

		if (n < 0)
			return KVMSIM_EIO;
		text += n;
		len -= n;
	}
	return outfile_finish(file) == OUTFILE_DONE ? 0 : KVMSIM_EIO;
}

int qemu_note(const struct qemu_recording *r, const struct qemu_stream *s,
	      const struct kvmsim_errsink *errors)
{
	const char *dot = strrchr(base_name(r->out), '.'), *what = "out of memory";
	bool known = dot && (!strcmp(dot, ".kvt") || !strcmp(dot, ".csv"));
	int stem = known ? (int)(dot - r->out) : (int)strlen(r->out);
	struct outfile file = {.fd = -1};
	char *path, *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int err;

	if (asprintf(&path, "%.*s.md", stem, r->out) < 0)
		path = NULL;
	if (f) {
		if (r->scenario->locks)
			qemu_locks_note(f, r, s);
		else
			print_note(f, r, s);
		if (fclose(f)) {
			free(text);
			text = NULL;
		}
	}
	err = path && text ? outfile_open(&file, path, &what) : KVMSIM_ENOMEM;
	if (!err)
		err = write_whole(&file, text, len, &what);
	if (err)
		kvmsim_err(errors, err, "%s: the note beside it: %s: %s", r->out, what,
			   strerror(errno));
	outfile_abort(&file);
	free(path);
	free(text);
	return err;
}
