"""The guides: every Markdown page for users, and its blocks of code."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import click

from hms_iceberg.cli.main import cli

ROOT = Path(__file__).parents[2]
FRONT_PAGE = ROOT / "README.md"
PAGES = {
    "front": FRONT_PAGE,
    "contributing": ROOT / ".github" / "CONTRIBUTING.md",
    "security": ROOT / ".github" / "SECURITY.md",
    **{
        "/".join((path.parent if path.name == "README.md" else path).relative_to(ROOT / "hms_iceberg").parts): path
        for path in sorted((ROOT / "hms_iceberg").rglob("*.md"))
    },
}
_BLOCK = re.compile(r"^(?P<fence>```)(?P<language>\w*)\n(?P<code>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """One block of code of a page."""

    page: str
    section: str
    language: str
    code: str

    @property
    def words(self) -> list[list[str]]:
        """The words of each line of a shell block; a line that a backslash continues is one."""
        lines = self.code.replace("\\\n", " ").splitlines()
        return [shlex.split(line.split(" >> ")[0], comments=True) for line in lines]


def blocks(page: str) -> list[Block]:
    """All blocks of a page, in order.

    Args:
        page: a name of `PAGES`, which is the folder beside whose code the page is, such as `arrow/storage`.
    """
    text = PAGES[page].read_text(encoding="utf-8")
    found = re.finditer(r"^(?:#+ (.*)|\*\*([^*]+)\*\*.*)$", _without_code(text), re.M)
    places = [(each.start(), (each[1] or each[2]).rstrip(".")) for each in found]
    return [
        Block(page, next(name for at, name in reversed(places) if at < found.start()), found["language"], found["code"])
        for found in _BLOCK.finditer(text)
    ]


def _without_code(text: str) -> str:
    """The text with spaces for its blocks, in which a comment would look like a heading."""
    return _BLOCK.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def block(page: str, section: str, language: str = "bash") -> Block:
    """The first block of a section, of a language.

    Args:
        page: a name of `PAGES`.
        section: the section's heading, or the bold words that start a paragraph.
        language: what stands behind the block's fence.
    """
    return next(each for each in blocks(page) if (each.section, each.language) == (section, language))


def lines_of(page: str, section: str) -> list[list[str]]:
    """The words of each line of the first shell block of a section."""
    return block(page, section).words


def understood(line: str) -> None:
    """Parses a line that calls `hms-iceberg` as the program would; raises what the program would."""
    words = shlex.split(line, comments=True)[1:]
    command: click.Command = cli
    context = command.make_context("hms-iceberg", words)
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None, name
        command, context = found, found.make_context(name, rest, parent=context)
