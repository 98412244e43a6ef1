"""This machine: versions, Java, memory, open files."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from hms_iceberg.errors import JavaNotFoundError
from hms_iceberg.hms.embedded.jars import find_java, java_version
from hms_iceberg.maintenance.doctor.diagnosis import Diagnosis, bad, doubtful, good

_PACKAGES = ("hms_iceberg", "pyarrow", "polars", "thrift", "hmsclient")
_LEAST_MEMORY = 2 << 30
_LEAST_FILES = 1024
_SPARK = ((4, 0), (5, 0))


def examine_machine() -> Iterator[Diagnosis]:
    """Looks at what is installed here, and at the limits of this process."""
    yield good("Python", f"{platform.python_version()} with {', '.join(map(_told, _PACKAGES))}")
    yield _spark()
    yield _java()
    yield _memory()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _LEAST_FILES:
        yield doubtful("open files", f"at most {soft} at once", f"ulimit -n {_LEAST_FILES * 8}")
    else:
        yield good("open files", "no limit" if soft == resource.RLIM_INFINITY else f"at most {soft} at once")


def _told(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} without a version"


def _spark() -> Diagnosis:
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return good("PySpark", "not installed, and needed for Spark only: pip install 'hms_iceberg[spark]'")
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if _SPARK[0] <= numbers < _SPARK[1]:
        return good("PySpark", found)
    return bad("PySpark", f"{found} is not supported", "pip install 'pyspark>=4.0,<5'")


def _java() -> Diagnosis:
    try:
        java = find_java()
        return good("Java", f"{java_version(java)} at {java}")
    except JavaNotFoundError as error:
        return doubtful("Java", "none that Spark and the embedded metastore can run on", str(error))


def _memory() -> Diagnosis:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return good("memory", "this system does not say")
    said = f"{total / (1 << 30):.1f} GiB, {os.cpu_count() or 1} processors"
    if total < _LEAST_MEMORY:
        return doubtful("memory", said, "Give it 2 GiB or more, or leave compaction to another machine.")
    return good("memory", said)
