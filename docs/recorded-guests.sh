#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Writes docs/recorded-guests.md: the recorded guests under five dirty policies, on two machines, at
# three collection intervals, and beside the 2010 thread. Needs the built program, jq and python3;
# takes a quarter of an hour.
#   docs/recorded-guests.sh [BUILDDIR]		(build/release)
#   docs/recorded-guests.sh BUILDDIR check	only reckons some rows anew; prints those that it lacks
set -eu
cd "$(dirname "$0")/.."
kvmsim=${1:-build/release}/kvmsim
out=docs/recorded-guests.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
replicates=10 seed=1
policies=walk,mask,hybrid,manual,ring

machines='core2-2010:2.6.36 kvm-pvm:6.1-shadow'
intervals='30000000 60000000 120000000'

compare() { # TRACE SLOT PROFILE PRESET INTERVAL RANGE [OPTION]...
	"$kvmsim" compare "traces/recorded/$1.kvt" --slot "$2" --dirty $policies \
		--profile "$3" --kernel "$4" --interval "$5" --shadow-pages "$6" \
		--replicates $replicates --seed $seed "$7"
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

table() { # TRACE SLOT RANGE INTERVAL...
	t=$1 s=$2 r=$3
	shift 3
	echo '| profile, kernel | interval | policy | walk | policy | difference (95% interval) | model | 10 runs | runs to settle | holds below | at the fewest pages | at the most pages | all costs: model, 10 runs |'
	echo '| --- | --- | --- | ---: | ---: | --- | --- | --- | ---: | ---: | --- | --- | --- |'
	for m in $machines; do
		for n; do
			compare "$t" "$s" "${m%%:*}" "${m##*:}" "$n" "$r" --json >"$dir/json" 2>>"$dir/err"
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

guest() { # TRACE SLOT FEWEST IMPLIED PAGES-OF-THE-GUEST WHAT
	limit=$(($5 * 20 / 1000))
	echo "## $6"
	echo
	echo "Active shadow pages as the 2010 rows of the like imply, ${4%-*} to $(grouped "${4#*-}"):"
	echo
	# shellcheck disable=SC2086 # a list of words
	table "$1" "$2" "$4" $intervals
	echo
	echo "Any number that there can be, $3 to $(grouped $limit), at 60 million:"
	echo
	table "$1" "$2" "$3-$limit" 60000000
	echo
}

intervals_of() { # TRACE
	case $1 in
	*-short) echo 1000000 2000000 4000000 8000000 30000000 ;;
	*) echo "$intervals" 300000000 ;;
	esac
}
# Collections of a recorded guest as "nr_dirty cycles interval", by number.
collections() { # TRACE SLOT POLICY SHADOW-PAGES
	for n in $(intervals_of "$1"); do
		"$kvmsim" replay "traces/recorded/$1.kvt" --slot "$2" --dirty "$3" --shadow-pages "$4" \
			--profile core2-2010 --kernel 2.6.36 --interval "$n" --csv |
			awk -F, -v n="$n" 'NR > 1 { print $4, $6, n / 1000000 }'
	done | sort -n
}
# The first collection with the nearest number; those under three other files beside it.
beside() { # TRACE SLOT SERIES FEW MANY FITTED
	collections "$1" "$2" mask 0 >"$dir/mask"
	collections "$1" "$2" walk "$4" >"$dir/few"
	collections "$1" "$2" walk "$5" >"$dir/many"
	awk -F, -v series="$3" -v fitted=" $6 " -v dir="$dir" -v trace="$1" '
		function group(n) {
			n = int(n + 0.5)
			return n < 1000 ? n : group(int(n / 1000)) sprintf(",%03d", n % 1000)
		}
		function nearest(file, x, line, f, best) {
			best = -1
			while ((getline line <file) > 0) {
				split(line, f, " ")
				if (best < 0 || (f[1] - x) ^ 2 < best) {
					best = (f[1] - x) ^ 2
					nr = f[1]
					cycles = f[2]
					interval = f[3]
				}
			}
			close(file)
		}
		$2 == series && $3 == "get_dirty_log write-protect time" {
			x = $7
			if ($8 == "mask") {
				nearest(dir "/mask", x)
				far = nr < 0.9 * x || nr > 1.1 * x
				printf "| %s | mask | %s | %s%s | %s, every %d M | ", trace, group(x), group($9), \
					index(fitted, " " x " ") ? " (fitted)" : "", group(nr), interval
				print far ? "- | too far |" : group(cycles) sprintf(" | %+.0f%% |", (cycles / $9 - 1) * 100)
			} else {
				nearest(dir "/few", x)
				few = cycles
				nearest(dir "/many", x)
				printf "| %s | orig | %s | %s | %s, every %d M | %s to %s | %s |\n", trace, group(x), group($9), \
					group(nr), interval, group(few), group(cycles), \
					($9 < few ? "less" : ($9 > cycles ? "more" : "within"))
			}
		}' analysis/evidence/threads_2010_2013.csv
}
# Least, median and most pages of a recorded guest's collections.
spread() { # TRACE SLOT INTERVAL
	"$kvmsim" replay "traces/recorded/$1.kvt" --slot "$2" --dirty mask --profile unit \
		--interval "$3" --csv | awk -F, 'NR > 1 { print $4 }' | sort -n |
		awk '{ a[NR] = $1 } END { printf "%d / %d / %d", a[1], a[int((NR + 1) / 2)], a[NR] }'
}

# What dbench's table of locks says: all, and the locks that go from vCPU to vCPU.
locks() {
	python3 - traces/recorded/dbench-locks.csv <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
whole = next(r for r in rows if r["row"] == "all")
def group(n): return f"{int(n):,}"
def share(r, column): return f"{100 * int(r[column]) / int(r['taken']):.1f}%"
def line(r, name):
	print(f"| {name} | {r['objects']} | {group(r['taken'])} | {float(r['per_million']):.1f} | {share(r, 'moved')} | "
	      f"{share(r, 'nested')} | {group(r['hold_p50'])} / {group(r['hold_p99'])} | {float(r['hold_mean']):.0f} | "
	      + (f"{group(r['gap_p50'])} / {group(r['gap_p99'])} |" if r["gap_p50"] else "|"))
print("| taken most by | locks | taken | per million | from another vCPU | nested | hold: median / 99% | mean | gap: median / 99% |")
print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
line(whole, "(all)")
by = [r for r in rows if r["row"] in ("lock", "locks") and int(r["moved"]) >= 500]
for r in sorted(by, key=lambda r: -int(r["moved"])):
	line(r, r["symbol"] and f"{r['caller']} ({r['symbol']})" or r["caller"])
END
}

# Pages in a row, on average, among those that are dirty in so many epochs.
pieces() { # TRACE VRAM-FLAG EPOCHS
	python3 tests/golden/kvt.py "traces/recorded/$1.kvt" | python3 -c '
import sys
flag, epochs = sys.argv[1], int(sys.argv[2])
pages = begins = seen = 0
dirty = set()
for line in sys.stdin:
	_, _, kind, flags, _, arg = line.split()
	if kind == "11":
		if seen % epochs == 0:
			pages += len(dirty)
			begins += sum(p - 1 not in dirty for p in dirty)
			dirty = set()
		seen += 1
	elif kind == "2" and flags == flag:
		dirty.add(int(arg, 16) >> 12)
print("%.1f" % (pages / begins), end="")' "$2" "$3"
}

refused() { # INTERVAL
	echo "\$ kvmsim compare traces/recorded/find.kvt --slot ram --dirty walk,mask --interval $1"
	code=0
	"$kvmsim" compare traces/recorded/find.kvt --slot ram --dirty walk,mask --interval "$1" \
		--shadow-pages 1000 2>&1 || code=$?
	echo "(exit status $code)"
}

if [ "${2-}" = check ]; then
	table x11perf vram 200-750 120000000 | grep -vFx -f "$out" && exit 1
	exit 0
fi
{
	cat <<END
<!-- Written by docs/recorded-guests.sh: edit that, not this. -->
<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
# Three recorded guests under walk, mask, hybrid, manual and ring

x11perf draws on a frame buffer of 4,096 pages (clustered, in device memory); find walks a file
system, and gcc compiles six small libraries, in 262,144 pages of RAM. Their dirty log is collected
every 30, 60 and 120 million guest instructions, and the policies harvest it. They were recorded by
\`kvmsim record qemu\` (traces/recorded/ has a note beside each). Of a fourth, dbench, the kernel's
spin locks were recorded: a table, at the end. Written by

    docs/recorded-guests.sh

which runs, for each row below, as for the first:

    kvmsim compare traces/recorded/x11perf.kvt --slot vram --dirty $policies \\
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
  quantile, maximum and total, page faults, mmu_lock's waits and longest hold, the guest's longest
  stall and elapsed time): it may be known where the mean call is not. *mixed*: some are lower than
  with \`walk\`, others higher, as the longest stall where a vCPU collects its full ring itself.
- A replicate draws the phase of the collection (whole epochs; at 30 million there is only one), the
  number of active shadow pages, and the prices from their covariance. The same draws go to every
  policy.
- *Active shadow pages* are an input: the traces hold first stores by guest page, without virtual
  addresses, so nothing in them tells how many shadow pages the guest's page tables had. The replay
  maps the guest directly and adds that many pages that a walk meets. There cannot be fewer than map
  the slot once (slot pages / 512: 8 for the frame buffer, 512 for RAM), nor more than the MMU's
  page limit, which is 20 per mille of the guest's pages in both kernels. In between, the walks that
  were timed in 2010 are a guide: \`kvmsim validate\` lists the number that each implies if every
  page is walked whole, 193 to 744 for the frame buffer and 559 to 2,399 for live migration. Each
  guest has one table for this range and one for all that is possible. *at the fewest* and *at the
  most pages* give the verdict of ten runs over all costs, and the difference in the mean call, at
  the ends of the range: a verdict that hangs on the number of pages differs there.
- *holds below*: a profile may not price all that the policies do differently. The difference in
  the mean call keeps its sign while each of those counts costs less than so many cycles. A blank:
  nothing that differs lacks a price. *cannot tell*: it would turn at a price that such a step may
  well have (under 300 cycles, a line from memory).
- *manual* is GET and CLEAR of all chunks with a dirty page. \`kvm-pvm\` has a price for CLEAR, from
  an own measurement; \`core2-2010\` has none. *ring* is all passes over the ring and its resets up to
  the end of an interval; what it does at each store (an entry, a full ring's exit) is in the page
  faults and the guest's elapsed time, not in the mean call. \`kvm-pvm\` has prices for reading and
  resetting entries, from own measurements, \`core2-2010\` has none, and neither has one for what is
  done at each store. 2.6.36 had neither policy: with its preset they are what a port would have
  cost.

END
	guest x11perf vram 8 200-750 266240 'x11perf, frame buffer of 4,096 pages'
	guest find ram 512 550-2450 262144 'find, 262,144 pages of RAM'
	guest compile ram 512 550-2450 262144 'gcc compiling, 262,144 pages of RAM'
	cat <<END
## Beside the 2010 thread

The thread's author ran x11perf and a loop of \`find /\` on a Core 2 Duo, and logged GET_DIRTY_LOG by
the mask and as it was (orig: the walk). Beside each of his rows, the recorded guest's collection with
the nearest number of dirty pages, its pages where that guest had them, priced as \`core2-2010\` with
the algorithms of 2.6.36. A mask row says by how much the prediction is off; an orig row whether it
lies within what 200 to 750 (x11perf) or 550 to 2,450 (find) active shadow pages would cost: those
numbers came from these rows, so it can hardly lie far outside; what it tests is that the dirty pages
themselves change little.

| recorded guest | 2010 | dirty pages | cycles | recorded: dirty pages | predicted | |
| --- | --- | ---: | ---: | ---: | ---: | --- |
END
	beside x11perf-short vram get_dirty_log_framebuffer 200 750 '8 375'
	beside find ram get_dirty_log_livemigration 550 2450 '52 526 4143'
	cat <<END

Dirty pages per collection (least / median / most): x11perf's frame buffer $(spread x11perf-short vram 1000000) every
million instructions, $(spread x11perf vram 30000000) every 30 million, 8 to 576 in the thread; find's RAM
$(spread find ram 30000000) every 30 million, $(spread find ram 300000000) every 300 million, 50 to 4,143 in the
thread.

*What agrees.* How many pages are dirty, but for the smallest: an X server draws into a block of the
frame buffer, find into some hundred to some thousand pages. Where x11perf's collections are of the
thread's size, the prediction by their own pages is as near as the one by a block of as many pages
(\`kvmsim validate\`). find's are near for some hundred pages.

*What does not.* find's collections of thousands of pages are predicted too cheap, the more so the
larger they are. The thread's cost per page is the same from 526 to 4,143 pages. The recorded
guest's pages lie in pieces of $(pieces find 0 1) when they are collected every 30 million instructions, and of
$(pieces find 0 4) and $(pieces find 0 10) at 120 and 300 million: neighbours are cheap, their rmap heads share a cache line. The
recorded guest had booted a minute before, and its free memory was in one piece; how long the
thread's guest had been up is not known (its host for more than an hour), so that its pages lay in
smaller pieces is a guess. find's smallest collections in the thread
(50 and 120) have no like here: even a run that has everything cached dirties more in 30 million
instructions. A whole screen is 384 pages at 16 bits per pixel; the thread's 576 would be one at
24 bits in three bytes, which today's X server does not start with.

END
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
	cat <<'END'

## Locks of dbench

Four clients of dbench on a tmpfs, four vCPUs, Linux 6.1: the spin locks that its kernel takes
(traces/recorded/dbench-locks.csv, 4 million of them; the note beside it says how, and what is not the
guest's). All, and those of which at least 500 were taken after another vCPU had had them; times are
instructions of the vCPU's own work, rates are per million of all vCPUs'.

END
	locks
	cat <<'END'

Most of the locks that are taken hardly ever leave their vCPU: a client works in a folder of its own,
and what one holds is held for some dozens of instructions. Those that all clients share (the list of
the superblock's inodes, the tmpfs's count of inodes, the LRU list, a per-CPU counter's sum) are few
in a hundred. Waits were recorded, too, and mean nothing here: vCPUs ran by turns.
END
} >"$dir/md"
grep -v '^$' "$dir/err" | sort -u >&2 || true
cp "$dir/md" "$out"
