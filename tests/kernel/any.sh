# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A kernel that somebody built, or unpacked from a package: KVMSIM_KERNEL. Read with `.` after
# modules.sh. Returns 1 with a $reason.

# Its image is the first of these; two in one folder are a question.
any_image() { # TREE
	for image in "$1"/arch/x86/boot/bzImage "$1"/boot/vmlinuz-* "$1"/vmlinuz-* "$1"/vmlinuz; do
		[ ! -f "$image" ] || break
	done
	[ -f "$image" ] || none "no arch/x86/boot/bzImage and no boot/vmlinuz-* in $1" || return 1
	case $image in
	*/vmlinuz-*) [ "$(find "${image%/*}" -maxdepth 1 -name 'vmlinuz-*' | wc -l)" -eq 1 ] ||
		none "several kernels in ${image%/*}" ;;
	esac
}

# The release that the image names itself, Documentation/arch/x86/boot.rst: kernel_version.
any_release() { # IMAGE
	at=$(od -An -tu2 -j 526 -N 2 "$1" | tr -d ' ')
	release=$(tail -c "+$((at + 513))" "$1" | head -c 128 | tr '\0' '\n' | head -n 1)
	release=${release%% *}
	case $release in
	[0-9]*.[0-9]*) ;;
	*) none "$1 is no bzImage of a kernel" ;;
	esac
}

# y, m or nothing, by the tree's configuration.
any_config() { # TREE NAME
	for config in "$1/.config" "$1/boot/config-$release" "$1/lib/modules/$release/config"; do
		[ ! -f "$config" ] || { sed -n "s/^$2=//p" "$config"; return; }
	done
}

# Sets $vmlinuz, $abi, and $stock, the folder of its kvm modules, empty where kvm is built in.
any_kernel() { # TREE
	[ -d "$1" ] || none "KVMSIM_KERNEL: no folder $1" || return 1
	any_image "$1" && any_release "$image" || return 1
	vmlinuz=$image abi=$release stock=$work/stock
	modules=$1/lib/modules/$abi
	[ -d "$modules" ] || modules=$1
	if [ -n "$(find "$modules" -name 'kvm.ko' -o -name 'kvm.ko.*' | head -n 1)" ]; then
		modules_take "$modules" "$stock" || return 1
		magic=$(module_info "$stock/kvm.ko" vermagic)
		[ "${magic%% *}" = "$abi" ] || none "kvm.ko is of ${magic%% *}, $image of $abi" || return 1
	elif [ "$(any_config "$1" CONFIG_KVM)$(any_config "$1" CONFIG_KVM_AMD)" = yy ]; then
		mkdir -p "$stock" && : >"$stock/needs"
	else
		none "no kvm.ko in $modules, and no configuration with CONFIG_KVM=y and CONFIG_KVM_AMD=y"
	fi
}
