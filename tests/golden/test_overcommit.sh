#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kvmsim overcommit and sweep: known shares, the same with any number of processes, what is refused.
. "$(dirname "$0")/lib.sh"

profile=westmere-ex-2013

# JSON's number after a key, the first one, to a test: value REGEX MIN MAX
between() { # KEY MIN MAX
	v=$(grep -m 1 "\"$1\":" "$dir/out" | grep -oE -- '-?[0-9.]+([eE][-+]?[0-9]+)?,?$' | tr -d ,)
	awk -v v="$v" -v lo="$2" -v hi="$3" 'BEGIN { exit !(v != "" && v >= lo && v <= hi) }'
}
same() { cmp -s "$dir/$1" "$dir/$2"; }

# ---- two vCPUs that are always busy on one pCPU: each is off it half of the time ----
ok 'two busy VMs' run 0 overcommit --profile $profile --workload busy --vcpus 1 --pcpus 1 \
	--overcommit 2 --time 1000 --guest-hz 0 --json
ok 'two busy VMs: steal is half' between steal 0.99 1.01
ok 'two busy VMs: no idle time' between idle 0 0.001
# alone: all the pCPU, and twice of that
ok 'busy, 1 and 2' run 0 overcommit --profile $profile --workload busy --vcpus 2 --pcpus 2 \
	--overcommit 1..2 --time 1000 --guest-hz 0 --csv
tail -n 1 "$dir/out" | tr , '\n' | sed -n 5p >"$dir/relative"
ok 'busy at 2x: half' awk '{ exit !($1 > 0.49 && $1 < 0.505) }' "$dir/relative"
# beside idle ones nothing is lost
ok 'busy beside idle' run 0 overcommit --profile $profile --workload busy --beside idle --vcpus 2 \
	--pcpus 2 --vms 1,3 --time 200 --csv
tail -n 1 "$dir/out" | tr , '\n' | sed -n 5p >"$dir/relative"
ok 'busy beside idle: as alone' awk '{ exit !($1 > 0.999 && $1 < 1.001) }' "$dir/relative"

# ---- dbench: as many acquisitions as were recorded, 352.07 per million instructions ----
ok 'dbench' run 0 overcommit --profile $profile --vcpus 2 --pcpus 2 --lock ticket --time 50 --json \
	--check
jq -r '[.points[0].locks[].acquired] | add' "$dir/out" >"$dir/acquired"
jq -r '.points[0].counts.insn' "$dir/out" >>"$dir/acquired"
ok 'dbench: acquisitions' awk '{ n[NR] = $1 } END { r = n[1] / n[2] * 1e6 / 352.073
	exit !(r > 0.96 && r < 1.04) }' "$dir/acquired"

# ---- the same, whatever the number of processes ----
set -- overcommit --profile $profile --vcpus 2 --pcpus 2 --time 5 --overcommit 1..3 --replicates 2 --csv
ok 'one process' run 0 "$@"
cp "$dir/out" "$dir/one"
ok 'three processes' run 0 "$@" --jobs 3
ok 'the same' same one out
ok 'another seed' run 0 "$@" --seed 2
ok 'is another run' sh -c "! cmp -s '$dir/one' '$dir/out'"

# ---- locks as perf prints them ----
ok 'contention' run 0 overcommit --profile $profile --workload spin-micro,hold=2000 --vcpus 4 --pcpus 4 \
	--time 5 --contention
ok 'contention: the lock' says 'spinlock  *spin_task  *spin-micro ' out

# ---- every workload runs, checked ----
for w in kernbench,insns=500,faults=50,lookups=50 ebizzy hackbench pipe exec mutex-micro; do
	ok "$w" run 0 overcommit --profile $profile --workload $w --vcpus 4 --pcpus 4 --overcommit 1..2 \
		--time 20 --check --csv
	ok "$w: gets something done" awk -F, 'NR > 1 && $4 <= 0 { bad = 1 } END { exit bad || NR != 3 }' \
		"$dir/out"
done

# ---- sweep ----
set -- sweep --profile $profile --policy ticket --policy pvticket --vary overcommit=1..2 --vcpus 2 \
	--pcpus 2 --time 5 --warm-up 1 --replicates 2
ok 'sweep' run 0 "$@"
ok 'sweep: a line per point' [ "$(grep -cE '^ *[12]  (ticket|pvticket) ' "$dir/out")" -eq 2 ]
ok 'sweep: what it is worth' says '^Real machines: 10 runs of each policy that scatter by 5%' out
ok 'sweep, JSON' run 0 "$@" --json
cp "$dir/out" "$dir/one"
ok 'sweep, three processes' run 0 "$@" --json --jobs 3
ok 'sweep: the same' same one out
ok 'sweep, CSV' run 0 "$@" --csv
ok 'sweep, CSV: rows' [ "$(wc -l <"$dir/out")" -eq 5 ]
# a policy against itself differs in nothing
ok 'sweep: the same policy twice' run 0 sweep --profile $profile --policy ticket --policy ticket \
	--vary vms=1,2 --vcpus 2 --pcpus 2 --time 2 --replicates 2 --spread 0 --json
ok 'sweep: all the same' [ "$(grep -c '"verdict": "all the same"' "$dir/out")" -eq 2 ]

# ---- refused ----
bad 'no profile' 2 overcommit
bad 'no such workload' 2 overcommit --profile $profile --workload nosuch
ok 'no such workload: which there are' says 'dbench, kernbench' err
bad 'no such parameter' 2 overcommit --profile $profile --workload dbench,nosuch=1
bad 'out of range' 2 overcommit --profile $profile --workload dbench,clients=x
bad 'idle alone' 2 overcommit --profile $profile --workload idle
bad 'no such lock' 2 overcommit --profile $profile --lock nosuch
bad 'no whole number of VMs' 2 overcommit --profile $profile --vcpus 3 --pcpus 4
bad 'a list' 2 overcommit --profile $profile --overcommit 4..1
bad 'both' 2 overcommit --profile $profile --overcommit 1 --vms 1
bad 'LLC' 2 overcommit --profile $profile --llc 5
sed '/^hz/d' "$(dirname "$0")/../../model/profiles/unit.ini" >"$dir/no-hz.ini"
bad 'no hz' 3 overcommit --profile "$dir/no-hz.ini"
bad 'no locks needed' 2 overcommit --profile $profile --workload busy --locks /dev/null
bad 'locks: none' 3 overcommit --profile $profile --locks /dev/null
bad 'sweep: one policy' 2 sweep --profile $profile --policy ticket --vary vms=1..2
bad 'sweep: nothing varies' 2 sweep --profile $profile --policy ticket --policy pvticket
bad 'sweep: no such key' 2 sweep --profile $profile --policy ticket --policy pvticket --vary nosuch=1
bad 'sweep: out of range' 2 sweep --profile $profile --policy ticket --policy pvticket --vary vms=0..2
bad 'sweep: --lock' 2 sweep --profile $profile --lock ticket --policy ticket --policy pvticket --vary vms=1
the_end
