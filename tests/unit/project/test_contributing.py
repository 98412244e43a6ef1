"""CONTRIBUTING names files, modules and functions that are there."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
PAGES = TEXT[TEXT.index("## How a commit goes") : TEXT.index("## Where a new thing goes")]
HOPS = re.findall(r"`([a-z_0-9/]+)\.py` `([A-Za-z_.]+)`", PAGES)
PATHS = set(re.findall(r"`([a-z_0-9]+(?:/\w+)*(?:\.py|\.java|/)|[a-z_0-9]+(?:/\w+)+)`", TEXT))
OF_PYICEBERG = {"tests/expressions"}  # of its own repository
FOLDERS = (ROOT, ROOT / "hms_iceberg", ROOT / "hms_iceberg/spark")


def test_every_hop_of_a_commit_and_of_a_scan_is_where_the_pages_say() -> None:
    assert len(HOPS) > 25
    for path, name in HOPS:
        module = f"hms_iceberg.{path.replace('/', '.')}"
        found = reduce(getattr, name.split("."), import_module(module))
        assert (found.__module__, found.__qualname__) == (module, name)  # where it is written, and not inherited


def test_every_file_and_folder_that_is_named_is_there() -> None:
    assert len(PATHS) > 60
    assert not [path for path in PATHS - OF_PYICEBERG if not any((folder / path).exists() for folder in FOLDERS)]
