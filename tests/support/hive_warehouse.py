"""Builds ordinary Hive tables on a metastore: rows through Thrift, Parquet files through pyarrow."""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import NoSuchTableError
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.storage import Storage
from tests.support.hdfs_path import local_path

PARQUET = "org.apache.hadoop.hive.ql.io.parquet."


@dataclass(frozen=True)
class Rows:
    """Everything that the metastore knows of a table."""

    table: Any
    partitions: tuple[Any, ...]

    @property
    def location(self) -> Path:
        """The table's directory."""
        return local_path(self.table.sd.location)


class HiveWarehouse:
    """Makes and reads Hive tables of one namespace."""

    def __init__(self, catalog: Catalog, namespace: str) -> None:
        assert isinstance(catalog.metastore, HiveMetastore)
        self.catalog = catalog
        self.client: HmsClient = catalog.metastore.client
        self.namespace = namespace
        self.location = catalog.load_namespace_properties(namespace)["location"]

    def create(
        self,
        name: str,
        columns: str,
        keys: str = "",
        managed: bool = True,
        parameters: Mapping[str, str] | None = None,
        location: str | None = None,
        **storage: Any,
    ) -> Rows:
        """A table without rows; columns and keys as `name type, name type`."""
        place = location or f"{self.location}/{name}"
        if not _is_remote(place):
            local_path(place).mkdir(parents=True, exist_ok=True)
        descriptor = ttypes.StorageDescriptor(
            cols=_columns(columns),
            location=place,
            inputFormat=PARQUET + "MapredParquetInputFormat",
            outputFormat=PARQUET + "MapredParquetOutputFormat",
            compressed=False,
            numBuckets=-1,
            serdeInfo=ttypes.SerDeInfo(
                serializationLib=PARQUET + "serde.ParquetHiveSerDe", parameters={"serialization.format": "1"}
            ),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )
        for key, value in storage.items():
            setattr(descriptor, key, value)
        self.client.create_table(
            ttypes.Table(
                dbName=self.namespace,
                tableName=name,
                owner="hive-user",
                createTime=0,
                lastAccessTime=0,
                retention=0,
                sd=descriptor,
                partitionKeys=_columns(keys),
                parameters={**(parameters or {}), **({} if managed else {"EXTERNAL": "TRUE"})},
                tableType="MANAGED_TABLE" if managed else "EXTERNAL_TABLE",
            )
        )
        return self.rows(name)

    def add_partition(self, name: str, values: Sequence[str], *tables: pa.Table, location: str | None = None) -> None:
        """A partition with one file per Arrow table."""
        table = self.client.get_table(self.namespace, name)
        descriptor = copy.deepcopy(table.sd)
        keys = [key.name for key in table.partitionKeys]
        folder = "/".join(f"{key}={quote(value, safe=' ')}" for key, value in zip(keys, values, strict=True))
        descriptor.location = location or f"{table.sd.location}/{folder}"
        row = ttypes.Partition(
            values=list(values),
            dbName=self.namespace,
            tableName=name,
            createTime=0,
            lastAccessTime=0,
            sd=descriptor,
            parameters={"numRows": str(sum(each.num_rows for each in tables))},
        )
        write_files(descriptor.location, *tables, storage=self.catalog.storage)
        self.client._call("add_partition", row, subject=f"table {name}", repeatable=False)

    def attach_partition(self, name: str, values: Sequence[str], source: str) -> None:
        """A partition that is stored where and how another table is."""
        descriptor = self.client.get_table(self.namespace, source).sd
        row = ttypes.Partition(list(values), self.namespace, name, 0, 0, descriptor, parameters={})
        self.client._call("add_partition", row, subject=f"table {name}", repeatable=False)

    def rows(self, name: str) -> Rows:
        """What the metastore knows of a table now."""
        table = self.client.get_table(self.namespace, name)
        if not table.partitionKeys:
            return Rows(table, ())
        names = self.client.list_partition_names(self.namespace, name)
        partitions = sorted(self.client.get_partitions(self.namespace, name, names), key=lambda row: row.values)
        return Rows(table, tuple(partitions))

    def exists(self, name: str) -> bool:
        """Whether there is a table of any kind of that name."""
        try:
            self.client.get_table(self.namespace, name)
        except NoSuchTableError:
            return False
        return True

    def names(self) -> list[str]:
        """All tables of the namespace."""
        return sorted(self.client.list_tables(self.namespace))


def write_files(location: str, *tables: pa.Table, storage: Storage | None = None) -> None:
    """One Parquet file per Arrow table, under names that Hive would give."""
    if _is_remote(location):
        storage = storage or ArrowStorage()
        taken = len(list(storage.list(location)))
        for number, table in enumerate(tables, start=taken):
            with storage.open_output(f"{location}/{number:06d}_0") as output:
                pq.write_table(table, output)
        return
    folder = local_path(location)
    folder.mkdir(parents=True, exist_ok=True)
    taken = len(list(folder.glob("0*")))
    for number, table in enumerate(tables, start=taken):
        pq.write_table(table, folder / f"{number:06d}_0")


def data_files(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Every file below a folder, outside of metadata: its inode, size and time of change, to see that nothing moved."""
    found = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and not {"metadata", "_iceberg"} & set(relative.parts):
            status = path.stat()
            found[str(relative)] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return found


def all_files(folder: Path) -> set[str]:
    """Names of every file below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def write_orc(path: Path, table: pa.Table) -> None:
    """An ORC file, wherever it is."""
    sink = pa.BufferOutputStream()
    orc.write_table(table, sink)
    path.write_bytes(sink.getvalue().to_pybytes())


def column_of(path: Path, name: str) -> list[Any]:
    """A column of a Parquet file, wherever it is, as pyarrow alone reads it."""
    return list(pq.ParquetFile(io.BytesIO(path.read_bytes())).read([name])[name].to_pylist())


def _is_remote(location: str) -> bool:
    return "://" in location and not location.startswith("file:")


def _columns(text: str) -> list[Any]:
    pairs = (part.strip().split(" ", 1) for part in text.split(", ") if part.strip())
    return [ttypes.FieldSchema(name, kind, "") for name, kind in pairs]
