#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Measures this machine's dirty logging for analysis/evidence/: one session, one line of CSV per
# kind of collection and number of dirty pages. Sizes take turns within a recording, so that what
# disturbs the machine disturbs them all. Less than a minute; run it several times.
#   scripts/measure-kvm.sh KVMSIM SESSION [ROUNDS [fresh]] >FILE.csv
# `fresh`: sizes that no row has that the profile kvm-pvm was fitted to or first held against.
set -eu
kvmsim=$1 session=$2 rounds=${3:-15} sizes=${4:-known}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM
source="own measurement: kvmsim record kvm (scripts/measure-kvm.sh), session $session"
header=yes

# Scenario $dir/s.ini: every page once, so that all are mapped one by one; then ROUNDS times each of
# SIZES, that many different pages of SLOT in aligned runs of RUN at random places. The generator is
# POSIX's drand48, from the session and the run.
scenario() { # SLOT RUN SIZES
	cat >"$dir/s.ini" <<-INI
		[scenario]
		workload = pagelist
		slots = ram:0x40000:$1
		interval = 1000000
		file = rounds
	INI
	awk -v slot="$1" -v run="$2" -v sizes="$3" -v rounds="$rounds" -v seed="$session" '
		# x = (25214903917 x + 11) mod 2^48 in halves of 24 bits: doubles hold 53
		function draw(n,  low, high) {
			low = 15525485 * x0 + 11
			high = 15525485 * x1 + 1502 * x0 + int(low / 16777216)
			x0 = low % 16777216
			x1 = high % 16777216
			return int((x1 * 128 + int(x0 / 131072)) * n / 2147483648)
		}
		BEGIN {
			x0 = 13070 + 65536 * (seed % 256)
			x1 = seed + 256 * run
			m = split(sizes, size, " ")
			print "0-" slot - 1
			for (r = 0; r < rounds; r++)
				for (i = 1; i <= m; i++) {
					split("", seen)
					n = 0
					len = run < size[i] ? run : size[i]
					line = ""
					while (n < size[i]) {
						first = draw(int(slot / len)) * len
						for (p = first; p < first + len && n < size[i]; p++)
							if (!(p in seen)) {
								seen[p] = 1
								n++
								line = line " " p
							}
					}
					print substr(line, 2)
				}
		}' >"$dir/rounds"
}
measure() { # SERIES OPTION...
	series=$1
	shift
	"$kvmsim" record kvm --scenario "$dir/s.ini" --warm --series "$series" \
		--source "$source" --csv "$@" >"$dir/csv"
	[ "$header" ] || sed -i 1d "$dir/csv"
	header=
	cat "$dir/csv"
}

big=261888
case $sizes in
known)
	many='1 52 120 251 526 800 1029 1200 1500 1800 2000 2219 2400 2600 3000 3500 4143 6000'
	some='251 526 1029 1500 2219 3000'
	runs='1200 1500 2000 2219 2600 3000'
	few='1 8 80 195 375 576 1200 2000 3000'
	;;
fresh)
	many='30 85 180 380 650 900 1350 1650 2100 2800 3800 5000'
	some='180 400 700 1350 1900 2600'
	runs='900 1700 2400'
	few='30 130 280 480 900 1600 2500'
	;;
*)
	echo "$0: sizes $sizes: expected known or fresh" >&2
	exit 2
	;;
esac
scenario $big 1 "$many"
measure random
measure random_thp --thp --guest-pte 2m
scenario $big 1 "$some"
measure manual --protocol manual
for chunk in 64 512 4096 32768; do
	measure "manual_$chunk" --protocol manual --chunk $chunk
done
measure ring --protocol ring --ring 8192
for run in 8 64 512; do
	scenario $big $run "$runs"
	measure "clustered_$run"
	[ $run = 512 ] || measure "clustered_${run}_thp" --thp --guest-pte 2m
done
scenario 4096 1 "$few"
measure small
measure small_ring --protocol ring --ring 4096
