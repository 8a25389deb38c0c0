// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/kvm/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES    0x200000ull
#define GIB	      0x40000000ull
#define TABLE_ENTRIES 512u

/* The machine's own slot, from OWN_GPA. */
#define PML4	     0x0000ull
#define PDPT	     0x1000ull
#define PD(gib)	     (0x2000ull + (gib)*PAGE_BYTES) /* of 5 GiB */
#define CODE	     0x8000ull
#define TSS	     0x9000ull
#define PT(i)	     (0x10000ull + (i)*PAGE_BYTES) /* each maps 2 MiB below OWN_GPA, where used */
#define VCPU(i)	     (0x1000000ull + (i)*VCPU_BYTES)
#define VCPU_BYTES   0x100000ull
#define VCPU_LIST    PAGE_BYTES /* in a vCPU's part, after its counters */
#define OWN_BYTES(n) ((VCPU(n) + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1))
_Static_assert(VCPU_LIST + LIST_ACCESS * sizeof(uint64_t) <= VCPU_BYTES, "a list fits");

/* Page-table entries as an OS leaves them: accessed, leaves dirty, too. */
#define PTE_TABLE 0x27ull /* present, writable, user, accessed */
#define PTE_LEAF  0x67ull /* and dirty */
#define PTE_HUGE  0x80ull

#define PORT_DONE  0x10
#define TSS_IO_MAP 0x66ull /* 16 bits: the map's offset */
#define TSS_BYTES  0x68ull
_Static_assert(MACHINE_TSS_BYTES == TSS_BYTES + 0x10, "a map of 128 ports");

/* RSI: the list; RCX: its length, at least 1; RDI: the counters. */
static const uint8_t code[] = {
	0x48, 0xad,			   /* 00: lodsq */
	0x48, 0xff,	 0x07,		   /* 02: incq (%rdi)        begun */
	0x48, 0x0f,	 0xba, 0xf0, 0x3f, /* 05: btr $63,%rax */
	0x72, 0x16,			   /* 0a: jc 22              ACCESS_READ */
	0x48, 0x0f,	 0xba, 0xf0, 0x3e, /* 0c: btr $62,%rax */
	0x72, 0x13,			   /* 11: jc 26              ACCESS_RMW */
	0x88, 0x08,			   /* 13: movb %cl,(%rax) */
	0x48, 0xff,	 0x47, 0x08,	   /* 15: incq 8(%rdi)       done */
	0x48, 0xff,	 0xc9,		   /* 19: decq %rcx */
	0x75, 0xe2,			   /* 1c: jnz 00 */
	0xe6, PORT_DONE,		   /* 1e: out %al,$PORT_DONE */
	0xeb, 0xde,			   /* 20: jmp 00 */
	0x8a, 0x10,			   /* 22: movb (%rax),%dl */
	0xeb, 0xef,			   /* 24: jmp 15 */
	0xfe, 0x00,			   /* 26: incb (%rax) */
	0xeb, 0xeb,			   /* 28: jmp 15 */
};

uint64_t machine_tsc(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

int machine_ioctl(const struct machine *m, int fd, unsigned long request, void *arg,
		  const char *what)
{
	int ret = ioctl(fd, request, arg);

	if (ret < 0)
		return kvmsim_err(m->opts->errors, KVMSIM_EIO, "%s: %s", what, strerror(errno));
	return ret;
}

/* ---- memory ---- */

int machine_map(struct machine *m, struct machine_memory *mem, uint64_t bytes, bool thp)
{
	/* One huge page more, to begin at its boundary as a VMM's memory does. */
	uint8_t *p = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return kvmsim_err(m->opts->errors, KVMSIM_ENOMEM, "%llu bytes of guest memory: %s",
				  (unsigned long long)bytes, strerror(errno));
	uint8_t *start = p + (HUGE_BYTES - (uintptr_t)p % HUGE_BYTES) % HUGE_BYTES;

	if (start != p)
		munmap(p, (size_t)(start - p));
	if (start != p + HUGE_BYTES)
		munmap(start + bytes, HUGE_BYTES - (uint64_t)(start - p));
	mem->host = start;
	mem->bytes = bytes;
	/* EINVAL: a kernel without huge pages */
	if (madvise(start, bytes, thp ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) < 0 &&
	    (errno != EINVAL || thp))
		return kvmsim_err(m->opts->errors, KVMSIM_EUNSUPPORTED,
				  "huge pages for the guest's memory: %s", strerror(errno));
	return 0;
}

void machine_touch_memory(const struct machine_memory *mem)
{
	for (uint64_t at = 0; at < mem->bytes; at += PAGE_BYTES)
		((volatile uint8_t *)mem->host)[at] = 1;
}

int machine_set_slot(struct machine *m, uint32_t slot, uint64_t gpa, uint64_t bytes,
		     const struct machine_memory *mem, uint32_t flags)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot,
		.flags = flags,
		.guest_phys_addr = gpa,
		.memory_size = bytes,
		.userspace_addr = (uintptr_t)mem->host,
	};

	return machine_ioctl(m, m->vm, KVM_SET_USER_MEMORY_REGION, &region,
			     "KVM_SET_USER_MEMORY_REGION");
}

int machine_log(struct machine *m, uint32_t slot, bool on, uint64_t *cycles)
{
	uint64_t start = machine_tsc();
	int err = machine_set_slot(m, slot, m->opts->slots[slot].base_gfn << PAGE_SHIFT,
				   m->slots[slot].bytes, &m->slots[slot],
				   on ? KVM_MEM_LOG_DIRTY_PAGES : 0);

	*cycles = machine_tsc() - start;
	return err;
}

void machine_put_tss(uint8_t *host)
{
	memset(host, 0, MACHINE_TSS_BYTES);
	host[TSS_IO_MAP] = TSS_BYTES;
}

static void put(struct machine *m, uint64_t table, uint64_t index, uint64_t entry)
{
	memcpy(m->own.host + table + index * sizeof(entry), &entry, sizeof(entry));
}

static uint64_t get(const struct machine *m, uint64_t table, uint64_t index)
{
	uint64_t entry;

	memcpy(&entry, m->own.host + table + index * sizeof(entry), sizeof(entry));
	return entry;
}

static void map_slot(struct machine *m, const struct kvm_player_slot *s, uint64_t *tables)
{
	for (uint64_t i = 0; i < s->npages; i++) {
		uint64_t gpa = (s->base_gfn + i) << PAGE_SHIFT;
		uint64_t pd = PD(gpa / GIB), huge = gpa % GIB / HUGE_BYTES;

		if (m->opts->guest_2m) {
			put(m, pd, huge, (gpa & ~(HUGE_BYTES - 1)) | PTE_LEAF | PTE_HUGE);
			continue;
		}
		if (!get(m, pd, huge))
			put(m, pd, huge, (OWN_GPA + PT((*tables)++)) | PTE_TABLE);
		put(m, get(m, pd, huge) / PAGE_BYTES * PAGE_BYTES - OWN_GPA,
		    gpa % HUGE_BYTES / PAGE_BYTES, gpa | PTE_LEAF);
	}
}

static void build_tables(struct machine *m)
{
	uint64_t tables = 0;

	put(m, PML4, 0, (OWN_GPA + PDPT) | PTE_TABLE);
	for (uint64_t gib = 0; gib <= OWN_GPA / GIB; gib++)
		put(m, PDPT, gib, (OWN_GPA + PD(gib)) | PTE_TABLE);
	for (uint64_t at = 0; at < m->own.bytes; at += HUGE_BYTES)
		put(m, PD(OWN_GPA / GIB), at / HUGE_BYTES, (OWN_GPA + at) | PTE_LEAF | PTE_HUGE);
	for (uint32_t i = 0; i < m->opts->n_slots; i++)
		map_slot(m, &m->opts->slots[i], &tables);
}

/* The played slots have their index as slot number, the machine's own comes after them. */
static int make_memory(struct machine *m)
{
	const struct kvm_player_opts *o = m->opts;
	int err = machine_map(m, &m->own, OWN_BYTES(o->n_vcpus), false);
	uint64_t cycles;

	if (err)
		return err;
	machine_touch_memory(&m->own);
	memset(m->own.host, 0, m->own.bytes);
	memcpy(m->own.host + CODE, code, sizeof(code));
	machine_put_tss(m->own.host + TSS);
	build_tables(m);
	err = machine_set_slot(m, o->n_slots, OWN_GPA, m->own.bytes, &m->own, 0);
	for (uint32_t i = 0; !err && i < o->n_slots; i++) {
		err = machine_map(m, &m->slots[i], o->slots[i].npages << PAGE_SHIFT, o->thp);
		if (!err && !o->absent)
			machine_touch_memory(&m->slots[i]);
		err = err ? err : machine_log(m, i, false, &cycles);
	}
	return err;
}

/* ---- vCPUs ---- */

static int set_cpuid(struct machine *m, int vcpu)
{
	const size_t entries = 256;
	struct kvm_cpuid2 *cpuid = calloc(1, sizeof(*cpuid) + entries * sizeof(cpuid->entries[0]));
	int err;

	if (!cpuid)
		return KVMSIM_ENOMEM;
	cpuid->nent = (uint32_t)entries;
	err = machine_ioctl(m, m->kvm, KVM_GET_SUPPORTED_CPUID, cpuid, "KVM_GET_SUPPORTED_CPUID");
	err = err < 0 ? err : machine_ioctl(m, vcpu, KVM_SET_CPUID2, cpuid, "KVM_SET_CPUID2");
	free(cpuid);
	return err;
}

static int set_sregs(struct machine *m, int vcpu, uint64_t cr3, uint64_t tss)
{
	const struct kvm_segment user_code = {
		.limit = 0xffffffff,
		.selector = 0x33,
		.type = 11, /* execute, read, accessed */
		.present = 1,
		.dpl = 3,
		.s = 1,
		.l = 1,
		.g = 1,
	};
	const struct kvm_segment busy_tss = {
		.base = tss,
		.limit = MACHINE_TSS_BYTES - 1,
		.selector = 0x40,
		.type = 11,
		.present = 1,
	};
	struct kvm_segment user_data = user_code;
	struct kvm_sregs s;
	int err = machine_ioctl(m, vcpu, KVM_GET_SREGS, &s, "KVM_GET_SREGS");

	if (err < 0)
		return err;
	user_data.selector = 0x2b;
	user_data.type = 3; /* read, write, accessed */
	user_data.l = 0;
	user_data.db = 1;
	s.cs = user_code;
	s.ds = s.es = s.fs = s.gs = s.ss = user_data;
	s.tr = busy_tss;
	s.ldt = (struct kvm_segment){.type = 2, .unusable = 1};
	s.cr0 = 0x80050033; /* PG AM WP NE ET MP PE */
	s.cr3 = cr3;
	s.cr4 = 0x620;	/* PAE OSFXSR OSXMMEXCPT */
	s.efer = 0xd01; /* NXE LMA LME SCE */
	return machine_ioctl(m, vcpu, KVM_SET_SREGS, &s, "KVM_SET_SREGS");
}

int machine_add_vcpu(struct machine *m, uint32_t i, uint64_t cr3, uint64_t tss)
{
	struct machine_vcpu *v = &m->vcpus[i];
	uint64_t ring_bytes = m->opts->ring_entries * sizeof(struct kvm_dirty_gfn);
	void *p;

	v->fd = ioctl(m->vm, KVM_CREATE_VCPU, (unsigned long)i);
	if (v->fd < 0)
		return kvmsim_err(m->opts->errors, KVMSIM_EIO, "KVM_CREATE_VCPU: %s",
				  strerror(errno));
	p = mmap(NULL, m->run_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	if (p == MAP_FAILED)
		return kvmsim_err(m->opts->errors, KVMSIM_EIO, "mmap of a vCPU: %s",
				  strerror(errno));
	v->run = p;
	if (m->opts->protocol == KVM_PROTOCOL_RING) {
		p = mmap(NULL, ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd,
			 KVM_DIRTY_LOG_PAGE_OFFSET * sysconf(_SC_PAGESIZE));
		if (p == MAP_FAILED)
			return kvmsim_err(m->opts->errors, KVMSIM_EIO, "mmap of a dirty ring: %s",
					  strerror(errno));
		v->ring = p;
	}
	int err = set_cpuid(m, v->fd);

	return err ? err : set_sregs(m, v->fd, cr3, tss);
}

int machine_load(struct machine *m, uint32_t vcpu, uint32_t n)
{
	struct kvm_regs regs = {
		.rip = OWN_GPA + CODE,
		.rsi = OWN_GPA + VCPU(vcpu) + VCPU_LIST,
		.rdi = OWN_GPA + VCPU(vcpu),
		.rcx = n,
		.rflags = MACHINE_RFLAGS,
	};

	return machine_ioctl(m, m->vcpus[vcpu].fd, KVM_SET_REGS, &regs, "KVM_SET_REGS");
}

int machine_enter(struct machine *m, uint32_t vcpu)
{
	struct machine_vcpu *v = &m->vcpus[vcpu];
	const struct kvm_run *run = v->run;

	if (ioctl(v->fd, KVM_RUN, 0) < 0) {
		if (errno == EINTR || errno == EAGAIN)
			return MACHINE_SIGNAL;
		return kvmsim_err(m->opts->errors, KVMSIM_EIO, "KVM_RUN: %s", strerror(errno));
	}
	if (run->exit_reason == KVM_EXIT_IO && run->io.port == PORT_DONE)
		return MACHINE_DONE;
	if (run->exit_reason == KVM_EXIT_DIRTY_RING_FULL)
		return MACHINE_RING_FULL;
	return kvmsim_err(m->opts->errors, KVMSIM_EIO,
			  "the guest left KVM_RUN with exit reason %u, expected its OUT",
			  run->exit_reason);
}

/* ---- the whole ---- */

static int enable(struct machine *m, uint32_t cap, uint64_t arg, const char *what)
{
	struct kvm_enable_cap c = {.cap = cap, .args = {arg}};

	if (ioctl(m->vm, KVM_ENABLE_CAP, &c) < 0)
		return kvmsim_err(m->opts->errors, KVMSIM_EUNSUPPORTED,
				  "this KVM refuses %s (%llu): %s", what, (unsigned long long)arg,
				  strerror(errno));
	return 0;
}

static int enable_protocol(struct machine *m)
{
	switch (m->opts->protocol) {
	case KVM_PROTOCOL_MANUAL:
		return enable(m, KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2,
			      KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE,
			      "KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2");
	case KVM_PROTOCOL_MANUAL_ALL_SET:
		return enable(m, KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2,
			      KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE | KVM_DIRTY_LOG_INITIALLY_SET,
			      "KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2");
	case KVM_PROTOCOL_RING:
		return enable(m, KVM_CAP_DIRTY_LOG_RING,
			      m->opts->ring_entries * sizeof(struct kvm_dirty_gfn),
			      "KVM_CAP_DIRTY_LOG_RING");
	default:
		return 0;
	}
}

static int make(struct machine *m)
{
	int err;

	m->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (m->kvm < 0)
		return kvmsim_err(m->opts->errors, KVMSIM_EUNSUPPORTED, "/dev/kvm: %s",
				  strerror(errno));
	m->vm = machine_ioctl(m, m->kvm, KVM_CREATE_VM, NULL, "KVM_CREATE_VM");
	if (m->vm < 0)
		return m->vm;
	err = machine_ioctl(m, m->kvm, KVM_GET_VCPU_MMAP_SIZE, NULL, "KVM_GET_VCPU_MMAP_SIZE");
	if (err < 0)
		return err;
	m->run_bytes = (uint64_t)err;
	return enable_protocol(m);
}

int machine_make_vm(const struct kvm_player_opts *opts, struct machine **out)
{
	struct machine *m = calloc(1, sizeof(*m));
	int err;

	*out = NULL;
	if (!m)
		return KVMSIM_ENOMEM;
	m->opts = opts;
	m->kvm = m->vm = -1;
	for (uint32_t i = 0; i < KVM_PLAYER_MAX_VCPUS; i++)
		m->vcpus[i].fd = -1;
	err = make(m);
	if (err) {
		machine_close(m);
		return err;
	}
	*out = m;
	return 0;
}

int machine_open(const struct kvm_player_opts *opts, struct machine **out)
{
	int err = machine_make_vm(opts, out);
	struct machine *m = *out;

	err = err ? err : make_memory(m);
	for (uint32_t i = 0; !err && i < opts->n_vcpus; i++) {
		err = machine_add_vcpu(m, i, OWN_GPA + PML4, OWN_GPA + TSS);
		m->vcpus[i].counters = (volatile struct machine_counters *)(m->own.host + VCPU(i));
		m->vcpus[i].list = (uint64_t *)(m->own.host + VCPU(i) + VCPU_LIST);
	}
	if (err) {
		machine_close(m);
		*out = NULL;
	}
	return err;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void unmap(void *p, uint64_t bytes)
{
	if (p)
		munmap(p, bytes);
}

void machine_close(struct machine *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < KVM_PLAYER_MAX_VCPUS; i++) {
		unmap(m->vcpus[i].run, m->run_bytes);
		unmap(m->vcpus[i].ring, m->opts->ring_entries * sizeof(struct kvm_dirty_gfn));
		close_fd(m->vcpus[i].fd);
	}
	close_fd(m->vm);
	close_fd(m->kvm);
	unmap(m->own.host, m->own.bytes);
	for (uint32_t i = 0; i < KVM_PLAYER_MAX_SLOTS; i++)
		unmap(m->slots[i].host, m->slots[i].bytes);
	free(m);
}
