from __future__ import annotations

from typing import Any

import polars as pl

from hms_iceberg.scan.cache import ManifestCache, ManifestFrame, shared_cache
from hms_iceberg.scan.manifest_frames import metric_dtypes


def frame(rows: int = 100, with_maps: bool = False) -> ManifestFrame:
    files = pl.DataFrame({"record_count": list(range(rows)), "split_offsets": [[4]] * rows})
    maps: dict[str, Any] = {}
    if with_maps:
        dtype = metric_dtypes()["value_counts"]
        maps["value_counts"] = pl.Series([[{"key": n, "value": n} for n in range(50)]] * rows, dtype=dtype)
    return ManifestFrame(files, lambda names: pl.DataFrame(), maps)


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


def test_a_manifest_that_only_fits_without_its_metrics_is_kept_without_them() -> None:
    bare, full = frame().size, frame(with_maps=True)
    assert full.size > 2 * bare
    cache = ManifestCache(max_bytes=2 * bare)
    plan = cache.begin_plan()
    cache.put("a", full, plan)
    found = cache.get("a", plan)
    assert found is not None
    assert found.frame is full.frame
    assert cache.size == bare


def test_a_manifest_that_grew_is_counted_with_its_new_size() -> None:
    cache = ManifestCache()
    plan = cache.begin_plan()
    cache.put("a", frame(), plan)
    grown = frame(with_maps=True)
    cache.put("a", grown, plan)
    assert (len(cache), cache.size) == (1, grown.size)


def test_a_cache_of_no_bytes_keeps_nothing() -> None:
    cache = ManifestCache(max_bytes=0)
    cache.put("a", frame(), cache.begin_plan())
    assert len(cache) == 0


def test_all_scans_of_a_process_share_a_cache() -> None:
    assert shared_cache() is shared_cache()
