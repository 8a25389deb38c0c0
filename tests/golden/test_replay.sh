#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The replay verb: output in three forms, repeats, bad input, signals.
#   test_replay.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"

replay() { # CODE ARGUMENT...
	replay_code=$1
	shift
	run "$replay_code" replay "$@"
}
refuses() { # NAME CODE WORDS ARGUMENT...
	refused=$1 refused_code=$2 words=$3
	shift 3
	bad "$refused" "$refused_code" replay "$@"
	ok "$refused: message" says "$words" err
}
one_warning() { [ "$(grep -c "^kvmsim: warning: $1" "$dir/err")" -eq 1 ]; }

set -- --dirty mask --profile unit

ok 'table' replay 0 "$trace" "$@"
ok 'table: no messages' quiet
ok 'table: calls' says '^GET_DIRTY_LOG every 30,000,000 guest instructions' out
ok 'table: where the time went' says '^guest code ' out
ok 'table: no trailing blanks' sh -c "! grep -q ' \$' '$dir/out'"

ok 'csv' replay 0 "$trace" "$@" --csv --slot vram --interval 60000000
ok 'csv: heading' [ "$(head -n 1 "$dir/out")" = 'dirty,epoch,slot,nr_dirty,start,time,unit' ]
rows=$(($(wc -l <"$dir/out") - 1))
ok 'csv: rows' [ $rows -gt 10 ]
ok 'csv: every second epoch' [ "$(sed -n 3p "$dir/out" | cut -d, -f2)" = 4 ]

# A log of the CPU's costs other things and reports the same pages.
on_intel() { # POLICY
	replay 0 "$trace" --dirty "$1" --profile unit --kernel 6.1-tdp --cpu intel --check --csv
	sed 's/^"[^"]*"/quoted/' "$dir/out" | cut -d, -f2-4 >"$dir/$1.dirty"
}
for policy in mask pml manual,pml=1 ring,pml=1; do
	ok "CPU's log: $policy" on_intel $policy
	ok "CPU's log: $policy: pages" cmp -s "$dir/$policy.dirty" "$dir/mask.dirty"
done
refuses "CPU's log: none" 2 'policy pml: CPU tcg has no page-modification log' \
	"$trace" --dirty pml --profile unit --kernel 6.1-tdp

# Rings report the same pages, be they emptied when full, at intervals or at the end.
for policy in mask ring,size=256,reaper=0 ring,size=1024,reaper=3000 ring; do
	ok "rings: $policy" replay 0 "$trace" --dirty "$policy" --profile tcg-icount --check --csv \
		--interval 60000000
	sed 's/^\("[^"]*"\|mask\|ring\),//' "$dir/out" | cut -d, -f1-3 >"$dir/$policy.dirty"
	ok "rings: $policy: pages" cmp -s "$dir/$policy.dirty" "$dir/mask.dirty"
done
ok 'rings: one gets full' replay 0 "$trace" --dirty ring,size=256,reaper=0 --profile tcg-icount --json
ok 'rings: one gets full: counted' says '"ring_full"' out

ok 'json' replay 0 "$trace" "$@" --json --slot vram --interval 60000000
cp "$dir/out" "$dir/first.json"
ok 'json: provenance' says '"checksum": "[0-9a-f]\{16\}"' out
ok 'json: as many collections as csv' [ "$(grep -c '"nr_dirty"' "$dir/out")" -eq $rows ]
for i in 1 2 3; do
	replay 0 "$trace" "$@" --json --slot vram --interval 60000000
	ok "json: repeat $i" cmp -s "$dir/out" "$dir/first.json"
done
replay 0 "$trace" "$@" --json --slot vram --interval 60000000 --reference
ok 'json: reference mode gives the same' cmp -s "$dir/out" "$dir/first.json"

for w in framebuffer migration pagelist-example; do
	ok "scenario $w" replay 0 --scenario "workloads/$w.ini" "$@" --json
	cp "$dir/out" "$dir/first.json"
	ok "scenario $w: again" replay 0 --scenario "workloads/$w.ini" "$@" --json
	ok "scenario $w: the same" cmp -s "$dir/out" "$dir/first.json"
done
printf '[scenario]\nworkload = migration\nslots = a:0:8000\nvcpus = 4\nrounds = 5\n' >"$dir/four.ini"
for mode in '' --reference; do
	ok "four vCPUs, checked $mode" replay 0 --scenario "$dir/four.ini" "$@" --check --json $mode
	cp "$dir/out" "$dir/four$mode.json"
done
ok 'four vCPUs: reference mode gives the same' cmp -s "$dir/four.json" "$dir/four--reference.json"
bad 'logging off, but not beside vCPUs' 2 replay --scenario "$dir/four.ini" --dirty mask --profile unit \
	--disable-after 2
bad 'a store of runs beside vCPUs' 2 replay --scenario "$dir/four.ini" --dirty mask --profile unit \
	--running --store "$dir/none.db"
ok 'beside running vCPUs' replay 0 --scenario "$dir/four.ini" --dirty manual,chunk=64 --profile kvm-pvm \
	--running --disable-after 2
ok 'beside running vCPUs: logging turned on' says '^logging turned on ' out
# Waits by caller, all of mmu_lock's and of the ledger: the locks' own statistics have the same sum.
ok 'contention' replay 0 --scenario "$dir/four.ini" --dirty manual,chunk=64 --profile kvm-pvm \
	--running --disable-after 2 --mmulock rwlock --contention --json
ok 'contention: adds up' python3 - "$dir/out" <<'EOF'
import json, sys
run = json.load(open(sys.argv[1]))
rows = [r for r in run['contention'] if r['lock'] == 'mmu_lock']
assert rows and {r['type'] for r in rows} <= {'rwlock:R', 'rwlock:W'}
for kind, lock in ('rwlock:W', run['mmu_lock']), ('rwlock:R', run['mmu_lock_read']):
    of = [r for r in rows if r['type'] == kind]
    assert sum(r['contended'] for r in of) == lock['contended']
    assert sum(r['total_wait'] for r in of) == lock['wait']
    assert max([r['max_wait'] for r in of], default=0) == lock['longest_wait']
assert sum(r['total_wait'] for r in run['contention']) == run['ledger']['waits']['lock']
EOF
ok 'contention: a table' replay 0 --scenario "$dir/four.ini" --dirty manual,chunk=64 \
	--profile kvm-pvm --running --disable-after 2 --mmulock spin --contention
ok 'contention: who clears' says 'spinlock  kvm_clear_dirty_log_protect$' out
ok 'contention: nothing to wait for' replay 0 "$trace" "$@" --contention
ok 'contention: says so' says '^No lock was contended' out
refuses 'contention as csv' 2 'exclude each other' "$trace" "$@" --contention --csv
replay 0 --scenario "$dir/four.ini" --dirty manual,chunk=64 --profile kvm-pvm --running --disable-after 2
ok 'beside running vCPUs: who waited for whom' says 'waited for a lock of vmm' out
# Where nothing but loads comes first the zero page makes a difference, and only there.
printf '[scenario]\nworkload = migration\nslots = a:0x200:4096\nrounds = 6\npages_max = 300\nloads = 3\n' >"$dir/loads.ini"
sed 's/loads = 3/loads = 0/' "$dir/loads.ini" >"$dir/stores.ini"
dirty_pages() { # KIND SCENARIO
	replay 0 --scenario "$2" --dirty mask --profile unit --check --csv --host-memory "$1" &&
		awk -F, 'NR > 1 { n += $4 } END { print n }' "$dir/out"
}
for kind in present shared anonymous; do
	dirty_pages $kind "$dir/loads.ini" >"$dir/$kind.loads"
	dirty_pages $kind "$dir/stores.ini" >"$dir/$kind.stores"
	ok "host memory $kind: something is dirty" [ "$(cat "$dir/$kind.stores")" -gt 100 ]
done
ok 'absent shared memory is dirty when it is read' cmp -s "$dir/present.loads" "$dir/shared.loads"
ok 'the zero page is not' [ "$(cat "$dir/anonymous.loads")" -lt "$(cat "$dir/shared.loads")" ]
ok 'stores are, shared' cmp -s "$dir/present.stores" "$dir/shared.stores"
ok 'stores are, anonymous' cmp -s "$dir/present.stores" "$dir/anonymous.stores"
refuses 'anonymous memory of 1 GiB pages' 2 'no pages larger than 2 MiB' --scenario "$dir/loads.ini" \
	--dirty mask --profile unit --host-memory anonymous --host-pages 1g
refuses 'no such memory' 2 'host-memory' --scenario "$dir/loads.ini" --dirty mask --profile unit \
	--host-memory none

ok 'a policy that loses stores is caught' replay 1 --scenario "$dir/four.ini" --dirty lossy \
	--profile unit --check
ok 'a policy that loses stores: one line' one_line
ok 'a policy that loses stores is caught, --check or not' replay 1 --scenario "$dir/four.ini" \
	--dirty lossy --profile unit
ok 'a policy that loses stores: which' says '^kvmsim: policy lossy (broken on purpose): [0-9]* stores' err

ok 'another CPU' replay 0 "$trace" "$@" --slot vram --cpu amd
ok 'another CPU: said' says ' under mask, preset 6.1-shadow, MMU npt0-flat32, CPU amd, priced as unit$' out
ok 'another CPU: nothing was measured there' says '^Evidence for mask: none on npt0-flat32\.$' out
ok 'another CPU, JSON' replay 0 "$trace" "$@" --slot vram --cpu amd --json
ok 'another CPU, JSON: said' says '"cpu": "amd"' out
# A TLB that survives exits walks less.
walks() { awk '/"tlb_walk": \{/ { getline; gsub(/[^0-9]/, ""); print; exit }' "$dir/out"; }
amd=$(walks)
replay 0 "$trace" "$@" --slot vram --json
ok 'another CPU: fewer walks' [ "${amd:-0}" -lt "$(walks)" ]

# Two pages of a device in turn, and one store to memory: spte policies say what each access costs.
{
	echo '1000 0 M 1 0'
	echo '1004 0 S a5'
	i=1010
	while [ $i -lt 1110 ]; do
		echo "$i 0 w febc3 e1000+mmio+818"
		echo "$((i + 5)) 0 w febc4 e1000+mmio+0"
		i=$((i + 10))
	done
	echo '1200 0 M 0 0'
} >"$dir/device.tr"
run 0 import -o "$dir/device.kvt" "$dir/device.tr"
count() { awk -v c="\"$1\": {" '$0 ~ c { getline; gsub(/[^0-9]/, ""); print; exit }' "$dir/out"; }
device() { # POLICY PAGE_FAULTS SLOTS_SEARCHED SPTES_LOOKED_AT
	device_policy=$1
	ok "a device: $1" replay 0 "$dir/device.kvt" --dirty mask --profile unit --spte "$1" \
		--json --check
	ok "a device: $device_policy: said" says "\"spte\": \"$device_policy\"" out
	ok "a device: $device_policy: exits" [ "$(count mmio_exit)" = 20 ]
	ok "a device: $device_policy: faults" [ "$(count page_fault)" = "$2" ]
	ok "a device: $device_policy: searches" [ "$(count emulator_slot)" = "$3" ]
	ok "a device: $device_policy: sptes" [ "$(count mmio_spte_check)" = "$4" ]
}
device none 21 20 0
device vcpu-cache 21 0 0
device mmio-spte 3 0 18
device mmio-gen,gen-bits=5 3 0 18
ok 'no device' replay 0 "$trace" --dirty mask --profile unit --spte none
ok 'no device: a note' says '^kvmsim: warning: spte policy none: no access of a device and no shadowed' err
ok 'no device, prefetch' replay 0 "$trace" --dirty mask --profile unit --spte none,prefetch=1
ok 'no device, prefetch: no note' [ "$(grep -c 'spte policy' "$dir/err")" -eq 0 ]
ok 'a device: no note' replay 0 "$dir/device.kvt" "$@" --spte none
ok 'a device: no note: quiet' [ "$(grep -c 'spte policy' "$dir/err")" -eq 0 ]
ok 'a device: evidence' replay 0 "$dir/device.kvt" "$@" --spte mmio-gen
ok 'a device: evidence: said' says '^Evidence for spte policy mmio-gen: oracle-exact on npt0-flat32' out
refuses 'unknown spte policy' 2 'none, vcpu-cache, mmio-spte, mmio-gen, stale' "$trace" "$@" \
	--spte mask
refuses 'unknown spte parameter' 2 'gen-bits' "$trace" "$@" --spte mmio-gen,gen-bits=1
refuses 'spte policy and store' 2 'excludes' "$trace" "$@" --spte none --store "$dir/no.db"
ok 'kept' replay 0 "$trace" "$@" --slot vram --store "$dir/runs.db"
ok 'kept, of another CPU' replay 0 "$trace" "$@" --slot vram --cpu amd --store "$dir/runs.db"
ok 'kept: twice' run 0 store "$dir/runs.db" check
ok 'kept: whole' says '^2 runs, all whole$' out
ok 'kept: list' run 0 store "$dir/runs.db" list --csv
ok 'kept: the CPUs' [ "$(cut -d, -f7 "$dir/out" | tr '\n' ' ')" = 'cpu tcg amd ' ]
bad 'nowhere to keep' 4 replay "$trace" "$@" --store "$dir/no/such.db"

ok 'another seed' replay 0 --scenario workloads/migration.ini "$@" --json --seed 2
replay 0 --scenario workloads/migration.ini "$@" --json --seed 3
cp "$dir/out" "$dir/first.json"
replay 0 --scenario workloads/migration.ini "$@" --json --seed 2
ok 'another seed: another guest' sh -c "! cmp -s '$dir/out' '$dir/first.json'"

kvmsim_path=$(realpath "$kvmsim") trace_path=$(realpath "$trace")
ok 'built-in profiles from any folder' sh -c \
	"cd '$dir' && '$kvmsim_path' replay '$trace_path' --dirty mask --profile tcg-icount --csv >out"

refuses 'no trace' 2 'expected one TRACE' "$@"
refuses 'two traces' 2 "unexpected argument" "$trace" "$trace" "$@"
refuses 'no policy' 2 'dirty is missing' "$trace" --profile unit
refuses 'no profile' 2 'profile is missing' "$trace" --dirty mask
refuses 'unknown policy' 2 'mask' "$trace" --dirty nonsense --profile unit
refuses 'unknown parameter' 2 'nonsense' "$trace" --dirty mask,nonsense=1 --profile unit
refuses 'unknown profile' 2 'tcg-icount' "$trace" --dirty mask --profile nonsense
refuses 'missing profile' 3 'No such file' "$trace" --dirty mask --profile "$dir/none.ini"
refuses 'unknown preset' 2 '6.1-shadow' "$trace" "$@" --kernel nonsense
refuses 'unknown slot' 2 'vram' "$trace" "$@" --slot nonsense
refuses 'interval of no epochs' 2 'not a multiple' "$trace" "$@" --interval 40000000
refuses 'unknown CPU' 2 'tcg, amd' "$trace" "$@" --cpu nonsense
refuses 'no number' 2 '--seed -1: expected a whole number' "$trace" "$@" --seed=-1
refuses 'missing trace' 3 'No such file' "$dir/none.kvt" "$@"
: >"$dir/empty.kvt"
refuses 'empty trace' 3 'empty.kvt' "$dir/empty.kvt" "$@"
printf 'Z%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 \
	31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 \
	61 62 63 64 >"$dir/junk.kvt"
refuses 'junk' 3 'junk.kvt' "$dir/junk.kvt" "$@"
{ head -c 8 "$trace" && printf '\377' && tail -c +10 "$trace"; } >"$dir/newer.kvt"
refuses 'newer version' 3 'newer.kvt' "$dir/newer.kvt" "$@"
printf '[scenario]\nworkload = migration\nslots = a:0:9000\nrounds = 1\ncolour = 3\n' >"$dir/s.ini"
refuses 'scenario: unknown key' 3 "s.ini:5: unknown key 'colour'" --scenario "$dir/s.ini" "$@"
refuses 'a parameter out of range' 2 'expected a whole number' "$trace" --profile unit \
	--dirty hybrid,threshold=x
# What a file says is wrong: 3, and the file is named.
scenario() { # NAME WORDS LINE...: more lines of a scenario
	scenario_name=$1 words=$2
	shift 2
	printf '[scenario]\nslots = a:0:9000\nrounds = 1\n' >"$dir/s.ini"
	printf '%s\n' "$@" >>"$dir/s.ini"
	refuses "scenario: $scenario_name" 3 "s.ini.*$words" --scenario "$dir/s.ini" \
		--dirty mask --profile unit
}
scenario 'no such workload' "no workload 'games'" 'workload = games'
scenario 'no such preset' 'preset = 9.9' 'workload = migration' 'preset = 9.9'
scenario 'bounds in the wrong order' 'pages_min is above' 'workload = migration' \
	'pages_min = 9' 'pages_max = 8'
scenario 'more than the slot has' 'pages_max . hot' 'workload = migration' 'hot = 9000'
scenario 'unknown section' 'unknown section .roundz.' 'workload = migration' '[roundz]' 'round = 1' \
	'round = 2'
scenario 'what a terminal would obey' "no workload '.x1b.31mred'" "workload = $(printf '\033')[31mred"
printf '[machine]\nunit = cycles\n[param]\nl2_bytes = 640\nl2_ways = 3\n' >"$dir/ways.ini"
refuses 'profile: cache sets' 3 'ways.ini: the private cache' "$trace" --dirty mask \
	--profile "$dir/ways.ini"

head -c 60000 "$trace" >"$dir/torn.kvt"
ok 'torn trace' replay 0 "$dir/torn.kvt" "$@"
ok 'torn trace: one line says so' [ "$(wc -l <"$dir/err")" -eq 1 ]
ok 'torn trace: and the table' says 'torn' out

head -c 900 "$trace" >"$dir/stub.kvt"
ok 'no whole block' replay 3 "$dir/stub.kvt" "$@"
ok 'no whole block: why' says 'stub.kvt: cannot tell: it is torn in its first block$' err
ok 'no whole block: no output' [ ! -s "$dir/out" ]
printf '100 0 M 1 5\n200 0 r fed00 a+0\n300 0 M 0 6\n' >"$dir/mmio.tr"
run 0 import -o "$dir/mmio.kvt" "$dir/mmio.tr"
refuses 'no stores' 3 'mmio.kvt: cannot tell: stores to memory were not recorded' "$dir/mmio.kvt" "$@"
refuses 'an interval too long' 3 'cannot tell: 357 epochs .* is due after 400 epochs (interval 400, phase 0)$' "$trace" "$@" --interval 12000000000

if [ -w /dev/full ]; then
	"$kvmsim" replay "$trace" "$@" --json >/dev/full 2>"$dir/err"
	code=$?
	: >"$dir/out"
	ok 'full disk' [ $code -eq 4 ]
	ok 'full disk: one line' one_line
else
	echo "replay: full disk: skipped: no /dev/full"
	skipped=$((skipped + 2))
fi

# What the profile does not price is said: D-clearing on kvm-pvm, but nothing of mask's calls.
# shellcheck disable=SC2086 # words
pvm="--profile kvm-pvm --slot vram"
ok 'all priced' replay 0 "$trace" --dirty mask $pvm
ok 'all priced: quiet' quiet
ok 'not priced' replay 0 "$trace" --dirty pml --cpu intel --kernel 6.1-tdp $pvm
ok 'not priced: a warning' one_warning 'profile kvm-pvm prices none of clear_dirty, tdp_walk'
ok 'not priced: in the report' says "^Not priced by profile kvm-pvm: in the log's operations clear_dirty, tdp_walk" out
ok 'not priced, JSON' replay 0 "$trace" --dirty pml --cpu intel --kernel 6.1-tdp $pvm --json
tr -d ' \n' <"$dir/out" >"$dir/flat"
ok 'not priced, JSON: of the log' says '"not_priced_collecting":\["clear_dirty","tdp_walk"' flat
ok 'not priced, JSON: all' says '"not_priced":\[[^]]*"pml_log"' flat
ok 'not priced, CSV' replay 0 "$trace" --dirty pml --cpu intel --kernel 6.1-tdp $pvm --csv
ok 'not priced, CSV: a warning' one_warning 'profile kvm-pvm prices none of clear_dirty'

# Rings are collected and reset, there is no GET.
ok 'rings' replay 0 "$trace" --dirty ring --profile unit
ok 'rings: what a call is' says '^Collect and reset rings every' out
ok 'manual' replay 0 "$trace" --dirty manual --profile unit
ok 'manual: what a call is' says '^GET_DIRTY_LOG and CLEAR_DIRTY_LOG every' out

# Under shadow paging there is no log of the CPU's.
for policy in pml manual,pml=1 ring,pml=1; do
	ok "fallback, $policy" replay 0 "$trace" --dirty $policy --profile unit --cpu intel
	ok "fallback, $policy: a note" says \
		"^kvmsim: warning: dirty policy $policy: under shadow paging (npt0-flat32)" err
	ok "no fallback, $policy" replay 0 "$trace" --dirty $policy --profile unit --cpu intel \
		--kernel 6.1-tdp
	ok "no fallback, $policy: no note" [ "$(grep -c 'shadow paging' "$dir/err")" -eq 0 ]
done

# A scenario's log may be all slots by name.
printf '[scenario]\nworkload = migration\nslots = a:0:8192 b:65536:64\nrounds = 4\nlog = all\n' >"$dir/all.ini"
ok 'log = all' replay 0 --scenario "$dir/all.ini" "$@"
ok 'log = all: both' sh -c "grep -q '^a  *8,192 ' '$dir/out' && grep -q '^b  *64 ' '$dir/out'"
sed 's/^log = .*/log = c/' "$dir/all.ini" >"$dir/none.ini"
refuses 'log: no such slot' 3 'none.ini:5: ' --scenario "$dir/none.ini" "$@"

# A kernel whose faults had the sequence of invalidations pass an int hangs its vCPUs past 2^31 of
# them, and that is seen; one that keeps all of it goes on.
printf '[scenario]\nworkload = migration\nslots = a:0:8192\nrounds = 2\n' >"$dir/hang.ini"
refuses 'livelock' 1 'livelock: task vcpu0 at [0-9]* cycles: .* sign-extended' \
	--scenario "$dir/hang.ini" --kernel 6.2-tdp --invalidations 2147483648 "$@"
ok 'livelock: not before' replay 0 --scenario "$dir/hang.ini" --kernel 6.2-tdp \
	--invalidations 2147483647 "$@"
ok 'livelock: not with 64 bits' replay 0 --scenario "$dir/hang.ini" --kernel 6.1-tdp \
	--invalidations 2147483648 "$@"

# A guest that lasts until it is told to stop.
printf '[scenario]\nworkload = migration\nslots = a:0:100000\nrounds = 10000000\n' >"$dir/long.ini"
for signal in INT TERM; do
	"$kvmsim" replay --scenario "$dir/long.ini" "$@" --json >"$dir/out" 2>"$dir/err" &
	pid=$!
	catching $pid
	kill -$signal $pid
	wait $pid
	ok "SIG$signal" [ $? -eq 130 ]
	ok "SIG$signal: one line, no output" one_line
done

the_end
