"""Random Hive tables among neighbours, migrated, used and taken back, with processes that are killed on the way.

Plain Spark's reading of the Hive table is the oracle: of the Iceberg table by Apache Iceberg, by this package and by
Spark with it, and of the Hive table that comes back. After each step every neighbour's rows and files are compared.

HMS_ICEBERG_MIGRATIONS=SEED:COUNT runs others than the few of the default.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from decimal import Context, Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import MigrationError, UnsupportedError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.maintenance.expire_with_files import expire_snapshots
from hms_iceberg.maintenance.rewrite.data_files import rewrite_data_files
from hms_iceberg.migration import migrate, rollback
from hms_iceberg.migration.rewrite import rewrite
from hms_iceberg.migration.undo import recovery
from tests.interop.test_migration_matrix import arrow_rows, spark_rows, text
from tests.support.crash_server import Crash, crashing
from tests.support.hive_warehouse import HiveWarehouse, Rows, write_files
from tests.support.random_hive_tables import RandomHiveTable, random_hive_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.spark]

SEED, COUNT = (int(part) for part in os.environ.get("HMS_ICEBERG_MIGRATIONS", "1:2").split(":"))
_EXACT = Context(prec=100)
_DECIMAL = re.compile(r"'(-?\d+(?:\.\d+)?(?:E[+-]?\d+)?)'")
ONE = pa.table({"id": pa.array([41], pa.int32())})


@pytest.fixture(scope="module")
def crash(metastore: EmbeddedMetastore) -> Iterator[Crash]:
    with crashing(metastore.uri) as run:
        yield run


@pytest.fixture(autouse=True)
def _settling_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "SETTLED_SECONDS", 0.6)


@pytest.mark.parametrize("number", range(COUNT))
def test_a_random_table_and_its_neighbours_keep_their_rows_through_migration_use_and_way_back(
    spark: SparkSession, catalog: Catalog, namespace: str, iceberg_java: Any, crash: Crash, tmp_path: Path, number: int
) -> None:
    random = Random(f"{SEED}-{number}")
    run = _Run(spark, catalog, namespace, iceberg_java, crash, random, tmp_path)
    if run.migrate():
        run.use()
        run.take_back()


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        namespace: str,
        java: Any,
        crash: Crash,
        random: Random,
        folder: Path,
    ) -> None:
        self._spark, self._catalog, self._java, self._crash, self._random = spark, catalog, java, crash, random
        self._warehouse = HiveWarehouse(catalog, namespace)
        self._name, self._space = f"{namespace}.t", namespace
        self._neighbours: dict[str, Callable[[], list[str]]] = {}
        self._drawn: RandomHiveTable = random_hive_table(random)
        self._drawn.make(spark, self._name, f"file:{folder}/place/t")
        self._before: Rows = self._warehouse.rows("t")
        self._place = self._before.location
        self._make_neighbours()
        self._rows = _spark(spark, self._name)
        self._files = _contents(self._place)
        self._seen = self._look_at_neighbours()

    # ------------------------------------------------------------------------------------------ neighbours

    def _make_neighbours(self) -> None:
        """Tables in the folders that a migration might take for its own."""
        if self._random.random() < 0.5:
            self._hive_neighbour("t__iceberg", f"file:{self._place}__iceberg")
        if self._random.random() < 0.3:
            self._hive_neighbour("below", f"file:{self._place}__iceberg/data/below")
        if self._random.random() < 0.3:
            self._hive_neighbour("t2", f"file:{self._place}2")
        if self._random.random() < 0.4:
            place = self._before.table.sd.location
            data = {"write.data.path": f"{self._warehouse.location}/data_of_n"}
            if not self._drawn.keys:
                data["write.metadata.path"] = f"{place}/_iceberg/metadata"
            self._catalog.create_table(f"{self._space}.n", ONE.schema, location=place, properties=data).append(ONE)
            self._iceberg_neighbour("n")

    def _hive_neighbour(self, name: str, location: str) -> None:
        made = self._warehouse.create(name, "id int", location=location)
        write_files(location, ONE)
        self._neighbours[name] = lambda: [
            *_spark(self._spark, f"{self._space}.{name}"),
            *(f"{path} {data!r}" for path, data in sorted(_contents(made.location, "0*").items())),
        ]

    def _iceberg_neighbour(self, name: str) -> None:
        full = f"{self._space}.{name}"
        self._neighbours[name] = lambda: [
            *arrow_rows(self._catalog.load_table(full).scan().to_arrow()),
            *sorted(map(text, self._java.sql(f"select * from ice.{full}"))),
            *map(text, self._java.sql(f"select path from ice.{full}.manifests order by path")),
        ]

    def _look_at_neighbours(self) -> dict[str, list[str]]:
        return {name: look() for name, look in self._neighbours.items()}

    # ------------------------------------------------------------------------------------------- the table

    def migrate(self) -> bool:
        """Migrate the table, perhaps by a process that is killed; False if it is refused, with nothing changed."""
        if not self._drawn.is_copied and self._random.random() < 0.5:
            self._crash("migrate", self._name, self._random.randint(0, 25), refused=True)
            if self._random.random() < 0.5:
                self._back_if_begun()
        refusal = self._carry_out()
        if refusal is not None:
            assert self._drawn.is_old, refusal
            self._check_is_hive()
            return False
        self._check_is_iceberg(self._rows)
        return True

    def _carry_out(self) -> UnsupportedError | None:
        from hms_iceberg.spark.migration.hive_reader import SparkCopier

        try:
            if self._drawn.is_copied or self._random.random() < 0.15:
                rewrite(self._catalog, self._name, rows=SparkCopier(self._spark))
            else:
                migrate(self._catalog, self._name)
        except UnsupportedError as error:
            return error
        return None

    def use(self) -> None:
        """Register a copy, write, compact, expire: what becomes of tables."""
        if self._random.random() < 0.4:
            location = self._catalog.load_table(self._name).metadata_location
            self._catalog.register_table(f"{self._space}.copy", location)
            self._iceberg_neighbour("copy")
            self._seen = self._look_at_neighbours()
        if self._random.random() < 0.5:
            self._spark.sql(f"insert into {self._name} select * from {self._name}")
            self._check_is_iceberg(sorted([*self._rows, *self._rows]))
        if self._random.random() < 0.5:
            table = self._catalog.load_table(self._name)
            rewrite_data_files(table, options={"min-input-files": 1, "rewrite-all": "true"})
            if self._random.random() < 0.7:
                expire_snapshots(table, older_than=int(time.time() * 1000) + 1000, retain_last=1)
        assert self._look_at_neighbours() == self._seen

    def take_back(self) -> None:
        """The way back, perhaps by a process that is killed; refused where a file is gone, with nothing changed."""
        own = [path for path, data in self._files.items() if _is_data(path) and data]
        if own and self._random.random() < 0.2:
            lost = self._place / self._random.choice(own)
            shutil.move(lost, lost.with_name(".lost"))
            with pytest.raises(MigrationError, match=r"gone or were replaced.*Nothing was changed"):
                rollback(self._catalog, self._name, discard_changes=True)
            assert self._catalog.table_exists(self._name)
            shutil.move(lost.with_name(".lost"), lost)
        if self._random.random() < 0.5:
            self._crash("discard", self._name, self._random.randint(0, 25))
        self._back_if_begun()
        self._check_is_hive()
        if self._random.random() < 0.3:
            assert self._carry_out() is None
            self._check_is_iceberg(self._rows)

    def _back_if_begun(self) -> None:
        """A killed process may have come to its end, or to nothing."""
        with suppress(_NothingToUndo):
            _undo(self._catalog, self._name)
        self._check_is_hive()

    def _check_is_hive(self) -> None:
        assert self._warehouse.rows("t") == self._before
        assert _spark(self._spark, self._name) == self._rows
        found = _contents(self._place)
        assert {path: found.get(path) for path in self._files if _is_data(path)} == {
            path: data for path, data in self._files.items() if _is_data(path)
        }
        assert not any("hive-migration" in path for path in found)
        assert not self._warehouse.exists("t_backup_") and not self._warehouse.exists("t__iceberg_staging")
        assert self._look_at_neighbours() == self._seen

    def _check_is_iceberg(self, rows: list[str]) -> None:
        assert _spark(self._spark, self._name) == rows
        assert _comparable(arrow_rows(self._catalog.load_table(self._name).scan().to_arrow())) == rows
        assert _comparable(map(text, self._java.sql(f"select * from ice.{self._name}"))) == rows
        assert _spark(self._spark, f"{self._name}_backup_") == self._rows
        assert self._look_at_neighbours() == self._seen


class _NothingToUndo(Exception):
    """The Hive table is there, and no trace of a migration."""


def _undo(catalog: Catalog, name: str) -> None:
    try:
        rollback(catalog, name, discard_changes=True)
    except MigrationError as error:
        if "no unfinished migration" in str(error):
            raise _NothingToUndo from error
        raise


def _spark(spark: SparkSession, name: str) -> list[str]:
    return _comparable(spark_rows(spark, name))


def _comparable(rows: Iterable[str]) -> list[str]:
    """Texts of rows with decimals in one form, of whatever scale their reader holds them."""
    return sorted(_DECIMAL.sub(lambda found: f"'{Decimal(found[1]).normalize(_EXACT):f}'", row) for row in rows)


def _contents(folder: Path, pattern: str = "*") -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob(pattern) if path.is_file()}


def _is_data(path: str) -> bool:
    """Whether a file below the Hive table's folder is the Hive table's."""
    return not path.startswith(("_", ".", "metadata/")) and "/." not in path and "/_" not in path
