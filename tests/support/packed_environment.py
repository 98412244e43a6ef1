"""A virtual environment with this package and what it needs, and nothing else, packed for a cluster."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

import hms_iceberg


def packed_environment(folder: Path, *extras: str) -> Path:
    """Makes `folder/env` and packs it, as README says; what `pip install` would fetch is copied from this interpreter.

    Args:
        folder: an existing folder.
        extras: which extras of the package, such as `hdfs`.

    Returns:
        The archive.
    """
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    subprocess.run([base, "-m", "venv", "--without-pip", folder / "env"], check=True)
    packages = next((folder / "env" / "lib").glob("python3.*")) / "site-packages"
    needed = set[str]().union(*(_needed("hms_iceberg", extra) for extra in extras))
    for name in sorted(needed - {"hms_iceberg"}):
        _copy(name, packages)
    shutil.copytree(Path(hms_iceberg.__file__).parent, packages / "hms_iceberg")
    archive = folder / "env.tar.gz"
    subprocess.run(["tar", "-I", "gzip -1", "-cf", archive, "-C", folder / "env", "."], check=True)
    return archive


def _needed(name: str, extra: str = "") -> set[str]:
    """The names of a distribution and of all that it requires."""
    found = {name}
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            for inner in requirement.extras or {""}:
                found |= _needed(requirement.name, inner)
    return found


def _copy(name: str, packages: Path) -> None:
    """What a distribution has in `site-packages`, without its commands."""
    for file in distribution(name).files or ():
        if ".." not in file.parts and file.suffix != ".pyc":
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(Path(str(file.locate())), target)
