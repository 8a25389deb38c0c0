#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds the guest that kvmsim record qemu boots, from Debian's packages. As root or not.
#   guest.sh image DIR			DIR/{root.img,vmlinuz,modules,busybox,about}; needs the network
#   guest.sh initrd DIR OUT MODULES FILE...	a small initrd: busybox, MODULES (a word list) with all
#						that they need, and FILEs in its root; FILE init is run
# KVMSIM_MIRROR: where the packages come from, instead of Debian's own addresses.
set -eu
umask 022
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"

suite=bookworm
# What draws needs the X server and x11perf; find needs names, as many as a source tree has; what
# compiles needs a compiler and something to compile.
packages='busybox-static,findutils,xserver-xorg-core,xserver-xorg-video-fbdev,x11-apps,
 x11-xserver-utils,xfonts-base,xkb-data,x11-xkb-utils,dbench,gcc,libc6-dev,libstb-dev'
source_package=linux-source-6.1

image() { # DIR
	mkdir "$1/debs" "$1/root" "$1/tmp"
	# apt in the new root knows what this suite's kernel is called today
	# shellcheck disable=SC2016 # mmdebstrap's $1, the inner shell's commands
	fetch='chroot "$1" sh -c "mkdir /kvmsim && cd /kvmsim && apt-get -q -o APT::Sandbox::User=root download '$source_package' \
		\$(apt-cache depends linux-image-amd64 | sed -n \"s/^ *Depends: \(linux-image-[^ ]*\).*/\1/p\" | head -n 1)"'
	TMPDIR=$1/tmp mmdebstrap --mode=root --variant=minbase --format=tar --skip=cleanup/reproducible \
		--aptopt='Apt::Install-Recommends "false"' --dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		--include="$(echo "$packages" | tr -d ' \n')" --customize-hook="$fetch" \
		--customize-hook="copy-out /kvmsim $1/debs" --customize-hook='rm -r "$1/kvmsim"' \
		$suite - ${KVMSIM_MIRROR:+"$KVMSIM_MIRROR"} >"$1/root.tar" &
	wait $! # a signal needn't wait
	# whoever runs this owns the files: the guest's root may do everything all the same
	tar -C "$1/root" -x --no-same-owner --exclude='./dev/*' -f "$1/root.tar"
	rm "$1/root.tar"

	kernel=$(find "$1/debs" -name 'linux-image-*.deb')
	mkdir "$1/kernel" "$1/modules"
	dpkg-deb --fsys-tarfile "$kernel" | tar -C "$1/kernel" -x ./boot ./lib/modules
	mv "$1"/kernel/boot/vmlinuz-* "$1/vmlinuz"
	find "$1/kernel" -name '*.ko' -exec mv -t "$1/modules" {} +
	cp "$1/root/bin/busybox" "$1/busybox"

	# empty files, named as in the kernel's source tree
	tree=$1/root/usr/src/linux
	mkdir -p "$tree"
	dpkg-deb --fsys-tarfile "$(find "$1/debs" -name "$source_package*.deb")" |
		tar -x -O --wildcards '*/linux-source-*.tar.xz' | tar -t -J >"$1/names"
	(cd "$tree" && grep '/$' "$1/names" | tr '\n' '\0' | xargs -0 mkdir -p &&
		grep -v '/$' "$1/names" | tr '\n' '\0' | xargs -0 touch)
	inodes=$(find "$1/root" | wc -l)

	mkdir -p "$1/root/var/lib/xkb"
	truncate -s 2G "$1/root.img"
	# the order of names in a directory follows from the seed
	mke2fs -q -t ext4 -O '^has_journal' -N 200000 -U 00000000-0000-0000-0000-000000000001 \
		-E hash_seed=00000000-0000-0000-0000-000000000002,root_owner=0:0 -d "$1/root" "$1/root.img"
	echo "Debian $suite, $(basename "$kernel" _amd64.deb | tr _ ' '), a root of $inodes inodes" >"$1/about"
	chmod -R u+w "$1/root"
	rm -r "$1/root" "$1/kernel" "$1/debs" "$1/names" "$1/tmp"
}

# Builds it in namespaces of its own: what is mounted there and runs there ends with them, however
# they end. Whoever is not root is root there, with users beside him for the guest's files.
alone='unshare --mount --pid --fork --kill-child'
build() { # DIR
	[ "$(id -u)" -eq 0 ] || alone="$alone --map-root-user --map-auto"
	if ! why=$($alone true 2>&1); then
		[ "$(id -u)" -ne 0 ] || { image "$1"; return; } # without mounts
		echo "E: no namespace for building: $why; needs newuidmap (uidmap) and a range in /etc/subuid and /etc/subgid, or root"
		exit 1
	fi
	# shellcheck disable=SC2154,SC2086 # assigned in the trap; a list of words
	trap 'code=$?; wait; $alone rm -rf "$1/tmp"; exit $code' EXIT
	trap 'exit 130' INT TERM HUP
	# shellcheck disable=SC2086
	setpriv --pdeathsig KILL $alone sh "$0" alone "$1" &
	wait $!
}

# Copies a module and what it depends on, in the order of loading, as NN-FILE. Only arguments are a
# function's own.
n=10
module_file() { # FROM NAME
	for name in "$2" "$(echo "$2" | tr _ -)"; do
		[ ! -f "$1/modules/$name.ko" ] || { echo "$1/modules/$name.ko"; return; }
	done
	echo "guest: the kernel has no module $2" >&2
	return 1
}
add_module() { # FROM TO FILE
	for needed in $(tr '\0' '\n' <"$3" | sed -n 's/^depends=//p' | tr , ' '); do
		set -- "$1" "$2" "$3" "$(module_file "$1" "$needed")"
		[ -n "$4" ] || exit 1
		add_module "$1" "$2" "$4"
	done
	[ -z "$(find "$2" -name "*-${3##*/}")" ] || return 0
	n=$((n + 1))
	cp "$3" "$2/$n-${3##*/}"
}

initrd() { # DIR OUT MODULES FILE...
	from=$1 out=$2 modules=$3
	shift 3
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	trap 'exit 130' INT TERM HUP
	mkdir "$dir/bin" "$dir/dev" "$dir/proc" "$dir/sys" "$dir/modules" "$dir/new"
	cp "$from/busybox" "$dir/bin/"
	ln -s busybox "$dir/bin/sh"
	for module in $modules; do
		file=$(module_file "$from" "$module")
		add_module "$from" "$dir/modules" "$file"
	done
	cp "$@" "$dir/"
	chmod 755 "$dir/init"
	# the same bytes for the same content
	find "$dir" -exec touch -h -d @0 {} +
	(cd "$dir" && find . | sort | cpio --quiet --reproducible -o -H newc -R 0:0) >"$out"
}

verb=$1
shift
case $verb in
image) build "$(realpath "$1")" ;;
alone)
	trap 'exit 130' INT TERM HUP
	image "$1"
	;;
initrd) initrd "$@" ;;
*) exit 2 ;;
esac
