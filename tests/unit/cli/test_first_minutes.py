"""What somebody sees first: the program without arguments, the doctor without a metastore, and names by the tab key."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.shell_completion import ShellComplete

from hms_iceberg import load_catalog
from hms_iceberg.cli.main import cli, main


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("PYICEBERG_HOME", "PYICEBERG_CATALOG__DEFAULT__URI"):
        monkeypatch.delenv(name, raising=False)


def test_without_arguments_it_shows_five_commands_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("  hms-iceberg ")]

    assert lines == ["demo", "doctor", "list", "sql", "migrate"]
    assert all(name in cli.list_commands(cli.make_context("hms-iceberg", ["version"])) for name in lines)


def test_the_doctor_checks_the_machine_without_a_metastore(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    told = capsys.readouterr().out

    assert "Python: " in told
    assert "not checked: no metastore is configured" in told


def test_the_tab_key_knows_tables_refs_and_columns(tmp_path: Path) -> None:
    catalog = load_catalog(type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("web")
    table = catalog.create_table("web.visits", pa.schema([("id", pa.int64()), ("page", pa.string())]))
    table.append(pa.table({"id": [1], "page": ["/"]}))
    table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "year-end").commit()
    own = ["-p", "type=hadoop", "-p", f"warehouse={tmp_path}"]

    def offered(words: list[str], begun: str) -> list[str]:
        complete = ShellComplete(cli, {}, "hms-iceberg", "_HMS_ICEBERG_COMPLETE")
        return [each.value for each in complete.get_completions([*own, *words], begun)]

    assert offered(["describe"], "w") == ["web."]
    assert offered(["history"], "web.v") == ["web.visits"]
    assert offered(["rollback", "web.visits"], "y") == ["year-end"]
    assert offered(["scan", "web.visits", "--columns"], "id,p") == ["id,page"]
    assert offered(["history"], "nothing.") == []


def test_the_rest_server_without_its_libraries_tells_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [each for each in sys.modules if each.startswith("hms_iceberg.rest.") or each == "hms_iceberg.rest"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "anyio", None)

    assert main(["rest", "--uri", "thrift://127.0.0.1:1"]) == 1
    assert "The server needs anyio: pip install 'hms_iceberg[rest]'" in capsys.readouterr().err
