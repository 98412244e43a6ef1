"""The questions of a write, as the bridge's class TableWrite asks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class BeginWrite(msgspec.Struct, frozen=True):
    """The question with which a write begins (`TableWrite`).

    Args:
        name: the table's name in the query, for errors.
        metadata_location: the version of the table that the query was resolved on.
        schema: the columns of the rows, in Spark's JSON.
        query_id: what Spark calls the query; of a stream, the same after a restart.
        engine: what snapshots tell of Spark and the application.
        kind: `append`, `overwrite` (what the filter says) or `replace-partitions`.
        branch: the branch that the table's name says; None for main.
        options: the options of the write.
        session: settings of the session that matter for writes.
        filter: of an overwrite, what the bridge's class PredicateText wrote.
        case_sensitive: whether columns are named in their case.
        lacking_types: the names of Iceberg's types that this Spark does not have.
        has_functions: whether Spark knows a catalog of the table, which has Iceberg's transforms.
    """

    name: str
    metadata_location: str
    schema: dict[str, Any]
    query_id: str
    engine: dict[str, str]
    kind: str
    branch: str | None
    options: dict[str, str]
    session: dict[str, str]
    filter: dict[str, Any] | None = None
    case_sensitive: bool = False
    lacking_types: tuple[str, ...] = ()
    has_functions: bool = True


class WrittenFile(msgspec.Struct, frozen=True):
    """A file that a task wrote.

    Args:
        path: its location.
        size: its bytes.
        spec_id: the spec of its partition.
        partition: the partition's values in Spark's internal form.
        format: `parquet`, `orc` or `avro`.
        rows: how many it has.
        columns: by the id of a field that is in no list or map, how many nulls and NaN it has, and the least and the
            greatest of its other values in Spark's internal form.
        splits: where an ORC file can be split.
        nan_leaves: places of the leaves of shredded variants of which some value is NaN.
        footer: the footer of a Parquet file, deflated (in base64 on its way).
        key: the key of an encrypted file, as manifests have it.
        described: what the bridge's Python process says of a file that it wrote; see `worker.describe`.
    """

    path: str
    size: int
    spec_id: int
    partition: list[Any]
    format: str
    rows: int
    columns: dict[str, tuple[int, int, Any, Any]]
    splits: tuple[int, ...] = ()
    nan_leaves: tuple[int, ...] = ()
    footer: bytes | None = None
    key: bytes | None = None
    described: bytes | None = None


class MergedColumns(msgspec.Struct, frozen=True):
    """Columns that a write brings (the option `merge-schema`).

    Args:
        schema: the columns of its rows, by the names that the table has for them, as JSON of the specification.
        case_sensitive: whether columns are named in their case.
    """

    schema: dict[str, Any]
    case_sensitive: bool


class Decided(msgspec.Struct, frozen=True):
    """Decisions made when the write began, for its commit.

    Args:
        sort_order_id: the order that the rows are in.
        branch: the branch to change; None for main.
        properties: the write's properties, which go before the table's.
        at: when (`time.monotonic`); the query had just found its version to be the newest.
        columns: those that the table lacks and gets with the rows; None for none.
    """

    sort_order_id: int
    branch: str | None
    properties: dict[str, str]
    at: float
    columns: MergedColumns | None = None


class CommitWrite(msgspec.Struct, frozen=True):
    """A write is to be committed; see `BeginWrite`.

    Args:
        decided: what was decided then.
        files: the files of all tasks.
        epoch: of a stream, its epoch.
    """

    name: str
    metadata_location: str
    query_id: str
    engine: dict[str, str]
    kind: str
    options: dict[str, str]
    session: dict[str, str]
    decided: Decided
    files: list[WrittenFile]
    filter: dict[str, Any] | None = None
    case_sensitive: bool = False
    epoch: int | None = None


class DeleteWhere(msgspec.Struct, frozen=True):
    """Rows are to be deleted by a filter, if metadata alone can do that (`MetadataDelete`); see `BeginWrite`."""

    name: str
    metadata_location: str
    engine: dict[str, str]
    branch: str | None
    session: dict[str, str]
    filter: dict[str, Any] | None = None
    options: dict[str, str] = {}


def option(options: Mapping[str, str], name: str) -> str | None:
    """Looks an option of a write up, whatever its case.

    Args:
        options: the options.
        name: name of the option.

    Returns:
        its text; None if it is not given.
    """
    return next((value for key, value in options.items() if key.lower() == name.lower()), None)
