#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# `kvmsim record tracefs`: what it refuses; and, where tracefs may be written to, what it records, and
# that nothing stays behind, whatever ends it.
#   test_record_tracefs.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
instances=/sys/kernel/tracing/instances
# One at a time: the folder of instances is the machine's, and the tests run side by side. The folder
# above is locked, since the program locks the one of the instances.
if [ -r "${instances%/*}" ]; then
	exec 9<"${instances%/*}"
	flock -w 200 9 || echo 'record_tracefs: another test of it does not end' >&2
fi

bad 'no output' 2 record tracefs --duration 1
bad 'unknown option' 2 record tracefs --fast
bad 'no such purpose' 2 record tracefs -o "$dir/a.dat" --purpose mmu,sound --duration 1
ok 'no such purpose: which' says "'sound'" err
bad 'no duration' 2 record tracefs -o "$dir/a.dat" --duration 0
bad 'a small buffer' 2 record tracefs -o "$dir/a.dat" --buffer 1k
bad 'value missing' 2 record tracefs -o
ok 'help' run 0 record tracefs --help

ours() { find $instances -maxdepth 1 -name 'kvmsim-*' 2>/dev/null; }
gone() { # within 10 seconds
	tries=0
	while [ -n "$(ours)" ] && [ $tries -lt 200 ]; do
		sleep 0.05
		tries=$((tries + 1))
	done
	[ -z "$(ours)" ]
}
# An instance is on from its making until the recorder, which has its watchdog by then, switches it off
# to set it up: what it records is there when its event is enabled, and it is on again.
on_again() {
	grep -qs 1 "$instances/kvmsim-$recorder/events/sched/sched_switch/enable" &&
		grep -qs 1 "$instances/kvmsim-$recorder/tracing_on"
}
tracing() { # until its instance is on, a minute at most
	tries=0
	until on_again || [ $tries -ge 1200 ]; do
		sleep 0.05
		tries=$((tries + 1))
	done
	on_again
}
begin() { # records in the background: its number in $recorder
	"$kvmsim" record tracefs -o "$dir/$1.dat" --events sched:sched_switch >"$dir/out" 2>"$dir/err" 9>&- &
	recorder=$!
	ok "$1: begins" tracing
}

if ! [ -w $instances ]; then
	bad 'no tracefs to write to' 3 record tracefs -o "$dir/a.dat" --duration 1
	ok 'what to do is said' says 'as root' err
	echo "record_tracefs: skipped: recordings: $instances is not there or may not be written to"
	skipped=$((skipped + 1))
elif ! grep -q 'sched_switch$' /sys/kernel/tracing/available_events; then
	echo 'record_tracefs: skipped: recordings: this kernel has no tracepoint sched_switch'
	skipped=$((skipped + 1))
elif [ -n "$(ours)" ]; then
	echo 'record_tracefs: skipped: recordings: another one is going on'
	skipped=$((skipped + 1))
else
	on=$(cat /sys/kernel/tracing/tracing_on)
	events=$(cat /sys/kernel/tracing/set_event)
	ok 'until the command ends' run 0 record tracefs -o "$dir/a.dat" --json \
		--events sched:sched_switch sh -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep 0.01; done'
	ok 'nothing is left' gone
	# Nine sleeps are nine switches at least, counted by the kernel.
	n=$(jq '[.cpus[].events] | add' "$dir/out")
	ok 'its events' [ "${n:-0}" -ge 9 ]
	ok 'none were lost' [ "$(jq '[.cpus[].lost] | add' "$dir/out")" = 0 ]
	ok 'the tracepoint' says '"sched/sched_switch"' out
	if command -v trace-cmd >/dev/null; then
		trace-cmd report -t "$dir/a.dat" >"$dir/report" 2>"$dir/err"
		ok 'trace-cmd reads as many' [ "$(grep -c ': sched_switch: ' "$dir/report")" = "$n" ]
	fi
	ok 'a buffer that is too small' run 0 record tracefs -o "$dir/b.dat" --json --buffer 4k \
		--events sched:sched_switch,syscalls:sys_enter_read sh -c \
		'dd if=/dev/zero of=/dev/null bs=1 count=200000 2>/dev/null'
	if [ "$(jq '[.cpus[].lost] | add' "$dir/out")" -gt 0 ]; then
		ok 'losses are told' says 'events were lost' err
	fi
	ok 'a duration' run 0 record tracefs -o "$dir/c.dat" --events sched:sched_switch --duration 1 \
		sleep 60
	ok 'the command was ended' says 'sleep was ended by signal 15' err
	ok 'nothing is left of it' gone
	bad 'no such command' 2 record tracefs -o "$dir/d.dat" "$dir/none"
	bad 'no such event' 2 record tracefs -o "$dir/d.dat" --events sched:sched_sleep --duration 1
	bad 'no such clock' 2 record tracefs -o "$dir/d.dat" --clock sundial --duration 1
	bad 'no such folder' 4 record tracefs -o "$dir/none/d.dat" --events sched:sched_switch \
		--duration 1
	ok 'nothing is left after what was refused' gone
	ok 'nor a file' [ ! -e "$dir/d.dat" ]

	for signal in INT TERM; do
		begin "SIG$signal"
		# the shell's background processes ignore SIGINT until the program catches it
		catching "$recorder"
		kill -s "$signal" "$recorder"
		wait "$recorder"
		code=$?
		ok "SIG$signal: a recording as any" [ "$code" -eq 0 ]
		ok "SIG$signal: its file" [ -s "$dir/SIG$signal.dat" ]
		ok "SIG$signal: nothing is left" gone
	done
	begin SIGKILL
	kill -s KILL "$recorder"
	wait "$recorder" 2>/dev/null
	ok 'SIGKILL: the watchdog removes the instance' gone
	ok 'SIGKILL: no file' [ ! -e "$dir/SIGKILL.dat" ]
	begin both
	# the watchdog is the only process that it made
	watchdog=''
	for status in /proc/[0-9]*/status; do # processes come and go meanwhile
		found=$(sed -n "s/^Name:\tkvmsim-watchdog$/w/p; s/^PPid:\t$recorder$/p/p" "$status" 2>/dev/null | tr -d '\n')
		[ "$found" != wp ] || watchdog=$(basename "${status%/status}")
	done
	ok 'there is a watchdog' [ -n "$watchdog" ]
	kill -s KILL "${watchdog:-$recorder}" "$recorder" 2>/dev/null
	wait "$recorder" 2>/dev/null
	ok 'both killed: the instance is left' [ -n "$(ours)" ]
	ok 'both killed: the next one begins' run 0 record tracefs -o "$dir/e.dat" \
		--events sched:sched_switch --duration 1
	ok 'both killed: and removes it' gone
	ok 'other tracing is as it was' [ "$(cat /sys/kernel/tracing/tracing_on)" = "$on" ]
	ok 'its events, too' [ "$(cat /sys/kernel/tracing/set_event)" = "$events" ]
	find "$dir" -name '*.tmp' >"$dir/out"
	ok 'no temporary files' [ ! -s "$dir/out" ]
fi

the_end
