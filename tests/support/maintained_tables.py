"""Random tables with a history by two engines, neighbours and stray files in their folder, which can be put back."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from hms_iceberg.catalog import Catalog
from hms_iceberg.migration import migrate
from hms_iceberg.spec.data_types import DoubleType, LongType, NestedField, StringType, TimestamptzType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import parse_transform
from hms_iceberg.table import Table
from tests.support.hdfs_path import HdfsPath, copy_folder, local_path, remove_folder, set_changed
from tests.support.hive_warehouse import HiveWarehouse, write_files
from tests.support.operations import SCHEMA as PLAIN
from tests.support.operations import rows as plain_rows
from tests.support.tables import QUICK

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "p", StringType()),
    NestedField(3, "v", DoubleType()),
    NestedField(4, "ts", TimestamptzType()),
)
SPECS = (
    (),
    (("p", "identity"),),
    (("id", "bucket[2]"),),
    (("ts", "month"), ("p", "truncate[1]")),
    (("id", "truncate[10]"),),
)
VALUES = ("a", "b", None, "long text " * 4, "")
STRAYS = (
    "data/lost.parquet",
    "metadata/lost-m0.avro",
    "metadata/snap-1-1-lost.avro",
    "data/p_0=a/lost.orc",
    "stray",
    "data/_p_0=x/y.parquet",
    "data/_temporary/x.parquet",
    ".hidden/x",
    "data/.x.crc",
    "metadata/v9.metadata.json.bak",
    "metadata/version-hint.text",
    "deep/er/still/x.avro",
)
# Ages of stray files in days: some writer may yet commit the young ones.
OLD, YOUNG = 10.0, 1.5


class MaintainedTable:
    """A table of a Hive Metastore in a folder that can be put back as it was.

    Args:
        catalog: where the table is made.
        namespace: its namespace.
        java: runs SQL by Apache Iceberg, whose catalog is `ice`.
        seed: decides everything.

    Attributes:
        name: of the table.
        folder: of the table.
        others: paths in it of what belongs to others, who lose nothing.
        half: paths in it of files that a killed process of ours left half written.
    """

    def __init__(self, catalog: Catalog, namespace: str, java: Callable[[str], Any], seed: int) -> None:
        self._rng = random.Random(seed)
        self._catalog = catalog
        self._java = java
        self.name = f"{namespace}.t{seed}"
        self._ids = iter(range(100_000))
        self._made = iter(range(100_000))
        self.told: list[str] = []
        self._make()
        self.folder = local_path(self.load().location())
        self.others: set[str] = set()
        self.half: set[str] = set()
        self._behind = self.folder.with_name(f"{self.folder.name}_behind") / "x.parquet"
        self._aside = self.folder.with_name(f"{self.folder.name}_aside")
        for _ in range(self._rng.randint(4, 9)):
            self._change()
        self._age(OLD)
        self._put_neighbours(HiveWarehouse(catalog, namespace))
        self._age(OLD)
        self._put_strays()
        copy_folder(self.folder, self._aside)
        self._version = self.load().metadata_location

    def __str__(self) -> str:
        return f"{self.name}: {'; '.join(self.told)}"

    def load(self) -> Table:
        """The table at its newest version."""
        return self._catalog.load_table(self.name)

    def restore(self) -> None:
        """Puts folder and row back."""
        if "link" in self.others:
            self._put_behind()
        remove_folder(self.folder)
        copy_folder(self._aside, self.folder)
        self._catalog.drop_table(self.name)
        self._catalog.register_table(self.name, self._version)

    def files(self) -> set[str]:
        """Paths of all files in the folder."""
        found = (path for path in self.folder.rglob("*") if path.is_file() or path.is_symlink())
        return {str(path.relative_to(self.folder)) for path in found if not _is_checksum(path)}

    def data_files(self) -> set[str]:
        """Paths of the data files of all snapshots."""
        named = self.load().inspect.all_data_files()["file_path"].to_pylist()
        return {str(local_path(each).relative_to(self.folder)) for each in named}

    def lost(self) -> set[str]:
        """What others lost."""
        behind = {str(self._behind)} if "link" in self.others and not self._behind.exists() else set()
        return behind | (self.others - self.files())

    def rows(self) -> dict[str, list[str]]:
        """The rows of every branch and tag as we read them."""
        table = self.load()
        return {
            name: sorted(
                repr(tuple(row.values()))
                for row in table.scan(snapshot_id=ref.snapshot_id, selected_fields=("id", "p", "v"))
                .to_arrow()
                .to_pylist()
            )
            for name, ref in table.refs().items()
        }

    def java_rows(self) -> dict[str, list[str]]:
        """The same as Apache Iceberg reads them."""
        found = {}
        for name in self.load().refs():
            rows = self._java(f"select id, p, v from ice.{self.name} version as of '{name}'")
            found[name] = sorted(repr(tuple(row)) for row in rows)
        return found

    # ---------------------------------------------------------------------------------------------- history

    def _make(self) -> None:
        rng = self._rng
        version = rng.choice((1, 2, 2, 3, 3))
        mode = rng.choice(("merge-on-read", "copy-on-write")) if version > 1 else "copy-on-write"
        properties = {
            **QUICK,
            "format-version": str(version),
            "write.format.default": rng.choice(("parquet", "parquet", "orc", "avro")),
            **{f"write.{each}.mode": mode for each in ("delete", "update", "merge")},
            "write.metadata.previous-versions-max": rng.choice(("2", "100")),
            "write.object-storage.enabled": rng.choice(("false", "false", "true")),
            "write.delete.granularity": rng.choice(("file", "partition")),
        }
        self._spec = list(rng.choice(SPECS))
        fields = [
            PartitionField(SCHEMA.find_id(name), 1000 + at, parse_transform(transform), f"{name}_{at}")
            for at, (name, transform) in enumerate(self._spec)
        ]
        self._catalog.create_table(self.name, SCHEMA, partition_spec=PartitionSpec(*fields), properties=properties)
        self.told.append(f"version {version} {mode} {properties['write.format.default']} {self._spec}")
        self._version_of_format = version
        self._append()

    def _data(self, count: int) -> pa.Table:
        ids = [next(self._ids) for _ in range(count)]
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "p": pa.array([self._rng.choice(VALUES) for _ in ids], pa.string()),
                "v": pa.array([self._rng.choice((1.5, None, 0.0, -2.0)) for _ in ids], pa.float64()),
                "ts": pa.array([self._rng.randint(0, 2**47) for _ in ids], pa.int64()).cast(pa.timestamp("us", "UTC")),
            }
        )

    def _append(self, **more: Any) -> None:
        self.load().append(self._data(self._rng.randint(1, 12)), **more)

    def _append_by_java(self) -> None:
        values = ", ".join(
            f"({next(self._ids)}, '{self._rng.choice('abc')}', 2.5, timestamp '2020-01-01 00:00:00')" for _ in range(5)
        )
        self._java(f"insert into ice.{self.name} (id, p, v, ts) values {values}")

    def _condition(self) -> str:
        return self._rng.choice(
            (f"id % {self._rng.randint(2, 5)} = 0", f"id < {self._rng.randint(1, 20)}", "p = 'a'", "p is null")
        )

    def _delete(self) -> None:
        low = self._rng.randint(0, 40)
        self.load().delete(self._rng.choice((f"id >= {low} and id < {low + 6}", "p = 'a'", "p is null")))

    def _delete_by_java(self) -> None:
        self._java(f"delete from ice.{self.name} where {self._condition()}")

    def _update_by_java(self) -> None:
        self._java(f"update ice.{self.name} set v = 9.5 where {self._condition()}")

    def _delete_by_key(self) -> None:
        table = self.load()
        if self._version_of_format > 1:
            sources = (table.schema().find_column_name(field.source_id) for field in table.spec().fields)
            columns = list(dict.fromkeys(("id", *map(str, sources))))
            with table.new_row_delta() as delta:
                delta.delete_equal(table.scan(selected_fields=tuple(columns), limit=3).to_arrow(), columns)

    def _overwrite(self) -> None:
        self.load().overwrite(self._data(3), self._rng.choice(("p = 'b'", "id < 5")))

    def _repartition(self) -> None:
        with self.load().update_spec() as update:
            update.add_field(*self._rng.choice((("p", "identity"), ("id", "bucket[3]"))), f"f{next(self._made)}")

    def _branch(self) -> None:
        name = f"r{next(self._made)}"
        snapshots = self.load().snapshots()
        manage = self.load().manage_snapshots()
        if self._rng.random() < 0.5:
            manage.create_tag(self._rng.choice(snapshots).snapshot_id, name).commit()
        else:
            manage.create_branch(self._rng.choice(snapshots).snapshot_id, name).commit()
            self._append(branch=name)

    def _roll_back(self) -> None:
        table = self.load()
        chosen = self._rng.choice(table.history())
        if chosen.snapshot_id in {each.snapshot_id for each in table.snapshots()}:
            table.manage_snapshots().set_current_snapshot(chosen.snapshot_id).commit()

    def _compact(self) -> None:
        self.load().maintenance.rewrite_data_files(options={"min-input-files": "2"})

    def _manifests(self) -> None:
        self.load().maintenance.rewrite_manifests()

    def _statistics(self) -> None:
        self.load().maintenance.compute_table_stats()

    def _expire_only_metadata(self) -> None:
        self.load().maintenance.expire_snapshots().older_than(2**62).retain_last(3).clean_expired_files(False).commit()

    def _change(self) -> None:
        twice = (self._append, self._delete, self._branch)
        once = (self._append_by_java, self._delete_by_java, self._update_by_java, self._delete_by_key, self._overwrite)
        rare = (self._repartition, self._roll_back, self._compact, self._manifests, self._statistics)
        change = self._rng.choice((*twice, *twice, *once, *rare, self._expire_only_metadata))
        self.told.append(change.__name__.strip("_"))
        change()

    # ----------------------------------------------------------------------------------- neighbours and strays

    def _put_neighbours(self, warehouse: HiveWarehouse) -> None:
        rng, before = self._rng, self.files()
        inside, name = self.load().location(), f"n{self.name.rsplit('.', 1)[1]}"
        kinds = rng.sample(
            ("iceberg", "data path", "metadata path", "hive", "partition", "migrated"), rng.randint(0, 3)
        )
        self.told.append(f"neighbours {kinds}")
        for kind in kinds:
            own = f"{name}_{kind.replace(' ', '_')}"
            elsewhere = f"{warehouse.location}/{own}"
            if kind in ("iceberg", "data path", "metadata path"):
                properties = {} if kind == "iceberg" else {f"write.{kind.replace(' ', '.')}": f"{inside}/{own}"}
                location = f"{inside}/{own}" if kind == "iceberg" else elsewhere
                made = self._catalog.create_table(
                    f"{warehouse.namespace}.{own}", PLAIN, location=location, properties=properties
                )
                made.append(plain_rows(1, 2))
            elif kind == "partition":
                warehouse.create(own, "id int", "q int", managed=False)
                warehouse.add_partition(
                    own, ["1"], pa.table({"id": pa.array([1], pa.int32())}), location=f"{inside}/{own}"
                )
            else:
                warehouse.create(own, "id int", location=f"{inside}/{own}", managed=False)
                write_files(f"{inside}/{own}", pa.table({"id": pa.array([1], pa.int32())}))
                if kind == "migrated":
                    migrate(self._catalog, f"{warehouse.namespace}.{own}")
        self.others |= self.files() - before

    def _put_strays(self) -> None:
        rng = self._rng
        for place in rng.sample(STRAYS, rng.randint(3, len(STRAYS))):
            self._stray(place, rng.choice((OLD, OLD, YOUNG)))
        half = f"data/.x.parquet.{rng.getrandbits(48):012x}.tmp"
        self._stray(half, OLD)
        self.half.add(half)
        for journal in ("metadata/_hive-migration.json", "metadata/_repair-1-x.json"):
            self._stray(journal, OLD)
        if rng.random() < 0.5 and not isinstance(self.folder, HdfsPath):  # where there are no links
            (self.folder / "link").symlink_to(self._behind.parent)
            self.others.add("link")
            self._put_behind()

    def _put_behind(self) -> None:
        self._behind.parent.mkdir(exist_ok=True)
        self._behind.write_bytes(b"theirs")
        set_changed(self._behind, 0)

    def _stray(self, place: str, days: float) -> None:
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        _age(path, days)

    def _age(self, days: float) -> None:
        for path in self.folder.rglob("*"):
            if path.is_file():
                _age(path, days)


def _is_checksum(path: Path) -> bool:
    """Whether Hadoop wrote it beside a file, and deletes it with that."""
    return path.name.startswith(".") and path.name.endswith(".crc") and len(path.name) > len(".x.crc")


def _age(path: Path, days: float) -> None:
    set_changed(path, path.stat().st_mtime_ns - int(days * 86_400e9))
