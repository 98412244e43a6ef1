"""What executors keep of delete files is bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hms_iceberg.spark.compiler import _driver_loader, load_bridge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Bridge:
    """Classes of the bridge, by their names."""

    def __init__(self, spark: SparkSession) -> None:
        load_bridge(spark)
        gateway: Any = spark.sparkContext._gateway
        self.jvm, self._gateway = gateway.jvm, gateway

    def known(self, value: str, size: int) -> Any:
        """A loader of a value that is said to take so many bytes."""
        name = "hms_iceberg.bridge.wire.Planner$Known"
        loader = self.jvm.java.lang.Class.forName(name, True, _driver_loader(self._gateway))
        constructor = loader.getDeclaredConstructors()[0]
        constructor.setAccessible(True)
        return constructor.newInstance(
            self.array(self.jvm.java.lang.Object, value, self.jvm.java.lang.Long.valueOf(size))
        )

    def array(self, kind: Any, *values: Any) -> Any:
        """An array of the JVM."""
        made = self._gateway.new_array(kind, len(values))
        for number, value in enumerate(values):
            made[number] = value
        return made


@pytest.fixture
def bridge(spark: SparkSession) -> Bridge:
    return Bridge(spark)


def field(of: Any, name: str) -> Any:
    """The value of a field that is not public."""
    found = of.getClass().getDeclaredField(name)
    found.setAccessible(True)
    return found.get(of)


def test_a_value_larger_than_the_cache_leaves_the_others_and_may_go_itself(bridge: Bridge) -> None:
    cache = bridge.jvm.hms_iceberg.bridge.wire.BoundedCache(2_000)
    assert cache.get("small", bridge.known("first", 600)) == "first"
    assert cache.get("large", bridge.known("first", 5_000)) == "first"
    assert cache.get("small", bridge.known("second", 600)) == "first"
    assert cache.get("large", bridge.known("second", 5_000)) == "first"  # it is shared while there is memory
    slot = field(cache, "slots").get("large")
    assert field(slot, "value") is None
    field(slot, "large").clear()  # as the collector does that needs the memory
    assert cache.get("large", bridge.known("third", 5_000)) == "third"
    assert cache.get("large", bridge.known("fourth", 5_000)) == "third"


def test_what_was_used_longest_ago_goes_first(bridge: Bridge) -> None:
    cache = bridge.jvm.hms_iceberg.bridge.wire.BoundedCache(2_000)
    for name in ("a", "b", "a", "c"):
        assert cache.get(name, bridge.known(f"{name}1", 800)) == f"{name}1"
    assert cache.get("a", bridge.known("a2", 800)) == "a1"
    assert cache.get("b", bridge.known("b2", 800)) == "b2"


@pytest.mark.parametrize("columns", ["n bigint", "n bigint, m bigint"])
def test_more_deleted_keys_than_an_executor_can_hold_are_refused_by_the_setting(bridge: Bridge, columns: str) -> None:
    jvm = bridge.jvm
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(columns)
    vectors = jvm.org.apache.spark.sql.execution.vectorized.OnHeapColumnVector.allocateColumns(4_096, schema)
    columns_of_batch = bridge.array(jvm.org.apache.spark.sql.vectorized.ColumnVector, *vectors)
    batch = jvm.org.apache.spark.sql.vectorized.ColumnarBatch(columns_of_batch, 4_096)
    keys = jvm.hms_iceberg.bridge.deletes.DeletedKeys.of(schema, 1 << 20)

    def add(start: int) -> None:
        for vector in vectors:
            vector.putLongsLittleEndian(0, 4_096, np.arange(start, start + 4_096, dtype="<i8").tobytes(), 0)
        keys.add(batch, 1)

    add(0)
    add(0)
    assert keys.bytes() < 1 << 20
    with pytest.raises(Exception, match=r"more than 1 MiB.*spark\.executor\.memory.*convert_equality_deletes"):
        any(map(add, range(4_096, 200_000, 4_096)))
    assert keys.bytes() < 2 << 20
