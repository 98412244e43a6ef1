"""The rooms of the package know only those below them; .importlinter has the rules."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    return subprocess.run([*command, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False)


def test_every_import_follows_the_rules_of_the_rooms() -> None:
    result = lint(ROOT)

    assert result.returncode == 0, result.stdout


def copy_with(folder: Path, module: str, text: str) -> Path:
    """A small package with the same rules and rooms, and one more line in one module."""
    rules = configparser.ConfigParser()
    rules.read(ROOT / ".importlinter")
    rooms = rules["importlinter:contract:rooms"]["layers"].replace("|", " ").replace("(", "").replace(")", "").split()
    package = folder / "hms_iceberg"
    for room in rooms:
        (package / room).mkdir(parents=True)
        (package / room / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / module / "offender.py").write_text(text)
    (folder / ".importlinter").write_text((ROOT / ".importlinter").read_text())
    return folder


def test_an_import_of_a_higher_room_breaks_the_rules(tmp_path: Path) -> None:
    result = lint(copy_with(tmp_path, "spec", "def f():\n    import hms_iceberg.table\n"))

    assert result.returncode == 1
    assert "hms_iceberg.spec is not allowed to import hms_iceberg.table" in result.stdout


def test_an_import_of_a_sibling_room_breaks_the_rules(tmp_path: Path) -> None:
    result = lint(copy_with(tmp_path, "arrow", "import hms_iceberg.hms\n"))

    assert result.returncode == 1
    assert "hms_iceberg.arrow is not allowed to import hms_iceberg.hms" in result.stdout


def test_thrift_outside_the_hms_room_breaks_the_rules(tmp_path: Path) -> None:
    assert lint(copy_with(tmp_path, "migration", "def f():\n    import hmsclient\n")).returncode == 1


def test_thrift_in_the_hms_room_is_allowed(tmp_path: Path) -> None:
    result = lint(copy_with(tmp_path, "hms", "import thrift\nfrom hmsclient import HMSClient\n"))

    assert result.returncode == 0, result.stdout


def test_pyspark_outside_the_spark_room_breaks_the_rules(tmp_path: Path) -> None:
    assert lint(copy_with(tmp_path, "cli", "def f():\n    import pyspark\n")).returncode == 1
