"""Makes the front page's picture, `.github/demo.svg`, of what the demo wrote on a terminal.

script -qec "stty cols 110; hms-iceberg demo" demo.ansi
python -m tests.support.demo_picture demo.ansi
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parents[2] / ".github" / "demo.svg"
_CURSOR = re.compile(r"\x1b\[\??[0-9;]*[A-KSTfhlnsu]")
# Without fonts from elsewhere: the picture needs no network.
_FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
  line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: Arial, sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def final_lines(written: str) -> list[str]:
    """The lines that stay on the terminal: of a progress bar that is drawn again and again, its last state."""
    lines = []
    for line in written.replace("\r\n", "\n").split("\n"):
        last = line.split("\r")[-1]
        lines.append(_CURSOR.sub("", last))
    return lines


def picture(written: str, first: int, last: int) -> str:
    """An SVG of some of the demo's steps.

    Args:
        written: what the demo wrote, with the terminal's escape sequences.
        first: the number of the first step that is shown.
        last: that of the last one.
    """
    text = "\n".join(final_lines(written))
    start = re.search(rf"^(\x1b\[[0-9;]*m)*{first}/", text, re.M)
    end = re.search(rf"^(\x1b\[[0-9;]*m)*{last + 1}/", text, re.M)
    assert start is not None and end is not None
    kept = [line for line in text[start.start() : end.start()].split("\n") if "━━" not in line]
    shown = re.sub(r"\n{3,}", "\n", "\n".join(kept))
    console = Console(record=True, width=118, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ hms-iceberg demo\n", style="bold green"))
    console.print(Text.from_ansi(shown.rstrip()))
    return console.export_svg(title="hms-iceberg demo", code_format=_FORMAT, unique_id="demo")


if __name__ == "__main__":
    PICTURE.write_text(picture(Path(sys.argv[1]).read_text(encoding="utf-8"), 4, 6), encoding="utf-8")
