"""The guides: commands that exist, links that lead somewhere, blocks of code that are run or checked."""

from __future__ import annotations

import ast
import re
from itertools import chain
from pathlib import Path

import pytest
import yaml

from tests.benchmarks.house import picture
from tests.support.guides import FRONT_PAGE, PAGES, ROOT, Block, block, blocks, understood

_BLOCKS = [each for page in PAGES for each in blocks(page)]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
# What a line of another program says before it calls ours.
_CALL = re.compile(r"hms-iceberg [^\n\"\]]*")


def commands() -> list[str]:
    """The lines of the guides' shell blocks that call `hms-iceberg`."""
    shells = [each.code.replace("\\\n", " ") for each in _BLOCKS if each.language == "bash"]
    lines = [line.split(" >> ")[0] for shell in shells for line in shell.splitlines()]
    return sorted({line for line in lines if line.startswith("hms-iceberg")})


@pytest.mark.parametrize("line", commands())
def test_every_command_of_the_guides_is_understood(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "monday.csv",
        "tuesday.parquet",
        "plan.json",
        "policy.yaml",
        "statements.sql",
        "key.pem",
        "client.properties",
    ):
        (tmp_path / name).touch()
    understood(line)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_guide_leads_to_a_page_and_a_heading_of_it(page: str) -> None:
    path = PAGES[page]
    for link in _LINK.findall(path.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
            assert anchor in {re.sub(r"[^\w\- ]", "", each).lower().replace(" ", "-") for each in headings}, link


def test_the_front_page_fits_one_page() -> None:
    lines = FRONT_PAGE.read_text(encoding="utf-8").splitlines()
    recipes = [each for each in blocks("front") if each.section not in ("Two commands",)]

    assert len(lines) <= 150
    assert max(map(len, lines)) <= 160
    assert all(len(each.code.splitlines()) <= 10 for each in recipes)


def _asked_for() -> set[tuple[str, str, str]]:
    """Page, section and language of the blocks that a test names, by its literals."""
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("block", "lines_of"):
                words = [each.value for each in call.args if isinstance(each, ast.Constant)]
                if len(words) >= 2:
                    found.add((str(words[0]), str(words[1]), str(words[2]) if len(words) > 2 else "bash"))
    return found


def _is_checked_here(each: Block) -> bool:
    """Whether a test of this module says all that can be said of a block without the servers that it needs."""
    return each.language in ("text", "yaml", "bash")


def test_every_block_of_python_and_sql_is_run_by_a_test() -> None:
    left = {(each.page, each.section, each.language) for each in _BLOCKS if not _is_checked_here(each)}

    assert left <= _asked_for()


@pytest.mark.parametrize("each", [each for each in _BLOCKS if each.language == "yaml"], ids=lambda each: each.section)
def test_every_block_of_yaml_is_yaml_and_its_commands_are_understood(each: Block) -> None:
    assert list(yaml.safe_load_all(each.code))
    for line in _CALL.findall(each.code):
        understood(line.rstrip("\"'"))


def test_the_picture_of_the_rooms_is_that_of_their_imports() -> None:
    """An import that the arrows leave out is no fault of the picture; a room or an arrow that is none, is."""
    drawn, now = (arrows(each) for each in (block("contributing", "Rooms", "mermaid").code, picture()))
    below = {room: {lower for upper, lower in now if upper == room} for room in chain(*now)}

    for _ in below:
        below = {room: lower.union(*(below[each] for each in lower)) for room, lower in below.items()}
    assert set(chain(*drawn)) == below.keys()
    assert all(lower in below[upper] for upper, lower in drawn)


def arrows(text: str) -> set[tuple[str, str]]:
    """The rooms at the ends of each arrow."""
    return {(upper, lower) for upper, lower in re.findall(r"(\w+) --> (\w+)", text)}


def test_the_ci_script_runs_the_command_that_the_front_page_has() -> None:
    command = 'python -m pip install -e ".[test]" && python -m pytest -n 2 --dist loadfile'

    assert command in [line for each in blocks("front") for line in each.code.splitlines()]
    assert "readme_line 'python -m pip install -e \".[test]\"'" in (ROOT / ".ci" / "run").read_text()


def test_the_demo_has_the_line_that_the_front_page_shows_first() -> None:
    assert block("front", "Two commands").code.endswith("&& hms-iceberg demo\n")
