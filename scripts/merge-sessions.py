#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes one row of evidence of the same row of several sessions of scripts/measure-kvm.sh.

    scripts/merge-sessions.py [--fresh] NOTE SESSION.csv... >MERGED.csv

The value is the median of the sessions' medians, stdev their sample standard deviation; the locator
has the least, the greatest and the NOTE. Series are prefixed with recorded_, or fresh_ where the sessions'
sizes are; of a series NAME_thp, measured with huge pages, the name becomes NAME_2m, and of a policy
with chunks POLICY_PAGES.
"""
import csv
import re
import statistics
import sys

# Of these series only so many sizes, chosen by nothing but the size, to keep `kvmsim validate` short.
SIZES = {
    "clustered": (1200, 2219, 3000),
    "manual": (251, 1029, 2219),
    "random_2m": (526, 1029, 1500, 2219, 3000),
    "ring": (251, 1029, 2219),
}
FRESH = {
    "clustered": (1700,),
    "manual": (400, 1350, 2600),
    "random_2m": (900, 2800),
    "random": (180, 900, 1650, 2800),
    "ring": (700,),
    "small": (130, 900, 2500),
}
METRICS = ("GET_DIRTY_LOG ioctl", "dirty log collection")


def key_of(row, prefix):
    series = prefix + re.sub(r"_thp$", "_2m", row["series"])
    policy = row["policy"]
    chunk = re.search(r"chunk=(\d+)", row["setup"])
    if chunk:
        policy += "_" + chunk.group(1)
    # chunks of 64 pages stay apart: their rows price the call
    if policy != "mask":
        series = re.sub(r"manual(_(?!64)\d+)?$", "manual", series)
    # a call with one dirty page is a measurement of the call
    if policy == "mask" and row["x"] == "1":
        series = prefix + "one_page"
    return series, row["metric"], row["setup"], policy, int(row["x"])


def main():
    rows, first = {}, {}
    fresh = sys.argv[1] == "--fresh"
    note, *files = sys.argv[1 + fresh :]
    prefix, kept = ("fresh_", FRESH) if fresh else ("recorded_", SIZES)
    for name in files:
        with open(name, newline="", encoding="utf-8") as f:
            for row in csv.DictReader(f):
                key = key_of(row, prefix)
                if f"npages={row['x']}" in row["setup"]:
                    continue  # the first round, of every page
                if fresh and key[0] in ("fresh_manual_64", "fresh_small_ring"):
                    continue  # what calls cost by themselves has its rows
                sizes = [s for name, s in kept.items() if key[0].startswith(prefix + name)]
                if sizes and key[4] not in sizes[0]:
                    continue
                if row["metric"] not in METRICS or (key[3] == "mask") == (row["metric"] != METRICS[0]):
                    continue
                rows.setdefault(key, []).append((float(row["value"]), row["source_locator"]))
                first.setdefault(key, row)
    out = None
    for key in sorted(rows):
        values = [v for v, _ in rows[key]]
        if len(values) < 3:
            continue
        series, _, _, policy, _ = key
        row = dict(first[key], series=series, policy=policy)
        rounds = {re.search(r"of (\d+) rounds", w).group(1) for _, w in rows[key]}
        row["value"] = f"{statistics.median(values):.0f}"
        row["stdev"] = f"{statistics.stdev(values):.0f}"
        row["source"] = re.sub(r", session.*", "", row["source"])
        row["source_locator"] = (
            f"median of {len(values)} sessions of {' or '.join(sorted(rounds))} rounds, "
            f"{min(values):.0f} to {max(values):.0f}; {note}"
        )
        if out is None:
            out = csv.DictWriter(sys.stdout, row.keys(), lineterminator="\n")
            out.writeheader()
        out.writerow(row)


main()
