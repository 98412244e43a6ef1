"""dbt builds the cookbook's project and models of every kind twice: rows, and the history of each table."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.guides import block
from tests.support.own_environment import OwnEnvironment, UnavailableError

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DBT = OwnEnvironment(
    "dbt",
    ("dbt-core==1.10.*", "dbt-spark==1.10.*", "pyhive>=0.7", "thrift>=0.16,<1", "thrift_sasl", "pure-sasl"),
)
FILES = (
    block("docs/COOKBOOK.md", "profiles.yml", "yaml"),
    block("docs/COOKBOOK.md", "dbt_project.yml", "yaml"),
    block("docs/COOKBOOK.md", "seeds/raw_orders.csv", "text"),
    block("docs/COOKBOOK.md", "models/orders.sql", "sql"),
    block("docs/COOKBOOK.md", "models/schema.yml", "yaml"),
    block("docs/COOKBOOK.md", "snapshots/orders_history.yml", "yaml"),
)
MODELS_OF_EVERY_KIND = Path(__file__).with_name("dbt_project")
LATER_ORDERS = """\
id,customer,amount,updated_at
1,ann,11.5,2026-02-01 00:00:00
2,bob,20.0,2026-01-01 00:00:00
4,dan,1.0,2026-02-02 00:00:00
"""


@pytest.fixture
def project(thrift_port: int, namespace: str, tmp_path: Path) -> Path:
    """The cookbook's project with the models of this folder, on the server that runs, in a schema of its own."""
    shutil.copytree(MODELS_OF_EVERY_KIND, tmp_path, dirs_exist_ok=True)
    for each in FILES:
        file = tmp_path / each.section
        file.parent.mkdir(exist_ok=True)
        file.write_text(each.code)
    profile = (tmp_path / "profiles.yml").read_text()
    assert "port: 10000, schema: shop" in profile
    here = f"port: {thrift_port}, schema: {namespace}"
    (tmp_path / "profiles.yml").write_text(profile.replace("port: 10000, schema: shop", here))
    return tmp_path


def run(project: Path, *words: str) -> None:
    try:
        command = [DBT.path(), "--no-use-colors", *words, "--profiles-dir", "."]
    except UnavailableError as error:
        pytest.skip(str(error))
    quiet = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DBT_VERSION_CHECK": "false"}
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=400, check=False, env=quiet)
    assert ran.returncode == 0, ran.stdout[-6000:]


def rows(catalog: Catalog, name: str, *columns: str) -> list[tuple[Any, ...]]:
    found = catalog.load_table(name).scan(selected_fields=columns).to_arrow().to_pylist()
    return sorted((tuple(row[each] for each in columns) for row in found), key=repr)


def versions(catalog: Catalog, name: str) -> tuple[str, list[int]]:
    """The table's identity, and how many rows each of its versions has."""
    table = catalog.load_table(name)
    counts = [table.scan(snapshot_id=entry.snapshot_id).count() for entry in table.history()]
    return str(table.metadata.table_uuid), counts


def test_models_of_every_kind_are_built_twice_and_keep_their_history(
    project: Path, catalog: Catalog, namespace: str
) -> None:
    def of(model: str, *columns: str) -> list[tuple[Any, ...]]:
        return rows(catalog, f"{namespace}.{model}", *columns)

    def history(model: str) -> tuple[str, list[int]]:
        return versions(catalog, f"{namespace}.{model}")

    run(project, "build", "--exclude-resource-type", "test", "--exclude-resource-type", "unit_test")
    kept = ("orders", "replaced", "appended", "merged", "overwritten", "contracted", "orders_history", "checked")
    before = {model: history(model) for model in kept}
    assert {counts[-1] for _, counts in before.values()} == {3}
    (project / "seeds" / "raw_orders.csv").write_text(LATER_ORDERS)

    run(project, "build")
    after = {model: history(model) for model in kept}

    assert {model: after[model][0] == before[model][0] for model in kept} == dict.fromkeys(kept, True)
    for model in kept:
        earlier = before[model][1]
        assert after[model][1][: len(earlier)] == earlier, f"{model}: the versions of the first run are there"
    assert of("orders", "id", "customer", "amount") == [
        (1, "ann", Decimal("11.50")), (2, "bob", Decimal("20.00")), (3, "cid", Decimal("5.25")),
        (4, "dan", Decimal("1.00")),
    ]  # fmt: skip
    amounts = [(1, Decimal("11.50")), (2, Decimal("20.00")), (4, Decimal("1.00"))]
    assert of("replaced", "id", "amount") == amounts
    assert of("appended", "id", "extra") == sorted(
        [(1, None), (2, None), (3, None), (1, "11.5"), (2, "20.0"), (4, "1.0")], key=repr
    )
    assert of("merged", "id", "amount", "extra") == [
        (1, 11.5, "new"),
        (2, 20.0, "new"),
        (3, 5.25, None),
        (4, 1.0, "new"),
    ]
    assert of("overwritten", "id", "customer", "amount") == [
        (1, "ann", 11.5), (2, "bob", 20.0), (3, "cid", None), (4, "dan", 1.0),
    ]  # fmt: skip
    assert of("contracted", "id", "price") == [(1, {"cents": 1150}), (2, {"cents": 2000}), (4, {"cents": 100})]
    ended = [(1, False), (1, True), (2, False), (3, False), (4, False)]
    found = of("orders_history", "id", "dbt_valid_to")
    assert sorted((id_, until is not None) for id_, until in found) == ended
    found = of("checked", "id", "dbt_valid_to")
    assert sorted((id_, until is not None) for id_, until in found) == [
        (1, False), (1, True), (2, False), (3, True), (4, False),
    ]  # fmt: skip
    partitions = catalog.load_table(f"{namespace}.replaced").inspect.partitions()["partition"].to_pylist()
    assert sorted(each["customer"] for each in partitions) == ["ann", "bob", "dan"]
    orders = catalog.load_table(f"{namespace}.orders")
    assert orders.properties["comment"] == "one row an order" and orders.schema().find_field("id").doc == "the key"

    run(project, "docs", "generate")
    nodes = json.loads((project / "target" / "catalog.json").read_text())["nodes"]
    told = {name.rpartition(".")[2]: list(node["columns"]) for name, node in nodes.items()}
    assert told["orders"] == ["id", "customer", "amount", "updated_at"]
    assert told["contracted"] == ["id", "customer", "price"]
    assert {"raw_orders", "seen", "checked", *kept} <= set(told)
