"""Other versions of PySpark beside the one that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hms_iceberg.spark.spark_versions import release

CACHE = Path(os.environ.get("HMS_ICEBERG_INTEROP_CACHE", Path.home() / ".cache" / "hms_iceberg" / "interop"))


def pyspark_home(wanted: str) -> Path:
    """A folder with one version, fetched with pip once; an error of ``subprocess`` where it cannot be had."""
    home = CACHE / f"pyspark-{wanted}"
    if not (home / ".complete").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(home), "--upgrade"]
        subprocess.run([*command, f"pyspark=={wanted}"], check=True, capture_output=True, timeout=900)
        (home / ".complete").touch()
    return home


def environment(home: Path) -> dict[str, str]:
    """The environment of a process that runs the PySpark of such a folder."""
    own = {name: value for name, value in os.environ.items() if name not in ("SPARK_CONF_DIR", "SPARK_HOME")}
    return {**own, "PYTHONPATH": os.pathsep.join((str(home), os.getcwd()))}


def spark_release() -> tuple[int, int]:
    """That of the PySpark that this process runs; one after all others where there is none."""
    try:
        return release(version("pyspark"))
    except PackageNotFoundError:
        return (sys.maxsize, 0)
