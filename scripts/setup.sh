#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs the Debian packages that kvmsim needs: scripts/setup.sh [build] [test] [kernel] [guest]
# Does nothing when they are there. Needs root for the installation: run it as root, or have sudo.
set -eu
build='gcc clang ninja-build pkg-config libc6-dev libgsl-dev libsqlite3-dev libzstd-dev libinih-dev
 libboost-context-dev uthash-dev libjansson-dev libcsv-dev zlib1g-dev'
test='libcunit1-dev libtracecmd-dev libtracefs-dev libtraceevent-dev sqlite3 jq python3 mandoc'
kernel='qemu-system-x86 seabios cpio busybox-static xz-utils gcc libc6-dev make patch libelf1'
# mmdebstrap works without root through uidmap
guest='qemu-system-x86 seabios cpio mmdebstrap uidmap e2fsprogs xz-utils'
lint='clang-format clang-tidy git'

want=
for set in "${@:-build}"; do
	case $set in
	build) want="$want $build" ;;
	test) want="$want $test" ;;
	kernel) want="$want $kernel" ;;
	guest) want="$want $guest" ;;
	lint) want="$want $lint" ;;
	*)
		echo "setup: unknown set '$set': build, test, kernel, guest or lint" >&2
		exit 2
		;;
	esac
done

missing=
for p in $want; do
	dpkg-query -W -f='${Status}\n' "$p" 2>/dev/null | grep -q '^install ok installed$' ||
		missing="$missing $p"
done
[ -n "$missing" ] || exit 0

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
