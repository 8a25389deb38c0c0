# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a time line (Chrome's trace events) with a JSON parser that is not ours, checks what every
viewer asks of one, and says what is in it, a fact a line, sorted:

    timeline.py FILE [SINCE_US]

checked: each event has ph, pid, tid, name; spans and instants have ts, spans dur, not negative; spans
of a track don't overlap unless one lies within the other; each track with events has a name, each
process too. Times are doubles, as in every viewer. Told, of what begins at SINCE_US or later:
PROCESS/NAME number total-ns longest-ns of spans, and PROCESS/NAME number of instants.
"""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    line = json.load(f)
since = float(sys.argv[2]) if len(sys.argv) > 2 else None
spans, instants, tracks, names, processes = {}, {}, {}, set(), {}


def bad(why, event):
    print("bad:", why, event)
    sys.exit(1)


for e in line["traceEvents"]:
    if not all(k in e for k in ("ph", "pid", "tid", "name")):
        bad("keys", e)
    if e["ph"] == "M":
        if e["name"] == "thread_name":
            names.add((e["pid"], e["tid"]))
        elif e["name"] == "process_name":
            processes[e["pid"]] = e["args"]["name"]
        continue
    if e["ph"] not in "Xi" or e["ts"] < 0 or e.get("dur", 0) < 0 or (e["ph"] == "X") != ("dur" in e):
        bad("event", e)
    tracks.setdefault((e["pid"], e["tid"]), []).append(e)
for track, events in tracks.items():
    if track not in names or track[0] not in processes:
        bad("no name", track)
    open_ends = []
    for e in sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"])):
        while open_ends and open_ends[-1] <= e["ts"]:
            open_ends.pop()
        if open_ends and e["ts"] + e["dur"] > open_ends[-1]:
            bad("overlap", e)
        open_ends.append(e["ts"] + e["dur"])
    for e in events:
        if since is not None and e["ts"] < since:
            continue
        key = f"{processes[track[0]]}/{e['name']}"
        if e["ph"] == "i":
            instants[key] = instants.get(key, 0) + 1
        else:
            ns = round(e["dur"] * 1000)
            n, total, longest = spans.get(key, (0, 0, 0))
            spans[key] = (n + 1, total + ns, max(longest, ns))
for key in sorted(spans):
    print(key, *spans[key])
for key in sorted(instants):
    print(key, instants[key])
