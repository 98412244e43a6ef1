"""Builder of a row delta: rows, position deletes and equality deletes in one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.deletes.delete_writer import DeletedPositions, write_row_deletes
from hms_iceberg.arrow.reading.row_rewrites import earlier_positions
from hms_iceberg.arrow.writing.equality_delete_writer import write_equality_deletes
from hms_iceberg.arrow.writing.given_rows import ArrowInput
from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import FileScanTask, ScanRequest
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.table.changes.file_changes import Validated
from hms_iceberg.table.changes.pending import StartedChange
from hms_iceberg.table.changes.row_change import write_rows
from hms_iceberg.updates.machinery.new_snapshot import parent_on
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rows.row_delta import RowDelta


class NewRowDelta(Validated):
    """Adds rows and deletes rows of the same table, in one snapshot.

    Equality deletes apply to rows that were there before, not to those added here. Nothing is read to find rows, so
    that by default the only concurrent commit that is refused is one that removes a file to which position deletes
    point; see `isolation` and `conflict_detection_filter`.

    >>> with table.new_row_delta() as delta:
    ...     delta.delete_equal(changed.select(["id"]), ["id"])
    ...     delta.add_rows(changed)
    """

    def __init__(self, started: StartedChange) -> None:
        super().__init__(started)
        self._standalone = started.finish is not None
        self._positions: dict[str, list[Any]] = {}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._standalone:
            self._transaction.abandon()
        super().__exit__(kind, error, trace)

    @property
    def _name(self) -> str:
        return ".".join(self._transaction.identifier)

    @contextmanager
    def _given_up_on_error(self) -> Iterator[None]:
        """On an error, gives up a change that was begun on the table itself, with the files written for it."""
        try:
            yield
        except BaseException:
            if self._standalone:
                self._transaction.abandon()  # does nothing once the transaction has committed, or tried to
            raise

    def _need_deletes(self) -> None:
        if self._metadata.format_version < 2:
            raise UnsupportedError(
                f"Cannot delete rows of table {self._name} by delete files: format version 1 has none. Upgrade the "
                "table (format-version 2), or use Table.delete, which rewrites files."
            )

    # ------------------------------------------------------------------------------------------ collecting

    def add_rows(self, df: ArrowInput) -> NewRowDelta:
        """Adds rows, as of `Table.append`.

        Raises:
            SchemaMismatchError, TypeMismatchError, NullValueError: the rows do not fit; nothing was written.
        """
        with self._given_up_on_error():
            self._added += write_rows(self._transaction, df)
        return self

    def delete_equal(
        self, df: ArrowInput, columns: Sequence[str] | None = None, spec: PartitionSpec | None = None
    ) -> NewRowDelta:
        """Deletes the rows that equal one of the given ones in some columns, null being equal to null.

        Args:
            df: the keys; in a partitioned spec with the columns that partitions are made of.
            columns: the key; by default the table's identifier fields. Dotted names reach into structs.
            spec: the partition spec of the deletes, one that the table has or had, by default its current one;
                deletes of an unpartitioned spec apply to all partitions.

        Raises:
            InvalidInputError, SchemaMismatchError, TypeMismatchError, NullValueError: the keys or the spec do not fit
                the table.
            UnsupportedError: the table is of format version 1, which has no row deletes.
        """
        self._need_deletes()
        schema = self._metadata.schema()
        ids = list(schema.identifier_field_ids) if columns is None else [schema.find_id(name) for name in columns]
        with self._given_up_on_error():
            self._added += write_equality_deletes(
                self._metadata,
                self._transaction.workspace.storage,
                df,
                ids,
                table=self._name,
                spec=spec and self._own(spec),
                on_create=self._transaction.track,
            )
        return self

    def _own(self, spec: PartitionSpec) -> PartitionSpec:
        """The table's own spec with the fields of one that may have been made elsewhere, with another id."""
        for each in self._metadata.partition_specs:
            if each.compatible_with(spec) or (each.is_unpartitioned() and spec.is_unpartitioned()):
                return each
        fields = ", ".join(map(str, spec.fields)) or "without fields"
        raise InvalidInputError(
            f"Cannot write equality deletes of table {self._name} in a partition spec that it never had ({fields}). "
            "Give one of Table.specs(), or none, and rows with the columns that partitions are made of."
        )

    def delete_positions(self, positions: Mapping[str, Iterable[int]] | pa.Table) -> NewRowDelta:
        """Deletes rows by the location of their data file and their position in it.

        Args:
            positions: location to positions, from 0; or a table of columns `file_path` and `pos` (as of a scan of
                `_file` and `_pos`, renamed).

        Raises:
            InvalidInputError: a position is negative, or the table lacks the columns.
        """
        self._need_deletes()
        for path, found in _grouped(positions, self._name).items():
            if len(found) and found.min() < 0:
                raise InvalidInputError(
                    f"Cannot delete rows of {path} in table {self._name}: position {found.min()} is less than 0."
                )
            self._positions.setdefault(path, []).append(found)
        return self

    def add_files(self, *files: DataFile) -> NewRowDelta:
        """Adds data files, delete files or deletion vectors that exist already, described as manifests do."""
        self._added += files
        return self

    def remove_files(self, *files: DataFile) -> NewRowDelta:
        """Removes data files, or delete files whose deletes others repeat."""
        self._removed += files
        return self

    # ------------------------------------------------------------------------------------------ committing

    def commit(self) -> None:
        """Makes the change part of its transaction, or of the table if there is none.

        Raises:
            InvalidInputError: position deletes point at no live data file; the files written are deleted again.
            CommitConflictError, CommitFailedError, CommitStateUnknownError: see `Transaction.commit`.
        """
        with self._given_up_on_error():
            super().commit()

    def _updates(self) -> list[Update]:
        deletes, obsolete = self._position_deletes()
        if not (self._added or self._removed or deletes):
            return []
        return [
            RowDelta(
                added=(*self._added, *deletes),
                removed=(*self._removed, *obsolete),
                referenced=frozenset(self._positions),
                **self._of_validation(),
                **self._of_snapshot(),
            )
        ]

    def _position_deletes(self) -> tuple[list[DataFile], list[DataFile]]:
        if not self._positions:
            return [], []
        storage, version = self._transaction.workspace.storage, self._metadata.format_version
        tasks = self._tasks()
        deleted: list[DeletedPositions] = []
        obsolete: list[DataFile] = []
        for path, parts in self._positions.items():
            task = tasks[path]
            positions = np.unique(np.concatenate(parts))
            if len(positions) and positions[-1] >= task.file.record_count:
                raise InvalidInputError(
                    f"Cannot delete row {positions[-1]:,} of {path} in table {self._name}: the file has "
                    f"{task.file.record_count:,} rows."
                )
            earlier, replaced = earlier_positions(storage, task, version)
            deleted.append(DeletedPositions(task.file, positions, earlier))
            obsolete += replaced if len(positions) else ()
        return write_row_deletes(self._metadata, storage, deleted, self._transaction.track), obsolete

    def _tasks(self) -> dict[str, FileScanTask]:
        snapshot = parent_on(self._metadata, self._branch)
        request = ScanRequest(self._metadata, snapshot.snapshot_id if snapshot else None)
        plan = plan_scan(request, self._transaction.workspace.storage).of_paths(self._positions)
        found = {task.file.file_path: task for task in plan.tasks()}
        unknown = [path for path in self._positions if path not in found]
        if unknown:
            raise InvalidInputError(
                f"Cannot delete rows of {unknown[0]!r}: it is no live data file of table {self._name}. "
                "Take locations from a scan of _file."
            )
        return found


def _grouped(positions: Mapping[str, Iterable[int]] | pa.Table, table: str) -> dict[str, Any]:
    if isinstance(positions, Mapping):
        return {path: np.asarray(list(found), np.int64) for path, found in positions.items()}
    if not isinstance(positions, pa.Table) or {"file_path", "pos"} - set(positions.column_names):
        raise InvalidInputError(
            f"Cannot delete rows of table {table} by position: expected a mapping of locations to positions or a "
            "pyarrow.Table with the columns file_path and pos."
        )
    grouped = positions.select(["file_path", "pos"]).group_by("file_path").aggregate([("pos", "list")])
    lists = grouped.column("pos_list").to_pylist()
    return dict(
        zip(grouped.column("file_path").to_pylist(), (np.asarray(each, np.int64) for each in lists), strict=True)
    )
