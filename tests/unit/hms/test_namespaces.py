"""Namespaces as the metastore's databases."""

from __future__ import annotations

import pytest

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.hms.rows.namespaces import change_database, database_properties, new_database

OWNER = "hive.metastore.database.owner"
OWNER_TYPE = "hive.metastore.database.owner-type"


def test_location_comment_and_owner_have_their_own_places() -> None:
    properties = {"location": "s3://b/db", "comment": "c", OWNER: "etl", OWNER_TYPE: "ROLE", "team": "a"}
    database = new_database("db", properties, "s3://warehouse")
    assert (database.locationUri, database.description, database.ownerName) == ("s3://b/db", "c", "etl")
    assert database.parameters == {"team": "a"}
    assert database_properties(database) == properties


def test_a_namespace_without_a_location_goes_into_the_warehouse() -> None:
    assert new_database("db", {}, "s3://warehouse/").locationUri == "s3://warehouse/db.db"
    assert new_database("db", {}, None).locationUri is None


def test_an_owner_type_needs_an_owner_and_must_be_known() -> None:
    with pytest.raises(InvalidInputError, match="Set both"):
        new_database("db", {OWNER_TYPE: "USER"}, None)
    with pytest.raises(InvalidInputError, match="KING"):
        new_database("db", {OWNER: "x", OWNER_TYPE: "KING"}, None)


def test_changes_leave_the_rest_alone() -> None:
    database = new_database("db", {"comment": "c", "a": "1", "b": "2"}, "file:/w")
    change_database(database, {"a": "3", OWNER: "new"}, {"b", "absent"})
    found = database_properties(database)
    assert found["location"] == "file:/w/db.db"
    assert (found["a"], found[OWNER]) == ("3", "new")
    assert "b" not in found and found["comment"] == "c"


@pytest.mark.parametrize("key", ["location", "comment", OWNER, OWNER_TYPE])
def test_what_a_metastore_never_empties_cannot_be_removed(key: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{key} cannot be removed"):
        change_database(new_database("db", {"comment": "c"}, "file:/w"), {}, {key})
