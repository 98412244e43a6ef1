"""Reads numbers, switches and times from a catalog's properties."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hms_iceberg.errors import ConfigurationError


class PropertyReader:
    """Values of a catalog's properties; every method raises `ConfigurationError`, which names the property."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties

    def _text(self, name: str) -> str | None:
        """A property's text; names that come from a file or a variable are in lower case."""
        return self._properties.get(name, self._properties.get(name.lower()))

    def integer(self, name: str, default: int) -> int:
        text = self._text(name)
        if text is None:
            return default
        try:
            return int(text)
        except ValueError:
            raise ConfigurationError(f"Property {name!r}: expected a whole number, got {text!r}.") from None

    def boolean(self, name: str, default: bool) -> bool:
        given = self._text(name)
        text = str(default if given is None else given).strip().lower()
        if text not in ("true", "false"):
            raise ConfigurationError(f"Property {name!r}: expected true or false, got {text!r}.")
        return text == "true"

    def milliseconds(self, name: str, default: float) -> float:
        text = self._text(name)
        if text is None:
            return default
        value = self.integer(name, 0)
        if value < 0:
            raise ConfigurationError(f"Property {name!r}: expected milliseconds, 0 or more, got {text!r}.")
        return value / 1000

    def seconds(self, name: str, default: float) -> float:
        """A time as Hive writes it: a number with an optional unit; seconds without one."""
        text = self._text(name)
        if text is None:
            return default
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|msec|s|sec|m|min|h|hour)?\s*", str(text))
        if match is None or float(match[1]) <= 0:
            raise ConfigurationError(f"Property {name!r}: expected a time such as 600 or 600s, got {text!r}.")
        unit = {"m": 60.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "ms": 0.001, "msec": 0.001}
        return float(match[1]) * unit.get(match[2] or "s", 1.0)
