"""The record of each primitive type; a test holds the table against the list of types."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.spec.data_types import IcebergType
from hms_iceberg.spec.values.forms import numbers, sequences, times
from hms_iceberg.spec.values.forms.form import ValueForms

FORMS: Mapping[type[IcebergType], ValueForms] = {**numbers.FORMS, **times.FORMS, **sequences.FORMS}
_NONE = ValueForms()


def forms_of(kind: IcebergType) -> ValueForms:
    """The record of a type; one without any form for types that are not primitive."""
    return FORMS.get(type(kind), _NONE)
