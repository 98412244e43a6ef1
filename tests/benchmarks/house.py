"""Prints how large the package is, room by room: `python tests/benchmarks/house.py`.

With `-v` it names the public names that have no docstring, and the internal ones whose docstring has sections. With
`--picture` it draws which room imports which, as Mermaid.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import grimp
from click import echo

import hms_iceberg

ROOT = Path(hms_iceberg.__file__).parent
TESTS = Path(__file__).resolve().parents[1]
LARGE, LONG = 500, 60
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SECTIONS = re.compile(r"^(Args|Returns|Raises|Yields):$", re.M)

# Rooms that a user imports from, beside the modules at the top, and modules whose classes others implement or catch.
IMPORTED = {
    "catalog",
    "expressions",
    "maintenance",
    "migration",
    "report",
    "reporters",
    "rest",
    "spark",
    "table",
    "view",
    "io",
}
PORTS = {"storage", "metastore", "errors"}

Key = tuple[str, str]


class Definition(NamedTuple):
    """A class or function: its module, dotted name and node, and whether it is public."""

    module: str
    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    public: bool

    @property
    def doc(self) -> str:
        """Its docstring."""
        return ast.get_docstring(self.node) or ""

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return (self.node.end_lineno or 0) - self.node.lineno + 1


class Package:
    """The modules of the package, without what Thrift generated, by their names below the package."""

    def __init__(self, root: Path = ROOT) -> None:
        files = [each for each in sorted(root.rglob("*.py")) if "genthrift" not in each.parts]
        self.texts = {
            ".".join(each.relative_to(root).with_suffix("").parts)
            .removesuffix("__init__")
            .rstrip("."): each.read_text()
            for each in files
        }
        self.trees = {name: ast.parse(text) for name, text in self.texts.items()}

    def public_names(self) -> set[Key]:
        """Module and name of each public class and function at the top of a module: the one meaning of "public".

        Public is what a module that users import names in `__all__`, what stands in a port, and what is reached from
        there: what annotations of results and attributes, and bases, of public classes and functions name, and so on.
        Methods of a public class are public too. A name that begins with an underscore is not.
        """
        todo = [(module, name) for module, name in self._top if module in PORTS]
        for module, tree in self.trees.items():
            if module != "lazy" and (module.partition(".")[0] in IMPORTED or "." not in module):
                for node in tree.body:
                    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                        todo += [(module, name) for name in ast.literal_eval(node.value)]
        found: set[Key] = set()
        while todo:
            key = self._home(*todo.pop())
            if key in self._top and key not in found and not key[1].startswith("_"):
                found.add(key)
                todo += [(key[0], name) for name in _names_given(self._top[key])]
        return found

    def definitions(self) -> Iterator[Definition]:
        """Every class and function, nested ones too."""
        public = self.public_names()

        def within(module: str, prefix: str, node: ast.AST, is_public: bool) -> Iterator[Definition]:
            for each in ast.iter_child_nodes(node):
                if isinstance(each, (*FUNCTIONS, ast.ClassDef)):
                    known = is_public and not each.name.startswith("_") if prefix else (module, each.name) in public
                    yield Definition(module, prefix + each.name, each, known)
                    yield from within(module, f"{prefix}{each.name}.", each, known and isinstance(each, ast.ClassDef))
                else:
                    yield from within(module, prefix, each, is_public)

        for module, tree in self.trees.items():
            yield from within(module, "", tree, False)

    @cached_property
    def _top(self) -> dict[Key, ast.stmt]:
        found: dict[Key, ast.stmt] = {}
        for module, tree in self.trees.items():
            for node in tree.body:
                if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                    found[module, node.name] = node
                elif isinstance(node, ast.Assign):
                    found[module, ast.unparse(node.targets[0])] = node
        return found

    @cached_property
    def _imports(self) -> dict[Key, Key]:
        return {
            (module, each.asname or each.name): (node.module.removeprefix("hms_iceberg").lstrip("."), each.name)
            for module, tree in self.trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("hms_iceberg")
            for each in node.names
        }

    def _home(self, module: str, name: str) -> Key:
        while (module, name) not in self._top and (module, name) in self._imports:
            module, name = self._imports[module, name]
        return module, name


def _names_given(node: ast.stmt) -> set[str]:
    """Names in the annotations of results and attributes, in the bases, and in what an alias stands for."""
    if isinstance(node, ast.Assign):
        given: list[ast.expr | None] = [node.value]
    elif isinstance(node, ast.ClassDef):
        methods = [each for each in node.body if isinstance(each, FUNCTIONS) and _is_reached(each.name)]
        fields = [each.annotation for each in node.body if isinstance(each, ast.AnnAssign)]
        given = [*node.bases, *fields, *(each.returns for each in methods)]
    else:
        given = [node.returns] if isinstance(node, FUNCTIONS) else []
    text = " ".join(ast.unparse(each) for each in given if each is not None)
    return set(re.findall(r"[A-Za-z]\w*", text))


def _is_reached(method: str) -> bool:
    return not method.startswith("_") or method == "__enter__"


def code_and_docstrings(text: str) -> tuple[int, int]:
    """How many lines of a module are neither blank, nor comments, nor docstrings; and how many are docstrings."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = {line for each in tokens if each.type not in skipped for line in range(each.start[0], each.end[0] + 1)}
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        for each in getattr(node, "body", None) or () if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                docs |= set(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    return len(found - docs), len(docs)


def java_cycles() -> int:
    """How many pairs of Java packages import one another, directly or by way of others; but for files that take the
    place of others in a version of Spark."""
    imports: dict[str, set[str]] = {}
    for file in ROOT.rglob("*.java"):
        if "versions" in file.parts:
            continue
        text = file.read_text()
        package = "".join(re.findall(r"^package ([\w.]+);", text, re.M))
        imports.setdefault(package, set()).update(re.findall(r"^import (?:static )?([a-z_0-9.]+)\.", text, re.M))

    def reached(package: str, seen: set[str]) -> set[str]:
        for other in imports.get(package, set()) - seen:
            seen.add(other)
            reached(other, seen)
        return seen

    below = {package: reached(package, set()) for package in imports}
    return sum(one < other and one in below[other] and other in below[one] for one in imports for other in imports)


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
    package = Package()
    definitions = list(package.definitions())
    echo(f"{'room':20} files   code   docs")
    rooms: Counter[str] = Counter()
    code: Counter[str] = Counter()
    docs: Counter[str] = Counter()
    for module, text in package.texts.items():
        room = module.partition(".")[0] if "." in module or module in IMPORTED else "(top)"
        rooms[room] += 1
        in_code, in_docs = code_and_docstrings(text)
        code[room] += in_code
        docs[room] += in_docs
    for room, files in rooms.items():
        echo(f"{room:20} {files:5} {code[room]:6} {docs[room]:6}")
    echo(f"{'Python':20} {rooms.total():5} {code.total():6} {docs.total():6}")
    java = [len(each.read_text().splitlines()) for each in ROOT.rglob("*.java")]
    echo(f"{'Java':20} {len(java):5} {sum(java):6} lines in all")
    tests = [code_and_docstrings(each.read_text()) for each in TESTS.rglob("*.py")]
    echo(f"{'tests':20} {len(tests):5} {sum(each for each, _ in tests):6} {sum(each for _, each in tests):6}")
    public = [each for each in definitions if each.public and each.name.rpartition(".")[2] != "__init__"]
    undocumented = [each for each in public if not each.doc]
    leaning = [each for each in definitions if re.match(r"(The same|What|Those|That of|It) ", each.doc)]
    sections = [each for each in definitions if not each.public and SECTIONS.search(each.doc)]
    functions = [each for each in definitions if isinstance(each.node, FUNCTIONS)]
    echo(f"{len(functions)} functions, {len(definitions) - len(functions)} classes")
    echo(f"{len(public)} public names, {100 * (len(public) - len(undocumented)) / len(public):.0f}% with a docstring")
    echo(f"{len(sections)} internal names have Args, Returns or Raises")
    echo(f"{len(leaning)} docstrings begin with What, The same, Those, That of, It")
    echo(f"{sum(text.count('= Hook(') for text in package.texts.values())} hooks")
    echo(f"{java_cycles()} pairs of Java packages in cycles")
    large = [f"{name} {len(text.splitlines())}" for name, text in package.texts.items() if text.count("\n") > LARGE]
    echo(f"modules of more than {LARGE} lines: {', '.join(large)}")
    longest = sorted((each for each in functions if each.lines > LONG), key=lambda each: -each.lines)[:8]
    echo(f"longest functions: {', '.join(f'{each.module}.{each.name} {each.lines}' for each in longest)}")
    if "-v" in sys.argv:
        for title, chosen in (("without docstring", undocumented), ("sections", sections), ("leaning", leaning)):
            echo("\n".join(f"{title}: {each.module}.{each.name}" for each in chosen))


if __name__ == "__main__":
    main()
