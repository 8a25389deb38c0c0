#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kvmsim import and info, against what the recorder itself counted and against awk.
#   tests/golden/test_trace.sh BUILDDIR
set -u
k=$1/kvmsim
golden=tests/golden
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT INT TERM
passed=0 failed=0

# check NAME COMMAND...: the command must succeed
check() {
	name=$1
	shift
	if "$@" >"$tmp/log" 2>&1; then
		passed=$((passed + 1))
	else
		echo "trace-golden: $name"
		head -n 20 "$tmp/log"
		failed=$((failed + 1))
	fi
}

# exits CODE WORDS COMMAND...: the exit status, one line on stderr, and words in it
exits() {
	code=$1 words=$2
	shift 2
	"$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	if [ "$got" -eq "$code" ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -q -- "$words" "$tmp/err"; then
		passed=$((passed + 1))
	else
		echo "trace-golden: $*: status $got for $code, words '$words':"
		cat "$tmp/err"
		failed=$((failed + 1))
	fi
}

# epochs TRACE: "mark ram vram full|cut" per epoch; vram 0 where there is no such slot
epochs() {
	"$k" info --epochs "$1" | awk '/^Epoch +mark/ { on = 1; next } on { gsub(/,/, ""); print $2, $4, $5 + 0, $3 }'
}

# The recorder counted dirty pages per epoch apart from its trace lines: these are its counts.
epochs traces/recorded/x11perf.kvt >"$tmp/x11perf"
check "x11perf: pages per epoch" diff $golden/x11perf-epochs.txt "$tmp/x11perf"
epochs traces/recorded/find.kvt >"$tmp/find"
check "find: pages per epoch" diff $golden/find-epochs.txt "$tmp/find"
epochs traces/recorded/compile.kvt >"$tmp/compile"
check "compile: pages per epoch" diff $golden/compile-epochs.txt "$tmp/compile"
# Each of those pages is one first store, and an op.
sum=$(awk '{ n += $2 } END { print n }' $golden/compile-epochs.txt)
check "compile: stores" sh -c "\"$k\" info traces/recorded/compile.kvt | tr -d , | grep -q '^write *$sum$'"
# The mask meets every dirty page: all of a phase's at the end of its last epoch.
"$k" replay traces/recorded/compile.kvt --slot ram --dirty mask --profile unit --interval 30000000 --csv |
	awk -F, 'NR > 1 { print $4 }' >"$tmp/collected"
awk '{ print $2 }' $golden/compile-epochs.txt >"$tmp/counted"
check "compile: replayed, what was stored to is collected" diff "$tmp/counted" "$tmp/collected"

# Recorded locks: rows that divide all of them do add up; the kernel's own order shows.
check "dbench: rows add up" python3 - traces/recorded/dbench-locks.csv <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
def taken(*kinds): return sum(int(r["taken"]) for r in rows if r["row"] in kinds)
assert taken("all") == taken("lock", "locks") == taken("caller") > 1000000
assert taken("timer") == taken("timer_caller") < taken("all") / 10
for r in rows:
	for of in "hold", "gap", "inner_gap":
		q = [int(r[of + "_" + n]) for n in "min p10 p25 p50 p75 p90 p99 p999 max".split() if r[of + "_" + n]]
		assert q == sorted(q) and len(q) in (0, 9)
	if r["row"] in ("all", "lock", "locks"): # nobody had it before the first
		assert int(r["moved"]) <= int(r["taken"]) - int(r["objects"])
# a dentry's lock and its child's: readdir holds one while it takes the other
readdir = next(r for r in rows if r["row"] == "caller" and r["caller"] == "scan_positives")
assert 0.4 < int(readdir["nested"]) / int(readdir["taken"]) < 0.5
# a free descriptor is looked for once per open and given back once per close
count = {r["caller"]: int(r["taken"]) for r in rows if r["row"] == "caller"}
assert abs(count["alloc_fd"] / count["task_work_run"] - 1) < 0.01
END

# An excerpt of the text: each line is one page of one epoch, counted here with awk.
excerpt=$golden/guest-probe-excerpt.tr
awk -v len=30000000 '
	function finish(at, i, last) {
		last = int((at - start) / len)
		for (i = 0; i <= last; i++)
			print mark, ram[i] + 0, vram[i] + 0, i < last ? "full" : "cut"
		split("", ram)
		split("", vram)
	}
	{ now = $1 }
	$3 == "M" && mark { finish($1); mark = 0 }
	$3 == "M" { mark = $4; start = $1 }
	$3 == "S" { ram[int(($1 - start) / len)]++ }
	$3 == "V" { vram[int(($1 - start) / len)]++ }
	END { if (mark) finish(now) }' $excerpt >"$tmp/expected"
check "import: an excerpt" "$k" import --strict -o "$tmp/e.kvt" $excerpt
epochs "$tmp/e.kvt" >"$tmp/got"
check "import: its pages per epoch" diff "$tmp/expected" "$tmp/got"
gzip -c $excerpt >"$tmp/e.tr.gz"
check "import: gzip" "$k" import -o "$tmp/z.kvt" "$tmp/e.tr.gz"
check "import: the same from gzip" cmp "$tmp/e.kvt" "$tmp/z.kvt"
sh -c "cat $excerpt | \"$k\" import -o \"$tmp/p.kvt\" -" 2>/dev/null
check "import: the same from a pipe" cmp "$tmp/e.kvt" "$tmp/p.kvt"
"$k" info - <"$tmp/e.kvt" | sed 1d >"$tmp/piped"
"$k" info "$tmp/e.kvt" | sed 1d >"$tmp/plain"
check "info: standard input" cmp "$tmp/plain" "$tmp/piped"
check "info: JSON is JSON" sh -c "\"$k\" info --json --epochs \"$tmp/e.kvt\" | grep -q '\"pages_per_epoch\"'"

# A slot of more pages than there is memory for.
"$k" import --vram-gfn 0x1000000000 --vram-pages 68719476736 -o "$tmp/big.kvt" $excerpt 2>/dev/null
check "info: a slot of 2^36 pages" sh -c "\"$k\" info \"$tmp/big.kvt\" | grep -q '^vram .* 68,719,476,736$'"

# Input that cannot be used: one line, the right status, no output.
head -c 64 "$k" >"$tmp/64"
: >"$tmp/empty"
head -c 3000 traces/recorded/find.kvt >"$tmp/torn.kvt"
exits 3 "No such file or directory" "$k" info "$tmp/missing"
exits 3 "binary, of no known form" "$k" info "$tmp/64"
exits 3 "empty: empty" "$k" info "$tmp/empty"
exits 3 "a directory" "$k" info "$tmp"
exits 0 "torn: the file ends without its index; 0 whole blocks" "$k" info "$tmp/torn.kvt"
exits 2 "one trace is expected" "$k" info
exits 2 "unknown option --what" "$k" info --what "$tmp/e.kvt"
exits 3 "cannot open" "$k" import -o "$tmp/no.kvt" "$tmp/missing"
exits 3 "nothing usable" "$k" import --format probe -o "$tmp/no.kvt" "$tmp/64"
exits 3 "nothing usable" "$k" import --format probe -o "$tmp/no.kvt" "$tmp/empty"
exits 3 "a directory" "$k" import -o "$tmp/no.kvt" "$tmp"
exits 4 "No space left" "$k" import -o /dev/full $excerpt
exits 2 "expected a whole number" "$k" import --epoch 0 -o "$tmp/no.kvt" $excerpt
exits 2 "-o OUT is missing" "$k" import $excerpt
exits 2 "two slots overlap" "$k" import --vram-gfn 0x3ffff -o "$tmp/no.kvt" $excerpt
{ cat $excerpt; echo "9300000000 0 S zz"; echo "9300000001 0 L 1 2 3 4"; } >"$tmp/dirty.tr"
exits 1 "303 lines, 301 events, 1 unknown, 1 damaged, 0 lost, 0 out of order; first damaged line 302" \
	"$k" import --strict -o "$tmp/d.kvt" "$tmp/dirty.tr"

# Recorded transactions: an e1000's interrupt reads its cause, turns interrupts off and on, and reads
# the status after both; something is sent in each of the 2,000 transactions, over any device.
"$k" info traces/recorded/tcp_rr-e1000.kvt >"$tmp/e1000"
"$k" info traces/recorded/tcp_rr-virtio.kvt --per 2000 >"$tmp/virtio"
"$k" info traces/recorded/tcp_rr-virtio-legacy.kvt >"$tmp/legacy"
check "tcp_rr: the driver's order" awk '
	$1 == "0xfebc00c0" { icr = $2 } $1 == "0xfebc00d8" { imc = $2 } $1 == "0xfebc00d0" { ims = $2 }
	$1 == "0xfebc0008" { status = $2 } $1 == "0xfebc3818" { tdt = $2 } { gsub(",", "") }
	END { gsub(",", "", icr); gsub(",", "", imc); gsub(",", "", ims); gsub(",", "", status)
	      gsub(",", "", tdt)
	      exit !(icr >= 2000 && icr <= 4100 && imc == icr && ims == icr && status == 2 * icr &&
		     tdt >= 2000 && tdt < 2020) }' "$tmp/e1000"
check "tcp_rr: virtio's doorbell" awk '
	$1 == "0xfebfb004" { n = $NF } END { exit !(n >= 1 && n < 1.01) }' "$tmp/virtio"
check "tcp_rr: legacy virtio's ports" awk '
	$1 == "port" { gsub(",", ""); n[$2] = $3 } END { for (i in n) { sum += n[i]
	if (n[i] >= 2000 && n[i] < 2020) sends++ } exit !(sends == 1 && sum >= 4000 && sum <= 6100) }' "$tmp/legacy"

# A signal in the middle: the temporary file is removed, the status is 130.
mkfifo "$tmp/fifo"
"$k" import -o "$tmp/no.kvt" "$tmp/fifo" 2>"$tmp/err" &
pid=$!
exec 9>"$tmp/fifo"
head -n 5 $excerpt >&9
# The file has been begun, and the program sleeps: it waits for more lines. A signal before that would
# be heeded only after the next of them.
tries=0
until { ls "$tmp"/no.kvt.*.tmp && grep '^State:.*S' "/proc/$pid/status"; } >/dev/null 2>&1 ||
	[ $tries -ge 1200 ]; do
	sleep 0.05
	tries=$((tries + 1))
done
kill -TERM "$pid"
wait "$pid"
check "import: a signal ends it with 130" [ $? -eq 130 ]
exec 9>&-
check "import: it says so" grep -q "interrupted; .*no.kvt was not written" "$tmp/err"
check "nothing is left over" sh -c "! ls \"$tmp\" | grep -E 'no.kvt|tmp'"

echo "trace-golden: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
