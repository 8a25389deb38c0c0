#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The converge verb: output in three forms, repeats, gates, bad input, signals.
#   test_converge.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
writer=$(dirname "$0")/../../workloads/writer.ini

converge() { # CODE ARGUMENT...
	converge_code=$1
	shift
	run "$converge_code" converge "$@"
}
refuses() { # NAME CODE WORDS ARGUMENT...
	refused=$1 refused_code=$2 words=$3
	shift 3
	bad "$refused" "$refused_code" converge "$@"
	ok "$refused: message" says "$words" err
}
column() { head -n 1 "$dir/out" | tr , '\n' | grep -nx "$1" | cut -d: -f1; }
# The sum of a column of the CSV.
total() { cut -d, -f"$(column "$1")" "$dir/out" | awk 'NR > 1 { n += $1 } END { printf "%d", n }'; }

cat >"$dir/still.ini" <<END
[scenario]
workload = writer
slots = ram:0:32768
rounds = 10
interval = 1000000
stores = 0
END
cat >"$dir/busy.ini" <<END
[scenario]
workload = writer
vcpus = 2
slots = ram:0:16384
rounds = 10
interval = 1000000
stores = 50
END

# ---- 128 MiB that nobody stores to, over 64 MiB/s: two seconds, one round, and the stop ----
set -- --dirty mask --profile unit --bandwidth 64M
ok 'still: csv' converge 0 --scenario "$dir/still.ini" "$@" --csv
ok 'still: rows' [ "$(wc -l <"$dir/out")" -eq 3 ]
ok 'still: pages' [ "$(total pages)" -eq 32768 ]
ok 'still: bytes' [ "$(total bytes)" -eq $((32768 * 4104)) ]
ok 'still: nothing dirty' [ "$(total dirty_pages)" -eq 0 ]
ms=$(total time_ms)
# of 2003.9
ok "still: $ms ms, 2003 to 2005 wanted" [ $(((ms - 2003) / 3)) -eq 0 ]
ok 'still: half zero' converge 0 --scenario "$dir/still.ini" "$@" --csv --zero-pages 50
ok 'still: half zero: bytes' [ "$(total bytes)" -eq $((16384 * 4104 + 16384 * 9)) ]
ok 'still: one slot' converge 0 --scenario "$dir/still.ini" "$@" --csv --slot ram
ok 'still: late' converge 0 --scenario "$dir/still.ini" "$@" --json --warmup 5000
ok 'still: late: not in the time' says '"total-time": 200[345]\.' out

# ---- forms, repeats ----
set -- --scenario "$writer" --profile unit --bandwidth 100M --downtime-limit 50 --auto-converge
ok 'table' converge 0 "$@" --dirty mask
ok 'table: no messages' quiet
ok 'table: no trailing blanks' sh -c "! grep -q ' \$' '$dir/out'"
ok 'table: verdict' says '^converged: total time .*, downtime .* expected when the guest was stopped, below the 50 ms allowed)$' out
ok 'table: the guest' says '^guest: instructions .* throttled [1-9]' out
ok 'table: evidence' says '^evidence for mask: oracle-exact on npt0-flat32$' out
ok 'not priced' converge 0 "$trace" --slot vram --dirty ring --profile core2-2010
ok 'not priced: named' says 'not priced by the profile.*send_page' out
ok 'not priced: but given' converge 0 "$trace" --slot vram --dirty ring --profile core2-2010 \
	--page-cost 1000
ok 'not priced: but given: not named' sh -c "! grep -q send_page '$dir/out'"
ok 'json' converge 0 "$@" --dirty mask --json
cp "$dir/out" "$dir/first.json"
ok 'json: again' converge 0 "$@" --dirty mask --json
ok 'json: the same' cmp -s "$dir/out" "$dir/first.json"
ok 'json: status' says '"status": "completed"' out
ok 'json: another seed' converge 0 "$@" --dirty mask --json --seed 2
ok 'json: another seed: other pages' sh -c "! cmp -s '$dir/out' '$dir/first.json'"
for policy in walk hybrid manual,initially-all-set=1 ring; do
	ok "$policy" converge 0 "$@" --dirty $policy --check --strict
	ok "$policy: converged" says '^converged' out
done
ok 'TDP, 2M pages' converge 0 "$@" --dirty manual --kernel 6.1-tdp --host-pages 2m --eager-page-split N
ok "CPU's log" converge 0 "$@" --dirty pml --kernel 6.1-tdp --cpu intel
ok "CPU's log: quiet" quiet
ok "no CPU's log" converge 0 "$@" --dirty pml --cpu intel
ok "no CPU's log: a note" says '^kvmsim: warning: dirty policy pml: under shadow paging' err
ok 'a trace' converge 0 "$trace" --slot vram --dirty mask --profile core2-2010 --bandwidth 100M
ok 'a trace: converged' says '^converged' out

# ---- several policies ----
ok 'several' converge 0 "$@" --dirty walk,manual,chunk=4096,mask
ok 'several: a line each' [ "$(grep -cE '^(walk|manual,chunk=4096|mask) +yes ' "$dir/out")" -eq 3 ]
ok 'several: csv' converge 0 "$@" --dirty mask,manual,chunk=4096 --csv
pages=$(awk -F, 'NR == 2 { print $4 }' "$dir/out")
ok 'several: csv: alone' converge 0 "$@" --dirty mask --csv
ok 'several: csv: as alone' [ "$(total pages)" -eq "$pages" ]
ok 'several: json' converge 0 "$@" --dirty mask,ring --json
ok 'several: json: two' [ "$(grep -c '"status": "completed"' "$dir/out")" -eq 2 ]

# ---- too slow a link ----
set -- --scenario "$dir/busy.ini" --profile unit --bandwidth 50M --downtime-limit 10 --max-iterations 8
ok 'too slow' converge 0 "$@" --dirty mask
ok 'too slow: why' says 'not converged after .* 8 collections, .* nothing slowed it down' out
ok 'too slow: a gate' converge 1 "$@" --dirty mask --strict
ok 'too slow: json' converge 0 "$@" --dirty mask --json
ok 'too slow: json: status' says '"status": "active"' out
ok 'too slow: lossy is caught' converge 1 "$@" --dirty lossy

# ---- refused ----
set -- --scenario "$writer" --profile unit
refuses 'no policy' 2 '--dirty is missing' "$@"
refuses 'no profile' 2 '--profile is missing' --scenario "$writer" --dirty mask
refuses 'no input' 2 'expected one TRACE' --dirty mask --profile unit
refuses 'two inputs' 2 'expected one TRACE' "$@" --dirty mask "$trace"
refuses 'no such policy' 2 'no dirty policy' "$@" --dirty nothing
refuses 'no policy before a parameter' 2 'expected POLICY' "$@" --dirty chunk=64,mask
refuses 'no such option' 2 'unknown option' "$@" --dirty mask --fast
refuses 'no value' 2 'needs a value' "$@" --dirty mask --bandwidth
refuses 'bandwidth 0' 2 'bytes per second' "$@" --dirty mask --bandwidth 0
refuses 'bandwidth of another unit' 2 'bytes per second' "$@" --dirty mask --bandwidth 10Mbit
refuses 'percent' 2 'zero-pages' "$@" --dirty mask --zero-pages 101
refuses 'throttle alone' 2 'goes with --auto-converge' "$@" --dirty mask --max-cpu-throttle 50
refuses 'throttle order' 2 'is above' "$@" --dirty mask --auto-converge --max-cpu-throttle 10
refuses 'no such kernel' 2 'no kernel preset' "$@" --dirty mask --kernel 9.9
refuses 'limit without rings' 2 'needs dirty rings' "$@" --dirty mask --dirty-limit 10M
refuses 'both throttles' 2 'exclude each other' "$@" --dirty ring --dirty-limit 10M --auto-converge
refuses 'host pages' 2 '4k, 2m or 1g' "$@" --dirty mask --host-pages 3m
refuses 'no such file' 3 'No such file' --scenario "$dir/none.ini" --dirty mask --profile unit
refuses 'no such slot' 2 "no slot 'rom'" "$@" --dirty mask --slot rom
refuses 'no TDP log' 2 'has no page-modification log' "$@" --dirty pml --kernel 6.1-tdp
sed 's/^stores = .*/working_set = 16385/' "$dir/busy.ini" >"$dir/wide.ini"
refuses 'working set' 3 'working_set is up to the 16384 pages' --scenario "$dir/wide.ini" \
	--dirty mask --profile unit

# ---- logs of real migrations: 1000 MiB, of which each round dirties half of what it sends ----
round() { # ITER TOTAL CURR TRANSFER
	echo "vmm[77]: Precopy: iter=$1 total=$2MiB curr=$3MiB bw=100.00MiB/s transfer=$4s" \
		"overhead=0ms est_downtime=0ms elapsed=9.99s avg_bw=100.00MiB/s"
}
{
	echo 'it goes on and on'
	round 0 1000 1000 10.00
	round 1 1500 500 5.00
	round 2 1750 250 2.50
	round 3 1875 125 1.25
} >"$dir/rounds.log"
cat >"$dir/migrate.txt" <<END
(qemu) info migrate
Migration status: active
throughput: 838.8608 mbps
remaining ram: 18446744073709551612 kbytes
total ram: 1024000 kbytes
duplicate: 128000 pages
normal: 64000 pages
page size: 4 kbytes
dirty pages rate: 12800 pages
END
ok 'log' converge 0 "$dir/rounds.log"
ok 'log: rounds' says '^ *2 *250 MiB *100.00 MiB/s *2.50 s *125 MiB *50 MiB/s$' out
ok 'log: converges' says '^converges: .* after 6 rounds (19.69 s); then 15.625 MiB .* 156 ms$' out
ok 'log: slower' converge 1 "$dir/rounds.log" --bandwidth 40M --strict
ok 'log: slower: what is needed' says 'throttled by 24 %; a dirty rate limit of 38.27 MiB/s' out
ok 'log: json' converge 0 "$dir/rounds.log" --bandwidth 40M --downtime 25000 --json
ok 'log: json: fits at once' says '"rounds_sent": 0' out
ok 'log: csv' converge 0 "$dir/rounds.log" --csv
ok 'log: csv: rows' [ "$(tail -n 1 "$dir/out")" = '3,125,100.00,1.25,,' ]
# 250 MiB remain at 100 MiB/s, of a guest of 50 MiB/s: 250, 125, 62.5, 31.25, and 15.625 in the stop
ok 'info migrate' converge 0 "$dir/migrate.txt"
ok 'info migrate: impossible' says '^accounting error: remaining_kib: 18446744073709551612 .* 256000 KiB' out
ok 'info migrate: converges' says '^converges: .* after 4 more rounds (4.69 s); then 15.625 MiB' out
bad 'log of nothing' 3 converge "$dir/busy.ini"

# ---- a host's trace, from which only a least is known ----
# 100 pages, one each ms, in each tenth of a second: 100 in any 100 ms, 10 in any 10 ms. Beside them a
# device's page and the local APIC's. Code 0x100000007: P, W, U of a nested fault.
faults() { # CODE [PERIODS]
	awk -v code="$1" -v periods="${2:-10}" 'BEGIN {
		for (k = 0; k < periods; k++)
			for (i = 0; i < 100; i++) {
				printf " q-7 [000] d.... 10.%d%02d000: kvm_page_fault: vcpu 0 rip 0x4 address 0x%x error_code %s\n", k, i, (i + 256) * 4096, code
				if (i == 50) {
					printf " q-7 [000] d.... 10.%d%02d001: kvm_page_fault: vcpu 0 rip 0x4 address 0xe0000000 error_code %s\n", k, i, code
					printf " q-7 [000] d.... 10.%d%02d002: kvm_mmio: mmio write len 4 gpa 0xe0000000 val 0x1\n", k, i
					printf " q-7 [000] d.... 10.%d%02d003: kvm_page_fault: vcpu 0 rip 0x4 address 0xfee00300 error_code %s\n", k, i, code
				}
			}
	}'
}
holds() { jq -e "$1" "$dir/out" >/dev/null; } # JQ
faults 0x100000007 >"$dir/logged.txt"
ok 'trace: without a bandwidth' converge 0 "$dir/logged.txt" --json
ok 'trace: pages' holds '[.stores, .pages_at_least, .span_ns] == [1000, 100, 999000000]'
ok 'trace: by stretches' holds '[.dirtied_at_least[] | [.ns, .stretches, .least_pages, .most_pages]] ==
	[[999000000, 1, 100, 100], [100000000, 9, 100, 100], [10000000, 99, 10, 10]]'
ok 'trace: no verdict' holds '.verdict == "unknown" and .rounds_at_least == null'
# 100 pages take 130 ms at 3 MiB/s, in which all are dirtied again
ok 'trace: too slow a link' converge 0 "$dir/logged.txt" --bandwidth 3M --downtime 1 --json
ok 'trace: does not converge' holds '.verdict == "does not converge" and .stop_copy_mib_at_least == 100 / 256'
# a page a ms is 3.906 MiB/s
ok 'trace: what is too slow as well' holds '.bandwidth_mib_s_above > 3.8 and .bandwidth_mib_s_above < 4.3'
ok 'trace: strict' converge 1 "$dir/logged.txt" --bandwidth 3M --downtime 1 --strict
ok 'trace: in words' says '^does not converge: at 3 MiB/s and with a downtime of 1 ms at least 400 KiB are left' out
# at 100 MiB/s they take 3.9 ms, of which the emptiest stretch has 3 or 4 pages; 25 fit
ok 'trace: a fast link' converge 0 "$dir/logged.txt" --bandwidth 100M --downtime 1 --json
ok 'trace: nobody can tell' holds '.verdict == "unknown" and .rounds_at_least == 1 and
	.stop_copy_mib_at_least * 256 >= 3 and .stop_copy_mib_at_least * 256 <= 4'
ok 'trace: strict, too' converge 1 "$dir/logged.txt" --bandwidth 100M --strict
run 0 import "$dir/logged.txt" -o "$dir/logged.kvt"
cp "$dir/out" "$dir/text"
ok 'trace: native' converge 0 "$dir/logged.kvt" --json
ok 'trace: native: the same' holds '[.stores, .pages_at_least] == [1000, 100]'
ok 'trace: csv' converge 0 "$dir/logged.txt" --csv
ok 'trace: csv: rows' [ "$(tail -n 1 "$dir/out")" = 10000000,99,10,10.000,10 ]
# Pages that were not mapped before are stored to first once only.
faults 0x100000006 1 >"$dir/first.txt"
ok 'trace: first stores' converge 0 "$dir/first.txt" --bandwidth 1 --json
ok 'trace: first stores tell nothing' holds '.verdict == "unknown" and .pages_at_least == 100 and .rounds_at_least == null'
ok 'trace: and why' holds '.unknown | test("dirty logging was off")'
# EPT: 0x182 was not mapped, 0x18a readable; a page that is in two rings counts once
{
	faults 0x182 1
	echo ' q-7 [000] d.... 10.500000: kvm_page_fault: vcpu 0 rip 0x4 address 0x5000 error_code 0x18a'
} >"$dir/ept.txt"
ok 'trace: EPT' converge 0 "$dir/ept.txt" --json
ok 'trace: EPT: the one that was protected' holds '[.stores, .pages_at_least] == [1, 1]'
{
	cat "$dir/ept.txt"
	echo ' q-7 [000] d.... 10.500001: kvm_dirty_ring_push: ring 0: dirty 0x1 reset 0x0 slot 1 offset 0x5 (used 1)'
	echo ' q-8 [001] d.... 10.500002: kvm_dirty_ring_push: ring 1: dirty 0x1 reset 0x0 slot 1 offset 0x5 (used 1)'
	echo ' q-8 [001] d.... 10.500003: kvm_dirty_ring_push: ring 1: dirty 0x2 reset 0x0 slot 2 offset 0x5 (used 2)'
} >"$dir/ring.txt"
ok 'trace: rings' converge 0 "$dir/ring.txt" --json
ok 'trace: rings: what they have' holds '[.stores_of, .stores, .pages_at_least] == ["pushes to dirty rings", 3, 2]'
echo ' q-7 [000] d.... 10.000001: kvm_page_fault: vcpu 0 rip 0x4 address 0x5000 error_code 0x181' >"$dir/reads.txt"
refuses 'trace: no store' 3 'no store of the guest' "$dir/reads.txt" --bandwidth 1M
echo ' q-7 [000] d.... : kvm_page_fault: vcpu 0 rip 0x4 address 0x5000 error_code 0x182' >"$dir/untimed.txt"
refuses 'trace: no time' 3 'no store of the guest' "$dir/untimed.txt"
refuses 'trace: shadow paging' 3 'guest-virtual addresses' "$(dirname "$trace")/dat-shadow-v7.dat"

refuses 'a guest without a policy' 2 '--dirty is missing' "$trace"
refuses 'a log and a kernel' 2 '--dirty is missing' "$dir/rounds.log" --kernel 6.1-tdp

# ---- interrupted ----
"$kvmsim" converge --scenario "$writer" --profile unit --dirty mask --bandwidth 1k \
	--max-iterations 1000000 >"$dir/out" 2>"$dir/err" &
pid=$!
catching $pid
kill -TERM $pid
wait $pid
ok 'interrupted' [ $? -eq 130 ]
ok 'interrupted: one line' one_line
the_end
