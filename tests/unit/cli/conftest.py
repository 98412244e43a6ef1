"""A catalog in folders, commands on it, and a terminal to show what they say."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.cli.main import main
from hms_iceberg.table import Table


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output, read as JSON."""
        return json.loads(self.out)


Run = Callable[..., Said]


class Terminal(io.TextIOWrapper):
    """Takes text as a terminal does."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="", write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        """What was written."""
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """An empty catalog in the folder `lake` of the working directory, with the namespace `db`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    catalog = load_catalog(type="hadoop", warehouse="lake")
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def table(lake: Catalog) -> Table:
    """The table `db.t` of two rows, then a third."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("page", pa.string()), ("price", pa.float64())])
    made = lake.create_table("db.t", schema)
    made.append(pa.table({"id": [1, 2], "page": ["/", None], "price": [0.5, float("nan")]}, schema))
    made.append(pa.table({"id": [3], "page": ["/buy"], "price": [None]}, schema))
    return made


@pytest.fixture
def run(lake: Catalog, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command on the catalog, with its output in a pipe."""

    def run_command(*words: object) -> Said:
        capfd.readouterr()
        code = main(["-p", "type=hadoop", "-p", "warehouse=lake", *map(str, words)])
        return Said(code, *capfd.readouterr())

    return run_command


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch, run: Run) -> Run:
    """Runs a command on the catalog with its output on a terminal without colours, so many columns wide."""

    def run_command(width: int, *words: object) -> Said:
        terminal = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", terminal)
            patch.setenv("COLUMNS", str(width))
            patch.setenv("TERM", "xterm")
            patch.setenv("NO_COLOR", "1")
            said = run(*words)
        return Said(said.code, terminal.text, said.err)

    return run_command
