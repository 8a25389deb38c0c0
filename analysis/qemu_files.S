/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of `record qemu`, so that the program runs from any folder. BUILT: the build's folder. */
#undef linux
#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)
#define QEMU_FILE(symbol, name, path)                                                              \
	.global qemu_file_##symbol; qemu_file_##symbol: .incbin TEXT(path);                        \
	.global qemu_file_##symbol##_end; qemu_file_##symbol##_end: .byte 0;

	.section .rodata
#include "analysis/qemu_files.def"

	.section .note.GNU-stack, "", @progbits
