#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs every test program and script of the given build folders; prints one closing line.
#   tests/run.sh BUILDDIR...
set -u
cd "$(dirname "$0")/.." || exit 2
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT INT TERM
passed=0 failed=0 skipped=0

# A test program's last line is "NAME: N passed, N failed, N skipped"; without one it crashed.
one() {
	timeout 300 "$@" >"$log" 2>&1
	rc=$?
	line=$(grep -E '^[A-Za-z0-9_./ -]+: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
	if [ -z "$line" ]; then
		cat "$log"
		echo "FAILED $*: ended with status $rc and no closing line"
		failed=$((failed + 1))
		return
	fi
	set -- "$rc" $(echo "${line##*: }" | tr -cd '0-9 ')
	[ "$1" -eq 0 ] && [ "$3" -eq 0 ] || cat "$log"
	[ "$1" -ne 0 ] && [ "$3" -eq 0 ] && set -- "$1" "$2" 1 "$4"
	grep ': skipped: ' "$log"
	passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
}

for dir in "$@"; do
	for t in "$dir"/test_*; do
		case $t in *.d | *.o) continue ;; esac
		[ -x "$t" ] && one "$t"
	done
	for s in tests/golden/test_*.sh; do
		[ -f "$s" ] && one sh "$s" "$dir"
	done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
