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
	catching $pid # and is soon among its pages
	sleep 0.3
	kill -$signal $pid
	wait $pid
	ok "SIG$signal" [ $? -eq 130 ]
	ok "SIG$signal: one line, no output" one_line
	ok "SIG$signal: which" says '^kvmsim: interrupted$' err
done
# ---- what was simulated, and what it rests on ----
set -- memstress --profile kvm-pvm -v 2 -b 1M
ok 'text' run 0 "$@"
ok 'text: what' says '^dirty_log_perf_test under manual,initially-all-set=1, preset 6.1-tdp, MMU npt1-tdp1, CPU tcg, priced as kvm_pvm' out
ok 'text: the selftest' says '^Iteration 1 dirty memory time: 0\.' out
ok 'text: evidence' says '^Evidence for manual,initially-all-set=1: oracle-exact on npt1-tdp1\.$' out
ok 'text: not priced' says "^Not priced by profile kvm-pvm: in the log's operations .*tdp_walk" out
ok 'text: warned once' [ "$(grep -c '^kvmsim: warning: profile kvm-pvm prices none of ' "$dir/err")" -eq 1 ]
ok 'JSON' run 0 "$@" --json
ok 'JSON: what' says '"mmu": "npt1-tdp1"' out
ok 'JSON: CPU' says '"cpu": "tcg"' out
ok 'JSON: evidence' says '"evidence": "oracle-exact"' out
tr -d ' \n' <"$dir/out" >"$dir/flat"
ok 'JSON: not priced' says '"not_priced":\[[^]]*"set_spte",[^]]*"tdp_walk"' flat
ok 'JSON: not priced of the log' says '"not_priced_collecting":\[[^]]*"tdp_walk"' flat
ok 'JSON: not of the log' sh -c "! grep -q '\"not_priced_collecting\":\[[^]]*\"set_spte\"' '$dir/flat'"
# the profile that prices everything has nothing to say of the log
ok 'all priced' run 0 memstress --profile unit -v 2 -b 1M -g
ok 'all priced: quiet' quiet

# ---- no log of the CPU's under shadow paging ----
for policy in pml manual,pml=1; do
	ok "fallback, $policy" run 0 memstress --profile unit -b 1M --cpu intel --mmu npt0-long64 --dirty $policy
	ok "fallback, $policy: a note" says "^kvmsim: warning: dirty policy $policy: under shadow paging (npt0-long64)" err
	ok "log, $policy" run 0 memstress --profile unit -b 1M --cpu intel --mmu npt1-tdp0 --dirty $policy
	ok "log, $policy: no note" [ "$(grep -c 'shadow paging' "$dir/err")" -eq 0 ]
done

# ---- what protects the MMU, and who waited for it: perf's table, which is read as a recorded one is ----
set -- memstress --profile cascadelake-2022 -v 4 -b 4M -i 1 -s anonymous_hugetlb_2mb --eager-page-split N
ok 'contention: faults one at a time' run 0 "$@" --mmulock spin --contention
ok 'contention: a row' says ' spinlock  direct_page_fault$' out
# A recorded caller is a return address: it has an offset.
sed -n '/^contended/,/^$/p' "$dir/out" | sed '2,$s/[a-z]$/&+0x1c/' >"$dir/table.txt"
ok 'contention: as a table of perf' run 0 info "$dir/table.txt"
ok 'contention: its rows' says '^direct_page_fault  *spinlock ' out
ok 'contention: faults side by side' run 0 "$@" --mmulock rwlock-tdp --contention --json
ok 'contention: none of theirs' [ "$(grep -c direct_page_fault "$dir/out")" -eq 0 ]
bad 'no such mmulock' 2 "$@" --mmulock ticket
ok 'no such mmulock: which there are' says 'there are spin, rwlock, rwlock-relax, rwlock-tdp' err
bad 'shadow pages by many' 2 "$@" --mmu npt1-tdp0 --kernel 6.1-shadow --mmulock rwlock-tdp
bad 'contention as csv' 2 "$@" --contention --csv
ok 'Arm without an interrupt controller of KVM' run 0 "$@" --kernel 5.18-arm64 --no-irqchip --contention
ok 'Arm: what its exits wait for' says ' irq_set_irqchip_state$' out

bad 'percent and fraction' 2 memstress --profile unit -f 3 -w 5
ok 'percent and fraction: which' says '-f and -w: one of the two' err
the_end
