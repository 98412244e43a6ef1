"""Random histories of tables in which one person's rows come, move and go; and a search of every byte that is left."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

from hms_iceberg.spec.data_types import IntegerType, ListType, LongType, NestedField, StringType, StructType
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform, TruncateTransform
from hms_iceberg.table import Table

PERSON = "Zq7Kx93MbTwe"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType()),
    NestedField(3, "team", StringType()),
    NestedField(4, "score", IntegerType()),
    NestedField(5, "who", StructType(NestedField(6, "mail", StringType()), NestedField(7, "age", IntegerType()))),
    NestedField(8, "notes", ListType(9, StringType(), element_required=False)),
)
SPECS = (
    UNPARTITIONED,
    PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "team")),
    PartitionSpec(PartitionField(2, 1000, TruncateTransform(3), "name_trunc")),
)
Row = dict[str, Any]
PLAIN = {
    "write.parquet.compression-codec": "uncompressed",
    "write.avro.compression-codec": "uncompressed",
    "write.orc.compression-codec": "none",
}


class History:
    """A table and what its snapshots hold, as plain Python says."""

    def __init__(self, make: Callable[..., Table], seed: int, version: int, file_format: str) -> None:
        """`make` gets schema, partition spec and properties."""
        self.random = random.Random(f"{seed} {version} {file_format}")
        mode = "merge-on-read" if version > 1 and self.random.random() < 0.7 else "copy-on-write"
        properties = {
            **PLAIN,
            **{f"write.{each}.mode": mode for each in ("delete", "update", "merge")},
            "write.format.default": file_format,
            "write.delete.granularity": self.random.choice(["file", "partition"]),
            "write.metadata.compression-codec": self.random.choice(["none", "gzip"]),
            "write.summary.partition-limit": "10",
        }
        self.table = make(SCHEMA, self.random.choice(SPECS), properties)
        self.version = version
        self.next_id = 1
        self.branches: dict[str, list[Row]] = {"main": []}
        self.snapshots: dict[int, list[Row]] = {}
        self.names = {field.field_id: field.name for field in SCHEMA.fields}
        self.has_score = True
        self.log: list[str] = []

    # --------------------------------------------------------------------------------------------- rows

    def row(self) -> Row:
        choose = self.random
        number, self.next_id = self.next_id, self.next_id + 1
        is_person = choose.random() < 0.25
        name = PERSON if is_person else choose.choice(["Ada", "Alan", "Zq7 Other", None])
        team = f"team of {PERSON}" if is_person and choose.random() < 0.3 else choose.choice(["red", "blue", None])
        row = {
            "id": number,
            "name": name,
            "team": team,
            "score": choose.randrange(100),
            "who": None if choose.random() < 0.2 else {"mail": f"{name}@{number}", "age": number},
            "notes": choose.choice([None, [], [f"note of {name}", None]]),
        }
        if not self.has_score:
            del row["score"]
        return row

    def _arrow(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=self.table.schema().as_arrow())

    def _done(self, branch: str, rows: list[Row]) -> None:
        self.table.refresh()
        self.branches[branch] = rows
        ref = self.table.metadata.refs.get(branch)
        if ref is not None and ref.snapshot_id not in self.snapshots:
            self.snapshots[ref.snapshot_id] = [dict(row) for row in rows]

    # ---------------------------------------------------------------------------------------- operations

    def append(self) -> None:
        branch = self.random.choice(list(self.branches))
        rows = [self.row() for _ in range(self.random.randrange(1, 12))]
        self.table.append(self._arrow(rows), branch=branch)
        self._done(branch, self.branches[branch] + rows)

    def delete(self) -> None:
        branch = self.random.choice(list(self.branches))
        remainder = self.random.randrange(4)
        ids = [row["id"] for row in self.branches[branch] if row["id"] % 4 == remainder]
        if ids:
            self.table.delete(f"id in ({', '.join(map(str, ids))})", branch=branch)
            self._done(branch, [row for row in self.branches[branch] if row["id"] not in ids])

    def delete_person(self) -> None:
        if any(row["name"] == PERSON for row in self.branches["main"]):
            self.table.delete(f"name = '{PERSON}'")
            self._done("main", [row for row in self.branches["main"] if row["name"] != PERSON])

    def update(self) -> None:
        if not self.has_score or not self.branches["main"]:
            return
        limit, score = self.random.choice(self.branches["main"])["id"], self.random.randrange(100, 200)
        self.table.update({"score": score}, f"id <= {limit}")
        rows = [{**row, "score": score} if row["id"] <= limit else row for row in self.branches["main"]]
        self._done("main", rows)

    def delete_keys(self) -> None:
        if self.version < 2 or not self.table.spec().is_unpartitioned() or not self.branches["main"]:
            return
        key = self.random.choice(["id", "name"])
        value = PERSON if key == "name" else self.random.choice(self.branches["main"])["id"]
        kind = self.table.schema().as_arrow().field(key)
        with self.table.new_row_delta() as delta:
            delta.delete_equal(pa.table({key: [value]}, schema=pa.schema([kind])), [key])
        self._done("main", [row for row in self.branches["main"] if row[key] != value])

    def compact(self) -> None:
        self.table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
        self._done("main", self.branches["main"])

    def merge_manifests(self) -> None:
        self.table.maintenance.rewrite_manifests()
        self._done("main", self.branches["main"])

    def compact_deletes(self) -> None:
        if self.version > 1:
            self.table.maintenance.rewrite_position_delete_files(options={"rewrite-all": "true"})
            self._done("main", self.branches["main"])

    def statistics(self) -> None:
        self.table.refresh()
        if self.table.current_snapshot() is not None and self.branches["main"]:
            self.table.maintenance.compute_table_stats()
            self.table.refresh()
            if not self.table.spec().is_unpartitioned():
                self.table.maintenance.compute_partition_stats()
                self.table.refresh()

    def branch(self) -> None:
        if self.table.refresh().current_snapshot() is not None and len(self.branches) < 3:
            name = f"branch{len(self.branches)}"
            self.table.manage_snapshots().create_branch(self.table.current_snapshot().snapshot_id, name).commit()  # type: ignore[union-attr]
            self._done(name, self.branches["main"])

    def tag(self) -> None:
        snapshot = self.table.refresh().current_snapshot()
        if snapshot is not None:
            name = f"tag{self.random.randrange(10**6)}"
            self.table.manage_snapshots().create_tag(snapshot.snapshot_id, name).commit()
            self.table.refresh()

    def change_columns(self) -> None:
        if self.has_score:
            with self.table.update_schema() as schema:
                schema.delete_column("score")
            self.has_score = False
            for branch, rows in self.branches.items():
                self.branches[branch] = [{key: value for key, value in row.items() if key != "score"} for row in rows]
        self.table.refresh()

    def expire(self) -> None:
        self.table.refresh()
        kept = {ref.snapshot_id for ref in self.table.metadata.refs.values()}
        others = [each.snapshot_id for each in self.table.metadata.snapshots if each.snapshot_id not in kept]
        if others:
            gone = self.random.choice(others)
            self.table.maintenance.expire_snapshots().by_id(gone).older_than(1).commit()
            self.table.refresh()
        left = {each.snapshot_id for each in self.table.metadata.snapshots}
        self.snapshots = {id: rows for id, rows in self.snapshots.items() if id in left}

    def upgrade(self) -> None:
        if self.version < 3:
            self.version += 1
            with self.table.transaction() as transaction:
                transaction.upgrade_table_version(self.version)
            self.table.refresh()

    def run(self, steps: int) -> History:
        """Some operations, chosen by the seed; the first is an append."""
        usual = [self.append] * 4 + [self.delete] * 2 + [self.update, self.delete_person, self.delete_keys] * 2
        rare: list[Callable[[], None]] = [self.compact, self.merge_manifests, self.compact_deletes, self.statistics]
        rare += [self.branch, self.tag, self.change_columns, self.expire, self.upgrade]
        self.append()
        for _ in range(steps):
            operation = self.random.choice(usual + rare)
            self.log.append(operation.__name__)
            operation()
        return self


def in_order(rows: list[Row]) -> list[str]:
    """Rows to be compared."""
    return sorted(repr(sorted(row.items())) for row in rows)


def left_of(person: str, folder: Path) -> list[str]:
    """The files below a folder whose names or content, decoded, hold a text."""
    found = []
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if person in name or (path.is_file() and person.encode() in _decoded(path)):
            found.append(name)
    return found


def _decoded(path: Path) -> bytes:
    """The bytes of a file, and those that its Avro blocks or its compression hide."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:4] == b"Obj\x01":
        reader = fastavro.reader(io.BytesIO(data))
        texts = [*map(str, reader.metadata.values()), *map(repr, reader)]
        return data + "".join(texts).encode()
    return data


def rows_of(table: Table, snapshot_id: int) -> list[Row]:
    """The rows of a snapshot."""
    found: list[Row] = table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
    return found
