#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# docs/recorded-guests.md says what the program says: some rows of each machine, reckoned anew.
#   tests/golden/test_docs.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
why=
case $kvmsim in */debug/*) why='it runs in the optimised build' ;; esac
command -v jq >/dev/null || why='no jq here; scripts/setup.sh test installs it'
if [ -n "$why" ]; then
	echo "docs: recorded guests: skipped: $why"
	skipped=$((skipped + 1))
else
	"$(dirname "$0")/../../docs/recorded-guests.sh" "$(realpath "${kvmsim%/kvmsim}")" check >"$dir/out" \
		2>"$dir/err"
	ok 'recorded-guests.md has the rows that docs/recorded-guests.sh finds' [ $? -eq 0 ]
	ok 'recorded-guests.md: nothing went wrong' quiet
fi
the_end
