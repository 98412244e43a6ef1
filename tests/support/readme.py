"""The README's shell blocks, as lists of words."""

from __future__ import annotations

import shlex
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def lines_of(section: str) -> list[list[str]]:
    """The words of each line of the first shell block of a section."""
    text = README.read_text(encoding="utf-8").split(f"\n## {section}\n")[1]
    block = text.split("```bash\n")[1].split("```")[0]
    return [shlex.split(line.split(" >> ")[0], comments=True) for line in block.splitlines()]
