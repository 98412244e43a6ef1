"""Random tables beside, below, above and in each other, whose places are spelled in every way; and what must survive.

Nothing here asks the package what is the same place: folders are made by their one real name, and every name that is
told is that name spelled otherwise.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import IcebergError, InvalidInputError, NoSuchTableError, UnsupportedError
from hms_iceberg.maintenance import expire_snapshots, remove_orphan_files
from hms_iceberg.maintenance.repair.carry_out_repair import repair_table
from hms_iceberg.metastore import Identifier, MetadataVersion, TableRow
from hms_iceberg.table import Table
from tests.support.memory_metastore import InMemoryMetastore

SCHEMA = pa.schema([("id", pa.int64()), ("page", pa.string())])
# Percent signs are characters like others; `%2F` is no slash.
NAMES = ("t", "t%20u", "p=1%2F2", "T", "t.u", "%2E%2E")
NOW: Any = {"older_than": 2**62, "nobody_writes": True}


def some_rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "page": [f"/{each}" for each in ids]}, SCHEMA)


class RowsMetastore(InMemoryMetastore):
    """A metastore in memory that tells where all of its tables are, Hive's too."""

    def __init__(self) -> None:
        super().__init__()
        self.hive: dict[Identifier, tuple[str, tuple[str, ...] | None]] = {}

    def _swap(self, identifier: Identifier, base: MetadataVersion | None, new: MetadataVersion) -> None:
        super()._swap(identifier, base, new)
        row = self._rows[identifier]
        assert row is not None
        own = {"uuid": new.metadata.table_uuid or "", "metadata_location": new.location, "table_type": "ICEBERG"}
        row.properties.update({**new.metadata.properties, **own})  # type: ignore[attr-defined]

    def add_hive(self, identifier: Identifier, location: str, partitions: tuple[str, ...] | None = None) -> None:
        """A Hive table, or one of partitions."""
        self.add_foreign_table(identifier)
        self.hive[identifier] = location, partitions

    @property
    def table_rows(self) -> RowsMetastore:
        """Itself."""
        return self

    def rows(self, namespace: str | None = None) -> Iterator[TableRow]:
        """All tables."""
        for identifier in list(self._rows):
            row = self.row(identifier)
            if row is not None and namespace in (None, identifier[0]):
                yield row

    def row(self, identifier: Identifier) -> TableRow | None:
        """One table."""
        if identifier in self.hive:
            location, partitions = self.hive[identifier]
            return TableRow(identifier, location, {}, False, partitions is not None)
        pointer = self._rows.get(identifier)
        return None if pointer is None else TableRow(identifier, pointer.location, dict(pointer.properties), True)

    def partition_locations(self, identifier: Identifier) -> Iterator[str]:
        """Locations of a Hive table's partitions."""
        if identifier not in self.hive:
            raise NoSuchTableError(f"There is no table {identifier}")
        return iter(self.hive[identifier][1] or ())


@dataclass(frozen=True)
class Spelling:
    """Spells real paths otherwise.

    Args:
        rng: decides how.
        schemes: what stands before a path without its first slash.
        links: from real folders to links that lead to them.
        slashes: whether several may stand for one.
    """

    rng: random.Random
    schemes: tuple[str, ...]
    links: dict[str, str]
    slashes: bool

    def __call__(self, path: str, folder: bool = True) -> str:
        """Another name of a path."""
        rng = self.rng
        for real, link in self.links.items():
            if path.startswith(f"{real}/") and rng.random() < 0.4:
                path = link + path[len(real) :]
        segments = path.strip("/").split("/")
        first = len(segments) - 4
        for _ in range(rng.choice((0, 1, 1, 2))):
            at = rng.randrange(max(first, 1), len(segments) + folder)
            segments[at:at] = rng.choice((["."], ["nowhere", ".."], ["."], [""] if self.slashes else ["."]))
        end = rng.choice(("", "", "/")) if folder else ""
        return rng.choice(self.schemes) + "/".join(segments) + end


class World:
    """A subject table, and neighbours that were there before it.

    Args:
        base: the real folder of everything, absolute and without scheme, `bucket/key` for objects.
        storage: where it is.
        seed: decides everything.
        local: whether there are links, and inventories are made by the operating system.
    """

    def __init__(self, base: str, storage: ArrowStorage, seed: int, local: bool) -> None:
        self.rng = random.Random(seed)
        self.told: list[str] = []
        self.storage = storage
        self._local = local
        self._base = base
        self._real = f"{base}/real"
        schemes = ("/", "file:/", "file:///", "FILE:/", "File:///") if local else ("s3://", "s3a://", "S3N://", "s3://")
        links = {}
        if local:
            os.makedirs(f"{self._real}/shop")
            os.symlink(self._real, f"{base}/link")
            os.symlink(f"{self._real}/shop", f"{base}/deep")
            links = {f"{self._real}/shop": f"{base}/deep", self._real: f"{base}/link"}
        self.spelled = Spelling(self.rng, schemes, links, local)
        self.metastore = RowsMetastore()
        self.metastore.create_namespace("shop", {"location": self._name(f"{self._real}/shop")})
        self.catalog = Catalog("spelled", self.metastore, storage, {})
        self.folder = f"{self._real}/shop/{self.rng.choice(NAMES)}"
        self._ids = iter(range(1, 10_000))
        self.neighbours: dict[str, list[int]] = {}
        self._hive_files: dict[str, list[str]] = {}

    def _name(self, path: str) -> str:
        return f"/{path.lstrip('/')}" if self._local else f"s3://{path}"

    # -------------------------------------------------------------------------------------- what is there

    def inventory(self) -> dict[str, int]:
        """Every file by its real name, with its size."""
        if not self._local:
            prefix = self._name(self._real)
            return {each.location[len(prefix) :]: each.size for each in self.storage.list(prefix)}
        root = Path(self._real)
        paths = (Path(folder) / name for folder, _, names in os.walk(root) for name in names)
        return {str(path.relative_to(root)): path.stat().st_size for path in paths}

    def ids(self, name: str) -> list[int]:
        """The ids in a table, whichever kind it is."""
        if name not in self._hive_files:
            return sorted(self.catalog.load_table(f"shop.{name}").scan().to_arrow()["id"].to_pylist())
        found = []
        for path in self._hive_files[name]:
            with self.storage.open_input(self._name(path)) as file:
                found += pq.read_table(file)["id"].to_pylist()
        return sorted(found)

    def _rows(self) -> pa.Table:
        return some_rows(*(next(self._ids) for _ in range(self.rng.choice((1, 2, 3)))))

    # ----------------------------------------------------------------------------------------- neighbours

    def _iceberg(self, name: str, path: str, **paths: str) -> None:
        properties = {key: self.spelled(each) for key, each in paths.items()}
        table = self.catalog.create_table(f"shop.{name}", SCHEMA, location=self.spelled(path), properties=properties)
        for _ in range(2):
            table.append(self._rows())
        self.neighbours[name] = self.ids(name)

    def _hive(self, name: str, path: str, *partitions: str) -> None:
        files = []
        for number, folder in enumerate(partitions or (path,)):
            files.append(f"{folder}/{number:06d}_{len(self.neighbours)}")
            with self.storage.open_output(self._name(files[-1])) as output:
                pq.write_table(self._rows(), output)
        spelled = tuple(map(self.spelled, partitions)) if partitions else None
        self.metastore.add_hive(("shop", name), self.spelled(path), spelled)
        self._hive_files[name] = files
        self.neighbours[name] = self.ids(name)

    def _put(self, name: str) -> None:
        """One neighbour: where it is, and what it is."""
        folder, shop = self.folder, f"{self._real}/shop"
        outside = f"{self._real}/elsewhere/{name}"
        data, objects = {"write.data.path": f"{folder}/data"}, {"write.data.path": f"{folder}/theirs"}
        kinds: dict[str, Callable[[], None]] = {
            "beside": lambda: self._iceberg(name, f"{shop}/{name}"),
            "below": lambda: self._iceberg(name, f"{folder}/deep/{name}"),
            "below data": lambda: self._iceberg(name, f"{folder}/data/{name}"),
            "above": lambda: self._iceberg(name, shop),
            "same folder": lambda: self._iceberg(name, folder),
            "data in it": lambda: self._iceberg(name, outside, **self.rng.choice((data, objects))),
            "metadata in it": lambda: self._iceberg(name, outside, **{"write.metadata.path": f"{folder}/{name}"}),
            "hive below": lambda: self._hive(name, f"{folder}/{name}"),
            "hive below data": lambda: self._hive(name, f"{folder}/data/{name}"),
            "hive in the same folder": lambda: self._hive(name, folder),
            "hive above": lambda: self._hive(name, shop),
            "partitions in it": lambda: self._hive(name, outside, f"{folder}/data/{name}=1", f"{folder}/{name}=2"),
            "partitions beside": lambda: self._hive(name, f"{shop}/{name}", f"{shop}/{name}/p=1", f"{outside}/p=2"),
        }
        kind = self.rng.choice(sorted(kinds))
        self.told.append(kind)
        kinds[kind]()

    # -------------------------------------------------------------------------------------------- subject

    def build(self) -> Table:
        """Makes everything; the subject is `shop.subject`."""
        for number in range(self.rng.choice((1, 2, 3))):
            self._put(f"n{number}")
        self.before = theirs = self.inventory()
        choices = ("write.data.path", f"{self.folder}/data"), ("write.metadata.path", f"{self.folder}/meta")
        properties = {key: self.spelled(path) for key, path in choices if self.rng.random() < 0.4}
        if self.rng.random() < 0.15:
            properties["write.data.path"] = self.spelled(f"{self._real}/out/{self.folder.rpartition('/')[2]}")
        self.told.append(str(properties))
        table = self.catalog.create_table(
            "shop.subject", SCHEMA, location=self.spelled(self.folder), properties=properties
        )
        self.told.append(table.location())
        table.append(self._rows())
        if self.rng.random() < 0.3:
            place = table.metadata_location.rpartition("/")
            self.catalog.register_table("shop.copy", f"{place[0]}/./{place[2]}")
            self.neighbours["copy"] = self.ids("copy")
            self.before = self.inventory()
            self.told.append("copy")
        table.append(self._rows())
        if self.rng.random() < 0.6:
            found = [path for path in theirs if path.endswith((".parquet", *(f"_{n}" for n in range(4))))]
            chosen = self.rng.sample(sorted(found), min(len(found), 2))
            self.told.append(f"takes in {chosen}")
            table.add_files([self.spelled(f"{self._real}/{each.lstrip('/')}", folder=False) for each in chosen])
        return table

    def check(self, what: str) -> None:
        """Neighbours have all they had."""
        after = self.inventory()
        lost = {name for name, size in self.before.items() if after.get(name) != size}
        assert not lost, f"{what} deleted {sorted(lost)} of others: {self.told}"
        for name, ids in self.neighbours.items():
            assert self.ids(name) == ids, f"{what} changed {name}: {self.told}"

    # -------------------------------------------------------------------------------------------- actions

    def stray(self) -> str:
        """A file of nobody in the subject's folder."""
        path = f"{self.folder}/data/stray-{next(self._ids)}.parquet"
        self.storage.create(self._name(path), b"stray")
        return path[len(self._real) + self._local :]

    def orphans(self, table: Table) -> bool:
        """Removes orphans; whether the stray file went."""
        stray = self.stray()
        location = self.spelled(self.folder) if self.rng.random() < 0.5 else None
        ids = self.ids("subject")
        try:
            remove_orphan_files(table, location=location, **NOW)
        except InvalidInputError as error:
            self.told.append(f"refused: {error}")
        self.check("orphan removal")
        assert self.ids("subject") == ids, self.told
        return stray not in self.inventory()

    def expiry(self, table: Table) -> bool:
        """Expires everything but the newest rows; whether files went."""
        table.refresh().overwrite(self._rows())
        before, ids = self.inventory(), self.ids("subject")
        expire_snapshots(table, older_than=2**62, retain_last=1)
        self.check("expiry")
        assert self.ids("subject") == ids, self.told
        return bool(before.keys() - self.inventory().keys())

    def purge(self, table: Table) -> bool:
        """Purges the table; whether files went."""
        before = self.inventory()
        self.catalog.drop_table("shop.subject", purge_requested=True)
        self.check("purge")
        return bool(before.keys() - self.inventory().keys())

    def drop(self, table: Table) -> bool:
        """Drops the table, whose files stay."""
        before = self.inventory()
        self.catalog.drop_table("shop.subject")
        self.check("drop")
        assert self.inventory() == before
        return True

    def repair(self, table: Table) -> bool:
        """Loses a manifest, and repairs what is left; no row of others becomes the table's."""
        ids = self.ids("subject")
        known = {path.rpartition("/")[2] for path in self.before}
        manifests = table.refresh().inspect.manifests()["path"].to_pylist()
        self.storage.delete(self.rng.choice([path for path in manifests if path.rpartition("/")[2] not in known]))
        try:
            repair_table(self.catalog, ("shop", "subject"), dry_run=False, accept_loss=True)
        except IcebergError as error:
            self.told.append(f"refused: {error}")
            return False
        self.check("repair")
        assert set(self.ids("subject")) <= set(ids), self.told
        assert len(self.ids("subject")) == len(set(self.ids("subject"))), self.told
        return True

    def erasure(self, table: Table) -> bool:
        """Forgets a row in every version; whether that was done, or refused since others need its files."""
        ids, before = self.ids("subject"), self.inventory()
        chosen = self.rng.choice(ids)
        try:
            result = table.refresh().forget(f"id = {chosen}", dry_run=False, after=dt.timedelta(0))
        except UnsupportedError as error:
            self.told.append(f"refused: {error}")
            self.check("a refused erasure")
            assert self.ids("subject") == ids and self.inventory() == before, self.told
            return "needed by" in str(error)
        self.check("an erasure")
        assert self.ids("subject") == [each for each in ids if each != chosen], self.told
        for each in table.refresh().snapshots():
            assert chosen not in table.scan(snapshot_id=each.snapshot_id).to_arrow()["id"].to_pylist(), self.told
        assert result.report is not None and not result.left, self.told
        return bool(before.keys() - self.inventory().keys())

    def add_again(self, table: Table) -> bool:
        """Each data file by other names of it: refused, and the table has what it had."""
        ids = self.ids("subject")
        for task in table.refresh().scan().plan_files():
            real = self._real_path(task.file.file_path)
            spelled = self.spelled(real, folder=False)
            try:
                table.add_files([spelled])
            except InvalidInputError:
                continue
            raise AssertionError(f"{task.file.file_path} was added again as {spelled}: {self.told}")
        assert self.ids("subject") == ids
        self.check("add_files")
        return True

    def _real_path(self, location: str) -> str:
        """The real path of a file that is named in some spelling."""
        path = location.partition(":")[2] or location
        if self._local:
            return os.path.realpath(os.path.normpath(path).replace("//", "/"))
        return os.path.normpath(path.lstrip("/"))


ACTIONS = ("orphans", "expiry", "purge", "drop", "repair", "erasure", "add_again")


def tried(base: str, storage: ArrowStorage, seed: int, action: str, local: bool = True) -> bool:
    """Makes a world and does one thing in it.

    Args:
        base: an empty folder, as `World` takes it.
        storage: where it is.
        seed: decides everything else.
        action: one of `ACTIONS`.
        local: whether it is a folder of this machine.

    Returns:
        whether it did something.
    """
    world = World(base, storage, seed, local)
    world.told.append(f"seed {seed}: {action}")
    return bool(getattr(world, action)(world.build()))
