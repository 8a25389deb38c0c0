#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Writes docs/clear-chunks.md: what KVM_CLEAR_DIRTY_LOG costs, and whom it holds up, by the size of
# its chunks, for a slot of 64 GiB beside running vCPUs. Needs the built program and jq; takes
# minutes, and 1 GB of memory.
#   docs/clear-chunks.sh [BUILDDIR]		(build/release)
set -eu
cd "$(dirname "$0")/.."
kvmsim=${1:-build/release}/kvmsim
out=docs/clear-chunks.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
slot=16777216
chunks='64 256 1024 4096 16384 65536 262144 1048576 16777216'
profile=kvm-pvm

row='
def group: tostring | if length <= 3 then . else (.[:-3] | group) + "," + .[-3:] end;
def us: . * 1000000 / $hz[0] | if . >= 100 then round | group else (. * 10 | round / 10 | tostring) end;
. as $r
| (.operations[] | select(.operation == "clear")) as $c
| [$chunk, $c.calls, $c.total, $c.longest_hold, $c.stalled, ($c.longest_stall.time // 0)] | map(tostring) | join(" ")
  , "| \($chunk | tonumber | group) | \($c.calls | group) | \($c.total | us) | \($c.longest | us) | \($c.longest_hold | us) | \($c.stalls | group) | \($c.stalled | us) | \(($c.longest_stall.time // 0) | us) | \(if ($c.longest_stall.wait // "") == "lock" then "mmu_lock" else "the flush" end) | \($r.elapsed | us) |"'

table() { # PRESET
	: >"$dir/figures"
	echo '| chunk, pages | calls | all CLEARs, µs | longest call | longest hold | stalls caused | their sum | longest stall | by | guest elapsed |'
	echo '| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |'
	for c in $chunks; do
		"$kvmsim" replay --scenario docs/clear-chunks.ini --long-mode --running \
			--dirty "manual,chunk=$c" --kernel "$1" --profile $profile --json >"$dir/json"
		jq .provenance.profile.hz "$dir/json" >"$dir/hz"
		jq -r --slurpfile hz "$dir/hz" --arg chunk "$c" "$row" "$dir/json" >"$dir/lines"
		head -n 1 "$dir/lines" >>"$dir/figures"
		tail -n 1 "$dir/lines"
	done
	# the smallest chunk whose CLEARs take at most a tenth more than those of the best
	awk '{ chunk[NR] = $1; total[NR] = $3; hold[NR] = $4; stall[NR] = $6
		if (NR == 1 || $3 < least) least = $3 }
	END { for (i = 1; i <= NR; i++) if (total[i] <= 1.1 * least) break
		printf "\nThe knee: %d pages. There the CLEARs take %.0f%% more time in all than with the best chunk, and the longest hold is %.1f%%, the longest stall %.1f%% of those with one CLEAR for the whole slot.\n", \
			chunk[i], 100 * (total[i] / least - 1), 100 * hold[i] / hold[NR], 100 * stall[i] / stall[NR] }' "$dir/figures"
	jq -r '"Evidence for the counts: \(.evidence) on \(.mmu)."' "$dir/json"
}

{
	echo '<!-- SPDX-License-Identifier: GPL-3.0-or-later -->'
	echo '# How large a chunk CLEAR should take'
	echo
	echo "Written by \`docs/clear-chunks.sh\`; do not edit."
	echo
	echo "A slot of 64 GiB ($slot pages of 4 KiB), a guest in long mode whose four vCPUs write 60,000"
	echo 'scattered pages in each round and never stop (`docs/clear-chunks.ini`, `--running`), and a VMM'
	echo 'that gets the log at each interval and clears it in chunks, leaving out those without a dirty'
	echo "page. Times in µs, priced as \`$profile\`. A chunk is cleared under one hold of mmu_lock and with"
	echo 'one flush: small ones make more calls and flushes, large ones hold the lock for longer.'
	echo
	echo '*The knee* is the smallest chunk whose CLEARs take, in all, at most 10% more time than those of'
	echo 'the chunk that takes least.'
	echo
	echo '## Shadow pages and rmaps (6.1-shadow, npt0-long64)'
	echo
	table 6.1-shadow
	echo
	echo '## The TDP MMU (6.1-tdp)'
	echo
	table 6.1-tdp
	echo
	echo '## What it rests on'
	echo
	echo "Counts: the model's, equal to the real kernel's in cases C of the reference matrix. Prices: of one"
	echo 'machine, fitted on single-task rows; the fixed part of a CLEAR is an own measurement, 1,000 cycles'
	echo 'beside those of any ioctl. An IPI and the VM exit that it causes have no price of their own in'
	echo "\`$profile\`: beside running vCPUs the cost of small chunks, and with it the knee, is a lower bound."
	echo 'How many dirty pages lie in a chunk decides how long it holds the lock: a denser log moves the'
	echo 'holds up, and the knee down, in step.'
} >"$dir/out"
mv "$dir/out" "$out"
