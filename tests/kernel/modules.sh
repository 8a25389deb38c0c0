# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What kvm's modules depend on, and a folder with all of them. Read with `.`; each function returns 1
# with a $reason.

none() {
	reason=$*
	return 1
}

# A module's file whatever it is packed with, on stdout.
module_unpack() { # FILE
	case $1 in
	*.xz) xz -dc "$1" ;;
	*.zst) zstd -qdc "$1" ;;
	*.gz) gzip -dc "$1" ;;
	*) cat "$1" ;;
	esac
}

# What its .modinfo says under KEY.
module_info() { # FILE KEY
	tr '\0' '\n' <"$1" | LC_ALL=C sed -n "s/^$2=//p" | head -n 1
}

# Copies MODULE and then, before it in the file needs, all that it depends on, from LIST (a file of paths)
# to FOLDER.
module_take() { # MODULE LIST FOLDER
	taken=$3/$1.ko
	[ ! -f "$taken" ] || return 0
	found=$(grep -E "(^|/)$(echo "$1" | sed 's/[-_]/[-_]/g')\.ko(\.(xz|zst|gz))?\$" "$2" | head -n 1)
	[ -n "$found" ] || none "no $1.ko, which kvm's modules need" || return 1
	module_unpack "$found" >"$taken" 2>/dev/null || none "cannot unpack $found" || return 1
	for need in $(module_info "$taken" depends | tr ',' ' '); do
		module_take "$need" "$2" "$3" || return 1
	done
	case $1 in
	kvm | kvm-amd) ;;
	*) echo "$1" >>"$3/needs" ;;
	esac
}

# kvm, kvm-amd and what they need into FOLDER, from the modules below TREE.
modules_take() { # TREE FOLDER
	mkdir -p "$2" && : >"$2/needs" || return 1
	find "$1" -name '*.ko' -o -name '*.ko.xz' -o -name '*.ko.zst' -o -name '*.ko.gz' | sort >"$work/modules.list"
	module_take kvm "$work/modules.list" "$2" && module_take kvm-amd "$work/modules.list" "$2"
}
