"""How long planning takes: a table of many files with column metrics, beside PyIceberg and Apache Iceberg's Java.

    python tests/benchmarks/planning.py [--files 100000] [--manifests 50] [--folder /tmp/planning] [--only partition]
        [--columns 20] [--alone]

Builds the table's metadata once (no data files: planning never opens them), then plans it without a filter, with a
filter on metrics and with a filter on the partition, each in a fresh process that has loaded the table: the first plan
of the process with its processor time, and the median of the next five. Prints seconds, and how many times as long the
peers take. Java is that of the interop tests (PySpark and the runtime in their cache); it is left out where it cannot
be had.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROWS = 100_000
FILTERS = {
    "no filter": None,
    "metrics": "c1 >= {low} and c1 < {high}",
    "partition": "part = {part}",
}
FILES_IN_PARTITION = 80
COLUMNS = 20


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


# ---------------------------------------------------------------------------------------------- the table


def build(folder: Path, files: int, manifests: int, measured: int = COLUMNS) -> Path:
    """Write metadata JSON, manifest list and manifests of a v2 table, with as many processes as there are processors.

    Args:
        folder: where the table is made, unless it is there.
        files: data files.
        manifests: manifests that name them.
        measured: how many of the twenty columns have metrics.

    Returns:
        The metadata's location.
    """
    from hms_iceberg.spec.data_types import DateType, DoubleType, IntegerType, LongType, NestedField, StringType
    from hms_iceberg.spec.manifests.manifest_avro import encode_manifest_list
    from hms_iceberg.spec.metadata.metadata_changes import add_snapshot, new_table_metadata
    from hms_iceberg.spec.metadata.metadata_json import metadata_to_json
    from hms_iceberg.spec.partition_transforms import IdentityTransform
    from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
    from hms_iceberg.spec.schema import Schema
    from hms_iceberg.spec.snapshots_and_refs import Snapshot

    target = folder / "metadata" / "00001.metadata.json"
    if target.exists():
        return target
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    kinds: list[Any] = [LongType()] * 8 + [DoubleType()] * 6 + [StringType()] * 3 + [DateType()] * 3
    columns = [NestedField(n, f"c{n}", kind) for n, kind in enumerate(kinds, 1)]
    schema = Schema(*columns, NestedField(21, "part", IntegerType()))
    spec = PartitionSpec(PartitionField(21, 1000, IdentityTransform(), "part"))
    metadata = new_table_metadata(schema, spec, location=str(folder), properties={}, format_version=2)
    per_manifest = -(-files // manifests)
    numbers = [range(start, min(files, start + per_manifest)) for start in range(0, files, per_manifest)]
    write = partial(write_manifest, folder, metadata.schema(), metadata.spec(), measured)
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as processes:
        listed = list(processes.map(write, numbers))
    manifest_list = folder / "metadata" / "snap-1.avro"
    manifest_list.write_bytes(encode_manifest_list(listed, 2, 1, None, 1)[0])
    snapshot = Snapshot(
        snapshot_id=1,
        sequence_number=1,
        timestamp_ms=metadata.last_updated_ms + 1,
        manifest_list=str(manifest_list),
        summary={"operation": "append"},
        schema_id=metadata.schema().schema_id,
    )
    target.write_bytes(metadata_to_json(add_snapshot(metadata, snapshot)))
    return target


def write_manifest(folder: Path, schema: Any, spec: Any, measured: int, numbers: range) -> Any:
    """A manifest of the files of these numbers."""
    from hms_iceberg.spec.manifests.manifest_avro import encode_manifest
    from hms_iceberg.spec.manifests.manifest_values import ManifestContent, ManifestEntry, ManifestEntryStatus

    path = folder / "metadata" / f"{numbers.start:09}-m0.avro"
    entries = (ManifestEntry(ManifestEntryStatus.ADDED, 1, None, None, data_file(folder, n, measured)) for n in numbers)
    data, manifest = encode_manifest(entries, schema, spec, ManifestContent.DATA, 2, 1, str(path))
    path.write_bytes(data)
    return manifest


def data_file(folder: Path, number: int, measured: int = COLUMNS) -> Any:
    from hms_iceberg.spec.manifests.manifest_values import DataFile

    columns = range(1, COLUMNS + 1, COLUMNS // measured)
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for column in columns:
        low, high = bounds(column, number)
        lower[column], upper[column] = low, high
    partition = number // FILES_IN_PARTITION
    return DataFile(
        file_path=f"{folder}/data/part={partition}/00000-{number}-3f0c6a4e-1f5c-4f0e-a5b1-9d2c3e4f5a6b-00001.parquet",
        file_format="PARQUET",
        record_count=ROWS,
        file_size_in_bytes=8_000_000 + number,
        partition=(partition,),
        column_sizes={column: 400_000 + number * column % 1000 for column in columns},
        value_counts=dict.fromkeys(columns, ROWS),
        null_value_counts=dict.fromkeys(columns, 0),
        nan_value_counts={column: 0 for column in columns if 9 <= column <= 14},
        lower_bounds=lower,
        upper_bounds=upper,
        split_offsets=(4,),
        sort_order_id=0,
    )


def bounds(column: int, number: int) -> tuple[bytes, bytes]:
    if column <= 8:
        return struct.pack("<q", number * 1000), struct.pack("<q", number * 1000 + 999)
    if column <= 14:
        return struct.pack("<d", number * 1.5), struct.pack("<d", number * 1.5 + 10)
    if column <= 17:
        return b"name-%012d" % number, b"name-%012d" % (number + 5)
    return struct.pack("<i", number % 3650), struct.pack("<i", number % 3650 + 2)


def filter_text(name: str, files: int) -> str | None:
    text = FILTERS[name]
    middle = files // 2
    if text is None:
        return None
    return text.format(low=middle * 1000, high=(middle + 101) * 1000, part=middle // FILES_IN_PARTITION)


# ------------------------------------------------------------------------------------------- the measurement


def ours(location: str, text: str | None, tasks: bool) -> Callable[[], int]:
    from hms_iceberg.table import StaticTable

    table = StaticTable.from_metadata(location)

    def plan() -> int:
        scan = table.scan(text)
        return sum(1 for _ in scan.plan_files()) if tasks else len(scan.plan())

    return plan


def pyiceberg(location: str, text: str | None) -> Callable[[], int]:
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(location)
    return lambda: len(list((table.scan() if text is None else table.scan(row_filter=text)).plan_files()))


def measure(who: str, location: str, text: str | None, repeats: int) -> dict[str, Any]:
    plan = pyiceberg(location, text) if who == "pyiceberg" else ours(location, text, who == "ours as tasks")
    seconds = []
    kept = 0
    cpu = 0.0
    before = time.process_time()
    for _ in range(repeats):
        start = time.perf_counter()
        kept = plan()
        seconds.append(time.perf_counter() - start)
        cpu = time.process_time() - before if len(seconds) == 1 else cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rest = seconds[1:] or seconds
    return {"first": seconds[0], "cpu": cpu, "next": statistics.median(rest), "kept": kept, "peak_mib": round(peak)}


def in_fresh_process(who: str, location: Path, text: str | None, repeats: int) -> dict[str, Any]:
    arguments = [sys.executable, __file__, "--measure", who, "--location", str(location), "--repeats", str(repeats)]
    if text is not None:
        arguments += ["--filter", text]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def java(location: Path, name: str, files: int, repeats: int) -> dict[str, Any] | None:
    """The same in a fresh JVM; None where Java's libraries are not there."""
    cache = Path(os.environ.get("HMS_ICEBERG_INTEROP_CACHE", Path.home() / ".cache" / "hms_iceberg" / "interop"))
    jars, homes = sorted(cache.glob("iceberg-spark-runtime-*.jar")), sorted(cache.glob("pyspark-*/.complete"))
    if not jars or not homes:
        return None
    home = homes[-1].parent
    script = Path(__file__).with_name("java_planning.py")
    arguments = [sys.executable, str(script), str(jars[-1]), str(location), "--repeats", str(repeats)]
    middle = files // 2
    if name == "metrics":
        arguments += ["--at-least", "c1", str(middle * 1000), "--less", "c1", str((middle + 101) * 1000)]
    elif name == "partition":
        arguments += ["--equal", "part", str(middle // FILES_IN_PARTITION)]
    environment = {**os.environ, "PYTHONPATH": str(home), "SPARK_HOME": str(home / "pyspark")}
    done = subprocess.run(arguments, check=True, capture_output=True, text=True, env=environment)
    found = json.loads(done.stdout)
    first, *rest = found["seconds"]
    return {"first": first, "cpu": 0.0, "next": statistics.median(rest), "kept": found["kept"], "peak_mib": 0}


def compare(location: Path, files: int, peers: bool, names: Sequence[str]) -> Iterator[str]:
    yield f"{'':12} {'':14} {'first':>8} {'its cpu':>8} {'next':>8} {'files':>8} {'MiB':>6}   ratio first / next"
    for name in names:
        text = filter_text(name, files)
        mine = {who: in_fresh_process(who, location, text, 6) for who in ("ours", "ours as tasks")}
        for who, found in mine.items():
            yield row(name, who, found)
        theirs = {"PyIceberg": in_fresh_process("pyiceberg", location, text, 2)} if peers else {}
        # Java's virtual machine needs some plans before it is warm.
        in_java = java(location, name, files, 15) if peers else None
        if in_java is not None:
            theirs["Java"] = in_java
        for who, found in theirs.items():
            assert found["kept"] == mine["ours"]["kept"], (found, mine)
            ratios = [
                f"{found['first'] / each['first']:.1f} / {found['next'] / each['next']:.1f}" for each in mine.values()
            ]
            yield row(name, who, found) + "; ".join(ratios)


def row(name: str, who: str, found: dict[str, Any]) -> str:
    seconds = " ".join(f"{found[each]:8.3f}" for each in ("first", "cpu", "next"))
    return f"{name:12} {who:14} {seconds} {found['kept']:8} {found['peak_mib']:6}   "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--manifests", type=int, default=50)
    parser.add_argument("--columns", type=int, default=COLUMNS, help="how many have metrics")
    parser.add_argument("--folder", type=Path, help="where the table is kept for the next run")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--only", choices=FILTERS, help="one of the filters")
    parser.add_argument("--measure")
    parser.add_argument("--location")
    parser.add_argument("--filter")
    parser.add_argument("--repeats", type=int, default=1)
    given = parser.parse_args()
    if given.measure:
        say(json.dumps(measure(given.measure, given.location, given.filter, given.repeats)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch) / "table"
        start = time.perf_counter()
        location = build(folder, given.files, given.manifests, given.columns)
        made = time.perf_counter() - start
        say(f"{given.files} files in {given.manifests} manifests, {given.columns} columns ({made:.1f} s to make)")
        names = [given.only] if given.only else list(FILTERS)
        for line in compare(location, given.files, not given.alone, names):
            say(line)


if __name__ == "__main__":
    main()
