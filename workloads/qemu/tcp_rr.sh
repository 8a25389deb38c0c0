# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Transactions of one byte each way with a host that says it again, so many in each phase.
for nic in /sys/class/net/*; do
	[ -e "$nic/device" ] && break
done
[ -e "$nic/device" ] || give_up 'no network device'
ip link set lo up
ip addr add 10.0.2.15/24 dev "${nic##*/}"
ip link set "${nic##*/}" up || give_up 'the network device does not start'
k=1
for test in $(parameter tests | tr , ' '); do
	tell phase $k "$test"
	tell -t $k "$test" || give_up 'no transactions'
	k=$((k + 1))
done
