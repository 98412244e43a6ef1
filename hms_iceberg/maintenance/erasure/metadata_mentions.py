"""Texts of a predicate in a table's metadata, where people or engines wrote them: no statistics, and no file's rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hms_iceberg.expressions.literals import Operator
from hms_iceberg.expressions.projections import values_of
from hms_iceberg.expressions.visitors import bound_predicates
from hms_iceberg.maintenance.erasure.forgotten_rows import Reading
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import OPERATION, Summary

# Shorter ones are found by chance, in numbers and names of all kinds.
_LEAST = 3
_NAMED = (Operator.EQ, Operator.IN, Operator.STARTS_WITH)


def texts_of(readings: Iterable[Reading]) -> frozenset[str]:
    tests = (each for reading in readings for each in bound_predicates(reading.bound) if each.operation in _NAMED)
    values = (value for each in tests for value in values_of(each))
    return frozenset(value for value in values if isinstance(value, str) and len(value) >= _LEAST)


class Mentions:
    """Finds texts as whole words."""

    def __init__(self, texts: Iterable[str]) -> None:
        alternatives = "|".join(re.escape(each) for each in sorted(texts, key=len, reverse=True))
        self._pattern = re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)") if alternatives else None

    def are_in(self, *texts: str | None) -> bool:
        """Whether one of some texts mentions one."""
        return self._pattern is not None and any(self._pattern.search(each) for each in texts if each)

    def without(self, summary: Summary) -> Summary:
        """A summary without the entries that mention one; the same object if none does."""
        kept = {key: value for key, value in summary.items() if key == OPERATION or not self.are_in(key, value)}
        return summary if len(kept) == len(summary) else Summary.of(kept)

    def left_in(self, metadata: TableMetadata) -> Iterator[str]:
        """Where the metadata mentions one and no erasure may change it: as parts of a sentence."""
        for key, value in metadata.properties.items():
            if self.are_in(key, value):
                yield f"the property {key}"
        for name in metadata.refs:
            if self.are_in(name):
                yield f"the branch or tag {name}"
        for schema in metadata.schemas:
            for field in schema.index_by_id.values():
                defaults = (each for each in (field.initial_default, field.write_default) if isinstance(each, str))
                if self.are_in(field.name, field.doc, *defaults):
                    yield f"column {field.name} of schema {schema.schema_id}"
