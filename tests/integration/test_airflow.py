"""Airflow runs the cookbook's DAG over two namespaces, one of which fails."""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import requires
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.catalog import Catalog
from tests.support.guides import ROOT, block
from tests.support.own_environment import OwnEnvironment, UnavailableError

# Of 300 MB, and a minute of processor time, for one block of a guide.
pytestmark = [pytest.mark.slow, pytest.mark.whole]

AIRFLOW = OwnEnvironment(
    "airflow", ("apache-airflow==3.*", *(each for each in requires("hms_iceberg") or () if "extra ==" not in each))
)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """That of a machine with Airflow, its folder of DAGs, and the catalog `prod`."""
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "maintenance.py").write_text(block("docs/COOKBOOK.md", "Airflow", "python").code, encoding="utf-8")
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "PYICEBERG_CATALOG__PROD__TYPE": "hadoop",
        "PYICEBERG_CATALOG__PROD__WAREHOUSE": str(tmp_path / "warehouse"),
    }


def airflow(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    try:
        command = [AIRFLOW.path(), *words]
    except UnavailableError as error:
        pytest.skip(str(error))
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def of_small_files(catalog: Catalog, name: str) -> None:
    table = catalog.create_table(name, pa.schema([("id", pa.int64())]))
    for number in range(6):
        table.append(pa.table({"id": [number]}))


def test_the_cookbook_s_dag_maintains_every_namespace_and_fails_for_the_one_that_failed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    catalog = load_catalog("prod", type="hadoop", warehouse=str(tmp_path / "warehouse"))
    for namespace in ("web", "sales"):
        catalog.create_namespace(namespace)
        of_small_files(catalog, f"{namespace}.t")
    lost = next(iter(catalog.load_table("sales.t").scan().plan_files())).file.file_path
    Path(lost.removeprefix("file:")).unlink()
    (command,) = block("docs/COOKBOOK.md", "Airflow").words
    made = airflow(environment, "db", "migrate")
    assert made.returncode == 0, made.stderr[-3000:]

    ran = airflow(environment, *command[1:])

    told = ran.stdout + ran.stderr
    assert "web.t: rewrite_data_files done, 6 files became 1" in told
    assert "sales.t: rewrite_data_files failed" in told
    assert [len(list(catalog.load_table(f"{each}.t").scan().plan_files())) for each in ("web", "sales")] == [1, 6]
