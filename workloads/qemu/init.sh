#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The guest's first process: loads modules, finds the disk's root if there is one, and sources the
# scenario, which speaks to the recorder by tell (tell.c). Parameters are on the kernel's command
# line: kvmsim.NAME=VALUE.
parameter() { # NAME
	tr ' ' '\n' </proc/cmdline | sed -n "s/^kvmsim\.$1=//p" | tail -n 1
}
finish() {
	tell "done"
	busybox poweroff -f
}
give_up() { # WORDS
	tell fail "$*"
	busybox poweroff -f
}
# Runs a command as phase K.
phase() { # K NAME COMMAND...
	k=$1
	tell phase "$k" "$2"
	shift 2
	tell mark "$k"
	"$@"
	status=$?
	tell mark 0
	[ $status -eq 0 ] || give_up "$1 ended with status $status"
}
# Where the display's memory is: the first region of the PCI device of that class.
tell_vram() {
	for vga in /sys/bus/pci/devices/*; do
		[ "$(cut -c 1-6 "$vga/class")" = 0x0300 ] && break
	done
	read -r first last _ <"$vga/resource" || give_up 'no display'
	tell -m "$vga/resource0" vram "$(printf %x $((first >> 12)))" \
		"$(printf %x $(((last + 1 - first) >> 12)))" || give_up 'the display cannot be mapped'
}

if [ "$1" != second ]; then
	export PATH=/:/bin:/sbin:/usr/bin:/usr/sbin
	busybox mkdir -p /usr/bin /usr/sbin /sbin
	/bin/busybox --install -s
	mount -t devtmpfs none /dev
	mount -t proc none /proc
	mount -t sysfs none /sys
	exec >/dev/ttyS0 2>&1 </dev/null
	tell -r || give_up 'no page of RAM can be named'
	tell kernel "$(uname -r)"
	for module in /modules/*.ko; do
		[ ! -f "$module" ] || insmod "$module" || give_up "no ${module##*/}"
	done
	if [ -n "$(parameter root)" ]; then
		tries=0
		until mount -t ext4 -o ro,noatime "$(parameter root)" /new; do
			tries=$((tries + 1))
			[ $tries -lt 20 ] || give_up 'no disk'
			sleep 1
		done
		for dir in run tmp var/log var/tmp var/lib/xkb; do
			mount -t tmpfs none "/new/$dir"
		done
		mkdir /new/run/kvmsim
		cp /init /tell /scenario.sh /new/run/kvmsim/
		for dir in dev proc sys; do
			mount --move /$dir /new/$dir
		done
		exec switch_root /new /run/kvmsim/init second
	fi
	. /scenario.sh
	finish
fi
export PATH=/run/kvmsim:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=linux
exec >/dev/ttyS0 2>&1 </dev/null
mkdir -p /dev/shm
. /run/kvmsim/scenario.sh
finish
