"""Files, plans and migrations on a real HDFS, beside other clients of the same HDFS and beside local disk.

    python -m tests.benchmarks.hdfs [--large 512] [--scan 512] [--small 2000] [--write 64] [--plan 100000]
        [--migrate 10000] [--rounds 3] [--only large scan small write plan migrate]

`large` reads a Parquet file with `pyarrow.parquet`, `scan` the same rows as a table, as users of this package do.

The HDFS has two NameNodes and one DataNode on this machine. Clients are this package's storage, hdfs-native alone,
libhdfs (if ARROW_LIBHDFS_DIR or HADOOP_HOME, JAVA_HOME and CLASSPATH are set as Arrow wants them) and local disk. Each
measurement is a process of its own that has connected; clients take turns, and the median of the rounds is told, with
the peak of resident memory. With 0, a part is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset  # what reads a table imports it at its first call, which takes as long as the reading
import pyarrow.parquet as pq
from pyarrow import fs

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.migration import migrate
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.table.file_system import FileSystemTables
from tests.benchmarks.migration import _COLUMNS, _LONGS
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.hive_warehouse import HiveWarehouse

MIB = 2**20
THREADS = 8
PIECE = 8 * MIB
PLANNED_COLUMNS = 20


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


# ----------------------------------------------------------------------------------------------- the clients


class Ours:
    """This package's storage."""

    def __init__(self, root: str, settings: dict[str, str], **more: str) -> None:
        self.root = root
        self.storage = ArrowStorage({**settings, **more})
        self.storage.exists(f"{root}/connected")

    def table(self, name: str) -> Any:
        return pq.read_table(self.storage.open_input(f"{self.root}/{name}"))

    def read(self, name: str) -> int:
        return len(self.storage.read(f"{self.root}/{name}"))

    def write(self, name: str, data: bytes) -> None:
        self.storage.create(f"{self.root}/{name}", data)


class Native:
    """hdfs-native as it is: no Parquet, so that a table is its bytes."""

    def __init__(self, root: str, settings: dict[str, str]) -> None:
        from hdfs_native import Client

        self.path = "/" + root.partition("://")[2].partition("/")[2]
        self.client = Client(root, settings)
        self.client.list_status("/")

    def table(self, name: str) -> int:
        file = self.client.read(f"{self.path}/{name}")
        return sum(len(file.read_range(at, min(PIECE, len(file) - at))) for at in range(0, len(file), PIECE))

    read = table

    def write(self, name: str, data: bytes) -> None:
        file = self.client.create(f"{self.path}/{name}")
        file.write(data)
        file.close()


class Arrow:
    """A file system of Arrow: libhdfs or the local one."""

    def __init__(self, filesystem: fs.FileSystem, path: str) -> None:
        self.filesystem = filesystem
        self.path = path
        filesystem.get_file_info(path)

    def table(self, name: str) -> Any:
        return pq.read_table(f"{self.path}/{name}", filesystem=self.filesystem)

    def read(self, name: str) -> int:
        with self.filesystem.open_input_file(f"{self.path}/{name}") as file:
            return len(file.read())

    def write(self, name: str, data: bytes) -> None:
        with self.filesystem.open_output_stream(f"{self.path}/{name}") as file:
            file.write(data)


def client(name: str, place: dict[str, Any]) -> Any:
    if name == "ours":
        return Ours(place["root"], place["settings"])
    if name == "native":
        return Native(place["root"], place["settings"])
    if name == "local":
        return Arrow(fs.LocalFileSystem(), place["local"])
    host, _, port = place["address"].removeprefix("hdfs://").partition(":")
    return Arrow(fs.HadoopFileSystem(host, int(port)), "/" + place["root"].partition("://")[2].partition("/")[2])


# ------------------------------------------------------------------------------------- what a process measures


def large(name: str, place: dict[str, Any]) -> float:
    found = client(name, place)
    return timed(lambda: found.table("large.parquet"))


def scan(name: str, place: dict[str, Any]) -> float:
    settings = dict(place["settings"])
    if name == "libhdfs":
        settings["hdfs.client"] = "libhdfs"
        os.environ["CLASSPATH"] = f"{place['conf']}:{os.environ['CLASSPATH']}"  # there is the nameservice
    table = FileSystemTables(settings).load(f"{place['local' if name == 'local' else 'root']}/scanned")
    table.storage.exists(table.location())
    return timed(table.scan().to_arrow)


def small(name: str, place: dict[str, Any]) -> float:
    found = client(name, place)

    def read() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(found.read, (f"small/{number}" for number in range(place["small"]))))

    return timed(read)


def write(name: str, place: dict[str, Any]) -> float:
    found, data = client(name, place), os.urandom(MIB) * place["write"]
    return timed(lambda: found.write(f"written/{uuid.uuid4()}", data))


def plan(name: str, place: dict[str, Any]) -> float:
    root = place["root"] if name == "ours" else place["local"]
    table = FileSystemTables(place["settings"]).load(f"{root}/planned")
    return timed(lambda: check(sum(1 for _ in table.scan().plan_files()) == place["plan"]))


def migration(name: str, place: dict[str, Any]) -> float:
    catalog = load_catalog("bench", uri=place["uri"], **place["settings"])
    return timed(lambda: check(migrate(catalog, f"bench.{name}").files == place["migrate"]))


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def peak() -> float:
    """The most memory of this process in MiB; what `getrusage` tells begins with its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def check(holds: bool) -> None:
    assert holds


PARTS: dict[str, tuple[Callable[[str, dict[str, Any]], float], tuple[str, ...]]] = {
    "large": (large, ("ours", "native", "libhdfs", "local")),
    "scan": (scan, ("ours", "libhdfs", "local")),
    "small": (small, ("ours", "native", "libhdfs", "local")),
    "write": (write, ("ours", "native", "libhdfs", "local")),
    "plan": (plan, ("ours", "local")),
    "migrate": (migration, ("ours", "local")),
}


# ------------------------------------------------------------------------------------------- what they work on


def numbers(mib: int) -> pa.Table:
    made = np.random.default_rng(1)
    return pa.table({f"c{each}": made.integers(0, 2**62, mib * MIB // 64) for each in range(8)})


def make_files(place: dict[str, Any], storage: ArrowStorage) -> None:
    local, root = Path(place["local"]), place["root"]
    for folder in ("small", "written"):
        (local / folder).mkdir(parents=True)
    storage.create(f"{root}/written/here", b"")
    if place["large"]:
        path = local / "large.parquet"
        rows = numbers(place["large"])
        pq.write_table(rows, path, compression="none", use_dictionary=False, row_group_size=2**20)
        with storage.open_output(f"{root}/large.parquet") as output, open(path, "rb") as file:
            while part := file.read(PIECE):
                output.write(part)
    for where in (root, place["local"]) if place["scan"] else ():
        rows = numbers(place["scan"])
        properties = {"write.parquet.compression-codec": "uncompressed"}
        FileSystemTables(place["settings"]).create(rows.schema, f"{where}/scanned", properties=properties).append(rows)
    data = os.urandom(20_000)

    def make(number: int) -> None:
        (local / "small" / str(number)).write_bytes(data)
        storage.create(f"{root}/small/{number}", data)

    in_parallel(make, place["small"])


def in_parallel(make: Callable[[int], None], count: int) -> None:
    """Closing a file on HDFS mostly waits for half a second: many are written at once."""
    with ThreadPoolExecutor(64) as pool:
        list(pool.map(make, range(count)))


def make_planned(root: str, count: int, settings: dict[str, str]) -> None:
    schema = pa.schema([(f"c{number}", pa.int64()) for number in range(PLANNED_COLUMNS)])
    table = FileSystemTables(settings).create(schema, f"{root}/planned")
    columns = range(1, PLANNED_COLUMNS + 1)
    for start in range(0, count, count // 10):
        files = []
        for number in range(start, start + count // 10):
            counts = dict.fromkeys(columns, 1000 + number)
            bound = {column: (number * column).to_bytes(8, "little") for column in columns}
            files.append(
                DataFile(
                    file_path=f"{root}/planned/data/{number:06d}.parquet",
                    file_format="PARQUET",
                    record_count=1000,
                    file_size_in_bytes=100_000,
                    partition=(),
                    value_counts=counts,
                    null_value_counts=dict.fromkeys(columns, 0),
                    column_sizes=counts,
                    lower_bounds=bound,
                    upper_bounds=bound,
                )
            )
        with table.transaction() as transaction:
            transaction.add_data_files(files)


def make_hive(warehouse: HiveWarehouse, name: str, root: str, count: int, storage: ArrowStorage) -> None:
    """A Hive table of as many equal files in a hundredth as many partitions."""
    made = warehouse.create(name, _COLUMNS, "k int", managed=False, location=f"{root}/hive")
    numbers = pa.array(range(100), pa.int64())
    seed = {**dict.fromkeys(_LONGS, numbers), "name": numbers.cast(pa.string()), "share": numbers.cast(pa.float64())}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(seed), sink)
    data = sink.getvalue().to_pybytes()
    in_parallel(lambda each: storage.create(f"{root}/hive/k={each // 100}/{each % 100:06d}_0", data), count)
    rows = []
    for number in range(count // 100):
        descriptor = ttypes.StorageDescriptor(**{**vars(made.table.sd), "location": f"{root}/hive/k={number}"})
        rows.append(
            ttypes.Partition([str(number)], "bench", name, 0, 0, descriptor, parameters={"transient_lastDdlTime": "0"})
        )
    warehouse.client._call("add_partitions", rows, subject="the table", repeatable=False)


# -------------------------------------------------------------------------------------------------- the run


def measured(part: str, name: str, place: dict[str, Any]) -> tuple[float, float] | None:
    command = [sys.executable, "-m", "tests.benchmarks.hdfs", "--measure", part, name]
    done = subprocess.run(command, input=json.dumps(place), capture_output=True, text=True, check=False)
    if done.returncode:
        say(f"  {name} failed: {(done.stderr.strip().splitlines() or ['?'])[-1][:300]}")
        return None
    seconds, most = json.loads(done.stdout.splitlines()[-1])
    return seconds, most


def tell(part: str, place: dict[str, Any], rounds: int) -> None:
    names = [name for name in PARTS[part][1] if name != "libhdfs" or place["libhdfs"]]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for _ in range(1 if part == "migrate" else rounds):
        for name in names:
            if (result := measured(part, name, place)) is not None:
                found[name].append(result)
    first = statistics.median(seconds for seconds, _ in found["ours"])
    for name, results in found.items():
        if results:
            seconds = statistics.median(each for each, _ in results)
            say(f"{part:8} {name:8} {seconds:8.2f} s {max(most for _, most in results):6.0f} MiB, ours is "
                f"{first / seconds:.2f} of it")  # fmt: skip


def main() -> None:
    """Makes the files and measures the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {"large": 512, "scan": 512, "small": 2000, "write": 64, "plan": 100_000, "migrate": 10_000}
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=sizes, default=list(sizes))
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        part, name = given.measure
        seconds = PARTS[part][0](name, json.load(sys.stdin))
        say(json.dumps([seconds, peak()]))
        return
    with tempfile.TemporaryDirectory() as temporary, HdfsCluster(Path(temporary) / "hdfs") as cluster:
        settings, root = cluster.settings, f"{cluster.nameservice}/bench"
        place = {name: getattr(given, name) if name in given.only else 0 for name in sizes}
        place |= {"settings": settings, "root": root, "address": cluster.address, "local": f"{temporary}/local"}
        place["conf"] = str(cluster.folder / "conf")
        place["libhdfs"] = bool(os.environ.get("ARROW_LIBHDFS_DIR") or os.environ.get("HADOOP_HOME"))
        storage = ArrowStorage(settings)
        make_files(place, storage)
        for where in (root, place["local"]) if place["plan"] else ():
            make_planned(where, place["plan"], settings)
        say("the files are made")
        for part in ("large", "scan", "small", "write", "plan"):
            if place[part]:
                tell(part, place, given.rounds)
        if place["migrate"]:
            with EmbeddedMetastore(warehouse=f"{root}/warehouse", properties=settings) as server:
                catalog = load_catalog("bench", uri=server.uri, **settings)
                catalog.create_namespace("bench")
                hive = HiveWarehouse(catalog, "bench")
                for name, where in (("ours", root), ("local", f"file:{place['local']}")):
                    make_hive(hive, name, where, place["migrate"], storage)
                tell("migrate", {**place, "uri": server.uri}, 1)


if __name__ == "__main__":
    main()
