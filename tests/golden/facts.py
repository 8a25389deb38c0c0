#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what `kvmsim info --json` printed with the facts expected of a sample.

facts.py given EXPECT.json          prints the options that the expectation asks for
facts.py check EXPECT.json GOT.json prints each key that differs; exit 1 if any does

Keys that the expectation lacks are not checked, of the file as a whole; within a key all must be
equal. Numbers are equal as numbers (4 and 4.0).
"""
import json
import sys


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def differences(path, want, got):
    if isinstance(want, bool) or isinstance(got, bool) or want is None or got is None:
        same = want is got
    elif isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(set(want) | set(got)):
            if key not in got:
                yield f"{path}.{key}: missing"
            elif key not in want:
                yield f"{path}.{key}: {json.dumps(got[key])}, not expected"
            else:
                yield from differences(f"{path}.{key}", want[key], got[key])
        return
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for i, (w, g) in enumerate(zip(want, got)):
            yield from differences(f"{path}[{i}]", w, g)
        return
    else:
        same = want == got
    if not same:
        yield f"{path}: {json.dumps(got)}, {json.dumps(want)} expected"


def check(expect, got):
    want, have = load(expect), load(got)
    found = 0
    for key in want:
        if key == "why":
            continue
        if key not in have:
            print(f"{key}: missing")
            found += 1
            continue
        for line in differences(key, want[key], have[key]):
            print(line)
            found += 1
    return 1 if found else 0


def given(expect):
    want = load(expect)
    if "downtime_goal_ms" in want.get("given", {}):
        print("--downtime", want["given"]["downtime_goal_ms"])
    return 0


if __name__ == "__main__":
    sys.exit({"given": given, "check": check}[sys.argv[1]](*sys.argv[2:]))
