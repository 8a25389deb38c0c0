#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The model against what kernels did when they were recorded (analysis/evidence/kernel), on sizes that
# the matrix does not have.
#   tests/golden/test_kernel_recorded.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
recorded=$(dirname "$0")/../../analysis/evidence/kernel
programs=$(dirname "$0")/../kernel/cases

for file in "$recorded"/*.csv; do
	name=${file##*/}
	case $name in cost-*) continue ;; esac # costs alone: test_matrix.sh has them
	check "$name" 0 ' 0 different, 0 not modelled' "$kvmsim" validate --matrix "$file" \
		--programs "$programs"
	# A result that is one more, as a harvest that found one more page, must be told.
	awk -F, -v OFS=, '$10 ~ "^res:" && $11 > 0 && !done { $11++; done = 1 } { print }' \
		"$file" >"$dir/altered.csv"
	check "$name, altered" 1 ', 1 different' "$kvmsim" validate --matrix "$dir/altered.csv" \
		--programs "$programs"
done

# Counts of work: one more, one that is not there, one that the model does not know; a mode likewise.
patched=$recorded/patched-6.1.0-57.csv
altered() { # NAME CODE WORDS AWK-PROGRAM
	awk -F, -v OFS=, "$4" "$patched" >"$dir/altered.csv"
	check "$1" "$2" "$3" "$kvmsim" validate --matrix "$dir/altered.csv"
}
altered 'one rmap head more' 1 ', 1 different' \
	'$10 == "work:rmap_head" && $11 > 0 && !done { $11++; done = 1 } { print }'
altered 'a count that is left out' 1 'work:walk_sp' \
	'$10 == "work:walk_sp" && $11 > 0 && !done { done = 1; next } { print }'
altered 'an unknown count' 1 'the model has no work:rmap_hat' '{ sub("work:rmap_head", "work:rmap_hat"); print }'
altered 'an unknown mode' 1 'kvm_mode 3' '$3 == "2" { $3 = "3" } { print }'

# The host's timer: what follows no rule is left out and listed; what an interrupt or a preemption
# adds to the totals is added to the prediction, and these are judged in every phase.
quick=$recorded/quick-6.1.0-57.csv
timer() { # NAME CODE WORDS AWK-PROGRAM [FILE]: k, and in_[] and pre[] of the phase's timer rows
	awk -F, -v OFS=, 'function key() { sub(/;?abs_after=[0-9]*/, "", $13)
			return $1 $2 $3 $4 $5 $6 $7 $8 $9 $13 }
		NR == FNR { if ($10 == "ev:kvm_exit[intr]") in_[key()] = $11
			if ($10 ~ "^stat:preemption_") pre[key()] = $11; next }
		{ line = $0; k = key(); $0 = line }'" $4" "$quick" "$quick" >"$dir/altered.csv"
	check "$1" "$2" "$3" "$kvmsim" validate --matrix "$dir/altered.csv"
}
timer 'as recorded' 0 '0 different, 0 not modelled (0 of them on a case and an MMU that are), 104 not' \
	'{ print }'
for row in 'ev:kvm_exit[intr]: 18 rows' 'stat:preemption_other: 70 rows' \
	'stat:preemption_reported: 16 rows'; do
	check "left out: $row" 0 "  $row (the host's timer)" "$kvmsim" validate --matrix "$quick"
done
check 'left out, as JSON' 0 '"quantity": "stat:preemption_other",' "$kvmsim" validate --json \
	--matrix "$quick"
for total in ev:kvm_exit ev:kvm_entry ev:kvm_fpu stat:exits stat:fpu_reload stat:host_state_reload; do
	timer "a phase without interrupts, $total altered" 1 ', 1 different' '
		$10 == "'$total'" && !(k in in_) && !(k in pre) && !done { $11++; done = 1 } { print }'
	timer "a phase without interrupts, $total not there" 1 ' (no row)' '
		$10 == "'$total'" && !(k in in_) && !(k in pre) && !done { done = 1; next } { print }'
done
for total in ev:kvm_exit ev:kvm_entry stat:exits stat:irq_exits; do
	timer "a phase with an interrupt, $total altered" 1 ', 1 of the prediction are the timer' '
		$10 == "'$total'" && in_[k] == 1 && !done { $11--; done = 1 } { print }'
done
timer 'a phase with a preemption, altered' 1 'of the prediction are the timer' '
	$10 == "stat:host_state_reload" && (k in pre) && !done { $11--; done = 1 } { print }'
timer 'one interrupt more' 1 ', 4 different' '
	$10 == "ev:kvm_exit[intr]" && !done { $11++; done = 1 } { print }'
timer 'an interrupt that is not there' 1 'stat:irq_exits: predicted 0, measured 1 (line' '
	$10 == "ev:kvm_exit[intr]" && $11 == 1 && !done { done = 1; next } { print }'
timer 'a preemption that is not there' 1 ', 1 different' '
	$10 ~ "^stat:preemption_" && !done { done = 1; next } { print }'
timer 'a file without totals' 0 '  ev:kvm_entry: 212 phases' '$10 != "ev:kvm_entry" { print }'

# Rows of this machine's /dev/kvm with another kernel's algorithms, and with one that there is not.
pvm=$recorded/kvm-pvm-6.18.csv
sed 's/cpl3+6.18/cpl3+6.1/' "$pvm" >"$dir/altered.csv"
check 'another kernel' 1 'pf_spurious: predicted' "$kvmsim" validate --matrix "$dir/altered.csv" \
	--programs "$programs"
sed 's/cpl3+6.18/cpl3+6.19/' "$pvm" >"$dir/altered.csv"
check 'a kernel without a preset has the nearest' 0 'Kernel 6.19, which kvm_mode names: preset 6.18-shadow.' \
	"$kvmsim" validate --matrix "$dir/altered.csv" --programs "$programs" --case U_flip
sed 's/cpl3+6.18/cpl3+newest/' "$pvm" >"$dir/altered.csv"
check 'no such kernel' 1 'kvm_mode cpl3+newest+' "$kvmsim" validate --matrix "$dir/altered.csv" \
	--programs "$programs" --case U_flip
sed 's/cpl3+6.18+/cpl3+6.18-/' "$pvm" >"$dir/altered.csv"
check 'a mode without a policy' 1 'kvm_mode cpl3+6.18-vcpu-cache' "$kvmsim" validate \
	--matrix "$dir/altered.csv" --programs "$programs" --case U_flip

# Op programs: without them their cases are not known; one that cannot be read is told.
mmio=$recorded/mmio-6.1.0-57.csv
check 'no programs' 1 'case V_mixed is not built in' "$kvmsim" validate --matrix "$mmio" --case V_mixed
mkdir "$dir/programs"
sed 's/^setup/sutep/' "$programs/V_mixed.ops" >"$dir/programs/V_mixed.ops"
check 'a program that cannot be read' 3 "V_mixed.ops:5: expected a statement, found 'sutep'" \
	"$kvmsim" validate --matrix "$mmio" --programs "$dir/programs"
sed 's/^case V_mixed/case V_moxed/' "$programs/V_mixed.ops" >"$dir/programs/V_mixed.ops"
check 'a program of another name' 3 'its case is called V_moxed' \
	"$kvmsim" validate --matrix "$mmio" --programs "$dir/programs"
sed 's/write4 mmio(9-i) i/write4 mmio(9) i/' "$programs/V_mixed.ops" >"$dir/programs/V_mixed.ops"
check 'another program' 1 'V_mixed,npt0-long64,stock,100,2m,-,,,write_all ' \
	"$kvmsim" validate --matrix "$mmio" --case V_mixed --programs "$dir/programs"

# What it costs, of which the profile was fitted on the reference matrix's rows alone: the recordings
# that are within its bounds (docs/fidelity.md has the others), and of those that are not, cases of
# guests with PAE and 32-bit tables, of slots that come, go and move, and a name for two phases.
costs() { # NAME ROWS ARGUMENT...: of a recording
	file=$recorded/$1-6.1.0-57.csv rows=$2
	shift 2
	check "costs, $rows rows of ${file##*/}" 0 "passed: $rows rows predicted" "$kvmsim" validate \
		--matrix "$file" --cost --programs "$programs" "$@"
}
costs ring 248
costs manual 252
costs huge 542
costs quick 70
costs modes 326 --case A,G_mixY,H,M_even,M_pdes
costs mmio 124 --case V_slots
costs mmio 84 --case V_move

the_end
