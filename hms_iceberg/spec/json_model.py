"""PyIceberg's names for the JSON of the specification, for every value that has one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from hms_iceberg.doors import door
from hms_iceberg.errors import InvalidInputError

Model = TypeVar("Model", bound="JsonModel")


class JsonModel:
    """A value with a JSON form, that of table metadata."""

    __slots__ = ()
    _json: ClassVar[str]

    def model_dump(self, **_: Any) -> Any:
        """The value as JSON-ready Python. Options, as PyIceberg has them, are ignored: the form is always that of the
        specification, without what is None.
        """
        return door(f"{self._json}.to_json")(self)

    def model_dump_json(self, **options: Any) -> str:
        """The value as JSON text, without spaces."""
        return json.dumps(self.model_dump(**options), ensure_ascii=False, separators=(",", ":"))

    def model_copy(self: Model, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Model:
        """A copy with other attributes. Values are immutable, so that nothing inside needs to be copied."""
        return replace(self, **(update or {}))  # type: ignore[type-var]

    @classmethod
    def model_validate(cls: type[Model], data: Any) -> Model:
        """The value that JSON-ready Python stands for, or the value itself.

        Raises:
            IcebergError: something is missing or has the wrong type, or it stands for another kind of value.
        """
        value = data if isinstance(data, cls) else door(f"{cls._json}.from_json")(data)
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
