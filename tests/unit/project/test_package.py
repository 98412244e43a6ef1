"""What the installed package holds, and what the top of the repository does."""

from __future__ import annotations

import configparser
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")


def tracked() -> list[str]:
    """The files of the repository."""
    result = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode != 0:  # an unpacked archive has no list of what belongs to it
        pytest.skip("the sources are not a git work tree")
    return result.stdout.splitlines()


def test_every_file_of_the_package_is_installed() -> None:
    patterns = [
        f"{package.replace('.', '/')}/{pattern}"
        for package, listed in SETUP["options.package_data"].items()
        for pattern in listed.split()
    ]

    for name in tracked():
        if name.startswith("hms_iceberg/") and not name.endswith(".py"):
            assert any(fnmatch(name, pattern) for pattern in patterns), name


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {Path(name).parent for name in tracked() if name.startswith("hms_iceberg/") and name.endswith(".py")}

    for folder in folders:
        assert (ROOT / folder / "__init__.py").is_file(), folder


def test_the_top_of_the_repository_stays_small() -> None:
    top = {name.split("/")[0] for name in tracked()}

    assert {name for name in top if not name.startswith(".")} <= {
        *("setup.cfg", "setup.py", "README.md", "hms_iceberg", "tests", "docker"),
    }


def test_the_version_is_the_same_everywhere() -> None:
    import hms_iceberg

    assert SETUP["metadata"]["version"] == hms_iceberg.__version__
