#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A QEMU that brings up a second CPU under -icount: 10 or later. Prints a command; or, with status 1,
# why there is none. The installed one if it is new enough, else Debian's backport, unpacked:
#   tests/kernel/qemu10.sh CACHE-DIR
# Nothing is installed; the libraries are those of the installed QEMU.
set -u
dir=$(cd "$1" && pwd) || exit 1
cache=$dir/qemu-10
suite=bookworm-backports
bin=usr/bin/qemu-system-x86_64

version() { "$1" --version 2>/dev/null | sed -n '1s/.*version \([0-9]*\).*/\1/p'; }
new_enough() { [ "$(version "$1" || echo 0)" -ge 10 ] 2>/dev/null; }
command_for() {
	echo "$cache/$bin -L $cache/usr/share/qemu -L $cache/usr/share/seabios"
}
none() {
	echo "$*"
	exit 1
}

if new_enough qemu-system-x86_64; then
	echo qemu-system-x86_64
	exit 0
fi
if [ -x "$cache/$bin" ]; then
	new_enough "$cache/$bin" || none "$cache/$bin does not start: $("$cache/$bin" --version 2>&1 | head -n 1)"
	command_for
	exit 0
fi
work=$(mktemp -d "$dir/qemu.XXXXXX") || none "cannot write to $dir"
trap 'rm -rf "$work"' EXIT INT TERM
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -f $keyring ] || none "two CPUs need QEMU 10; $suite cannot be verified without $keyring"
echo "deb [signed-by=$keyring] http://deb.debian.org/debian $suite main" >"$work/list"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root"
set -- -o "Dir::Etc::SourceList=$work/list" -o Dir::Etc::SourceParts=/dev/null \
	-o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root
timeout 120 apt-get "$@" update >"$work/log" 2>&1 || none "two CPUs need QEMU 10; $suite cannot be had"
for package in qemu-system-x86 qemu-system-common qemu-system-data seabios; do
	(cd "$work" && timeout 300 apt-get "$@" download "$package/$suite") >"$work/log" 2>&1 ||
		none "cannot download $package from $suite: $(grep '^E:' "$work/log" | head -n 1)"
done
for deb in "$work"/*.deb; do
	dpkg-deb -x "$deb" "$work/root" || none "cannot unpack $deb"
done
mv "$work/root" "$cache" || none "cannot write to $cache"
new_enough "$cache/$bin" ||
	none "$suite's QEMU does not start here: $("$cache/$bin" --version 2>&1 | head -n 1)"
command_for
