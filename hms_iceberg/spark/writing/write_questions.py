"""The questions of a write, as the bridge's class TableWrite asks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class BeginWrite(msgspec.Struct, frozen=True):
    """The question with which a write begins (`TableWrite`)."""

    name: str  # in the query, for errors
    metadata_location: str  # the version that the query was resolved on
    schema: dict[str, Any]  # of the rows, in Spark's JSON
    query_id: str  # of a stream, the same after a restart
    engine: dict[str, str]  # what snapshots tell of Spark and the application
    kind: str  # `append`, `overwrite` (what the filter says) or `replace-partitions`
    branch: str | None  # as the table's name says; None for main
    options: dict[str, str]  # of the write
    session: dict[str, str]  # settings of the session that matter for writes
    filter: dict[str, Any] | None = None  # of an overwrite, as the bridge's class PredicateText writes it
    case_sensitive: bool = False
    lacking_types: tuple[str, ...] = ()  # the names of Iceberg's types that this Spark does not have
    has_functions: bool = True  # whether Spark knows a catalog of the table, which has Iceberg's transforms


class WrittenFile(msgspec.Struct, frozen=True):
    path: str
    size: int  # in bytes
    spec_id: int
    partition: list[Any]  # values in Spark's internal form
    format: str  # `parquet`, `orc` or `avro`
    rows: int
    # by the id of a field that is in no list or map, how many nulls and NaN it has, and the least and the greatest of
    # its other values in Spark's internal form
    columns: dict[str, tuple[int, int, Any, Any]]
    splits: tuple[int, ...] = ()  # where an ORC file can be split
    nan_leaves: tuple[int, ...] = ()  # places of the leaves of shredded variants of which some value is NaN
    footer: bytes | None = None  # of a Parquet file, deflated (in base64 on its way)
    key: bytes | None = None  # of an encrypted file, as manifests have it
    # what the bridge's Python process says of a file that it wrote; see `worker.describe`
    described: bytes | None = None


class MergedColumns(msgspec.Struct, frozen=True):
    """Columns that a write brings (the option `merge-schema`)."""

    schema: dict[str, Any]  # of the rows, by the names that the table has for them, as JSON of the specification
    case_sensitive: bool


class Decided(msgspec.Struct, frozen=True):
    """Decisions made when the write began, for its commit."""

    sort_order_id: int
    branch: str | None  # None for main
    properties: dict[str, str]  # the write's, which go before the table's
    at: float  # when (`time.monotonic`); the query had just found its version to be the newest
    columns: MergedColumns | None = None  # those that the table lacks and gets with the rows


class CommitWrite(msgspec.Struct, frozen=True):
    """A write is to be committed; see `BeginWrite`."""

    name: str
    metadata_location: str
    query_id: str
    engine: dict[str, str]
    kind: str
    options: dict[str, str]
    session: dict[str, str]
    decided: Decided
    files: list[WrittenFile]  # of all tasks
    filter: dict[str, Any] | None = None
    case_sensitive: bool = False
    epoch: int | None = None  # of a stream


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
    """Looks an option of a write up, whatever its case; None if it is not given."""
    return next((value for key, value in options.items() if key.lower() == name.lower()), None)
