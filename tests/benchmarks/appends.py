"""Changes of large tables: what a fast append costs beside many manifests, and a removal from one large manifest.

    python -m tests.benchmarks.appends [--manifests 10 10000] [--entries 100000] [--repeats 20]

Metastore and storage are in memory, so that nothing but this package's own work is timed. Seconds are of the processor,
so that other load on the machine counts little; the median of the repeats.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from click import echo

from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.snapshots_and_refs import Operation, new_snapshot_id
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from hms_iceberg.updates.machinery.new_snapshot import SnapshotDraft, SummaryBuilder, write_snapshot
from hms_iceberg.updates.rows.append import FastAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles
from tests.support.tables import BY_CITY, World, data_file, metadata

COLUMNS = range(1, 21)


def described(number: int) -> DataFile:
    """A data file with metrics of twenty columns."""
    counts = dict.fromkeys(COLUMNS, 1000 + number)
    lower = {column: (number * column).to_bytes(8, "little") for column in COLUMNS}
    upper = {column: (number * column + 9).to_bytes(8, "little") for column in COLUMNS}
    return data_file(
        number,
        number + 9,
        f"c{number % 50}",
        value_counts=counts,
        null_value_counts=dict.fromkeys(COLUMNS, 0),
        column_sizes=counts,
        lower_bounds=lower,
        upper_bounds=upper,
    )


def timed(work: Callable[[], object]) -> float:
    """Seconds of the processor."""
    began = time.process_time()
    work()
    return time.process_time() - began


class ManyManifests:
    """The manifests of a table again and again under other names, as the content of its next snapshot."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.snapshot_id = new_snapshot_id()

    def validate(self, *_: object) -> None:
        """Nothing."""

    def apply(self, base: object, workspace: object) -> object:
        """The metadata with the snapshot."""
        (one,) = manifest_list_of(base.current_snapshot(), workspace)  # type: ignore[attr-defined, arg-type]
        names: Iterator[str] = (f"{one.manifest_path}-{number}" for number in range(self.count - 1))
        manifests = [one, *(replace(one, manifest_path=name) for name in names)]
        summary = SummaryBuilder(base).build({})  # type: ignore[arg-type]
        draft = SnapshotDraft(self.snapshot_id, Operation.REPLACE, manifests, summary)
        return write_snapshot(base, draft, workspace)  # type: ignore[arg-type]


def appends(manifests: int, repeats: int) -> float:
    """The median fast append to a table of so many manifests."""
    world = World.with_table(metadata(spec=BY_CITY))
    world.append(described(0))
    world.commit(ManyManifests(manifests))  # type: ignore[arg-type]
    files = [described(number) for number in range(1, repeats + 1)]
    seconds = []
    for file in files:
        transaction = world.begin()
        transaction.add(FastAppend((file,)), preview=False)
        seconds.append(timed(transaction.commit))
    found = len(manifest_list_of(world.version().metadata.current_snapshot(), world.storage))
    assert found == manifests + repeats, found
    return statistics.median(seconds)


def removals(entries: int, repeats: int) -> float:
    """The median removal of ten files out of one manifest of so many."""
    world = World.with_table(metadata(spec=BY_CITY, properties={"commit.manifest.target-size-bytes": str(1 << 30)}))
    files = [described(number) for number in range(entries)]
    world.append(*files)
    seconds = []
    for start in range(repeats):
        transaction = world.begin()
        transaction.add(DeleteFiles(tuple(files[start :: entries // 10][:10])), preview=False)
        seconds.append(timed(transaction.commit))
    return statistics.median(seconds)


def main() -> int:
    """Prints one line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifests", type=int, nargs="*", default=[10, 10_000])
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    for count in options.manifests:
        echo(f"fast append beside {count:,} manifests: {appends(count, options.repeats) * 1000:.2f} ms")
    if options.entries:
        seconds = removals(options.entries, min(3, options.repeats))
        echo(f"10 files removed from a manifest of {options.entries:,}: {seconds:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
