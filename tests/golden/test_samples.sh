#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The facts of each sample: kvmsim info --json against NAME.expect.json.
#   tests/golden/test_samples.sh BUILDDIR [SAMPLE.txt]...
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
here=$(dirname "$0")
shift

if ! command -v python3 >/dev/null; then
	echo "samples: skipped: no python3, which compares"
	skipped=1
	the_end
	exit
fi
facts() { python3 "$here/facts.py" "$@"; }
refused() { grep -q '"refuse": true' "$1"; }
# The facts are equal; what differs is the run's output then.
equal() { # EXPECT
	cp "$dir/out" "$dir/got"
	facts check "$1" "$dir/got" >"$dir/out" 2>&1
}

[ $# -gt 0 ] || set -- "$here"/samples/*.txt
for sample; do
	name=$(basename "$sample" .txt)
	expect=${sample%.txt}.expect.json
	code=0
	refused "$expect" && code=3
	# shellcheck disable=SC2046 # options
	ok "$name: exit" run $code info --json $(facts given "$expect") "$sample"
	ok "$name: facts" equal "$expect"
	cp "$dir/got" "$dir/file"
	# from a pipe it is the same, but for the name
	# shellcheck disable=SC2002,SC2046 # a pipe on purpose
	cat "$sample" | "$kvmsim" info --json $(facts given "$expect") - >"$dir/pipe" 2>"$dir/err"
	ok "$name: the same from a pipe" sh -c 'sed 1,2d "$1" >"$1.1"; sed 1,2d "$2" | cmp -s "$1.1" -' - \
		"$dir/file" "$dir/pipe"
	ok "$name: for people" run $code info "$sample"
	if [ $code = 3 ]; then
		ok "$name: why, in one line" test "$(wc -l <"$dir/err")" -eq 1
		ok "$name: no result" test ! -s "$dir/out"
	fi
done
[ "$passed" -gt 0 ] || { echo "samples: no sample found" && failed=1; }
the_end
