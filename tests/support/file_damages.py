"""What may happen to one file of a table."""

from __future__ import annotations

from pathlib import Path


def removed(path: Path, other: Path) -> None:
    """It is gone."""
    path.unlink()


def cut(path: Path, other: Path) -> None:
    """Most of it is gone."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 10])


def flipped(path: Path, other: Path) -> None:
    """Some of its bits have changed."""
    data = bytearray(path.read_bytes())
    for position in (0, 40, len(data) // 2, -1):
        data[position] ^= 1
    path.write_bytes(bytes(data))


def exchanged(path: Path, other: Path) -> None:
    """Another table's file of its kind is in its place."""
    path.write_bytes(other.read_bytes())


DAMAGES = (removed, cut, flipped, exchanged)
