# SPDX-License-Identifier: GPL-3.0-or-later
"""From a table of a host's events (export --csv), how long each thread was in the guest: from each entry
to the exit after it. `TID number total-ns` a line, of what took any time.

    host_facts.py TABLE
"""
import csv
import sys

entered, told = {}, {}
with open(sys.argv[1], encoding="utf-8", newline="") as f:
    for row in csv.DictReader(f):
        tid, now = int(row["tid"]), int(row["time_ns"])
        if row["event"] == "kvm_entry":
            entered[tid] = now
        elif row["event"] == "kvm_exit" and tid in entered:
            ns = now - entered.pop(tid)
            number, total = told.get(tid, (0, 0))
            if ns:
                told[tid] = (number + 1, total + ns)
for tid in sorted(told):
    print(tid, *told[tid])
