"""Random data and random predicates: what is skipped never held a matching row, what is called full matches wholly."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.residuals import (
    inclusive_projection,
    residual_by_constants,
    residual_evaluator,
    strict_projection,
)
from hms_iceberg.expressions.terms import Reference, Transformed
from hms_iceberg.expressions.visitors import referenced_field_ids
from hms_iceberg.spec.data_types import (
    BinaryType,
    DoubleType,
    FloatType,
    IcebergType,
    StringType,
)
from hms_iceberg.spec.manifests.manifest_values import DataFile, FieldSummary, ManifestFile
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform
from hms_iceberg.spec.values.single_values import to_bytes, truncate_lower, truncate_upper
from tests.support.expression_strategies import (
    EXAMPLES,
    KINDS,
    TRANSFORMS,
    expressions,
    predicates,
    table_leaves,
    table_rows,
    tables,
    value_of,
)
from tests.support.partitions import SOURCES, partition_of, stored_partitions
from tests.support.pruning import manifest_may_match, may_match, must_match

MANY = settings(max_examples=EXAMPLES, deadline=None)
FLOATING = (FloatType, DoubleType)


# --------------------------------------------------------------------------------------------------- partitions


@st.composite
def specs(draw: st.DrawFn, schema: Schema) -> PartitionSpec:
    fields = []
    for number in range(draw(st.integers(1, 3))):
        name, source_id = draw(st.sampled_from(SOURCES))
        kind = schema.find_type(name)
        transform = draw(st.sampled_from([each for each in TRANSFORMS if each.can_transform(kind)]))
        fields.append(PartitionField(source_id, 1000 + number, transform, f"p{number}.x"))
    return PartitionSpec(*fields)


@MANY
@given(st.data())
def test_an_inclusive_projection_keeps_the_partition_of_every_matching_row(data):
    schema = data.draw(tables())
    spec = data.draw(specs(schema))
    expression = data.draw(expressions(table_leaves(schema)))
    matches = evaluator(schema, expression)
    projected = inclusive_projection(schema, spec)(expression)
    keeps = evaluator(spec.partition_type(schema), projected)
    for row in data.draw(st.lists(table_rows(schema), min_size=1, max_size=8)):
        if matches(row):
            for partition in stored_partitions(row, spec, schema):
                assert keeps(partition), (str(projected), row, partition)


@MANY
@given(st.data())
def test_all_rows_of_a_partition_match_where_the_strict_projection_does(data):
    schema = data.draw(tables())
    spec = data.draw(specs(schema))
    expression = data.draw(expressions(table_leaves(schema)))
    matches = evaluator(schema, expression)
    projected = strict_projection(schema, spec)(expression)
    is_full = evaluator(spec.partition_type(schema), projected)
    for row in data.draw(st.lists(table_rows(schema), min_size=1, max_size=8)):
        if not matches(row):
            for partition in stored_partitions(row, spec, schema):
                assert not is_full(partition), (str(projected), row, partition)


@MANY
@given(st.data())
def test_a_test_of_the_transform_itself_projects_both_ways(data):
    pairs = [(each, kind) for each in TRANSFORMS for kind in KINDS if each.can_transform(kind)]
    transform, kind = data.draw(st.sampled_from(pairs))
    schema = data.draw(tables((kind,)))
    spec = PartitionSpec(PartitionField(1, 1000, transform, "p"))
    leaf = predicates(Transformed(Reference("a"), transform), transform.result_type(kind))
    expression = data.draw(expressions(leaf, max_leaves=3))
    matches = evaluator(schema, expression)
    keeps = evaluator(spec.partition_type(schema), inclusive_projection(schema, spec)(expression))
    is_full = evaluator(spec.partition_type(schema), strict_projection(schema, spec)(expression))
    for row in data.draw(st.lists(table_rows(schema), min_size=1, max_size=8)):
        partition = partition_of(row, spec, schema)
        assert keeps(partition) or not matches(row)
        assert matches(row) or not is_full(partition)
        if isinstance(transform, BucketTransform):
            assert keeps(partition) == matches(row) == is_full(partition)


@MANY
@given(st.data())
def test_a_residual_answers_as_the_whole_predicate_for_rows_of_its_partition(data):
    schema = data.draw(tables())
    spec = data.draw(specs(schema))
    expression = data.draw(expressions(table_leaves(schema)))
    matches = evaluator(schema, expression)
    residual_of = residual_evaluator(spec, expression, schema)
    for row in data.draw(st.lists(table_rows(schema), min_size=1, max_size=8)):
        for partition in stored_partitions(row, spec, schema):
            residual = residual_of(partition)
            assert evaluator(schema, residual)(row) == matches(row), (str(residual), row)


# ------------------------------------------------------------------------------------------------------ manifests


def summary_of(values: list[Any], kind: IcebergType) -> FieldSummary:
    plain = [each for each in values if each is not None and each == each]
    return FieldSummary(
        contains_null=None in values,
        contains_nan=any(each != each for each in values) if isinstance(kind, FLOATING) else False,
        lower_bound=to_bytes(kind, min(plain)) if plain else None,
        upper_bound=to_bytes(kind, max(plain)) if plain else None,
    )


@MANY
@given(st.data())
def test_a_manifest_with_a_matching_row_is_kept(data):
    schema = data.draw(tables())
    spec = data.draw(specs(schema))
    expression = data.draw(expressions(table_leaves(schema)))
    rows = data.draw(st.lists(table_rows(schema), min_size=1, max_size=6))
    partitions = [partition_of(row, spec, schema) for row in rows]
    kinds = [field.field_type for field in spec.partition_type(schema).fields]
    columns = zip(*partitions, strict=True)
    summaries = [summary_of(list(column), kind) for column, kind in zip(columns, kinds, strict=True)]
    if data.draw(st.booleans()):  # an older writer: nothing known of NaN
        summaries = [FieldSummary(each.contains_null, None, each.lower_bound, each.upper_bound) for each in summaries]
    manifest = ManifestFile(
        manifest_path="m", manifest_length=1, partition_spec_id=0, added_snapshot_id=1, partitions=tuple(summaries)
    )
    if any(evaluator(schema, expression)(row) for row in rows):
        assert manifest_may_match(spec, schema, expression, manifest)


# -------------------------------------------------------------------------------------------------------- metrics


@st.composite
def data_files(draw: st.DrawFn, schema: Schema, rows: list[tuple[Any, ...]]) -> DataFile:
    """Metrics of the rows as a writer might leave them: complete, with gaps, truncated, without nested nulls."""
    counts: dict[int, int] = {}
    nulls: dict[int, int] = {}
    nans: dict[int, int] = {}
    lowers: dict[int, bytes] = {}
    uppers: dict[int, bytes] = {}
    for name, field_id in SOURCES:
        if draw(st.sampled_from([False, False, False, True])):
            continue
        kind = schema.find_type(name)
        values = [value_of(row, name) for row in rows]
        if name == "s.c" and draw(st.booleans()):  # as ORC counts: rows with a null struct do not count
            values = [value_of(row, name) for row in rows if row[2] is not None]
        counts[field_id] = len(values)
        nulls[field_id] = values.count(None)
        if isinstance(kind, FLOATING) and draw(st.booleans()):
            nans[field_id] = sum(1 for each in values if each is not None and math.isnan(each))
        plain = [each for each in values if each is not None and each == each]
        if plain and draw(st.sampled_from([True, True, True, False])):
            _bounds(draw(st.sampled_from([1, 2, 16])), kind, field_id, plain, lowers, uppers)
    return DataFile(
        file_path="f",
        file_format="PARQUET",
        record_count=len(rows),
        file_size_in_bytes=1,
        value_counts=counts,
        null_value_counts=nulls,
        nan_value_counts=nans,
        lower_bounds=lowers,
        upper_bounds=uppers,
    )


def _bounds(
    width: int, kind: IcebergType, field_id: int, plain: list, lowers: dict[int, bytes], uppers: dict[int, bytes]
) -> None:
    lower, upper = min(plain), max(plain)
    if isinstance(kind, (StringType, BinaryType)):
        lower, upper = truncate_lower(kind, lower, width), truncate_upper(kind, upper, width)
    lowers[field_id] = to_bytes(kind, lower)
    if upper is not None:
        uppers[field_id] = to_bytes(kind, upper)


@MANY
@given(st.data())
def test_metrics_never_skip_a_file_with_a_matching_row_nor_call_one_full_that_is_not(data):
    schema = data.draw(tables())
    expression = data.draw(expressions(table_leaves(schema)))
    rows = data.draw(st.lists(table_rows(schema), min_size=1, max_size=5))
    file = data.draw(data_files(schema, rows))
    answers = [evaluator(schema, expression)(row) for row in rows]
    assert may_match(schema, expression, file) or not any(answers), (str(expression), file)
    assert all(answers) or not must_match(schema, expression, file), (str(expression), file)


@MANY
@given(st.data())
def test_metrics_decide_tests_of_single_values(data):
    kind = data.draw(st.sampled_from([each for each in KINDS if BucketTransform(3).can_transform(each)]))
    schema = data.draw(tables((kind,)))
    leaf = predicates(Transformed(Reference("a"), BucketTransform(3)), BucketTransform(3).result_type(kind))
    expression = data.draw(expressions(leaf, max_leaves=3))
    rows = data.draw(st.lists(table_rows(schema), min_size=1, max_size=2))
    file = data.draw(data_files(schema, rows))
    answers = [evaluator(schema, expression)(row) for row in rows]
    assert may_match(schema, expression, file) or not any(answers)
    assert all(answers) or not must_match(schema, expression, file)


@MANY
@given(st.data())
def test_a_residual_by_constants_answers_as_the_whole_predicate_for_rows_that_have_them(data):
    schema = data.draw(tables())
    expression = data.draw(expressions(table_leaves(schema)))
    row = data.draw(table_rows(schema))
    known = data.draw(st.lists(st.sampled_from(SOURCES), unique=True))
    constants = {field_id: value_of(row, name) for name, field_id in known}
    residual = residual_by_constants(bind(schema, expression), constants)
    assert referenced_field_ids(residual).isdisjoint(constants)
    assert evaluator(schema, residual)(row) == evaluator(schema, expression)(row), (str(residual), row)
