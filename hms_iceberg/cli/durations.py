"""Times and sizes as people write them."""

from __future__ import annotations

from typing import Any

import click

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


class Duration(click.ParamType):
    """A time such as 90s, 10m, 2h or 1d, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds of a text."""
        text = str(value).strip().lower()
        number, unit = (text[:-1], text[-1:]) if text[-1:] in _UNITS else (text, "s")
        if not number.isdigit():
            self.fail(f"expected a time such as 90s, 10m, 2h or 1d, got {value!r}", param, ctx)
        return float(number) * _UNITS[unit]


class Size(click.ParamType):
    """A number of bytes such as 500M or 10G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes of a text."""
        text = str(value).strip().upper().removesuffix("B").removesuffix("I")
        number, unit = (text[:-1], text[-1:]) if text[-1:] in _SIZES else (text, "")
        if not number.isdigit():
            self.fail(f"expected a size such as 500M or 10G, got {value!r}", param, ctx)
        return int(number) * _SIZES.get(unit, 1)
