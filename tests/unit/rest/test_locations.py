"""A location has one plain spelling, and is compared as a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.rest.access import Access, Caller, Right
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.security.locations import AllowedLocations, Location, Namespaces
from hms_iceberg.rest.security.policy import Policy, PolicyRule
from hms_iceberg.storage import Places

MALLORY = Access(Caller("mallory"), Policy((PolicyRule(Right.MANAGE, ("mallory",), namespaces=("mine",)),)))
NAMESPACES = Namespaces({"default": "/wh", "mine": "file:/wh/mine.db", "secret": "file:///wh/secret.db"})


@pytest.mark.parametrize(
    "location",
    [
        "/",
        "/wh",
        "/wh/t/",
        "file:/wh/t",
        "file:///wh/t",
        "FILE:/wh/t",
        "s3://b",
        "s3://b/k",
        "s3a://b/a.b/..c/.d/e%2ef",
        "hdfs://ns/x",
        "abfss://c@a.dfs.core.windows.net/x",
        "/wh/日付/a b/100%",
    ],
)
def test_a_plain_spelling_is_taken(location: str) -> None:
    Location("location", location).check_spelling()


@pytest.mark.parametrize(
    "location",
    [
        "",
        "x",
        "../x",
        "s3:x",
        "/wh/./t",
        "/wh/../t",
        "/wh/t/.",
        "/wh/t/..",
        "/wh//t",
        "s3://b//t",
        "s3://../x",
        "//wh",
        "/wh/%2e/t",
        "/wh/%2E%2e/t",
        "/wh/%252e%252e/t",
        "/wh/%25252e/t",
        "/wh/..%2ft",
        "/wh/..%255ct",
        "/wh\\t",
        "/wh/..\\t",
        "/wh/t\n",
        "/wh/t\x00",
        "/wh/\x1b[1m",
        "/wh/\x7f",
        "/wh/\x85",
        "/wh/\u202e",
        "/wh/\u2028",
        "/wh/\ufeff",
    ],
)
def test_a_spelling_that_can_be_read_in_two_ways_is_refused(location: str) -> None:
    for folders in (None, ("/",), ("s3://b",)):
        with pytest.raises(RefusedError) as refused:
            AllowedLocations(folders).check(location, "location")
        assert refused.value.kind.code == 403


@pytest.mark.parametrize(
    ("location", "is_taken"),
    [
        ("/wh/mine.db/t", True),
        ("file:///wh/mine.db", True),
        ("/wh/elsewhere/t", True),  # in the warehouse, in which all namespaces are
        ("/wh/secret.db/new", False),
        ("/wh/secret.db", False),
        ("/wh", False),
        ("/", False),
        ("/elsewhere", False),
        ("hdfs://other/wh/mine.db/t", False),
        ("s3://wh/mine.db/t", False),
    ],
)
def test_a_place_in_the_folder_of_somebody_elses_namespace_is_refused(location: str, is_taken: bool) -> None:
    def check() -> None:
        NAMESPACES.check(MALLORY, "mine", [Location("location", location)], Places(None), everywhere=False)

    if is_taken:
        check()
        return
    with pytest.raises(RefusedError):
        check()


def test_a_link_leads_to_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "allowed").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "allowed" / "link").symlink_to(tmp_path / "secret")
    allowed, places = AllowedLocations((f"file:{tmp_path}/allowed",)), Places(ArrowStorage())
    allowed.check(f"{tmp_path}/allowed/t", "location", places)
    with pytest.raises(RefusedError):
        allowed.check(f"{tmp_path}/allowed/link/t", "location", places)
