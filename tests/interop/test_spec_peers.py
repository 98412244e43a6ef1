"""Values, transforms and metadata compared with PyIceberg."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hms_iceberg.spec import schema_json
from hms_iceberg.spec.data_types import IntegerType, LongType, UUIDType
from hms_iceberg.spec.metadata.metadata_json import metadata_from_json, metadata_to_json
from hms_iceberg.spec.transforms.partition_transforms import parse_transform
from hms_iceberg.spec.values import single_values as spec_values
from tests.support.spec_strategies import CLASSIC_PRIMITIVES, schemas, table_metadata, values

pytestmark = pytest.mark.interop
conversions = pytest.importorskip("pyiceberg.conversions")

from pyiceberg.schema import Schema as PeerSchema  # noqa: E402
from pyiceberg.table.metadata import TableMetadataUtil  # noqa: E402
from pyiceberg.transforms import parse_transform as peer_transform  # noqa: E402
from pyiceberg.types import NestedField as PeerField  # noqa: E402

SLOW = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)


def peer_type(kind):
    return PeerField.model_validate({"id": 1, "name": "a", "required": False, "type": str(kind)}).field_type


@SLOW
@given(st.sampled_from(CLASSIC_PRIMITIVES), st.data())
def test_bounds_have_the_same_bytes(kind, drawn):
    value = drawn.draw(values(kind))
    data = spec_values.to_bytes(kind, value)
    assert conversions.to_bytes(peer_type(kind), value) == data
    # PyIceberg reads UUIDs as bytes; NaN equals nothing.
    if not isinstance(kind, UUIDType) and value == value:
        assert conversions.from_bytes(peer_type(kind), data) == value


@SLOW
@given(
    st.sampled_from(CLASSIC_PRIMITIVES),
    st.sampled_from(("identity", "bucket[7]", "truncate[3]", "year", "month", "day", "hour", "void")),
    st.data(),
)
def test_transforms_have_the_same_results(kind, text, data):
    ours, theirs = parse_transform(text), peer_transform(text)
    assume(ours.can_transform(kind) and theirs.can_transform(peer_type(kind)))
    value = data.draw(values(kind))
    assume(not (isinstance(value, float) and math.isnan(value)))
    # PyIceberg takes dates of datetime's years only, and does not wrap around below the smallest number.
    if text in ("year", "month"):
        value %= 10**6
    if text.startswith("truncate") and isinstance(kind, (IntegerType, LongType)):
        value = max(value, -(2**31) + 10)
    assert ours.bind(kind)(value) == theirs.transform(peer_type(kind))(value)


@SLOW
@given(schemas(2))
def test_schemas_are_read_by_pyiceberg_and_back(schema):
    text = json.dumps(schema_json.schema_to_json(schema))
    peer = PeerSchema.model_validate_json(text)
    assert schema_json.schema_from_json(json.loads(peer.model_dump_json())) == schema


@SLOW
@given(table_metadata())
def test_metadata_is_read_by_pyiceberg_and_back(metadata):
    assume(metadata.format_version < 3)  # PyIceberg cannot read all defaults of v3
    peer = TableMetadataUtil.parse_raw(metadata_to_json(metadata).decode())
    assert metadata_from_json(peer.model_dump_json().encode()) == metadata
