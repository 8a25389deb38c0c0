#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Replays a recorded trace N times: one JSON, byte for byte.
#   repeat.sh BUILDDIR N
set -u
kvmsim=$1/kvmsim
n=$2
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT INT TERM
passed=0 failed=0

replay() {
	"$kvmsim" replay traces/recorded/x11perf.kvt --dirty hybrid --profile unit --interval 60000000 \
		--shadow-pages 200 --json
}

replay >"$dir/first" || exit 1
while [ $((passed + failed)) -lt "$n" ]; do
	if replay | cmp -s - "$dir/first"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
done
echo "repeat: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
