#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kvmsim validate and calibrate on the committed evidence: the bounds hold, the profiles are what
# calibrate writes, bad input is refused in one line.
#   test_validate.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
evidence=analysis/evidence

case ${kvmsim%/kvmsim} in
*/debug)
	# The sanitizers make the large slots slow: the small rows stand for them.
	grep -v 'npages=261888' $evidence/kvm_pvm.csv >"$dir/small.csv"
	check 'rows of the small slot' 0 'pass' "$kvmsim" validate --recipe $evidence/kvm_pvm.ini \
		--evidence "$dir/small.csv"
	;;
*)
	check 'committed evidence' 0 'pass' "$kvmsim" validate
	cp "$dir/out" "$dir/first"
	ok 'no bound is broken' sh -c "! grep -q 'FAIL\|NO ' '$dir/out'"
	# What list calls published is a policy that a recipe predicts, within its bounds, with the
	# kernel's algorithms; and no policy whose rows only identify.
	"$kvmsim" list >"$dir/list"
	awk '$5 ~ /published/ || $6 ~ /published/ || $4 ~ /published/ { print $1, $2 }' "$dir/list" |
		sort >"$dir/published"
	for r in "$evidence"/*.ini; do
		grep -q '^\[evidence\]' "$r" || continue
		awk -v file="$(sed -n 's/^file = //p' "$r"): " \
			'index($0, file) { on = 1 } on && /rows not fitted/ { print; exit }' \
			"$dir/first" >"$dir/one"
		grep -q ': pass$' "$dir/one" || continue
		sed -n '/^\[policy\]/,/^$/s/^[a-z0-9]* = \([a-z-]*\)$/\1/p' "$r" |
			sed "s/\$/ $(sed -n 's/^preset = //p' "$r")/"
	done | sort >"$dir/predicted"
	ok 'something is published' [ -s "$dir/published" ]
	ok 'what is published is predicted' [ -z "$(comm -23 "$dir/published" "$dir/predicted")" ]
	for p in core2-2010:threads_2010_2013 kvm-pvm:kvm_pvm; do
		check "calibrate ${p%%:*}" 0 'rows; root mean square' "$kvmsim" calibrate \
			--recipe "$evidence/${p#*:}.ini" -o "$dir/p.ini"
		ok "${p%%:*}.ini is what calibrate writes" cmp -s "$dir/p.ini" \
			"model/profiles/${p%%:*}.ini"
	done
	# What MMIO sptes gained: each price is a difference of what a patched kernel spent (100 accesses a
	# phase; three levels of guest tables), two more of which are held out.
	cost() { # MMU MODE PHASE: instructions per access
		awk -F, -v mmu="$1" -v mode="mmio=$2" -v phase="$3" \
			'$2 == mmu && $3 == mode && $9 == phase && $10 == "insns_min" { print $11 / 100 }' \
			$evidence/kernel/mmio-cost-6.1.0-57.csv
	}
	turns() { # MMU: what an access more costs whose page another's took the place of
		echo "$(cost "$1" mmio-spte turns) $(cost "$1" mmio-spte read) $(cost "$1" mmio-spte write)" |
			awk '{ print $1 - ($2 + $3) / 2 }'
	}
	difference() { # MMU FROM TO
		echo "$(cost "$1" "$2" write) $(cost "$1" "$3" write)" | awk '{ print $1 - $2 }'
	}
	price() {
		sed -n "/^\[instructions\]/,/^\$/s/^$1 = //p" $evidence/mmio_2011.ini
	}
	near() { # A B PERCENT
		awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { d = a - b; exit !(a && d * d <= (a * p / 100) ^ 2) }'
	}
	slot=$(price emulator_slot) level=$(price guest_walk_level) fault=$(price page_fault)
	ok 'price of emulator_slot' near "$(difference npt1-tdp0 none vcpu-cache)" "$slot" 0.5
	ok 'price of guest_walk_level' near "$(difference npt0-long64 none vcpu-cache)" \
		$((slot + 3 * level)) 0.5
	ok 'price of page_fault' near "$(difference npt1-tdp0 vcpu-cache mmio-spte)" "$fault" 0.5
	ok 'price of mmio_spte_check' near "$(turns npt1-tdp0)" "$(price mmio_spte_check)" 0.5
	ok 'held out: a fault of shadow paging' near "$(difference npt0-long64 vcpu-cache mmio-spte)" \
		$((fault + 3 * level)) 5
	ok 'held out: turns under shadow paging' near "$(turns npt0-long64)" "$(price mmio_spte_check)" 5
	check 'MMIO sptes' 0 'mmio_2011.ini: pass' "$kvmsim" validate --recipe $evidence/mmio_2011.ini
	ok 'a gain that was measured' says '^EPT 8 June  *nested  *3, 3  *+2.47%' out
	ok 'known misses are told' says '^known miss, shadow 8 June: ' out
	check 'MMIO sptes: JSON' 0 '"verdict": "MISSED"' "$kvmsim" validate --json \
		--recipe $evidence/mmio_2011.ini
	check 'MMIO sptes: CSV' 0 ',MISSED' "$kvmsim" validate --csv --recipe $evidence/mmio_2011.ini
	sed '/^miss = /d' $evidence/mmio_2011.ini | sed 's|^scenario = .*|scenario = tcp_rr.ini|' \
		>"$dir/mmio.ini"
	cp workloads/tcp_rr.ini $evidence/mmio.csv $evidence/threads_2010_2013.csv "$dir/"
	check 'a miss that is not known' 1 'mmio.ini: FAILED' "$kvmsim" validate --recipe "$dir/mmio.ini"
	sed 's/^series = netperf_tcp_rr/series = netperf/' $evidence/mmio_2011.ini >"$dir/mmio.ini"
	check 'no such rows' 3 'block EPT 8 June: 0 runs before and 0 after' "$kvmsim" validate \
		--recipe "$dir/mmio.ini"
	ok 'one line' one_line
	# Runs of vCPUs: the series that have rows of few, each judged; rows that none of them says.
	check 'runs of 4 vCPUs' 0 'Populate memory time' "$kvmsim" validate --vcpus 4 --csv \
		--recipe $evidence/eager_split_dirty_log_perf.ini
	ok 'every row of the file' [ "$(grep -c '^analysis' "$dir/out")" = \
		"$(($(wc -l <$evidence/eager_split_dirty_log_perf.csv) - 1))" ]
	sed 's/,vcpus,2,eager_page_split=N/,vcpus,2,neither/' \
		$evidence/eager_split_dirty_log_perf.csv >"$dir/other.csv"
	check 'rows that no run predicts' 1 'says nothing of, passed over' "$kvmsim" validate \
		--vcpus 1 --recipe $evidence/eager_split_dirty_log_perf.ini --evidence "$dir/other.csv"
	ok 'nothing judged is no pass' says 'other.csv: nothing judged$' out
	ok 'and nowhere called one' sh -c "! grep -q 'pass$' '$dir/out'"
	# mmu_lock by vCPUs, all rows, and what is no time: a wrong policy, another saving.
	check 'mmu_lock on Arm' 0 'mmu_lock_scaling.csv: pass' "$kvmsim" validate \
		--recipe $evidence/mmu_lock_arm64.ini
	ok 'mmu_lock on Arm: 64 vCPUs' says '^dirty memory time .* 64 .* predicted$' out
	cp $evidence/mmu_lock_scaling.csv $evidence/mmu_lock_arm64_runs.csv \
		$evidence/mmu_lock_x86_runs.csv "$dir/"
	cp $evidence/mmu_lock_arm64.ini "$dir/arm64.ini"
	sed 's/--kernel 6.2-arm64/--kernel 6.2-arm64 --mmulock rwlock/' \
		$evidence/mmu_lock_arm64_runs.csv >"$dir/mmu_lock_arm64_runs.csv"
	check 'mmu_lock: faults that do not share it' 1 'mmu_lock_scaling.csv: FAIL' "$kvmsim" \
		validate --recipe "$dir/arm64.ini"
	sed 's/timer_state 16/timer_stat 16/' $evidence/mmu_lock_arm64_runs.csv \
		>"$dir/mmu_lock_arm64_runs.csv"
	check 'mmu_lock: a row that sets no price' 3 'sets is a param and numbers of vCPUs' \
		"$kvmsim" validate --recipe "$dir/arm64.ini"
	check 'mmu_lock on x86' 0 'mmu_lock_scaling.csv: pass' "$kvmsim" validate \
		--recipe $evidence/mmu_lock_x86.ini
	ok 'mmu_lock on x86: what is saved' says 'duration reduction .* 90\.262[0-9]* *89\.000000 ' out
	cp $evidence/mmu_lock_x86.ini "$dir/x86.ini"
	sed 's/--mmulock spin/--mmulock spin --cores 416/; s/ than .*--mmulock/ than --kernel 6.1-tdp --mmulock/' \
		$evidence/mmu_lock_x86_runs.csv >"$dir/mmu_lock_x86_runs.csv"
	check 'another saving' 0 'duration reduction ' "$kvmsim" validate --recipe "$dir/x86.ini"
	ok 'than what is compared' sh -c "! grep -q ' 90\.262' '$dir/out'"
	# The judge of times can fail.
	sed 's/,after,269231261,/,after,769231261,/' $evidence/dirty_logging_history.csv \
		>"$dir/history.csv"
	check 'a difference the wrong way round' 1 'history.csv: FAILED' "$kvmsim" validate \
		--recipe $evidence/dirty_logging_history.ini --evidence "$dir/history.csv"
	check 'a miss is called one' 0 'dirty_logging_history.csv: MISSED' "$kvmsim" validate \
		--recipe $evidence/dirty_logging_history.ini
	ok 'beside what was aimed at' says 'aimed at 20% and no wrong sign, fails beyond' out
	ok 'series of which nothing can be told' says '^srcu-less.* nothing judged$' out
	ok 'entries in a full log' says '^dirty GPAs per PML-full exit .* 512.000000  512.000000 ' out
	# What a recipe says of contention and of its number of fitted numbers is what it names.
	sed 's/^contended = 3/contended = 2/; s/^fitted = 17/fitted = 16/' \
		$evidence/eager_split_dirty_log_perf.ini >"$dir/recipe.ini"
	cp $evidence/eager_split_runs.csv "$dir/"
	rows=$evidence/eager_split_dirty_log_perf.csv
	check 'a param more than owned to' 3 'contention set 3 params, [bounds] contended says 2' \
		"$kvmsim" validate --recipe "$dir/recipe.ini" --evidence $rows
	ok 'one line' one_line
	sed 's/^fitted = 17/fitted = 18/' $evidence/eager_split_dirty_log_perf.ini \
		>"$dir/recipe.ini"
	check 'another number of fitted numbers' 3 '17 numbers are fitted, [bounds] fitted says 18' \
		"$kvmsim" validate --recipe "$dir/recipe.ini" --evidence $rows
	cp $evidence/eager_split_dirty_log_perf.ini "$dir/recipe.ini"
	sed 's/,memory_load_permille 32,/,,/' $evidence/eager_split_runs.csv \
		>"$dir/eager_split_runs.csv"
	check 'a param that no row sets' 3 'gives memory_load_permille, which no row of' \
		"$kvmsim" validate --recipe "$dir/recipe.ini" --evidence $rows
	sed 's/,memory_load_permille 32,/,memory_load 32,/' $evidence/eager_split_runs.csv \
		>"$dir/eager_split_runs.csv"
	check 'a row that sets no param' 3 'sets is a param and numbers of vCPUs' \
		"$kvmsim" validate --recipe "$dir/recipe.ini" --evidence $rows
	# A recipe that says other than the profile it names: "fitted" would be said of another fit.
	sed 's/^guest_pollution = 8/guest_pollution = 9/' $evidence/kvm_pvm.ini >"$dir/other.ini"
	check 'another param' 3 'has another guest_pollution, 8, and' "$kvmsim" validate \
		--recipe "$dir/other.ini" --evidence $evidence/kvm_pvm.csv
	sed 's/^page_fault = 6200/page_fault = 6201/' $evidence/kvm_pvm.ini >"$dir/other.ini"
	check 'another price' 3 'has another price of page_fault, 6200, and' "$kvmsim" validate \
		--recipe "$dir/other.ini" --evidence $evidence/kvm_pvm.csv
	sed 's/^llc_bytes = .*/llc_bytes = 4194304/' $evidence/kvm_pvm.ini >"$dir/other.ini"
	check 'not a value of the latent' 3 'has another llc_bytes, 8388608, and' "$kvmsim" validate \
		--recipe "$dir/other.ini" --evidence $evidence/kvm_pvm.csv
	ok 'one line' one_line
	# The profile's file: whole or not at all; what is no regular file stays what it is.
	recipe=$evidence/threads_2010_2013.ini
	mkfifo "$dir/fifo"
	cat "$dir/fifo" >"$dir/through" &
	check 'calibrate into a FIFO' 0 'rows; root' "$kvmsim" calibrate --recipe $recipe -o "$dir/fifo"
	wait $!
	ok 'a price has its unit' says '^group  *price, cycles ' out
	ok 'a group says what its price is of' says '^work .* write_protect\*109 rmap_spte\*43' out
	ok 'still a FIFO' [ -p "$dir/fifo" ]
	ok 'the same profile' cmp -s "$dir/through" model/profiles/core2-2010.ini
	check 'calibrate into no folder' 4 'cannot create' "$kvmsim" calibrate --recipe $recipe \
		-o "$dir/no/such/p.ini"
	ok 'one line' one_line
	if mknod "$dir/full" c 1 7 2>/dev/null &&
		echo x | LC_ALL=C dd of="$dir/full" 2>&1 | grep -q 'No space'; then
		check 'calibrate onto a full device' 4 'No space left' "$kvmsim" calibrate \
			--recipe $recipe -o "$dir/full"
		ok 'one line' one_line
		ok 'still a device' [ -c "$dir/full" ]
	else
		echo "validate: full device: skipped: no device can be made here"
		skipped=$((skipped + 3))
	fi
	# A measurement that is twice what the model says breaks the bounds: the judge can fail.
	sed 's/nr_dirty,80,mask,16688/nr_dirty,80,mask,33376/' $evidence/threads_2010_2013.csv |
		grep -v ',orig,' | grep -v 'npages=261888' >"$dir/doubled.csv"
	check 'a doubled measurement' 1 'FAILED' "$kvmsim" validate \
		--recipe $evidence/threads_2010_2013.ini --evidence "$dir/doubled.csv"
	;;
esac

check 'no such recipe' 3 'none.ini' "$kvmsim" validate --recipe "$dir/none.ini"
ok 'one line' one_line
sed 's/^mask = .*/mask = nonsense/' $evidence/kvm_pvm.ini >"$dir/policy.ini"
check 'a recipe with an unknown policy' 3 'no dirty policy "nonsense"' "$kvmsim" validate \
	--recipe "$dir/policy.ini" --evidence $evidence/kvm_pvm.csv
ok 'one line' one_line
check 'evidence without a recipe' 2 'needs a --recipe' "$kvmsim" validate --evidence x.csv
printf '[evidence]\nfile = x.csv\ncolour = red\n' >"$dir/bad.ini"
check 'an unknown key' 3 'bad.ini:3: [evidence] has no colour' "$kvmsim" calibrate \
	--recipe "$dir/bad.ini"
ok 'one line' one_line
: >"$dir/empty.csv"
check 'empty evidence' 3 'empty.csv' "$kvmsim" validate --recipe $evidence/kvm_pvm.ini \
	--evidence "$dir/empty.csv"
ok 'one line' one_line
sed 's/fitted = 5/fitted = 4/' $evidence/kvm_pvm.ini >"$dir/four.ini"
check 'more numbers than allowed' 3 '5 numbers are fitted' "$kvmsim" calibrate \
	--recipe "$dir/four.ini" --evidence $evidence/kvm_pvm.csv
ok 'one line' one_line
sed 's/^fit = .*/fit = 8 80 375/' $evidence/kvm_pvm.ini >"$dir/few.ini"
check 'fewer rows than numbers' 3 '3 rows do not carry 5 fitted numbers' "$kvmsim" calibrate \
	--recipe "$dir/few.ini" --evidence $evidence/kvm_pvm.csv
ok 'one line' one_line
# A signal in the middle: one line, nothing on standard output. That the measurements can be handed
# over says that the signal is caught already.
mkfifo "$dir/rows"
interrupted() { # NAME ROWS ARGUMENT...
	name=$1 rows=$2
	shift 2
	"$kvmsim" "$@" >"$dir/out" 2>"$dir/err" &
	pid=$!
	cat "$rows" >"$dir/rows"
	kill -TERM $pid
	wait $pid
	ok "$name, interrupted" [ $? -eq 130 ]
	ok "$name, interrupted: one line" one_line
	ok "$name, interrupted: says so" says 'interrupted' err
}
interrupted validate $evidence/kvm_pvm.csv validate --csv --recipe $evidence/kvm_pvm.ini \
	--evidence "$dir/rows"
interrupted 'validate --matrix' tests/golden/matrix-abn.csv validate --matrix "$dir/rows"
interrupted calibrate $evidence/kvm_pvm.csv calibrate --recipe $evidence/kvm_pvm.ini \
	--evidence "$dir/rows" -o "$dir/none.ini"
ok 'no profile, no half of one' sh -c "! ls '$dir'/none.ini* 2>/dev/null"
check 'calibrate without a recipe' 2 '--recipe FILE.ini is needed' "$kvmsim" calibrate
the_end
