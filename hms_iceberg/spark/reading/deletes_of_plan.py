"""The delete files of a plan, as the bridge's class PlannedDeletes takes them: columns, runs and groups, no pairs."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from hms_iceberg.lazy import pl
from hms_iceberg.scan.tasks import ScanPlan
from hms_iceberg.spark.answers import AnswerWriter
from hms_iceberg.spark.schemas import key_schema
from hms_iceberg.spec.manifests.manifest_values import DataFileContent


class DeletesOfPlan:
    """The delete files of a plan, and which of them apply to which data file: position deletes in runs, equality
    deletes in groups of the same keys and reach, whose rows are loaded once and compared by sequence number."""

    def __init__(self, plan: ScanPlan, table: str) -> None:
        self._plan = plan
        self._formats = plan.delete_files["file_format"].str.to_uppercase()
        self._kinds = self._formats.unique(maintain_order=True).to_list()
        self._is_keyed = plan.delete_files["key_metadata"].null_count() < plan.delete_files.height
        self._groups = self._grouped()
        self.header: dict[str, Any] = {
            "delete_files": plan.delete_files.height,
            "delete_formats": self._kinds,
            "keyed_deletes": self._is_keyed,
            "equality_deletes": self._told(table),
        }

    def _grouped(self) -> pl.DataFrame:
        """Each equality delete file with the number of its group; groups are numbered as they first occur."""
        columns = {column for spec in self._plan.partitions.structs for column in self._plan.partitions.columns(spec)}
        of_keys = self._plan.delete_files.with_row_index("delete_file").filter(
            pl.col("content") == int(DataFileContent.EQUALITY_DELETES)
        )
        reach: dict[tuple[Any, ...], int] = {}
        rows = of_keys.select("equality_ids", "spec_id", *sorted(columns.intersection(of_keys.columns)))
        numbers = [reach.setdefault(self._reach(row), len(reach)) for row in rows.iter_rows(named=True)]
        return of_keys.select("delete_file", pl.Series("group", numbers, pl.Int32), "equality_ids", "file_path")

    def _reach(self, row: dict[str, Any]) -> tuple[Any, ...]:
        """The reach that the files of a group share: the key's columns, and the partition whose rows they delete."""
        ids = tuple(sorted(row["equality_ids"] or ()))
        if self._plan.metadata.spec_by_id(row["spec_id"]).is_unpartitioned():
            return (ids,)
        columns = self._plan.partitions.columns(row["spec_id"])
        return (ids, row["spec_id"], *(repr(row[column]) for column in columns))

    def _told(self, table: str) -> list[dict[str, Any]]:
        """The key columns of each group, and what names its content."""
        groups = self._groups.group_by("group", maintain_order=True)
        found = groups.agg(pl.col("equality_ids").first(), pl.col("file_path"))
        told = []
        for ids, paths in found.select("equality_ids", "file_path").iter_rows():
            columns = key_schema(tuple(sorted(ids or ())), self._plan.schema, self._plan.metadata, table)
            told.append({"columns": columns, "key": _digest([columns, paths])})
        return told

    def add_to(self, answer: AnswerWriter) -> None:
        """Adds the columns of the delete files, then what applies to each data file."""
        plan, files = self._plan, self._plan.delete_files
        if not files.height:
            return
        answer.texts(files["file_path"])
        answer.longs(files["file_size_in_bytes"])
        for name in ("sequence_number", "content_offset", "content_size_in_bytes"):
            answer.longs(files[name].fill_null(0))
        answer.longs(files["record_count"])
        answer.ints(self._formats.replace_strict(self._kinds, range(len(self._kinds)), return_dtype=pl.Int32))
        if self._is_keyed:
            answer.blobs([key or b"" for key in files["key_metadata"].to_list()])
        # No run goes beyond the deletes of one key and reach.
        group_of = pl.repeat(None, files.height, dtype=pl.Int32, eager=True)
        group_of = group_of.scatter(self._groups["delete_file"], self._groups["group"])
        groups = group_of.gather(plan.assignments["first"]).alias("group")
        positions = plan.assignments.filter(groups.is_null())
        _offsets(answer, plan.files.height, positions["data_file"])
        answer.ints(positions["first"]).ints(positions["end"])
        if self._groups.height:
            keyed = plan.assignments.select("data_file", groups).filter(groups.is_not_null())
            keyed = keyed.unique().sort("data_file", "group")
            _offsets(answer, plan.files.height, keyed["data_file"])
            answer.ints(keyed["group"])
            ordered = self._groups.sort("group", "delete_file")
            _offsets(answer, len(self.header["equality_deletes"]), ordered["group"])
            answer.ints(ordered["delete_file"])


def _offsets(answer: AnswerWriter, count: int, owners: pl.Series) -> None:
    """Adds where each owner's part begins in an array that is sorted by owners, and where the last one's ends."""
    import numpy as np

    per_owner = np.bincount(owners.to_numpy(), minlength=count) if len(owners) else np.zeros(count, np.int64)
    answer.ints(pl.Series(np.concatenate(([0], np.cumsum(per_owner)))))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
