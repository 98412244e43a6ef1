"""How much memory a stream takes; `tests/benchmarks/memory.py` measures larger tables."""

from __future__ import annotations

import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest

MIB = 1024 * 1024


def benchmark() -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "memory.py"
    spec = util.spec_from_file_location("memory_benchmark", path)
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is in other units elsewhere")
def test_a_stream_takes_much_less_memory_than_the_table(tmp_path: Path) -> None:
    memory = benchmark()
    small, large = (
        memory.in_fresh_process("stream_slowly", memory.large_table(tmp_path / str(size), size * MIB, 6, True))
        for size in (12, 1200)
    )
    assert large["found"] > 90 * small["found"]
    assert large["peak_mib"] - small["peak_mib"] < 400
