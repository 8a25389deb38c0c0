# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Packages of Debian's backports, with lists of their own: the system's are left alone. Read with `.`
# after modules.sh, with $work set. Each function returns 1 with a $reason.

backports=bookworm-backports

backports_apt() { # COMMAND ARGUMENT...
	command=$1
	shift
	timeout 300 "$command" -o "Dir::Etc::SourceList=$work/backports/list" -o Dir::Etc::SourceParts=/dev/null \
		-o "Dir::State::Lists=$work/backports/lists" -o "Dir::Cache=$work/backports/cache" \
		-o APT::Sandbox::User=root "$@"
}

backports_update() {
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	case $work in
	/*) ;;
	*) work=$PWD/$work ;;
	esac
	[ -f $keyring ] || none "$backports cannot be verified without $keyring" || return 1
	mkdir -p "$work/backports/lists/partial" "$work/backports/cache/archives/partial" || return 1
	echo "deb [signed-by=$keyring] http://deb.debian.org/debian $backports main" >"$work/backports/list"
	backports_apt apt-get update >"$work/backports/log" 2>&1 || none "$backports cannot be had"
}

# Into FOLDER, unpacked.
backports_unpack() { # FOLDER PACKAGE...
	to=$1
	shift
	for package; do
		rm -f "$work"/backports/*.deb
		(cd "$work/backports" && backports_apt apt-get download "$package/$backports") >"$work/backports/log" 2>&1 ||
			none "cannot download $package from $backports: $(grep '^E:' "$work/backports/log" | head -n 1)" ||
			return 1
		dpkg-deb -x "$work"/backports/*.deb "$to" || none "cannot unpack $package" || return 1
	done
}
