#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Records what Debian's own kernel does, as it is or with patches/, under QEMU, and holds the model
# against it.
#   tests/kernel/validate.sh [PLAN...]    README.md beside this file; quick without one
#   KVMSIM_KERNEL=DIR tests/kernel/validate.sh [PLAN...]    a kernel of your own
# Leaves build/kernel/PLAN.csv, traces/. Exit 0: equal, or skipped with the reason; 1: not; 130: interrupted.
set -u
cd "$(dirname "$0")/../.." || exit 1
src=tests/kernel
cache=build/kernel
own=${KVMSIM_KERNEL:-}
limit_s=${KVMSIM_QEMU_LIMIT_S:-1200}
case $limit_s in
*[!0-9]* | 0*)
	echo "kernel: KVMSIM_QEMU_LIMIT_S is '$limit_s'; expected seconds, 1 or more" >&2
	exit 1
	;;
esac
# shellcheck source=tests/kernel/modules.sh
. "$src/modules.sh"
# shellcheck source=tests/kernel/any.sh
. "$src/any.sh"
# shellcheck source=tests/kernel/debian.sh
. "$src/debian.sh"
# shellcheck source=tests/kernel/patched.sh
. "$src/patched.sh"
# shellcheck source=tests/kernel/boot.sh
. "$src/boot.sh"

passed=0 failed=0 skipped=0
skip() {
	echo "kernel: skipped: $*"
	skipped=$((skipped + 1))
}
fail() {
	echo "kernel: $*" >&2
	failed=$((failed + 1))
}
the_end() {
	echo "kernel: $passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
	exit
}

work='' kbuild='' qemu_pid=''
cleanup() {
	[ -z "$qemu_pid" ] || kill "$qemu_pid" 2>/dev/null
	[ -z "$work" ] || rm -rf "$work"
	[ -z "$kbuild" ] || rm -rf "$kbuild"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# What is missing here for every plan.
ready() {
	[ "$(uname -m)" = x86_64 ] || none "the recorder is for x86-64" || return 1
	set -- qemu-system-x86_64:qemu-system-x86 cpio:cpio cc:gcc
	[ -n "$own" ] || set -- "$@" dpkg-deb:dpkg apt-get:apt apt-cache:apt
	for tool; do
		command -v "${tool%%:*}" >/dev/null ||
			none "no ${tool%%:*}; Debian has it in ${tool##*:}" || return 1
	done
	if [ -n "$own" ]; then
		any_kernel "$own" || { wrong=kernel; return 1; } # that was named: no lack of this machine's
	else
		debian_kernel
	fi
}

# What runs in parallel needs two CPUs, and so a newer QEMU.
choose_qemu() { # PLAN
	qemu=qemu-system-x86_64 cpus=1
	grep -q '^parallel' "$1" || return 0
	cpus=2
	qemu=$("$src/qemu10.sh" "$cache") || none "$qemu"
}

# A plan that also asks which tracepoints and statistics there are, with each MMU.
with_names() { # PLAN
	awk '{ print } /^mmu/ { print "names" }' "$1" >"$work/names.plan" && plan=$work/names.plan
}

# What the kernel lacks and some runs needed: they ended there.
lacking() {
	sed -n 's/^vmm: lacks: //p' "$cache/console.log" | sort -u >"$work/lacks"
	[ -s "$work/lacks" ] || return 0
	while read -r what; do
		echo "kernel: $abi lacks $what; what needs it is not compared"
	done <"$work/lacks"
	[ -n "$own" ]
}

# Rows to $cache/NAME.csv, traces to files of their own, names of what there is to NAME.has.
split() { # NAME
	rm -rf "$cache/traces"
	mkdir "$cache/traces" && awk -v to="$cache/traces/" '/^TRACE / { file = to $2 ".txt"; next }
		/^ENDTRACE$/ { close(file); file = ""; next }
		file != "" { print > file; next } !/^HAS / { print }' "$work/rows.csv" >"$cache/$1.csv" &&
		sed -n 's/^HAS //p' "$work/rows.csv" | LC_ALL=C sort -u >"$cache/$1.has" &&
		[ "$(cat "$cache/$1.csv" "$cache"/traces/* 2>/dev/null | wc -l)" -gt 1 ] || none "no rows were recorded"
}

# The recording is the expected side; validate ends with 1 when a row or an event differs.
judge() { # FILE VALIDATE-OPTION...
	file=$1
	shift
	build/release/kvmsim validate "$@"
	rc=$?
	case $rc in
	0) passed=$((passed + 1)) ;;
	1) fail "the model and the kernel differ on $file" ;;
	*) fail "kvmsim validate $* ended with status $rc" ;;
	esac
}

validate() { # PLAN
	plan=$1 patched='' kernel="${own:-Debian}'s $abi" reason=''
	[ -f "$plan" ] || plan=$src/${1%.plan}.plan
	[ -f "$plan" ] || { fail "no such plan: $1, $plan"; return; }
	grep -Eq '^[[:space:]]*(run|trace|parallel|cost)[[:space:]]' "$plan" ||
		{ fail "$plan: nothing to record, expected run, trace, parallel or cost"; return; }
	choose_qemu "$plan" || { skip "$plan: $reason"; return; }
	if grep -q '^mode' "$plan" && [ -n "$own" ]; then
		skip "$plan: its patches are made for Debian's kernel"
		return
	elif grep -q '^mode' "$plan"; then
		kernel="$kernel with $src/patches"
		patched_modules
		case $? in
		0) ;;
		1) skip "$plan: $reason"; return ;;
		*) fail "$plan: $reason"; return ;;
		esac
	fi
	name=$(basename "$plan" .plan)
	echo "kernel: $kernel under $(${qemu%% *} --version | head -n 1), plan $plan"
	[ -z "$own" ] || with_names "$plan"
	boot_run "$plan" && split "$name" || { fail "$plan: $reason"; return; }
	lacking || { fail "$plan: $abi lacks what it needs"; return; }
	set -- --programs "$src/cases"
	[ -z "$own" ] || set -- "$@" --kernel "${KVMSIM_PRESET:-$abi}" --has "$cache/$name.has"
	if [ "$(wc -l <"$cache/$name.csv")" -gt 1 ]; then
		judge "$cache/$name.csv" --matrix "$cache/$name.csv" "$@"
	fi
	for trace in "$cache"/traces/*.txt; do
		[ ! -f "$trace" ] || judge "$trace" --first-divergence "$@" "$trace"
	done
}

reason='' abi='' wrong=''
[ -x build/release/kvmsim ] || { fail "no build/release/kvmsim; run ninja first"; the_end; }
if [ -n "${KVMSIM_PRESET:-}" ] && ! expr "X$KVMSIM_PRESET" : 'X[0-9]\{1,\}\.[0-9]\{1,\}' >/dev/null; then
	fail "KVMSIM_PRESET is '$KVMSIM_PRESET'; expected a version, as 6.12: the presets nearest to it are taken"
	the_end
fi
mkdir -p "$cache" && work=$(mktemp -d "$cache/run.XXXXXX") ||
	{ fail "cannot write to $cache"; the_end; }
[ $# -gt 0 ] || set -- quick
ready || {
	if [ -n "$wrong" ]; then
		fail "$reason"
	else
		skip "$reason"
	fi
	the_end
}
for plan; do
	validate "$plan"
done
the_end
