"""How far things go: each wall as sizes, seconds, memory, and the exponent of both against the size.

    python -m tests.benchmarks.scale [--only NAME ...] [--sizes 500 1000 2000]

Each size is measured in a process of its own, which makes what is measured first. Memory is the process's peak beyond
what it had before. An exponent of 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise

from click import echo

from tests.support.scale_walls import WALLS, exponent


def measure(name: str, size: int) -> dict[str, float]:
    """Seconds, processor seconds and MiB that one size takes."""
    WALLS[name].make(2)()  # what is imported and started does not count
    work = WALLS[name].make(size)
    before = peak_mib()
    start, processor = time.perf_counter(), time.process_time()
    work()
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - processor,
        "mib": max(1.0, peak_mib() - before),
    }


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_fresh_process(name: str, size: int) -> dict[str, float]:
    arguments = [sys.executable, "-m", "tests.benchmarks.scale", "--measure", name, str(size)]
    return dict(json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout))


def draw(name: str, sizes: Sequence[int]) -> None:
    echo(f"{name}: {WALLS[name].what}")
    found = {size: in_fresh_process(name, size) for size in sizes}
    for size, each in found.items():
        echo(f"  {size:>9,} {each['seconds']:9.2f} s {each['processor']:9.2f} s cpu {each['mib']:9.0f} MiB")
    for one, other in pairwise(sizes):
        powers = [exponent((one, other), (found[one][key], found[other][key])) for key in ("processor", "mib")]
        echo(f"  {one:,} to {other:,}: time to the power of {powers[0]:.2f}, memory {powers[1]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=WALLS, default=list(WALLS))
    parser.add_argument("--sizes", nargs="*", type=int)
    parser.add_argument("--measure", nargs=2)
    given = parser.parse_args()
    if given.measure:
        echo(json.dumps(measure(given.measure[0], int(given.measure[1]))))
        return
    echo(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    for name in given.only:
        draw(name, given.sizes or WALLS[name].sizes)


if __name__ == "__main__":
    main()
