"""Finds PySpark's jars, which the embedded metastore runs on, and a Java that is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from hms_iceberg.errors import JavaNotFoundError, MissingDependencyError

MINIMUM_JAVA = 17
EMBEDDED = "The embedded metastore"

# Never used by a metastore; fewer jars make a faster start.
_UNUSED = ("spark-", "scala-", "kubernetes-", "arrow-", "netty-", "breeze", "mllib", "jersey-", "rocksdbjni", "spire")

_INSTALL_JAVA = (
    f"Install Java {MINIMUM_JAVA} or newer (for instance `apt install openjdk-17-jre-headless` or "
    "`brew install openjdk@17`) and set JAVA_HOME to it."
)


def find_metastore_jars() -> list[Path]:
    """The jars of a Hive Metastore 2.3 in the installed PySpark (not imported), in the order of the class path."""
    folders = []
    spec = find_spec("pyspark")
    if spec is not None and spec.submodule_search_locations:
        folders = [Path(folder) / "jars" for folder in spec.submodule_search_locations]
    if os.environ.get("SPARK_HOME"):
        folders.append(Path(os.environ["SPARK_HOME"]) / "jars")
    for folder in folders:
        jars = sorted(folder.glob("*.jar"))
        if any(jar.name.startswith("hive-metastore-") for jar in jars):
            return [jar for jar in jars if not jar.name.startswith(_UNUSED)]
    looked = ", ".join(str(folder) for folder in folders) or "nowhere, as no package `pyspark` is installed"
    raise MissingDependencyError(
        "The embedded metastore needs the jars of PySpark, and no hive-metastore-*.jar was found "
        f"(looked in: {looked}). Run `pip install 'hms_iceberg[spark]'`."
    )


def find_java(user: str = EMBEDDED, minimum: int = MINIMUM_JAVA) -> Path:
    """The Java of JAVA_HOME, or else the first on PATH, as Spark's launcher does; `user` runs on it, for errors."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home) / "bin" / "java" if home else None
    if found is None:
        on_path = shutil.which("java")
        if on_path is None:
            raise JavaNotFoundError(
                f"{user} needs Java, and there is no `java` on PATH and no JAVA_HOME. {_INSTALL_JAVA}"
            )
        found = Path(on_path)
    elif not found.is_file():
        raise JavaNotFoundError(
            f"{user} needs Java, and JAVA_HOME is {home!r}, but {found} does not exist. {_INSTALL_JAVA}"
        )
    version = java_version(found)
    if version < minimum:
        raise JavaNotFoundError(f"{user} needs Java {minimum} or newer, and {found} is Java {version}. {_INSTALL_JAVA}")
    return found


def java_version(java: Path) -> int:
    """The feature release of a Java (8, 11, 17 ...), from its `release` file if it has one."""
    release = java.resolve().parent.parent / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    match = re.search(r'JAVA_VERSION="(\d+)(?:\.(\d+))?', text)
    if match is None:
        try:
            shown = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            raise JavaNotFoundError(f"{java} cannot be run: {error}. {_INSTALL_JAVA}") from error
        match = re.search(r'version "(\d+)(?:\.(\d+))?', shown.stderr + shown.stdout)
        if match is None:
            raise JavaNotFoundError(f"`{java} -version` names no version: {shown.stderr.strip()!r}. {_INSTALL_JAVA}")
    major = int(match.group(1))
    return int(match.group(2) or 0) if major == 1 else major  # "1.8.0" is Java 8
