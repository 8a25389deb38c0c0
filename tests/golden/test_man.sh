#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The manual against the program: a page per verb, the same options as --help, clean mdoc, and every
# example in the pages, README.md and docs/tutorial.md runs. Comparisons run with two replicates.
#   test_man.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
kvmsim=$(realpath "$kvmsim")
root=$(realpath "$(dirname "$0")/../..")
man=$root/docs/man
: >"$dir/out"
: >"$dir/err"

empty() { [ ! -s "$dir/out" ]; }

# Options, one a line, but --help, which every verb has.
help_options() { # VERB: of the usage and of the list's first column
	"$kvmsim" "$1" --help | sed -n -e '/^Usage:/p' -e '/^ *kvmsim /p' -e 's/^  \(-.*\)/\1  /p' |
		sed '/^-/s/   *.*//' | grep -oE -- '(^|[^a-zA-Z0-9-])--?[a-z][a-z-]*' |
		grep -oE -- '--?[a-z][a-z-]*' | grep -v '^--help$' | sort -u
}
page_options() { # PAGE: of the tagged list
	sed -n 's/^\.It Fl/Fl/p' "$1" | grep -oE 'Fl -?[a-z][a-z-]*' | sed 's/^Fl /-/' |
		grep -v '^--help$' | sort -u
}
mentioned() { # PAGE: options anywhere in the source but in the lines that speak of other verbs
	grep -v '^\.Ic' "$1" | grep -oE '(^|[ .|])Fl -?[a-z][a-z-]*' | grep -oE -- '-?[a-z][a-z-]*$' |
		sed 's/^/-/' | grep -v '^--help$' | sort -u
}

verbs=$("$kvmsim" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
for verb in $verbs; do
	page=$man/kvmsim-$verb.1
	: >"$dir/out"
	ok "$verb: a page" [ -f "$page" ]
	[ -f "$page" ] || continue
	help_options "$verb" >"$dir/help"
	page_options "$page" >"$dir/page"
	mentioned "$page" >"$dir/mentioned"
	diff "$dir/help" "$dir/page" >"$dir/out"
	ok "$verb: options as in --help" empty
	comm -13 "$dir/page" "$dir/mentioned" >"$dir/out"
	ok "$verb: no other options" empty
	ok "$verb: named by kvmsim(1)" grep -q "^\.Xr kvmsim-$verb 1" "$man/kvmsim.1"
	ok "$verb: exit status" grep -q '^\.Sh EXIT STATUS' "$page"
	ok "$verb: an example" grep -q "^\$ kvmsim $verb" "$page"
done
for page in "$man"/kvmsim-*.1; do
	verb=${page##*/kvmsim-}
	verb=${verb%.1}
	: >"$dir/out"
	ok "$verb: a verb" sh -c "'$kvmsim' '$verb' --help >/dev/null 2>&1"
done

# Every column of the CSV has its line.
run 0 replay "$trace" --dirty mask --profile unit --csv
head -n 1 "$dir/out" | tr , '\n' >"$dir/columns-replay"
run 0 compare "$trace" --dirty mask,walk --profile unit --replicates 2 --csv
head -n 1 "$dir/out" | tr , '\n' >"$dir/columns-compare"
for verb in replay compare; do
	sed -n '/^\.Ss CSV/,/^\.Sh/s/^\.It //p' "$man/kvmsim-$verb.1" |
		diff "$dir/columns-$verb" - >"$dir/out"
	ok "$verb: columns of the CSV" empty
done

if command -v mandoc >/dev/null; then
	# whether other manuals are installed is not ours
	mandoc -T lint -W style "$man"/*.1 2>/dev/null |
		grep -v 'referenced manual not found' >"$dir/out"
	ok 'mdoc is clean' empty
else
	echo "man: mdoc is clean: skipped: no mandoc here"
	skipped=$((skipped + 1))
fi

# ---- examples: in a folder of their own, with the repository's files beside them ----
mkdir "$dir/run" "$dir/bin"
for f in traces tests docs analysis workloads; do
	ln -s "$root/$f" "$dir/run/$f"
done
ln -s "$kvmsim" "$dir/bin/kvmsim"
# Lines of a man page that begin with "$ ", of a Markdown block that begin with kvmsim; joined where
# they end in a backslash.
# shellcheck disable=SC2016 # awk's dollars
join='{ while (sub(/\\$/, "") && (getline more) > 0) $0 = $0 more; print }'
examples() { # FILE
	case $1 in
	*.1) sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/p' "$1" | sed -e 's/\\e$/\\/' -e 's/^\$ //' ;;
	*) sed -n 's/^    //p' "$1" | sed 's/^\$ //' ;;
	esac | awk "$join" | sed -n 's|^\(build/release/\)\{0,1\}\(kvmsim .*\)|\2|p'
}
# A whole validation is test_validate.sh's; not every machine can record.
quick() {
	sed -E -e 's/^(kvmsim record [a-z]+).*/\1 --help/' -e 's/--replicates [0-9]+/--replicates 2/' -e 's/^(kvmsim compare .*)/\1 -j 1/' \
		-e '/--matrix/!s/^(kvmsim validate.*)/\1 --help/'
}

case $kvmsim in
*/debug/*)
	echo "man: examples: skipped: they run in the optimised builds, sanitizers are slow"
	skipped=$((skipped + 1))
	;;
*)
	for f in "$man"/*.1 "$root/README.md" "$root/docs/tutorial.md"; do
		examples "$f" | grep -v 'FILE' | quick >"$dir/examples"
		ok "${f##*/}: has examples" [ -s "$dir/examples" ]
		while read -r line; do
			(cd "$dir/run" && PATH=$dir/bin:$PATH sh -c "$line") \
				>/dev/null 2>"$dir/err" </dev/null
			ok "${f##*/}: $line" [ $? -eq 0 ]
		done <"$dir/examples"
	done
	;;
esac

the_end
