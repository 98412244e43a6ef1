"""Plans that wait for their clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.planning import plan_store
from hms_iceberg.rest.planning.requests import PlanBody, StoredPlan


def test_plans_have_bounded_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_store, "_SWEEP_BYTES", 5_000)
    monkeypatch.setattr(plan_store, "_MOST_BYTES", 20_000)
    plans = plan_store.PlanStore(str(tmp_path))
    kept = [plans.keep(StoredPlan(("a", "b"), "x", PlanBody(select=("c" * 1000,)))) for _ in range(60)]
    assert sum(each.stat().st_size for each in (tmp_path / "plans").iterdir()) < 27_000
    assert plans.get(kept[-1], ("a", "b")).location == "x"
    with pytest.raises(RefusedError):
        plans.get(kept[0], ("a", "b"))
