"""Numbers and booleans are taken as values of properties wherever there are some, and become text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.table.table import Table
from tests.support.memory_metastore import InMemoryMetastore

_GIVEN = {"int": 1, "float": 1.5, "true": True, "false": False, "text": "a", "numpy": np.int64(7)}
_TEXT = {"int": "1", "float": "1.5", "true": "true", "false": "false", "text": "a", "numpy": "7"}
_SCHEMA = pa.schema([("i", pa.int64())])
_ROWS = pa.table({"i": [1]})


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog("memory", InMemoryMetastore(), ArrowStorage({}), {"warehouse": str(tmp_path)})
    catalog.create_namespace("n", {"location": str(tmp_path / "n")})
    return catalog


def staged(table: Table, properties: Any) -> None:
    with table.transaction() as transaction, transaction.update_snapshot(properties).fast_append() as append:
        append.set("more", 1)


TAKEN: dict[str, Callable[[Table, Any], Any]] = {
    "set_properties": lambda table, given: table.set_properties(given),
    "set_properties by name": lambda table, given: table.set_properties(**given),
    "transaction": lambda table, given: table.transaction().set_properties(given).commit_transaction(),
    "append": lambda table, given: table.append(_ROWS, given),
    "overwrite": lambda table, given: table.overwrite(_ROWS, snapshot_properties=given),
    "delete": lambda table, given: table.delete("i = 1", given),
    "upsert": lambda table, given: table.upsert(pa.table({"i": [2]}), ["i"], snapshot_properties=given),
    "update": lambda table, given: table.update({"i": 3}, snapshot_properties=given),
    "update_snapshot": staged,
}


@pytest.mark.parametrize("way", TAKEN)
def test_numbers_become_text(catalog: Catalog, way: str) -> None:
    table = catalog.create_table("n.t", _SCHEMA)
    table.append(_ROWS)
    TAKEN[way](table, _GIVEN)
    read = catalog.load_table("n.t")
    found = read.metadata.snapshots[-1].summary if "properties" not in way and way != "transaction" else read.properties
    assert {key: found[key] for key in _TEXT} == _TEXT


@pytest.mark.parametrize("way", TAKEN)
@pytest.mark.parametrize("value", [None, [1], {"a": 1}, b"x"])
def test_what_is_no_text_is_refused_and_the_table_stays_as_it_is(catalog: Catalog, way: str, value: Any) -> None:
    table = catalog.create_table("n.t", _SCHEMA)
    table.append(_ROWS)
    with pytest.raises(InvalidInputError, match="expected text, a number"):
        TAKEN[way](table, {"k": value})
    assert catalog.load_table("n.t").scan().to_arrow() == _ROWS


def test_namespaces_and_new_tables_take_numbers(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_namespace("m", {**_GIVEN, "location": str(tmp_path / "m")})
    catalog.update_namespace_properties("m", updates={"more": 2, "int": 3})
    assert catalog.load_namespace_properties("m").items() >= {**_TEXT, "more": "2", "int": "3"}.items()
    assert catalog.create_table("m.t", _SCHEMA, properties=_GIVEN).properties.items() >= _TEXT.items()
    made = catalog.create_table_transaction("m.u", _SCHEMA, properties=_GIVEN)
    made.commit_transaction()
    assert catalog.load_table("m.u").properties.items() >= _TEXT.items()
