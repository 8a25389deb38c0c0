#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# validate of cells: rows of overcommitted VMs, each predicted by runs of overcommit. What busy vCPUs
# get is known without a model: so many CPUs over so many vCPUs.
#   test_cells.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
export LC_ALL=C

cat >"$dir/r.ini" <<'E2'
[cells]
file = rows.csv
runs = runs.csv
profile = unit
options = --workload busy --lock ticket --vcpus 2 --pcpus 2 --guest-hz 0 --time 60 --warm-up 60
fitted = 0
median = 20
signs = 95
sd = 5
replicates = 1
E2
cat >"$dir/runs.csv" <<'E2'
series,metric,policy,x,kind,options,base,quantity,fit,note
share,rate,a,*,modelled,--vms {x},,rate,no,
share,time,a,*,modelled,--vms {x},,time,no,
share,gain,b,*,modelled,--vms 1,--vms {x},gain,no,
share,stated,*,*,derived,,,gain a c,no,
share,rate,c,*,modelled,--vms 4,,rate,no,
other,*,*,*,out,,,rate,no,nobody knows
E2
cat >"$dir/rows.csv" <<'E2'
topic,series,metric,unit,x,policy,value,stdev
t,share,rate,ops/s,1x,a,100,1%
t,share,rate,ops/s,2x,a,50,1%
t,share,rate,ops/s,4x,a,30,1%
t,share,rate,ops/s,2x,c,20,1%
t,share,time,s,1x,a,7,
t,share,time,s,4x,a,28,
t,share,gain,%,2x,b,100,
t,share,stated,%,2x,a_vs_c,150,
t,other,words,,1x,a,3,
E2
ok 'cells' run 0 validate --recipe "$dir/r.ini" --csv
# Of half the CPUs half the rate, of a quarter a quarter; four times the time; twice as fast is a gain
# of 100 %; half over a quarter is 100 %, too.
got() { awk -F, -v line="$1" '$2 == line { printf "%s %.3g", $8, $9 }' "$dir/out"; }
is() { [ "$(got "$1")" = "$2" ] || { echo "$(got "$1"), not $2" >>"$dir/err" && false; }; }
ok 'the first row scales' is 2 'predicted 100'
ok 'half of the CPUs' is 3 'predicted 50'
ok 'a quarter' is 4 'predicted 25'
ok 'another policy' is 5 'predicted 25'
ok 'a time' is 7 'predicted 28'
ok 'a gain' is 8 'predicted 100'
ok 'derived of two rows' is 9 'derived 100'
ok 'out of scope' is 10 'out of scope 0'
ok 'as JSON' run 0 validate --recipe "$dir/r.ini" --json
# Ratios: 2x and 4x over 1x (0 and 1/6 off), a over c at 2x (2 for 2.5: 1/5 off), the time's (0), the
# gain (0): the median of five is 0. Signs: a over c, the gain; both right.
ok 'judgement' says '"ratios": 5,' out
ok 'the worst' grep -Eq '"worst_error": 0\.(2|19999)' "$dir/out"
ok 'the median' grep -Eq '"median_error": (0\.0|[0-9.]+e-1[0-9]),' "$dir/out"
ok 'signs' says '"signs": 2,' out
ok 'right ones' says '"signs_right": 2,' out
ok 'twice the same' cmp -s "$dir/out" - <<E2
$("$kvmsim" validate --recipe "$dir/r.ini" --json)
E2
ok 'as a table' run 0 validate --recipe "$dir/r.ini"
ok 'why' says 'nobody knows' out
sed -i 's/,20,1%/,80,1%/' "$dir/rows.csv"
ok 'a wrong sign' run 1 validate --recipe "$dir/r.ini"
ok 'is missed' says 'signs right: 1 of 2: MISSED' out
printf '[miss]\nshare = known\n' >>"$dir/r.ini"
ok 'a known miss' run 0 validate --recipe "$dir/r.ini"
ok 'and why' says '^  known' out

bad 'a row that no run is for' 3 validate --recipe "$dir/r.ini" --evidence /dev/stdin <<E2
$(cat "$dir/rows.csv")
t,new,rate,ops/s,1x,a,1,
E2
ok 'names it' says ':11: .*runs.csv says nothing of this row' err
sed 's/,out,/,maybe,/' "$dir/runs.csv" >"$dir/bad.csv"
sed 's/runs.csv/bad.csv/' "$dir/r.ini" >"$dir/bad.ini"
bad 'no kind' 3 validate --recipe "$dir/bad.ini"
ok 'names the line' says 'bad.csv:7: maybe is no kind' err
sed 's/--vms 4,,rate/--vms 4,--vms 1,rate/' "$dir/runs.csv" >"$dir/bad.csv"
bad 'a base of a rate' 3 validate --recipe "$dir/bad.ini"
sed 's/--vms 4,,rate/--fms 4,,rate/' "$dir/runs.csv" >"$dir/bad.csv"
ok 'no option' run 3 validate --recipe "$dir/bad.ini"
sed 's/^sd = .*//' "$dir/r.ini" >"$dir/bad.ini"
bad 'no sd' 3 validate --recipe "$dir/bad.ini"

echo "$name_of_test: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
