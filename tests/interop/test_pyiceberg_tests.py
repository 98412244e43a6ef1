"""PyIceberg's own tests, run against this package with `pyiceberg` meaning `hms_iceberg`.

PYICEBERG_TESTS names a checkout of apache/iceberg-python (its newest tag, 0.12.0rc1 when the list was made), which is
not part of this repository; without it nothing is run. What does not pass is listed in `pyiceberg_tests.txt` with its
reason, and the list is exact: a test that fails without being listed, and a listed one that passes, are both faults.
PYICEBERG_TESTS_PART names files or folders of those that are run, with spaces; the others are left out then.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
LIST = HERE / "pyiceberg_tests.txt"


def listed() -> tuple[list[str], dict[str, str]]:
    """The files that are run, and each test, function or file that does not pass with its reason."""
    files: list[str] = []
    reasons: dict[str, str] = {}
    reason = ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if text.startswith("run "):
            files += text.split()[1:]
        elif line.startswith(" "):
            reasons[text] = reason
        else:
            reason = text
    return files, reasons


def part_of(files: list[str], reasons: dict[str, str], wanted: str) -> tuple[list[str], dict[str, str]]:
    """Only some of the files that are run, with what is listed of them; all of them unless some are wanted."""
    parts = wanted.split()
    unknown = [each for each in parts if not any(f"{each}/".startswith(f"{file}/") for file in files)]
    assert not unknown, f"{unknown} are not among the files that are run"
    if not parts:
        return files, reasons
    return parts, {
        test: why
        for test, why in reasons.items()
        if any(f"{test.split('::')[0]}/".startswith(f"{each}/") for each in parts)
    }


def entry_of(test: str, reasons: dict[str, str]) -> str | None:
    """What the list has of a test: itself, its function or its file."""
    candidates = (test, test.split("[")[0], test.split("::")[0])
    return next((each for each in candidates if each in reasons), None)


@pytest.mark.interop
@pytest.mark.slow
def test_pyiceberg_s_tests_pass_but_for_those_that_are_listed(metastore: Any, tmp_path: Path) -> None:
    checkout = os.environ.get("PYICEBERG_TESTS")
    if not checkout:
        pytest.skip("PYICEBERG_TESTS names no checkout of PyIceberg")
    files, reasons = part_of(*listed(), os.environ.get("PYICEBERG_TESTS_PART", ""))
    outcomes = tmp_path / "outcomes.jsonl"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "pyiceberg_tests_plugin",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
    ]
    options = ["--rootdir=.", "-q", "--tb=no", "-W", "ignore", "--continue-on-collection-errors"]
    root = HERE.parents[1]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (HERE / "shim", root / "tests" / "support", root))),
        "PYICEBERG_TESTS_OUTCOMES": str(outcomes),
        "PYICEBERG_TESTS_METASTORE": metastore.uri,
    }
    subprocess.run([*command, *options, *files], cwd=checkout, env=environment, capture_output=True, check=False)

    results: dict[str, str] = {}
    for test, outcome, why in map(json.loads, outcomes.read_text(encoding="utf-8").splitlines()):
        if outcome == "failed" or results.get(test) is None:
            results[test] = why if outcome == "failed" else outcome
    failed = {test: why for test, why in results.items() if why not in ("passed", "skipped")}
    passed = [test for test, outcome in results.items() if outcome == "passed"]
    used = Counter(entry for test in failed if (entry := entry_of(test, reasons)))
    news = [f"{test}: {why}" for test, why in failed.items() if entry_of(test, reasons) is None]
    passing = [test for test in passed if entry_of(test, reasons)]
    gone = [entry for entry in reasons if entry not in used]
    faults = {"fails and is not listed": news, "is listed and passes": passing, "is listed and not there": gone}
    shown = "\n".join(f"{each} {what}" for what, tests in faults.items() for each in tests[:50])
    assert not shown, f"{len(passed)} passed, {len(failed)} failed\n{shown}"
