"""The command line as a whole: help, errors and exit codes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hms_iceberg.cli.catalog_options import catalog_options
from hms_iceberg.cli.commands import COMMANDS
from hms_iceberg.cli.main import cli, main
from hms_iceberg.cli.output import OUTPUT_OPTION
from hms_iceberg.errors import MetastoreTimeoutError, NoSuchTableError
from hms_iceberg.hms.connection.reachability import check_reach


@click.command()
@click.option("--how", default="known")
def failing(how: str) -> None:
    """Fail as told."""
    if how == "known":
        raise NoSuchTableError("Table db.t does not exist.")
    if how == "abort":
        raise click.Abort
    if how == "file":
        Path("no such folder/rows.csv").write_text("")
    raise RuntimeError("a bug")


@pytest.fixture
def failing_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "get_command", lambda ctx, name: failing)


def test_help_is_quick_as_it_imports_no_command() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "hms_iceberg.cli.main", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)

    assert all(name in result.stdout for name in COMMANDS)
    imported = {line.rsplit("|", 1)[-1].strip() for line in result.stderr.splitlines()}
    assert imported.isdisjoint({entry.home for entry in COMMANDS.values()} | {"pyspark", "polars", "pyarrow", "rich"})


def commands_of(command: click.Command | None) -> Iterator[click.Command]:
    """A command, and those below it."""
    assert isinstance(command, click.Command)
    yield command
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        yield from commands_of(below)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_listed_command_exists_and_explains_itself_with_an_example(name: str) -> None:
    for command in commands_of(cli.get_command(click.Context(cli), name)):
        assert command.help
        assert f"Example: hms-iceberg {name}" in command.help


def test_the_catalogs_options_may_stand_before_the_commands_name(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, object] = {}

    @click.command()
    @catalog_options
    @OUTPUT_OPTION
    def seen(**options: object) -> None:
        given.update(options)

    monkeypatch.setattr(cli, "get_command", lambda ctx, name: seen)

    assert main(["--uri", "thrift://a:1", "-p", "x=1", "--output", "json", "seen", "-p", "y=2"]) == 0
    assert given == {"catalog_name": None, "uri": "thrift://a:1", "properties": ("x=1", "y=2"), "output": "json"}
    assert main(["--uri", "thrift://a:1", "seen", "--uri", "thrift://b:1"]) == 0
    assert given["uri"] == "thrift://b:1"
    assert given["output"] == "text"


def test_a_known_error_is_one_line_and_exit_code_one(failing_command: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["failing"]) == 1

    assert capsys.readouterr().err == "Error: Table db.t does not exist.\n"


def test_a_file_that_cannot_be_written_is_one_line(failing_command: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["failing", "--how", "file"]) == 1
    assert capsys.readouterr().err == "Error: [Errno 2] No such file or directory: 'no such folder/rows.csv'\n"


def test_verbose_shows_the_traceback_of_a_known_error(failing_command: None) -> None:
    with pytest.raises(NoSuchTableError):
        main(["--verbose", "failing"])


def test_verbose_after_the_command_is_the_commands_own(
    failing_command: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["failing", "--verbose"]) == 2

    assert "No such option" in capsys.readouterr().err


def test_a_bug_is_not_hidden(failing_command: None) -> None:
    with pytest.raises(RuntimeError, match="a bug"):
        main(["failing", "--how", "bug"])


def test_an_interrupted_command_ends_with_exit_code_130(failing_command: None) -> None:
    assert main(["failing", "--how", "abort"]) == 130


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrat"]) == 2

    assert "No such command 'migrat'" in capsys.readouterr().err


def test_a_service_without_a_pause_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["maintain", "--every", "0"]) == 2
    assert "--every needs a time above 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "near"), [(["migrat"], "migrate"), (["metastor", "start"], "metastore"), (["locks", "relase"], "release")]
)
def test_a_near_miss_of_a_command_gets_one_suggestion(
    words: list[str], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.count(f"Did you mean '{near}'?") == 1


def test_a_uri_without_a_scheme_is_taken_for_that_of_a_metastore(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--uri", "localhost:9083"]) == 1
    assert capsys.readouterr().err.endswith("Did you mean thrift://localhost:9083?\n")


def test_the_package_runs_as_a_module() -> None:
    result = subprocess.run([sys.executable, "-m", "hms_iceberg", "--help"], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("Usage: hms-iceberg ")


def test_a_data_folder_that_cannot_be_made_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["metastore", "start", "--data-dir", str(tmp_path / "file" / "data")]) == 1
    assert capsys.readouterr().err.startswith(f"Error: Cannot make the data folder {tmp_path}/file/data of the meta")
    assert main(["metastore", "start", "--data-dir", str(tmp_path / "file")]) == 2


def test_a_metastore_that_cannot_be_reached_is_told_with_its_address_and_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    assert main(["list", "--uri", f"thrift://127.0.0.1:{port}"]) == 1

    said = capsys.readouterr().err
    assert said.startswith(f"Error: No Hive Metastore answered at thrift://127.0.0.1:{port} ")
    assert "Check that it runs" in said


def test_whether_an_embedded_metastore_runs_is_told_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--json"], ["--output", "json"]):
        assert main(["metastore", "status", "--data-dir", str(tmp_path), *words]) == 3
        assert json.loads(capsys.readouterr().out)["running"] is False


def test_a_metastore_that_stays_silent_is_given_up_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        properties = {"uri": f"thrift://127.0.0.1:{silent.getsockname()[1]}"}
        with pytest.raises(MetastoreTimeoutError, match=r"127\.0\.0\.1.* gave no answer in time.*To wait longer, set"):
            check_reach(properties, seconds=0.2)
        check_reach({**properties, "hive.metastore.client.connection.timeout": "1h"}, seconds=0.2)
