#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Records what Debian's own kernel does, under QEMU, and holds the model against it.
#   tests/kernel/validate.sh [quick|full|manual|huge|notifier|vcpus|smp|traces|PLAN-FILE]        README.md beside this file
# Leaves build/kernel/result.csv. Exit 0: equal, or skipped with the reason; 1: not; 130: interrupted.
set -u
cd "$(dirname "$0")/../.." || exit 1
src=tests/kernel
cache=build/kernel
plan=${1:-quick}
[ -f "$plan" ] || plan=$src/$plan.plan
[ -f "$plan" ] || { echo "kernel: no such plan: $plan" >&2; exit 1; }
limit_s=${KVMSIM_QEMU_LIMIT_S:-1200}

skip() {
	echo "kernel: skipped: $*"
	echo "kernel: 0 passed, 0 failed, 1 skipped"
	exit 0
}
fail() {
	echo "kernel: $*" >&2
	echo "kernel: 0 passed, 1 failed, 0 skipped"
	exit 1
}

work='' qemu_pid=''
cleanup() {
	[ -z "$qemu_pid" ] || kill "$qemu_pid" 2>/dev/null
	[ -z "$work" ] || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

[ "$(uname -m)" = x86_64 ] || skip "the recorder is for x86-64"
for tool in qemu-system-x86_64:qemu-system-x86 cpio:cpio cc:gcc dpkg-deb:dpkg apt-get:apt apt-cache:apt; do
	command -v "${tool%%:*}" >/dev/null || skip "no ${tool%%:*}; Debian has it in ${tool##*:}"
done
[ -x build/release/kvmsim ] || fail "no build/release/kvmsim; run ninja first"

mkdir -p "$cache" || fail "cannot make $cache"
# What runs in parallel needs two CPUs, and so a newer QEMU.
qemu=qemu-system-x86_64 cpus=1
if grep -q '^parallel' "$plan"; then
	qemu=$("$src/qemu10.sh" "$cache") || skip "$qemu"
	cpus=2
fi
work=$(mktemp -d "$cache/run.XXXXXX") || fail "cannot write to $cache"

# The ABI's name changes with Debian's updates: ask what the cloud kernel is now. Offline, the
# kernel of an earlier run does as well.
image=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
	sed -n 's/^ *Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1)
case $image in
linux-image-6.1.*) ;;
'') ;;
*) skip "Debian's cloud kernel here is $image; the model's preset is 6.1" ;;
esac
deb=$(find "$cache" -maxdepth 1 -name "${image:-linux-image-6.1.}*_amd64.deb" | sort | tail -n 1)
if [ -z "$deb" ]; then
	[ -n "$image" ] || skip "apt knows no linux-image-cloud-amd64; apt-get update makes it known"
	# In a folder of its own, so that a half download is never taken for a whole one.
	mkdir "$work/deb"
	(cd "$work/deb" && apt-get download "$image") >"$work/apt.log" 2>&1 ||
		skip "cannot download $image: $(grep '^E:' "$work/apt.log" | head -n 1)"
	mv "$work"/deb/*.deb "$cache/" || fail "no package came of apt-get download $image"
	deb=$(find "$cache" -maxdepth 1 -name "${image}_*_amd64.deb" | sort | tail -n 1)
fi
[ -n "$deb" ] || fail "no kernel package in $cache"

# kvm.ko and kvm-amd.ko, and what they say they depend on.
mkdir -p "$work/kernel" "$work/root/modules" "$work/root/cases" || fail "cannot write to $work"
dpkg-deb --fsys-tarfile "$deb" | tar -C "$work/kernel" -x --wildcards \
	'./boot/vmlinuz-*' '*/kernel/arch/x86/kvm/*.ko' '*/kernel/virt/lib/*.ko' ||
	fail "cannot unpack $deb"
vmlinuz=$(echo "$work"/kernel/boot/vmlinuz-*)
[ -f "$vmlinuz" ] || fail "no vmlinuz in $deb"
for module in irqbypass kvm kvm-amd; do
	file=$(find "$work/kernel" -name "$module.ko")
	[ -n "$file" ] || fail "no $module.ko in $deb"
	needs=$(tr '\0' '\n' <"$file" | sed -n 's/^depends=//p' | tr ',' ' ')
	for need in $needs; do
		[ -f "$work/root/modules/$need.ko" ] ||
			fail "$module.ko needs $need.ko, which $src/vmm.c does not load before it"
	done
	cp "$file" "$work/root/modules/" || fail "cannot write to $work"
done

${CC:-cc} -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -static -I. -o "$work/root/init" $src/*.c \
	workloads/ops_expr.c workloads/ops_program.c workloads/parallel.c ||
	fail "the recorder does not build"
cp "$plan" "$work/root/plan" || fail "cannot write to $work"
cp $src/cases/*.case $src/cases/*.ops "$work/root/cases/" || fail "cannot write to $work"
mkdir "$work/root/dev" "$work/root/sys" || fail "cannot write to $work"
# The same bytes for the same content, since the guest's timing follows from them.
find "$work/root" -exec touch -d @0 {} +
(cd "$work/root" && find . | LC_ALL=C sort | cpio --quiet --reproducible -o -H newc -R 0:0) \
	>"$work/initrd" || fail "cannot make the initrd"

# One instruction is one nanosecond of virtual time, so that two runs are the same to the event.
abi=${vmlinuz##*/vmlinuz-}
echo "kernel: Debian's $abi under $(${qemu%% *} --version | head -n 1), plan $plan"
(
	cd "$work" || exit 1
	# shellcheck disable=SC2086 # a command with options
	exec timeout "$limit_s" $qemu -machine q35 -accel tcg -icount shift=0,sleep=off \
		-cpu max,la57=off -m 1024 -smp $cpus -nodefaults -no-user-config -display none -no-reboot \
		-seed 1 -rtc base=2020-01-01T00:00:00,clock=vm -net none \
		-kernel "kernel/boot/vmlinuz-$abi" -initrd initrd \
		-append "console=ttyS0 quiet nokaslr mitigations=off panic=-1 random.trust_cpu=on" \
		-serial file:console.log -chardev file,id=rows,path=rows.csv \
		-device isa-debugcon,iobase=0xe9,chardev=rows
) </dev/null &
qemu_pid=$!
wait "$qemu_pid"
rc=$?
qemu_pid=''
tr -d '\r' <"$work/console.log" >"$cache/console.log"
if [ "$rc" -ne 0 ] || ! grep -q '^vmm: done$' "$cache/console.log"; then
	tail -n 20 "$cache/console.log" >&2
	[ "$rc" -ne 124 ] || fail "QEMU was stopped after $limit_s s (KVMSIM_QEMU_LIMIT_S)"
	fail "the recording ended early, QEMU's status $rc; all of it is in $cache/console.log"
fi
# Rows, and traces in files of their own.
rm -rf "$cache/traces"
mkdir "$cache/traces" || fail "cannot make $cache/traces"
awk -v to="$cache/traces/" '/^TRACE / { file = to $2 ".txt"; next }
	/^ENDTRACE$/ { close(file); file = ""; next }
	file != "" { print > file; next } { print }' "$work/rows.csv" >"$cache/result.csv" &&
	[ -s "$cache/result.csv" ] || fail "no rows were recorded"

# The recording is the expected side; validate ends with 1 when a row or an event differs.
passed=0
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
if [ "$(wc -l <"$cache/result.csv")" -gt 1 ]; then
	judge "$cache/result.csv" --matrix "$cache/result.csv" --programs $src/cases
fi
for file in "$cache"/traces/*.txt; do
	[ -f "$file" ] || continue
	judge "$file" --first-divergence "$file" --programs $src/cases
done
echo "kernel: $passed passed, 0 failed, 0 skipped"
