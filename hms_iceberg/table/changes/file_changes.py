"""Changes of whole files, for writers of files (engines, compaction, migration), with Java's names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from hms_iceberg.arrow.metrics.footer_metrics import metrics_modes
from hms_iceberg.arrow.parallel import default_workers
from hms_iceberg.arrow.reading.imported_files import FileImport
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.errors import InvalidInputError, SchemaMismatchError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanRequest
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.places import Place
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.spec.table_properties import NAME_MAPPING
from hms_iceberg.storage import Places
from hms_iceberg.table.changes.pending import PendingChange, StartedChange
from hms_iceberg.table.changes.row_change import ChangeOptions
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.machinery.content import Isolation
from hms_iceberg.updates.machinery.new_snapshot import parent_on
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rewrite_manifests import RewriteManifests
from hms_iceberg.updates.rows.append import FastAppend, MergeAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles, Overwrite
from hms_iceberg.updates.rows.rewrite_files import RewriteFiles
from hms_iceberg.updates.table_settings import SetProperties

logger = logging.getLogger(__name__)


def add_files(
    transaction: Transaction,
    file_paths: Sequence[str],
    check_duplicates: bool,
    options: ChangeOptions,
    partitions: Mapping[str, Mapping[str, str]] | None = None,
    leave_out_columns: bool = False,
) -> None:
    """Adds files to a table; see `Table.add_files`. `partitions` are names and values of each file's partition, if
    its folders do not tell. Columns that the table never had are refused, or left out and logged."""
    table = ".".join(transaction.identifier)
    if isinstance(file_paths, str):
        raise InvalidInputError(f"Cannot add files to table {table}: expected a list of locations, got {file_paths!r}.")
    paths = list(file_paths)
    if not all(isinstance(path, str) for path in paths):
        raise InvalidInputError(f"Cannot add files to table {table}: expected a list of locations, got {paths!r}.")
    places = Places(transaction.workspace.storage)
    asked: dict[Place, str] = {}
    for path in paths:
        place = places.of(path)
        first = asked.get(place)
        if first is not None:
            spelled = "" if first == path else f", also as {path}"
            raise InvalidInputError(f"Cannot add files to table {table}: {first} is named more than once{spelled}.")
        asked[place] = path
    metadata = transaction.metadata
    if check_duplicates:
        _refuse_known(transaction, metadata, asked, places, options, table)
    mapping = metadata.name_mapping()
    chosen = mapping or create_name_mapping(metadata.schema())
    modes = metrics_modes(metadata.schema(), metadata.properties, metadata.sort_order())
    on_unknown = _logging_columns(table) if leave_out_columns else _refuse_columns
    importer = FileImport(metadata, transaction.workspace.storage, chosen, modes, on_unknown)
    workers = default_workers(len(paths), not parse_location(metadata.location).is_local)
    with ThreadPoolExecutor(workers) as pool:
        files = tuple(pool.map(lambda path: importer.describe(path, (partitions or {}).get(path)), paths))
    if not files:
        return
    if mapping is None:
        transaction.add(SetProperties(updates={NAME_MAPPING.name: chosen.to_json()}))
    transaction.add(FastAppend(files, **options.update_fields()))


def _refuse_columns(location: str, columns: tuple[str, ...]) -> None:
    raise SchemaMismatchError(
        f"Cannot add {location}: the table does not have its columns {', '.join(columns)}, whose values nobody could "
        "read. Add them to the table first (update_schema, union_by_name), or append the rows without them."
    )


def _logging_columns(table: str) -> Callable[[str, tuple[str, ...]], None]:
    """Logs each set of columns once, with the first file that has it."""
    told: set[tuple[str, ...]] = set()

    def log(location: str, columns: tuple[str, ...]) -> None:
        if columns not in told:
            told.add(columns)
            logger.warning("Table %s lacks columns of %s, which it leaves out: %s", table, location, ", ".join(columns))

    return log


def _refuse_known(
    transaction: Transaction,
    metadata: TableMetadata,
    asked: Mapping[Place, str],
    places: Places,
    options: ChangeOptions,
    table: str,
) -> None:
    snapshot = parent_on(metadata, options.branch)
    if snapshot is None:
        return
    plan = plan_scan(ScanRequest(metadata, snapshot.snapshot_id), transaction.workspace.storage)
    known = {places.of(path) for path in plan.files["file_path"].to_list()}
    found = [path for place, path in asked.items() if place in known]
    if found:
        raise InvalidInputError(
            f"Cannot add files to table {table}: {len(found)} of {len(asked)} are in it already, the first is "
            f"{found[0]}. Leave them out; with check_duplicate_files=False their rows would be there twice."
        )


Builder = TypeVar("Builder", bound="FileChange")


class FileChange(PendingChange):
    """A change that becomes one snapshot.

    Each method that sets something returns this object, so that calls can be chained.
    """

    def __init__(self, started: StartedChange) -> None:
        super().__init__(started)
        self._added: list[DataFile] = []
        self._removed: list[DataFile] = []
        self._filter: BooleanExpression | None = None
        self._branch = MAIN_BRANCH
        self._summary: dict[str, str] = {}
        self._stage_only = False
        self._conflict_filter: BooleanExpression | None = None
        self._isolation = Isolation.NONE
        self._case_sensitive = True

    def to_branch(self: Builder, name: str) -> Builder:
        """Changes this branch instead of main."""
        self._branch = name
        return self

    def set(self: Builder, key: str, value: str) -> Builder:
        """Sets a key of the snapshot's summary.

        Args:
            key: the key.
            value: its value.
        """
        self._summary[key] = value
        return self

    def stage_only(self: Builder) -> Builder:
        """Adds the snapshot without moving a branch; `cherrypick` publishes it."""
        self._stage_only = True
        return self

    def case_sensitive(self: Builder, case_sensitive: bool) -> Builder:
        """Sets whether filters name columns in their case."""
        self._case_sensitive = case_sensitive
        return self

    def _of_snapshot(self) -> dict[str, Any]:
        return {"branch": self._branch, "properties": dict(self._summary), "stage_only": self._stage_only}


class AppendFiles(FileChange):
    """Appends data files; manifests are merged if `merging`."""

    def __init__(self, started: StartedChange, merging: bool) -> None:
        super().__init__(started)
        self._merging = merging

    def append_file(self, file: DataFile) -> AppendFiles:
        """Adds a data file."""
        self._added.append(file)
        return self

    def append_data_file(self, data_file: DataFile) -> AppendFiles:
        """PyIceberg's name of `append_file`."""
        return self.append_file(data_file)

    def _updates(self) -> list[Update]:
        kind = MergeAppend if self._merging else FastAppend
        return [kind(tuple(self._added), **self._of_snapshot())]


class DeleteDataFiles(FileChange):
    """Removes data files: one by one, or all those that a filter covers."""

    def delete_file(self, file: DataFile) -> DeleteDataFiles:
        """Removes a data file, which must be there when the change is committed."""
        self._removed.append(file)
        return self

    def delete_data_file(self, data_file: DataFile) -> DeleteDataFiles:
        """PyIceberg's name of `delete_file`."""
        return self.delete_file(data_file)

    def delete_by_predicate(self, predicate: BooleanExpression, case_sensitive: bool = True) -> None:
        """PyIceberg's name of `delete_from_row_filter`.

        Args:
            predicate: the filter.
            case_sensitive: whether column names must match in case.
        """
        self.case_sensitive(case_sensitive).delete_from_row_filter(predicate)

    def delete_from_row_filter(self, row_filter: str | BooleanExpression) -> DeleteDataFiles:
        """Removes all files of which every row matches; a file with only some matching rows is refused."""
        self._filter = _expression(row_filter)
        return self

    def _updates(self) -> list[Update]:
        case_sensitive = self._case_sensitive
        return [DeleteFiles(tuple(self._removed), self._filter, case_sensitive=case_sensitive, **self._of_snapshot())]


class Validated(FileChange):
    """A change that can check for conflicting commits since a snapshot."""

    def conflict_detection_filter(self: Builder, row_filter: str | BooleanExpression) -> Builder:
        """Sets the filter of the rows that the change has read; without it, all."""
        self._conflict_filter = _expression(row_filter)
        return self

    def isolation(self: Builder, level: Isolation | str) -> Builder:
        """The isolation level against concurrent commits: `serializable`, `snapshot`, or (the default) `none`."""
        self._isolation = Isolation(level)
        return self

    def _of_validation(self) -> dict[str, Any]:
        return {
            "conflict_filter": self._conflict_filter,
            "isolation": self._isolation,
            "case_sensitive": self._case_sensitive,
        }


class OverwriteFiles(Validated):
    """Removes data files, one by one or by a filter, and adds others."""

    def __init__(self, started: StartedChange) -> None:
        super().__init__(started)
        self._must_match = False

    def add_file(self, file: DataFile) -> OverwriteFiles:
        """Adds a data file."""
        self._added.append(file)
        return self

    def delete_file(self, file: DataFile) -> OverwriteFiles:
        """Removes a data file, which must be there when the change is committed."""
        self._removed.append(file)
        return self

    def append_data_file(self, data_file: DataFile) -> OverwriteFiles:
        """PyIceberg's name of `add_file`."""
        return self.add_file(data_file)

    def delete_data_file(self, data_file: DataFile) -> OverwriteFiles:
        """PyIceberg's name of `delete_file`."""
        return self.delete_file(data_file)

    def overwrite_by_row_filter(self, row_filter: str | BooleanExpression) -> OverwriteFiles:
        """Removes all files of which every row matches; a file with only some matching rows is refused."""
        self._filter = _expression(row_filter)
        return self

    def validate_added_files_match_overwrite_filter(self) -> OverwriteFiles:
        """Refuses added files with rows that do not match the filter."""
        self._must_match = True
        return self

    def _updates(self) -> list[Update]:
        return [
            Overwrite(
                added=tuple(self._added),
                removed=tuple(self._removed),
                row_filter=self._filter,
                added_must_match=self._must_match,
                **self._of_validation(),
                **self._of_snapshot(),
            )
        ]


class RewriteDataFiles(FileChange):
    """Replaces files by others with the same rows."""

    def __init__(self, started: StartedChange) -> None:
        super().__init__(started)
        self._sequence_number: int | None = None

    def delete_file(self, file: DataFile) -> RewriteDataFiles:
        """Removes a data file, delete file or deletion vector."""
        self._removed.append(file)
        return self

    def add_file(self, file: DataFile) -> RewriteDataFiles:
        """Adds a file that holds rows (or deletes) of the removed ones."""
        self._added.append(file)
        return self

    def data_sequence_number(self, number: int) -> RewriteDataFiles:
        """Gives added data files an older sequence number, so that equality deletes that come meanwhile apply."""
        self._sequence_number = number
        return self

    def _updates(self) -> list[Update]:
        options = self._of_snapshot()
        del options["stage_only"]
        return [
            RewriteFiles(
                tuple(self._removed), tuple(self._added), data_sequence_number=self._sequence_number, **options
            )
        ]


class RewriteManifestFiles(FileChange):
    """Writes manifests anew; their files stay."""

    def __init__(self, started: StartedChange) -> None:
        super().__init__(started)
        self._if: Callable[[ManifestFile], bool] | None = None
        self._by: Callable[[DataFile], Any] | None = None

    def rewrite_if(self, predicate: Callable[[ManifestFile], bool]) -> RewriteManifestFiles:
        """Rewrites only the manifests for which the predicate is true."""
        self._if = predicate
        return self

    def cluster_by(self, key: Callable[[DataFile], Any]) -> RewriteManifestFiles:
        """Sets the order of files over the new manifests; by default that of their partitions."""
        self._by = key
        return self

    def _updates(self) -> list[Update]:
        return [RewriteManifests(self._if, self._by, branch=self._branch, properties=dict(self._summary))]


def _expression(row_filter: str | BooleanExpression) -> BooleanExpression:
    return parse(row_filter) if isinstance(row_filter, str) else row_filter


class UpdateSnapshot:
    """Begins one of four changes; each collects files and commits at the end of a `with` block.

    >>> with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
    ...     append.append_data_file(file)
    """

    def __init__(self, started: StartedChange, options: ChangeOptions) -> None:
        self._started = started
        self._options = options

    def fast_append(self) -> AppendFiles:
        """Begins an append that rewrites no manifest."""
        return self._with_options(AppendFiles(self._started, merging=False))

    def merge_append(self) -> AppendFiles:
        """Begins an append by which small manifests are merged."""
        return self._with_options(AppendFiles(self._started, merging=True))

    def overwrite(self) -> OverwriteFiles:
        """Begins a replacement of files by others."""
        return self._with_options(OverwriteFiles(self._started))

    def delete(self) -> DeleteDataFiles:
        """Begins a removal of whole files."""
        return self._with_options(DeleteDataFiles(self._started))

    def _with_options(self, change: Builder) -> Builder:
        change.to_branch(self._options.branch)
        for key, value in self._options.snapshot_properties.items():
            change.set(key, value)
        return change.stage_only() if self._options.stage_only else change
