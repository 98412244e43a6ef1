"""Many Hive tables at once: what is planned of each, one's failure that is not another's, runs that go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.main import main
from hms_iceberg.cli.migration.warehouse import migration_page
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.hms.commit.scratch_rows import scratch_row
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.hive_metastore import hive_client
from hms_iceberg.migration import migrate_warehouse, plan_warehouse
from hms_iceberg.migration.warehouse.warehouse_plan import Outcome, State, TablePlan, WarehousePlan
from tests.support.hdfs_path import local_path
from tests.support.hive_warehouse import HiveWarehouse, write_files

ROOT = Path(__file__).resolve().parents[3]
ORC = {"serdeInfo": ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde", parameters={})}
TEXT = {"serdeInfo": ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")}
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32())})


@pytest.fixture
def warehouse(catalog: Catalog, namespace: str) -> HiveWarehouse:
    """One table of each kind."""
    made = HiveWarehouse(catalog, namespace)
    made.create("clicks", "id int", "day string")
    made.add_partition("clicks", ["a"], ROWS)
    made.add_partition("clicks", ["b"], ROWS, ROWS)
    folder = local_path(made.create("orc_table", "id int", **ORC).table.sd.location)
    orc.write_table(ROWS, str(folder / "000000_0"))
    write_files(made.create("padded", "id int, code char(3)").table.sd.location, ROWS)
    (local_path(made.create("notes", "id int", **TEXT).table.sd.location) / "000000_0").write_text("1\n2\n")
    made.create("unions", "id uniontype<int,string>", **TEXT)
    broken = local_path(made.create("broken", "id int").table.sd.location)
    (broken / "000000_0").write_bytes(b"PAR1")
    return made


def states(plan: WarehousePlan) -> dict[str, State]:
    return {each.table.partition(".")[2]: each.state for each in plan.tables}


def outcomes(plan: WarehousePlan) -> dict[str, Outcome | None]:
    return {each.table.partition(".")[2]: each.outcome for each in plan.tables}


def entry(plan: WarehousePlan, name: str) -> TablePlan:
    [found] = [each for each in plan.tables if each.table.endswith(f".{name}")]
    return found


def ids(catalog: Catalog, name: str) -> list[int]:
    return sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())


def test_a_plan_says_of_every_table_what_can_be_done_and_changes_nothing(
    catalog: Catalog, namespace: str, warehouse: HiveWarehouse
) -> None:
    names = warehouse.names()

    plan = plan_warehouse(catalog, [f"{namespace}.*"], jobs=2)

    assert states(plan) == {
        **dict.fromkeys(("clicks", "orc_table"), State.READY),
        "padded": State.CHOICES,
        "notes": State.REWRITE,
        "unions": State.IMPOSSIBLE,
        "broken": State.IMPOSSIBLE,
    }
    clicks, padded = entry(plan, "clicks"), entry(plan, "padded")
    assert (clicks.partitions, clicks.files, clicks.rows) == (2, 3, 9) and clicks.bytes > 0 < clicks.seconds
    assert padded.choices == {"char_as_string": True} and "--char-as-string" in padded.reasons[0]
    assert "no union type" in entry(plan, "unions").reasons[-1]
    assert (entry(plan, "notes").files, entry(plan, "notes").bytes) == (1, 4)
    assert warehouse.names() == names
    assert states(plan_warehouse(catalog, [f"{namespace}.c*", f"{namespace}.N*"], ["*.clicks"])) == {
        "notes": State.REWRITE
    }
    for patterns, said in (([f"{namespace}.z*"], "No table is called"), (["clicks"], "has no namespace")):
        with pytest.raises(InvalidInputError, match=said):
            plan_warehouse(catalog, patterns)


def test_a_failure_is_not_another_tables_and_the_next_run_goes_on_where_the_last_stopped(
    catalog: Catalog, namespace: str, warehouse: HiveWarehouse, tmp_path: Path
) -> None:
    kept = tmp_path / "plan.json"
    plan = plan_warehouse(catalog, [f"{namespace}.*"])
    (local_path(warehouse.rows("orc_table").table.sd.location) / "000000_0").write_bytes(b"damaged since")

    first = migrate_warehouse(catalog, plan, jobs=3, kept_in=kept)

    assert outcomes(first) == {
        "clicks": Outcome.MIGRATED,
        "orc_table": Outcome.FAILED,
        **dict.fromkeys(("padded", "notes", "unions", "broken"), Outcome.LEFT),
    }
    assert "000000_0" in entry(first, "orc_table").message and "--rewrite" in entry(first, "notes").message
    assert "--accept-choices" in entry(first, "padded").message
    assert ids(catalog, f"{namespace}.clicks") == sorted([1, 2, 3] * 3)
    assert WarehousePlan.read(kept) == first

    orc.write_table(ROWS, str(local_path(warehouse.rows("orc_table").table.sd.location) / "000000_0"))
    told: list[str] = []
    second = migrate_warehouse(
        catalog, WarehousePlan.read(kept), accept_choices=True, on_done=lambda each: told.append(each.table)
    )

    assert outcomes(second)["orc_table"] is outcomes(second)["padded"] is Outcome.MIGRATED
    assert f"{namespace}.clicks" not in told
    after = states(plan_warehouse(catalog, [f"{namespace}.*"]))
    assert (after["clicks"], after["clicks_backup_"]) == (State.ICEBERG, State.BACKUP)


def test_the_command_keeps_a_plan_reports_every_table_and_writes_a_page(
    namespace: str,
    warehouse: HiveWarehouse,
    metastore: EmbeddedMetastore,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan, page = tmp_path / "plan.json", tmp_path / "page.html"
    words = ["migrate", "--uri", metastore.uri, "--plan", str(plan), "--html", str(page), "--output", "json"]

    assert main([*words, f"{namespace}.*", "--exclude", "*.broken", "--dry-run"]) == 0
    told = {each["table"].partition(".")[2]: each for each in json.loads(capsys.readouterr().out)}
    assert (told["clicks"]["state"], told["clicks"]["outcome"]) == ("ready", None) and "broken" not in told
    content = json.loads(plan.read_text())
    for each in content["tables"]:
        each["skip"] = not each["table"].endswith((".clicks", ".orc_table"))
    plan.write_text(json.dumps(content))

    assert main(words) == 0
    report = capsys.readouterr()
    assert f"{namespace}.clicks migrated" in report.err
    assert {each["outcome"] for each in json.loads(report.out) if not each["skip"]} == {"migrated"}
    text = page.read_text()
    assert f"<td>{namespace}.clicks</td>" in text and ">migrated<" in text
    assert main(["migrate", f"{namespace}.*", "--uri", metastore.uri]) == 1
    assert "to be rewritten" not in (said := capsys.readouterr().out) and "left" in said
    for bad in (["migrate", "--uri", metastore.uri], ["migrate", "a.*", "--backup-name", "x", "--uri", metastore.uri]):
        assert main(bad) == 2


def test_a_pattern_means_no_view_and_a_view_that_is_named_is_told_why_it_stays(
    catalog: Catalog, namespace: str, metastore: EmbeddedMetastore, capsys: pytest.CaptureFixture[str]
) -> None:
    HiveWarehouse(catalog, namespace).create("only", "id int")
    hive_client(catalog.metastore).create_table(scratch_row(namespace, "seen", "1"))
    uri = ["--uri", metastore.uri]
    assert main(["migrate", f"{namespace}.*", *uri]) == 0
    assert "seen" not in capsys.readouterr().out
    assert main(["migrate", f"{namespace}.seen", f"{namespace}.only", *uri]) == 1
    assert "view" in capsys.readouterr().out


def test_a_page_shows_names_and_reasons_as_they_are() -> None:
    evil = "</td></script><script>alert('x')</script>"
    plan = WarehousePlan((TablePlan(f"a.<b>{evil}", State.REWRITE, (f"it is <stored> as & text{evil}",), bytes=2048),))

    page = migration_page(plan)
    assert "a.&lt;b&gt;" in page and "&lt;stored&gt; as &amp; text" in page and "2.0 KiB" in page
    # The page has one script of its own, and no name or reason brings another one or ends it.
    assert page.count("<script") == page.count("</script") == 1 and page.count("&lt;script&gt;") == 2


def test_a_file_that_is_no_plan_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"format": 99}')

    with pytest.raises(InvalidInputError, match=r"plan\.json: it was written by another version"):
        WarehousePlan.read(tmp_path / "plan.json")


@pytest.mark.slow
def test_a_run_over_many_tables_that_is_killed_is_run_again_to_its_end(
    catalog: Catalog, namespace: str, metastore: EmbeddedMetastore, tmp_path: Path
) -> None:
    warehouse, plan = HiveWarehouse(catalog, namespace), tmp_path / "plan.json"
    names = [f"t{number:02d}" for number in range(16)]
    for number, name in enumerate(names):
        made = warehouse.create(name, "id int", "k int" if number % 2 else "")
        if number % 2:
            warehouse.add_partition(name, ["1"], ROWS)
        else:
            write_files(made.table.sd.location, ROWS)
    words = ["migrate", f"{namespace}.*", "--uri", metastore.uri, "--plan", str(plan), "--jobs", "4"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "hms_iceberg", *words]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not (plan.exists() and b'"migrated"' in plan.read_bytes()):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()

    for kill in (True, False):
        result = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if kill:
            time.sleep(1.5)
            result.kill()
        result.wait()

    assert result.returncode == 0
    assert all(ids(catalog, f"{namespace}.{name}") == [1, 2, 3] for name in names)
    assert warehouse.names() == sorted([*names, *(f"{name}_backup_" for name in names)])
