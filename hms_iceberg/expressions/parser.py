"""PyIceberg's name of the parser of filters."""

from __future__ import annotations

from hms_iceberg.expressions.text.parser import parse

__all__ = ["parse"]
