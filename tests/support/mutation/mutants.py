"""Small changes of a module that a test should notice: comparisons, conditions, numbers, statements left out."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Place = tuple[str, int]


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        line: where it is.
        change: what is changed, for reports: `a < b  ->  a <= b`.
        function: name and first line of the function that it is in; None if it is outside of functions.
        code: the module with it.
    """

    line: int
    change: str
    function: Place | None
    code: CodeType

    def of_function(self) -> CodeType:
        """The code of the changed function alone."""
        assert self.function is not None
        return functions(self.code)[self.function]


def functions(code: CodeType) -> dict[Place, CodeType]:
    """The functions of a module that are not in other functions, by name and first line."""
    found: dict[Place, CodeType] = {}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_flags & inspect.CO_NEWLOCALS and each.co_flags & inspect.CO_OPTIMIZED:
                found[each.co_name, each.co_firstlineno] = each
            else:
                found |= functions(each)
    return found


def mutants(path: Path, strings: bool = False) -> list[Mutant]:
    """The changes of a module, without those that mean the same to the compiler.

    Args:
        path: the module.
        strings: whether words are changed as well.
    """
    text = path.read_text()
    tree = ast.parse(text)
    places = list(_places(tree))
    seen = {compile(tree, str(path), "exec")}
    found = []
    for number, (node, function) in enumerate(places):
        if not strings and isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
            continue
        for make in _changes(node):
            changed = copy.deepcopy(tree)
            other, _ = list(_places(changed))[number]
            before = ast.unparse(other)
            new = make(other)
            _put(changed, other, new)
            try:
                code = compile(ast.fix_missing_locations(changed), str(path), "exec")
            except (SyntaxError, ValueError):
                continue
            if code in seen:
                continue
            seen.add(code)
            after = "removed" if isinstance(new, ast.Pass) else ast.unparse(new)
            line = (node.target if isinstance(node, ast.comprehension) else node).lineno
            found.append(Mutant(line, f"{_short(before)}  ->  {_short(after)}", function, code))
    return found


def _short(text: str) -> str:
    lines = text.splitlines()
    return lines[0] if len(lines) == 1 else f"{lines[0]} {lines[1].strip()} ..."


def _places(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt | ast.comprehension, Place | None]]:
    """What can be changed, in a fixed order: not annotations, docstrings, imports, nor the words of errors."""

    parts: set[int] = set()

    def visit(node: ast.AST, function: Place | None) -> Iterator[tuple[ast.AST, Place | None]]:
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr)):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.keyword) and node.arg == "strict":
            return
        if _is_log(node) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            return
        if not (isinstance(node, ast.Compare) and id(node) in parts and not isinstance(node.ops[0], _ORDER)):
            yield node, function
        if isinstance(node, ast.BoolOp):  # to leave a part out says more than to turn it round
            parts.update(map(id, node.values))
        if isinstance(node, ast.Raise):
            return
        inner = function
        if isinstance(node, _FUNCTIONS) and function is None:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            inner = node.name, first
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
                continue
            within = function if name == "args" and isinstance(node, _FUNCTIONS) else inner
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from visit(child, within)

    yield from visit(tree, None)


def _is_log(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and isinstance(node.value.func.value, ast.Name)
        and node.value.func.value.id == "logger"
    )


def _put(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, ast.copy_location(new, old))
                return
            if isinstance(value, list) and any(each is old for each in value):
                value[[each is old for each in value].index(True)] = ast.copy_location(new, old)
                return


Change = Callable[[Any], ast.AST]
"""Makes the changed node from a copy of the node, whose parts it may use."""


def _changes(node: ast.AST) -> Iterable[Change]:
    """What a node can be changed to."""
    make = _BY_KIND.get(type(node))
    return () if make is None else make(node)


def _compared(node: ast.Compare) -> Iterator[Change]:
    for number, each in enumerate(node.ops):
        for other in _COMPARED[type(each)]:
            yield lambda it, number=number, other=other: _set(it, "ops", number, other())


def _parts(node: ast.BoolOp) -> Iterator[Change]:
    for number in range(len(node.values)):
        yield lambda it, number=number: _without(it, number)


def _computed(node: ast.BinOp) -> Iterator[Change]:
    if isinstance(node.right, ast.Constant) and node.right.value is None:  # a type
        return
    yield lambda it: it.left
    if type(node.op) in _COMPUTED:
        yield lambda it: _with(it, op=_COMPUTED[type(it.op)]())


def _decided(node: ast.If | ast.IfExp | ast.While) -> Iterator[Change]:
    if isinstance(node.test, (ast.Compare, ast.BoolOp)):
        return
    yield lambda it: _with(it, test=ast.Constant(False))
    if not isinstance(node, ast.While):
        yield lambda it: _with(it, test=ast.Constant(True))


def _filtered(node: ast.comprehension) -> Iterator[Change]:
    for number in range(len(node.ifs)):
        yield lambda it, number=number: _set(it, "ifs", number, ast.Constant(True))


def _returned(node: ast.Return) -> Iterator[Change]:
    if node.value is not None and not isinstance(node.value, ast.Constant):
        yield lambda it: _with(it, value=ast.Constant(None))


def _called(node: ast.Call) -> Iterator[Change]:
    if isinstance(node.func, ast.Name) and node.func.id in _CALLED:
        yield lambda it: _with(it, func=ast.Name(_CALLED[it.func.id], ast.Load()))


def _caught(node: ast.ExceptHandler) -> Iterator[Change]:
    if not isinstance(node.body[0], ast.Raise):
        yield lambda it: _with(it, body=[ast.Raise()])


def _assigned(node: ast.Assign) -> Iterator[Change]:
    if not isinstance(node.targets[0], ast.Name):
        yield lambda it: ast.Pass()


def _removed(node: ast.stmt) -> Iterator[Change]:
    yield lambda it: ast.Pass()


def _constant(node: ast.Constant) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield lambda it: ast.Constant(not value)
    elif isinstance(value, int) and value <= 16:  # sizes and units are what somebody chose
        yield lambda it: ast.Constant(value + 1)
    elif isinstance(value, bytes):
        yield lambda it: ast.Constant(value + b"x")
    elif isinstance(value, str) and " " not in value:  # no words for people
        yield lambda it: ast.Constant(value + "x")


_BY_KIND: dict[type[ast.AST], Callable[[Any], Iterator[Change]]] = {
    ast.Compare: _compared,
    ast.BoolOp: _parts,
    ast.UnaryOp: lambda node: iter([lambda it: it.operand]),
    ast.BinOp: _computed,
    ast.Constant: _constant,
    ast.If: _decided,
    ast.IfExp: _decided,
    ast.While: _decided,
    ast.comprehension: _filtered,
    ast.Return: _returned,
    ast.Call: _called,
    ast.ExceptHandler: _caught,
    ast.Assign: _assigned,
    **dict.fromkeys([ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete, ast.Assert], _removed),
}


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _set(node: ast.AST, name: str, number: int, value: object) -> ast.AST:
    values = list(getattr(node, name))
    values[number] = value
    return _with(node, **{name: values})


def _without(node: ast.AST, number: int) -> ast.AST:
    values = [each for place, each in enumerate(node.values) if place != number]  # type: ignore[attr-defined]
    return values[0] if len(values) == 1 else _with(node, values=values)
