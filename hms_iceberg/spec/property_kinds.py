"""Kinds of table properties, and how their texts are read and checked; `table_properties` has the properties."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar, Generic, TypeVar

from hms_iceberg.errors import ConfigurationError

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class TableProperty:
    """The attributes that all kinds of properties have; `reader` is the part of the package that acts on it."""

    KIND: ClassVar[str] = "text"

    name: str
    about: str
    reader: str

    def __str__(self) -> str:
        return self.name

    @property
    def default_text(self) -> str:
        """The default as the property would be set; empty if there is none."""
        return ""

    def check(self, text: str) -> None:
        """Refuses a text that stands for no value (ConfigurationError)."""

    def matches(self, name: str) -> bool:
        """Whether a name is that of the property."""
        return name == self.name

    def wrong(self, text: str, expected: str, hint: str = "") -> ConfigurationError:
        """The error for a text that is not what was expected."""
        return ConfigurationError(f"Table property {self.name!r}: expected {expected}, got {text!r}.{hint}")


@dataclass(frozen=True, slots=True)
class ParsedProperty(TableProperty, Generic[Value]):
    """A property whose text stands for a value; `parse` raises ConfigurationError for other texts."""

    default: Value

    @property
    def default_text(self) -> str:
        """The default as the property would be set."""
        return str(self.default)

    def of(self, properties: Mapping[str, str]) -> Value:
        """The value in some properties, or the default."""
        text = properties.get(self.name)
        return self.default if text is None else self.parse(text)

    def check(self, text: str) -> None:
        """Refuses a text that stands for no value (ConfigurationError)."""
        self.parse(text)

    def parse(self, text: str) -> Value:
        """The value of a text."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class IntProperty(ParsedProperty[int]):
    """An integer of so many bits. One below `least` is refused when it is set; of tables that have it already it is
    read."""

    KIND: ClassVar[str] = "integer"

    least: int | None = None
    bits: int = 64

    def check(self, text: str) -> None:
        if self.least is not None and self.parse(text) < self.least:
            raise self.wrong(text, f"an integer of at least {self.least}")
        self.parse(text)

    def parse(self, text: str) -> int:
        """The integer that a text says."""
        try:
            found = int(text)
        except ValueError:
            raise self.wrong(text, f"an integer such as {self.default}", " Set it to an integer.") from None
        if not -(2 ** (self.bits - 1)) <= found < 2 ** (self.bits - 1):
            raise self.wrong(text, f"an integer of {self.bits} bits")
        return found


@dataclass(frozen=True, slots=True)
class SizeProperty(IntProperty):
    """An integer above 0, without which no file can be written."""

    def parse(self, text: str) -> int:
        found = IntProperty.parse(self, text)
        if found < 1:
            raise self.wrong(text, "an integer above 0")
        return found


@dataclass(frozen=True, slots=True)
class BoolProperty(ParsedProperty[bool]):
    """True or false: `true` in any case is true, every other text is false, as Java reads it."""

    KIND: ClassVar[str] = "boolean"

    @property
    def default_text(self) -> str:
        return str(self.default).lower()

    def parse(self, text: str) -> bool:
        return text.strip().lower() == "true"


@dataclass(frozen=True, slots=True)
class FractionProperty(ParsedProperty[float]):
    """A number between 0 and 1, neither of them included."""

    KIND: ClassVar[str] = "fraction"

    def parse(self, text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = 0.0
        if not 0 < found < 1:
            raise self.wrong(text, "a number between 0 and 1")
        return found


@dataclass(frozen=True, slots=True)
class TextProperty(ParsedProperty[str]):
    """Text that its reader understands."""

    def parse(self, text: str) -> str:
        return text


@dataclass(frozen=True, slots=True)
class ChoiceProperty(TextProperty):
    """A choice among words, in upper or lower case."""

    KIND: ClassVar[str] = "choice"

    choices: tuple[str, ...]

    def parse(self, text: str) -> str:
        found = text.strip().lower()
        if found not in self.choices:
            raise self.wrong(text, f"one of {', '.join(self.choices)}", _nearest(found, self.choices))
        return found


@dataclass(frozen=True, slots=True)
class CodecProperty(TextProperty):
    """The name of a codec that Iceberg's writers know, in upper or lower case. Its writer says whether it has it."""

    codecs: tuple[str, ...]

    def check(self, text: str) -> None:
        """Refuses what is no codec (ConfigurationError)."""
        found = text.strip().lower()
        if found not in self.codecs:
            raise self.wrong(text, f"one of {', '.join(self.codecs)}", _nearest(found, self.codecs))


@dataclass(frozen=True, slots=True)
class PatternProperty(TextProperty):
    """Text of a pattern, in upper or lower case. Other text is refused when it is set; its reader passes it over."""

    pattern: str
    expected: str

    def match(self, text: str) -> re.Match[str] | None:
        """How a text matches, None if it does not."""
        return re.fullmatch(self.pattern, text.strip().lower())

    def check(self, text: str) -> None:
        """Refuses text that does not match (ConfigurationError)."""
        if self.match(text) is None:
            raise self.wrong(text, self.expected)


@dataclass(frozen=True, slots=True)
class ColumnProperty(TableProperty):
    """A family of properties: `name` is their prefix, and the dotted name of a column follows. Each refuses what the
    property `like` does."""

    KIND: ClassVar[str] = "of a column"

    like: TableProperty | None = None

    def check(self, text: str) -> None:
        if self.like is not None:
            self.like.check(text)

    def matches(self, name: str) -> bool:
        return name.startswith(self.name)

    def of_columns(self, properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for name, text in properties.items():
            if name.startswith(self.name):
                yield name[len(self.name) :], text


def _nearest(text: str, names: tuple[str, ...]) -> str:
    near = get_close_matches(text, names, 1)
    return f" Did you mean {near[0]}?" if near else ""
