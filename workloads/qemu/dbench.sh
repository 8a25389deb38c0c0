# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# dbench on a tmpfs: a phase is so many clients for some seconds, with its own preparations (a fifth of
# that time more) and its tidying up.
tell -k || give_up 'no symbols of the kernel'
mkdir /tmp/dbench
clients() { # NUMBER
	dbench -D /tmp/dbench -c /usr/share/dbench/client.txt -t "$(parameter seconds)" "$1" >/run/dbench.out 2>&1 ||
		{ tail -n 5 /run/dbench.out; return 1; }
}
k=1
for test in $(parameter tests | tr , ' '); do
	phase $k "$test" clients "$test"
	k=$((k + 1))
done
