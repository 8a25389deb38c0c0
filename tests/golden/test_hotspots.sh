#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# hotspots and export, of a host's trace written by hand: host-trace.txt. Its values are worked out
# below from its lines.
#   test_hotspots.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
here=$(dirname "$0")
text=$here/host-trace.txt

is() { # NAME WANTED JQ
	got=$(jq -c "$3" "$dir/report" 2>>"$dir/err")
	ok "$1: $got, $2 wanted" [ "$got" = "$2" ]
}
line() { ok "$1" grep -qxF -e "$1" "$dir/facts"; }

ok 'hotspots' run 0 hotspots "$text" --json
cp "$dir/out" "$dir/report"
ok 'nothing else is said' quiet
is 'faults' 4 .faults
# vCPU 1 faults at 27, 37 and 51 us: 10 and 14 in between
is 'the hottest page' '[1,"0x20000",3,3,0,0,0,12000]' \
	'.hotspots[0] | [.vcpu, .gfn, .faults, .reads, .writes, .fetches, .spte_changes, .period_ns]'
is 'the other one' '[0,"0x10000",1,0,1,0,1,null]' \
	'.hotspots[1] | [.vcpu, .gfn, .faults, .reads, .writes, .fetches, .spte_changes, .period_ns]'
is 'the loop' '[[1],"0x20000","0x402000","0x181",3,100040027000,100040051000,false]' \
	'.loops[0] | [.vcpus, .gfn, .rip, .error_code, .faults, .first_ns, .last_ns, .cannot_tell]'
is 'no other' 1 .loops_found
# 100.000020 to 100.040020, reset at 100.030020
is 'the full ring' '["dirty ring full",101,0,40000000,99,"reaper",100030020000,1]' \
	'.stalls[0] | [.kind, .who.tid, .who.vcpu, .ns, .by.tid, .by.comm, .until_ns, .resets]'
# 100.050060 to 100.050260; the CPU lost events before, not within
is 'the halt' '["halted",1,200000,101,0,100050160000]' \
	'.stalls[1] | [.kind, .who.vcpu, .ns, .by.tid, .by.vcpu, .until_ns]'
is 'the lock' '["lock",99,"0xffff888100000100",80000,101]' \
	'.stalls[2] | [.kind, .who.tid, .lock, .ns, .by.tid]'
is 'its first taker' '["lock",101,20000,null,"not seen"]' \
	'.stalls[3] | [.kind, .who.tid, .ns, .by, .by_whom]'
is 'by kind' '[[1,40000000],[2,100000],[1,200000],[0,0],[0,0]]' \
	'.stalls_by_kind | [.["dirty ring full"], .lock, .halted, .preempted, .slept] | map([.stalls, .ns])'
is 'who held up' '[["dirty ring full",99,40000000],["halted",101,200000],["lock",101,80000],["lock",null,20000]]' \
	'.held_up_by | map([.kind, .by.tid, .ns])'
is 'lost' 19 .lost_events
is 'exits to user space' '[1,{"DIRTY_RING_FULL":1},false]' \
	'[.userspace_exits.exits, .userspace_exits.by_reason, .exit_storm]'
# 101: 100.000020 to 100.040020; 102: what a loss lies in; 99: 100.030020 to 100.050310
is 'gaps of threads' '[[101,40000000],[99,20290000],[102,null]]' '.thread_gaps | map([.who.tid, .ns])'

ok 'one range' run 0 hotspots "$text" --json --range ram=0x10000-0x10fff
cp "$dir/out" "$dir/report"
is 'only its pages' '["0x10000"]' '.hotspots | map(.gfn)'
is 'the others are counted' 3 .faults_outside

ok 'as text' run 0 hotspots "$text" --top 2
ok 'the loop is named' says '^No-progress loop: vCPU 1 faulted 3 times for gfn 0x20000 at rip 0x402000 with code 0x181 in 24.0 us, and no spte changed$' out
ok 'the ring, too' says '^Dirty-ring stall: vCPU 0 (CPU 0/KVM, tid 101) stood still 40.0 ms with a full ring, until reaper (tid 99) reset it after 30.0 ms$' out
ok 'as CSV' run 0 hotspots "$text" --csv
ok 'a row per page' [ "$(wc -l <"$dir/out")" -eq 3 ]
ok 'its fields' says '^1,0x20000,,3,3,0,0,0,0,0,12000,100040027000,100040051000,0$' out
ok 'from standard input' sh -c "'$kvmsim' hotspots - --json <'$text' | jq -e '.faults == 4' >/dev/null"

# Stores under dirty logging, whose sptes nobody recorded, look like loops from afar: none is named.
for i in 1 2 3; do
	for page in 5 6; do
		printf ' q-7 [000] d.... 1.0000%d%d: kvm_page_fault: vcpu 0 rip 0x4 address 0x000000000000%d000 error_code 0x182\n' $i $page $page
	done
done >"$dir/log.txt"
ok 'dirty logging' run 0 hotspots "$dir/log.txt"
ok 'it cannot be told' says '^Cannot tell: 2 series of faults' out
ok 'no loop is named' sh -c "! grep -q '^No-progress loop' '$dir/out'"

# A timer that came to a thread of no concern wakes a halted vCPU; then that thread does, twice; then a
# softirq. perf prints no flags: there it is the thread, as far as anybody can tell.
wakes() { # COLUMNS-OF-THE-WAKER...
	n=0
	for columns in "$@"; do
		n=$((n + 1))
		printf ' q-7 [000] d.... 1.00%d000: kvm_exit: vcpu 1 reason HLT rip 0x4 info1 0x0 info2 0x0 intr_info 0x0 error_code 0x0\n' $n
		printf '%s 1.00%d500: sched_waking: comm=q pid=7 prio=120 target_cpu=000\n' "$columns" $n
		printf ' q-7 [000] d.... 1.00%d600: kvm_entry: vcpu 1, rip 0x4\n' $n
	done
}
wakes ' loop-9 [002] dNh2.' ' loop-9 [002] dN.2.' ' loop-9 [002] d..1' ' loop-9 [002] d.s3.' >"$dir/wakes.txt"
ok 'who was only interrupted' run 0 hotspots "$dir/wakes.txt" --json
cp "$dir/out" "$dir/report"
is 'the interrupt, not the task' '[[null,"interrupt",2,9],[9,"known",2,null],[9,"known",2,null],[null,"softirq",2,9]]' \
	'.stalls | sort_by(.begin_ns) | map([.by.tid, .by_whom, .by_cpu, .interrupted.tid])'
is 'in sum' '[["known",2],["interrupt",1],["softirq",1]]' '.held_up_by | map([.by_whom, .stalls])'
ok 'in words' run 0 hotspots "$dir/wakes.txt"
ok 'the CPU it came to' says '^halted .* interrupt, on CPU 2 ' out
ok 'and all of them' says '^softirqs  *halted  *1 ' out
ok 'the same in a native trace' run 0 import "$dir/wakes.txt" -o "$dir/wakes.kvt"
ok 'its stalls' run 0 hotspots "$dir/wakes.kvt" --json
cp "$dir/out" "$dir/report"
is 'are the same' '["interrupt","known","known","softirq"]' '.stalls | sort_by(.begin_ns) | map(.by_whom)'
wakes ' loop 9 [002]' ' loop 9 [002]' >"$dir/wakes.txt"
ok 'without flags' run 0 hotspots "$dir/wakes.txt" --json
cp "$dir/out" "$dir/report"
is 'it is the task' '[9,9]' '.stalls | map(.by.tid)'
# A real one (trace-cmd report -l has the flags): timers woke it while the CPU idled.
ok 'a recording' run 0 hotspots "$(dirname "$trace")/dat-smp-v7.dat" --json
cp "$dir/out" "$dir/report"
is 'who woke' '[["interrupt",7],["known",1],["softirq",1],["known",1]]' \
	'[.held_up_by[] | select(.kind == "slept") | [.by_whom, .stalls]]'

# ---- the time line ----
ok 'a time line' run 0 export "$text" --perfetto "$dir/line.json"
python3 "$here/timeline.py" "$dir/line.json" >"$dir/facts" 2>"$dir/err"
ok 'it is one' [ $? -eq 0 ]
cp "$dir/facts" "$dir/out"
# vCPU 0: 0-10, 40.025-50.100, the end; vCPU 1: 30-36, 40-46, a loss in the third, 50.260 to the end
line 'vCPUs: what they do/guest 6 10237000 10075000'
line 'vCPUs: what they do/cannot tell 1 10000000 10000000'
line 'vCPUs: what they do/host EPT_VIOLATION 4 32000 14000'
line 'vCPUs: what they do/userspace DIRTY_RING_FULL 1 40000000 40000000'
line 'vCPUs: what they do/host KVM_RUN 1 5000 5000'
line 'vCPUs: what they do/host MSR_WRITE 1 300000 300000'
line 'vCPUs: what they do/halted HLT 1 200000 200000'
line 'vCPUs: what they do/kvm_page_fault 4'
line 'vCPUs: what they do/kvm_dirty_ring_reset 1'
line 'waits for locks/lock 2 100000 80000'
line 'stalls, and who ended them/dirty ring full 1 40000000 40000000'
line 'stalls, and who ended them/halted 1 200000 200000'
line 'events that are missing, by CPU/lost 12 events 1 10000000 10000000'
jq -c '.traceEvents[] | select(.ph == "X" and .name == "dirty ring full").args' "$dir/line.json" >"$dir/out"
ok 'who reset it' says '"by":"reaper","by_tid":99,"until_after_ns":30000000,"resets":1' out

# ---- folded: a thread's sum is the time from its first state to the end ----
ok 'folded' run 0 export "$text" --folded
ok 'vCPU 0: 50,400 us' [ "$(awk '/^vCPU 0 CPU 0.KVM tid 101;/ { s += $NF } END { print s }' "$dir/out")" = 50400000 ]
ok 'vCPU 1: 10,374 us' [ "$(awk '/^vCPU 1 CPU 1.KVM tid 102;/ { s += $NF } END { print s }' "$dir/out")" = 10374000 ]
ok 'its states' says '^vCPU 1 CPU 1/KVM tid 102;host;EPT_VIOLATION 22000$' out
ok 'what cannot be told' says '^vCPU 1 CPU 1/KVM tid 102;cannot tell 10000000$' out

# ---- CSV ----
ok 'CSV' run 0 export "$text" --csv
cp "$dir/out" "$dir/events.csv"
python3 - "$dir/events.csv" >"$dir/out" 2>"$dir/err" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
print(len(rows), {len(r) for r in rows} == {len(rows[0])})
e = [r for r in rows if r["event"] == "kvm_page_fault"][1]
print(e["time_ns"], e["cpu"], e["tid"], e["comm"], e["vcpu"], e["address"], e["error_code"], e["rip"])
print([(r["cpu"], r["lost"]) for r in rows if r["event"] == "(lost)"])
e = [r for r in rows if r["event"] == "sched_switch"][0]
print(e["prev_pid"], e["prev_state"], e["next_pid"], e["gfn"] == "")
END
ok 'rows' says '^32 True$' out
ok 'a fault' says '^100040027000 3 102 CPU 1/KVM 1 0x20000000 0x181 0x402000$' out
ok 'losses' says "^\[('4', '7'), ('3', '12')\]$" out
ok 'a switch' says '^102 S 0 True$' out

# ---- names with quotes and control characters (bytes that are no UTF-8: test_chrome.c) ----
printf '  a"b\\\\\033,c-101 [001] d.... 1.000000: kvm_entry: vcpu 0, rip 0x1\n  a"b\\\\\033,c-101 [001] d.... 1.000010: kvm_exit: vcpu 0 reason HLT rip 0x1 info1 0x0 info2 0x0 intr_info 0x0 error_code 0x0\n' >"$dir/odd.txt"
ok 'an odd name' run 0 export "$dir/odd.txt" --perfetto "$dir/odd.json"
ok 'is JSON' sh -c "python3 -m json.tool '$dir/odd.json' >/dev/null"
ok 'hotspots of it' sh -c "'$kvmsim' hotspots '$dir/odd.txt' --json | python3 -m json.tool >/dev/null"
ok 'no bytes of its own on a terminal' sh -c "! '$kvmsim' hotspots '$dir/odd.txt' | grep -q \"\$(printf '\033')\""

# ---- refusals ----
: >"$dir/empty"
bad 'nothing in it' 3 hotspots "$dir/empty"
bad 'nor to export' 3 export "$dir/empty" --csv
echo 'what a nice day' >"$dir/prose"
bad 'prose' 3 export "$dir/prose" --perfetto "$dir/none.json"
ok 'no file is left of it' [ ! -e "$dir/none.json" ]
printf ' x-1 [000] d.... 1.000000: sched_waking: comm=y pid=2 prio=120 target_cpu=000\n' >"$dir/others"
bad 'nothing of KVM' 3 hotspots "$dir/others"
bad 'no such file' 3 hotspots "$dir/nowhere"
# one line without an end
for verb in hotspots info 'export --csv' converge; do
	# shellcheck disable=SC2086
	bad "$verb of what has no end" 3 $verb /dev/zero
	ok 'it is no text' says '^kvmsim: /dev/zero: a line that is longer than 1 GiB: not text' err
done
bad 'a range that is none' 2 hotspots "$text" --range 5-4
bad 'nor this' 2 hotspots "$text" --range ram=-5-9
bad 'two forms' 2 export "$text" --csv --folded
bad 'no form' 2 export "$text"
bad 'no such folder' 4 export "$text" --perfetto "$dir/none/x.json"

# A pipe that nobody writes to: an interrupt ends the waiting. In scripts SIGINT is ignored; SIGTERM is the same.
mkfifo "$dir/fifo"
for verb in hotspots 'export --csv' converge 'replay --dirty mask --profile unit'; do
	# shellcheck disable=SC2086
	"$kvmsim" $verb "$dir/fifo" >"$dir/out" 2>"$dir/err" &
	pid=$!
	catching $pid
	kill -TERM $pid
	wait $pid
	ok "$verb: interrupted" [ $? -eq 130 ]
	ok "$verb: which is all it says" says '^kvmsim: interrupted$' err
	ok "$verb: in one line" one_line
done

# ---- a native trace without events ----
run 3 hotspots "$trace"
ok 'a native trace of ops has none' [ "$code" -eq 3 ]
the_end
