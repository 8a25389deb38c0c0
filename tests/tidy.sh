#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# clang-tidy over C files, by the rules of .clang-tidy.
#   tests/tidy.sh [FILE.c]...      without a file: every one that git knows
# Exit 0: nothing found; 1: findings, printed; 2: it could not run.
set -u
cd "$(dirname "$0")/.." || exit 2
command -v clang-tidy >/dev/null || {
	echo "tidy: no clang-tidy; Debian has it in the package of that name" >&2
	exit 2
}

# The build's own flags: language, packages, one of the plugin's two interfaces.
packages=$(sed -n 's/^ *pkg = //p' build.ninja objects.ninja ./*/objects.ninja | tr ' ' '\n' | sort -u)
# shellcheck disable=SC2086 # a list of words
TIDY_FLAGS="-std=gnu11 -D_GNU_SOURCE -DKVMSIM_QEMU_API=1 -I. $(pkg-config --cflags $packages)" || exit 2
# Nearly all of the time is the analyser's, of paths through a few large functions. A third of its
# default of nodes per function finds the same in this code and takes less than half as long.
TIDY_FLAGS="$TIDY_FLAGS -Xclang -analyzer-config -Xclang max-nodes=75000"
TIDY_SECONDS=120
export TIDY_FLAGS TIDY_SECONDS

# One process per file: one that hangs or crashes is told by name, and the analyser's knowledge of a
# va_list does not survive a second file. xargs ends with 123 when any of them failed.
# shellcheck disable=SC2016 # the inner shell expands
{ if [ $# -gt 0 ]; then printf '%s\0' "$@"; else git ls-files -z '*.c'; fi; } |
	xargs -0 -r -P "$(nproc)" -n 1 sh -c '
		[ -f "$1" ] || exit 0
		found=$(timeout "$TIDY_SECONDS" clang-tidy --quiet "$1" -- $TIDY_FLAGS 2>/dev/null)
		rc=$?
		[ "$rc" -eq 0 ] || printf "tidy: %s: status %s\n%s\n" "$1" "$rc" "$found" >&2
		[ "$rc" -eq 0 ]' one-file
rc=$?
[ "$rc" -eq 0 ] && exit 0
[ "$rc" -eq 123 ] && exit 1
exit 2
