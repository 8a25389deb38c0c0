/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recordings that the program has with it. */
	.section .rodata
	.global recorded_locks
recorded_locks:
	.incbin "traces/recorded/dbench-locks.csv"
	.global recorded_locks_end
recorded_locks_end:
	.byte 0

	.section .note.GNU-stack, "", @progbits
