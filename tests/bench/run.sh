#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs every bench of a build folder and prints its lines. Fails when one does.
#   tests/bench/run.sh BUILDDIR
set -u
cd "$(dirname "$0")/../.." || exit 2
[ $# -eq 1 ] || { echo "usage: $0 BUILDDIR" >&2; exit 2; }
ran=0 failed=0

for b in "$1"/bench_*; do
	[ -x "$b" ] && [ -f "$b" ] || continue
	echo "== ${b##*/}"
	"$b" || { echo "FAILED $b: status $?"; failed=$((failed + 1)); }
	ran=$((ran + 1))
done
echo "$ran benches run, $failed failed"
[ "$failed" -eq 0 ] && [ "$ran" -gt 0 ]
