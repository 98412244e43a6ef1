"""Prints how much of the package one has to know: `python tests/benchmarks/house.py`.

With `-v` it names the files of each operation; with `--picture` it draws which room imports which, as Mermaid.

Files that an operation runs through are those of which a function is entered (also in threads), imports left out.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tempfile
import threading
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType

import grimp
import pyarrow as pa
from click import echo

import hms_iceberg

ROOT = Path(hms_iceberg.__file__).parent
SMALL, LARGE = 80, 500


def files_entered(run: Callable[[], object]) -> set[str]:
    """The files of the package of which a function is entered while `run` runs."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name not in ("<module>", "<lambda>"):
            is_class_body = "__qualname__" in frame.f_locals and "__module__" in frame.f_locals
            if code.co_filename.startswith(str(ROOT)) and not is_class_body:
                found.add(str(Path(code.co_filename).relative_to(ROOT)))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return found


def operations(folder: Path) -> Iterable[tuple[str, set[str]]]:
    """Name and files of each operation, on a table of format version 2 in a catalog of folders."""
    from hms_iceberg.catalog import load_catalog
    from hms_iceberg.table.table import Table

    rows = pa.table({"id": pa.array(range(1000), pa.int64()), "name": [str(each % 7) for each in range(1000)]})
    catalog = load_catalog("counts", type="hadoop", warehouse=str(folder))
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", rows.schema, properties={"write.delete.mode": "merge-on-read"})
    made.append(rows)

    def load() -> Table:
        table = catalog.load_table("db.t")
        assert isinstance(table, Table)
        return table

    yield "load, scan, to_arrow", files_entered(lambda: load().scan("id >= 10").to_arrow())
    yield "load, append", files_entered(lambda: load().append(rows))
    yield "load, delete (merge-on-read)", files_entered(lambda: load().delete("id = 5"))


def files_with(pattern: str, root: Path = ROOT) -> set[str]:
    """The files of a folder in which a pattern occurs."""
    found = re.compile(pattern)
    return {str(each.relative_to(root)) for each in _sources(root) if found.search(each.read_text())}


def _sources(root: Path) -> list[Path]:
    return [each for suffix in ("*.py", "*.java") for each in sorted(root.rglob(suffix))]


def picture() -> str:
    """The rooms and their imports as a Mermaid diagram, without imports that other arrows imply."""
    graph = grimp.build_graph("hms_iceberg", exclude_type_checking_imports=True)
    rooms = sorted(
        each for each in graph.find_children("hms_iceberg") if graph.find_descendants(each) and each != "hms_iceberg.io"
    )
    below = {
        room: {
            other
            for other in rooms
            if other != room and graph.direct_import_exists(importer=room, imported=other, as_packages=True)
        }
        for room in rooms
    }

    def reached(room: str, seen: frozenset[str] = frozenset()) -> set[str]:
        next_rooms = below[room] - seen
        return next_rooms.union(*(reached(each, seen | {room}) for each in next_rooms))

    lines = ["flowchart TD"]
    for room in rooms:
        implied = set().union(*(reached(each, frozenset({room})) for each in below[room]))
        lines += [f"    {_short(room)} --> {_short(each)}" for each in sorted(below[room] - implied)]
    return "\n".join(lines)


def _short(room: str) -> str:
    return room.rpartition(".")[2]


def main() -> None:
    """Prints the counts, or the picture."""
    if "--picture" in sys.argv:
        echo(picture())
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, files in operations(Path(folder)):
            echo(f"{name:32} {len(files):4} files")
            if "-v" in sys.argv:
                echo("\n".join(f"    {each}" for each in sorted(files)))
    for name, pattern in (
        ("type timestamp_ns", r"TimestampNanoType|timestamp_ns|TIMESTAMP_NANO|TimestampNano\b"),
        ("type uuid", r"UUIDType|\"uuid\""),
        ("transform truncate", r"TruncateTransform|\"truncate\""),
    ):
        echo(f"{name:32} {len(files_with(pattern)):4} files name it")
    python = sorted(ROOT.rglob("*.py"))
    lines = {each: len(each.read_text().splitlines()) for each in python}
    small = [each for each, count in lines.items() if count <= SMALL and each.name != "__init__.py"]
    java = sorted(ROOT.rglob("*.java"))
    docs = [ast.get_docstring(node) or "" for each in python for node in _definitions(each)]
    code = sum(len(code_lines(each.read_text())) for each in python)
    echo(f"{'Python':32} {len(python):4} files, {sum(lines.values())} lines, {code} of them code")
    large = [str(each.relative_to(ROOT)) for each, count in lines.items() if count > LARGE]
    echo(f"{f'Python of more than {LARGE} lines':32} {len(large):4} files {' '.join(large)}")
    echo(f"{'Java':32} {len(java):4} files, {sum(len(each.read_text().splitlines()) for each in java)} lines")
    echo(f"{f'Python of at most {SMALL} lines':32} {len(small):4} files besides __init__.py")
    riddles = sum(each.startswith(("The same", "That of", "What is ", "Those of")) for each in docs)
    echo(f"{'docstrings that lean on others':32} {riddles:4} begin with The same, That of, Those of, What is")
    functions = list(public_functions(python))
    told = {(name, given) for name, given, doc, _ in functions if "Args:" in doc}
    described = sum((name, given) in told for name, given, _, _ in functions)
    untold = [
        doc for _, _, doc, gives in functions if gives and re.match(r"[A-Z][a-z]+s ", doc) and "Returns:" not in doc
    ]
    echo(f"{'public functions':32} {len(functions):4} of several arguments, {described} with Args, own or inherited")
    raising = sum("Raises:" in doc for _, _, doc, _ in functions)
    echo(f"{'':32} {raising:4} with Raises; {len(untold)} say what they do, give a value, and have no Returns")


def code_lines(text: str) -> set[int]:
    """Numbers of the lines of a module that are neither blank, nor comments, nor docstrings."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = {line for each in tokens if each.type not in skipped for line in range(each.start[0], each.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        for each in getattr(node, "body", None) or () if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                found -= set(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    return found


def public_functions(paths: Iterable[Path]) -> Iterator[tuple[str, tuple[str, ...], str, bool]]:
    """Name, arguments and docstring of each public function or method of several arguments, and if it gives a value.

    Commands are left out, whose options are described by their help, and what Thrift generated.
    """

    def within(node: ast.Module | ast.ClassDef) -> Iterator[tuple[str, tuple[str, ...], str, bool]]:
        for each in node.body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                yield from within(each)
            elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("_"):
                every = (*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs)
                given = tuple(one.arg for one in every if one.arg not in ("self", "cls"))
                marks = " ".join(ast.unparse(one) for one in each.decorator_list)
                if len(given) > 1 and not re.search(r"overload|command|click", marks):
                    gives = each.returns is not None and ast.unparse(each.returns) != "None"
                    yield each.name, given, ast.get_docstring(each) or "", gives

    for path in paths:
        if "genthrift" not in path.parts:
            yield from within(ast.parse(path.read_text()))


def _definitions(path: Path) -> Iterable[ast.FunctionDef | ast.ClassDef]:
    tree = ast.parse(path.read_text())
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef)))


if __name__ == "__main__":
    main()
