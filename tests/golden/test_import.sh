#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kvmsim import of hosts' traces: what is kept, what becomes an op, what is said, what is refused. The
# expected rows are put down by hand; the reader of the format is kvt.py, made from FORMAT.md alone.
#   tests/golden/test_import.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
here=$(dirname "$0")
if ! python3 -c 'import ctypes, zlib; ctypes.CDLL("libzstd.so.1")' 2>/dev/null; then
	echo "import: skipped: no python3 with zlib and libzstd.so.1"
	skipped=$((skipped + 1))
	the_end
fi

cat >"$dir/host.txt" <<'END'
# tracer: nop
#
# entries-in-buffer/entries-written: 9/12   #P:4
#
           <...>-900   [001] d..2.   100.000001: kvm_entry: vcpu 0, rip 0xfff0
           <...>-900   [001] ...1.   100.000011: kvm_exit: vcpu 0 reason EPT_VIOLATION rip 0xfff0 info1 0x0000000000000182 info2 0x0000000000000000 intr_info 0x00000000 error_code 0x00000000
           <...>-900   [001] ...1.   100.000012: kvm_page_fault: vcpu 0 rip 0xfff0 address 0x0000000000005000 error_code 0x182
           <...>-900   [001] d..2.   100.000021: kvm_entry: vcpu 0, rip 0xfff0
           <...>-901   [002] ...1.   100.000030: kvm_page_fault: vcpu 1 rip 0xfff0 address 0x0000000000009000 error_code 0x181
           <...>-900   [001] ...1.   100.000041: kvm_exit: vcpu 0 reason HLT rip 0xfff8 info1 0x0000000000000000 info2 0x0000000000000000 intr_info 0x00000000 error_code 0x00000000
           <...>-900   [001] ...1.   100.000040: kvm_entry: vcpu 0, rip 0xfff8
           <...>-902   [003] ...1.   100.000050: kvm_page_fault: address 1000 error_code 2
           <...>-902   [003] .....   100.000060: sched_wakeup: comm=vmm pid=900 prio=120 target_cpu=001
END
cat >"$dir/ops" <<'END'
0 11000 2 0 0 5000
0 40000 10 0 0 0
1 29000 1 0 0 9000
END
ok "a host's trace is imported" run 0 import -o "$dir/h.kvt" "$dir/host.txt"
ok 'import says what the file was like' grep -qxF \
	"kvmsim: $dir/host.txt: 13 lines, 9 events, 0 unknown, 0 damaged, 3 lost, 1 out of order" "$dir/err"
ok 'import says what it made' grep -qxF \
	"kvmsim: $dir/h.kvt: 3 ops, of them page faults 2 (1 reads, 1 writes, 0 fetches)" "$dir/err"
ok 'import says what it left out' grep -q 'no ops: 1 of an unknown vCPU, 0 at' "$dir/err"
ok 'import says what slot it found' grep -q 'all faults: 5 pages from gfn 0x5$' "$dir/err"
python3 "$here/kvt.py" "$dir/h.kvt" >"$dir/got"
ok 'its ops' cmp -s "$dir/ops" "$dir/got"
python3 "$here/kvt.py" -e "$dir/h.kvt" >"$dir/rows"
ok 'a page fault, field by field' grep -qxF \
	'0 4 6 5 kvm_page_fault @comm=<...> @cpu=1 @line=7 @tgid=-1 @tid=900 @time=100000012000 address=20480 error_code=386 rip=65520 vcpu=0' \
	"$dir/rows"
ok 'the loss that the header tells' grep -qE '^1 1 .* @chunks=0 @count=3 @cpu=18446744073709551615$' "$dir/rows"
ok 'an event of another subsystem' grep -q ' sched_wakeup .*pid=900' "$dir/rows"
ok "strict: 1 for what was lost and out of order" run 1 import --strict -o "$dir/s.kvt" "$dir/host.txt"
ok 'strict: the trace is there all the same' cmp -s "$dir/h.kvt" "$dir/s.kvt"

# The same from a pipe, from gzip, from the native trace.
"$kvmsim" import -o "$dir/p.kvt" - <"$dir/host.txt" 2>/dev/null
ok 'standard input' cmp -s "$dir/h.kvt" "$dir/p.kvt"
sh -c "cat '$dir/host.txt' | '$kvmsim' import -o '$dir/q.kvt' -" 2>/dev/null
ok 'a pipe' cmp -s "$dir/h.kvt" "$dir/q.kvt"
gzip -c "$dir/host.txt" >"$dir/host.txt.gz"
ok "gzip is seen through" run 0 import -o "$dir/z.kvt" "$dir/host.txt.gz"
ok 'gzip' cmp -s "$dir/h.kvt" "$dir/z.kvt"
ok "a native trace is imported" run 0 import -o "$dir/n.kvt" "$dir/h.kvt"
ok 'a native trace' cmp -s "$dir/h.kvt" "$dir/n.kvt"
ok "slots that are given" run 0 import --slots 'low:0:4,high:8:0x10' --source a --kernel b --workload c -o "$dir/slots.kvt" "$dir/host.txt"
ok 'slots: what is outside is left out' grep -q '0 of devices, 1 outside the slots' "$dir/err"
ok "info of a host's native trace" run 0 info --json "$dir/slots.kvt"
ok 'what is not recorded is said' grep -q 'accesses without a fault' "$dir/out"

ok 'no instructions where the clock counts ns' sh -c "grep -q '\"elapsed\": 69000' '$dir/out' &&
	! grep -q '\"instructions\"' '$dir/out'"

cp "$dir/host.txt" "$dir/one.txt"
ln "$dir/one.txt" "$dir/two.txt"
ok 'out is no file that is read' run 2 import -o "$dir/two.txt" "$dir/one.txt"
ok 'which is as it was' cmp -s "$dir/host.txt" "$dir/one.txt"

# What it cannot answer.
for verb in replay compare; do
	policies=mask
	[ $verb = replay ] || policies=mask,walk
	ok "$verb: exit status" run 3 $verb "$dir/h.kvt" --dirty $policies --profile unit
	ok "$verb: refused, and why" grep -q 'cannot tell: of the guest.s accesses only those' "$dir/err"
done
ok "converge: refused" run 3 converge "$dir/h.kvt" --dirty mask --bandwidth 1G --profile unit
ok "a text that is no trace" run 3 import -o "$dir/no.kvt" "$here/test_trace.sh"
: >"$dir/empty"
ok "an empty file" run 3 import -o "$dir/no.kvt" "$dir/empty"
ok 'nothing usable: no file' [ ! -e "$dir/no.kvt" ]

# Clocks.
sed 's/100\.0000/100.0005/; 3d' "$dir/host.txt" >"$dir/guest.txt"
ok "two files without a word about clocks" run 2 import -o "$dir/no.kvt" "$dir/host.txt" "$dir/guest.txt"
ok 'two files: their clocks are not mixed silently' grep -q 'may have different clocks' "$dir/err"
ok "an offset for no file" run 2 import --offset other.txt=5 -o "$dir/no.kvt" "$dir/host.txt" "$dir/guest.txt"
ok "an offset that is no number" run 2 import --offset guest.txt=x -o "$dir/no.kvt" "$dir/host.txt" "$dir/guest.txt"
ok "an offset and one clock" run 2 import --offset guest.txt=5 --same-clock -o "$dir/no.kvt" "$dir/host.txt" "$dir/guest.txt"
ok "an offset for a single file" run 2 import --offset host.txt=5 -o "$dir/no.kvt" "$dir/host.txt"
ok 'no file of these' [ ! -e "$dir/no.kvt" ]
ok "two files with an offset" run 0 import --offset guest.txt=-500000 -o "$dir/m.kvt" "$dir/host.txt" "$dir/guest.txt"
ok 'time that goes back from file to file is told' grep -q \
	"guest.txt: time goes back: it begins 59000 ns before $dir/host.txt ends" "$dir/err"
python3 "$here/kvt.py" "$dir/m.kvt" >"$dir/got"
ok 'ops are the first file'\''s' cmp -s "$dir/ops" "$dir/got"
python3 "$here/kvt.py" -e "$dir/m.kvt" >"$dir/rows"
ok 'events of both' [ "$(grep -c ' kvm_entry ' "$dir/rows")" -eq 6 ]
ok 'the second'\''s threads and CPUs are its own' grep -q \
	"kvm_entry .*@cpu=$((1 + 65536)) .*@tid=$((900 + 4294967296)) @time=100000001000" "$dir/rows"
ok "two files of one clock" run 0 import --same-clock -o "$dir/m.kvt" "$dir/host.txt" "$dir/guest.txt"
ok 'files of one clock in their order: nothing to tell' sh -c "! grep -q 'goes back' '$dir/err'"
# A file given twice, whatever is said of the clocks.
bad 'twice' 2 import --same-clock -o "$dir/no.kvt" "$dir/host.txt" "$dir/guest.txt" "$dir/host.txt"
ok 'it is named' says "host.txt is given twice (see" err
bad 'by another name' 2 import --same-clock -o "$dir/no.kvt" "$dir/one.txt" "$dir/two.txt"
ok 'both are named' says "one.txt is given twice, also as .*two.txt" err
bad 'a copy, with an offset' 2 import --offset one.txt=5 -o "$dir/no.kvt" "$dir/host.txt" "$dir/one.txt"
ok 'it is told' says "host.txt and .*one.txt have the same content" err
sed 's/kvm_entry/kvm_extry/' "$dir/host.txt" >"$dir/other.txt"
ok 'as long, but another' run 0 import --same-clock -o "$dir/m.kvt" "$dir/host.txt" "$dir/other.txt"
ok 'nothing is left over' sh -c "! ls '$dir' | grep -q 'tmp'"
the_end
