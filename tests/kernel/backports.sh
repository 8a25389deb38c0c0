# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Packages of Debian's backports, with lists of their own: the system's are left alone. Read with `.`
# after modules.sh, with $work set. Each function returns 1 with a $reason.

backports=bookworm-backports

backports_apt() { # COMMAND ARGUMENT...
	command=$1
	shift
	timeout 300 "$command" -o "Dir::Etc::SourceList=$lists/list" -o Dir::Etc::SourceParts=/dev/null \
		-o "Dir::State::Lists=$lists/lists" -o "Dir::Cache=$lists/cache" \
		-o APT::Sandbox::User=root "$@"
}

backports_update() {
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	case $work in
	/*) lists=$work/backports ;;
	*) lists=$PWD/$work/backports ;;
	esac
	[ -f $keyring ] || none "$backports cannot be verified without $keyring" || return 1
	mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial" || return 1
	echo "deb [signed-by=$keyring] http://deb.debian.org/debian $backports main" >"$lists/list"
	backports_apt apt-get update >"$lists/log" 2>&1 || none "$backports cannot be had"
}

# Into FOLDER, unpacked.
backports_unpack() { # FOLDER PACKAGE...
	to=$1
	shift
	for package; do
		rm -f "$lists"/*.deb
		(cd "$lists" && backports_apt apt-get download "$package/$backports") >"$lists/log" 2>&1 ||
			none "cannot download $package from $backports: $(grep '^E:' "$lists/log" | head -n 1)" ||
			return 1
		dpkg-deb -x "$lists"/*.deb "$to" || none "cannot unpack $package" || return 1
	done
}
