#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A reader of native traces, written from traces/FORMAT.md alone: prints the ops, or the events.

kvt.py TRACE     one line per op: vCPU, time in instructions, kind, flags, length, argument
kvt.py -e TRACE  one line per row of the blocks of events: kind, flags, name, columns by name
"""
import ctypes
import struct
import sys
import zlib


def unpack_frame(frame, length):
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(length)
    n = zstd.ZSTD_decompress(out, ctypes.c_size_t(length), frame, ctypes.c_size_t(len(frame)))
    assert n == length, "zstd frame"
    return out.raw[:length]


def metadata(data):
    assert data[:8] == bytes.fromhex("894b56540d0a1a0a"), "magic"
    version, m, crc = struct.unpack_from("<III", data, 8)
    assert version in (1, 2), "version"
    assert zlib.crc32(data[:16] + data[20:20 + m]) == crc, "crc of the metadata"
    meta = data[20:20 + m]
    slots, = struct.unpack_from("<I", meta, 4)
    pos = 32 + 32 * slots
    for _ in range(3):
        n, = struct.unpack_from("<I", meta, pos)
        meta[pos + 4:pos + 4 + n].decode()
        pos += 4 + n
    assert pos == m, "length of the metadata"
    return 20 + m


def blocks_of(data):
    offset, crc, magic = struct.unpack_from("<QI8s", data, len(data) - 20)
    assert magic == bytes.fromhex("0a4b5654454e440a"), "end magic"
    assert zlib.crc32(data[offset:-12]) == crc, "crc of the index"
    magic, n = struct.unpack_from("<4sI", data, offset)
    assert magic == b"KVTI" and offset + 8 + 16 * n == len(data) - 20, "index"
    return offset, [struct.unpack_from("<QIHH", data, offset + 8 + 16 * i) for i in range(n)]


def numbers(cols, pos, m, w, x, r):
    out = [0] * m
    for byte in range(w // 2):
        for i in range(m):
            out[i] |= cols[pos + i] << 8 * byte
        pos += m
    if w % 2:
        half = (m + 1) // 2
        for i in range(m):
            nibble = cols[pos + i] & 15 if i < half else cols[pos + i - half] >> 4
            out[i] |= nibble << 4 * (w - 1)
        pos += half
    for i in range(x):
        rest = cols[pos + x + i * r:pos + x + (i + 1) * r]
        out[cols[pos + i]] |= int.from_bytes(rest, "little") << 4 * w
    return out, pos + x + x * r


def columns(cols, n):
    s, least = struct.unpack_from("<HI", cols)
    shapes = [struct.unpack_from("<BBHBB", cols, 6 + 6 * i) for i in range(s)]
    pos = 6 + 6 * s
    bits = next(b for b, most in ((0, 1), (1, 2), (2, 4), (4, 16), (8, 256)) if s <= most)
    of = [cols[pos + i * bits // 8] >> i * bits % 8 & (1 << bits) - 1 if bits else 0
          for i in range(n)]
    pos += (n * bits + 7) // 8
    last = {}
    for group in range(0, n, 256):
        m = min(256, n - group)
        header = cols[pos:pos + 6]
        deltas, pos = numbers(cols, pos + 6, m, *header[:3])
        gaps, pos = numbers(cols, pos, m, *header[3:])
        for i in range(m):
            kind, flags, length, shift, base = shapes[of[group + i]]
            z = deltas[i]
            delta = -(z + 1) // 2 if z % 2 else z // 2
            last[base] = (last.get(base, 0) + (delta << shift)) % 2**64
            yield kind, flags, length, last[base], gaps[i] + least
    assert pos == len(cols), "length of the columns"


class Bytes:
    def __init__(self, data):
        self.data, self.pos = data, 0

    def take(self, n):
        self.pos += n
        assert self.pos <= len(self.data), "length of the columns"
        return self.data[self.pos - n:self.pos]

    def number(self):
        value = shift = 0
        while True:
            byte, = self.take(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        z = self.number()
        return -(z + 1) // 2 if z % 2 else z // 2


def event_rows(cols, n):
    src = Bytes(cols)
    lengths = [src.number() for _ in range(src.number())]
    text = [None] + [src.take(k).decode(errors="replace") for k in lengths]
    contexts = [(src.signed(), src.signed(), src.signed(), text[src.number()])
                for _ in range(src.number())]
    shapes = []
    for _ in range(src.number()):
        kind, flags, decimals, width = src.take(4)
        id_name, name = text[src.number()], text[src.number()]
        src.take(1)
        columns = [text[src.number()] for _ in range(src.take(1)[0])]
        shapes.append((kind, flags, decimals, width, name or id_name, columns))
    of = src.take(n)
    value = [{} for _ in range(n)]

    def column(name, rows):
        last = 0
        for row in rows:
            last = (last + src.signed()) % 2**64
            value[row][name] = last

    for name in ("@time", "@line", "@where"):
        column(name, [row for row in range(n) if name in shapes[of[row]][5]])
    for s, shape in enumerate(shapes):
        for name in shape[5]:
            if name not in ("@time", "@line", "@where"):
                column(name, [row for row in range(n) if of[row] == s])
    assert src.pos == len(cols), "length of the columns"
    for row in range(n):
        kind, flags, decimals, width, name, _ = shapes[of[row]]
        v = value[row]
        if "@where" in v:
            tid, tgid, cpu, comm = contexts[v.pop("@where")]
            v.update({"@tid": tid, "@tgid": tgid, "@cpu": cpu, "@comm": comm})
        if "@reason" in v:
            v["@reason"] = text[v["@reason"]]
        yield kind, flags, decimals, width, name, v


def blocks(data):
    """The columns of each block: vCPU, None for events; number; bytes."""
    pos = metadata(data)
    version, = struct.unpack_from("<I", data, 8)
    end, index = blocks_of(data)
    for offset, n_ops, vcpu, events in index:
        assert offset == pos and events < version, "index entry"
        magic, v, codec, zero, n, raw, stored, crc, header_crc = struct.unpack_from(
            "<4sHBBIIIII", data, pos)
        assert magic == (b"KVTE" if events else b"KVTB"), "magic of a block"
        assert (v, zero, n) == (vcpu, 0, n_ops), "block header"
        assert zlib.crc32(data[pos:pos + 24]) == header_crc, "crc of a block header"
        cols = data[pos + 28:pos + 28 + stored]
        assert zlib.crc32(cols) == crc, "crc of a block"
        cols = unpack_frame(cols, raw) if codec else cols
        assert len(cols) == raw, "length of a block"
        yield None if events else vcpu, n, cols
        pos += 28 + stored
    assert pos == end, "end of the blocks"


def ops_of(data):
    for vcpu, n, cols in blocks(data):
        if vcpu is not None:
            for op in columns(cols, n):
                yield (vcpu, *op)


def print_events(data):
    for vcpu, n, cols in blocks(data):
        if vcpu is None:
            for kind, flags, decimals, width, name, v in event_rows(cols, n):
                print(kind, flags, decimals, width, name or "-",
                      *(f"{k}={v[k]}" for k in sorted(v)))


if sys.argv[1] == "-e":
    with open(sys.argv[2], "rb") as f:
        print_events(f.read())
    sys.exit(0)
with open(sys.argv[1], "rb") as f:
    now = {}
    for cpu, kind, flags, length, arg, gap in ops_of(f.read()):
        now[cpu] = now.get(cpu, 0) + gap
        print(cpu, now[cpu], kind, flags, length, f"{arg:x}")
