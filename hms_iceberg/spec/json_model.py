"""The JSON of the specification: PyIceberg's names for it on every value, typed reading of objects and arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, TypeVar

from hms_iceberg.errors import CorruptMetadataError, InvalidInputError

# As many as microseconds have 64 bits for.
_MOST_MILLISECONDS = (2**63 - 1) // 1000

Model = TypeVar("Model", bound="JsonModel")


class JsonForm(NamedTuple):
    """The functions that make JSON-ready Python of a class's values, and values of it."""

    dump: Callable[[Any], Any]
    read: Callable[[Any], Any]


def set_json_form(kind: type[Model], dump: Callable[[Model], Any], read: Callable[[Any], Model]) -> None:
    """Gives a class and its subclasses their JSON form."""
    kind._json = JsonForm(dump, read)


class JsonModel:
    """A value with a JSON form, that of table metadata.

    A class whose form is in another module names that module as `_json_home`; it is imported when the form is needed.
    """

    __slots__ = ()
    _json_home: ClassVar[str] = ""
    _json: ClassVar[JsonForm | None] = None

    @classmethod
    def _json_form(cls) -> JsonForm:
        if cls._json is None:
            import_module(cls._json_home)
        assert cls._json is not None, f"{cls._json_home} does not set the JSON form of {cls.__name__}"
        return cls._json

    def model_dump(self, **_: Any) -> Any:
        """The value as JSON-ready Python. Options, as PyIceberg has them, are ignored: the form is always that of the
        specification, without what is None.
        """
        return self._json_form().dump(self)

    def model_dump_json(self, **options: Any) -> str:
        """The value as JSON text, without spaces."""
        return json.dumps(self.model_dump(**options), ensure_ascii=False, separators=(",", ":"))

    def model_copy(self: Model, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Model:
        """A copy with some attributes changed; nothing inside is copied, as values are immutable.

        Args:
            update: attributes to change, with their values.
            deep: not used; part of PyIceberg's interface.
        """
        return replace(self, **(update or {}))  # type: ignore[type-var]

    @classmethod
    def model_validate(cls: type[Model], data: Any) -> Model:
        """The value that JSON-ready Python stands for, or the value itself.

        Raises:
            IcebergError: something is missing or has the wrong type, or it stands for another kind of value.
        """
        value = data if isinstance(data, cls) else cls._json_form().read(data)
        if not isinstance(value, cls):
            raise InvalidInputError(f"Cannot read a {cls.__name__} from {data!r:.200}: it is {value}")
        return value

    @classmethod
    def model_validate_json(cls: type[Model], text: str | bytes) -> Model:
        """The value that JSON text stands for; see `model_validate`.

        Raises:
            InvalidInputError: it is no JSON.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise InvalidInputError(f"Cannot read a {cls.__name__}: it is no JSON: {error}") from error
        return cls.model_validate(data)


class JsonObject:
    """A parsed JSON object whose members are read by type; null counts as missing. Wrong members raise
    CorruptMetadataError that names `what`."""

    __slots__ = ("data", "what")

    def __init__(self, data: Any, what: str) -> None:
        if not isinstance(data, Mapping):
            raise CorruptMetadataError(f"{what} is {shown(data)}, expected an object")
        self.data = data
        self.what = what

    def has(self, key: str) -> bool:
        return self.data.get(key) is not None

    def _of(self, key: str, kind: type, expected: str) -> Any:
        value = self.data.get(key)
        if value is None:
            raise CorruptMetadataError(f"{self.what} lacks {key!r}, expected {expected}")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise CorruptMetadataError(f"{key!r} of {self.what} is {shown(value)}, expected {expected}")
        return value

    def integer(self, key: str) -> int:
        value: int = self._of(key, int, "an integer")
        if not -(2**63) <= value < 2**63:
            raise CorruptMetadataError(f"{key!r} of {self.what} is {value}, expected a 64-bit integer")
        return value

    def milliseconds(self, key: str) -> int:
        """A moment in milliseconds from 1970-01-01 UTC, which times in microseconds can hold."""
        value = self.integer(key)
        if not -_MOST_MILLISECONDS <= value <= _MOST_MILLISECONDS:
            raise CorruptMetadataError(f"{key!r} of {self.what} is {value}, which is no time in milliseconds")
        return value

    def integer_or_none(self, key: str) -> int | None:
        return self.integer(key) if self.has(key) else None

    def text(self, key: str) -> str:
        value: str = self._of(key, str, "text")
        return value

    def text_or_none(self, key: str) -> str | None:
        return self.text(key) if self.has(key) else None

    def sequence(self, key: str) -> list[Any]:
        value: list[Any] = self._of(key, list, "a list")
        return value

    def sequence_or_empty(self, key: str) -> list[Any]:
        return self.sequence(key) if self.has(key) else []

    def objects(self, key: str, what: str) -> list[JsonObject]:
        """A list of objects, empty if it is missing."""
        return [JsonObject(each, what) for each in self.sequence_or_empty(key)]

    def text_map_or_none(self, key: str) -> dict[str, str] | None:
        if not self.has(key):
            return None
        value: dict[str, Any] = self._of(key, dict, "an object")
        for name, each in value.items():
            if not isinstance(each, str):
                raise CorruptMetadataError(f"{name!r} in {key!r} of {self.what} is {shown(each)}, expected text")
        return value


def is_int(value: object) -> bool:
    """Whether a value of JSON is a 32-bit integer, as ids are."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31


def shown(data: object) -> str:
    """A value as text for messages, cut off if it is long."""
    text = repr(data)
    return text if len(text) <= 200 else text[:200] + " ..."


def column_names(names: Any, argument: str) -> tuple[str, ...]:
    """Names of columns; a text alone is refused, since it would be taken for names of one letter each."""
    if isinstance(names, Iterable) and not isinstance(names, str | bytes):
        found = tuple(names)
        if all(isinstance(name, str) for name in found):
            return found
    example = f"({names!r},)" if isinstance(names, str) else "('id', 'city')"
    raise InvalidInputError(f"{argument}: expected names of columns such as {example}, got {names!r}.")


def whole_number(number: Any, argument: str, what: str) -> int:
    """The value as an integer of 0 or more; InvalidInputError names `argument` and `what` (`a number of rows`)."""
    if isinstance(number, bool) or not isinstance(number, Integral) or number < 0:
        raise InvalidInputError(f"{argument}: expected {what} from 0, got {number!r}.")
    return int(number)


def snapshot_number(snapshot_id: Any) -> int:
    if isinstance(snapshot_id, bool) or not isinstance(snapshot_id, Integral):
        raise InvalidInputError(f"Snapshot id: expected an integer, got {snapshot_id!r}.")
    return int(snapshot_id)


def text_properties(properties: Mapping[str, Any], argument: str = "Properties") -> dict[str, str]:
    """Properties as text: numbers as Python writes them, booleans as `true` and `false`."""
    text = {}
    for key, value in mapping(properties, argument).items():
        if not isinstance(key, str) or isinstance(value, _NO_VALUES):
            raise InvalidInputError(
                f"{argument}: expected text, a number or true or false for {key!r}, got {value!r}. Write it as text, "
                "or leave it out."
            )
        text[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return text


_NO_VALUES = (type(None), bytes, Mapping, list, tuple, set, frozenset)


def mapping(given: Any, argument: str) -> Mapping[str, Any]:
    """The value itself, if it is a mapping; InvalidInputError names the argument."""
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"{argument}: expected values by name, such as {{'owner': 'billing'}}, got {given!r}.")
    return given
