"""The compose file cannot be run everywhere, so its structure is checked: what it refers to is defined and pinned."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
DOCKER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PINNED = re.compile(r"^[a-z0-9./-]+:(\d+\.\d+(\.\d+)?[\w.-]*|RELEASE\.[\dTZ-]+)$")
SERVICE_KEYS = {
    *(
        "build",
        "command",
        "depends_on",
        "entrypoint",
        "environment",
        "healthcheck",
        "image",
        "init",
        "ports",
        "volumes",
    ),
}

services = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES.keys())


def test_the_services_are_a_metastore_its_database_a_store_spark_and_a_rest_server() -> None:
    assert set(SERVICES) == {"postgres", "minio", "warehouse-bucket", "metastore", "spark", "rest"}
    assert set(COMPOSE) == {"name", "services", "volumes"}


@services
def test_a_service_has_only_known_keys(service: dict[str, Any]) -> None:
    assert set(service) <= SERVICE_KEYS


@services
def test_an_image_is_pinned_to_a_version(service: dict[str, Any]) -> None:
    assert PINNED.match(service["image"]), service["image"]


@services
def test_a_port_is_published_once_and_on_loopback_only(service: dict[str, Any]) -> None:
    for port in service.get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)


def test_no_two_services_publish_the_same_port() -> None:
    published = [port.split(":")[1] for service in SERVICES.values() for port in service.get("ports", [])]

    assert len(published) == len(set(published))


@services
def test_a_volume_is_declared_or_a_file_of_the_repository(service: dict[str, Any]) -> None:
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        if source.startswith("."):
            assert (DOCKER / source).is_file(), source
        else:
            assert source in COMPOSE["volumes"]


def test_every_declared_volume_is_used() -> None:
    used = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}

    assert set(COMPOSE["volumes"]) <= used


@services
def test_a_dependency_is_a_service_that_can_reach_the_awaited_state(service: dict[str, Any]) -> None:
    for name, condition in service.get("depends_on", {}).items():
        if condition["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[name]
        else:
            assert condition["condition"] == "service_completed_successfully"
            assert name in SERVICES


@services
def test_a_variable_has_a_default_so_that_the_file_works_as_it_is(service: dict[str, Any]) -> None:
    for variable in re.findall(r"(?<!\$)\$(\{[^}]*\}|\w+)", yaml.safe_dump(service)):
        assert re.fullmatch(r"\{[A-Z0-9_]+:-[^}]+\}", variable), variable


@services
def test_an_address_in_a_service_names_a_service_and_a_port_it_listens_on(service: dict[str, Any]) -> None:
    listening = {("postgres", "5432"), ("minio", "9000"), ("metastore", "9083")}

    for host, port in re.findall(r"(?:thrift|https?|jdbc:postgresql)://([a-z-]+):(\d+)", yaml.safe_dump(service)):
        assert (host, port) in listening


@services
def test_a_build_has_a_dockerfile_whose_base_and_downloads_are_pinned(service: dict[str, Any]) -> None:
    if "build" not in service:
        return
    context = (DOCKER / service["build"]["context"]).resolve()
    dockerfile = context / service["build"].get("dockerfile", "Dockerfile")
    text = dockerfile.read_text()

    assert all(PINNED.match(image) for image in re.findall(r"^FROM (\S+)", text, re.MULTILINE))
    for name, version in re.findall(r"[\w.-]+:([\w-]+):([\d.]+)[ ;]", text):
        assert re.search(rf"[0-9a-f]{{40,64}}  /jars/{name}-{re.escape(version)}\.jar", text), name
    for line in text.replace("\\\n", "").splitlines():
        assert not line.startswith("ADD")
        if line.startswith("COPY") and "--from=" not in line:
            assert all((context / source).exists() for source in line.split()[1:-1])


@pytest.mark.parametrize("dockerfile", sorted(DOCKER.rglob("Dockerfile")), ids=lambda each: each.parent.name)
def test_hadolint_finds_nothing_in_a_dockerfile(dockerfile: Path) -> None:
    program = shutil.which("hadolint")
    if program is None:
        pytest.skip("there is no hadolint on PATH; the extra `test` brings it for Linux")
    ran = subprocess.run([program, "--no-color", dockerfile], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_no_address_of_a_package_registry_stands_in_the_project() -> None:
    """What is fetched goes through Maven, pip and apt, which honour the user's own mirrors."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout")
    registry = re.compile(rb"(repo1?\.maven|pypi\.(org|io)|files\.pythonhosted|deb\.debian|maven2)[./]")
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    found = [
        path.name for path in files if path.is_file() and path != Path(__file__) and registry.search(path.read_bytes())
    ]
    assert not found


def test_spark_and_the_metastore_use_the_same_store_and_warehouse() -> None:
    site = ElementTree.parse(DOCKER / "metastore" / "core-site.xml").getroot()
    metastore = {item.findtext("name"): item.findtext("value") for item in site.iter("property")}
    lines = (DOCKER / "spark" / "spark-defaults.conf").read_text().splitlines()
    spark = dict(line.split() for line in lines if line and not line.startswith("#"))

    for key in ("fs.s3a.endpoint", "fs.s3a.path.style.access", "fs.s3a.connection.ssl.enabled"):
        assert spark[f"spark.hadoop.{key}"] == metastore[key]
    assert (
        f"metastore.warehouse.dir={spark['spark.sql.warehouse.dir']}"
        in SERVICES["metastore"]["environment"]["SERVICE_OPTS"]
    )
    assert (
        spark["spark.hadoop.hive.metastore.uris"] == SERVICES["spark"]["environment"]["PYICEBERG_CATALOG__DEFAULT__URI"]
    )
