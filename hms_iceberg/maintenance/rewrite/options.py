"""Options of a rewriting of files, under the names of Apache Iceberg's.

Source: Iceberg documentation, "Spark Procedures", `rewrite_data_files` and `rewrite_position_delete_files`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from hms_iceberg.errors import InvalidInputError

_MIN_SIZE_RATIO, _MAX_SIZE_RATIO = 0.75, 1.8
_SPLIT_OVERHEAD_BYTES = 5 * 1024
_COMMIT_OPTIONS = (
    "max-concurrent-file-group-rewrites",
    "partial-progress.enabled",
    "partial-progress.max-commits",
    "partial-progress.max-failed-commits",
)
_SIZE_OPTIONS = (
    "target-file-size-bytes",
    "min-file-size-bytes",
    "max-file-size-bytes",
    "min-input-files",
    "rewrite-all",
    "max-file-group-size-bytes",
    "max-file-group-input-files",
    "max-files-to-rewrite",
    "rewrite-job-order",
)
_DATA_OPTIONS = (
    "delete-file-threshold",
    "delete-ratio-threshold",
    "use-starting-sequence-number",
    "remove-dangling-deletes",
    "output-spec-id",
)
_SORT_OPTIONS = ("compression-factor", "shuffle-partitions-per-file")
# Taken and checked for the sake of callers; columns are ranked by whole values here, so that neither limits anything.
_ZORDER_OPTIONS = ("var-length-contribution", "max-output-size")


class JobOrder(str, Enum):
    """Which groups are rewritten first."""

    NONE = "none"
    BYTES_ASC = "bytes-asc"
    BYTES_DESC = "bytes-desc"
    FILES_ASC = "files-asc"
    FILES_DESC = "files-desc"


@dataclass(frozen=True)
class SizeRules:
    """Which sizes files should have, and how they are grouped."""

    target_bytes: int  # of a file that is written
    min_bytes: int  # smaller files are rewritten
    max_bytes: int  # larger files are rewritten
    min_input_files: int = 5  # so many files make a group worth rewriting
    rewrite_all: bool = False  # whether every file is rewritten, whatever its size
    max_group_bytes: int = 100 * 1024**3  # of the files of a group
    max_group_files: int = sys.maxsize  # files of a group
    max_files: int | None = None  # files of all groups together; None for no limit
    job_order: JobOrder = JobOrder.NONE  # which groups come first

    def is_outside(self, size: int) -> bool:
        """Whether a file of this size is too small or too large."""
        return size < self.min_bytes or size > self.max_bytes

    @property
    def largest_output(self) -> int:
        """The most bytes of a file that is written: halfway from the target to the size that is too large."""
        return self.target_bytes + (self.max_bytes - self.target_bytes) // 2

    def output_files(self, size: int) -> int:
        """How many files so many bytes become. What is left over after whole files gets one of its own where that is
        large enough, and otherwise goes into the others unless they become too large."""
        if size < self.target_bytes:
            return 1
        whole, rest = divmod(size, self.target_bytes)
        if rest == 0 or (rest <= self.min_bytes and size / whole < min(1.1 * self.target_bytes, self.largest_output)):
            return whole
        return whole + 1

    def output_bytes(self, size: int, factor: float = 1.0) -> int:
        """Bytes at which a written file is full: the target's, or more where that spares a small file at the end."""
        expected = int(size * factor)
        even = expected // self.output_files(expected) + _SPLIT_OVERHEAD_BYTES
        return self.target_bytes if even < self.target_bytes else min(even, self.largest_output)


@dataclass(frozen=True)
class CommitRules:
    """Rules for committing groups: at the end, or some at a time while others are still written."""

    workers: int = 5  # groups that are rewritten at once
    partial_progress: bool = True  # whether groups are committed as they are done; else all together or none
    max_commits: int = 10  # commits of a run with partial progress
    max_failed_commits: int = 10  # how many of them may fail before the run does


@dataclass(frozen=True)
class DataFileRules:
    """Options that only data files have."""

    delete_file_threshold: int = 2**31 - 1  # a file to which so many delete files apply is rewritten
    delete_ratio_threshold: float = 0.3  # a file of which this share of rows is deleted is rewritten
    # whether new files take the sequence number of the snapshot that was planned, so that concurrent equality deletes
    # keep applying to their rows
    use_starting_sequence_number: bool = True
    remove_dangling_deletes: bool = False  # whether delete files that apply to nothing any more are removed afterwards
    output_spec_id: int | None = None  # the partition spec of the new files; None for the table's default
    compression_factor: float = 1.0  # how much larger sorted files are expected to be than those that are read


class RewriteOptions:
    """Options by name (text, numbers or booleans), each checked when it is read, with an InvalidInputError."""

    def __init__(self, options: Mapping[str, Any] | None, action: str, table: str) -> None:
        self._options = {name: str(value).strip() for name, value in (options or {}).items()}
        self._action = action
        self._table = table

    def refuse_others(self, sorts: bool = False, zorder: bool = False, data: bool = True) -> None:
        """Refuses names that the action does not know."""
        known = {*_COMMIT_OPTIONS, *_SIZE_OPTIONS, *(_DATA_OPTIONS if data else ())}
        known |= {*(_SORT_OPTIONS if sorts else ()), *(_ZORDER_OPTIONS if zorder else ())}
        unknown = sorted(self._options.keys() - known)
        if unknown:
            raise InvalidInputError(
                f"Cannot use options {unknown} for {self._action} of table {self._table}: they are not supported by "
                f"the action. It takes {', '.join(sorted(known))}."
            )

    def sizes(self, default_target: int) -> SizeRules:
        """The sizes of files and groups; `default_target` is in bytes."""
        target = self._int("target-file-size-bytes", default_target, 1)
        least = self._int("min-file-size-bytes", int(target * _MIN_SIZE_RATIO), 0)
        most = self._int("max-file-size-bytes", int(target * _MAX_SIZE_RATIO), 0)
        if least >= target:
            raise self._refusal(
                "min-file-size-bytes",
                least,
                f"a number below target-file-size-bytes ({target}): else every new file is too small again",
            )
        if most <= target:
            raise self._refusal(
                "max-file-size-bytes",
                most,
                f"a number above target-file-size-bytes ({target}): else every new file is too large again",
            )
        limited = "max-files-to-rewrite" in self._options
        return SizeRules(
            target_bytes=target,
            min_bytes=least,
            max_bytes=most,
            min_input_files=self._int("min-input-files", SizeRules.min_input_files, 1),
            rewrite_all=self._bool("rewrite-all", SizeRules.rewrite_all),
            max_group_bytes=self._int("max-file-group-size-bytes", SizeRules.max_group_bytes, 1),
            max_group_files=self._int("max-file-group-input-files", SizeRules.max_group_files, 1),
            max_files=self._int("max-files-to-rewrite", 0, 1) if limited else None,
            job_order=self._job_order(),
        )

    def commits(self) -> CommitRules:
        most = self._int("partial-progress.max-commits", CommitRules.max_commits, 1)
        return CommitRules(
            workers=self._int("max-concurrent-file-group-rewrites", CommitRules.workers, 1),
            partial_progress=self._bool("partial-progress.enabled", CommitRules.partial_progress),
            max_commits=most,
            max_failed_commits=self._int("partial-progress.max-failed-commits", most, 0),
        )

    def data_files(self) -> DataFileRules:
        for name in (*_ZORDER_OPTIONS, "shuffle-partitions-per-file"):
            self._int(name, 1, 1)
        ratio = self._float("delete-ratio-threshold", DataFileRules.delete_ratio_threshold)
        if not 0 < ratio <= 1:
            raise self._refusal("delete-ratio-threshold", ratio, "a number above 0, at most 1")
        factor = self._float("compression-factor", DataFileRules.compression_factor)
        if not factor > 0:
            raise self._refusal("compression-factor", factor, "a number above 0")
        return DataFileRules(
            delete_file_threshold=self._int("delete-file-threshold", DataFileRules.delete_file_threshold, 0),
            delete_ratio_threshold=ratio,
            use_starting_sequence_number=self._bool("use-starting-sequence-number", True),
            remove_dangling_deletes=self._bool("remove-dangling-deletes", False),
            output_spec_id=self._int("output-spec-id", 0, 0) if "output-spec-id" in self._options else None,
            compression_factor=factor,
        )

    # --------------------------------------------------------------------------------------------- values

    def _int(self, name: str, default: int, least: int) -> int:
        text = self._options.get(name)
        try:
            value = default if text is None else int(text)
        except ValueError:
            raise self._refusal(name, text, "a whole number") from None
        if value < least:
            raise self._refusal(name, text, f"a whole number of at least {least}")
        return value

    def _float(self, name: str, default: float) -> float:
        text = self._options.get(name)
        try:
            return default if text is None else float(text)
        except ValueError:
            raise self._refusal(name, text, "a number") from None

    def _bool(self, name: str, default: bool) -> bool:
        text = self._options.get(name, str(default)).lower()
        if text not in ("true", "false"):
            raise self._refusal(name, text, "true or false")
        return text == "true"

    def _job_order(self) -> JobOrder:
        text = self._options.get("rewrite-job-order", JobOrder.NONE.value)
        try:
            return JobOrder(text.lower().replace("_", "-"))
        except ValueError:
            raise self._refusal("rewrite-job-order", text, ", ".join(each.value for each in JobOrder)) from None

    def _refusal(self, name: str, value: object, expected: str) -> InvalidInputError:
        return InvalidInputError(
            f"Cannot use option {name} for {self._action} of table {self._table}: expected {expected}, got {value!r}."
        )
