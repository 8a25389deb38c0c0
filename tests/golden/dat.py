#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rewrites a trace.dat of version 6, as trace-cmd records it on x86.

    dat.py big IN OUT        the same file as a big-endian machine would have written it
    dat.py sections IN OUT zlib|none [MULT SHIFT OFFSET]
                                       the same events as version 7, packed or not; MULT and SHIFT
                                       make ns of the clock, OFFSET (ns) is added to them

Written after trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). It knows files with one buffer.
"""
import re
import struct
import sys
import zlib

PAGE = 4096


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, n):
        return int.from_bytes(self.take(n), "little")

    def string(self):
        return self.take(self.data.index(b"\0", self.at) + 1 - self.at)


def read(data):
    """The file's parts, numbers as numbers."""
    r = Reader(data)
    head = r.take(10 + 2)
    assert head == b"\x17\x08\x44tracing6\0"
    r.take(2)
    assert r.number(4) == PAGE
    f = {}
    for what in ("header_page", "header_event"):
        assert r.string() == what.encode() + b"\0"
        f[what] = r.take(r.number(8))
    f["ftrace"] = [r.take(r.number(8)) for _ in range(r.number(4))]
    f["systems"] = []
    for _ in range(r.number(4)):
        name = r.string()
        f["systems"].append((name, [r.take(r.number(8)) for _ in range(r.number(4))]))
    f["kallsyms"] = r.take(r.number(4))
    f["printk"] = r.take(r.number(4))
    f["cmdlines"] = r.take(r.number(8))
    f["cpus"] = r.number(4)
    f["options"] = []
    assert r.take(10) == b"options  \0"
    while True:
        option = r.number(2)
        if not option:
            break
        f["options"].append((option, r.take(r.number(4))))
    assert r.take(10) == b"flyrecord\0"
    areas = [(r.number(8), r.number(8)) for _ in range(f["cpus"])]
    f["clock"] = r.take(r.number(8))
    f["data"] = [data[offset:offset + size] for offset, size in areas]
    return f


def formats(f):
    """Of each event by number: offset, size, number of elements of its fields."""
    out = {}
    for text in f["ftrace"] + [t for _, texts in f["systems"] for t in texts]:
        number = int(re.search(rb"^ID: (\d+)$", text, re.M).group(1))
        out[number] = []
        for line in re.findall(rb"^\tfield:.*$", text, re.M):
            decl, offset, size = re.match(
                rb"\tfield:(.*?);\toffset:(\d+);\tsize:(\d+);", line).groups()
            size, n = int(size), 1
            array = re.search(rb"\[(\d*)\]$", decl)
            if array and size and b"__data_loc" not in decl:
                n = int(array.group(1)) if array.group(1) else size
            out[number].append((int(offset), size // n, n))
    return out


def big_page(page, fields):
    ts, commit = struct.unpack_from("<QQ", page)
    out = bytearray(page)
    struct.pack_into(">QQ", out, 0, ts, commit)
    at, end = 16, 16 + (commit & (1 << 27) - 1)
    if commit & 1 << 30:
        struct.pack_into(">Q", out, end, *struct.unpack_from("<Q", page, end))
    while at < end:
        word, = struct.unpack_from("<I", page, at)
        kind, delta = word & 31, word >> 5
        struct.pack_into(">I", out, at, kind << 27 | delta)
        if kind == 29 and not delta:
            break
        if kind in (0, 29, 30, 31):
            array, = struct.unpack_from("<I", page, at + 4)
            struct.pack_into(">I", out, at + 4, array)
        if kind in (30, 31):
            at += 8
            continue
        if kind == 29:
            at += 4 + array
            continue
        start, size = (at + 8, array - 4) if kind == 0 else (at + 4, 4 * kind)
        number, = struct.unpack_from("<H", page, start)
        for offset, bytes_, n in fields[number]:
            for i in range(n):
                a = start + offset + i * bytes_
                if a + bytes_ <= start + size:
                    out[a:a + bytes_] = page[a:a + bytes_][::-1]
        at = start + size
    return bytes(out)


def sized(blob, n, order):
    return len(blob).to_bytes(n, order) + blob


def parts(f, order):
    """The contents that both versions have: heads of pages, ftrace's formats, the others, tasks."""
    head = b"".join(w.encode() + b"\0" + sized(f[w], 8, order) for w in ("header_page", "header_event"))
    ftrace = len(f["ftrace"]).to_bytes(4, order) + b"".join(sized(t, 8, order) for t in f["ftrace"])
    events = len(f["systems"]).to_bytes(4, order) + b"".join(
        name + len(texts).to_bytes(4, order) + b"".join(sized(t, 8, order) for t in texts)
        for name, texts in f["systems"])
    return head, ftrace, events, sized(f["cmdlines"], 8, order)


def big(f):
    head, ftrace, events, tasks = parts(f, "big")
    fields = formats(f)
    out = b"\x17\x08\x44tracing6\0\x01\x08" + PAGE.to_bytes(4, "big") + head + ftrace + events
    out += sized(f["kallsyms"], 4, "big") + sized(f["printk"], 4, "big") + tasks
    out += f["cpus"].to_bytes(4, "big") + b"options  \0"
    # text and flags only: numbers (trace id, count of CPUs) are left out
    for option, data in f["options"]:
        if option in (4, 5, 9):
            out += option.to_bytes(2, "big") + sized(data, 4, "big")
    out += b"\0\0flyrecord\0"
    at = (len(out) + 16 * f["cpus"] + 8 + len(f["clock"]) + PAGE - 1) // PAGE * PAGE
    for data in f["data"]:
        out += at.to_bytes(8, "big") + len(data).to_bytes(8, "big")
        at += len(data)
    out += sized(f["clock"], 8, "big")
    out += b"\0" * (-len(out) % PAGE)
    for data in f["data"]:
        for i in range(0, len(data), PAGE):
            out += big_page(data[i:i + PAGE], fields)
    return out


def section(number, content, pack):
    if pack:
        packed = zlib.compress(content)
        content = struct.pack("<II", len(packed), len(content)) + packed
    return struct.pack("<HHIQ", number, int(pack), 0, len(content)) + content


def sections(f, packing, times=None):
    pack = packing == "zlib"
    out = b"\x17\x08\x44tracing7\0\0\x08" + struct.pack("<I", PAGE) + packing.encode() + b"\0x\0"
    options_at = len(out)
    out += bytes(8)
    where = []
    strings = section(15, b"\0", pack)
    for number, content in zip((16, 17, 18, 21), parts(f, "little")):
        where.append((number, len(out)))
        out += section(number, content, pack)
    buffer_at = len(out)
    data, areas = b"", []
    for pages in f["data"]:
        data += b"\0" * (-(buffer_at + 16 + len(data)) % PAGE)
        at = buffer_at + 16 + len(data)
        if pack and pages:
            # two pages a chunk; trace-cmd does not count the number of chunks in
            chunks = [pages[i:i + 2 * PAGE] for i in range(0, len(pages), 2 * PAGE)]
            data += struct.pack("<I", len(chunks))
            for c in chunks:
                packed = zlib.compress(c)
                data += struct.pack("<II", len(packed), len(c)) + packed
            areas.append((at, buffer_at + 16 + len(data) - at - 4))
        else:
            data += pages
            areas.append((at, len(pages)))
    out += struct.pack("<HHIQ", 3, int(pack), 0, len(data)) + data
    out = out[:options_at] + struct.pack("<Q", len(out)) + out[options_at + 8:]
    clock = re.search(rb"\[(.*?)\]", f["clock"]).group(1) + b"\0"
    options = b"".join(struct.pack("<HIQ", number, 8, at) for number, at in where)
    if times:
        options += struct.pack("<HIIIQ", 14, 16, times[0], times[1], 0)
        offset = str(times[2]).encode() + b"\0"
        options += struct.pack("<HI", 7, len(offset)) + offset
    options += struct.pack("<HI", 8, 4) + struct.pack("<I", f["cpus"])
    buffer = struct.pack("<Q", buffer_at) + b"\0" + clock + struct.pack("<II", PAGE, len(areas))
    buffer += b"".join(struct.pack("<IQQ", cpu, *area) for cpu, area in enumerate(areas))
    options += struct.pack("<HI", 3, len(buffer)) + buffer + struct.pack("<HIQ", 0, 8, 0)
    return out + section(0, options, pack) + strings


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("big", "sections"):
        sys.exit(__doc__)
    with open(sys.argv[2], "rb") as file:
        f = read(file.read())
    out = big(f) if sys.argv[1] == "big" else sections(
        f, sys.argv[4], [int(n) for n in sys.argv[5:]])
    with open(sys.argv[3], "wb") as file:
        file.write(out)


if __name__ == "__main__":
    main()
