"""Spark for commands that compare or copy with it; its log is shown only if it does not start."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hms_iceberg.cli.catalog_options import key_values
from hms_iceberg.printable import printable

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.migration import MigrationOptions, MigrationResult
    from hms_iceberg.migration.migrate import Proof
    from hms_iceberg.migration.migration_progress import Progress
    from hms_iceberg.table import Table


_LINES_SHOWN = 20


@contextmanager
def quiet_spark(log: Path | None = None) -> Iterator[None]:
    """Sends the standard error of processes that are started in the context, where Spark's JVM logs, to a file.

    With `--verbose` it stays where it is. `log` is appended to; by default the file goes away with its last writer.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        if _is_verbose():
            yield
            return
        with tempfile.TemporaryFile() if log is None else log.open("a+b") as file, _errors_to(file.fileno()) as shown:
            begin = file.seek(0, os.SEEK_END)
            try:
                yield
            except Exception:
                file.seek(begin)
                for line in file.read().decode(errors="replace").splitlines()[-_LINES_SHOWN:]:
                    os.write(shown, f"Spark: {printable(line)}\n".encode())
                raise


@contextmanager
def _errors_to(file: int) -> Iterator[int]:
    """Redirects standard error to a file; yields the original one."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file, 2)
    try:
        yield kept
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _is_verbose() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("verbose"))


Command = TypeVar("Command", bound=Callable[..., Any])

spark_options: Callable[[Command], Command] = click.option(
    "--spark-conf",
    "spark_settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of Spark, such as spark.master=yarn; may be repeated.",
)


@contextmanager
def spark_for(catalog: Catalog, needed: bool, settings: tuple[str, ...]) -> Iterator[Any]:
    """An extended Spark session on the catalog's metastore; None if none is needed. `settings` are `KEY=VALUE`."""
    if not needed:
        yield None
        return
    from hms_iceberg.spark.migration.local_session import session_on

    with ExitStack() as stack:
        with quiet_spark():
            session = stack.enter_context(
                session_on(catalog.properties["uri"], catalog.properties, key_values(settings))
            )
        yield session


@dataclass(frozen=True)
class MigrationMethods:
    """How tables are migrated: in place, with rows compared on a `level` before the switch, or by a copy.

    `spark` is None if nothing needs a session, `level` None for no comparison; with `rewrite`, tables that cannot stay
    where they are are copied.
    """

    spark: Any = None
    level: str | None = None
    rewrite: bool = False

    def in_place(self, catalog: Catalog, identifier: str, options: MigrationOptions, **more: Any) -> MigrationResult:
        from hms_iceberg import migration

        return migration.migrate(catalog, identifier, options, proof=self._proof(), **more)

    def copy(self, catalog: Catalog, identifier: str, options: MigrationOptions) -> MigrationResult:
        from hms_iceberg.migration.rewrite import rewrite
        from hms_iceberg.spark.migration.hive_reader import SparkCopier

        return rewrite(catalog, identifier, options, rows=SparkCopier(self.spark), proof=self._proof())

    def migrate(
        self, catalog: Catalog, identifier: str, options: MigrationOptions, *, dry_run: bool, progress: Progress
    ) -> MigrationResult:
        """Migrates one table where it is, or else by a copy."""
        from hms_iceberg.errors import UnsupportedError

        try:
            return self.in_place(catalog, identifier, options, dry_run=dry_run, progress=progress)
        except UnsupportedError:
            if not self.rewrite or dry_run:
                raise
            return self.copy(catalog, identifier, options)

    def _proof(self) -> Proof | None:
        if self.level is None:
            return None
        from hms_iceberg.migration.verify import verify
        from hms_iceberg.spark.migration.hive_reader import SparkHiveReader

        level, reader = self.level, SparkHiveReader(self.spark)

        def prove(hive: str, table: Table) -> tuple[str, ...]:
            return verify(hive, table, level, reader).differences

        return prove
