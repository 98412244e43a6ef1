from __future__ import annotations

import gc
import pickle
import weakref
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import ConfigurationError
from hms_iceberg.scan.manifests.cache import FrameMetrics, ManifestCache, ManifestFrame, cache_of
from hms_iceberg.scan.manifests.metric_columns import Metric, MetricColumns
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanRequest
from hms_iceberg.table import StaticTable


class Kept(FrameMetrics):
    """The bytes of a manifest."""

    size = 100_000

    def without_file(self) -> FrameMetrics:
        return FrameMetrics(self._files)


def frame(rows: int = 100, with_metrics: bool = False, with_file: bool = False) -> ManifestFrame:
    files = pl.DataFrame({"record_count": list(range(rows)), "split_offsets": [[4]] * rows})
    source = Kept(files) if with_file else FrameMetrics(files)
    loaded: dict[Metric, pl.Series] = {}
    if with_metrics:
        loaded = {("value_counts", 1): pl.Series(range(rows)), ("value_counts", None): pl.Series([[]] * rows)}
    return ManifestFrame(files, source, MetricColumns(source, loaded))


def test_what_was_put_is_found_until_it_is_cleared() -> None:
    cache = ManifestCache()
    plan = cache.begin_plan()
    kept = frame()
    cache.put("a", kept, plan)
    assert cache.get("a", plan) is kept
    assert cache.get("b", plan) is None
    assert (len(cache), cache.size) == (1, kept.size)
    cache.clear()
    assert (len(cache), cache.size, cache.get("a", plan)) == (0, 0, None)


def test_the_least_recently_used_manifest_of_older_plans_makes_room() -> None:
    one = frame().size
    cache = ManifestCache(max_bytes=2 * one)
    first = cache.begin_plan()
    cache.put("a", frame(), first)
    cache.put("b", frame(), first)
    second = cache.begin_plan()
    assert cache.get("a", second) is not None
    cache.put("c", frame(), second)
    assert [key for key in "abc" if cache.get(key, second)] == ["a", "c"]
    assert cache.size <= cache.max_bytes


def test_manifests_of_one_plan_do_not_push_each_other_out() -> None:
    cache = ManifestCache(max_bytes=2 * frame().size)
    plan = cache.begin_plan()
    for key in "abcd":
        cache.put(key, frame(), plan)
    assert [key for key in "abcd" if cache.get(key, plan)] == ["a", "b"]


def test_the_bytes_of_manifests_and_whole_maps_are_kept_in_half_of_the_room() -> None:
    with_file, bare = frame(with_file=True).size, frame().size
    cache = ManifestCache(max_bytes=3 * with_file)
    plan = cache.begin_plan()
    for key in "abc":
        cache.put(key, frame(with_metrics=True, with_file=True), plan)
    found = [cache.get(key, plan) for key in "abc"]
    assert [each is not None and each.source.size for each in found] == [100_000, 0, 0]
    assert [each is not None and each.metrics.columns_made for each in found] == [2, 1, 1]
    assert with_file < cache.size < with_file + 4 * bare


def test_a_manifest_that_grew_is_counted_with_its_new_size() -> None:
    cache = ManifestCache()
    plan = cache.begin_plan()
    cache.put("a", frame(), plan)
    grown = frame(with_metrics=True)
    cache.put("a", grown, plan)
    assert (len(cache), cache.size) == (1, grown.size)


def test_a_cache_of_no_bytes_keeps_nothing() -> None:
    cache = ManifestCache(max_bytes=0)
    cache.put("a", frame(), cache.begin_plan())
    assert len(cache) == 0


SETTING = "io.manifest.cache.max-total-bytes"


def test_each_catalog_has_a_cache_of_its_own_bound_and_changes_no_other(tmp_path: Path) -> None:
    def opened(name: str, **properties: str) -> Catalog:
        return load_catalog(name, type="hadoop", warehouse=str(tmp_path), **properties)

    def cached(catalog: Catalog) -> list[int]:
        """How many manifests two plans find in the cache."""
        metadata = catalog.load_table("db.t").metadata
        plans = [plan_scan(ScanRequest(metadata), catalog.storage) for _ in range(2)]
        return [plan.metrics.manifests_cached for plan in plans]

    first = opened("first")
    first.create_namespace("db")
    table = first.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    assert cached(first) == [0, 1]
    without, small = opened("without", **{SETTING: "0"}), opened("small", **{SETTING: "1000000"})
    assert cached(without) == [0, 0] and cached(small) == [0, 1]
    again = opened("again", **{SETTING: "1000000"})
    assert cached(again) == [1, 1]  # many catalogs of one bound take no more than that
    assert cached(first) == [1, 1] and cache_of(None).max_bytes == 512 * 1024 * 1024
    bounds = [cache_of(each.storage).max_bytes for each in (first, without, small, pickle.loads(pickle.dumps(small)))]
    assert bounds == [512 * 1024 * 1024, 0, 1_000_000, 1_000_000]
    without.close()
    static = StaticTable.from_metadata(table.metadata_location, {SETTING: "0"})
    assert cache_of(static.storage).max_bytes == 0
    for wrong in (
        lambda: opened("wrong", **{SETTING: "much"}),
        lambda: StaticTable.from_metadata("/x", {SETTING: "x"}),
    ):
        with pytest.raises(ConfigurationError, match="max-total-bytes"):
            wrong()


def test_the_room_of_catalogs_that_are_gone_is_given_back(tmp_path: Path) -> None:
    catalog = load_catalog("gone", type="hadoop", warehouse=str(tmp_path), **{SETTING: "7654321"})
    cache = weakref.ref(cache_of(catalog.storage))
    assert cache() is not None
    del catalog
    gc.collect()
    assert cache() is None
