"""The manifests of `docker/kubernetes`: Kubernetes' own schemas, and what they say of each other."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from hms_iceberg.maintenance_policy import Policies
from hms_iceberg.rest.security.policy import read_policy
from tests.support.guides import ROOT, lines_of, understood
from tests.support.manifests import CONFIGURATION, OBJECTS, container_of, pod_of, words_of, workloads

SERVICES = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))["services"]

each_workload = pytest.mark.parametrize("workload", workloads().values(), ids=workloads().keys())


@pytest.mark.parametrize("release", ["1.27", kubernetes_validate.latest_version()])
@pytest.mark.parametrize("manifest", OBJECTS, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_a_manifest_is_what_kubernetes_schema_says(manifest: dict[str, Any], release: str) -> None:
    kubernetes_validate.validate(manifest, release, strict=True)


@each_workload
def test_a_container_s_command_is_understood_and_its_image_is_that_of_the_compose_file(
    workload: dict[str, Any], tmp_path: Path
) -> None:
    container = container_of(workload)
    line = shlex.join(words_of(container))
    for name in re.findall(r"=(/etc/[\w./-]+)", line):
        tmp_path.joinpath(Path(name).name).touch()
        line = line.replace(name, str(tmp_path / Path(name).name))

    understood(line)
    assert container["image"] == SERVICES["rest"]["image"]


@each_workload
def test_a_container_may_do_little_and_says_what_it_takes(workload: dict[str, Any]) -> None:
    pod, container = pod_of(workload)["spec"], container_of(workload)
    dockerfile = (ROOT / "docker" / "rest" / "Dockerfile").read_text(encoding="utf-8")

    assert f"USER {pod['securityContext']['runAsUser']}\n" in dockerfile and pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert container["resources"]["limits"].keys() == {"memory"}


@each_workload
def test_files_and_ports_that_a_command_names_are_mounted_and_open(workload: dict[str, Any]) -> None:
    pod, container = pod_of(workload)["spec"], container_of(workload)
    options = dict(word.removeprefix("--").split("=", 1) for word in container["args"])
    sources = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {each["mountPath"]: sources[each["name"]] for each in container["volumeMounts"]}

    for path in (value for value in options.values() if value.startswith("/")):
        folder, _, name = path.rpartition("/")
        if "configMap" in mounts[folder]:
            assert name in CONFIGURATION
        else:
            assert mounts[folder]["secret"]["secretName"] == "hms-iceberg-tokens"
    assert mounts[container["env"][0]["value"]]["configMap"]["name"] == "hms-iceberg"
    listened = {int(value) for name, value in options.items() if name in ("port", "metrics-port")}
    assert {each["containerPort"] for each in container.get("ports", [])} == listened
    names = {each["name"] for each in container.get("ports", [])}
    for probe in ("readinessProbe", "livenessProbe"):
        if probe in container:
            (asked,) = (container[probe][each] for each in ("httpGet", "tcpSocket") if each in container[probe])
            assert asked["port"] in names
    assert (workload["kind"] == "Deployment") == ("readinessProbe" in container and "livenessProbe" in container)


def test_services_and_budgets_are_of_the_pods_that_there_are() -> None:
    labels = [pod_of(each)["metadata"]["labels"] for each in workloads().values()]
    for manifest in OBJECTS:
        if manifest["kind"] == "Service":
            assert manifest["spec"]["selector"] in labels
        elif manifest["kind"] in ("Deployment", "PodDisruptionBudget"):
            assert manifest["spec"]["selector"]["matchLabels"] in labels


def test_the_files_of_the_configuration_are_read(tmp_path: Path) -> None:
    for name, text in CONFIGURATION.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    assert Policies.load(tmp_path / "maintenance-policy.yaml") != Policies()
    read_policy(tmp_path / "rest-policy.yaml")
    assert yaml.safe_load(CONFIGURATION[".pyiceberg.yaml"])["default-catalog"] == "prod"


def test_the_cookbook_s_commands_name_files_that_there_are() -> None:
    named = [word for line in lines_of("docs/COOKBOOK.md", "Kubernetes") for word in line if word.startswith("docker/")]

    assert {"docker/kubernetes/rest.yaml", "docker/kubernetes/configuration.yaml"} < set(named)
    assert all((ROOT / name).is_file() for name in named)
