"""The registry of transforms of partition and sort fields, by their text.

A new transform is a class in `hms_iceberg.spec.transforms` and one entry of `TRANSFORMS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import cast

from hms_iceberg.spec.json_model import set_json_form
from hms_iceberg.spec.transforms.numbered import BucketTransform, TruncateTransform, wrapped
from hms_iceberg.spec.transforms.time_units import (
    DayTransform,
    HourTransform,
    MonthTransform,
    TimeTransform,
    YearTransform,
)
from hms_iceberg.spec.transforms.transform import (
    ARROW_TRANSFORM,
    BoundTransform,
    IdentityTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
)

__all__ = [
    "ARROW_TRANSFORM",
    "PARAMETERIZED",
    "SPELLINGS",
    "TRANSFORMS",
    "BoundTransform",
    "BucketTransform",
    "DayTransform",
    "HourTransform",
    "IdentityTransform",
    "MonthTransform",
    "TimeTransform",
    "Transform",
    "TruncateTransform",
    "UnknownTransform",
    "VoidTransform",
    "YearTransform",
    "parse_transform",
    "transform_of_sql",
    "wrapped",
]

TRANSFORMS: Mapping[str, type[Transform]] = {
    "identity": IdentityTransform,
    "bucket": BucketTransform,
    "truncate": TruncateTransform,
    "year": YearTransform,
    "month": MonthTransform,
    "day": DayTransform,
    "hour": HourTransform,
    "void": VoidTransform,
}
"""Every transform of the specification, by its name."""

SPELLINGS: Mapping[str, type[Transform]] = {word: kind for kind in TRANSFORMS.values() for word in kind.spellings}
"""The transforms that SQL can say, by each of their names there, in small letters."""

PARAMETERIZED: Mapping[str, Callable[[int], Transform]] = {
    name: cast("Callable[[int], Transform]", kind) for name, kind in TRANSFORMS.items() if kind.takes_number
}
"""The transforms that take a number, by name."""

_WITH_NUMBER = re.compile(rf"\s*({'|'.join(PARAMETERIZED)})\s*\[\s*(\d{{1,10}})\s*\]\s*", re.IGNORECASE)
_PLAIN: dict[str, Transform] = {name: kind() for name, kind in TRANSFORMS.items() if not kind.takes_number}


@lru_cache(maxsize=256)
def parse_transform(text: str) -> Transform:
    """The transform that text such as "day" or "bucket[16]" stands for.

    Upper and lower case are the same. Text that is no transform of the specification gives an `UnknownTransform`,
    since tables with such transforms must stay readable.

    Raises:
        InvalidInputError: the width or the number of buckets is 0 or too large.
    """
    if match := _WITH_NUMBER.fullmatch(text):
        return PARAMETERIZED[match[1].lower()](int(match[2]))
    return _PLAIN.get(text.strip().lower()) or UnknownTransform(text)


def transform_of_sql(name: str, number: int | None = None) -> Transform:
    """The transform that SQL such as `days(ts)` or `bucket(16, id)` names in any case; else UnknownTransform."""
    kind = SPELLINGS.get(name.lower())
    if kind is not None and not kind.takes_number and number is None:
        return kind()
    return parse_transform(name if number is None else f"{name}[{number}]")


set_json_form(Transform, str, parse_transform)  # type: ignore[type-abstract]  # its subclasses are what is made
