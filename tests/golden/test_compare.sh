#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kvmsim compare on a recorded trace: the same with any -j, the same as replay, gates, bad input.
#   tests/golden/test_compare.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
here=$(dirname "$0")
compare() { # CODE ARGUMENT...: of the committed trace
	want_code=$1
	shift
	run "$want_code" compare "$trace" --slot vram "$@"
	set -- $?
	# lines that were broken are whole again
	awk 'NR > 1 { printf "%s", /^    [^ ]/ ? " " : "\n" } { sub(/^    /, ""); printf "%s", $0 }
		END { print "" }' "$dir/out" >"$dir/whole"
	return "$1"
}
same() { cmp -s "$dir/$1" "$dir/$2"; }
differ() { ! cmp -s "$dir/$1" "$dir/$2"; }
keep() { cp "$dir/out" "$dir/$1"; }
# Column $2 of the CSV row of metric $1.
field() {
	awk -F, -v m="$1" -v c="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) k = i }
		$3 == m { print $k; exit }' "$dir/out"
}
is() { [ "$(field "$1" "$2")" = "$3" ]; }

# A profile with uncertain prices: everything costs 1, but a shadow page 300 and a page 100.
sed -e 's/^name = unit/name = test/' -e 's/^walk_sp = 1/walk_sp = 300/' \
	-e 's/^dirty_page = 1/dirty_page = 100/' "$here/../../model/profiles/unit.ini" >"$dir/p.ini"
printf '\n[sigma]\nwalk_sp = 10\ndirty_page = 5\n[covariance]\nwalk_sp,dirty_page = 20\n' >>"$dir/p.ini"
p=$dir/p.ini
three="--dirty walk,mask,hybrid,threshold=50 --profile $p --shadow-pages 200-3000 --replicates 3"

# ---- the verdicts ----
ok 'three policies' compare 0 $three --interval 60000000
ok 'nothing on stderr' quiet
ok 'the headline' says '^On real machines, 10 runs of each against walk (run-to-run spread 5% assumed' out
ok 'mask wins' says '^  mask: faster in GET_DIRTY_LOG mean' out
ok 'a parameter stays with its policy' says '^hybrid,threshold=50 against walk' out
ok 'evidence' says '^Evidence with kernel 6.1-shadow on CPU tcg:$' out
ok 'evidence: mask' says '^  mask: oracle-exact on npt0-flat32$' out
ok 'the last line' [ "$(tail -n 1 "$dir/out")" = '  hybrid,threshold=50: none on npt0-flat32' ]
ok 'no wide lines' [ -z "$(grep '.\{113\}' "$dir/out")" ]
ok 'what was drawn' says 'drawn in each: phase, shadow pages, 2 prices' out
ok 'the preset' says 'kernel 6.1-shadow on npt0-flat32' out

ok 'no --shadow-pages' compare 0 --dirty walk,mask --profile "$p" --replicates 2
ok 'no --shadow-pages: warned' says '^kvmsim: warning: --shadow-pages is not given' err

# Where a dirty page costs 1,000 and a shadow page 300, the walk of few shadow pages is cheaper.
sed -e 's/^dirty_page = 1.*/dirty_page = 1000/' -e 's/^rmap_spte = .*/rmap_spte = 1000/' \
	-e 's/^walk_spte = .*/walk_spte = 0/' -e 's/^\[sigma\]/[source]\nwalk_spte = in walk_sp\n&/' \
	"$p" >"$dir/c.ini"
ok 'crossover' compare 0 --dirty walk,mask --profile "$dir/c.ini" --shadow-pages 1-3000 --replicates 4
ok 'slower at one end' says '^  mask: slower at 1 .*faster at 3,000 ' out
ok 'it depends' says 'depends on the number of active shadow pages; crossover at about [1-9]' whole

# ---- spte policies ----
printf '[scenario]\nworkload = migration\nslots = a:0:8000\nvcpus = 2\nrounds = 5\n' >"$dir/two.ini"
sptes() { run 0 compare --scenario "$dir/two.ini" --profile unit --replicates 2 "$@"; }
elapsed() { jq ".policies[0].metrics[] | select(.metric == \"elapsed\").$1" "$dir/out"; }
ok 'spte none, two dirty policies' sptes --dirty mask,walk --spte none --json
none=$(elapsed baseline_mean)
ok 'spte mmio-gen, two dirty policies' sptes --dirty mask,walk --spte mmio-gen,prefetch=1 --json
one=$(elapsed baseline_mean)
ok 'two spte policies' sptes --dirty mask --spte none --spte mmio-gen,prefetch=1 --json
keep twice
ok 'the first is as alone' [ "$(elapsed baseline_mean)" = "$none" ]
ok 'so is the second' [ "$(elapsed mean)" = "$one" ]
ok 'and they differ' [ "$none" != "$one" ]
ok 'as a list' sptes --dirty mask --spte none,mmio-gen,prefetch=1 --json
ok 'the same' same out twice
ok 'as a text' sptes --dirty mask --spte none --spte mmio-gen,prefetch=1
ok 'what is against what' says '^mmio-gen,prefetch=1 against none$' out
ok 'and with what' says '^kernel 6.1-shadow with mask on ' out
ok 'evidence of each' [ "$(grep -c '^  spte policy .*: oracle-exact on npt0-flat32.$' "$dir/out")" = 2 ]
bad 'several of both' 2 compare "$trace" --dirty mask,walk --spte none,mmio-gen --profile unit
bad 'one of each' 2 compare "$trace" --dirty mask --spte none --profile unit
bad 'no such spte policy' 2 compare "$trace" --dirty mask --spte none,nonesuch --profile unit
bad 'a parameter twice' 2 compare "$trace" --dirty mask --spte none,unsync=0,unsync=1,mmio-gen --profile unit
ok 'that it is given twice' says 'policy none: unsync is given twice' err
ok 'an option without effect' compare 0 --dirty mask,walk --eager-page-split N --profile unit --replicates 2
ok 'is said to be' says 'warning: --eager-page-split changes nothing without --running' err

ok 'core2-2010, 2.6.36' compare 0 --dirty mask,walk --profile core2-2010 --kernel 2.6.36 \
	--shadow-pages 500 --replicates 2
ok 'evidence: rows that identify' says '^  walk: none on npt0-flat32 (its rows identify the number' out
ok 'evidence of another MMU' says '^  mask: none on npt0-flat32 (published on npt0-long64)$' out
ok 'kvm-pvm' compare 0 --dirty walk,mask,rmap-slot --profile kvm-pvm --shadow-pages 500 --replicates 2
ok 'kvm-pvm prices a walk' [ -z "$(grep 'prices none of\|not priced' "$dir/out")" ]

# The headline's number of runs holds for every metric that it names.
run 0 compare --scenario "$here/../../docs/tutorial.ini" --dirty walk,hybrid,threshold=50 \
	--profile kvm-pvm --shadow-pages 32-327
most=$(sed -n 's/.* \([0-9]*\) (faster) .*/\1/p' "$dir/out" | sort -n | tail -n 1)
ok 'runs that are enough for each metric' says "[; ]${most:-no} runs of each are enough" out
ok 'not the same for each' says ' 2 (faster)' out
ok 'not the same for each: the most' [ "${most:-0}" -gt 2 ]

# A policy against itself: no difference, and 527 runs to show that there is none over 1%.
ok 'mask against mask' compare 0 --dirty mask,mask --profile unit --replicates 2
ok 'inconclusive' says '^  mask: inconclusive; 527 runs of each would show no difference worth having' out
ok 'same in the model' says '^  mask: same' out
ok 'a wider bar, more runs' compare 0 --dirty mask,mask --profile unit --replicates 2 --runs 527
ok 'same on machines too' says '^  mask: same$' out

# ---- the same output ----
ok 'JSON' compare 0 $three --json -j 1
keep j1
for j in 2 5; do
	ok "-j $j" compare 0 $three --json -j $j
	keep jn
	ok "-j $j: the same bytes" same j1 jn
done
ok 'another seed' compare 0 $three --json --seed 2
keep other
ok 'another seed: other draws' differ j1 other
ok 'CSV' compare 0 $three --csv
ok 'CSV: header, and a row for each metric of two policies' [ "$(wc -l <"$dir/out")" -eq 21 ]

# ---- the same as replay ----
ok 'no draws' compare 0 --dirty mask,walk --profile unit --replicates 2 --shadow-pages 500 --csv
total=$(field get_dirty_log_total baseline_mean) walk=$(field get_dirty_log_total mean)
pages=$(field dirty_pages mean)
ok 'nothing drawn, no spread' is get_dirty_log_total baseline_sd 0
for policy in mask walk; do
	ok "replay $policy" run 0 replay "$trace" --slot vram --dirty $policy --profile unit \
		--shadow-pages 500 --csv
	sums=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		{ c += $col["time"]; d += $col["nr_dirty"]; n++ } END { print c, d, c / n }' "$dir/out")
	[ $policy = mask ] && replay_mask=${sums%% *} || replay_walk=${sums%% *}
	replay_pages=$(echo "$sums" | cut -d ' ' -f 2)
done
ok "replay's mask, $total" [ "$total" = "$replay_mask" ]
ok "replay's walk, $walk" [ "$walk" = "$replay_walk" ]
ok "replay's pages, $pages" [ "$pages" = "$replay_pages" ]

# ---- no log of the CPU's under shadow paging ----
ok 'fallback' compare 0 --dirty mask,pml --cpu intel --profile unit --replicates 2
ok 'fallback: a note' says '^kvmsim: warning: dirty policy pml: under shadow paging' err
ok 'fallback: not of mask' [ "$(grep -c 'shadow paging' "$dir/err")" -eq 1 ]

# ---- gates ----
ok 'a gate that holds' compare 0 --dirty walk,mask --profile "$p" --shadow-pages 2000 --replicates 2 \
	--fail-if 'get_dirty_log_mean>+5%'
ok 'a gate that fails' compare 1 --dirty mask,walk --profile "$p" --shadow-pages 2000 --replicates 2 \
	--fail-if 'get_dirty_log_mean>+5%'
ok 'which one' says '^kvmsim: --fail-if get_dirty_log_mean>+5%: walk has +' err
ok 'a policy that loses stores' compare 1 --dirty mask,lossy --profile unit --replicates 2
ok 'is caught' one_line

# ---- what cannot be told ----
printf '[machine]\nname = bare\nunit = cycles\n[price]\ninsn = 1\n' >"$dir/bare.ini"
ok 'no prices' compare 0 --dirty walk,mask --profile "$dir/bare.ini" --shadow-pages 500 --replicates 2
ok 'cannot tell' says '^  mask: cannot tell: profile .*bare.ini prices none of .*walk_sp' whole
ok 'five names at most' says ' prices none of [a-z_]*, [a-z_]*, [a-z_]*, [a-z_]*, [a-z_]* and [1-9][0-9]* more (--json lists all)' whole
ok 'and no number' [ -z "$(sed -n 's/^GET_DIRTY_LOG.*cycles//p' "$dir/out" | tr -d 'a-z() \n-')" ]
ok 'all names in JSON' compare 0 --dirty walk,mask --profile "$dir/bare.ini" --shadow-pages 500 \
	--replicates 2 --json
ok 'walk_sp is in them' says '^ *"walk_sp",' out
# What one policy's harvest counts and the other's does not is no part of a page fault; that page
# faults are the same is no verdict on the whole.
sed '/^dirty_page = /d' "$here/../../model/profiles/unit.ini" >"$dir/some.ini"
ok 'no price of dirty_page' compare 0 --dirty walk,mask --profile "$dir/some.ini" --shadow-pages 0 \
	--replicates 2 --csv
ok 'page faults are told' is page_fault relative 0
ok 'calls are told, up to a price' is get_dirty_log_mean cannot_tell 'not priced'
ok 'no price of dirty_page, table' compare 0 --dirty walk,mask --profile "$dir/some.ini" \
	--shadow-pages 0 --replicates 2
ok 'no verdict on the whole' [ "$(grep -c '^  mask: cannot tell: profile ' "$dir/out")" -eq 2 ]
ok 'a gate on it' compare 1 --dirty walk,mask --profile "$dir/bare.ini" --shadow-pages 500 \
	--replicates 2 --fail-if 'elapsed>5'
ok 'a gate on it: why' says 'cannot tell for mask' err

# ---- scenarios ----
printf '[scenario]\nworkload = pagelist\n' >"$dir/none.ini"
for s in "$here"/../../workloads/*.ini; do
	[ -f "$s" ] || continue
	ok "scenario $(basename "$s")" run 0 compare --scenario "$s" --dirty mask,rmap-slot \
		--profile unit --replicates 2 --csv
	break
done

# ---- bad input and usage ----
bad 'no policies' 2 compare "$trace"
bad 'one policy' 2 compare "$trace" --dirty walk --profile unit
bad 'empty item' 2 compare "$trace" --dirty walk,,mask --profile unit
bad 'unknown policy' 2 compare "$trace" --dirty walk,nope --profile unit
bad 'unknown parameter' 2 compare "$trace" --dirty walk,hybrid,nope=1 --profile unit
printf '[machine]\nhz = 1000\n' >"$dir/unitless.ini"
bad 'profile without a unit' 3 compare "$trace" --dirty walk,mask --profile "$dir/unitless.ini"
ok 'profile without a unit: the file' says 'unitless.ini: .machine. states no unit' err
bad 'unknown profile' 2 compare "$trace" --dirty walk,mask --profile nope
bad 'missing profile' 3 compare "$trace" --dirty walk,mask --profile "$dir/nope.ini"
bad 'no trace' 2 compare --dirty walk,mask --profile unit
bad 'missing trace' 3 compare "$dir/nope.kvt" --dirty walk,mask --profile unit
bad 'interval' 2 compare "$trace" --dirty walk,mask --profile unit --interval 45000000
bad 'interval, -j' 2 compare "$trace" --dirty walk,mask --profile unit --interval 45000000 -j 3
bad 'slot' 2 compare "$trace" --dirty walk,mask --profile unit --slot nope
bad 'range' 2 compare "$trace" --dirty walk,mask --profile unit --shadow-pages 9-3
bad 'replicates' 2 compare "$trace" --dirty walk,mask --profile unit --replicates 1
bad 'gate: no such metric' 2 compare "$trace" --dirty walk,mask --profile unit --fail-if 'foo>1%'
ok 'gate: which there are' says "no metric 'foo'; there are get_dirty_log_mean, .*, elapsed" err
bad 'gate: range' 2 compare "$trace" --dirty walk,mask --profile unit --fail-if 'elapsed>-9e9'
ok 'gate: range is stated' says 'from -1000000 to +1000000' err
bad 'gate' 2 compare "$trace" --dirty walk,mask --profile unit --fail-if 'nope>5%'
bad 'interval of more than the trace' 3 compare "$trace" --dirty walk,mask --profile unit \
	--interval 60000000000
head -c 60000 "$trace" >"$dir/torn.kvt"
bad 'the same, torn' 3 compare "$dir/torn.kvt" --dirty walk,mask --profile unit --interval 60000000000
ok 'the same, torn: why' says 'torn.kvt: cannot tell: ' err
head -c 900 "$trace" >"$dir/stub.kvt"
bad 'no whole block' 3 compare "$dir/stub.kvt" --dirty walk,mask --profile unit
: >"$dir/empty.kvt"
bad 'empty trace' 3 compare "$dir/empty.kvt" --dirty walk,mask --profile unit
head -c 64 "$kvmsim" >"$dir/noise.kvt"
bad 'noise' 3 compare "$dir/noise.kvt" --dirty walk,mask --profile unit
sed 's/^walk_sp,dirty_page = .*/walk_sp,dirty_page = 9000/' "$p" >"$dir/cov.ini"
bad 'no covariance' 3 compare "$trace" --dirty walk,mask --profile "$dir/cov.ini"

# A torn trace: what is there is compared, and said to be torn.
size=$(wc -c <"$trace")
head -c $((size * 3 / 4)) "$trace" >"$dir/torn.kvt"
ok 'torn trace' run 0 compare "$dir/torn.kvt" --slot vram --dirty walk,mask --profile unit \
	--shadow-pages 500 --replicates 2
ok 'torn trace: said' says '^The trace ends early' out
ok 'torn trace: one warning' [ "$(wc -l <"$dir/err")" -eq 1 ]

the_end
