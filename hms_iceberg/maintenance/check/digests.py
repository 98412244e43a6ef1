"""Digests of manifests: a check keeps counts, and some forty bytes for each live file instead of its entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from hms_iceberg.lazy import pl
from hms_iceberg.maintenance.check.summary_check import EntryCounts
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestEntry, ManifestFile
from hms_iceberg.spec.places import Place

_HASH_BYTES = 16


@dataclass(frozen=True)
class ManifestDigest:
    """Facts of a manifest that are kept after it was read."""

    counts: EntryCounts  # of its entries
    # a row for each live file: `entry` (its place in the manifest), hashes of the file (`file`) and of the data file
    # that a deletion vector is about (`vector_of`), `first_row_id` and `rows`
    files: pl.DataFrame


Listed = tuple[ManifestFile, ManifestDigest]
ReadAgain = Callable[[ManifestFile], Sequence[ManifestEntry]]


def file_key(file: DataFile) -> bytes:
    """The identity of a file, whatever its spelling, or of a deletion vector in a Puffin file."""
    place = str(Place.of(file.file_path))
    return _hash(place if file.content_offset is None else f"{place}\0{file.content_offset}")


def file_number(file: DataFile) -> int:
    """The key in eight bytes, as the digests of manifests have it."""
    return _number(file_key(file))


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=_HASH_BYTES).digest()


def digest(entries: Sequence[ManifestEntry]) -> ManifestDigest:
    live = [(place, entry.data_file) for place, entry in enumerate(entries) if entry.is_live]
    files = pl.DataFrame(
        {
            "entry": [place for place, _ in live],
            "file": [file_number(file) for _, file in live],
            "vector_of": [_vector_of(file) for _, file in live],
            "first_row_id": [file.first_row_id for _, file in live],
            "rows": [file.record_count for _, file in live],
        },
        schema={
            "entry": pl.UInt32,
            "file": pl.UInt64,
            "vector_of": pl.UInt64,
            "first_row_id": pl.Int64,
            "rows": pl.Int64,
        },
    )
    return ManifestDigest(EntryCounts.of(entries), files)


def _vector_of(file: DataFile) -> int | None:
    if not file.is_deletion_vector or not file.referenced_data_file:
        return None
    return _number(_hash(file.referenced_data_file))


def _number(key: bytes) -> int:
    return int.from_bytes(key[:8], "big")


def together(listed: Sequence[Listed], *columns: str) -> pl.DataFrame:
    """The live files of several manifests, with the place of each one's manifest among them as `manifest`."""
    frames = [
        each.files.select("entry", *columns).with_columns(pl.lit(place, pl.UInt32).alias("manifest"))
        for place, (_, each) in enumerate(listed)
    ]
    return pl.concat(frames) if frames else pl.DataFrame(schema={"manifest": pl.UInt32})


def repeated(listed: Sequence[Listed], column: str) -> list[tuple[int, int]]:
    """Places (manifest, entry) of live files whose hash in a column is repeated: almost certainly the same file."""
    hashes = pl.concat([pl.Series(column, dtype=pl.UInt64), *(each.files[column] for _, each in listed)])
    ordered = hashes.drop_nulls().sort()
    again = ordered.filter(ordered == ordered.shift(1)).unique()
    if again.is_empty():
        return []
    return together(listed, column).filter(pl.col(column).is_in(again.implode())).select("manifest", "entry").rows()


def files_at(
    listed: Sequence[Listed], places: Iterable[tuple[int, int]], read: ReadAgain
) -> dict[tuple[int, int], DataFile]:
    """The files at some places (manifest, entry), read again; with column metrics only if `read` gives them."""
    wanted: dict[int, set[int]] = {}
    for manifest, entry in places:
        wanted.setdefault(manifest, set()).add(entry)
    found = {}
    for manifest, numbers in wanted.items():
        entries = read(listed[manifest][0])
        found.update({(manifest, number): entries[number].data_file for number in numbers})
    return found
