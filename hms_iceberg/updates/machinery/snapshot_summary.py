"""What a snapshot's summary counts: files and rows that it adds and removes, and the totals after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, PartitionKey
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import SUMMARY_PARTITION_LIMIT

_TOTALS = (
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)


@dataclass
class _Counts:
    """Counters by their key in the summary; only those above zero are written."""

    values: dict[str, int] = field(default_factory=dict)

    def add(self, key: str, amount: int = 1) -> None:
        self.values[key] = self.values.get(key, 0) + amount

    def count(self, file: DataFile, added: bool) -> None:
        change, change_data = ("added", "added") if added else ("removed", "deleted")
        size = file.content_size_in_bytes if file.is_deletion_vector else file.file_size_in_bytes
        self.add(f"{change}-files-size", size or 0)
        if file.content is DataFileContent.DATA:
            self.add(f"{change_data}-data-files")
            self.add(f"{change_data}-records", file.record_count)
            return
        self.add(f"{change}-delete-files")
        if file.content is DataFileContent.EQUALITY_DELETES:
            self.add(f"{change}-equality-delete-files")
            self.add(f"{change}-equality-deletes", file.record_count)
        else:
            self.add(f"{change}-dvs" if file.is_deletion_vector else f"{change}-position-delete-files")
            self.add(f"{change}-position-deletes", file.record_count)

    def as_text(self) -> dict[str, str]:
        return {key: str(value) for key, value in self.values.items() if value > 0}


class SummaryBuilder:
    """Counts the files that a snapshot adds and removes, table-wide and by partition."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._counts = _Counts()
        self._partitions: dict[PartitionKey, tuple[DataFile, _Counts]] = {}
        self._duplicates = 0

    def added(self, files: Iterable[DataFile]) -> SummaryBuilder:
        """Counts files that the snapshot adds, of any content."""
        return self._count(files, added=True)

    def removed(self, files: Iterable[DataFile]) -> SummaryBuilder:
        """Counts files that the snapshot removes, of any content."""
        return self._count(files, added=False)

    def removed_duplicates(self, count: int) -> SummaryBuilder:
        """Counts further entries of files that were removed already."""
        self._duplicates += count
        return self

    def _count(self, files: Iterable[DataFile], added: bool) -> SummaryBuilder:
        for file in files:
            self._counts.count(file, added)
            _, counts = self._partitions.setdefault(file.partition_key, (file, _Counts()))
            counts.count(file, added)
        return self

    def build(self, properties: Mapping[str, str]) -> dict[str, str]:
        """The changes' part of the summary; `properties` are the caller's own keys."""
        summary = {**properties, **self._counts.as_text()}
        if self._duplicates:
            summary["deleted-duplicate-files"] = str(self._duplicates)
        summary["changed-partition-count"] = str(len(self._partitions))
        limit = SUMMARY_PARTITION_LIMIT.of(self._metadata.properties)
        if self._partitions and len(self._partitions) <= limit:
            summary["partition-summaries-included"] = "true"
            summary.update(self._partition_summaries())
        return summary

    def _partition_summaries(self) -> dict[str, str]:
        summaries: dict[str, _Counts] = {}
        for file, counts in self._partitions.values():
            spec = self._metadata.spec_by_id(file.spec_id)
            path = spec.partition_to_path(file.partition, self._metadata.schema())
            merged = summaries.setdefault(path, _Counts())
            for key, amount in counts.values.items():
                merged.add(key, amount)
        return {
            f"partitions.{path}": ",".join(f"{key}={value}" for key, value in counts.as_text().items())
            for path, counts in summaries.items()
            if path
        }


def with_totals(summary: Mapping[str, str], parent: Mapping[str, str] | None) -> dict[str, str]:
    """The summary with `total-*` counts, carried on from the parent's.

    Args:
        summary: the changes of this snapshot.
        parent: the parent snapshot's summary, None if there is no parent (totals start at zero).

    A total that the parent does not have, or that would become negative, is left out rather than guessed.
    """
    totals = {}
    for total, added, removed in _TOTALS:
        before = "0" if parent is None else parent.get(total)
        if before is None:
            continue
        try:
            after = int(before) + int(summary.get(added, 0)) - int(summary.get(removed, 0))
        except ValueError:
            continue
        if after >= 0:
            totals[total] = str(after)
    return {**summary, **totals}
