"""What a pending change is, and what it may do to the world outside.

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

    def read(self, location: str) -> bytes:
        """The whole object at `location`."""
        ...


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
        """The result of `make`, which runs in the first attempt only; the files it creates survive attempts.

        Args:
            key: identifies the work over attempts.
            make: does the work, and gives its result.
        """
        ...

    def release(self, location: str) -> None:
        """Notes that the current attempt does not use a file."""
        ...

    def next_number(self, kind: str) -> int:
        """0, 1, 2 … for each `kind` of file name."""
        ...

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...


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
        """Says whether what the change relied on still holds in the history between `start` and `base`.

        Args:
            start: the metadata that the change was made against.
            base: the committed metadata that it is now to be applied to.
            reader: reads manifest lists and manifests.

        Raises:
            CommitConflictError: replay cannot help; names both changes. Nothing was written.
        """
        ...

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata after the change: pure over metadata, creates files through the workspace only.

        Args:
            base: the committed metadata that the change is applied to.
            workspace: reads and creates files, and records those that it creates.

        Raises:
            InvalidInputError: the change cannot be made on this metadata.
        """
        ...
