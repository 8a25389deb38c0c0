#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kvmsim memstress: what it prints, refuses, and does when it is told to stop.
. "$(dirname "$0")/lib.sh"

# ---- interrupted: more than one vCPU, each in the middle of its memory ----
for signal in INT TERM; do
	# a background job of a shell ignores SIGINT unless it is told otherwise
	env --default-signal=INT "$kvmsim" memstress --profile kvm-pvm -v 2 -b 1G -i 1000 \
		>"$dir/out" 2>"$dir/err" &
	pid=$!
	# it catches the signal once it has begun, and is soon among its pages
	tries=0
	until grep -q '^SigCgt:.*[4567cdef]...$' /proc/$pid/status 2>/dev/null || [ $tries -ge 200 ]; do
		sleep 0.05
		tries=$((tries + 1))
	done
	sleep 0.3
	kill -$signal $pid
	wait $pid
	ok "SIG$signal" [ $? -eq 130 ]
	ok "SIG$signal: one line, no output" one_line
	ok "SIG$signal: which" says '^kvmsim: interrupted$' err
done
the_end
