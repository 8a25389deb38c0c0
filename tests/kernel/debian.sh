# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Debian's 6.1 cloud kernel from its packages, which are downloaded, unpacked and kept, never
# installed. Read with `.` after modules.sh, with $cache and $work set: the folder that
# is kept, and a temporary one in it. Each function returns 1 with a $reason.

# In a folder of its own, so that a half download is never taken for a whole one: debian_download
# PACKAGE[=VERSION]..., into $work/deb.
debian_download() {
	rm -rf "$work/deb" && mkdir "$work/deb" || return 1
	for package; do
		(cd "$work/deb" && apt-get download "$package") >"$work/apt.log" 2>&1 ||
			none "cannot download $package: $(grep '^E:' "$work/apt.log" | head -n 1)" ||
			return 1
	done
}

# The ABI's name changes with Debian's updates: asks what the cloud kernel is now. Offline, the
# kernel of an earlier run does as well. Sets $image_deb.
debian_image() {
	image=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1)
	case $image in
	'' | linux-image-6.1.*) ;;
	*) none "Debian's cloud kernel here is $image; the model's preset is 6.1" || return 1 ;;
	esac
	image_deb=$(find "$cache" -maxdepth 1 -name "${image:-linux-image-6.1.}*_amd64.deb" | sort | tail -n 1)
	[ -z "$image_deb" ] || return 0
	[ -n "$image" ] || none "apt knows no linux-image-cloud-amd64; apt-get update makes it known" || return 1
	debian_download "$image" && mv "$work"/deb/*.deb "$cache/" || return 1
	image_deb=$(find "$cache" -maxdepth 1 -name "${image}_*_amd64.deb" | sort | tail -n 1)
	[ -n "$image_deb" ] || none "no package came of apt-get download $image"
}

# Sets $abi, $version, $vmlinuz and $stock, the folder of its kvm modules.
debian_kernel() {
	debian_image || return 1
	version=$(dpkg-deb -f "$image_deb" Version)
	stock=$work/stock
	mkdir "$work/image" || return 1
	dpkg-deb --fsys-tarfile "$image_deb" | tar -C "$work/image" -x --wildcards \
		'./boot/vmlinuz-*' '*/kernel/arch/x86/kvm/*.ko' '*/kernel/virt/lib/*.ko' ||
		none "cannot unpack $image_deb" || return 1
	vmlinuz=$(echo "$work"/image/boot/vmlinuz-*)
	[ -f "$vmlinuz" ] || none "no vmlinuz in $image_deb" || return 1
	abi=${vmlinuz##*/vmlinuz-}
	modules_take "$work/image" "$stock"
}

# What modules for it are built with: sets $headers, the folder of their packages' content, and $source
# with kvm's part of the source.
debian_tree() {
	headers=$cache/tree-$abi
	if [ ! -d "$headers" ]; then
		debian_download "linux-headers-$abi" "linux-headers-${abi%%-cloud*}-common" \
			"linux-kbuild-6.1=$version" || return 1
		mkdir "$work/headers" || return 1
		for deb in "$work"/deb/*.deb; do
			dpkg-deb -x "$deb" "$work/headers" || none "cannot unpack $deb" || return 1
		done
		rm -rf "$cache"/tree-*
		mv "$work/headers" "$headers" || return 1
	fi
	source=$cache/source-$version
	if [ ! -d "$source" ]; then
		debian_download "linux-source-6.1=$version" || return 1
		mkdir "$work/source" || return 1
		dpkg-deb --fsys-tarfile "$work"/deb/*.deb | tar -x -O --wildcards '*/linux-source-6.1.tar.xz' |
			tar -C "$work/source" -x -J --strip-components=1 linux-source-6.1/arch/x86/kvm \
				linux-source-6.1/virt linux-source-6.1/include/linux/kvm_host.h ||
			none "cannot unpack linux-source-6.1" || return 1
		rm -rf "$cache"/source-*
		mv "$work/source" "$source" || return 1
	fi
}
