#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The model against what kernels did when they were recorded (tests/kernel/recorded), on sizes that
# the matrix does not have.
#   tests/golden/test_kernel_recorded.sh BUILDDIR
set -u
kvmsim=$1/kvmsim
recorded=$(dirname "$0")/../kernel/recorded
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT INT TERM
passed=0 failed=0

# check NAME WANTED-STATUS WANTED-TEXT FILE
check() {
	"$kvmsim" validate --matrix "$4" >"$dir/out" 2>&1
	got=$?
	if [ "$got" -eq "$2" ] && grep -qF -e "$3" "$dir/out"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "kernel_recorded: $1: status $got, wanted $2 and '$3':"
		tail -n 40 "$dir/out"
	fi
}

for file in "$recorded"/*.csv; do
	name=${file##*/}
	check "$name" 0 ' 0 different, 0 not modelled' "$file"
	# One harvest that found a page more must be told.
	awk -F, -v OFS=, '$10 == "res:ndirty" && $11 > 0 && !done { $11++; done = 1 } { print }' \
		"$file" >"$dir/altered.csv"
	check "$name, altered" 1 ', 1 different' "$dir/altered.csv"
done

echo "kernel_recorded: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
