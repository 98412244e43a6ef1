"""SQL scenarios with the results that Apache Iceberg's own Spark runtime gave: how one is run, and what is right.

A scenario is a file of the archive in tests/golden/sql: steps (SQL, snippets of PySpark, values to remember) and facts,
which are queries at the end. A step must give its recorded rows and columns; one that is recorded as an error must fail
with one of its words and leave the table that it names as it was. After a step that fails and should not, nothing more
is judged.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

_TABLES = ("t", "t2", "t3", "src", "h", "v")  # names that every run of a scenario gets anew
_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_LARGE = 10**9  # numbers above may be snapshot ids


@dataclass(frozen=True)
class Scenario:
    """One scenario in one version of the table format."""

    content: Mapping[str, Any]
    version: int

    @property
    def name(self) -> str:
        return f"{self.content['group']}/{self.content['name']}/v{self.version}"


def scenarios(archive: Path) -> list[Scenario]:
    """All scenarios of an archive, by name."""
    with tarfile.open(archive) as files:
        members = (files.extractfile(member) for member in files if member.name.endswith(".json"))
        cases = [json.load(file) for file in members if file is not None]
    found = [Scenario(case, version) for case in cases for version in case["format_version"]]
    return sorted(found, key=lambda scenario: scenario.name)


@dataclass(frozen=True)
class Step:
    """What one step asks for, in one version of the format."""

    content: Mapping[str, Any]
    version: int

    @property
    def text(self) -> str:
        return str(self.content.get("sql") or self.content.get("py") or "")

    def recorded(self, what: str) -> Any:
        """The recorded `rows` or `schema`; None where nothing is compared."""
        by_version = self.content.get(f"{what}_by_version")
        return self.content.get(what) if by_version is None else by_version[str(self.version)]


class ScenarioRun:
    """A run of one scenario, with names, folders and remembered values of its own."""

    def __init__(self, spark: SparkSession, scenario: Scenario, database: str, number: int, folder: Path) -> None:
        self._spark = spark
        self._scenario = scenario
        self._folder = folder / str(number)
        names = {name: f"{database}.{name}_{number}" for name in _TABLES}
        bare = {f"{name}_": full.split(".")[1] for name, full in names.items()}
        warehouse = spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")
        places = {"tmp": str(self._folder), "warehouse": warehouse}
        self._fixed = {"db": database, "fv": str(scenario.version)}
        self._own = {**names, **bare, **places}

    def problem(self) -> str | None:
        """The first thing that is wrong; None where all is right."""
        case = self._scenario.content
        self._folder.mkdir(parents=True)
        settings = case.get("conf", {})
        try:
            for key, value in settings.items():
                self._spark.conf.set(key, self._filled(value))
            for number, content in enumerate([*case["steps"], *case.get("facts", [])], 1):
                wrong = self._judged(Step(content, self._scenario.version))
                if wrong is not None:
                    return f"step {number}: {wrong}"
            return None
        finally:
            for key in settings:
                self._spark.conf.unset(key)
            self._clean_up()

    def _clean_up(self) -> None:
        for query in self._spark.streams.active:
            query.stop()
        drops = [f"drop {'view' if name == 'v' else 'table'} if exists {self._own[name]}" for name in _TABLES]
        for statement in (*self._scenario.content.get("undo", []), *drops):
            with suppress(Exception):
                self._spark.sql(self._filled(statement))
        shutil.rmtree(self._folder, ignore_errors=True)

    # ------------------------------------------------------------------------------------------ judgement

    def _judged(self, step: Step) -> str | None:
        if "error" in step.content:
            return self._judged_error(step)
        try:
            if "capture" in step.content:
                for name, query in step.content["capture"].items():
                    self._own[name] = str(self._spark.sql(self._filled(query)).collect()[0][0])
                return None
            rows, schema = step.recorded("rows"), step.recorded("schema")
            if rows is None:
                self._execute(step)
                return None
            got_schema, got_rows = self._queried(step.text, step.content.get("only"))
        except Exception as error:
            return f"must succeed, and raised {_brief(error)}"
        if not _alike(rows, got_rows):
            return f"expected {_short(rows)}, got {_short(got_rows)}"
        return None if schema in (None, got_schema) else f"expected columns ({schema}), got ({got_schema})"

    def _judged_error(self, step: Step) -> str | None:
        words = step.content["error"]["contains_any"]
        before = self._state(step)
        try:
            self._execute(step)
        except Exception as error:
            if not any(self._filled(word) in str(error).lower() for word in words):
                return f"expected an error with one of {words}, got {_brief(error)}"
            after = self._state(step)
            return None if _alike(before, after) else f"an error changed {_short(before)} to {_short(after)}"
        return f"expected an error with one of {words}, got none"

    def _state(self, step: Step) -> list[Any]:
        """Rows, columns and refs of the tables that a step names."""
        named = [name for name in ("t", "t2") if re.search(rf"\{{{name}_?\}}", step.text)]
        pairs = [
            (f"select * from {{{name}}}", f"select name, type, snapshot_id from {{{name}}}.refs") for name in named
        ]
        found: list[Any] = []
        for query in (query for pair in pairs for query in pair):
            try:
                found.append(list(self._queried(query)))
            except Exception:
                found.append(None)  # no such table, or none with refs
        return found

    # ------------------------------------------------------------------------------------------ execution

    def _execute(self, step: Step) -> None:
        if "sql" in step.content:
            self._spark.sql(self._filled(step.text)).collect()
        else:
            from pyspark.sql import functions

            code = compile(self._filled(step.text), self._scenario.name, "exec")
            exec(code, {"spark": self._spark, "F": functions})

    def _queried(self, text: str, only: list[str] | None = None) -> tuple[str, list[Any]]:
        frame: DataFrame = self._spark.sql(self._filled(text))
        if only is not None:
            frame = frame.select(*only)
        fields = frame.schema.fields
        rows = [
            [self._generalised(_plain(value, field.dataType)) for value, field in zip(row, fields, strict=True)]
            for row in frame.collect()
        ]
        if not _is_ordered(text):
            rows.sort(key=_sort_key)
        return self._generalised(", ".join(f"{each.name} {each.dataType.simpleString()}" for each in fields)), rows

    def _filled(self, text: str) -> str:
        values = {**self._fixed, **self._own}
        return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)

    def _generalised(self, value: Any) -> Any:
        """With placeholders in the place of what differs from run to run."""
        if isinstance(value, list):
            return [self._generalised(each) for each in value]
        if isinstance(value, dict):
            return {key: self._generalised(each) for key, each in value.items()}
        is_id = type(value) is int and abs(value) > _LARGE
        if not isinstance(value, str) and not is_id:
            return value
        text = str(value)
        for name, own in sorted(self._own.items(), key=lambda item: -len(item[1])):
            text = text.replace(own, f"{{{name}}}")
        return value if text == str(value) else text


# ----------------------------------------------------------------------------------------------- values


def _plain(value: Any, kind: DataType) -> Any:
    """A value as JSON has it, with a tag before what JSON has not."""
    if value is None:
        return None
    name = kind.typeName()
    if name == "struct":
        return {each.name: _plain(item, each.dataType) for item, each in zip(value, kind.fields, strict=True)}
    if name == "array":
        return [_plain(item, kind.elementType) for item in value]
    if name == "map":
        entries = ([_plain(key, kind.keyType), _plain(item, kind.valueType)] for key, item in value.items())
        return {"$map": sorted(entries, key=_sort_key)}
    if isinstance(value, float) and not math.isfinite(value):
        return f"float:{value}"
    tags = {
        "decimal": lambda: f"dec:{value:f}",
        "date": lambda: f"date:{value.isoformat()}",
        "timestamp": lambda: f"ts:{value.isoformat()}",
        "timestamp_ntz": lambda: f"ntz:{value.isoformat()}",
        "binary": lambda: f"bin:{bytes(value).hex()}",
        "variant": lambda: f"variant:{value.toJson()}",
    }
    return tags[name]() if name in tags else value


def _sort_key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _alike(one: Any, other: Any) -> bool:
    """Equal in value and type; floats nearly."""
    if type(one) is not type(other):
        return {type(one), type(other)} == {list, tuple} and _alike(list(one), list(other))
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(one, dict):
        return list(one) == list(other) and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other)


def _is_ordered(query: str) -> bool:
    """Whether there is an ORDER BY outside of texts and parentheses."""
    text = "".join(_outermost(re.sub(r"'(?:[^'\\]|\\.)*'", "", query)))
    return query.lstrip().lower().startswith(("select", "with", "from", "table")) and bool(
        re.search(r"\border\s+by\b", text, re.IGNORECASE)
    )


def _outermost(text: str) -> Iterator[str]:
    depth = 0
    for character in text:
        depth += character == "("
        if depth == 0:
            yield character
        depth -= character == ")"


def _brief(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:300]
