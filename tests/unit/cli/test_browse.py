"""`list`, `describe`, `schema`, `spec`, `location`, `uuid`, `files`, `version` and `completion`."""

from __future__ import annotations

import importlib.metadata
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table


def test_namespaces_and_tables_are_listed_one_a_line(run: Any, lake: Catalog, table: Table) -> None:
    lake.create_namespace("another")

    assert run("list").out == "another\ndb\n"
    assert run("list", "db").out == "db.t\n"
    assert run("list", "db", "--output", "json").json == ["db.t"]
    assert run("--output", "json", "list").json == ["another", "db"]


def test_what_does_not_exist_is_an_error_in_text_and_in_json(run: Any) -> None:
    said = run("list", "nowhere")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("Error: There is no namespace nowhere")

    said = run("describe", "db.none", "--output", "json")
    assert said.code == 1
    assert said.json["type"] == "NoSuchTableError"
    assert "lake/db/none" in said.json["message"]
    assert run("rewrite-manifests", "db.none", "--output", "json").json["type"] == "NoSuchTableError"


def test_a_name_that_is_not_there_tells_those_that_come_near(run: Any, lake: Catalog, table: Table) -> None:
    lake.create_namespace("sales")

    assert run("schema", "db.tt").err.endswith("Did you mean db.t?\n")
    assert run("schema", "sale.t").err.endswith("Did you mean sales.t?\n")
    assert run("list", "sale").err.endswith("Did you mean sales?\n")
    assert "Did you mean" not in run("schema", "db.orders").err


def test_a_pattern_that_no_table_matches_is_an_error_of_the_service(run: Any, table: Table) -> None:
    said = run("maintain", "--table", "db.*", "--table", "bd.*", "--dry-run")
    assert (said.code, said.err) == (
        1,
        "Error: No Iceberg table matches 'bd.*'. List them: hms-iceberg list NAMESPACE\n",
    )
    assert said.out.startswith("1 table looked at") or "db.t" in said.out
    assert run("maintain", "--table", "db.*", "--dry-run").code == 0


def test_a_file_whose_format_its_name_does_not_tell_is_told_the_option_of_its_command(
    run: Any, table: Table, tmp_path: Path
) -> None:
    assert run("scan", "db.t", "--to", "rows.txt").err.endswith("Give --output.\n")
    (tmp_path / "rows.txt").touch()
    assert run("append", "db.t", "rows.txt").err.endswith("Give --format.\n")


def test_a_namespace_is_described_by_its_properties(run: Any) -> None:
    assert run("describe", "db").out == "location\tlake/db\n"
    assert run("describe", "db", "--output", "json").json == {"location": "lake/db"}
    assert run("describe", "--entity", "table", "db").code == 2


def test_a_table_is_described_in_whole_lines_and_by_its_metadata(run: Any, table: Table) -> None:
    lines = run("describe", "db.t").out.splitlines()
    assert "Schema (id 0)\t2: page: optional string" in lines
    assert f"Current snapshot\t{table.metadata.current_snapshot_id}" in lines
    assert "Rows\t3" in lines

    told = run("describe", "db.t", "--output", "json").json
    assert told["identifier"] == ["db", "t"]
    assert told["metadata_location"] == table.metadata_location
    assert told["metadata"]["table-uuid"] == str(table.metadata.table_uuid)


def test_schema_and_spec_are_told_as_the_specification_has_them(run: Any, table: Table) -> None:
    assert run("schema", "db.t").out.splitlines()[1] == "id\tlong\ttrue\t"
    assert Schema.model_validate(run("schema", "db.t", "--output", "json").json) == table.schema()
    assert run("spec", "db.t").out == "[]\n"
    assert run("spec", "db.t", "--output", "json").json == {"spec-id": 0, "fields": []}


def test_location_uuid_and_version_are_one_word(run: Any, table: Table) -> None:
    assert run("location", "db.t").out == "lake/db/t\n"
    assert run("location", "db.t", "--output", "json").json == "lake/db/t"
    assert run("uuid", "db.t").out == f"{table.metadata.table_uuid}\n"
    assert run("uuid", "db.t", "--output", "json").json == {"uuid": str(table.metadata.table_uuid)}
    assert run("version").out == f"{importlib.metadata.version('hms_iceberg')}\n"


def test_files_of_one_snapshot_or_of_all_are_listed(run: Any, table: Table) -> None:
    first, second = (each.snapshot_id for each in table.snapshots())
    files = run("files", "db.t", "--output", "json").json
    assert [(each["snapshot_id"], each["content"], each["records"]) for each in files] == [
        (second, "data", 1),
        (second, "data", 2),
    ]
    assert [each["snapshot_id"] for each in run("files", "db.t", "--history", "--output", "json").json] == [
        first,
        second,
        second,
    ]
    assert len(run("files", "db.t", "--snapshot", first).out.splitlines()) == 2
    assert run("files", "db.t", "--snapshot", first, "--history").code == 2


def test_a_table_without_snapshots_has_no_files_and_no_history(run: Any, lake: Catalog, table: Table) -> None:
    lake.create_table("db.empty", table.schema())

    assert run("files", "db.empty", "--output", "json").json == []
    assert run("history", "db.empty", "--output", "json").json == []
    assert run("describe", "db.empty").code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str, run: Any) -> None:
    assert "_HMS_ICEBERG_COMPLETE" in run("completion", shell).out


def test_commands_and_options_are_completed() -> None:
    script = """
        eval "$(python -m hms_iceberg completion bash)"
        hms-iceberg() { python -m hms_iceberg "$@"; }
        complete() { for COMP_CWORD in $((${#COMP_WORDS[@]} - 1)); do
            COMPREPLY=(); _hms_iceberg_completion hms-iceberg; echo "${COMPREPLY[@]}"; done; }
        COMP_WORDS=(hms-iceberg sc) && complete
        COMP_WORDS=(hms-iceberg scan --bra) && complete
        COMP_WORDS=(hms-iceberg branch re) && complete
    """
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["scan schema", "--branch", "remove"]
