"""A pending change of a table, and the effects that it may have outside of memory.

An update is a frozen intention (names, predicates, files already written), never a diff of metadata. A transaction is
`reduce(apply, updates, base)`, so that replaying it on a newer base is the same call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar, runtime_checkable

from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata

T = TypeVar("T")


class FileReader(Protocol):
    """The part of a storage that validation needs."""

    def read(self, location: str) -> bytes: ...


class Workspace(FileReader, Protocol):
    """The files of one transaction. Every file is recorded, so that what the outcome leaves unused can be deleted."""

    @property
    def commit_id(self) -> str:
        """A UUID that is part of every file name of the transaction."""
        ...

    def create(self, location: str, data: bytes) -> None:
        """Writes a new file that belongs to the current attempt."""
        ...

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, which runs in the first attempt only; the files it creates survive attempts."""
        ...

    def release(self, location: str) -> None:
        """Notes that the current attempt does not use a file."""
        ...

    def next_number(self, kind: str) -> int:
        """0, 1, 2 … for each `kind` of file name."""
        ...

    def now_ms(self) -> int: ...


@runtime_checkable
class Update(Protocol):
    """One pending change of a table.

    Implementations are frozen dataclasses, one file each. They know no metastore and commit nothing.
    """

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        """Data and delete files that were written for the change: a replay finds them as they are, with the field ids,
        spec ids and nulls that they were written with."""
        return ()

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Whether what the change relied on holds in the history from `start` to `base`; else a CommitConflictError
        names both changes.
        """
        ...

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata after the change: pure over metadata, creates files through the workspace only."""
        ...
