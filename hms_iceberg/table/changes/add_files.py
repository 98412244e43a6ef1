"""Taking data files that exist already into a table, where they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from hms_iceberg.arrow.metrics.footer_metrics import metrics_modes
from hms_iceberg.arrow.parallel import default_workers
from hms_iceberg.arrow.reading.imported_files import FileImport
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanRequest
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import NAME_MAPPING
from hms_iceberg.table.changes.row_change import ChangeOptions
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.machinery.content import parent_on
from hms_iceberg.updates.properties import SetProperties
from hms_iceberg.updates.rows.append import FastAppend


def add_files(
    transaction: Transaction,
    file_paths: Sequence[str],
    check_duplicates: bool,
    options: ChangeOptions,
    partitions: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Adds files to a table; see `Table.add_files`.

    Args:
        transaction: what the files become part of.
        file_paths: Parquet, ORC and Avro files.
        check_duplicates: whether files that are in the table already are refused.
        options: what the caller says besides.
        partitions: names and values of the partition of each file, if its folders do not tell.
    """
    table = ".".join(transaction.identifier)
    if isinstance(file_paths, str):
        raise InvalidInputError(f"Cannot add files to table {table}: expected a list of locations, got {file_paths!r}.")
    paths = list(file_paths)
    if not all(isinstance(path, str) for path in paths):
        raise InvalidInputError(f"Cannot add files to table {table}: expected a list of locations, got {paths!r}.")
    twice = [path for path, count in Counter(paths).items() if count > 1]
    if twice:
        raise InvalidInputError(f"Cannot add files to table {table}: {twice[0]} is named more than once.")
    metadata = transaction.metadata
    if check_duplicates:
        _refuse_known(transaction, metadata, paths, options, table)
    mapping = metadata.name_mapping()
    chosen = mapping or create_name_mapping(metadata.schema())
    modes = metrics_modes(metadata.schema(), metadata.properties, metadata.sort_order())
    importer = FileImport(metadata, transaction.workspace.storage, chosen, modes)
    workers = default_workers(len(paths), not parse_location(metadata.location).is_local)
    with ThreadPoolExecutor(workers) as pool:
        files = tuple(pool.map(lambda path: importer.describe(path, (partitions or {}).get(path)), paths))
    if not files:
        return
    if mapping is None:
        transaction.add(SetProperties(updates={NAME_MAPPING.name: chosen.to_json()}))
    transaction.add(FastAppend(files, **options.update_fields()))


def _refuse_known(
    transaction: Transaction, metadata: TableMetadata, paths: list[str], options: ChangeOptions, table: str
) -> None:
    snapshot = parent_on(metadata, options.branch)
    if snapshot is None:
        return
    plan = plan_scan(ScanRequest(metadata, snapshot.snapshot_id), transaction.workspace.storage)
    known = set(plan.files["file_path"].to_list())
    found = [path for path in paths if path in known]
    if found:
        raise InvalidInputError(
            f"Cannot add files to table {table}: {len(found)} of {len(paths)} are in it already, the first is "
            f"{found[0]}. Leave them out; with check_duplicate_files=False their rows would be there twice."
        )
