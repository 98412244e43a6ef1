"""View metadata: JSON both ways, and versions that come, come back and go."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from hms_iceberg.errors import ConfigurationError, CorruptMetadataError, InvalidInputError, UnsupportedError
from hms_iceberg.spec.data_types import LongType, NestedField, StringType
from hms_iceberg.spec.metadata.view_metadata import (
    SQLViewRepresentation,
    UnknownViewRepresentation,
    ViewHistoryEntry,
    ViewMetadata,
    ViewVersion,
    new_view_metadata,
    replace_version,
    set_current_version,
    set_view_properties,
    view_metadata_from_json,
    view_metadata_to_json,
)
from hms_iceberg.spec.schema import Schema

COLUMNS = Schema(NestedField(7, "n", LongType(), doc="how many"))
WIDER = Schema(NestedField(1, "n", LongType(), doc="how many"), NestedField(2, "day", StringType()))


def query(number: int, *dialects: str) -> ViewVersion:
    queries = dict.fromkeys(dialects or ("spark",), f"select {number} as n")
    return replace(ViewVersion.of_sql(queries, ("db",)), timestamp_ms=number)


def view(**properties: str) -> ViewMetadata:
    return new_view_metadata(COLUMNS, query(1), "s3://bucket/db/seen/", properties)


# The example of the specification's appendix, shortened, as another implementation may write it.
EXAMPLE: dict[str, Any] = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
    "format-version": 1,
    "location": "s3://bucket/warehouse/default.db/event_agg",
    "current-version-id": 2,
    "properties": {"comment": "Daily event counts"},
    "versions": [
        {
            "version-id": number,
            "timestamp-ms": 1573518431292 + number,
            "schema-id": 1,
            "default-catalog": "prod",
            "default-namespace": ["default"],
            "summary": {"engine-name": "Spark", "engineVersion": "3.3.2"},
            "representations": [{"type": "sql", "sql": f"SELECT {number}", "dialect": "spark"}],
        }
        for number in (1, 2)
    ],
    "schemas": [
        {
            "schema-id": 1,
            "type": "struct",
            "fields": [{"id": 1, "name": "event_count", "required": False, "type": "int", "doc": "Count of events"}],
        }
    ],
    "version-log": [{"timestamp-ms": 1, "version-id": 1}, {"timestamp-ms": 2, "version-id": 2}],
}


def test_the_example_of_the_specification_is_read_and_written_back() -> None:
    for data in (json.dumps(EXAMPLE).encode(), gzip.compress(json.dumps(EXAMPLE).encode())):
        metadata = view_metadata_from_json(data)
        assert metadata.current_version().sql_for("SPARK") == SQLViewRepresentation("SELECT 2", "spark")
        assert metadata.current_version().default_catalog == "prod"
        assert metadata.schema().find_field("event_count").doc == "Count of events"
        assert json.loads(view_metadata_to_json(metadata)) == EXAMPLE


def test_what_a_later_specification_adds_to_representations_is_kept() -> None:
    later = json.loads(json.dumps(EXAMPLE))
    plan = {"type": "substrait", "plan": {"version": 3}}
    later["versions"][1]["representations"].append(plan)
    metadata = view_metadata_from_json(json.dumps(later).encode())
    assert metadata.current_version().representations[1] == UnknownViewRepresentation(plan)
    assert metadata.current_version().dialects == ["spark"]
    assert json.loads(view_metadata_to_json(metadata)) == later


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format-version": 2}, "format version 2"),
        ({"current-version-id": 3}, r"current version 3 is not among \[1, 2\]"),
        ({"view-uuid": None}, "lacks 'view-uuid'"),
        ({"version-log": None}, "lacks 'version-log'"),
        ({"versions": [*EXAMPLE["versions"], EXAMPLE["versions"][0]]}, "occurs twice"),
        ({"versions": [{**each, "schema-id": 5} for each in EXAMPLE["versions"]]}, "unknown schema 5"),
        ({"versions": [{**each, "default-namespace": [1]} for each in EXAMPLE["versions"]]}, "default-namespace"),
        (
            {"versions": [{**each, "representations": each["representations"] * 2} for each in EXAMPLE["versions"]]},
            "more than one query in a dialect",
        ),
    ],
)
def test_metadata_that_is_wrong_is_refused_with_its_location(change: dict[str, Any], said: str) -> None:
    with pytest.raises((CorruptMetadataError, UnsupportedError), match=said) as caught:
        view_metadata_from_json(json.dumps({**EXAMPLE, **change}).encode(), "s3://x/v.json")
    assert "s3://x/v.json" in str(caught.value)


def test_no_json_is_no_view() -> None:
    with pytest.raises(CorruptMetadataError, match="not a JSON file"):
        view_metadata_from_json(b"\x1f\x8b\x08garbage")
    with pytest.raises(CorruptMetadataError, match="not a JSON file"):
        view_metadata_from_json(b"{")


def test_a_new_view_has_one_version_and_ids_of_its_own() -> None:
    metadata = view(comment="c")
    assert (metadata.current_version_id, metadata.location) == (1, "s3://bucket/db/seen")
    assert metadata.schema().find_field("n").field_id == 1
    assert metadata.version_log == (ViewHistoryEntry(1, 1),)
    assert view_metadata_from_json(view_metadata_to_json(metadata)) == metadata


def test_a_replaced_query_is_a_new_version_and_known_columns_keep_their_schema() -> None:
    second = replace_version(view(), COLUMNS, query(2))
    third = replace_version(second, WIDER, query(3))
    assert [(each.version_id, each.schema_id) for each in third.versions] == [(1, 0), (2, 0), (3, 1)]
    assert third.version_log == (ViewHistoryEntry(1, 1), ViewHistoryEntry(2, 2), ViewHistoryEntry(3, 3))
    assert third.schema().fields[1].name == "day"
    assert third.view_uuid == view_metadata_from_json(view_metadata_to_json(third)).view_uuid


def test_a_query_that_was_there_before_makes_its_version_current_again() -> None:
    back = replace_version(replace_version(view(), COLUMNS, query(2)), COLUMNS, query(1))
    assert (back.current_version_id, len(back.versions)) == (1, 2)
    assert [entry.version_id for entry in back.version_log] == [1, 2, 1]
    assert set_current_version(back, 1) is back
    assert set_current_version(back, 2).current_version_id == 2
    with pytest.raises(InvalidInputError, match=r"no version 9; it has \[1, 2\]"):
        set_current_version(back, 9)


def test_the_oldest_versions_go_and_the_log_never_has_a_gap() -> None:
    metadata = view(**{"version.history.num-entries": "2"})
    metadata = replace_version(metadata, COLUMNS, query(2))
    metadata = set_current_version(metadata, 1)
    metadata = replace_version(metadata, COLUMNS, query(3))
    assert [each.version_id for each in metadata.versions] == [2, 3]
    assert [entry.version_id for entry in metadata.version_log] == [3], "what was current before is not known any more"
    assert view_metadata_from_json(view_metadata_to_json(metadata)) == metadata


def test_a_history_of_no_entries_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"version\.history\.num-entries"):
        replace_version(view(**{"version.history.num-entries": "0"}), COLUMNS, query(2))


def test_a_dialect_is_lost_only_where_that_is_allowed() -> None:
    metadata = new_view_metadata(COLUMNS, query(1, "spark", "Trino"), "s3://b/v", {})
    with pytest.raises(InvalidInputError, match=r"no query in trino.*replace\.drop-dialect\.allowed"):
        replace_version(metadata, COLUMNS, query(2, "SPARK"))
    allowed = set_view_properties(metadata, {"replace.drop-dialect.allowed": "true"})
    assert replace_version(allowed, COLUMNS, query(2, "spark")).current_version().dialects == ["spark"]


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (ViewVersion.of_sql({}), "needs a query"),
        (ViewVersion.of_sql({"spark": " "}), "needs a query"),
        (ViewVersion.of_sql({"spark": "select 1", "SPARK": "select 2"}), "one query a dialect"),
    ],
)
def test_a_version_without_one_query_a_dialect_is_refused(version: ViewVersion, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        new_view_metadata(COLUMNS, version, "s3://b/v", {})
    with pytest.raises(InvalidInputError, match=said):
        replace_version(view(), COLUMNS, version)
