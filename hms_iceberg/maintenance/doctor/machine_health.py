"""Are this machine and the storage in order?"""

from __future__ import annotations

import os
import platform
import resource
import time
import uuid
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.arrow.storage.hdfs.opening import HDFS_SCHEMES
from hms_iceberg.errors import FileAlreadyExistsError, IcebergError, JavaNotFoundError
from hms_iceberg.hms.embedded.jars import find_java, java_version
from hms_iceberg.maintenance.doctor.diagnosis import Diagnosis, bad, doubtful, good
from hms_iceberg.storage import Storage

_PACKAGES = ("hms_iceberg", "pyarrow", "polars", "thrift", "hmsclient")
_LEAST_MEMORY = 2 << 30
_LEAST_FILES = 1024
_SPARK = ((4, 0), (5, 0))


def examine_machine() -> Iterator[Diagnosis]:
    """Checks what is installed on this machine, and the limits of this process."""
    yield good("Python", f"{platform.python_version()} with {', '.join(map(_with_version, _PACKAGES))}")
    yield _spark()
    yield _java()
    yield _memory()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _LEAST_FILES:
        yield doubtful("open files", f"at most {soft} at once", f"ulimit -n {_LEAST_FILES * 8}")
    else:
        yield good("open files", "no limit" if soft == resource.RLIM_INFINITY else f"at most {soft} at once")


def _with_version(package: str) -> str:
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


_CLOCK = 5.0


def examine_storage(storage: Storage, folder: str) -> Iterator[Diagnosis]:
    """Writes a small file into a new folder, reads, lists and deletes it, until a step fails; errors are diagnoses."""
    own = f"{folder.rstrip('/')}/_hms_iceberg_doctor_{uuid.uuid4().hex[:12]}"
    location, content = f"{own}/file", b"hms-iceberg doctor"
    try:
        storage.create(location, content)
    except (IcebergError, OSError) as error:
        yield bad("storage", f"nothing can be written below {folder}", str(error))
        return
    try:
        yield from _examine_file(storage, own, location, content)
    finally:
        try:
            storage.delete(location)
            _remove_folder(storage, own)
        except (IcebergError, OSError) as error:
            yield bad("storage", f"nothing can be deleted below {folder}", str(error))


def _remove_folder(storage: Storage, folder: str) -> None:
    place = parse_location(folder)
    if place.is_local:
        os.rmdir(place.path)
    elif place.scheme in HDFS_SCHEMES and isinstance(storage, ArrowStorage):  # objects have no empty folders
        filesystem, path = storage.filesystem(folder)
        filesystem.delete_dir(path)


def _examine_file(storage: Storage, own: str, location: str, content: bytes) -> Iterator[Diagnosis]:
    now = time.time()
    try:
        if storage.read(location) != content:
            yield bad("storage", f"{location} has not what was written into it", "Look at what stands between.")
            return
        listed = list(storage.list(own))
    except (IcebergError, OSError) as error:
        yield bad("storage", "what was written cannot be read or listed", str(error))
        return
    yield good("storage", f"files can be written, read and listed below {own.rpartition('/')[0]}")
    try:
        storage.create(location, content)
    except FileAlreadyExistsError:
        yield good("overwriting", "a file that is there is not replaced")
    except (IcebergError, OSError) as error:
        yield doubtful("overwriting", "it cannot be told whether files are replaced", str(error))
    else:
        remedy = "Names of metadata files are unique, so that nothing is lost; other writers may be less careful."
        yield doubtful("overwriting", "a file that is there is replaced without a word", remedy)
    for file in listed:
        ahead = file.modified_ms / 1000 - now
        if file.modified_ms and abs(ahead) > _CLOCK:
            remedy = "Set both clocks by NTP: remove-orphan-files judges files by their age."
            yield doubtful("storage's clock", f"{ahead:+.0f} s against this machine's", remedy)
        elif file.modified_ms:
            yield good("storage's clock", "that of this machine")
