# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs a plan in a kernel under QEMU. Read with `.`, with $cache, $work and $src set. Each function
# returns 1 with a $reason.

# The VMM, once for all plans.
boot_vmm() {
	[ -f "$work/vmm" ] || ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -static -I. \
		-o "$work/vmm" "$src"/*.c workloads/ops_check.c workloads/ops_expr.c workloads/ops_program.c workloads/parallel.c || none "the recorder does not build"
}

# Packs what the kernel runs; the same bytes for the same content, since the guest's timing follows
# from them.
boot_initrd() { # PLAN
	root=$work/root
	rm -rf "$root" && mkdir -p "$root/cases" "$root/dev" "$root/sys" || return 1
	boot_vmm && cp "$work/vmm" "$root/init" && cp "$1" "$root/plan" &&
		cp "$src"/cases/*.case "$src"/cases/*.ops "$root/cases/" &&
		mkdir "$root/modules" && cp -r "$stock" "$root/modules/stock" || return 1
	if [ -n "$patched" ]; then
		cp -r "$patched" "$root/modules/patched" || return 1
	fi
	find "$root" -exec touch -d @0 {} +
	(cd "$root" && find . | LC_ALL=C sort | cpio --quiet --reproducible -o -H newc -R 0:0) \
		>"$work/initrd" || none "cannot make the initrd"
}

# One instruction is one nanosecond of virtual time, so that two runs are the same to the event.
# $qemu and $cpus say what it runs on.
boot_once() { # COMMAND-LINE
	# shellcheck disable=SC2086 # a command with options
	timeout "$limit_s" $qemu -machine q35 -accel tcg -icount shift=0,sleep=off \
		-cpu max,la57=off -m 1024 -smp "$cpus" -nodefaults -no-user-config -display none \
		-no-reboot -seed 1 -rtc base=2020-01-01T00:00:00,clock=vm -net none \
		-kernel "$vmlinuz" -initrd "$work/initrd" \
		-append "console=ttyS0 quiet nokaslr mitigations=off panic=-1 random.trust_cpu=on$1" \
		-serial "file:$work/console.log" -chardev "file,id=rows,path=$work/boot.csv" \
		-device isa-debugcon,iobase=0xe9,chardev=rows </dev/null &
	qemu_pid=$!
	wait "$qemu_pid"
	rc=$?
	qemu_pid=''
	tr -d '\r' <"$work/console.log" >>"$cache/console.log"
	[ "$rc" -ne 124 ] || none "QEMU was stopped after $limit_s s (KVMSIM_QEMU_LIMIT_S)" || return 1
	if [ "$rc" -ne 0 ] || ! tr -d '\r' <"$work/console.log" | grep -q '^vmm: done$'; then
		tail -n 20 "$cache/console.log" >&2
		none "the recording ended early, QEMU's status $rc; all of it is in $cache/console.log"
	fi
}

# The rows are left in $work/rows.csv. A kernel of one's own boots once for each set of parameters, which
# suits what is built in and what cannot be unloaded; the VMM takes the part of the plan that is about
# them.
boot_run() { # PLAN
	boot_initrd "$1" || return 1
	: >"$cache/console.log"
	if [ -z "$own" ]; then
		boot_once '' && mv "$work/boot.csv" "$work/rows.csv"
		return
	fi
	: >"$work/rows.csv"
	for with in 'kvm_amd.npt=0 -- kvm npt=0' 'kvm.tdp_mmu=0 kvm_amd.npt=1 -- kvm tdp_mmu=0 npt=1' 'kvm_amd.npt=1 -- kvm npt=1'; do
		boot_once " $with" || return 1
		if [ -s "$work/rows.csv" ]; then sed 1d "$work/boot.csv"; else cat "$work/boot.csv"; fi >>"$work/rows.csv" ||
			return 1
	done
}
