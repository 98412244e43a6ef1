"""`system.files_health`: sizes and deletes of the live files of all tables, by their manifests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import pyarrow as pa

from hms_iceberg.lazy import pl
from hms_iceberg.maintenance.rewrite.options import RewriteOptions
from hms_iceberg.maintenance.system.request import Row, SystemTable, SystemTableRequest, columns
from hms_iceberg.maintenance_policy import Policy
from hms_iceberg.scan.tasks import ScanPlan
from hms_iceberg.spec.data_types import LongType
from hms_iceberg.spec.manifests.manifest_values import DataFileContent
from hms_iceberg.spec.table_properties import TARGET_FILE_BYTES
from hms_iceberg.table.table import Table


def _documented(meaning: str) -> Any:
    return field(metadata={"doc": meaning})


@dataclass(frozen=True)
class FilesHealth:
    """The live files of a table; the fields are the columns of `system.files_health`."""

    rows: int = _documented("rows of its data files, deleted ones included")
    data_files: int = _documented("how many data files it has")
    data_bytes: int = _documented("their size")
    target_file_bytes: int = _documented("size of a data file that compaction aims at")
    small_files: int = _documented("data files that compaction takes for too small, below three quarters of that")
    small_bytes: int = _documented("their size")
    large_files: int = _documented("data files that compaction takes for too large")
    files_with_deletes: int = _documented("data files that deletes apply to")
    position_delete_files: int = _documented("files of deleted positions that apply, without deletion vectors")
    deletion_vectors: int = _documented("deletion vectors that apply")
    equality_delete_files: int = _documented("files of deleted keys that apply")
    dangling_delete_files: int = _documented("delete files and vectors that apply to nothing")
    delete_bytes: int = _documented("size of the delete files that apply")
    deleted_positions: int = _documented("rows that position deletes and vectors name")
    manifests: int = _documented("how many manifests it has")


def files_health(table: Table, plan: ScanPlan, policy: Policy) -> FilesHealth:
    """The files of a plan of a whole table, as its maintenance policy judges them."""
    options = RewriteOptions(policy.compaction_options(), "files_health", ".".join(table.identifier))
    rules = options.sizes(TARGET_FILE_BYTES.of(table.properties))
    sizes, deletes, looked_at = plan.files["file_size_in_bytes"], plan.delete_files, plan.metrics
    small = sizes.filter(sizes < rules.min_bytes)
    positions = deletes.filter(pl.col("content") == int(DataFileContent.POSITION_DELETES))
    vectors = positions.filter(pl.col("file_format").str.to_lowercase() == "puffin").height
    return FilesHealth(
        rows=int(plan.files["record_count"].sum()),
        data_files=plan.files.height,
        data_bytes=int(sizes.sum()),
        target_file_bytes=rules.target_bytes,
        small_files=small.len(),
        small_bytes=int(small.sum()),
        large_files=int((sizes > rules.max_bytes).sum()),
        files_with_deletes=int((plan.count_deletes() > 0).sum()),
        position_delete_files=positions.height - vectors,
        deletion_vectors=vectors,
        equality_delete_files=deletes.height - positions.height,
        dangling_delete_files=looked_at.delete_files_total - looked_at.delete_files_kept,
        delete_bytes=int(deletes.unique("file_path")["file_size_in_bytes"].sum()),  # vectors share files
        deleted_positions=int(positions["record_count"].sum()),
        manifests=looked_at.manifests_total + looked_at.delete_manifests_total,
    )


def _read(request: SystemTableRequest, schema: pa.Schema) -> Iterator[pa.Table]:
    def rows_of(table: Table) -> Iterator[Row]:
        policy = request.policies.of(".".join(table.identifier), table.properties)
        yield asdict(files_health(table, table.scan().plan(), policy))

    return request.of_each_table(schema, rows_of)


FILES_HEALTH = SystemTable(
    columns(*((each.name, LongType(), each.metadata["doc"]) for each in fields(FilesHealth))), _read
)
