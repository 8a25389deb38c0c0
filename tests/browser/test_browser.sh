#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What programs of others understand of the files that kvmsim exports: speedscope, in Chromium, of time
# lines and of folded stacks; flamegraph.pl of folded stacks. Held against what kvmsim reports of the same
# run, or what another program makes of the same trace.
#   test_browser.sh BUILDDIR
# `scripts/setup.sh browser` installs the programs; what is not there is skipped.
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/../golden/lib.sh"
here=$(dirname "$0")
page=${KVMSIM_SPEEDSCOPE:-$here/../../build/browser/package/dist/release/index.html}
flamegraph=/usr/share/perl5/Devel/NYTProf/flamegraph.pl

left_out() { # WHY
	echo "$name_of_test: skipped: $1"
	skipped=$((skipped + 1))
}
same() { [ "$1" = "$2" ] || { echo "there $1, kvmsim $2" >>"$dir/err" && false; }; }
told() { jq -r "$1" "$dir/report"; }
# NAME: number and total of all its spans, whatever their track; nothing else may lie around them
seen() {
	awk -v name="$1" 'BEGIN { FS = "|" } /^span / { k = $2; if (sub(/ [0-9]+ [0-9]+$/, "", k) && k == name) {
	n = split($2, w, " "); a += w[n - 1]; b += w[n] } } END { printf "%d %d", a, b }' "$dir/facts"
}
tracks() { grep -c "^track $1" "$dir/facts"; }
nested() { grep '^span ' "$dir/facts" | grep -c ';'; }

printf '[scenario]\nworkload = migration\nslots = a:0:8000\nvcpus = 4\nrounds = 5\n' >"$dir/four.ini"
set -- replay --scenario "$dir/four.ini" --dirty manual,chunk=64 --running --kernel 6.1-tdp --profile unit
run 0 "$@" --json --perfetto "$dir/line.json" --folded "$dir/folded"
ok 'a run' [ $? -eq 0 ]
cp "$dir/out" "$dir/report"

if ! command -v chromium >/dev/null; then
	left_out 'no chromium: scripts/setup.sh browser'
elif ! [ -f "$page" ]; then
	left_out 'no speedscope: scripts/setup.sh browser'
else
	view() { timeout 120 python3 "$here/speedscope.py" "$page" "$1" "$2" >"$dir/facts" 2>"$dir/err"; }

	ok 'a time line of a run: speedscope opens it' view "$dir/line.json" "$dir/line.png"
	cp "$dir/facts" "$dir/out"
	ok 'tracks of vCPUs' same "$(tracks 'vCPUs: what they do')" "$(told .vcpus)"
	ok 'tracks of stalls' same "$(tracks 'stalls, and whom they were for')" "$(told .vcpus)"
	ok 'no span lies within another' same "$(nested)" 0
	ok 'faults' same "$(seen 'exit npf' | cut -d' ' -f1)" "$(told .ledger.counts.page_fault.n)"
	ok 'calls of GET, and their time' same "$(seen GET_DIRTY_LOG)" \
		"$(told '.operations[] | select(.operation == "get") | "\(.calls) \(.total)"')"
	ok 'the time of CLEAR' same "$(seen CLEAR_DIRTY_LOG | cut -d' ' -f2)" \
		"$(told '.operations[] | select(.operation == "clear").total')"
	ok 'rounds' same "$(grep -c '^span collections.*|round' "$dir/facts")" \
		"$(told '.collections | length')"

	ok 'folded stacks of a run: speedscope opens them' view "$dir/folded" "$dir/folded.png"
	cp "$dir/facts" "$dir/out"
	ok 'stacks of three frames' same "$(grep -c '^span [^;]*;[^;]*;[^;]*$' "$dir/facts")" "$(wc -l <"$dir/folded")"
	ok 'all that passed' same "$(awk '/^span [^;]*$/ { s += $NF } END { printf "%d", s }' "$dir/facts")" \
		"$(told .ledger.sum)"
	ok 'in the guest' same "$(awk '/^span [^;]*;guest [^;]*$/ && !/[|]vmm;/ { s += $NF } END { printf "%d", s }' "$dir/facts")" \
		"$(told .ledger.activities.guest)"

	smp=$here/../../traces/recorded/dat-smp-v7.dat
	ok 'a time line of a host' run 0 export "$smp" --perfetto "$dir/host.json"
	ok 'a table of it' run 0 export "$smp" --csv
	python3 "$here/host_facts.py" "$dir/out" >"$dir/wanted"
	ok 'speedscope opens it' view "$dir/host.json" "$dir/host.png"
	cp "$dir/facts" "$dir/out"
	ok 'no span lies within another, either' same "$(nested)" 0
	sed -n 's/^span vCPUs: what they do .*(tid \([0-9]*\))|guest \([0-9 ]*\)$/\1 \2/p' "$dir/facts" |
		sort -n >"$dir/seen"
	diff "$dir/wanted" "$dir/seen" >>"$dir/err"
	ok 'each thread in the guest: how often, how long' [ $? -eq 0 ]
	ok 'some threads are' [ -s "$dir/wanted" ]
fi

if ! [ -f "$flamegraph" ]; then
	left_out 'no flamegraph.pl (libdevel-nytprof-perl): scripts/setup.sh browser'
else
	perl "$flamegraph" "$dir/folded" >"$dir/out" 2>"$dir/err"
	ok 'flamegraph.pl draws folded stacks' [ $? -eq 0 ]
	ok 'without a word' quiet
	ok 'as a picture in XML' python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$dir/out"
	samples() { sed -n "s|.*<title>$1 (\([0-9,]*\) samples.*|\1|p" "$dir/out" | tr -d ,; }
	ok 'of all that passed' same "$(samples all)" "$(told .ledger.sum)"
	ok 'a frame for each vCPU' same "$(samples 'vcpu[0-9]*' | wc -l)" "$(told .vcpus)"
fi
the_end
