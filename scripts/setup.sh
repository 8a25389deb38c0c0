#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs the Debian packages that kvmsim needs: scripts/setup.sh SET...
# Sets: build (without any), test, kernel, guest, lint; browser, which also has npm fetch speedscope.
# Does nothing when they are there. Needs root for the installation: run it as root, or have sudo.
set -eu
build='gcc clang ninja-build pkg-config libc6-dev libgsl-dev libsqlite3-dev libzstd-dev libinih-dev
 libboost-context-dev uthash-dev libjansson-dev libcsv-dev zlib1g-dev'
test='libcunit1-dev libtracecmd-dev libtracefs-dev libtraceevent-dev sqlite3 jq python3 mandoc'
kernel='qemu-system-x86 seabios cpio busybox-static xz-utils gcc libc6-dev make patch libelf1'
# mmdebstrap works without root through uidmap
guest='qemu-system-x86 seabios cpio mmdebstrap uidmap e2fsprogs xz-utils'
lint='clang-format clang-tidy git'
# what opens exports; Debian's npm only where there is none
browser='chromium libdevel-nytprof-perl python3 jq'
command -v npm >/dev/null || browser="$browser npm"
speedscope=1.25.0
speedscope_sha512=7297fd1d64d97f58a32d7049ae4f3b55eff9e2d9d8c7aae57f48144e1be7de8a24ea1eb784b5d539088c7f8e0f4fe5e8579d3770f7ef7e24f980fe6fa23a7a02

want=
for set in "${@:-build}"; do
	case $set in
	build) want="$want $build" ;;
	test) want="$want $test" ;;
	kernel) want="$want $kernel" ;;
	guest) want="$want $guest" ;;
	lint) want="$want $lint" ;;
	browser) want="$want $browser" ;;
	*)
		echo "setup: unknown set '$set': build, test, kernel, guest, lint or browser" >&2
		exit 2
		;;
	esac
done

# To build/browser, its package as it is: web pages, of which nothing is run here.
fetch_speedscope() {
	to=$(dirname "$0")/../build/browser
	[ ! -f "$to/package/dist/release/index.html" ] || return 0
	mkdir -p "$to"
	echo "setup: fetching speedscope $speedscope" >&2
	npm pack --silent --pack-destination "$to" "speedscope@$speedscope" >/dev/null
	echo "$speedscope_sha512  $to/speedscope-$speedscope.tgz" | sha512sum --check --quiet
	tar -C "$to" -xzf "$to/speedscope-$speedscope.tgz"
}

install_missing() {
	command -v apt-get >/dev/null || {
		echo "setup: no apt-get here; install the likes of:$missing" >&2
		exit 1
	}
	as_root=
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null || {
			echo "setup: not root and no sudo; as root: apt-get install$missing" >&2
			exit 1
		}
		as_root=sudo
	fi
	echo "setup: installing$missing" >&2
	export DEBIAN_FRONTEND=noninteractive
	# a second package tool may be at work on a new machine: wait for its lock
	apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300"
	$apt update >/dev/null
	# shellcheck disable=SC2086 # a list of words on purpose
	$apt install --no-install-recommends $missing >/dev/null </dev/null
}

missing=
for p in $want; do
	dpkg-query -W -f='${Status}\n' "$p" 2>/dev/null | grep -q '^install ok installed$' ||
		missing="$missing $p"
done
[ -z "$missing" ] || install_missing
for set in "$@"; do
	[ "$set" != browser ] || fetch_speedscope
done
