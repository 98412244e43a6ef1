from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.scan.manifests.cache import FrameMetrics, ManifestCache, ManifestFrame, shared_cache
from hms_iceberg.scan.manifests.metric_columns import Metric, MetricColumns
from hms_iceberg.table import StaticTable
from tests.support.row_tables import create


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


def test_all_scans_of_a_process_share_a_cache_whose_bound_is_a_property(tmp_path: Path) -> None:
    cache = shared_cache()
    before = cache.max_bytes
    location = create(tmp_path).metadata_location
    try:
        cache.put("a", frame(), cache.begin_plan())
        StaticTable.from_metadata(location, {"io.manifest.cache.max-total-bytes": str(frame().size // 2)})
        assert shared_cache() is cache
        assert (len(cache), cache.max_bytes) == (0, frame().size // 2)
        with pytest.raises(ConfigurationError, match="max-total-bytes"):
            StaticTable.from_metadata(location, {"io.manifest.cache.max-total-bytes": "much"})
    finally:
        cache.resize(before)
