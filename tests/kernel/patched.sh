# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kvm.ko and kvm-amd.ko with patches/*.patch. Read with `.` after debian.sh; $src is this folder.
# Returns 1 with a $reason where they cannot be built here, 2 with one where they should have been.

# Sets $patched, the folder of the modules; they are kept until a patch or the kernel changes. Of other
# patches than these: $patches, their folder, and $kind, what they are called.
patches=$src/patches kind=patched
patched_modules() {
	for tool in make:make gcc-12:gcc-12 patch:patch xz:xz-utils sha256sum:coreutils; do
		command -v "${tool%%:*}" >/dev/null ||
			none "no ${tool%%:*}; Debian has it in ${tool##*:}" || return 1
	done
	sum=$(cat "$patches"/*.patch | sha256sum | cut -c 1-12)
	patched=$cache/$kind-$abi-$version-$sum
	[ ! -d "$patched" ] || return 0
	debian_tree || return 1
	# kbuild takes no path with a blank in it, and the headers name each other by where they would
	# be installed: so elsewhere, and anew.
	kbuild=$(mktemp -d "${TMPDIR:-/tmp}/kvmsim-kbuild.XXXXXX") || none "cannot write to ${TMPDIR:-/tmp}" || return 1
	case $kbuild in
	*[[:space:]]*) none "kernel modules cannot be built in $kbuild, for the blank; TMPDIR names another folder" || return 1 ;;
	esac
	cp -r "$headers/usr" "$kbuild/usr" && cp -r "$source" "$kbuild/kvm" &&
		mkdir -p "$kbuild/kvm/include/trace" "$work/patched" || return 2
	tree=$kbuild/usr/src/linux-headers-$abi
	sed -i "s|/usr/src/|$kbuild/usr/src/|" "$tree/Makefile" || return 2
	"$tree/tools/objtool/objtool" --help >/dev/null 2>&1
	[ $? -ne 127 ] || none "objtool does not start; Debian has its library in libelf1" || return 1
	for p in "$patches"/*.patch; do
		patch -s -d "$kbuild/kvm" -p1 <"$p" >"$work/patch.log" 2>&1 ||
			none "$p does not apply to $version: $(head -n 1 "$work/patch.log")" || return 2
	done
	echo "kernel: building kvm.ko and kvm-amd.ko of $abi with $patches"
	make -j"$(nproc)" -C "$tree" M="$kbuild/kvm/arch/x86/kvm" KCFLAGS=-g0 CONFIG_KVM_INTEL= \
		CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$cache/kbuild.log" 2>&1 ||
		none "the patched modules do not build: $cache/kbuild.log" || return 2
	cp "$kbuild"/kvm/arch/x86/kvm/kvm.ko "$kbuild"/kvm/arch/x86/kvm/kvm-amd.ko "$work/patched/" ||
		return 2
	rm -rf "$cache/$kind"-* "$kbuild"
	mv "$work/patched" "$patched" || return 2
}
