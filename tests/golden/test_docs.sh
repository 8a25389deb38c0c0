#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# docs/recorded-guests.md says what the program says: some rows of each machine, reckoned anew. So does
# docs/mmio.md: each of its commands, and what it prints, to the letter.
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
case $kvmsim in
*/debug/*)
	echo "docs: mmio.md: skipped: it runs in the optimised builds"
	skipped=$((skipped + 1))
	;;
*)
	PATH=$(realpath "${kvmsim%/kvmsim}"):$PATH
	# what follows a command, up to the next one or the text's next paragraph, is its output
	awk '/^    [$] / { print; on = 1; next } on && (/^    / || /^$/) { held = held $0 "\n"; next }
	     { if (on && held ~ /\n\n$|^\n$/) printf "\n"; on = 0; held = ""; print }' docs/mmio.md >"$dir/commands"
	while IFS= read -r line; do
		printf '%s\n' "$line"
		case $line in '    $ '*) sh -c "${line#*$ }" 2>&1 | sed 's/^./    &/' ;; esac
	done <"$dir/commands" >"$dir/again"
	ok 'mmio.md has commands' [ "$(grep -c '^    [$] ' "$dir/commands")" -ge 5 ]
	ok 'mmio.md is what its commands print' cmp -s docs/mmio.md "$dir/again"
	;;
esac
the_end
