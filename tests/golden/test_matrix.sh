#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kvmsim validate --matrix: the model against an excerpt of the reference (matrix-abn.md), and the
# comparison itself against files with a known fault.
#   tests/golden/test_matrix.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
reference=$(dirname "$0")/matrix-abn.csv

validate() {
	"$kvmsim" validate --matrix "$@"
}

# the real kernel's counts and costs
check 'every count equal' 0 ' different, 0 not modelled' validate "$reference"
tdp=$(dirname "$0")/matrix-tdp.csv
huge=$(dirname "$0")/matrix-tdp-huge.csv
check 'every count of the TDP MMU equal' 0 'passed: 1,835 rows equal, 0 different, 0 not modelled' \
	validate "$tdp" --check
sed 's/^\(B,npt1-tdp1,2,.*,enable_log,ev:kvm_tdp_mmu_spte_changed\),4096,/\1,4097,/' "$tdp" \
	>"$dir/tdp.csv"
check 'an altered row of the TDP MMU' 1 'spte_changed: predicted 4096, measured 4097' \
	validate "$dir/tdp.csv" --case B
check 'every count of large pages on the TDP MMU equal' 0 \
	'passed: 777 rows equal, 0 different, 0 not modelled' validate "$huge" --check
# guests that write to their page tables: 6.1, and the preset 6.12 against 6.12
gzip -dc "$(dirname "$0")/matrix-f.csv.gz" >"$dir/f.csv"
check 'every count of changing tables equal' 0 'passed: 21,099 rows equal, 0 different, 0 not modelled' \
	validate "$dir/f.csv" --check
check 'another kernel has others' 1 'w8pte_inv_read_k1 stat:pf_taken: predicted 2, measured 1' \
	validate "$dir/f.csv" --case F_remap_inv --kernel 6.13
gzip -dc "$(dirname "$0")/matrix-f-6.12.csv.gz" >"$dir/f612.csv"
check 'every count of 6.12 equal' 0 'passed: 21,425 rows equal, 0 different, 0 not modelled' \
	validate "$dir/f612.csv" --kernel 6.12 --check
check 'no such kernel' 2 'a version was expected' validate "$dir/f.csv" --kernel newest
check 'costs are of 6.1' 2 'kernel does not go with it' validate "$reference" --cost --kernel 6.13
check 'the checkers are content' 0 'passed: ' validate "$reference" --case A,N --check
check 'as JSON' 0 '"different": 0,' validate "$reference" --json --case N
check 'no such case' 2 '--case none: tests/golden/matrix-abn.csv has A,B,N' validate "$reference" --case none

sed 's/^name = tcg-icount/name = other/' model/profiles/tcg-icount.ini >"$dir/other.ini"
# costs: the committed recipe makes the committed profile, which holds on what was not fitted
evidence=analysis/evidence/kernel
recipe=$evidence/cost.ini
check 'the committed prices' 0 same sh -c \
	"'$kvmsim' calibrate --recipe $recipe | cmp - model/profiles/tcg-icount.ini && echo same"
check 'at most 40 prices' 0 'fitted = 40' cat "$recipe"
check 'costs' 0 'passed: 1142 rows predicted: median error 1' validate $evidence/cost-6.1.0-57.csv --cost
check 'costs and crossovers' 0 'within 10 % (bound 95 %); crossovers within' validate "$reference" --cost
check 'nothing but fitted rows' 1 'FAILED: 0 rows predicted, cannot tell; crossovers within ' \
	validate "$tdp" --cost
check 'costs of one case' 0 'A     predicted' validate "$reference" --cost --case A
check 'costs as JSON' 0 '"within_10_percent": 100' validate "$reference" --cost --case A,N --json
check 'a profile of other prices fits nothing' 0 'N     predicted' validate "$reference" --cost \
	--case N --profile "$dir/other.ini"

# one small part for the faults: case A, slot 512, 2M guest PTEs
small=$dir/small.csv
head -n 1 "$reference" >"$small"
grep '^A,npt0-long64,stock,512,2m,' "$reference" >>"$small"
check 'the small part' 0 'passed: ' validate "$small"

key='A,npt0-long64,stock,512,2m,sequential,512,,populate_write'
sed "s/^\($key,ev:kvm_page_fault\),64,/\1,65,/" "$small" >"$dir/altered.csv"
line=$(grep -n "^$key,ev:kvm_page_fault," "$small" | cut -d: -f1)
check 'an altered row' 1 "$key ev:kvm_page_fault: predicted 64, measured 65 (line $line)" \
	validate "$dir/altered.csv"
check 'only that row' 1 'rows equal, 1 different' validate "$dir/altered.csv"

sed "s/^\($key,stat:pages_4k,512,.*abs_after=\)536/\1537/" "$small" >"$dir/gauge.csv"
check 'an altered gauge' 1 \
	"$key stat:pages_4k after the phase: predicted 536, measured 537" \
	validate "$dir/gauge.csv"

grep -v "^$key,ev:kvm_page_fault," "$small" >"$dir/removed.csv"
check 'a removed row' 1 "$key ev:kvm_page_fault: predicted 64, measured 0 (no row)" \
	validate "$dir/removed.csv"

sed 's/,setup,stat:pf_taken,3,delta,occurrence=4/,setup,stat:pf_taken,4,delta,occurrence=4/' \
	"$small" >"$dir/occurrence.csv"
check 'one VM of several' 1 '(occurrence 4) stat:pf_taken: predicted 3, measured 4' \
	validate "$dir/occurrence.csv"

# not modelled: a failure where the case and the MMU are, else only said
{ cat "$small"; echo "$key,stat:nonsense,1,delta,"; } >"$dir/unknown.csv"
check 'an unknown statistic' 1 'the model has no stat:nonsense: 1 rows' validate "$dir/unknown.csv"
{ cat "$small"; echo 'A,npt0-long64,stock,512,2m,-,,,nonsense,stat:exits,1,delta,'; } \
	>"$dir/phase.csv"
check 'an unknown phase' 1 'no such phase, key or occurrence: nonsense: 1 rows' \
	validate "$dir/phase.csv"
{ cat "$small"; echo 'Z,npt0-long64,stock,512,2m,-,,,setup,stat:pf_taken,1,delta,'; } \
	>"$dir/case.csv"
check 'another case' 0 'case Z is not built in, and no --programs DIR was given with its Z.ops: 1 rows' validate "$dir/case.csv"
{ cat "$small"; echo 'A,npt9,stock,512,2m,-,,,setup,stat:pf_taken,1,delta,'; } >"$dir/mmu.csv"
check 'another MMU' 0 'MMU npt9: 1 rows' validate "$dir/mmu.csv"
check 'only a case that is not modelled' 1 'FAILED: nothing compared: 0 rows equal' \
	validate "$dir/case.csv" --case Z
check 'only costs' 1 'FAILED: nothing compared' validate $evidence/cost-6.1.0-57.csv --case A

# op programs
programs=tests/kernel/cases
check 'an op program, and no folder' 1 'case V_slots is not built in' validate $evidence/mmio-6.1.0-57.csv
check 'an op program' 0 'passed: ' validate $evidence/mmio-6.1.0-57.csv --case V_slots --programs $programs
check 'not its folder' 1 'case V_slots is not built in, and there is no V_slots.ops: ' \
	validate $evidence/mmio-6.1.0-57.csv --case V_slots --programs "$dir"
bad 'no such folder' 2 validate --matrix "$reference" --programs "$dir/none"
ok 'no such folder: said' says '--programs .*/none: No such file or directory' err
bad 'a file for a folder' 2 validate --matrix "$reference" --programs "$small"
ok 'a file for a folder: said' says 'Not a directory' err

# What KVM refuses, or the guest has no room for, is told with its line.
{
	head -n 1 "$reference"
	echo 'X,npt0-long64,stock,700,4k,-,,,setup,stat:pf_taken,1,delta,'
} >"$dir/x.csv"
program() { # WORDS STATEMENT...: each a line, from the fourth on
	words=$1
	shift
	{ printf 'case X\nvm\nsetup\n'; printf '%s\n' "$@"; } >"$dir/X.ops"
	bad "$words" 3 validate --matrix "$dir/x.csv" --programs "$dir"
	ok "$words: said" grep -qF "X.ops:$words" "$dir/err"
}
program '4: a limit of 1 shadow pages: expected 64 or more' 'limit a 1'
program '4: slot 1 is not logged' 'get a 1'
program '4: there is no slot 3' 'get a 3'
program '4: slot 2: 0x20000001 is not a page' 'slot s 2 0x20000001 70'
program '4: slot 2: 5130 pages, it has 512' 'slot s 2 0x20000000 5130'
program '4: slot 9: expected 0 to 7' 'slot s 9 0x20000000 1'
program '4: slot 2 would overlap slot 1' 'slot s 2 test(699) 1'
program '4: slot 3 is not there to be deleted' 'slot s 3 0 0'
program '5: slot 2 has 4 pages, not read-only' 'slot s 2 0x20000000 4' 'slot t 2 0x20000000 4 read-only'
program '5: slot 2 has 4 pages, not read-only' 'slot s 2 0x20000000 4' 'slot t 2 0x20000000 5'
program '4: vcpu=1, and the VM has one vCPU' 'run a vcpu=1' hlt end
program '6: more accesses than the list of vCPU 0 has room for, 4095' 'run a' 'for i 0 4095' hlt end end
program '5: address 0x123456789: expected 32 bits' 'run a' 'read 0x123456789' end
program '5: more than 65536 statements' 'for i 0 99999999999' 'round i' end
program '4: loops of more than 65536 turns' 'for i 0 99999999999' end
program "4: expected an expression, found '99999999999999999999'" 'round 99999999999999999999'
program '4: setup comes once per vm' setup
program '4: a vm without setup' vm
program '4: 0x200000 is not in slot 0' 'set low(512) 1'
program "4: phase touch: vCPU 0: page fault of the guest's own at 0xe0200000" 'run touch' 'read mmio(512)' end
check 'an MMU left out' 0 'passed: ' validate "$reference" --case N --mmu npt1-tdp0

# unusable files
sed "s/^\($key,ev:kvm_page_fault\),64,/\1,many,/" "$small" >"$dir/text.csv"
check 'a value that is no number' 3 "text.csv:$line: value is 'many'" validate "$dir/text.csv"
gauge=$(grep -n "^$key,stat:pages_4k," "$small" | cut -d: -f1)
sed "${gauge}s/abs_after=[0-9]*//" "$small" >"$dir/bare.csv"
check 'a gauge without its value' 3 \
	"bare.csv:$gauge: stat:pages_4k: a note with abs_after= was expected" \
	validate "$dir/bare.csv"
end=$(($(wc -l <"$small") + 1))
{ cat "$small"; sed -n "${line}p" "$small"; } >"$dir/twice.csv"
check 'a row twice' 3 "twice.csv:$end: ev:kvm_page_fault: the same row as line $line;" \
	validate "$dir/twice.csv"
{ cat "$small"; sed -n "${line}s/,64,/,63,/p" "$small"; } >"$dir/twice-other.csv"
check 'a row twice, with two values' 3 "twice-other.csv:$end: " validate "$dir/twice-other.csv"
sed 's/,quantity,/,quantities,/' "$small" >"$dir/header.csv"
check 'a column missing' 3 "header.csv:1: no column 'quantity'" validate "$dir/header.csv"
{ cat "$small"; echo 'A,npt0'; } >"$dir/torn.csv"
check 'a torn row' 3 'fields, 13 expected' validate "$dir/torn.csv"
head -c 64 /dev/zero >"$dir/zero.csv"
check 'zeros' 3 'zero.csv:1: ' validate "$dir/zero.csv"
: >"$dir/empty.csv"
check 'an empty file' 3 'empty.csv:1: ' validate "$dir/empty.csv"
check 'no file' 3 'No such file' validate "$dir/none.csv"
check 'the matrix with a recipe' 2 'beside --matrix' validate "$small" --recipe x.ini
check 'costs in another unit' 2 'measured in instructions' validate "$small" --cost \
	--profile kvm-pvm
check 'no such MMU' 2 '--mmu foo: tests/golden/matrix-abn.csv has npt0-long64' \
	validate "$reference" --mmu foo
check 'a profile and nothing to price' 2 'are of --cost' validate "$reference" --profile unit
check 'a recipe and nothing to price' 2 'are of --cost' validate "$reference" --recipe $recipe
check 'a recipe without cases' 3 'needs a recipe with [cases]' validate "$reference" --cost \
	--recipe analysis/evidence/kvm_pvm.ini
grep -v insns_min "$small" >"$dir/counts.csv"
check 'no cost rows' 3 'no insns_min rows' validate "$dir/counts.csv" --cost

# costs that the model does not have
sed 's/^B,npt0-long64,0,4096,4k,/B,npt0-long64,0,0,4k,/' "$reference" >"$dir/none.csv"
check 'costs of no pages' 3 'a slot of 0 pages does not fit' validate "$dir/none.csv" --cost
sed 's/^\(A,.*,insns_min\),/\1,9/' "$reference" >"$dir/dear.csv"
check 'dearer rows' 1 'FAILED: 112 rows predicted' validate "$dir/dear.csv" --cost

# Each bound by itself: all rows of case A a little dearer, one of thirteen much so, or only walks,
# whose case is fitted.
dearer() { # AWK-CONDITION PERCENT
	awk -F, -v OFS=, "\$10 == \"insns_min\" && $1 { \$11 = int(\$11 * $2 / 100) } { print }" \
		"$reference" >"$dir/dear.csv"
}
dearer '$1 == "A"' 95
check 'all rows off a little' 1 \
	'FAILED: 112 rows predicted: median error 4.61 % (bound 3 %), 99.1 % within 10 % (bound 95 %)' \
	validate "$dir/dear.csv" --cost --case A
dearer '$1 == "A" && NR % 13 == 0' 150
check 'some rows off by much' 1 \
	'FAILED: 112 rows predicted: median error 0.95 % (bound 3 %), 92.9 % within 10 % (bound 95 %)' \
	validate "$dir/dear.csv" --cost --case A
dearer '$1 == "B" && $3 == 2' 104
check 'walks that cross elsewhere' 1 \
	'median error 0.94 % (bound 3 %), 100.0 % within 10 % (bound 95 %); crossovers within 23.' \
	validate "$dir/dear.csv" --cost

# the same every time
validate "$small" --json >"$dir/one.json"
validate "$small" --json >"$dir/two.json"
check 'the same output' 0 'same' sh -c "cmp '$dir/one.json' '$dir/two.json' && echo same"

the_end
