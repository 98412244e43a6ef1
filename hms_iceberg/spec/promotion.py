"""The types that a column may be promoted to.

Source: Iceberg specification, "Schema Evolution".
"""

from __future__ import annotations

from hms_iceberg.spec.data_types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampNanoType,
    TimestampType,
    UnknownType,
)
from hms_iceberg.spec.transforms.partition_transforms import Transform, UnknownTransform

_ANY_VERSION: dict[type[IcebergType], tuple[type[IcebergType], ...]] = {
    IntegerType: (LongType,),
    FloatType: (DoubleType,),
}
_SINCE_V3: dict[type[IcebergType], tuple[type[IcebergType], ...]] = {DateType: (TimestampType, TimestampNanoType)}


def can_promote(old: IcebergType, new: IcebergType, format_version: int) -> bool:
    """Whether values of `old` may be read as `new`: the same type, or a promotion that the format version allows."""
    if old == new:
        return True
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        return new.scale == old.scale and new.precision > old.precision
    if isinstance(new, _ANY_VERSION.get(type(old), ())):
        return True
    if format_version < 3:
        return False
    return isinstance(old, UnknownType) or isinstance(new, _SINCE_V3.get(type(old), ()))


def promotions_of(kind: IcebergType, format_version: int) -> str:
    """The types that a column of this type may be promoted to, for messages."""
    if isinstance(kind, DecimalType):
        return f"decimal of scale {kind.scale} and a precision above {kind.precision}"
    targets = [*_ANY_VERSION.get(type(kind), ()), *(_SINCE_V3.get(type(kind), ()) if format_version >= 3 else ())]
    if isinstance(kind, UnknownType) and format_version >= 3:
        return "any type that is not nested"
    return " or ".join(str(target()) for target in targets) or "nothing else"


def keeps_results(transform: Transform, old: IcebergType, new: IcebergType) -> bool:
    """Whether a transform gives the same results before and after its column is promoted. If not, a column that any
    partition spec uses must not be promoted: values that are written already would mean something else."""
    if old == new or transform.is_void or isinstance(old, UnknownType):
        return True
    if not transform.can_transform(new) or isinstance(transform, UnknownTransform):
        return False
    return transform.same_of_promoted_date or not isinstance(old, DateType)
