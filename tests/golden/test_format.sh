#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# traces/FORMAT.md says all that a reader must know: one that was written from it alone (kvt.py)
# finds in a trace what the recorder wrote, op by op, and what kvmsim info counts.
#   test_format.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
here=$(dirname "$0")
: >"$dir/out"
: >"$dir/err"

if ! python3 -c 'import ctypes, zlib; ctypes.CDLL("libzstd.so.1")' 2>/dev/null; then
	echo "format: reader: skipped: no python3 with ctypes, or no libzstd.so.1"
	skipped=$((skipped + 1))
	the_end
	exit
fi
kvt() { # TRACE
	python3 "$here/kvt.py" "$1" >"$dir/ops" 2>"$dir/err"
}

# ---- the probe's own lines: stores (S, V) and marks (M), with their times ----
text=$here/guest-probe-excerpt.tr
ok 'import' run 0 import -o "$dir/a.kvt" "$text"
ok 'read' kvt "$dir/a.kvt"
# The clock starts at the first mark and stands still between a mark 0 and the next one. Epochs
# (kind 11) are not in the text.
awk '$3 == "M" { if (off == "" || ended) off = $1 - now
		 now = $1 - off; ended = !$4; print now, "mark", $4; next }
	{ now = $1 - off; print now, $3, $4 }' "$text" >"$dir/want"
awk '$3 == 12 { print $2, "mark", $6 } $3 == 2 { print $2, int($4 / 2) % 2 ? "V" : "S", substr($6, 1, length($6) - 3) }
	$3 != 2 && $3 != 11 && $3 != 12 { print "unexpected kind", $3 }' "$dir/ops" >"$dir/got"
diff "$dir/want" "$dir/got" >"$dir/out"
ok 'every op of the text' [ ! -s "$dir/out" ]

# ---- whole recordings: the number of ops, their kinds, the instructions ----
counts() { # of $dir/ops, as info prints them
	awk '{ n++; kind[$3]++; insns = $2 }
		END { print n, insns, kind[2], kind[11], kind[12] }' "$dir/ops"
}
for t in x11perf find; do
	file=$here/../../traces/recorded/$t.kvt
	ok "$t: read" kvt "$file"
	counts >"$dir/got"
	"$kvmsim" info "$file" | tr -d , | awk '
		/^Ops / { ops = $2 } /^Instructions / { insns = $2 } /^write / { w = $2 }
		/^epoch / { e = $2 } /^mark / { m = $2 } END { print ops, insns, w, e, m }' >"$dir/want"
	diff "$dir/want" "$dir/got" >"$dir/out"
	ok "$t: as kvmsim info counts" [ ! -s "$dir/out" ]
done

the_end
