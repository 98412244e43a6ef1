"""Every command in the README is one that there is, with the arguments that it takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from hms_iceberg.cli.main import cli
from tests.support.readme import README


def commands() -> list[str]:
    """The lines of the README's shell blocks that call `hms-iceberg`."""
    blocks = re.findall(r"^```bash\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.split(" >> ")[0] for line in lines if line.startswith("hms-iceberg")]


@pytest.mark.parametrize("line", commands())
def test_every_command_of_the_readme_is_understood(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("monday.csv", "tuesday.parquet", "plan.json"):
        (tmp_path / name).touch()
    words = shlex.split(line, comments=True)[1:]
    command: click.Command = cli
    context = command.make_context("hms-iceberg", words)
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None, name
        command, context = found, found.make_context(name, rest, parent=context)
