#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What `replay` exports of a run, held against what it reports of the same one.
#   test_timeline.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
here=$(dirname "$0")

fact() { # NAME FIELD: of the time line; 0 where nothing has that name
	sed -n "s|^$1 \([0-9 ]*\)$|\1|p" "$dir/facts" | tr ' ' '\n' | sed -n "$2p" | grep . || echo 0
}
told() { jq -r "$1" "$dir/report"; }
same() { [ "$1" = "$2" ] || { echo "time line $1, report $2" >>"$dir/err" && false; }; }
both() { # NAME OF-THE-TIME-LINE FIELD JQ
	ok "$mode: $1" same "$(fact "$2" "$3")" "$(told "$4")"
}

# The unit profile's unit is a cycle of 1 ns. Four vCPUs, beside whom the log is collected.
printf '[scenario]\nworkload = migration\nslots = a:0:8000\nvcpus = 4\nrounds = 5\n' >"$dir/four.ini"
stalls='.operations[] | select(.stalls > 0)'
for mode in '--dirty mask' '--dirty manual,chunk=64 --running --kernel 6.1-tdp' '--dirty ring --kernel 6.1-tdp'; do
	: >"$dir/out"
	: >"$dir/err"
	# shellcheck disable=SC2086 # options
	"$kvmsim" replay --scenario "$dir/four.ini" $mode --profile unit --json >"$dir/report" 2>"$dir/err"
	# shellcheck disable=SC2086
	ok "$mode" run 0 replay --scenario "$dir/four.ini" $mode --profile unit --json \
		--perfetto "$dir/line.json" --folded "$dir/folded"
	ok "$mode: the run is the same" cmp -s "$dir/report" "$dir/out"
	python3 "$here/timeline.py" "$dir/line.json" \
		"$(told '"\((.setup / 1000 | floor)).\(.setup % 1000 + 1000 | tostring | .[1:])"')" >"$dir/facts"
	ok "$mode: a time line" [ $? -eq 0 ]
	cp "$dir/facts" "$dir/out"
	: >"$dir/err"
	vcpus='vCPUs: what they do' locks='locks: waits and holds'
	both 'page faults' "$vcpus/kvm_page_fault" 1 .ledger.counts.page_fault.n
	both 'calls of GET' "the VMM's ioctls/GET_DIRTY_LOG" 1 \
		'[.operations[] | select(.operation == "get").calls] | add // 0'
	both 'their time' "the VMM's ioctls/GET_DIRTY_LOG" 2 \
		'[.operations[] | select(.operation == "get").total] | add // 0'
	both 'the longest CLEAR' "the VMM's ioctls/CLEAR_DIRTY_LOG" 3 \
		'[.operations[] | select(.operation == "clear").longest] | add // 0'
	both 'holds of mmu_lock' "$locks/holds mmu_lock" 1 .mmu_lock.acquired
	both 'the longest' "$locks/holds mmu_lock" 3 .mmu_lock.longest_hold
	both 'holds for reading' "$locks/holds mmu_lock for reading" 1 .mmu_lock_read.acquired
	both 'waits for mmu_lock' "$locks/waits for mmu_lock" 1 .mmu_lock.contended
	both 'their time' "$locks/waits for mmu_lock" 2 .mmu_lock.wait
	both 'waits to read' "$locks/waits for mmu_lock for reading" 2 .mmu_lock_read.wait
	rounds=$(grep -c '^collections of the dirty log/' "$dir/facts")
	ok "$mode: rounds" same "$rounds" "$(told '.collections | length')"
	ok "$mode: stalls" same "$(awk '/^stalls, and / { n += $(NF - 2) } END { print n + 0 }' "$dir/facts")" \
		"$(told "[$stalls | select(.operation != \"own\").stalls] | add // 0")"

	# the ledger, folded
	cp "$dir/folded" "$dir/out"
	ok "$mode: folded: the ledger's sum" same "$(awk '{ s += $NF } END { printf "%d", s }' "$dir/folded")" \
		"$(told .ledger.sum)"
	ok "$mode: folded: what faults took" same \
		"$(awk -F';' '$2 == "page_fault" && $3 !~ /^wait/ { n = split($3, w, " "); s += w[n] } END { printf "%d", s }' "$dir/folded")" \
		"$(told .ledger.activities.page_fault)"
	ok "$mode: folded: three frames and a number" [ -z "$(grep -vE '^[^;]+;[^;]+;[^;]+ [0-9]+$' "$dir/folded")" ]
done

# A file is there whole or not at all.
bad 'no such folder' 4 replay --scenario "$dir/four.ini" --dirty mask --profile unit --perfetto "$dir/none/x.json"
printf '[scenario]\nworkload = migration\nslots = a:0:8000\nvcpus = 4\nrounds = 0\n' >"$dir/none.ini"
run 3 replay --scenario "$dir/none.ini" --dirty mask --profile unit --folded "$dir/left" --perfetto "$dir/left.json"
ok 'nothing is left of a run that failed' [ ! -e "$dir/left" ]
ok 'nor of its time line' [ ! -e "$dir/left.json" ]
the_end
