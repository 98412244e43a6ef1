"""The README's Python examples run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_s_catalog_example_runs_as_it_stands(metastore: Any, catalog: Any) -> None:
    [example] = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    names: dict[str, Any] = {}

    exec(compile(example.replace("thrift://metastore:9083", metastore.uri), str(README), "exec"), names)

    visits = catalog.load_table("web.visits")
    assert visits.scan().to_arrow().sort_by("id").to_pydict() == {
        "id": [1, 3, 4],
        "page": ["/", "/", "/"],
        "seconds": [None, None, 1.5],
    }
    assert visits.scan(snapshot_id=names["before"]).count() == 3
    assert names["visits"].inspect.snapshots().num_rows == 3
    assert catalog.load_view("web.buyers").current_version().dialects == ["spark"]
    catalog.drop_view("web.buyers")
    catalog.drop_table("web.visits", purge_requested=True)
    catalog.drop_namespace("web")
