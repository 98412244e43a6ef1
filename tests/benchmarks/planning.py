"""How long planning takes: a table of many files with column metrics, beside PyIceberg and Apache Iceberg's Java.

    python -m tests.benchmarks.planning [--files 100000] [--commits 10] [--folder /tmp/planning] [--only partition]
        [--columns 20] [--alone]

Java writes the table's metadata once (no data files: planning never opens them); then each plans it without a filter,
with a filter on metrics and with a filter on the partition, each in a fresh process that has loaded the table: the
first plan of the process with its processor time, and the median of the next. Prints seconds, and how many times as
long the peers take. Java is that of the interop tests (PySpark and the runtime in their cache).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from click import echo

from tests.benchmarks.spark_peers import run_java

FILTERS = {
    "no filter": None,
    "metrics": "c1 >= {low} and c1 < {high}",
    "partition": "part = {part}",
}
FILES_IN_PARTITION = 80
COLUMNS = 20


# ---------------------------------------------------------------------------------------------- the table


def build(folder: Path, files: int, commits: int, measured: int = COLUMNS) -> Path:
    """Let Apache Iceberg write the metadata of a v2 table; manifests of others keep unlike metrics otherwise.

    Args:
        folder: where the table is made, unless it is there.
        files: data files.
        commits: appends that name them.
        measured: how many of the twenty columns have metrics.

    Returns:
        The metadata's location.
    """
    made = folder / "location.txt"
    if not made.exists():
        sizes = ("--files", str(files), "--commits", str(commits), "--columns", str(measured))
        location = run_java("java_tables.py", str(folder), *sizes, "--in-partition", str(FILES_IN_PARTITION))
        made.write_text(location.strip().removeprefix("file:"), encoding="utf-8")
    return Path(made.read_text(encoding="utf-8"))


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
    arguments = [
        sys.executable,
        "-m",
        "tests.benchmarks.planning",
        "--measure",
        who,
        "--location",
        str(location),
        "--repeats",
        str(repeats),
    ]
    if text is not None:
        arguments += ["--filter", text]
    # Installed packages are compiled, whatever the environment says of writing that down.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(arguments, check=True, capture_output=True, text=True, env=environment)
    return dict(json.loads(done.stdout))


def java(location: Path, name: str, files: int, repeats: int) -> dict[str, Any]:
    """The same in a fresh JVM."""
    arguments = [str(location), "--repeats", str(repeats)]
    middle = files // 2
    if name == "metrics":
        arguments += ["--at-least", "c1", str(middle * 1000), "--less", "c1", str((middle + 101) * 1000)]
    elif name == "partition":
        arguments += ["--equal", "part", str(middle // FILES_IN_PARTITION)]
    found = json.loads(run_java("java_planning.py", *arguments))
    first, *rest = found["seconds"]
    return {
        "first": first,
        "cpu": found["processor"],
        "next": statistics.median(rest),
        "kept": found["kept"],
        "peak_mib": 0,
    }


def compare(location: Path, files: int, peers: bool, names: Sequence[str]) -> Iterator[str]:
    yield f"{'':12} {'':14} {'first':>8} {'its cpu':>8} {'next':>8} {'files':>8} {'MiB':>6}   ratio first / next"
    in_fresh_process("ours", location, filter_text("metrics", files), 1)  # not counted: it may compile modules
    for name in names:
        text = filter_text(name, files)
        mine = {who: in_fresh_process(who, location, text, 6) for who in ("ours", "ours as tasks")}
        for who, found in mine.items():
            yield row(name, who, found)
        theirs = {"PyIceberg": in_fresh_process("pyiceberg", location, text, 2)} if peers else {}
        # Java's virtual machine needs some plans before it is warm.
        if peers:
            theirs["Java"] = java(location, name, files, 15)
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
    parser.add_argument("--commits", type=int, default=10)
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
        echo(json.dumps(measure(given.measure, given.location, given.filter, given.repeats)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch) / "table"
        start = time.perf_counter()
        location = build(folder, given.files, given.commits, given.columns)
        made = time.perf_counter() - start
        echo(f"{given.files} files of {given.commits} commits, {given.columns} columns ({made:.1f} s to make)")
        names = [given.only] if given.only else list(FILTERS)
        for line in compare(location, given.files, not given.alone, names):
            echo(line)


if __name__ == "__main__":
    main()
