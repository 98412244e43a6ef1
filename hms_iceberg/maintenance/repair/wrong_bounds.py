"""Bounds in manifests that values of their files lie outside of, made anew from the values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hms_iceberg.arrow.parallel import in_parallel
from hms_iceberg.maintenance.check.bounds_check import Bounds
from hms_iceberg.maintenance.check.digests import file_key
from hms_iceberg.maintenance.repair.examination import DAMAGE, Examination, RepairStep
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestContent, ManifestEntry

_SHOWN = 5


@dataclass(frozen=True)
class Mended:
    """A manifest with right bounds."""

    location: str  # where the old one is
    files: tuple[str, ...]  # the files that had wrong ones
    entries: tuple[ManifestEntry, ...]

    @property
    def step(self) -> RepairStep:
        rest = len(self.files) - _SHOWN
        shown = ", ".join(self.files[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
        damage = (
            f"The manifest {self.location} says bounds of {len(self.files)} files that some of their values lie "
            f"outside of, so that filters lose rows: {shown}."
        )
        return RepairStep("bounds", damage, "They are made anew from the values.")


def mended_bounds(examination: Examination, record_counts: bool) -> Iterator[Mended]:
    """The manifests with wrong bounds; of tables without files of others only if `record_counts` opens every file. A
    file that is gone or damaged is left as it is."""
    metadata = examination.metadata
    bounds = Bounds.to_check(metadata, examination.storage, record_counts)
    known: dict[bytes, DataFile | None] = {}

    def mend(file: DataFile) -> DataFile | None:
        assert bounds is not None
        try:
            return bounds.mended(file)
        except DAMAGE:
            return None

    for location, row in examination.rows.items() if bounds is not None else ():
        if location not in examination.entries or row.content is not ManifestContent.DATA:
            continue
        entries = examination.entries[location]
        files = {file_key(each.data_file): each.data_file for each in entries if each.is_live}
        unseen = [file for key, file in files.items() if key not in known]
        found = in_parallel(lambda file: (file_key(file), mend(file)), unseen, metadata.location)
        known |= dict(found)
        wrong = [key for key in files if known[key] is not None]
        if wrong:
            yield Mended(location, tuple(files[key].file_path for key in wrong), _with_bounds(entries, known))


def _with_bounds(entries: list[ManifestEntry], known: dict[bytes, DataFile | None]) -> tuple[ManifestEntry, ...]:
    made = []
    for entry in entries:
        right = known.get(file_key(entry.data_file))
        if right is not None:
            file = replace(entry.data_file, lower_bounds=right.lower_bounds, upper_bounds=right.upper_bounds)
            entry = replace(entry, data_file=file)
        made.append(entry)
    return tuple(made)
