"""Avro types of primitive values, in manifests and in data files.

Source: Iceberg specification, "Appendix A: Format-specific Requirements" (Avro).
"""

from __future__ import annotations

from typing import Any

from hms_iceberg.spec.data_types import IcebergType
from hms_iceberg.spec.values.forms.table import forms_of


def avro_primitive(kind: IcebergType, named: set[str]) -> Any | None:
    """The Avro type of a primitive type; None if there is none.

    Args:
        kind: the type.
        named: the names that the schema has defined so far; a named type is defined once, and then referred to.
    """
    avro = forms_of(kind).avro
    described = avro(kind) if callable(avro) else avro
    name = described.get("name") if isinstance(described, dict) else None
    if name is None:
        return described
    if name in named:
        return name
    named.add(name)
    return dict(described)
