#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The results store from outside: what compare keeps, a full disk, an interrupt, damage.
#   tests/golden/test_store.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
lines() { [ "$(wc -l <"$dir/out")" -eq "$1" ]; }
fill() { # CODE STORE ARGUMENT...
	fill_code=$1 fill_store=$2
	shift 2
	run "$fill_code" compare "$trace" --slot vram --dirty walk,hybrid,threshold=40 --profile unit \
		--shadow-pages 500 --store "$fill_store" "$@"
}
db=$dir/runs.db

ok 'six runs' fill 0 "$db" --replicates 3
ok 'check' run 0 store "$db" check
ok 'check: whole' says '^6 runs, all whole$' out
ok 'six more, -j' fill 0 "$db" --replicates 3 --seed 9 -j 2
ok 'list' run 0 store "$db" list --csv
ok 'list: header and twelve' lines 13
ok 'list: order, policy, parameters' says '^2,done,.*,6.1-shadow,tcg,"hybrid,threshold=40","{""threshold"":40}",vram,unit,' out
ok 'list for people' run 0 store "$db" list
ok 'list for people: twelve' lines 13
ok 'list as JSON' run 0 store "$db" list --json
ok 'list as JSON: checksums' says '"trace_checksum": "[0-9a-f]\{16\}"' out
ok 'metrics' run 0 store "$db" metrics --csv
ok 'metrics: ten for each' lines 121
ok 'show' run 0 store "$db" show 2
ok 'show: metrics' says '^get_dirty_log_mean ' out
ok 'show: counts' says '^insn ' out
ok 'show as JSON' run 0 store "$db" show 2 --json
ok 'show as JSON: parameters' says '"threshold": 40' out
ok 'show as CSV' run 0 store "$db" show 2 --csv
ok 'show as CSV: the collections' says '^seq,slot,nr_dirty,start,cycles$' out
ok 'schema' run 0 store sql-schema
ok 'schema: tables' says '^CREATE TABLE collections' out

KVMSIM_STORE=$db
export KVMSIM_STORE
ok 'the default store' run 0 store check
ok 'the default store: KVMSIM_STORE' says '^12 runs' out
unset KVMSIM_STORE

# ---- usage and bad files: one line each ----
bad 'no action' 2 store "$db"
bad 'unknown action' 2 store "$db" frobnicate
bad 'no run' 2 store "$db" show
bad 'no such run' 2 store "$db" show 99
bad 'missing store' 4 store "$dir/nope.db" list
ok 'missing store: not made' [ ! -e "$dir/nope.db" ]
head -c 4096 "$kvmsim" >"$dir/noise.db"
bad 'noise' 4 store "$dir/noise.db" list
ok 'noise to write to' fill 4 "$dir/noise.db" --replicates 2
ok 'noise: one line' one_line
ok 'nowhere to write to' fill 4 "$dir/no/such/dir.db" --replicates 2
ok 'nowhere: one line' one_line
ok 'bad input makes no store' run 3 compare "$dir/noise.db" --dirty walk,mask --profile unit \
	--store "$dir/late.db"
ok 'bad input: none' [ ! -e "$dir/late.db" ]

# ---- looking needs no permission to write; damage is one line ----
head -c 40000 "$db" >"$dir/cut.db"
bad 'damaged' 4 store "$dir/cut.db" check
unprivileged=
if [ "$(id -u)" -eq 0 ]; then
	unprivileged='setpriv --reuid=65534 --regid=65534 --clear-groups'
	chmod 755 "$dir"
fi
mkdir "$dir/ro ?#%"
cp "$db" "$dir/ro ?#%/runs.db"
chmod 444 "$dir/ro ?#%/runs.db"
chmod 555 "$dir/ro ?#%"
look() { # CODE FILE ACTION...
	want=$1
	shift
	$unprivileged "$kvmsim" store "$@" >"$dir/out" 2>"$dir/err"
	[ $? -eq "$want" ]
}
if $unprivileged "$kvmsim" --version >/dev/null 2>&1; then
	for action in list check metrics 'show 1'; do
		# shellcheck disable=SC2086 # words
		ok "read-only folder: $action" look 0 "$dir/ro ?#%/runs.db" $action
		ok "read-only folder: $action: quiet" quiet
	done
	cp "$db" "$dir/none.db"
	chmod 000 "$dir/none.db"
	ok 'a store that may not be read' look 4 "$dir/none.db" list
	ok 'a store that may not be read: says so' says 'none.db: Permission denied$' err
	ok 'a store that may not be read: one line' one_line
else
	echo "store: read-only: skipped: cannot run kvmsim as another user"
	skipped=$((skipped + 11))
fi
chmod 755 "$dir/ro ?#%"
ok 'list: units' sh -c "'$kvmsim' store '$db' list | grep -q \"interval (guest insns).*elapsed (profile's unit)\""

# ---- a full disk: a limit on file size fails writes in the same place ----
full=$dir/full.db
ok 'a first run' fill 0 "$full" --replicates 2
(
	trap '' XFSZ
	ulimit -f 200
	"$kvmsim" compare "$trace" --slot vram --dirty walk,mask --profile unit --shadow-pages 500 \
		--replicates 100 --store "$full" >"$dir/out" 2>"$dir/err"
	echo $? >"$dir/code"
)
ok 'full disk: 4' [ "$(cat "$dir/code")" -eq 4 ]
ok 'full disk: one line' one_line
ok 'full disk: what is safe' says 'stored before are whole$' err
safe=$(sed -n 's/.*the \([0-9]*\) runs stored before.*/\1/p' "$dir/err")
ok 'full disk: intact' run 0 store "$full" check
ok 'full disk: as many' says "^$safe runs, all whole$" out
ok 'full disk: more than the first' [ "${safe:-0}" -gt 4 ]

# ---- interrupted, killed ----
for signal in INT KILL; do
	"$kvmsim" compare "$trace" --slot vram --dirty walk,mask --profile unit --shadow-pages 500 \
		--replicates 5000 --store "$dir/$signal.db" >"$dir/out" 2>"$dir/err" &
	pid=$!
	# until some runs are there
	tries=0
	while [ $tries -lt 200 ] && kill -0 $pid 2>/dev/null; do
		n=$("$kvmsim" store "$dir/$signal.db" list --csv 2>/dev/null | wc -l)
		[ "$n" -gt 5 ] && break
		tries=$((tries + 1))
		sleep 0.1
	done
	kill -$signal $pid 2>/dev/null
	wait $pid 2>/dev/null
	echo $? >"$dir/code"
	if [ $signal = INT ]; then
		ok 'interrupted: 130' [ "$(cat "$dir/code")" -eq 130 ]
		ok 'interrupted: one line' one_line
		ok 'interrupted: says so' says '^kvmsim: interrupted after [0-9]* runs*, stored in' err
		stored=$(sed -n 's/.*after \([0-9]*\) runs.*/\1/p' "$dir/err")
	fi
	ok "SIG$signal: intact" run 0 store "$dir/$signal.db" check
	ok "SIG$signal: whole runs" says '^[1-9][0-9]* runs, all whole$' out
	[ $signal = INT ] && ok 'interrupted: as many' says "^$stored runs" out
done

the_end
