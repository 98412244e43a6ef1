"""Damages of Avro files, the same for the same random numbers."""

from __future__ import annotations

import random
import zlib

from hms_iceberg.spec.manifests.avro_container import encode_long, read_blocks, read_container


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed, cut out, put in, or everything from some place on cut off."""
    changed = bytearray(data)
    at = rng.randrange(len(data))
    kind = rng.random()
    if kind < 0.5:
        changed[at] ^= 1 << rng.randrange(8)
    elif kind < 0.7:
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    elif kind < 0.8:
        del changed[at : at + rng.randint(1, 8)]
    elif kind < 0.9:
        changed[at:at] = rng.randbytes(rng.randint(1, 8))
    else:
        del changed[at:]
    return bytes(changed)


def damaged_inside(rng: random.Random, data: bytes) -> bytes:
    """One bit of an inflated block changed."""
    container = read_container(data, "")
    (block,) = read_blocks(container, "")
    raw = bytearray(zlib.decompress(data[block.start : block.end], -15))
    raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    deflater = zlib.compressobj(wbits=-15)
    packed = deflater.compress(bytes(raw)) + deflater.flush()
    head = data[: container.body_offset]
    return b"".join([head, encode_long(block.records), encode_long(len(packed)), packed, container.sync])
