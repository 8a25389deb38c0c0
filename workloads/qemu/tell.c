// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The guest's side of the recorder (tracker.h): words that the plugin hears, and stores that tell
 * it where a page is.
 *
 *	tell WORD...		says the words
 *	tell -m FILE WORD...	says them and stores, tagged, to the first byte of FILE
 *	tell -r			says "ram GFN" of a page of its own, and stores to it
 *	tell -p N FILE		the scenario "pages": says "page GFN" of N pages of its own, then
 *				in a phase stores to each of them, and to every third of the
 *				first 3 N pages of FILE; then again to each; then again in another
 *				phase
 *
 *	tell -t K N		connects to port 7 of 10.0.2.100, which says each byte again, and
 *does 50 transactions of one byte each way, then N more in phase K
 *
 * Without a library, so that it runs in any guest and is small.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#define PAGE	  4096
#define MAX_PAGES 512
#define PFN_MASK  ((1ull << 55) - 1) /* of an entry of /proc/self/pagemap */

/* A no-op for each byte: the instruction is what the plugin looks for. */
__asm__(".text\n"
	".balign 8\n"
	"tell_table:\n"
	".set byte, 0\n"
	".rept 256\n"
	".byte 0x0f, 0x1f, 0x80, byte, 0x00, 0x41, 0x4d\n" /* nopl 0x4d4100BB(%rax) */
	"ret\n"
	".set byte, byte + 1\n"
	".endr\n"
	".globl _start\n"
	"_start:\n"
	"mov %rsp, %rdi\n"
	"and $-16, %rsp\n"
	"call tell_main\n");
extern char tell_table[];
void tell_main(long *stack) __attribute__((noreturn));

static long call6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static void leave(int code) __attribute__((noreturn));
static void leave(int code)
{
	for (;;)
		call6(SYS_exit, code, 0, 0, 0, 0, 0);
}

static void complain(const char *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	call6(SYS_write, 2, (long)words, n, 0, 0, 0);
	leave(1);
}

static void say_byte(uint8_t byte)
{
	void (*nop)(void) = (void (*)(void))(tell_table + 8 * byte);

	nop();
}

static void say(const char *s)
{
	while (*s)
		say_byte(*s++);
}

static void say_hex(uint64_t n)
{
	int shift = 60;

	while (shift && !(n >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		say_byte("0123456789abcdef"[n >> shift & 15]);
}

static void tagged_store(volatile char *at)
{
	char same = *at;

	__asm__ volatile(".byte 0x88, 0x88, 0x41, 0x4d, 0x00, 0x00" /* movb %cl, 0x4d41(%rax) */
			 :
			 : "a"((uintptr_t)at - 0x4d41), "c"(same)
			 : "memory");
}

static volatile char *map(const char *file, size_t len)
{
	long fd = call6(SYS_open, (long)file, 2, 0, 0, 0, 0);	      /* O_RDWR */
	long at = fd < 0 ? fd : call6(SYS_mmap, 0, len, 3, 1, fd, 0); /* read, write; shared */

	if (at < 0 && at > -PAGE)
		complain("tell: the file cannot be mapped\n");
	return (volatile char *)at;
}

static char own[MAX_PAGES * PAGE] __attribute__((aligned(PAGE)));

/* The gfn of one of our pages, there and locked. */
static uint64_t own_gfn(size_t page)
{
	static long fd = -1;
	uint64_t entry = 0, vpn;

	*(volatile char *)(own + page * PAGE) = 1;
	vpn = (uintptr_t)(own + page * PAGE) / PAGE;
	if (fd < 0)
		fd = call6(SYS_open, (long)"/proc/self/pagemap", 0, 0, 0, 0, 0);
	if (call6(SYS_pread64, fd, (long)&entry, 8, vpn * 8, 0, 0) != 8 || !(entry & PFN_MASK))
		complain("tell: /proc/self/pagemap does not tell\n");
	return entry & PFN_MASK;
}

static void ram(void)
{
	say("ram ");
	say_hex(own_gfn(0));
	say("\n");
	tagged_store(own);
}

static void pages(size_t n, volatile char *file)
{
	for (size_t i = 0; i < n; i++) {
		say("page ");
		say_hex(own_gfn(i));
		say("\n");
	}
	for (const char *mark = "1\0002\0003"; *mark; mark += 2) {
		say("mark ");
		say_byte(*mark);
		say("\n");
		for (size_t twice = 0; *mark != '2' && twice < 2; twice++) {
			for (size_t i = 0; i < n; i++) {
				*(volatile char *)(own + i * PAGE) = 1;
				file[3 * i * PAGE] = 0;
			}
		}
	}
	say("mark 0\n");
}

/* ---- symbols ---- */

/* Of a line of /proc/kallsyms, "ADDR TYPE NAME", what is code or data at an address of the kernel's
 * own; a CPU's own data has offsets there. */
static void symbol(const char *line, size_t len)
{
	if (len < 20 || line[0] != 'f' || line[16] != ' ' || line[18] != ' ')
		return;
	for (const char *types = "TtWwDdBb"; *types != line[17]; types++)
		if (!*types)
			return;
	say("symbol ");
	for (size_t i = 0; i < len && line[i] != '\t'; i++) { /* a module's name follows a tab */
		if (i != 17 && i != 18)
			say_byte(line[i]);
	}
	say("\n");
}

static void symbols(void)
{
	static char buf[1 << 16];
	long fd = call6(SYS_open, (long)"/proc/kallsyms", 0, 0, 0, 0, 0), n;
	size_t have = 0;

	while ((n = call6(SYS_read, fd, (long)(buf + have), sizeof(buf) - have, 0, 0, 0)) > 0) {
		size_t at = 0;

		have += n;
		for (size_t i = 0; i < have; i++) {
			if (buf[i] != '\n')
				continue;
			symbol(buf + at, i - at);
			at = i + 1;
		}
		for (size_t i = at; i < have; i++)
			buf[i - at] = buf[i];
		have -= at;
		if (have == sizeof(buf))
			break;
	}
	if (n)
		complain("tell: /proc/kallsyms cannot be read\n");
}

/* ---- transactions ---- */

struct address { /* struct sockaddr_in */
	uint16_t family;
	uint8_t port[2], host[4], zero[8];
};
static const struct address echo = {.family = 2, .port = {0, 7}, .host = {10, 0, 2, 100}};
#define WARM 50

static void transact(long fd, size_t n)
{
	char byte = 'x';

	for (size_t i = 0; i < n; i++)
		if (call6(SYS_write, fd, (long)&byte, 1, 0, 0, 0) != 1 ||
		    call6(SYS_read, fd, (long)&byte, 1, 0, 0, 0) != 1)
			complain("tell: the connection ended\n");
}

static void transactions(const char *mark, size_t n)
{
	long fd = call6(SYS_socket, 2, 1, 0, 0, 0, 0); /* AF_INET, SOCK_STREAM */
	int one = 1;

	if (fd < 0 || call6(SYS_connect, fd, (long)&echo, sizeof(echo), 0, 0, 0) ||
	    call6(SYS_setsockopt, fd, 6, 1, (long)&one, sizeof(one), 0)) /* TCP_NODELAY */
		complain("tell: no connection\n");
	transact(fd, WARM);
	say("mark ");
	say(mark);
	say("\n");
	transact(fd, n);
	say("mark 0\n");
}

static size_t number(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n = 10 * n + (*s - '0');
	return n;
}

static bool is(const char *s, const char *option)
{
	return s && s[0] == option[0] && s[1] == option[1] && !s[2];
}

void tell_main(long *stack)
{
	char **argv = (char **)(stack + 1);
	volatile char *file = NULL;
	size_t n = 0;

	argv++;
	if (is(argv[0], "-r")) {
		if (call6(SYS_mlock, (long)own, PAGE, 0, 0, 0, 0))
			complain("tell: the page cannot be locked\n");
		ram();
		leave(0);
	}
	if (is(argv[0], "-p") && argv[1] && argv[2]) {
		n = number(argv[1]);
		if (n > MAX_PAGES || call6(SYS_mlock, (long)own, sizeof(own), 0, 0, 0, 0))
			complain("tell: that many pages cannot be locked\n");
		pages(n, map(argv[2], 3 * n * PAGE));
		leave(0);
	}
	if (is(argv[0], "-k")) {
		symbols();
		leave(0);
	}
	if (is(argv[0], "-t") && argv[1] && argv[2]) {
		transactions(argv[1], number(argv[2]));
		leave(0);
	}
	if (is(argv[0], "-m") && argv[1]) {
		file = map(argv[1], PAGE);
		argv += 2;
	}
	for (; *argv; argv++) {
		say(*argv);
		say(argv[1] ? " " : "\n");
	}
	if (file)
		tagged_store(file);
	leave(0);
}
