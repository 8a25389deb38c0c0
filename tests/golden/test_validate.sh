#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kvmsim validate and calibrate on the committed evidence: the bounds hold, the profiles are what
# calibrate writes, bad input is refused in one line.
#   test_validate.sh BUILDDIR
set -u
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT INT TERM
kvmsim=$(cd "$1" && pwd)/kvmsim
evidence=analysis/evidence
passed=0 failed=0 skipped=0

ok() {
	if [ "$2" = 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $1"
		[ -f "$dir/out" ] && tail -n 5 "$dir/out"
		[ -f "$dir/err" ] && tail -n 5 "$dir/err"
	fi
}

# expect NAME CODE WORDS COMMAND...: exit status and a piece of what it says
expect() {
	name=$1 code=$2 words=$3
	shift 3
	"$@" >"$dir/out" 2>"$dir/err"
	rc=$?
	[ "$rc" -eq "$code" ]
	ok "$name: exit $rc, not $code" $?
	cat "$dir/out" "$dir/err" | grep -qF -e "$words"
	ok "$name: '$words' is not said" $?
}

one_line() {
	[ "$(wc -l <"$dir/err")" -eq 1 ]
	ok "$name: not one line of error" $?
}

case ${kvmsim%/kvmsim} in
*/debug)
	# The sanitizers make the large slots slow: the small rows stand for them.
	grep -v 'npages=261888' $evidence/kvm_pvm.csv >"$dir/small.csv"
	expect 'rows of the small slot' 0 'pass' "$kvmsim" validate --recipe $evidence/kvm_pvm.ini \
		--evidence "$dir/small.csv"
	;;
*)
	expect 'committed evidence' 0 'pass' "$kvmsim" validate
	cp "$dir/out" "$dir/first"
	! grep -q 'FAIL\|NO ' "$dir/out"
	ok 'a bound is broken' $?
	for p in core2-2010:threads_2010_2013 kvm-pvm:kvm_pvm; do
		expect "calibrate ${p%%:*}" 0 'rows; root mean square' "$kvmsim" calibrate \
			--recipe "$evidence/${p#*:}.ini" -o "$dir/p.ini"
		cmp -s "$dir/p.ini" "model/profiles/${p%%:*}.ini"
		ok "${p%%:*}.ini is not what calibrate writes" $?
	done
	# A measurement that is twice what the model says breaks the bounds: the judge can fail.
	sed 's/nr_dirty,80,mask,16688/nr_dirty,80,mask,33376/' $evidence/threads_2010_2013.csv |
		grep -v ',orig,' | grep -v 'npages=261888' >"$dir/doubled.csv"
	expect 'a doubled measurement' 1 'FAIL' "$kvmsim" validate \
		--recipe $evidence/threads_2010_2013.ini --evidence "$dir/doubled.csv"
	;;
esac

expect 'no such recipe' 3 'none.ini' "$kvmsim" validate --recipe "$dir/none.ini"
one_line
expect 'evidence without a recipe' 2 'needs a --recipe' "$kvmsim" validate --evidence x.csv
printf '[evidence]\nfile = x.csv\ncolour = red\n' >"$dir/bad.ini"
expect 'an unknown key' 3 'bad.ini:3: [evidence] has no colour' "$kvmsim" calibrate \
	--recipe "$dir/bad.ini"
one_line
: >"$dir/empty.csv"
expect 'empty evidence' 3 'empty.csv' "$kvmsim" validate --recipe $evidence/kvm_pvm.ini \
	--evidence "$dir/empty.csv"
one_line
sed 's/fitted = 5/fitted = 4/' $evidence/kvm_pvm.ini >"$dir/four.ini"
expect 'more numbers than allowed' 3 '5 numbers are fitted' "$kvmsim" calibrate \
	--recipe "$dir/four.ini" --evidence $evidence/kvm_pvm.csv
one_line
sed 's/^fit = .*/fit = 8 80 375/' $evidence/kvm_pvm.ini >"$dir/few.ini"
expect 'fewer rows than numbers' 3 '3 rows do not carry 5 fitted numbers' "$kvmsim" calibrate \
	--recipe "$dir/few.ini" --evidence $evidence/kvm_pvm.csv
one_line
expect 'calibrate without a recipe' 2 '--recipe FILE.ini is needed' "$kvmsim" calibrate
echo "test_validate: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
