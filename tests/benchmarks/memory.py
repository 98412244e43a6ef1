"""Peak memory: of plans of very many files, and of streams of tables that are much larger than memory may be.

    python -m tests.benchmarks.memory plan [--files 1000000] [--commits 100] [--folder /tmp/planning-1m]
        [--columns 20] [--only plan_tasks plan_few] [--bound 4096] [--cache 512]
    python -m tests.benchmarks.memory stream [--gib 10] [--copies 40] [--deletes] [--format parquet] [--text 22]
    python -m tests.benchmarks.memory append [--gib 2.2] [--partitions 200 20000] [--format parquet]

Each measurement is a process of its own; figures are its peak resident memory, interpreter and libraries included.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from click import echo

MIB = 1024 * 1024
_BYTES_A_ROW = 66
_TEXT_BYTES = 22
_NUMBERED = re.compile(r"/00000-(\d+)-")


# ---------------------------------------------------------------------------------------------- what is measured


def plan_whole(location: str) -> int:
    from hms_iceberg.table import StaticTable

    return len(StaticTable.from_metadata(location).scan().plan())


def plan_tasks(location: str) -> int:
    """Tasks one by one, each looked at and let go."""
    from hms_iceberg.table import StaticTable

    return sum(1 for task in StaticTable.from_metadata(location).scan().plan_files() if task.file.record_count)


def plan_groups(location: str) -> int:
    from hms_iceberg.table import StaticTable

    return sum(len(group.tasks) for group in StaticTable.from_metadata(location).scan().plan_tasks())


def plan_filtered(location: str) -> int:
    from hms_iceberg.table import StaticTable

    return sum(1 for _ in StaticTable.from_metadata(location).scan("c1 >= 1000000 and c9 < 1e9").plan_files())


def plan_few(location: str) -> int:
    """Metrics leave a hundred files, whose number says nothing of the partition."""
    from hms_iceberg.table import StaticTable

    condition = "c1 >= 500000000 and c1 < 500101000"
    return sum(1 for _ in StaticTable.from_metadata(location).scan(condition).plan_files())


def count(location: str) -> int:
    """Rows behind a condition that metrics decide for every file."""
    from hms_iceberg.table import StaticTable

    return StaticTable.from_metadata(location).scan("c1 >= 500000000").count()


def stream(location: str) -> int:
    """All rows, batch by batch."""
    from hms_iceberg.table import StaticTable

    reader = StaticTable.from_metadata(location).scan().to_arrow_batch_reader()
    return sum(batch.num_rows for batch in reader)


def stream_slowly(location: str) -> int:
    """All rows, by a consumer that is slower than the scan, so that everything that may wait does."""
    from hms_iceberg.table import StaticTable

    rows = 0
    for number, batch in enumerate(StaticTable.from_metadata(location).scan().to_arrow_batch_reader()):
        rows += batch.num_rows
        time.sleep(0.2 if number % 50 == 0 else 0)
    return rows


def check(location: str) -> int:
    """A check that looks for every file."""
    from hms_iceberg.maintenance import check_table
    from hms_iceberg.table import StaticTable
    from hms_iceberg.transaction.workspace import read_version

    storage = _full_storage()
    report = check_table(StaticTable(("t",), read_version(location, storage), storage))
    assert report.ok, str(report)[:1000]
    return report.files


def repair(location: str) -> int:
    """The plan of a repair of a table that lacks nothing."""
    from hms_iceberg.maintenance.repair.repair_plan import plan_repair
    from hms_iceberg.metastore import TablePointer

    plan = plan_repair(TablePointer(("db", "t"), location), _full_storage())
    assert plan.is_sound, str(plan)[:1000]
    return 0 if plan.metadata is None else len(plan.metadata.snapshots)


def _full_storage() -> Any:
    """A store that says of each data file that it has the size that the builder gave it."""
    from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage

    class Full(ArrowStorage):
        def length(self, location: str) -> int:
            found = _NUMBERED.search(location)
            return super().length(location) if found is None else 8_000_000 + int(found[1])

    return Full({})


def append(description: str) -> int:
    """Streams mixed rows of many partitions into a new table; the text is folder, format, partitions and GiB."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from hms_iceberg.table import FileSystemTables

    folder, file_format, partitions, gib = description.split(";")
    random, at_once = np.random.default_rng(1), 100_000
    schema = pa.schema([("p", pa.int64()), ("id", pa.int64()), ("x", pa.float64()), ("text", pa.string())])
    count = int(float(gib) * 2**30 / at_once / 50)

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(count):
            ids = pa.array(np.arange(number * at_once, (number + 1) * at_once))
            text = pc.binary_join_element_wise("comment number", ids.cast(pa.string()), " ")
            numbers = [pa.array(random.integers(0, int(partitions), at_once)), ids, pa.array(random.random(at_once))]
            yield pa.record_batch([*numbers, text], schema=schema)

    table = FileSystemTables().create(schema, folder, properties={"write.format.default": file_format})
    with table.update_spec() as spec:
        spec.add_identity("p")
    table.append(pa.RecordBatchReader.from_batches(schema, batches()))
    rows = sum(task.file.record_count for task in table.scan().plan_files())
    assert rows == count * at_once, f"{rows} rows of {count * at_once}"
    return rows


_PLANS = (plan_whole, plan_tasks, plan_groups, plan_filtered, plan_few, count, check, repair)
PLANS = tuple(each.__name__ for each in _PLANS)
MEASURED: dict[str, Callable[[str], int]] = {each.__name__: each for each in (*_PLANS, stream, stream_slowly, append)}


def measure(name: str, location: str, cache: int | None = None) -> dict[str, Any]:
    """Does one of `MEASURED`, with so many MiB of manifests in the cache of the process; None leaves its bound."""
    from hms_iceberg.scan.manifests.cache import cache_of

    if cache is not None:
        cache_of(None).resize(cache * MIB)
    start = time.perf_counter()
    found = MEASURED[name](location)
    seconds = time.perf_counter() - start
    return {"found": found, "seconds": seconds, "peak_mib": round(peak_bytes() / MIB)}


def peak_bytes(process: int | str = "self") -> int:
    """A process's peak of resident memory; the kernel's other figure counts that of its parent as well."""
    status = Path(f"/proc/{process}/status")
    for line in status.read_text().splitlines() if status.exists() else ():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_fresh_process(name: str, location: str | Path, cache: int | None = None) -> dict[str, Any]:
    """One measurement: what was found, seconds, and peak memory in MiB."""
    arguments = [sys.executable, "-m", "tests.benchmarks.memory", "measure", name, str(location)]
    arguments += [] if cache is None else ["--cache", str(cache)]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


# ---------------------------------------------------------------------------------------------------- the tables


def large_table(
    folder: Path,
    decoded: int,
    copies: int,
    deletes: bool,
    file_format: str = "parquet",
    text_bytes: int = _TEXT_BYTES,
) -> str:
    """A table of so many decoded bytes: one file under many names, so that it needs little room on disk.

    Args:
        folder: where the table is made.
        decoded: bytes of all rows as Arrow columns, about.
        copies: number of files.
        deletes: whether each file has a deletion vector of one row in fifty.
        file_format: parquet, orc or avro.
        text_bytes: how long the text column is.

    Returns:
        The metadata's location.
    """
    import numpy as np
    import pyarrow as pa

    from hms_iceberg.table import FileSystemTables

    random = np.random.default_rng(1)
    rows = decoded // copies // (_BYTES_A_ROW - _TEXT_BYTES + text_bytes)
    at_once = min(rows, 1 << 20)
    text = np.char.ljust(
        np.char.add("comment number ", random.integers(0, 10_000_000, 100_000).astype(str)), text_bytes, "."
    )
    columns = {
        "id": pa.array(np.arange(at_once)),
        **{f"x{n}": pa.array(random.integers(0, 50_000, at_once) / 7) for n in range(3)},
        "text": pa.array(text).take(pa.array(random.integers(0, 100_000, at_once))),
        "flag": pa.array(random.integers(0, 2, at_once).astype(np.bool_)),
    }
    (data,) = pa.table(columns).to_batches()
    properties = {
        "format-version": "3",
        "write.format.default": file_format,
        "write.target-file-size-bytes": str(decoded),
    }
    table = FileSystemTables().create(data.schema, str(folder), properties=properties)
    pieces = (data.slice(0, rows - start) for start in range(0, rows, at_once))
    table.append(pa.RecordBatchReader.from_batches(data.schema, pieces))
    (file,) = [task.file for task in table.scan().plan_files()]
    names = []
    for number in range(1, copies):
        name = file.file_path.replace(f".{file_format}", f"-{number}.{file_format}")
        os.link(file.file_path.removeprefix("file:"), name.removeprefix("file:"))
        names.append(name)
    with table.new_fast_append() as append:
        for name in names:
            append.append_file(replace(file, file_path=name, first_row_id=None))
    if deletes:
        with table.new_row_delta() as delta:
            delta.delete_positions({name: range(0, rows, 50) for name in [file.file_path, *names]})
    return table.metadata_location


def report(name: str, location: str | Path, bound: int, cache: int | None = None) -> None:
    found = in_fresh_process(name, location, cache)
    echo(f"{name:14} {found['found']:>12,} {found['seconds']:8.1f} s {found['peak_mib']:6} MiB of {bound} MiB")
    assert found["peak_mib"] <= bound, f"{name} takes {found['peak_mib']} MiB, more than {bound}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    plans = commands.add_parser("plan")
    plans.add_argument("--files", type=int, default=1_000_000)
    plans.add_argument("--commits", type=int, default=100)
    plans.add_argument("--folder", type=Path, help="where the table is kept for the next run")
    plans.add_argument("--columns", type=int, default=20, help="how many have metrics")
    plans.add_argument("--only", nargs="+", choices=PLANS, default=PLANS)
    plans.add_argument("--bound", type=int, default=4096, help="MiB that each may take")
    streams = commands.add_parser("stream")
    streams.add_argument("--gib", type=float, default=10)
    streams.add_argument("--copies", type=int, default=40)
    streams.add_argument("--deletes", action="store_true")
    streams.add_argument("--format", choices=("parquet", "orc", "avro"), default="parquet")
    streams.add_argument("--text", type=int, default=_TEXT_BYTES, help="length of the text column")
    appends = commands.add_parser("append")
    appends.add_argument("--gib", type=float, default=2.2)
    appends.add_argument("--partitions", type=int, nargs="+", default=(200, 20_000))
    appends.add_argument("--format", choices=("parquet", "orc", "avro"), default="parquet")
    one = commands.add_parser("measure")
    one.add_argument("name", choices=MEASURED)
    one.add_argument("location")
    for each in (plans, one):
        each.add_argument("--cache", type=int, help="MiB of decoded manifests that are kept; the default if left out")
    given = parser.parse_args()
    if given.command == "measure":
        echo(json.dumps(measure(given.name, given.location, given.cache)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        if given.command == "plan":
            from tests.benchmarks.planning import build

            location = build(given.folder or Path(scratch) / "table", given.files, given.commits, given.columns)
            for name in given.only:
                report(name, location, given.bound, given.cache)
        elif given.command == "append":
            for partitions in given.partitions:
                report("append", f"{scratch}/{partitions};{given.format};{partitions};{given.gib}", 1024)
        else:
            size = int(given.gib * 2**30)
            table = Path(scratch) / "table"
            location = Path(large_table(table, size, given.copies, given.deletes, given.format, given.text))
            for name in ("stream", "stream_slowly"):
                report(name, location, 1024)


if __name__ == "__main__":
    main()
