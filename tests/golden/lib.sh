# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What the scripts here share; read with `.` and the build's folder as $1:
#   name of the test, kvmsim, trace (a recorded one), dir (temporary, gone at the end), and checks.
set -u
kvmsim=$1/kvmsim
name_of_test=$(basename "$0" .sh)
name_of_test=${name_of_test#test_}
# shellcheck disable=SC2034 # the scripts use it
trace=$(dirname "$0")/../../traces/recorded/x11perf.kvt
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT INT TERM
passed=0 failed=0 skipped=0

ok() { # NAME CONDITION...: the last run's output is shown when it fails
	name=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$name_of_test: failed: $name"
		sed 's/^/  out: /' "$dir/out" | head -n 40
		sed 's/^/  err: /' "$dir/err"
	fi
}
run() { # CODE ARGUMENT...: runs kvmsim; true when it exits with CODE
	want=$1
	shift
	"$kvmsim" "$@" >"$dir/out" 2>"$dir/err"
	code=$?
	[ "$code" -eq "$want" ]
}
check() { # NAME CODE WORDS COMMAND...: its exit status, and words in what it says on either stream
	name=$1 code=$2 words=$3
	shift 3
	"$@" >"$dir/out" 2>"$dir/err"
	got=$?
	ok "$name: exit $got, $code and '$words' wanted" said "$got" "$code" "$words"
}
said() { [ "$1" -eq "$2" ] && cat "$dir/out" "$dir/err" | grep -qF -e "$3"; }
one_line() { [ "$(wc -l <"$dir/err")" -eq 1 ] && [ ! -s "$dir/out" ]; }
quiet() { [ ! -s "$dir/err" ]; }
says() { grep -q -e "$1" "$dir/$2"; } # REGEX out|err
bad() { # NAME CODE ARGUMENT...: refused, in one line
	bad_name=$1
	shift
	ok "$bad_name" run "$@"
	ok "$bad_name: one line" one_line
}
# Until the program catches SIGINT and SIGTERM, which it does once it has begun; before that the process
# is still this shell's. A minute at most. In the mask SIGTERM (15) is bit 2 of the fourth digit.
catching() { # PID
	tries=0
	until { [ "$(cat "/proc/$1/comm")" = kvmsim ] &&
		grep -q '^SigCgt:.*[4567cdef]...$' "/proc/$1/status"; } 2>/dev/null ||
		[ $tries -ge 1200 ]; do
		sleep 0.05
		tries=$((tries + 1))
	done
}
# Until something is in the file; twenty seconds at most.
written() { # FILE
	tries=0
	until [ -s "$1" ] || [ $tries -ge 200 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
}
the_end() {
	echo "$name_of_test: $passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
}
