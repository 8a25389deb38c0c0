#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Writes docs/recorded-guests.md: the recorded guests under walk, mask and hybrid, on two machines,
# at three collection intervals. Needs the built program and jq; takes minutes.
#   docs/recorded-guests.sh [BUILDDIR]		(build/release)
set -eu
cd "$(dirname "$0")/.."
kvmsim=${1:-build/release}/kvmsim
out=docs/recorded-guests.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
replicates=20 seed=1
guest_pages=266240 # both guests: 262,144 of RAM, 4,096 of video RAM
limit=$((guest_pages * 20 / 1000))

machines='core2-2010:2.6.36 kvm-pvm:6.1-shadow'
intervals='30000000 60000000 120000000'

compare() { # TRACE SLOT PROFILE PRESET INTERVAL RANGE [OPTION]...
	t=$1 s=$2 p=$3 k=$4 i=$5 r=$6
	shift 6
	"$kvmsim" compare "traces/recorded/$t.kvt" --slot "$s" --dirty walk,mask,hybrid \
		--profile "$p" --kernel "$k" --interval "$i" --shadow-pages "$r" \
		--replicates $replicates --seed $seed "$@"
}

# One row per policy of a comparison in JSON. Two digits where the replicates scatter by more than a
# tenth, else three; percentages by the width of their interval.
rows='
def group: tostring | if length <= 3 then . else (.[:-3] | group) + "," + .[-3:] end;
def sig($n): if . == 0 then "0" else
	(. | fabs | log10 | floor) as $e | pow(10; $e - $n + 1) as $u | ((. / $u | round) * $u | round | group) end;
def figure($sd): sig(if $sd > . / 10 then 2 else 3 end);
def dec($n): (. | fabs) as $a | pow(10; $n) as $p | ($a * $p | round) as $r
	| ($r / $p | floor | tostring) + (if $n > 0 then "." + (($r % $p) + $p | tostring | .[1:]) else "" end);
def places($w): if $w >= 3 then 0 elif $w >= 0.3 then 1 else 2 end;
def pc($n): (. * 100 | dec($n)) as $d | (if ($d | tonumber) == 0 then "" elif . < 0 then "-" else "+" end) + $d + "%";
def pair($r): (($r[1] - $r[0]) * 100) as $w | "\($r[0] | pc(places($w))) to \($r[1] | pc(places($w)))";
def at: if . == null then "-" else "\(.real) (\(.get_dirty_log_mean_relative | pc(1)))" end;
def runs: if . == null then "none" else group end;
. as $c | .policies[] | . as $p | .metrics[] | select(.metric == "get_dirty_log_mean")
| "| \($c.profile.name), \($c.kernel) | \($c.interval / 1000000) M | \($p.policy) | " +
  (if .cannot_tell then "| | | cannot tell | **cannot tell** | |" else
	"\(.baseline_mean as $b | .baseline_sd as $s | $b | figure($s)) | \(.sd as $s | .mean | figure($s)) | \(.relative | pc(1)) (\(pair(.interval))) | \(.model) | **\(.real)** | \(.runs_needed | runs)\(if .runs_needed then " (\(.tends))" else "" end) |" end) +
  " \(if (.break_even_price // null) == null then "" else (.break_even_price | sig(2)) end) | \($p.at_lo | at) | \($p.at_hi | at) | \($p.model), **\($p.real)** |"'

table() { # TRACE SLOT RANGE
	echo '| profile, kernel | interval | policy | walk | policy | difference (95% interval) | model | 10 runs | runs to settle | holds below | at the fewest pages | at the most pages | all costs: model, 10 runs |'
	echo '| --- | --- | --- | ---: | ---: | --- | --- | --- | ---: | ---: | --- | --- | --- |'
	for m in $machines; do
		for n in $intervals; do
			compare "$1" "$2" "${m%%:*}" "${m##*:}" "$n" "$3" --json >"$dir/json" 2>>"$dir/err"
			jq -r "$rows" "$dir/json"
			jq -r '. as $c | [.baseline] + .policies | .[] |
				"- `\(.policy)`, \($c.kernel) on \($c.mmu): \(.evidence)" +
				(.evidence_elsewhere | to_entries | map(" (\(.value) on \(.key))") | add // "") +
				(if .evidence_note then " (\(.evidence_note))" else "" end)' "$dir/json" >>"$dir/evidence"
		done
	done
}

grouped() {
	echo "$1" | sed -E 's/([0-9])([0-9]{3})$/\1,\2/'
}

guest() { # TRACE SLOT FEWEST IMPLIED WHAT
	echo "## $5"
	echo
	echo "Active shadow pages as the 2010 rows of the like imply, ${4%-*} to $(grouped "${4#*-}"):"
	echo
	table "$1" "$2" "$4"
	echo
	echo "Any number that there can be, $3 to $(grouped $limit):"
	echo
	table "$1" "$2" "$3-$limit"
	echo
}

refused() { # INTERVAL
	echo "\$ kvmsim compare traces/recorded/find.kvt --slot ram --dirty walk,mask --interval $1"
	code=0
	"$kvmsim" compare traces/recorded/find.kvt --slot ram --dirty walk,mask --interval "$1" \
		--shadow-pages 1000 2>&1 || code=$?
	echo "(exit status $code)"
}

{
	cat <<END
<!-- Written by docs/recorded-guests.sh: edit that, not this. -->
<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
# Two recorded guests under walk, mask and hybrid

x11perf draws on a frame buffer of 4,096 pages (clustered, in device memory); find walks a file
system in 262,144 pages of RAM. Their dirty log is collected every 30, 60 and 120 million guest
instructions, and the three policies harvest it. Written by

    docs/recorded-guests.sh

which runs, for each row below, as for the first:

    kvmsim compare traces/recorded/x11perf.kvt --slot vram --dirty walk,mask,hybrid \\
        --profile core2-2010 --kernel 2.6.36 --interval 30000000 \\
        --shadow-pages 200-750 --replicates $replicates --seed $seed

## How to read it

- *Profile and kernel* belong together: \`core2-2010\` was fitted on the 2010 rows with the
  algorithms of \`2.6.36\`; \`kvm-pvm\` on measurements of a 6.1 kernel with \`6.1-shadow\`.
- *Figures* are cycles of one GET_DIRTY_LOG call, mean over the calls; the difference is against
  \`walk\`. *model*: what $replicates paired replicates say, at 95% with Holm's correction. *10
  runs*: what ten runs of each policy on real machines would show, with a run-to-run spread of 5%
  (assumed) and a smallest difference of 1% worth having; *runs to settle*: how many would show
  what. The last column has both verdicts over all costs that can be told (the call's mean, 99%
  quantile, maximum and total, page faults, mmu_lock's waits and longest hold, the guest's elapsed
  time): it may be known where the mean call is not.
- A replicate draws the phase of the collection (whole epochs; at 30 million there is only one), the
  number of active shadow pages, and the prices from their covariance. The same draws go to every
  policy.
- *Active shadow pages* are an input: the traces hold first stores by guest page, without virtual
  addresses, so nothing in them tells how many shadow pages the guest's page tables had. The replay
  maps the guest directly and adds that many pages that a walk meets. There cannot be fewer than map
  the slot once (slot pages / 512: 8 for the frame buffer, 512 for RAM), nor more than the MMU's
  page limit, which is 20 per mille of the guest's pages in both kernels: $(grouped $limit) here. In
  between, the walks that were timed in 2010 are a guide: \`kvmsim validate\` lists the number that
  each implies if every page is walked whole, 193 to 744 for the frame buffer and 559 to 2,399 for
  live migration. Each guest has one table for this range and one for all that is possible. *at the
  fewest* and *at the most pages* give the verdict of ten runs over all costs, and the difference in
  the mean call, at the ends of the range: a verdict that hangs on the number of pages differs
  there.
- *holds below*: a profile may not price all that the policies do differently. The difference in
  the mean call keeps its sign while each of those counts costs less than so many cycles. A blank:
  nothing that differs lacks a price. *cannot tell*: it would turn at a price that such a step may
  well have (under 300 cycles, a line from memory).

END
	guest x11perf vram 8 200-750 'x11perf, frame buffer of 4,096 pages'
	guest find ram 512 550-2450 'find, 262,144 pages of RAM'
	cat <<END
## What it rests on

END
	sort -u "$dir/evidence"
	cat <<'END'

*oracle-exact*: every event count equals the real kernel's on the reference cases (`kvmsim validate
--matrix`); *published*: `kvmsim validate` predicts published times that were not fitted; *none*:
there is nothing of such a kernel, policy and MMU to hold against it. The recordings replay as
guests that do not page (npt0-flat32). The prices of `core2-2010` and `kvm-pvm` were fitted on
`mask` rows; `walk` rows entered neither fit, and what a walk costs per entry is a data sheet's
figure (`core2-2010`) or derived (`kvm-pvm`): the instructions that it takes in 6.1, at the cycles
per instruction that the `mask` rows gave. A lock costs 20 cycles in both, which is assumed.
`hybrid` walks where more pages are dirty than shadow pages are active: then it is `walk`, and there
is no difference. What the recordings could not see is in the notes beside the traces
(traces/recorded/).

## Other intervals

The traces tell the first store to each page in an epoch of 30 million instructions. A shorter
interval, or one that cuts an epoch, would need stores that were not recorded, and is refused:

END
	for n in 15000000 45000000; do
		refused $n | sed 's/^/    /'
	done
} >"$dir/md"
grep -v '^$' "$dir/err" | sort -u >&2 || true
cp "$dir/md" "$out"
