"""Runs PyIceberg's tests against this package: a plugin of the pytest process that collects them."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest
from names import install, tests_run_now
from stand_ins import STAND_INS

# Libraries of PyIceberg's tests for clouds and for other catalogs.
_CLOUDS = ("boto3", "botocore", "moto", "google", "requests_mock", "papermill", "nbformat", "datafusion", "fsspec")
_OTHERS = ("sqlalchemy", "hive_metastore", "pytest_mock", "pyparsing", "ray", "pytz", "adlfs", "gcsfs", "s3fs")


_SQL = ("sql", "sql_without_rowcount", "sqlite_catalog_memory", "sqlite_catalog_file")
_OTHER_CATALOGS = frozenset((*_SQL, "rest_catalog", "rest_test_catalog"))


class LazyFixture:
    """`pytest_lazy_fixtures.lf("name")`: the value of a fixture as a parameter."""

    def __init__(self, name: str) -> None:
        self.name = name


def _absent() -> frozenset[str]:
    return frozenset(name for name in (*_CLOUDS, *_OTHERS) if importlib.util.find_spec(name) is None)


install({**STAND_INS, "pytest_lazy_fixtures": {"lf": LazyFixture}}, _absent() | {"pytest_lazy_fixtures"})


def _raises(*expected: Any, match: Any = None, **options: Any) -> Any:
    """`pytest.raises` that looks at the kind of an error only: the wording is this package's own."""
    return RAISES(*expected, **options)


RAISES = pytest.raises
pytest.raises = _raises  # type: ignore[assignment]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> None:
    """Gives lazy parameters their values."""
    for name, value in pyfuncitem.funcargs.items():
        if isinstance(value, LazyFixture):
            pyfuncitem.funcargs[name] = pyfuncitem._request.getfixturevalue(value.name)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Leaves out tests that ask PyIceberg's own Spark server, other catalogs, or namespaces of several levels."""
    for item in items:
        if "spark" in item.fixturenames:
            item.add_marker(pytest.mark.skip(reason="asks PyIceberg's Spark server"))
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        named = {each.name if isinstance(each, LazyFixture) else str(each) for each in parameters}
        if named & _OTHER_CATALOGS or any("hierarchical" in each or "fixed_test" in each for each in named):
            item.add_marker(pytest.mark.skip(reason="asks another catalog, or namespaces of several levels"))


def pytest_collection_finish() -> None:
    """Missing names raise from here on."""
    tests_run_now()


class _Outcomes:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def _write(self, test: str, outcome: str, why: str) -> None:
        self._file.write(json.dumps([test, outcome, why]) + "\n")
        self._file.flush()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        """Keeps the reason of a failure."""
        report = yield
        report.why = "" if call.excinfo is None else f"{call.excinfo.typename}: {call.excinfo.value}"
        return report

    @pytest.hookimpl
    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be collected."""
        if report.failed:
            self._write(report.nodeid, "failed", _reason(report))

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test that passed, failed or was skipped."""
        if report.when == "call" or report.outcome != "passed":
            self._write(report.nodeid, report.outcome, report.why[:300])


def _reason(report: Any) -> str:
    lines = str(report.longrepr or "").strip().splitlines()
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (errors[0] if errors else lines[-1] if lines else "")[:300]


def pytest_configure(config: Any) -> None:
    """Writes outcomes to a file, one JSON list a line: test, outcome, reason."""
    config.pluginmanager.register(_Outcomes(Path(os.environ["PYICEBERG_TESTS_OUTCOMES"])), "pyiceberg-tests-outcomes")
