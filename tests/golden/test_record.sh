#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# `kvmsim record`: what it refuses, and, where there is a /dev/kvm, what it plays and leaves behind.
#   test_record.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
workloads=$(dirname "$0")/../../workloads
programs=$(dirname "$0")/../kernel/cases
example=$workloads/pagelist-example.ini

bad 'no recorder' 2 record
bad 'no such recorder' 2 record floppy
ok 'help of all' run 0 record --help
ok 'help of all: names them' says '^kvm: ' out
ok 'help of one' run 0 record kvm --help
bad 'no input' 2 record kvm
bad 'two inputs' 2 record kvm --scenario "$example" "$trace"
bad 'unknown option' 2 record kvm --fast "$trace"
bad 'value missing' 2 record kvm "$trace" --ring
bad 'protocol' 2 record kvm --protocol put "$trace"
bad 'chunk not of words' 2 record kvm --protocol manual --chunk 100 "$trace"
bad 'chunk without manual' 2 record kvm --chunk 64 "$trace"
bad 'ring no power of two' 2 record kvm --protocol ring --ring 1000 "$trace"
bad 'ring without ring' 2 record kvm --ring 1024 "$trace"
bad 'guest PTEs' 2 record kvm --guest-pte 1g "$trace"
bad 'absent and warm' 2 record kvm --absent --warm "$trace"
bad 'no such input' 3 record kvm "$dir/none.kvt"
bad 'program and trace' 2 record kvm --program "$dir/a.ops" "$trace"
bad 'pages without a program' 2 record kvm --slot-pages 64 "$trace"
bad 'too many pages' 2 record kvm --program "$dir/a.ops" --slot-pages 16385
bad 'no such program' 3 record kvm --program "$dir/none.ops"
printf 'case a\nvm\nsetup\nrun r\n' >"$dir/a.ops"
bad 'a program without its end' 3 record kvm --program "$dir/a.ops"
ok 'a program without its end: which line' says 'a.ops:4' err
bad 'no such slot' 2 record kvm --slot rom "$trace"

if run 0 record kvm --offer; then
	ok 'offer: what it is' says '^API version: *12$' out
	ok 'a trace is played' run 0 record kvm --json -o "$dir/played.kvt" --scenario "$example"
	cp "$dir/out" "$dir/json"
	ok 'what was played is there' [ -s "$dir/played.kvt" ]
	# The rounds of the file: five pages, 64, seven, one.
	grep -o '"nr_dirty": [0-9]*' "$dir/json" | grep -o '[0-9]*$' | tr '\n' ' ' >"$dir/out"
	ok 'pages by round' says '^0 5 64 7 1 $' out
	grep -o '"pages": "[^"]*"' "$dir/json" >"$dir/out"
	ok 'and which' says '"1 5 7-9"' out
	ok 'what was played can be replayed' run 0 replay "$dir/played.kvt" --dirty mask \
		--profile unit --json
	grep -o '"nr_dirty": [0-9]*' "$dir/out" | grep -o '[0-9]*$' | tr '\n' ' ' >"$dir/err"
	ok 'the model has the same numbers' says '5 64 7 1 $' err
	ok 'rows of evidence' run 0 record kvm --csv --series s --source 'a, b' \
		--scenario "$example"
	ok 'its columns' says '^topic,series,metric,unit,setup,x_name,x,policy,value' out
	ok 'its row' says \
		'^dirty_logging,s,GET_DIRTY_LOG ioctl,tsc_cycles,.*npages=4096,nr_dirty,64,mask,' out
	ok 'a table' run 0 record kvm "$dir/played.kvt" --protocol manual --stats
	ok 'nothing is wrong' says 'had to be reported none were not' out
	# What cannot be played at CPL3: U_limit reads the supervisor's pages.
	ok "the supervisor's pages" run 3 record kvm --program "$programs/U_limit.ops" \
		--slot-pages 16384
	ok "the supervisor's pages: are told" says 'supervisor' err
	# A guest that takes long, and a signal.
	sed -e 's/^rounds = .*/rounds = 100000/' "$workloads/framebuffer.ini" >"$dir/long.ini"
	"$kvmsim" record kvm -o "$dir/long.kvt" --scenario "$dir/long.ini" >"$dir/out" \
		2>"$dir/err" &
	pid=$!
	until ls "$dir"/long.kvt.*.tmp >/dev/null 2>&1 || ! kill -0 $pid 2>/dev/null; do
		sleep 0.1
	done
	sleep 1
	kill -INT $pid
	wait $pid
	ok 'a signal ends it' [ $? -eq 130 ]
	find "$dir" -name 'long.kvt*' >"$dir/out"
	ok 'a signal leaves nothing' [ ! -s "$dir/out" ]
else
	ok 'without a KVM: exit 3, one line' one_line
	echo "record: playing on /dev/kvm: skipped: $(cat "$dir/err" "$dir/out" | head -n 1)"
	skipped=$((skipped + 1))
fi

# What KVM's statistics count in each phase of a program is what the model counts. The host may move
# or compact its memory at any time, and then KVM unmaps pages that nobody named: three tries.
as_counted() { # PROGRAM PAGES GUEST-PTE
	for try in 1 2 3; do
		"$kvmsim" record kvm --program "$programs/$1.ops" --slot-pages "$2" \
			--guest-pte "$3" >"$dir/program.csv" 2>"$dir/err" || return
		run 0 validate --matrix "$dir/program.csv" --programs "$programs" && return
	done
	return 1
}
if [ -w /dev/kvm ] && [ -d /sys/module/kvm_pvm ]; then
	for case in U_flood,1200,4k U_large,1200,2m U_remap,1200,4k U_2vcpus,1200,4k \
		U_zap,1200,4k V_slots,100,2m V_mixed,100,2m V_2vcpus,100,2m K_dirty,1100,4k \
		K_limit,16384,4k K_devices,100,4k; do
		pte=${case##*,} pages=${case#*,}
		ok "counted: $case" as_counted "${case%%,*}" "${pages%,*}" "$pte"
		ok "counted: $case: equal" says '[1-9][0-9]* rows equal, 0 different' out
	done
else
	echo "record: programs on /dev/kvm: skipped: no kvm_pvm here, of which the model is known to count the same"
	skipped=$((skipped + 1))
fi
the_end
