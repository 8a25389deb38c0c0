# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# find walks the root file system, once per phase: "cold" with nothing cached before, or "warm".
walk() {
	find / -xdev >/dev/null
}
tell inodes "$(df -i / | awk 'NR == 2 { print $3 }')"
k=1
for test in $(parameter tests | tr , ' '); do
	[ "$test" = warm ] || echo 3 >/proc/sys/vm/drop_caches
	phase $k "$test" walk
	k=$((k + 1))
done
