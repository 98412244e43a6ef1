"""The manifests of `docker/kubernetes`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "docker" / "kubernetes"
MANIFESTS: dict[str, list[dict[str, Any]]] = {
    path.name: list(yaml.safe_load_all(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*.yaml"))
}
OBJECTS = [each for objects in MANIFESTS.values() for each in objects]
CONFIGURATION: dict[str, str] = MANIFESTS["configuration.yaml"][0]["data"]


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """The pod that a Deployment or CronJob makes."""
    spec = manifest["spec"]
    found: dict[str, Any] = spec.get("jobTemplate", {"spec": spec})["spec"]["template"]
    return found


def workloads() -> dict[str, dict[str, Any]]:
    """The Deployments and CronJobs, by the names of their files."""
    return {
        name: each
        for name, objects in MANIFESTS.items()
        for each in objects
        if each["kind"] in ("Deployment", "CronJob")
    }


def container_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """The only container of a workload's pod."""
    [found] = pod_of(manifest)["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def words_of(container: dict[str, Any]) -> list[str]:
    """The command of a container; one without has that of the image of `docker/rest`."""
    return [*container.get("command", ["hms-iceberg", "rest"]), *container["args"]]
