"""The chart, installed by Helm into Kubernetes' own API server, in a namespace of the strictest pod
security: what the driver's account may do is asked, and Spark asks for executors with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakesplice.config import load
from tests.support import tools
from tests.support.chart import CHART, NAMESPACE, RELEASE
from tests.support.control_plane import ControlPlane
from tests.support.running import environment

pytestmark = pytest.mark.nightly

ACCOUNT = f"{RELEASE}-lakesplice"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DRIVER, EXECUTORS = "lake-driver", 2
VALUES: dict[str, Any] = {
    "settings": {
        "kafka": {"bootstrap_servers": "kafka:9092", "topic_pattern": "a\\.b"},
        "lake": {"root": "s3://bucket/lake"},
        "spark": {
            "master": "k8s://https://kubernetes.default.svc",
            "options": {"spark.executor.instances": str(EXECUTORS)},
        },
    },
    "replicas": 2,
    "persistence": {"enabled": False},
    "rbac": {"executorPods": True},
    "podDisruptionBudget": {"enabled": True},
    "networkPolicy": {"enabled": True},
    "dashboards": {"enabled": True},
}
WORK = """
import json, sys, time, urllib.request
from lakesplice.spark.session import build_session
master, options = json.loads(sys.argv[1])
session = build_session(master, "512m", [], options)
print("started", flush=True)
sys.stdin.readline()
session.stop()
"""


@dataclass
class Installed:
    """The server, what the chart made there, and the pods that a driver of it asked for."""

    plane: ControlPlane
    manifests: dict[str, dict[str, Any]]
    executors: list[dict[str, Any]]
    driver: dict[str, Any]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("plane")
    with ControlPlane(folder) as plane:
        _make_namespace(plane)
        manifests = _install(plane, folder)
        driver = _driver_pod(plane, manifests["Deployment"])
        executors = _executors(plane, manifests, folder)
        yield Installed(plane, manifests, executors, driver)


def _make_namespace(plane: ControlPlane) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"metadata": {"name": NAMESPACE, "labels": labels}}
    plane.ask("POST", "/api/v1/namespaces", namespace)
    # A controller would make it.
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    plane.ask("POST", accounts, {"metadata": {"name": "default"}})


def _install(plane: ControlPlane, folder: Path) -> dict[str, dict[str, Any]]:
    values = folder / "values.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    reach = _reach(plane)
    helm = str(tools.helm())
    for command in (["install", "--values", str(values)], ["upgrade", "--reuse-values"]):
        verb, *options = command
        done = subprocess.run(
            [helm, verb, RELEASE, str(CHART), *options, *reach],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
    return _revision(reach, 2)


def _reach(plane: ControlPlane) -> tuple[str, ...]:
    return ("--namespace", NAMESPACE, "--kubeconfig", str(plane.kubeconfig))


def _revision(reach: Sequence[str], number: int) -> dict[str, dict[str, Any]]:
    """What one revision of the release consists of; of two of a kind the driver's."""
    command = [str(tools.helm()), "get", "manifest", RELEASE, "--revision", str(number), *reach]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found = [one for one in yaml.safe_load_all(done.stdout) if one]
    return {one["kind"]: one for one in reversed(found)}


def _driver_pod(plane: ControlPlane, deployment: dict[str, Any]) -> dict[str, Any]:
    """What the Deployment's controller would make."""
    template = deployment["spec"]["template"]
    pod = {**template, "metadata": {**template["metadata"], "name": DRIVER}}
    return plane.ask("POST", PODS, pod)


def _executors(
    plane: ControlPlane, manifests: dict[str, dict[str, Any]], folder: Path
) -> list[dict[str, Any]]:
    """Start Spark as the driver's pod would, and take what it asks for."""
    kept = manifests["Secret"]["stringData"]
    for name, key in (("pod.yaml", "executor-pod.yaml"), ("secret", "executor-secret")):
        (folder / name).write_text(kept[key])
    (folder / "token").write_text(plane.token_of(NAMESPACE, ACCOUNT))
    configuration = folder / "lakesplice.yaml"
    configuration.write_text(kept["lakesplice.yaml"].replace("s3://bucket", "/bucket"))
    options = {
        name: value.replace("/etc/lakesplice/executors", str(folder))
        for name, value in load(configuration, {}).spark.options.items()
    } | {
        "spark.kubernetes.driver.pod.name": DRIVER,
        "spark.kubernetes.authenticate.oauthTokenFile": str(folder / "token"),
        "spark.kubernetes.authenticate.caCertFile": str(plane.certificates),
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "1s",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.port": "0",
        "spark.blockManager.port": "0",
    }
    task = json.dumps([f"k8s://{plane.url}", options])
    with (
        (folder / "driver.log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-c", WORK, task],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as driver,
    ):
        assert driver.stdout is not None
        told = driver.stdout.readline()
        assert told.strip() == "started", (folder / "driver.log").read_text()[-3_000:]
        found = _of_spark(plane)
        driver.communicate("\n", timeout=60)
    assert not _of_spark(plane), "Spark removes them when it ends"
    return found


def _of_spark(plane: ControlPlane) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plane.ask("GET", f"{PODS}?labelSelector=spark-role%3Dexecutor")[
        "items"
    ]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def test_the_installed_objects_are_those_of_the_chart(installed: Installed) -> None:
    for path, name in {
        f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments": ACCOUNT,
        f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets": ACCOUNT,
        f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies": ACCOUNT,
        f"/api/v1/namespaces/{NAMESPACE}/services": ACCOUNT,
        f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts": ACCOUNT,
    }.items():
        found = installed.plane.ask("GET", f"{path}/{name}")
        assert found["metadata"]["labels"]["app.kubernetes.io/instance"] == RELEASE


def test_an_upgrade_keeps_the_executors_secret(installed: Installed) -> None:
    reach = _reach(installed.plane)
    first, second = (_revision(reach, number)["Secret"]["stringData"] for number in (1, 2))
    assert first["executor-secret"] == second["executor-secret"]
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{ACCOUNT}"
    kept = installed.plane.ask("GET", path)["data"]["executor-secret"]
    assert b64decode(kept).decode() == first["executor-secret"]


@pytest.mark.parametrize(
    ("verb", "resource", "allowed"),
    [
        *((verb, "pods", True) for verb in ("create", "get", "list", "watch", "delete")),
        *((verb, "configmaps", True) for verb in ("create", "get", "list", "delete")),
        ("get", "secrets", False),
        ("list", "secrets", False),
        ("create", "deployments", False),
        ("create", "pods/exec", False),
        ("create", "serviceaccounts", False),
        ("create", "rolebindings", False),
    ],
)
def test_the_drivers_account_may_make_executors_and_nothing_else(
    installed: Installed, verb: str, resource: str, allowed: bool
) -> None:
    assert installed.plane.may(USER, NAMESPACE, verb, resource) is allowed
    assert not installed.plane.may(USER, "default", verb, resource)


def test_spark_makes_the_pods_that_the_chart_describes(installed: Installed) -> None:
    assert len(installed.executors) == EXECUTORS
    for pod in installed.executors:
        (owner,) = pod["metadata"]["ownerReferences"]
        assert owner["uid"] == installed.driver["metadata"]["uid"]
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        (container,) = spec["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        (secret,) = [one for one in container["env"] if one["name"] == "_SPARK_AUTH_SECRET"]
        assert secret["valueFrom"]["secretKeyRef"] == {
            "name": ACCOUNT,
            "key": "executor-secret-encoded",
        }


def test_the_namespace_refuses_a_pod_that_may_do_more(installed: Installed) -> None:
    pod = {
        "metadata": {"name": "too-much"},
        "spec": {"containers": [{"name": "all", "image": "any", "securityContext": {}}]},
    }
    with pytest.raises(AssertionError, match="violates PodSecurity"):
        installed.plane.ask("POST", PODS, pod)
