"""The pages of how a commit and a scan go name modules and functions that are there."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

TEXT = (Path(__file__).parents[3] / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
PAGES = TEXT[TEXT.index("## How a commit goes") : TEXT.index("## Where a new thing goes")]
HOPS = re.findall(r"`([a-z_0-9/]+)\.py` `([A-Za-z_.]+)`", PAGES)


def test_every_hop_of_a_commit_and_of_a_scan_is_where_the_pages_say() -> None:
    assert len(HOPS) > 25
    for path, name in HOPS:
        module = f"hms_iceberg.{path.replace('/', '.')}"
        found = reduce(getattr, name.split("."), import_module(module))
        assert (found.__module__, found.__qualname__) == (module, name)  # where it is written, and not inherited
