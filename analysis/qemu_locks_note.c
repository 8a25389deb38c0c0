// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <string.h>

#include "analysis/qemu_locks.h"
#include "analysis/record_qemu.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void print_phases(FILE *f, const struct qemu_stream *s)
{
	fprintf(f, "Instructions of all vCPUs, in millions; locks taken and given back outside of "
		   "timer interrupts.\n\n"
		   "| phase | clients | work | in slow paths | in timer interrupts | locks taken | "
		   "per million of work | with a wait |\n"
		   "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
	for (unsigned k = 1; k < s->n_phases; k++) {
		struct lock_work sum = qemu_locks_sums(s->locks, k);
		uint64_t n = 0, waited = 0;

		for (size_t i = 0; i < s->locks->n_taken; i++) {
			const struct lock_taken *t = &s->locks->taken[i];

			n += t->phase == k && !t->tick;
			waited += t->phase == k && !t->tick && t->waited;
		}
		fprintf(f, "| %u | %s | %.1f | %.3f | %.1f | %" PRIu64 " | %.1f | %" PRIu64 " |\n",
			k, s->phases[k].name, (double)sum.work / 1e6, (double)sum.wait / 1e6,
			(double)sum.ticks / 1e6, n,
			sum.work ? 1e6 * (double)n / (double)sum.work : 0.0, waited);
	}
}

void qemu_locks_note(FILE *f, const struct qemu_recording *r, const struct qemu_stream *s)
{
	fprintf(f,
		"<!-- SPDX-License-Identifier: GPL-3.0-or-later -->\n"
		"# %s\n\n"
		"- **What**: the spin locks that a guest's kernel took: %s. %zu times one was "
		"taken "
		"and given back, in %u phase%s.\n"
		"- **Where**: %s, kernel %s; %" PRIu64
		" MiB, %u vCPUs, machine q35, ext4 on virtio-blk, read only.\n",
		base_name(r->out), r->scenario->what, s->locks->n_taken, s->n_phases - 1,
		s->n_phases == 2 ? "" : "s", r->about, s->kernel, r->memory_mib,
		r->scenario->vcpus);
	fprintf(f,
		"- **How**: `%s`: QEMU %s under TCG (no KVM), its vCPUs by turns on one thread: "
		"the host's load is not in the counts. A plugin "
		"(interface "
		"%u) looks at the atomic instructions, and the stores of a zero byte, of the "
		"kernel's "
		"functions that take and give back qspinlocks and qrwlocks (`_raw_spin_*`, "
		"`_raw_read_*`, `_raw_write_*`), and at the way through their slow paths; the "
		"caller is who called or jumped there. All times are guest instructions of the "
		"vCPU, "
		"without those in slow paths and in timer interrupts.\n",
		r->command, r->version, r->api);
	fprintf(f,
		"- **Columns**: kvmsim-record(1). In short: a row `all`, rows `lock` (a lock that "
		"is at "
		"least a thousandth of all), `locks` (the others, by the function that takes them "
		"most); "
		"these again by calling function, `caller`. `hold`: from taking to giving back, "
		"with "
		"what was nested or interrupted; `gap`: since the vCPU held none; `inner_gap`: of "
		"locks "
		"taken while another is held, since that was taken. `moved`: another vCPU had the "
		"lock "
		"before.\n"
		"- **What it cannot see**: locks that spin by other means (bit locks, lockref's "
		"compare-and-exchange without its lock, sequence counters), mutexes and "
		"semaphores, "
		"what is idle (a vCPU that halts runs no instructions), and what cycles each "
		"instruction "
		"takes. Three things are not the guest's own. A wait: a vCPU that spins gives its "
		"turn "
		"away (PAUSE), and one that holds a lock can lose its turn. How often the clock "
		"ticks: it "
		"is the host's, the instructions are slow; so what timer interrupts and the "
		"softirqs "
		"after them do is not in the work, and the locks that they take are in rows of "
		"their own, "
		"`timer` and `timer_caller`. And how often the scheduler changes tasks at a "
		"tick.\n");
	fprintf(f,
		"- **Left out**: %" PRIu64 " locks that were held where a phase ended; %" PRIu64
		" that were given back and had not been seen taken.\n"
		"- **Check**: the plugin counts its lines; as many came. Rows `lock` and `locks` "
		"add up to `all`, as rows `caller` do.\n"
		"- **Licence**: the project's (GPL-3.0-or-later). It holds counts and names of "
		"functions, no content of the guest's memory.\n\n",
		s->locks->left, s->locks->strange);
	print_phases(f, s);
}
