#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The rooms' arrows (docs/ARCHITECTURE.md): who may include whom; in model/ no files, no output, no
# exit; in model/ and traces/ no floating point and no GSL.
#   test_arrows.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
export LC_ALL=C
build=$(realpath "$1")
root=$(realpath "$(dirname "$0")/../..")
: >"$dir/err"

empty() { [ ! -s "$dir/out" ]; }
full() { [ -s "$dir/out" ]; }

# Sources under the folders, one a line.
sources() { # ROOT FOLDER...
	(cd "$1" && shift && find "$@" -name '*.[chS]' | sort)
}

# Folder or file, then what it may include of ours; the first line that fits counts.
arrows='
^model/(counts|params)\.[ch]$	^model/(counts\.h|params\.h|sim/)
^model/sim/	^model/sim/
^model/host/	^model/(host/|sim/|counts\.h)
^model/policy/lock\.h$	^model/(policy/|smp/spin\.h|sim/)
^model/policy/[^/]*\.h$	^model/(policy/|sim/)
^model/policy/	^model/(policy/|mmu/|smp/|host/|sim/|counts\.h)
^model/smp/	^model/(smp/|policy/(policy|preset)\.h|host/|sim/|counts\.h)
^model/mmu/	^model/(mmu/|policy/[^/]*\.h|host/|sim/|counts\.h)
^model/guest/	^model/(guest/|mmu/|policy/|host/|sim/|counts\.h)
^traces/	^(traces/|model/guest/op\.h|model/sim/error\.h)
^workloads/kvm/	^(workloads/kvm/|workloads/(matrix_layout|ops_program)\.h|model/guest/op\.h|model/sim/error\.h)
^workloads/	^(workloads/|model/guest/(vm|vcpu|ring|op|interp|watch)\.h|model/mmu/(trace|stats|cpu_regs)\.h|model/policy/policy\.h|model/smp/|model/host/(machine|sched)\.h|model/sim/|model/counts\.h)
^analysis/	^(analysis/|workloads/|traces/|model/guest/(vm|vcpu|ring|op|interp|personality|watch)\.h|model/mmu/(trace|stats|cpu_regs)\.h|model/policy/(policy|preset)\.h|model/smp/|model/host/|model/sim/|model/(counts|params)\.h)
'
wrong_arrows() { # ROOT: "FILE includes HEADER", one a line
	sources "$1" model traces workloads analysis | while read -r f; do
		sed -nE "s|^[[:space:]]*#[[:space:]]*include[[:space:]]*\"([^\"]*)\".*|$f \1|p" "$1/$f"
	done | RULES=$arrows awk '
		BEGIN {
			n = split(ENVIRON["RULES"], line, "\n")
			for (i = 1; i <= n; i++)
				if (split(line[i], r, "\t") == 2) { m++; from[m] = r[1]; to[m] = r[2] }
		}
		{
			for (i = 1; i <= m && $1 !~ from[i]; i++)
				;
			if (i > m || $2 !~ to[i])
				print $1 " includes " $2
		}'
}
# Code with comments and strings taken out, as FILE:TEXT.
code() { # ROOT FOLDER...
	r=$1
	sources "$@" | while read -r f; do
		tr '\n' '\001' <"$r/$f" | sed -e 's|/\*[^*]*\*\**\([^/*][^*]*\*\**\)*/| |g' |
			tr '\001' '\n' |
			sed -e 's|//.*||' -e 's/"\([^"\\]\|\\.\)*"/""/g' -e "s|^|$f:|"
	done
}
floating() { # ROOT
	code "$1" model traces | grep -E ':.*(\<(float|double|long double|_Float[0-9]+)\>|[^A-Za-z0-9_][0-9]+\.[0-9]|<(math|gsl/[a-z_]*)\.h>)'
}
# What the objects of model/ take from outside, but for memory, strings, libinih's parser over a
# buffer, the coroutine switch and its stacks, 128-bit division, and what sanitizers add. abort() is
# for the end of a coroutine's stack, which nothing can reach: coro.o alone has it.
allowed='mem(chr|cmp|cpy|move|set)|bcmp|str(chr|cmp|cspn|dup|len|ncat|spn)|v?snprintf|qsort
malloc|calloc|realloc|free|aligned_alloc|mmap|mprotect|munmap|sysconf
ini_parse_stream|(jump|make)_fcontext|__popcountdi2|__u?(div|mod)ti3|_GLOBAL_OFFSET_TABLE_
__(asan|ubsan|sanitizer)_.*'
outside() { # OBJECT...
	nm --defined-only "$@" | awk 'NF == 3 { print $3 }' | sort -u >"$dir/defined"
	nm -A -u "$@" | awk 'NF == 3 { sub(/:$/, "", $1); print $3, $1 }' | sort |
		join -v 1 - "$dir/defined" |
		grep -vE "^($(echo "$allowed" | paste -sd '|' -)) " |
		grep -vE '^abort model/sim/coro\.o$'
}

wrong_arrows "$root" >"$dir/out"
ok 'every include follows the arrows' empty
floating "$root" >"$dir/out"
ok 'integers only in model/ and traces/' empty
cd "$build" || exit 2 # names without blanks, wherever the build is
# shellcheck disable=SC2046 # a list of files
outside $(find model -name '*.o' | sort) >"$dir/out"
ok 'model/ opens, prints and ends nothing' empty
sources "$root" model traces workloads analysis >"$dir/all"
while read -r f; do
	grep -q 'SPDX-License-Identifier: GPL-' "$root/$f" || echo "$f: no SPDX line"
	case $f in
	# those of workloads/qemu are loaded into QEMU, whose interface is of that licence
	model/* | traces/* | workloads/qemu/plugin.c | workloads/qemu/qemu_api.h | workloads/qemu/tracker.[ch] | \
		workloads/qemu/locks.[ch] | workloads/qemu/plugin_locks.[ch])
		grep -q 'GPL-2.0-or-later' "$root/$f" || echo "$f: not GPL-2.0-or-later"
		;;
	*) grep -q 'GPL-3.0-or-later' "$root/$f" || echo "$f: not GPL-3.0-or-later" ;;
	esac
done <"$dir/all" >"$dir/out"
ok 'licences by room' empty

# ---- that it finds what is wrong ----
bad=$dir/bad
mkdir -p "$bad/model/sim" "$bad/model/host" "$bad/model/policy" "$bad/traces" "$bad/workloads" "$bad/analysis"
one() { # FILE TEXT: a tree with one file
	rm -f "$bad"/model/*/* "$bad"/traces/* "$bad"/workloads/* "$bad"/analysis/*
	printf '%s\n' "$2" >"$bad/$1"
}
one model/sim/a.c '#include "model/host/lock.h"'
wrong_arrows "$bad" >"$dir/out"
ok 'found: sim to host' full
one model/policy/a.h '#include "model/mmu/mmu.h"'
wrong_arrows "$bad" >"$dir/out"
ok 'found: a policy header to mmu' full
one traces/a.c '#include "analysis/run.h"'
wrong_arrows "$bad" >"$dir/out"
ok 'found: traces to analysis' full
one workloads/a.c '#include "model/mmu/mmu.h"'
wrong_arrows "$bad" >"$dir/out"
ok "found: a workload to the MMU's inside" full
one analysis/a.c '# include "model/mmu/mmu.h"'
wrong_arrows "$bad" >"$dir/out"
ok "found: analysis to the MMU's inside" full
one model/host/a.c 'static double x;'
floating "$bad" >"$dir/out"
ok 'found: a double' full
one traces/a.c 'int x = 2 * 1.5;'
floating "$bad" >"$dir/out"
ok 'found: a floating constant' full
one model/host/a.c '/* a double */ // 1.5
const char *s = "2.6";'
floating "$bad" >"$dir/out"
ok 'not found: words in comments and strings' empty
outside analysis/main.o >"$dir/all"
grep '^printf \|^__printf_chk ' "$dir/all" >"$dir/out"
ok 'found: an object that prints' full

the_end
