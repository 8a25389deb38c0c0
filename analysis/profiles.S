/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of the built-in profiles, so that the program runs from any folder. */
#define PROFILE(symbol, name, path)                                                                \
	.global profile_text_##symbol; profile_text_##symbol: .incbin path;                        \
	.global profile_text_##symbol##_end; profile_text_##symbol##_end: .byte 0;

	.section .rodata
#include "analysis/profiles.def"

	.section .note.GNU-stack, "", @progbits
