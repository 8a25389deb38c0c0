#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A QEMU that brings up a second CPU under -icount: 10 or later. Prints a command; or, with status 1,
# why there is none. The installed one if it is new enough, else Debian's backport, unpacked:
#   tests/kernel/qemu10.sh CACHE-DIR
# Nothing is installed; the libraries are those of the installed QEMU.
set -u
dir=$(cd "$1" && pwd) || exit 1
cache=$dir/qemu-10
bin=usr/bin/qemu-system-x86_64

version() { "$1" --version 2>/dev/null | sed -n '1s/.*version \([0-9]*\).*/\1/p'; }
new_enough() { [ "$(version "$1" || echo 0)" -ge 10 ] 2>/dev/null; }
command_for() {
	echo "$cache/$bin -L $cache/usr/share/qemu -L $cache/usr/share/seabios"
}
fail() {
	echo "$*"
	exit 1
}
# shellcheck source=tests/kernel/modules.sh
. "$(dirname "$0")/modules.sh"
# shellcheck source=tests/kernel/backports.sh
. "$(dirname "$0")/backports.sh"

if new_enough qemu-system-x86_64; then
	echo qemu-system-x86_64
	exit 0
fi
if [ -x "$cache/$bin" ]; then
	new_enough "$cache/$bin" || fail "$cache/$bin does not start: $("$cache/$bin" --version 2>&1 | head -n 1)"
	command_for
	exit 0
fi
work=$(mktemp -d "$dir/qemu.XXXXXX") || fail "cannot write to $dir"
trap 'rm -rf "$work"' EXIT INT TERM
backports_update || fail "two CPUs need QEMU 10; $reason"
mkdir "$work/root" && backports_unpack "$work/root" qemu-system-x86 qemu-system-common qemu-system-data \
	seabios || fail "$reason"
mv "$work/root" "$cache" || fail "cannot write to $cache"
new_enough "$cache/$bin" ||
	fail "$backports' QEMU does not start here: $("$cache/$bin" --version 2>&1 | head -n 1)"
command_for
