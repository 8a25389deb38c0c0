#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The command's frame: help, version, wrong usage, unwritable output.
#   test_cli.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"

ok 'no verb' run 2
ok 'no verb: usage on stderr' says '^Usage: kvmsim VERB' err
ok '--help' run 0 --help
ok '--help: stdout only' quiet
ok '--help names the verbs' says '^  replay ' out
ok '--version' run 0 --version
ok '--version: one line' says '^kvmsim [0-9][0-9.]*$' out
ok 'unknown verb' run 2 frobnicate
ok 'unknown verb: one line' one_line
ok 'unknown verb is named' says "unknown verb 'frobnicate'" err

for verb in $("$kvmsim" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
	ok "$verb --help" run 0 "$verb" --help
	ok "$verb --help: usage" says "^Usage: kvmsim $verb" out
	ok "$verb --help: stdout only" quiet
	ok "$verb: unknown option" run 2 "$verb" --frobnicate
	ok "$verb: unknown option: one line" one_line
done

ok 'list' run 0 list
ok 'list: policies' says '^ *mask ' out
ok 'list: broken ones are marked' says '^ *lossy .*\[broken\]' out
ok 'list: presets' says '^  6.1-shadow: ' out
ok 'list: CPUs' says '^  amd: ' out
ok 'list: profiles' says '^  tcg-icount: ' out
ok 'list: workloads' says '^  framebuffer ' out
ok 'list --json' run 0 list --json
ok 'list --json: twice the same' sh -c "'$kvmsim' list --json | cmp -s - '$dir/out'"
ok 'list: argument' run 2 list something

# A pair that cannot work is the caller's: the same in every verb that runs one.
printf '[scenario]\nworkload = migration\nslots = a:0:8192\nrounds = 4\n' >"$dir/small.ini"
pair() { # WORDS POLICY ARGUMENT...
	words=$1 policy=$2
	shift 2
	for verb in replay compare converge memstress; do
		case $verb in
		compare) what="--dirty mask,$policy --scenario $dir/small.ini" ;;
		memstress) what="--dirty $policy -b 1M" ;;
		*) what="--dirty $policy --scenario $dir/small.ini" ;;
		esac
		# shellcheck disable=SC2086 # words
		bad "$verb, $policy" 2 "$verb" $what "$@" --profile kvm-pvm
		ok "$verb, $policy: why" says "$words" err
	done
}
pair 'has no page-modification log' pml --kernel 6.1-tdp --cpu tcg
pair 'has no page-modification log' manual,pml=1 --kernel 6.1-tdp
pair 'visits shadow pages' walk --kernel 6.1-tdp

if [ -w /dev/full ]; then
	"$kvmsim" --help >/dev/full 2>"$dir/err"
	code=$?
	: >"$dir/out"
	ok 'full disk' [ $code -eq 4 ]
	ok 'full disk: one line' one_line
else
	echo "cli: full disk: skipped: no /dev/full"
	skipped=$((skipped + 2))
fi

the_end
