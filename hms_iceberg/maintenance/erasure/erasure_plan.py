"""The plan of an erasure, and its state while it goes on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ErasurePlan:
    """The plan of an erasure: the rows and files that it would change. `str()` tells it.

    Attributes:
        table: the table.
        where: the predicate.
        rows: how many rows of data files match, also those that deletes hide, and old versions alone have.
        files: data files with such rows, with how many each has and of how many rows.
        whole_files: how many of them hold no other row, and are not written anew.
        bytes: bytes of the files that are written anew.
        snapshots: ids of the snapshots that read such a file.
        refs: branches and tags that do.
        deletes: delete files that hold keys or copies of such rows.
        traces: files that are gone, may have held such rows, and whose removal is told; and summaries of snapshots
            that mention a text of the predicate.
        mentions: where else in the metadata such a text is: in properties, names and comments, which stay.
        statistics: statistics files of these snapshots, which go as well, as they tell of the rows that go.
        needed_by: others who need these files, as parts of a sentence; nothing is done as long as there are some.
        dropped_columns: whether columns that were dropped since are among those that the predicate reads.
    """

    table: str
    where: str
    rows: int
    files: Mapping[str, tuple[int, int]]
    whole_files: int
    bytes: int
    snapshots: tuple[int, ...]
    refs: tuple[str, ...]
    deletes: tuple[str, ...]
    traces: int
    mentions: tuple[str, ...]
    statistics: tuple[str, ...]
    dropped_columns: bool
    needed_by: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done."""
        return not (self.files or self.deletes or self.traces)

    def __str__(self) -> str:
        if self.is_empty:
            return f"{self.table}: no row of any version matches {self.where}"
        lines = [
            f"{self.table}: {self.rows:,} rows of {len(self.files):,} data files match {self.where}",
            f"  {len(self.files) - self.whole_files:,} files ({self.bytes:,} bytes) are written anew, "
            f"{self.whole_files:,} go whole",
            f"  {len(self.snapshots):,} snapshots read them; they stay, without the rows",
        ]
        if self.refs:
            lines.append(f"  of {', '.join(self.refs)}")
        if self.deletes:
            lines.append(f"  {len(self.deletes):,} delete files hold keys or copies of such rows")
        if self.traces:
            lines.append(f"  {self.traces:,} traces go: old files that may have held such rows, notes of snapshots")
        if self.statistics:
            lines.append(f"  {len(self.statistics):,} statistics files go: compute them again")
        if self.dropped_columns:
            lines.append("  columns that were dropped since are looked at as well")
        lines += [f"  nothing can be done, as the files are needed by {each}" for each in self.needed_by]
        lines += [f"  stays, and mentions the value: {each}" for each in self.mentions]
        return "\n".join(lines)


@dataclass(frozen=True)
class ErasureResult:
    """How far an erasure has come.

    Attributes:
        plan: what was found.
        journal: location of its journal, while old files are left; None if nothing was to be done, or all is.
        due: when the old files may be deleted, in UTC; None if nothing waits.
        report: what was done and the proof, signed if a key was given; None before it is finished.
        left: files that could not be deleted, each with the reason.
    """

    plan: ErasurePlan
    journal: str | None = None
    due: dt.datetime | None = None
    report: dict[str, Any] | None = None
    left: Mapping[str, str] | None = None
